//! The last tile of a matrix has rows beyond its end: what is computed for those is never seen.

use tinyspec_core::{Error, Tensor, realize_all};

const DEPTH: usize = 24;
const COLUMNS: usize = 32;

/// Small whole numbers, of which every sum is exact; some rows are not finite.
fn rows(count: usize, seed: usize, strange: &[usize]) -> Vec<f32> {
    let value = |i: usize| match strange.contains(&(i / DEPTH)) {
        true if i.is_multiple_of(2) => f32::INFINITY,
        true => f32::NAN,
        false => ((i * 7 + seed) % 11) as f32 - 5.0,
    };
    (0..count * DEPTH).map(value).collect()
}

fn same(found: &[f32], expected: &[f32]) -> bool {
    found.iter().zip(expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan()) && found.len() == expected.len()
}

#[test]
fn rows_beyond_the_end_are_not_seen() -> Result<(), Error> {
    for count in [7usize, 9, 10, 11, 13, 16, 40, 64, 65] {
        // The first row of the last tiles of 4, 6, 12 and 14 rows, and the last row of all.
        for strange in [vec![], vec![count - 1], [4, 6, 12, 14].map(|tile| (count - 1) / tile * tile).to_vec()] {
            let (a, b) = (rows(count, 1, &strange), rows(COLUMNS, 4, &[]));
            let residual: Vec<f32> = (0..count * COLUMNS).map(|i| (i % 5) as f32).collect();
            let expected: Vec<f32> = (0..count * COLUMNS)
                .map(|i| {
                    let (row, column) = (i / COLUMNS, i % COLUMNS);
                    (0..DEPTH).map(|k| a[row * DEPTH + k] * b[k * COLUMNS + column]).sum::<f32>() + residual[i]
                })
                .collect();
            let left = Tensor::from_slice(&a, [count, DEPTH]);
            let right = Tensor::from_slice(&b, [DEPTH, COLUMNS]);
            let sum = left.matmul(&right) + Tensor::from_slice(&residual, [count, COLUMNS]);
            let (twice, of_columns, total) = (&sum * 2.0, sum.sum(0, false), sum.sum(.., false));
            realize_all(&[&sum, &twice, &of_columns, &total])?;
            let doubled: Vec<f32> = expected.iter().map(|x| x * 2.0).collect();
            let columns: Vec<f32> =
                (0..COLUMNS).map(|c| expected.iter().skip(c).step_by(COLUMNS).sum::<f32>()).collect();
            assert!(same(&sum.to_vec::<f32>()?, &expected), "{count} rows, {strange:?}");
            assert!(same(&twice.to_vec::<f32>()?, &doubled), "{count} rows, {strange:?}");
            assert!(same(&of_columns.to_vec::<f32>()?, &columns), "{count} rows, {strange:?}");
            assert!(same(&total.to_vec::<f32>()?, &[expected.iter().sum()]), "{count} rows, {strange:?}");
        }
    }
    Ok(())
}

#[test]
fn what_follows_a_tile_is_made_of_each_of_its_rows() -> Result<(), Error> {
    for (count, columns) in [(6usize, 32usize), (7, 32), (16, 27), (40, 64), (65, 19)] {
        let value = |i: usize| ((i * 7) % 11) as f32 - 5.0;
        let a: Vec<f32> = (0..count * DEPTH).map(value).collect();
        let b: Vec<f32> = (0..DEPTH * columns).map(value).collect();
        let residual: Vec<f32> = (0..count * columns).map(|i| (i % 5) as f32).collect();
        let product = Tensor::from_slice(&a, [count, DEPTH]).matmul(Tensor::from_slice(&b, [DEPTH, columns]));
        let size = product.abs() + 1.0;
        let mixed = &product / size.sqrt() * 0.5 + Tensor::from_slice(&residual, [count, columns]);
        let length = (&mixed * &mixed + &size).sqrt() + 0.25;
        let unit = (&mixed - &product) / &length;
        realize_all(&[&mixed, &unit])?;
        let expected = (0..count * columns).map(|i| {
            let (row, column) = (i / columns, i % columns);
            let product = (0..DEPTH).map(|k| a[row * DEPTH + k] * b[k * columns + column]).sum::<f32>();
            let size = product.abs() + 1.0;
            let mixed = product / size.sqrt() * 0.5 + residual[i];
            (mixed, (mixed - product) / ((mixed * mixed + size).sqrt() + 0.25))
        });
        let (first, second): (Vec<f32>, Vec<f32>) = expected.unzip();
        assert!(same(&mixed.to_vec::<f32>()?, &first), "{count} rows of {columns}");
        assert!(same(&unit.to_vec::<f32>()?, &second), "{count} rows of {columns}");
    }
    Ok(())
}

/// A tile as large as the matrix, whose axes no loop is around.
#[test]
fn what_follows_a_tile_that_is_all_of_a_matrix() -> Result<(), Error> {
    for size in [3usize, 4, 5, 8] {
        let value = |i: usize| ((i * 7) % 11) as f64 - 5.0;
        let a: Vec<f64> = (0..size * size).map(value).collect();
        let matrix = Tensor::from_slice(&a, [size, size]);
        let found = matrix.matmul(&matrix).tanh().exp().sin().to_vec::<f64>()?;
        let product = |i: usize| (0..size).map(|k| a[i / size * size + k] * a[k * size + i % size]).sum::<f64>();
        for (i, found) in found.into_iter().enumerate() {
            let expected = product(i).tanh().exp().sin();
            assert!((found - expected).abs() < 1e-12, "{size}: {found} where {expected} is expected");
        }
    }
    Ok(())
}
