//! Compositions that are written over squares and run in lines: running Reduces with their gradients, and what the
//! specification makes of them. The time is that of the kernels on the CPU.

use std::time::{Duration, Instant};

use tinyspec::{DType, Result, Tensor, grad, with_default_device};

use super::programs::Growth;

/// The smallest size.
const FROM: usize = 1 << 14;

/// Running Reduces, gradients, reads and sums at places.
pub const COMPOSITIONS: [Growth; 18] = [
    Growth { name: "arange of n numbers", from: FROM, run: |n| kernels(|| Ok(counted(n).cast(DType::F32))) },
    Growth { name: "prefix sums of n numbers, by views", from: FROM, run: |n| on(n, |x| Ok(prefix_sum(x))) },
    Growth { name: "one-hot gather of n rows of n", from: FROM, run: |n| on(n, |x| Ok(gather(x, &places(n)))) },
    Growth { name: "one-hot scatter-add of n to n", from: FROM, run: |n| on(n, |x| Ok(scatter_add(x, &places(n)))) },
    Growth { name: "running products", from: FROM, run: |n| on(n, |x| Ok(x.cumprod(0))) },
    Growth { name: "running maxima", from: FROM, run: |n| on(n, |x| Ok(x.cummax(0))) },
    Growth { name: "running logarithms of sums", from: FROM, run: |n| on(n, |x| Ok(x.logcumsumexp(0))) },
    Growth { name: "running sums before each number", from: FROM, run: |n| on(n, |x| Ok(exclusive(x))) },
    Growth { name: "gradient of running sums", from: FROM, run: |n| on(n, |x| slope(x, x.cumsum(0))) },
    Growth { name: "gradient of running products", from: FROM, run: |n| on(n, |x| slope(x, x.cumprod(0))) },
    Growth { name: "gradient of running maxima", from: FROM, run: |n| on(n, |x| slope(x, x.cummax(0))) },
    Growth { name: "gradient of running logarithms", from: FROM, run: |n| on(n, |x| slope(x, x.logcumsumexp(0))) },
    Growth { name: "gradient of a table of n numbers", from: FROM, run: |n| on(n, table_gradient) },
    Growth { name: "masked_scatter of n numbers", from: FROM, run: |n| on(n, |x| Ok(mask_scattered(x))) },
    Growth {
        name: "the greatest five of n numbers",
        from: FROM,
        run: |n| on(n, |x| Ok(x.topk(5, 0, true)[0].clone())),
    },
    Growth { name: "einsum of two matrices of n numbers", from: FROM, run: |n| on(n, |x| Ok(einsum(x))) },
    Growth { name: "gradient of a picture of n numbers", from: FROM, run: |n| on(n, picture_gradient) },
    Growth { name: "cat of n parts", from: 8, run: |n| on(256 * n, |x| Ok(joined(x, n as i64))) },
];

/// The second run: the first one compiles.
fn kernels(program: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    with_default_device("cpu", || {
        program()?.realize()?;
        let result = program()?;
        let start = Instant::now();
        result.realize()?;
        Ok(start.elapsed())
    })
}

fn on(n: usize, program: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Duration> {
    with_default_device("cpu", || {
        let x = Tensor::from_vec((0..n).map(|i| 1.0 + (i % 7) as f32 * 1e-6).collect::<Vec<_>>(), [n]);
        x.realize()?;
        kernels(|| program(&x))
    })
}

fn slope(x: &Tensor, result: Tensor) -> Result<Tensor> {
    Ok(grad(&(&result * &result).sum(.., false), &[x])?.remove(0))
}

fn exclusive(x: &Tensor) -> Tensor {
    let n = count(x);
    x.cumsum(0).narrow(0, 0, n - 1).pad([1], [n], 0.0)
}

/// The specification's: each row of the windows begins one place later in a tiled row.
fn prefix_sum(x: &Tensor) -> Tensor {
    let n = count(x);
    let row = x.pad([n - 1], [2 * n - 1], 0.0).reshape([1, 2 * n - 1]).expand([n + 1, 2 * n - 1]);
    let windows = row.reshape([(n + 1) * (2 * n - 1)]).narrow(0, 0, 2 * n * n).reshape([n, 2 * n]);
    windows.narrow(1, 0, n).sum(1, false)
}

/// The specification's arange: its `Tensor(1)` is a number that the program writes.
fn counted(n: usize) -> Tensor {
    prefix_sum(&Tensor::scalar(1i32).reshape([1]).expand([n])) - 1
}

fn places(n: usize) -> Tensor {
    ((Tensor::arange(n as i64) * 7919i64) % n as i64).cast(DType::I32)
}

fn gather(x: &Tensor, places: &Tensor) -> Tensor {
    let n = count(x);
    let mask = counted(n as usize).reshape([n, 1]).eq(places.reshape([1, n])).cast(x.dtype());
    (x.reshape([n, 1]) * mask).sum(0, false)
}

fn scatter_add(x: &Tensor, places: &Tensor) -> Tensor {
    let n = count(x);
    let mask = counted(n as usize).reshape([n, 1]).eq(places.reshape([1, n])).cast(x.dtype());
    x + (mask * x.reshape([1, n])).sum(1, false)
}

/// Rows of 16 numbers, 1024 of which are read.
fn table_gradient(x: &Tensor) -> Result<Tensor> {
    let rows = count(x) / 16;
    let table = x.reshape([rows, 16]);
    let read = ((Tensor::arange(1024) * 7919i64) % rows).cast(DType::I32);
    Ok(grad(&read.embedding(&table).square().sum(.., false), &[x])?.remove(0))
}

fn mask_scattered(x: &Tensor) -> Tensor {
    let rows = x.reshape([-1, 64]);
    rows.masked_scatter(rows.gt(1.000_002), x)
}

/// A vector by two square matrices.
fn einsum(x: &Tensor) -> Tensor {
    let side = (count(x) as f64).sqrt() as i64;
    let matrix = x.narrow(0, 0, side * side).reshape([side, side]);
    Tensor::einsum("i,ij,jk->k", &[&matrix.select(0, 0), &matrix, &matrix])
}

/// Square, of 4 channels, read at as many places as it has.
fn picture_gradient(x: &Tensor) -> Result<Tensor> {
    let side = (count(x) as f64 / 4.0).sqrt() as i64;
    let picture = x.narrow(0, 0, 4 * side * side).reshape([1, 4, side, side]);
    let along = (Tensor::arange(side).cast(DType::F32) * 1.9 / side as f32 - 0.93).reshape([1, side]);
    let grid = Tensor::stack(&[&along.expand([side, side]), &along.transpose(0, 1).expand([side, side])], 2);
    let read = picture.grid_sample(grid.unsqueeze(0), "bilinear", "zeros", false);
    Ok(grad(&read.square().sum(.., false), &[x])?.remove(0))
}

/// Parts of other lengths than their neighbours, in another order.
fn joined(x: &Tensor, parts: i64) -> Tensor {
    let length = |part: i64| 256 + if part % 2 == 0 { -(part % 16) } else { (part - 1) % 16 };
    let mut start = 0;
    let mut slices = Vec::new();
    for part in 0..parts {
        slices.push(x.narrow(0, start, length(part)));
        start += length(part);
    }
    slices.reverse();
    Tensor::cat(&slices.iter().collect::<Vec<_>>(), 0)
}

fn count(x: &Tensor) -> i64 {
    x.shape().first().and_then(|length| length.as_const()).unwrap_or(0)
}
