//! Products with masked operands, whose loops leave out what the mask hides: as the dense product says, also of what is not finite.

use tinyspec_core::{Error, Tensor};

/// Small integers, so that sums are exact in any order.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + i / 5 + seed) % 7) as f32 - 3.0).collect()
}

/// How many columns each row has.
fn length(row: usize, columns: usize) -> usize {
    (row * 37 + 11) % (columns + 1)
}

/// A mask over the rows and columns of a matrix: by tensors of their numbers, and by its definition.
type Mask = (&'static str, fn(&Tensor, &Tensor, &Tensor) -> Tensor, fn(usize, usize, usize) -> bool);

const MASKS: [Mask; 8] = [
    ("lower", |i, j, _| j.le(i), |i, j, _| j <= i),
    ("upper", |i, j, _| j.ge(i), |i, j, _| j >= i),
    ("strictly lower", |i, j, _| (j + 5).lt(i), |i, j, _| j + 5 < i),
    ("band", |i, j, _| (i - j).abs().lt(20), |i, j, _| i.abs_diff(j) < 20),
    ("blocks", |i, j, _| i.idiv(16, "floor").eq(j.idiv(16, "floor")), |i, j, _| i / 16 == j / 16),
    ("across", |i, j, _| (i + j).lt(90), |i, j, _| i + j < 90),
    ("lengths", |_, j, lengths| j.lt(lengths), |i, j, columns| j < length(i, columns)),
    ("none", |i, j, _| (i + j).lt(0), |_, _, _| false),
];

fn masked(mask: Mask, matrix: &Tensor, [rows, columns]: [usize; 2]) -> Tensor {
    keep(mask, [rows, columns]).where_(matrix, 0.0)
}

fn keep(mask: Mask, [rows, columns]: [usize; 2]) -> Tensor {
    let lengths: Vec<i32> = (0..rows).map(|row| length(row, columns) as i32).collect();
    let (i, j) = (Tensor::arange(rows).reshape([rows, 1]), Tensor::arange(columns).reshape([1, columns]));
    mask.1(&i, &j, &Tensor::from_vec(lengths, [rows, 1]))
}

fn product(a: &[f32], b: &[f32], [rows, columns, inner]: [usize; 3]) -> Vec<f32> {
    let term = |at: usize, k: usize| a[at / columns * inner + k] * b[k * columns + at % columns];
    (0..rows * columns).map(|at| (0..inner).map(|k| term(at, k)).sum()).collect()
}

fn agree(found: &[f32], expected: &[f32], what: &str) {
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(found == expected || found.is_nan() && expected.is_nan(), "{what}: {found} for {expected} at {at}");
    }
}

/// On either side, turned or not; where `other` has numbers that are not finite, 0 times them is a nan.
fn check(mask: Mask, [rows, columns, inner]: [usize; 3], is_finite: bool) -> Result<(), Error> {
    let (mut a, mut b) = (numbers(rows * inner, 1), numbers(inner * columns, 4));
    if !is_finite {
        b[(inner / 3) * columns + columns / 2] = f32::INFINITY;
        b[(inner - 1) * columns] = f32::NAN;
        b[2 * columns + 1] = f32::NEG_INFINITY;
    }
    let what = format!("{}, {rows} × {columns} of {inner}, finite: {is_finite}", mask.0);
    let (left, right) = (Tensor::from_slice(&a, [rows, inner]), Tensor::from_slice(&b, [inner, columns]));
    let found = masked(mask, &left, [rows, inner]).matmul(&right).to_vec::<f32>()?;
    for (at, x) in a.iter_mut().enumerate() {
        *x = if mask.2(at / inner, at % inner, inner) { *x } else { 0.0 };
    }
    agree(&found, &product(&a, &b, [rows, columns, inner]), &what);
    // The other factor, turned and in front: (b' · a')' with a' = a turned.
    let turned = masked(mask, &left, [rows, inner]).transpose(0, 1);
    let found = right.transpose(0, 1).matmul(&turned).transpose(0, 1).to_vec::<f32>()?;
    agree(&found, &product(&a, &b, [rows, columns, inner]), &format!("{what}, turned"));
    Ok(())
}

#[test]
fn masked_products_are_what_dense_ones_are() -> Result<(), Error> {
    for mask in MASKS {
        for size in [[128, 64, 128], [100, 33, 131], [64, 130, 200]] {
            for is_finite in [true, false] {
                check(mask, size, is_finite)?;
            }
        }
    }
    Ok(())
}

#[test]
fn sums_and_maxima_under_a_mask() -> Result<(), Error> {
    for mask in MASKS {
        let [rows, columns] = [67, 150];
        let data = numbers(rows * columns, 3);
        let matrix = Tensor::from_slice(&data, [rows, columns]);
        let kept = masked(mask, &matrix, [rows, columns]);
        let row = |at: usize| (0..columns).filter(move |&j| mask.2(at, j, columns)).map(move |j| (at, j));
        let data = &data;
        let sums: Vec<f32> = (0..rows).map(|at| row(at).map(|(i, j)| data[i * columns + j]).sum()).collect();
        agree(&kept.sum(1, false).to_vec::<f32>()?, &sums, mask.0);
        // All that is not masked is below 0, or the factor is not finite.
        let below = masked(mask, &((matrix.square() + 1.0) * -1.0), [rows, columns]);
        let factor = Tensor::from_slice(&[1.0f32, 2.0, f32::INFINITY], [3, 1, 1]);
        let found = (below.unsqueeze(0) * factor).max(2, false).to_vec::<f32>()?;
        for (at, found) in found.into_iter().enumerate() {
            let (factor, i) = ([1.0, 2.0, f32::INFINITY][at / rows], at % rows);
            let value = |j: usize| if mask.2(i, j, columns) { -(data[i * columns + j].powi(2) + 1.0) } else { 0.0 };
            let values: Vec<f32> = (0..columns).map(|j| value(j) * factor).collect();
            let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let expected = if values.iter().any(|value| value.is_nan()) { f32::NAN } else { most };
            agree(&[found], &[expected], &format!("{} in row {i} times {factor}", mask.0));
        }
        let most = |at: usize| row(at).map(|(i, j)| data[i * columns + j]).fold(0f32, f32::max);
        let most: Vec<f32> = (0..rows).map(most).collect();
        agree(&kept.relu().max(1, false).to_vec::<f32>()?, &most, mask.0);
    }
    Ok(())
}

/// Integers have no nan: what is masked is left out altogether.
#[test]
fn masked_products_of_integers() -> Result<(), Error> {
    let [rows, columns, inner] = [96, 40, 160];
    let (a, b) = (numbers(rows * inner, 1), numbers(inner * columns, 4));
    for mask in MASKS {
        let whole = |data: &[f32], shape: [usize; 2]| Tensor::from_vec(data.iter().map(|&x| x as i32).collect(), shape);
        let found = keep(mask, [rows, inner])
            .where_(whole(&a, [rows, inner]), 0)
            .matmul(whole(&b, [inner, columns]))
            .to_vec::<i32>()?;
        let kept: Vec<f32> =
            a.iter().enumerate().map(|(at, &x)| if mask.2(at / inner, at % inner, inner) { x } else { 0.0 }).collect();
        let found: Vec<f32> = found.into_iter().map(|x| x as f32).collect();
        agree(&found, &product(&kept, &b, [rows, columns, inner]), mask.0);
    }
    Ok(())
}

/// The bounds of one loop over terms depend on another one.
#[test]
fn sums_of_products_over_two_axes_under_a_mask() -> Result<(), Error> {
    let [rows, columns, width] = [48, 100, 24];
    let (x, w) = (numbers(rows * columns * width, 1), numbers(rows * columns * width, 5));
    let tensor = |data: &[f32]| Tensor::from_slice(data, [rows, columns, width]);
    for mask in MASKS {
        let products = tensor(&x) * tensor(&w);
        let kept = keep(mask, [rows, columns]).unsqueeze(2).where_(products, 0.0);
        let mut sums = vec![0f32; width];
        for at in 0..rows * columns * width {
            let (i, j) = (at / width / columns, at / width % columns);
            sums[at % width] += if mask.2(i, j, columns) { x[at] * w[at] } else { 0.0 };
        }
        agree(&kept.sum([0, 1], false).to_vec::<f32>()?, &sums, mask.0);
        agree(&kept.sum(.., false).to_vec::<f32>()?, &[sums.iter().sum()], mask.0);
    }
    Ok(())
}

/// Both factors are masked, in batches.
#[test]
fn products_of_two_masked_factors() -> Result<(), Error> {
    for (size, batch) in [(100, 1), (64, 3)] {
        let (a, b) = (numbers(batch * size * size, 1), numbers(batch * size * size, 4));
        let tensor = |data: &[f32]| Tensor::from_slice(data, [batch, size, size]);
        for (one, other) in MASKS.into_iter().flat_map(|one| MASKS[..5].iter().map(move |&other| (one, other))) {
            let [left, right] =
                [(one, &a), (other, &b)].map(|(mask, data)| keep(mask, [size, size]).where_(tensor(data), 0.0));
            let kept = |mask: Mask, data: &[f32]| -> Vec<f32> {
                let place = |at: usize| (at / size % size, at % size);
                let is_kept = |at: usize| mask.2(place(at).0, place(at).1, size);
                data.iter().enumerate().map(|(at, &x)| if is_kept(at) { x } else { 0.0 }).collect()
            };
            let (a, b) = (kept(one, &a), kept(other, &b));
            let parts = a.chunks(size * size).zip(b.chunks(size * size));
            let expected: Vec<f32> = parts.flat_map(|(a, b)| product(a, b, [size, size, size])).collect();
            agree(&left.matmul(&right).to_vec::<f32>()?, &expected, &format!("{} times {}", one.0, other.0));
        }
    }
    Ok(())
}
