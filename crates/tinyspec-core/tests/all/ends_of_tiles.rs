//! The last tile of a matrix has rows beyond its end: what is computed for those is never seen.

use crate::support::on_each_shape;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Program, Tensor, realize_all};
use tinyspec_ir::DType;

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

/// AVX2 has no masks for elements of 8 and 16 bits: whole vectors are read as such, and only the last one lane by lane.
#[test]
fn narrow_elements_are_read_in_vectors_whatever_their_number() -> Result<(), Error> {
    for (dtype, vector) in [(DType::I8, "<32 x i8>"), (DType::U8, "<32 x i8>"), (DType::I16, "<16 x i16>")] {
        with_default_device::<_, Error>("x86-64-v3", || {
            let x = Tensor::from_slice(&vec![1i8; 1001 * 1001], [1001, 1001]).cast(dtype).realize()?.clone();
            for result in [&x + 1, x.max(.., false), x.max(1, false), x.at((1.., 3..)).contiguous()] {
                let programs = Program::of(&[&result])?;
                let is_whole = |line: &str| line.contains(&format!("load {vector}"));
                let reads = |program: &Program| program.source().is_some_and(|source| source.lines().any(is_whole));
                assert!(programs.iter().any(reads), "no `load {vector}` in {programs:#?}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn the_last_vector_of_narrow_elements_is_not_whole() -> Result<(), Error> {
    for dtype in [DType::I8, DType::U8, DType::Bool, DType::I16, DType::F16, DType::F32] {
        for (rows, columns) in [(1usize, 31usize), (3, 33), (7, 127), (5, 129), (9, 200), (33, 65)] {
            let data: Vec<f32> = (0..rows * columns).map(|i| ((i * 7) % 5 % 2) as f32).collect();
            let x = Tensor::from_slice(&data, [rows, columns]).cast(dtype).realize()?.clone();
            let floats = |tensor: Tensor| tensor.cast(DType::F32).to_vec::<f32>();
            let of_rows = |row: fn(&[f32]) -> Vec<f32>| data.chunks(columns).flat_map(row).collect::<Vec<f32>>();
            let what = format!("{dtype} of {rows} by {columns}");
            assert_eq!(floats(x.logical_not())?, data.iter().map(|x| 1.0 - x).collect::<Vec<_>>(), "{what}");
            let total: f32 = data.iter().sum();
            assert_eq!(floats(x.cast(DType::I32).sum(.., false))?, [total], "{what}");
            assert_eq!(
                floats(x.max(1, false))?,
                of_rows(|row| vec![row.iter().copied().fold(0.0, f32::max)]),
                "{what}"
            );
            assert_eq!(floats(x.flip([1]))?, of_rows(|row| row.iter().rev().copied().collect()), "{what}");
            assert_eq!(floats(x.at((.., 3..)).contiguous())?, of_rows(|row| row[3..].to_vec()), "{what}");
        }
    }
    Ok(())
}

/// The loop over columns is versioned by the mask of the rows, and then its body by the same condition: that is settled.
#[test]
fn a_tile_is_full_where_the_condition_around_its_loop_says_so() -> Result<(), Error> {
    on_each_shape(|| {
        for (dtype, rows, columns) in
            [(DType::F64, 31, 68), (DType::I64, 63, 36), (DType::F32, 31, 72), (DType::I16, 61, 48)]
        {
            let x = Tensor::arange(rows * columns).cast(dtype).reshape([rows, columns]).realize()?.clone();
            let turned = (&x + 1).transpose(0, 1).contiguous().cast(DType::F64).to_vec::<f64>()?;
            let expected =
                (0..columns).flat_map(|column| (0..rows).map(move |row| (row * columns + column + 1) as f64));
            assert!(turned.into_iter().eq(expected), "{dtype} of {rows} by {columns}");
        }
        Ok(())
    })
}
