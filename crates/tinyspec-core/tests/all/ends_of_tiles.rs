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
