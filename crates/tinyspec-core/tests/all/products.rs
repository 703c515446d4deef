//! Products large enough that rows come from far, panels are copied in blocks, and loops are unrolled.

use crate::support::SHAPES;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

/// Small integers, so that sums are exact in any order.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + i / 5 + seed) % 7) as f32 - 3.0).collect()
}

fn check([rows, columns, inner]: [usize; 3], [turns_a, turns_b]: [bool; 2]) -> Result<(), Error> {
    let (a, b) = (numbers(rows * inner, 1), numbers(inner * columns, 4));
    let tensor = |data: &[f32], [outer, inner]: [usize; 2], turns: bool| {
        if turns {
            let turned: Vec<f32> = (0..inner * outer).map(|i| data[i % outer * inner + i / outer]).collect();
            Tensor::from_vec(turned, [inner, outer]).transpose(0, 1)
        } else {
            Tensor::from_slice(data, [outer, inner])
        }
    };
    let (left, right) = (tensor(&a, [rows, inner], turns_a), tensor(&b, [inner, columns], turns_b));
    let found = left.matmul(&right).to_vec::<f32>()?;
    let mut expected = vec![0.0f32; rows * columns];
    for (row, out) in a.chunks(inner).zip(expected.chunks_mut(columns)) {
        for (x, terms) in row.iter().zip(b.chunks(columns)) {
            out.iter_mut().zip(terms).for_each(|(sum, y)| *sum += x * y);
        }
    }
    assert!(found == expected, "{rows} × {columns} of {inner}, turned {turns_a} {turns_b}");
    Ok(())
}

#[test]
fn large_products_of_any_size_and_order() -> Result<(), Error> {
    for size in [[131, 96, 520], [200, 71, 513], [257, 130, 514], [128, 192, 515], [151, 64, 1021]] {
        for turned in [[false, false], [true, false], [false, true], [true, true]] {
            check(size, turned)?;
        }
    }
    Ok(())
}

/// What is added to the sums of a tile comes from far: matrices, turned ones, and parts of larger ones.
#[test]
fn large_products_with_more_behind_their_sums() -> Result<(), Error> {
    let [rows, columns, inner] = [1031i64, 277, 64];
    let matrix = |shape: [i64; 2], seed: usize| {
        let shape = shape.map(|dim| dim as usize);
        Tensor::from_vec(numbers(shape[0] * shape[1], seed), shape)
    };
    let product = matrix([rows, inner], 1).matmul(matrix([inner, columns], 4));
    let sums = product.to_vec::<f32>()?;
    let others = [
        matrix([rows, columns], 2),
        matrix([columns, rows], 3).transpose(0, 1),
        matrix([rows + 3, columns + 5], 5).shrink([2, 4], [rows, columns]),
        matrix([rows, columns - 9], 6).pad([0, 4], [rows, columns], 0.0),
    ];
    for (number, other) in others.iter().enumerate() {
        let values = other.to_vec::<f32>()?;
        let expected: Vec<f32> = sums.iter().zip(&values).map(|(sum, other)| (sum - other).max(0.0)).collect();
        let product = matrix([rows, inner], 1).matmul(matrix([inner, columns], 4));
        assert!((product - other).relu().to_vec::<f32>()? == expected, "matrix {number}");
    }
    Ok(())
}

/// Channels that become pixels: what they are made of lies apart in the cotangent, and the gradient's vectors take lanes of all
/// of it.
#[test]
fn gradients_of_weights_whose_channels_become_pixels() -> Result<(), Error> {
    for (planes, factor) in [(3, 4), (16, 2), (5, 2), (3, 3), (1, 8)] {
        let (inputs, side) = (5, 12);
        let channels = planes * factor * factor;
        let shuffled = [planes, side * factor, side * factor];
        let of = |device: &str| {
            with_default_device::<_, Error>(device, || {
                let numbers = |modulus: i64, shape: &[i64]| {
                    let count: i64 = shape.iter().product();
                    Tensor::arange(count).modulo(modulus).cast(DType::F32).reshape(shape).contiguous()
                };
                let (x, w) = (numbers(7, &[inputs, side * side]), numbers(5, &[channels, inputs]));
                let y = w.matmul(&x).reshape([1, channels, side, side]).pixel_shuffle(factor).squeeze([0]);
                let loss = (y * numbers(11, &shuffled)).sum(.., false);
                grad(&loss, &[&w])?[0].to_vec::<f32>()
            })
        };
        assert_eq!(of("cpu")?, of("interpreter")?, "{planes} planes, {factor} times as large");
    }
    Ok(())
}

/// Packed dot products of signed and unsigned narrow integers, including the least values, in both memory orders and in convolutions;
/// sizes leave partial tiles and partial words.
#[test]
fn products_of_narrow_integers() -> Result<(), Error> {
    const NARROW: [DType; 3] = [DType::I8, DType::U8, DType::I16];
    let factor = |shape: &[i64], dtype: DType, seed: i64| {
        let least = if dtype == DType::U8 { 0 } else { -128 };
        let data = (0..shape.iter().product::<i64>()).map(|i| (least + (i * 97 + i / 3 * seed) % 256) as i32);
        Tensor::from_vec(data.map(|x| x.min(least as i32 + 255)).collect(), shape.to_vec()).cast(dtype)
    };
    let wide = |x: Tensor| x.realize().map(|x| x.cast(DType::I32));
    for (a, b) in NARROW.iter().flat_map(|&a| NARROW.map(|b| (a, b))) {
        for [rows, columns, inner] in
            [[64, 96, 64], [37, 67, 30], [9, 130, 7], [33, 5, 65], [24, 48, 4], [1, 40, 36], [34, 50, 35]]
        {
            let products = || {
                let left = wide(factor(&[rows, inner], a, 3))?;
                let right = wide(factor(&[inner, columns], b, 5))?;
                let turned = wide(factor(&[columns, inner], b, 7))?.transpose(0, 1);
                Ok([left.matmul(&right).to_vec::<i32>()?, left.matmul(&turned).to_vec::<i32>()?])
            };
            let expected = with_default_device::<_, Error>("interpreter", products)?;
            for device in SHAPES.into_iter().chain(["interpreter/znver4", "cpu"]) {
                let found = with_default_device::<_, Error>(device, products)?;
                assert!(found == expected, "{a:?} {b:?} {rows} × {columns} × {inner} on {device}");
            }
        }
        let convolved = || {
            let (x, weight) = (wide(factor(&[1, 5, 9, 9], a, 3))?, wide(factor(&[12, 5, 3, 3], b, 5))?);
            x.conv2d(&weight, None, Default::default()).to_vec::<i32>()
        };
        let expected = with_default_device::<_, Error>("interpreter", convolved)?;
        for device in SHAPES.into_iter().chain(["interpreter/znver4", "cpu"]) {
            assert!(
                with_default_device::<_, Error>(device, convolved)? == expected,
                "{a:?} {b:?} convolved on {device}"
            );
        }
    }
    Ok(())
}
