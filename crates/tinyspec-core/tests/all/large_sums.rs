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
    for shape in [&[1 << 20][..], &[1_048_583], &[3, 400_009], &[1031, 1021], &[700_001, 2], &[2, 300_000, 3]] {
        let count = shape.iter().product::<i64>() as usize;
        let value = |i: usize| (i % 7) as f32 - 3.0 + (i == count - 1) as u8 as f32 * 50.0;
        let x = Tensor::from_slice(&(0..count).map(value).collect::<Vec<_>>(), shape);
        let expected: f64 = (0..count).map(|i| f64::from(value(i))).sum();
        assert_eq!(f64::from(x.sum(.., false).item::<f32>()?), expected, "{shape:?}");
        assert_eq!(x.max(.., false).item::<f32>()?, value(count - 1), "{shape:?}");
        assert_eq!(x.min(.., false).item::<f32>()?, -3.0, "{shape:?}");
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
