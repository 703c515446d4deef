//! Times candle's ops, one at a time, for the bench that started it.
//!
//! A request is a line `OP ITERATIONS SHAPE…`, as in `gemm 10 512x512 512x512`; the answer `SECONDS SUM`, the time of an iteration
//! and the sum of what it has computed, or `error: …`. As many threads compute as `RAYON_NUM_THREADS` says.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use candle_core::{D, Device, Tensor};
use candle_nn::ops::{layer_norm, rms_norm, softmax_last_dim};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// What an op computes of its inputs.
type Run = fn(&[Tensor]) -> candle_core::Result<Tensor>;

/// The ops, by the names that the bench has for them.
const OPS: &[(&str, Run)] = &[
    ("gemm", |x| x[0].matmul(&x[1])),
    ("linear-relu", |x| x[0].matmul(&x[1])?.broadcast_add(&x[2])?.relu()),
    ("conv-3x3", |x| x[0].conv2d(&x[1], 1, 1, 1, 1)),
    ("softmax", |x| softmax_last_dim(&x[0])),
    ("layer-norm", |x| layer_norm(&x[0], &x[1], &x[2], 1e-5)),
    ("rms-norm", |x| rms_norm(&x[0], &x[1], 1e-5)),
    ("gelu", |x| x[0].gelu()),
    ("add", |x| &x[0] + &x[1]),
    ("row-sum", |x| x[0].sum(D::Minus1)),
    ("argmax", |x| x[0].argmax(D::Minus1)),
    ("attention", |x| softmax_last_dim(&(x[0].matmul(&x[1].t()?)? * 0.125)?)?.matmul(&x[2])),
];

fn main() -> Result<()> {
    let mut answers = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        match answer(&line?) {
            Ok((seconds, sum)) => writeln!(answers, "{seconds:e} {sum:e}")?,
            Err(error) => writeln!(answers, "error: {}", error.to_string().replace('\n', " "))?,
        }
        answers.flush()?;
    }
    Ok(())
}

fn answer(request: &str) -> Result<(f64, f64)> {
    let mut words = request.split_whitespace();
    let name = words.next().ok_or("a request names an op")?;
    let (_, run) = OPS.iter().find(|(op, _)| *op == name).ok_or_else(|| format!("no op `{name}`"))?;
    let iterations: u32 = words.next().ok_or("a request says how many iterations")?.parse()?;
    let inputs = words.map(input).collect::<Result<Vec<_>>>()?;
    let output = run(&inputs)?;
    let start = Instant::now();
    for _ in 0..iterations {
        black_box(run(&inputs)?);
    }
    let seconds = start.elapsed().as_secs_f64() / f64::from(iterations);
    let values: Vec<f32> = output.to_dtype(candle_core::DType::F32)?.flatten_all()?.to_vec1()?;
    Ok((seconds, values.into_iter().map(f64::from).sum()))
}

/// A tensor of a shape such as `8x64x56x56`, filled as the bench fills its own.
fn input(shape: &str) -> Result<Tensor> {
    let shape = shape.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|index| ((index % 251) as f32 - 125.0) / 251.0).collect();
    Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
}
