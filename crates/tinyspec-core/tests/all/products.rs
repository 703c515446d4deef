//! Products large enough that rows come from far, panels are copied in blocks, and loops are unrolled.

use tinyspec_core::{Error, Tensor};

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
