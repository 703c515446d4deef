//! Reductions of many elements to few: exact where they can be, and near where they round.

use tinyspec_core::{Error, Tensor};

#[test]
fn the_mean_of_many_equal_values_is_near() -> Result<(), Error> {
    let count = 5_000_011;
    let mean = Tensor::from_slice(&vec![0.1f32; count], [count as i64]).mean(.., false).item::<f32>()?;
    assert!((mean - 0.1).abs() < 1e-6, "{mean}");
    Ok(())
}

#[test]
fn large_reductions_are_exact_on_small_integers() -> Result<(), Error> {
    for shape in [
        &[1 << 20][..],
        &[1_048_583],
        &[3, 400_009],
        &[1031, 1021],
        &[700_001, 2],
        &[2, 300_000, 3],
        &[32, 4, 113, 113],
        &[7, 1009, 300],
        &[61, 1733, 11],
        &[2, 2, 90_001],
    ] {
        let count = shape.iter().product::<i64>() as usize;
        let value = |i: usize| (i % 7) as f32 - 3.0 + (i == count - 1) as u8 as f32 * 50.0;
        let x = Tensor::from_slice(&(0..count).map(value).collect::<Vec<_>>(), shape);
        let expected: f64 = (0..count).map(|i| f64::from(value(i))).sum();
        assert_eq!(f64::from(x.sum(.., false).item::<f32>()?), expected, "{shape:?}");
        assert_eq!(x.max(.., false).item::<f32>()?, value(count - 1), "{shape:?}");
        assert_eq!(x.min(.., false).item::<f32>()?, -3.0, "{shape:?}");
        assert_eq!(x.reshape([count as i64]).sum(.., false).item::<f32>()?, expected as f32, "{shape:?}");
        // Along all but the last axis, of a value that is computed on the way.
        if let [.., last @ 2..=3] = *shape {
            let axes: Vec<i64> = (0..shape.len() as i64 - 1).collect();
            let found = (&x + 1.0).abs().sum(axes.as_slice(), false).to_vec::<f32>()?;
            let mut expected = vec![0f64; last as usize];
            (0..count).for_each(|i| expected[i % last as usize] += f64::from((value(i) + 1.0).abs()));
            assert_eq!(found.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), expected, "{shape:?}");
        }
    }
    Ok(())
}

#[test]
fn variances_over_all_axes_are_those_of_exact_sums() -> Result<(), Error> {
    for shape in [&[61i64, 3, 97, 101][..], &[100, 8009], &[1031, 1021], &[5, 3, 70_001], &[400_009, 2]] {
        let count = shape.iter().product::<i64>() as usize;
        let value = |i: usize| (i * 7 % 13) as f32 + 100.0;
        let x = Tensor::from_slice(&(0..count).map(value).collect::<Vec<_>>(), shape);
        let variance = |places: &dyn Fn(usize) -> bool| {
            let values = || (0..count).filter(|&i| places(i)).map(|i| f64::from(value(i)));
            let mean = values().sum::<f64>() / values().count() as f64;
            values().map(|value| (value - mean).powi(2)).sum::<f64>() / values().count() as f64
        };
        let near = |found: f32, expected: f64| (f64::from(found) - expected).abs() < 1e-5 * expected;
        let found = x.var(.., 0, false).item::<f32>()?;
        assert!(near(found, variance(&|_| true)), "{shape:?}: {found}");
        let found = x.reshape([count as i64]).var(.., 0, false).item::<f32>()?;
        assert!(near(found, variance(&|_| true)), "{shape:?}: {found}");
        // Of each channel.
        if let [_, channels, ref inner @ ..] = *shape {
            let axes: Vec<i64> = (0..shape.len() as i64).filter(|&axis| axis != 1).collect();
            let inner = inner.iter().product::<i64>() as usize;
            let found = if channels <= 3 { x.var(axes.as_slice(), 0, false).to_vec::<f32>()? } else { vec![] };
            for (channel, found) in found.into_iter().enumerate() {
                let expected = variance(&|i| i / inner % channels as usize == channel);
                assert!(near(found, expected), "{shape:?}, channel {channel}: {found}, not {expected}");
            }
        }
    }
    Ok(())
}
