//! Axes of one element that are padded or joined: one place is read under many conditions.

use tinyspec_core::{Error, Tensor, grad};

#[test]
fn a_computed_column_is_joined() -> Result<(), Error> {
    let column = Tensor::from_slice(&[1f32, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, 8.0], [8, 1]).relu();
    let block = Tensor::from_slice(&[0.5f32; 64], [8, 8]);
    let joined = Tensor::cat(&[&column, &block], 1).to_vec::<f32>()?;
    for (row, first) in [1f32, 0.0, 3.0, 0.0, 5.0, 0.0, 7.0, 8.0].into_iter().enumerate() {
        assert_eq!(joined[row * 9], first);
        assert_eq!(joined[row * 9 + 1..row * 9 + 9], [0.5; 8]);
    }
    let last = Tensor::cat(&[&block, &column], 1).to_vec::<f32>()?;
    assert_eq!(last[62], 7.0);
    Ok(())
}

#[test]
fn a_computed_element_is_padded() -> Result<(), Error> {
    for (before, after) in [(0, 1), (1, 0), (0, 63), (63, 64), (5, 30), (100, 1)] {
        let x = Tensor::from_slice(&[5f32], [1]) * 2.0;
        let length = before + 1 + after;
        let mut expected = vec![0f32; length];
        let (offset, shape) = ([before as i64], [length as i64]);
        expected[before] = 10.0;
        assert_eq!(x.pad(offset, shape, 0.0).to_vec::<f32>()?, expected, "{before} and {after}");
        let wide = (x.cast(tinyspec_ir::DType::F64) + 1.0).pad(offset, shape, 0.0);
        expected[before] = 11.0;
        assert_eq!(wide.cast(tinyspec_ir::DType::F32).to_vec::<f32>()?, expected, "{before} and {after}");
    }
    Ok(())
}

#[test]
fn an_element_is_padded_on_two_axes() -> Result<(), Error> {
    let x = Tensor::from_slice(&[2f32], [1, 1]).square();
    let padded = x.pad([3, 20], [8, 32], 0.0).to_vec::<f32>()?;
    let mut expected = vec![0f32; 8 * 32];
    expected[3 * 32 + 20] = 4.0;
    assert_eq!(padded, expected);
    Ok(())
}

#[test]
fn the_gradient_of_a_difference_to_one_element() -> Result<(), Error> {
    let x = Tensor::from_slice(&(0..64).map(|i| i as f32).collect::<Vec<_>>(), [64]);
    let weights = Tensor::from_slice(&(0..64).map(|i| (i % 5) as f32).collect::<Vec<_>>(), [64]);
    for at in [0usize, 31, 63] {
        let difference = &x - x.narrow(0, at as i64, 1);
        let loss = (difference.square() * &weights).sum(.., false);
        let gradient = grad(&loss, &[&x])?[0].to_vec::<f32>()?;
        let mut expected: Vec<f32> = (0..64).map(|i| 2.0 * (i as f32 - at as f32) * (i % 5) as f32).collect();
        let total: f32 = expected.iter().sum();
        expected[at] -= total;
        assert_eq!(gradient, expected);
    }
    Ok(())
}
