//! How fast programs are, beside what the same device reaches at its best: a copy by the driver, and a kernel that does
//! nothing but multiply and add.

use crate::Outcome;
use crate::programs::numbers;
use std::time::Duration;
use tinyspec::prelude::*;
use tinyspec::{Device, device};

/// A program to time.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    inputs: fn(i64) -> Vec<Vec<i64>>,
    dtype: DType,
    run: fn(&[Tensor]) -> Tensor,
    /// Bytes that it must move, and operations that it must do.
    work: fn(i64) -> (f64, f64),
}

/// All of them. They grow with a number, the side of a matrix.
pub const ROWS: &[Row] = &[
    Row {
        name: "copy by a kernel, f32 [n, n]",
        inputs: |n| vec![vec![n, n]],
        dtype: DType::F32,
        run: |x| copied(&x[0].reshape([-1])),
        work: |n| ((8 * n * n) as f64, 0.0),
    },
    Row {
        name: "add one, f32 [n, n]",
        inputs: |n| vec![vec![n, n]],
        dtype: DType::F32,
        run: |x| &x[0] + 1.0,
        work: |n| ((8 * n * n) as f64, 0.0),
    },
    Row {
        name: "sum of rows, f32 [n, n]",
        inputs: |n| vec![vec![n, n]],
        dtype: DType::F32,
        run: |x| x[0].sum(1, false),
        work: |n| ((4 * n * n) as f64, 0.0),
    },
    Row {
        name: "softmax of rows, f32 [n, n]",
        inputs: |n| vec![vec![n, n]],
        dtype: DType::F32,
        run: |x| x[0].softmax(-1),
        work: |n| ((8 * n * n) as f64, 0.0),
    },
    Row {
        name: "product, f32 [n/2, n/2]",
        inputs: |n| vec![vec![n / 2, n / 2]; 2],
        dtype: DType::F32,
        run: |x| x[0].matmul(&x[1]),
        work: |n| (0.0, 2.0 * (n as f64 / 2.0).powi(3)),
    },
    Row {
        name: "product, bf16 [n/2, n/2]",
        inputs: |n| vec![vec![n / 2, n / 2]; 2],
        dtype: DType::BF16,
        run: |x| x[0].matmul(&x[1]),
        work: |n| (0.0, 2.0 * (n as f64 / 2.0).powi(3)),
    },
    Row {
        name: "attention, f32 [8, n/4, 64]",
        inputs: |n| vec![vec![8, n / 4, 64]; 3],
        dtype: DType::F32,
        run: |x| (x[0].matmul(x[1].transpose(1, 2)) * 0.125).softmax(-1).matmul(&x[2]),
        work: |n| (0.0, 4.0 * 8.0 * 64.0 * (n as f64 / 4.0).powi(2)),
    },
];

uop! {
    <N> fn copied(x: &Global<f32, { 256 * N }>) -> Global<f32, { 256 * N }> as y {
        for group in global(N) {
            for t in local(256) { y[256 * group + t] = x[256 * group + t]; }
        }
    }

    // Two chains of multiply-adds; with as many threads as there are elements no unit waits for them.
    <N> fn chained(x: &Global<f32, { 256 * N }>, s: f32, t: f32) -> Global<f32, { 256 * N }> as y {
        for group in global(N) { for lane in local(256) {
            let i = 256 * group + lane;
            let mut a = x[i];
            let mut b = a + 1.0;
            for k in serial(4096) {
                a = unsafe {
                    custom("%r = call {r} @llvm.fma.{r.name}({r} %0, {r} %1, {r} %2)\n ret {r} %r", a * s + t, a, s, t)
                };
                b = unsafe {
                    custom("%r = call {r} @llvm.fma.{r.name}({r} %0, {r} %1, {r} %2)\n ret {r} %r", b * s + t, b, s, t)
                };
            }
            y[i] = a + b;
        } }
    }
}

/// Operations on f32 a second, by a kernel that only multiplies and adds.
///
/// # Errors
/// When the device fails.
pub fn operations(device: &Device, n: i64) -> Outcome<f64> {
    let count = n * n;
    let x = numbers(&[count], 1).to(device.name());
    x.realize()?;
    let mut best = 0f64;
    for _ in 0..3 {
        let mut outcome = Ok(());
        let mut run = || outcome = chained(&x, 0.999_999, 0.5).realize().map(drop);
        let time = device.runtime().timed(&mut run)?;
        outcome?;
        best = best.max((4 * 4096 * count) as f64 / time.as_secs_f64());
    }
    Ok(best)
}

/// The side of matrices on a GPU, and where one is only simulated.
pub const REAL: i64 = 4096;
/// See [`REAL`].
pub const SMALL: i64 = 32;

impl Row {
    /// Runs it once.
    ///
    /// # Errors
    /// When a kernel cannot be made, or fails.
    pub fn run(&self, on: &str, n: i64) -> Outcome {
        (self.run)(&self.tensors(on, n)).realize()?;
        Ok(())
    }

    fn tensors(&self, on: &str, n: i64) -> Vec<Tensor> {
        let tensor = |(seed, shape): (usize, &Vec<i64>)| numbers(shape, seed as u64 + 1).cast(self.dtype).to(on);
        (self.inputs)(n).iter().enumerate().map(tensor).collect()
    }

    /// The time of a run by the device's clock, the least of several.
    ///
    /// # Errors
    /// When a kernel fails.
    pub fn time(&self, on: &str, n: i64) -> Outcome<Duration> {
        const TIMES: usize = 10;
        let (device, inputs) = (device(on)?, self.tensors(on, n));
        tinyspec::realize_all(&inputs.iter().collect::<Vec<_>>())?;
        let mut least = Duration::MAX;
        for _ in 0..3 {
            let mut outcome = Ok(());
            let mut run = || outcome = (0..TIMES).try_for_each(|_| (self.run)(&inputs).realize().map(drop));
            let time = device.runtime().timed(&mut run)?;
            outcome?;
            least = least.min(time / TIMES as u32);
        }
        Ok(least)
    }

    /// The time, the rate, and how that is beside the limit.
    pub fn describe(&self, time: Duration, n: i64, limits: &Limits) -> String {
        let (bytes, operations) = (self.work)(n);
        let seconds = time.as_secs_f64();
        let rate = match bytes > 0.0 {
            true => format!(
                "{:8.1} GB/s      {:5.1} % of a copy",
                bytes / seconds / 1e9,
                100.0 * bytes / seconds / limits.bytes
            ),
            false => {
                let share = limits.operations.map_or("f32 limit unknown".into(), |limit| {
                    format!("{:5.1} % of f32 fma", 100.0 * operations / seconds / limit)
                });
                format!("{:8.3} TFLOP/s   {share}", operations / seconds / 1e12)
            }
        };
        format!("{:32} {:10.1} µs {rate}", self.name, seconds * 1e6)
    }
}

/// What a device reaches at its best, a second.
pub struct Limits {
    /// Bytes, read and written.
    pub bytes: f64,
    /// Operations on f32.
    pub operations: Option<f64>,
}

impl Limits {
    /// Measures them.
    ///
    /// # Errors
    /// When the device fails.
    pub fn of(device: &Device, n: i64) -> Outcome<Limits> {
        let runtime = device.runtime();
        let bytes = (4 * n * n) as usize;
        let [from, to] = [runtime.allocate(bytes)?, runtime.allocate(bytes)?];
        let mut best = 0f64;
        for _ in 0..4 {
            let mut outcome = Ok(());
            let mut copy = || outcome = (0..8).try_for_each(|_| runtime.copy(&*to, &*from, 0, bytes).map(drop));
            let time = runtime.timed(&mut copy)?;
            outcome?;
            best = best.max(16.0 * bytes as f64 / time.as_secs_f64());
        }
        Ok(Limits { bytes: best, operations: operations(device, n).ok() })
    }
}
