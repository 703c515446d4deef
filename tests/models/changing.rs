//! Numbers that change from step to step are data wherever they stand: nothing is compiled once a loop has gone on for a few
//! steps.

use tinyspec::Argument;
use tinyspec::ir::ops::table::{METHODS, Method, ParamKind};
use tinyspec::nn::{Optimizer, Sgd};
use tinyspec::prelude::*;
use tinyspec::profile::counters;
use tinyspec::realize_all;

/// The plans that each of twelve steps makes.
fn plans(step: impl FnMut(usize) -> Result<()>) -> Result<Vec<u64>> {
    plans_of(12, step)
}

fn plans_of(steps: usize, mut step: impl FnMut(usize) -> Result<()>) -> Result<Vec<u64>> {
    let one = |number| {
        let before = counters().plans;
        step(number)?;
        Ok(counters().plans - before)
    };
    (0..steps).map(one).collect()
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

/// Parameters of a method that its windows follow from, and windows of a weight.
#[test]
fn windows_in_methods_and_in_gradients() -> Result<()> {
    let _alone = crate::alone();
    let data: Vec<f32> = (0..64).map(|number| number as f32).collect();
    let x = Tensor::from_slice(&data, [64]);
    let rolled = plans_of(24, |step| {
        let rolled = (x.roll([step as i64], [0]) * 2.0).to_vec::<f32>()?;
        assert_eq!(rolled[(5 + step) % 64], 10.0, "roll({step})");
        Ok(())
    })?;
    assert!(settles(&rolled[6..]), "{rolled:?}");
    let learned = plans_of(24, |step| {
        let window = x.at(step..step + 8);
        let gradient = grad(&(window.tanh() * &window).square().sum(.., false), &[&x])?[0].to_vec::<f32>()?;
        for (place, (&found, &x)) in gradient.iter().zip(&data).enumerate() {
            let (tanh, is_inside) = (x.tanh(), (step..step + 8).contains(&place));
            let expected = 2.0 * tanh * x * (tanh + x * (1.0 - tanh * tanh)) * f32::from(is_inside);
            assert!((found - expected).abs() <= 1e-5 * (1.0 + expected), "step {step}: {found} rather than {expected}");
        }
        Ok(())
    })?;
    assert!(settles(&learned[6..]), "{learned:?}");
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

/// Arguments of a method that takes matrices: the float at `which` is `value`. There are several tries, as not every method takes
/// the same shapes and ranges.
fn arguments(method: &Method, which: usize, value: f64, attempt: usize) -> Vec<Argument> {
    let numbers = |shape: &[usize], step: f32| {
        let data: Vec<f32> =
            (0..shape.iter().product()).map(|i: usize| (i as f32 * step).sin().abs() * 0.8 + 0.1).collect();
        Tensor::from_slice(&data, shape)
    };
    let places = |shape: &[usize]| {
        let count: usize = shape.iter().product();
        Tensor::from_slice(&(0..count as i32).map(|i| i % 8).collect::<Vec<i32>>(), shape)
    };
    let shape: &[usize] = if attempt.is_multiple_of(2) { &[8] } else { &[8, 8] };
    let mut is_first = true;
    let of = |(position, (name, kind)): (usize, &(&str, ParamKind))| match kind {
        ParamKind::tensor if *name == "key" => Argument::Tensor(Tensor::scalar(7u64)),
        ParamKind::tensor if std::mem::take(&mut is_first) => Argument::Tensor(numbers(&[8, 8], 0.37)),
        ParamKind::tensor if name.contains("index") || name.contains("target") => Argument::Tensor(places(shape)),
        ParamKind::tensor => Argument::Tensor(numbers(shape, 0.57)),
        ParamKind::tensors => Argument::Tensors(vec![numbers(&[8, 8], 0.3), numbers(&[8, 8], 0.7)]),
        ParamKind::int | ParamKind::size => Argument::Int([1, 0, 2][attempt % 3]),
        ParamKind::ints => Argument::Ints(vec![2, 2]),
        ParamKind::shape => Argument::Ints(vec![8, 8]),
        ParamKind::axes => Argument::Ints(vec![1]),
        ParamKind::float if position == which => Argument::Float(value),
        ParamKind::float => Argument::Float(if attempt < 6 { 0.25 } else { 1.5 }),
        ParamKind::flag => Argument::Flag(false),
        ParamKind::dtype => Argument::DType(DType::F32),
        ParamKind::text => Argument::Text(if attempt.is_multiple_of(2) { "mean" } else { "none" }.into()),
        _ => Argument::Nothing,
    };
    method.params.iter().enumerate().map(of).collect()
}

#[test]
fn floats_that_methods_take() {
    let _alone = crate::alone();
    let (mut tried, mut compiled) = (0, vec![]);
    for method in METHODS {
        // Which elements a quantile lies between, the graph says.
        let floats = method.params.iter().enumerate().filter(|(_, (_, kind))| *kind == ParamKind::float);
        for (which, (name, _)) in floats.filter(|_| method.name != "quantile") {
            let made = (0..12usize).find_map(|attempt| {
                let first = if attempt.is_multiple_of(2) { 0.3 } else { 1.2 };
                let step = |step: usize| {
                    let arguments = arguments(method, which, first + step as f64 * 0.01, attempt);
                    realize_all(&Tensor::call(method.name, &arguments)?.iter().collect::<Vec<_>>())
                };
                plans(step).ok()
            });
            tried += usize::from(made.is_some());
            compiled
                .extend(made.filter(|made| !settles(made)).map(|made| format!("{}: {name}: {made:?}", method.name)));
        }
    }
    assert!(tried > 70, "only {tried} floats were tried");
    assert!(compiled.is_empty(), "{}", compiled.join("\n"));
}

#[test]
fn bounds_of_a_draw() -> Result<()> {
    let _alone = crate::alone();
    let made = plans(|step| Tensor::randint([32], step as i64 - 3, 2 * step as i64 + 1).realize().map(drop))?;
    assert!(settles(&made), "{made:?}");
    Ok(())
}
