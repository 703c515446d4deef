//! Numbers that change from step to step are data wherever they stand: nothing is compiled once a loop has gone on for a few
//! steps.

use tinyspec::nn::{Optimizer, Sgd};
use tinyspec::prelude::*;
use tinyspec::profile::counters;
use tinyspec::realize_all;

/// The plans that each of twelve steps makes.
fn plans(mut step: impl FnMut(usize) -> Result<()>) -> Result<Vec<u64>> {
    let one = |number| {
        let before = counters().plans;
        step(number)?;
        Ok(counters().plans - before)
    };
    (0..12).map(one).collect()
}

fn settles(plans: &[u64]) -> bool {
    plans[6..].iter().all(|&plans| plans == 0)
}

#[test]
fn in_a_loss_that_is_read_before_its_gradient() -> Result<()> {
    let _alone = crate::alone();
    let x = Tensor::randn([16, 8]).realize()?.clone();
    let train = |is_read: bool| -> Result<(Vec<u64>, Vec<f32>)> {
        let (mut w, mut optimizer) = (Tensor::ones([8, 4]), Sgd::new(0.01));
        w.realize()?;
        let plans = plans(|step| {
            let scale = 1.0 / (step as f32 + 1.5);
            let hidden = (x.matmul(&w) * scale).tanh();
            let loss = (hidden.square() + (&w * w.sum(.., false)).mean(.., false) * (0.1 * scale)).mean(.., false);
            if is_read {
                assert!(loss.item::<f32>()?.is_finite());
            }
            let gradients = grad(&loss, &[&w])?;
            optimizer.step(&mut [&mut w], &gradients)?;
            realize_all(&[&loss, &w])?;
            Ok(())
        })?;
        Ok((plans, w.to_vec()?))
    };
    let (read, found) = train(true)?;
    let (unread, expected) = train(false)?;
    assert!(settles(&unread), "{unread:?}");
    assert!(settles(&read), "{read:?}");
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 1e-5;
    assert!(found.iter().zip(&expected).all(near), "{found:?} {expected:?}");
    Ok(())
}

#[test]
fn on_several_devices_at_once() -> Result<()> {
    let _alone = crate::alone();
    let rows = Tensor::from_vec((0..96).map(|number| number as f32).collect(), [24, 4]);
    let [left, right] = ["interpreter", "cpu"].map(|device| rows.to(device));
    realize_all(&[&left, &right])?;
    let made = plans(|step| {
        let scale = step as f32 + 0.25;
        let part = |rows: &Tensor| (rows.at(2 * step..2 * step + 2) * scale).sum(.., false);
        let (first, second) = (part(&left), part(&right));
        realize_all(&[&first, &second])?;
        let sum: f32 = (8 * step..8 * step + 8).map(|number| number as f32).sum();
        assert_eq!([first.item::<f32>()?, second.item::<f32>()?], [sum * scale; 2]);
        Ok(())
    })?;
    assert!(settles(&made), "{made:?}");
    Ok(())
}
