//! `cargo bench -- candle`: some ops beside candle's, by turns, on one thread and on all.
//!
//! candle's column is empty unless `benches/peers/install` has built it.

use std::env;
use std::error::Error;
use std::time::Instant;

use tinyspec::backends::Processor;
use tinyspec::options::{Conv2d, default};
use tinyspec::{DType, Function, Spec, Tensor};
use tinyspec_benches::limits::Machine;

use crate::kernels::{device, tensors};
use crate::peers::candle::Candle;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Samples of each, by turns.
const SAMPLES: usize = 9;
/// A sample takes at least so many seconds.
const SAMPLE: f64 = 0.005;
/// The greatest difference between the sums of both results, by the greater of them and the number of elements.
const TOLERANCE: f64 = 1e-3;

/// An op of both.
struct Op {
    /// candle's program has it under this name.
    name: &'static str,
    inputs: &'static [&'static [usize]],
    ours: fn(&[Tensor]) -> Tensor,
}

const OPS: &[Op] = &[
    Op { name: "gemm", inputs: &[&[256, 256], &[256, 256]], ours: |x| x[0].matmul(&x[1]) },
    Op { name: "gemm", inputs: &[&[512, 512], &[512, 512]], ours: |x| x[0].matmul(&x[1]) },
    Op { name: "gemm", inputs: &[&[1024, 1024], &[1024, 1024]], ours: |x| x[0].matmul(&x[1]) },
    Op { name: "gemm", inputs: &[&[2048, 2048], &[2048, 2048]], ours: |x| x[0].matmul(&x[1]) },
    Op { name: "gemm", inputs: &[&[1, 768], &[768, 3072]], ours: |x| x[0].matmul(&x[1]) },
    Op {
        name: "linear-relu",
        inputs: &[&[128, 768], &[768, 768], &[768]],
        ours: |x| (x[0].matmul(&x[1]) + &x[2]).relu(),
    },
    Op {
        name: "conv-3x3",
        inputs: &[&[8, 64, 56, 56], &[64, 64, 3, 3]],
        ours: |x| x[0].conv2d(&x[1], None, Conv2d { padding: [1, 1], ..default() }),
    },
    Op { name: "softmax", inputs: &[&[4096, 1024]], ours: |x| x[0].softmax(-1) },
    Op {
        name: "layer-norm",
        inputs: &[&[4096, 768], &[768], &[768]],
        ours: |x| x[0].layer_norm(&x[1], &x[2], 1, 1e-5),
    },
    Op { name: "rms-norm", inputs: &[&[4096, 768], &[768]], ours: |x| x[0].rms_norm(&x[1], 1e-5) },
    Op { name: "gelu", inputs: &[&[1024, 1024]], ours: |x| x[0].gelu() },
    Op { name: "add", inputs: &[&[1024, 1024], &[1024, 1024]], ours: |x| &x[0] + &x[1] },
    Op { name: "row-sum", inputs: &[&[4096, 1024]], ours: |x| x[0].sum(-1, false) },
    Op { name: "argmax", inputs: &[&[4096, 1024]], ours: |x| x[0].argmax(-1) },
    Op {
        name: "attention",
        inputs: &[&[8, 512, 64], &[8, 512, 64], &[8, 512, 64]],
        ours: |x| (x[0].matmul(x[1].transpose(1, 2)) * 0.125).softmax(-1).matmul(&x[2]),
    },
];

/// Does the command line ask for it? Words beside `candle` choose ops whose names hold one of them.
pub fn selected() -> bool {
    env::args().skip(1).any(|argument| argument == "candle")
}

/// Prints a line for each op.
///
/// # Errors
/// When an op fails, or both do not compute the same.
pub fn run() -> Result<()> {
    println!("{}", Processor::chosen()?);
    println!("{:<44}{:>12}{:>12}{:>10}", "op", "ours µs", "candle µs", "ratio");
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-') && word != "candle").collect();
    for threads in Machine::new().thread_counts() {
        let (device, mut candle) = (device(threads, false)?, Candle::start(threads)?);
        for op in OPS {
            let shapes: Vec<Vec<usize>> = op.inputs.iter().map(|shape| shape.to_vec()).collect();
            let first = shapes[0].iter().map(usize::to_string).collect::<Vec<_>>().join("x");
            let name = format!("{}/{first}/{threads}t", op.name);
            if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
                continue;
            }
            let (ours, theirs) = times(op, &shapes, &device, candle.as_mut())?;
            match theirs {
                Some(theirs) => {
                    println!("{name:<44}{:>12.1}{:>12.1}{:>10.2}", ours * 1e6, theirs * 1e6, ours / theirs);
                }
                None => println!("{name:<44}{:>12.1}", ours * 1e6),
            }
        }
    }
    Ok(())
}

/// The median seconds of both.
fn times(op: &Op, shapes: &[Vec<usize>], device: &str, mut candle: Option<&mut Candle>) -> Result<(f64, Option<f64>)> {
    let inputs = tensors(shapes, DType::F32, device)?;
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let specs: Vec<Spec> = inputs.iter().map(|input| Spec::of(input)).collect();
    let prepared = Function::trace(&specs, |inputs| vec![(op.ours)(inputs)])?.prepare(&inputs)?;
    let mut outputs = prepared.outputs()?;
    let mut time = |iterations: u64| -> Result<f64> {
        let start = Instant::now();
        for _ in 0..iterations {
            prepared.call(&mut outputs, &inputs)?;
        }
        Ok(start.elapsed().as_secs_f64() / iterations as f64)
    };
    let lasting = |seconds: f64| (SAMPLE / seconds).ceil().max(1.0) as u64;
    time(1)?;
    let own = lasting(time(2)?);
    let first = candle.as_mut().map(|candle| candle.time(op.name, shapes, 2)).transpose()?;
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..SAMPLES {
        ours.push(time(own)?);
        if let (Some(candle), Some((once, _))) = (&mut candle, first) {
            theirs.push(candle.time(op.name, shapes, lasting(once))?.0);
        }
    }
    if let Some((_, there)) = first {
        let values = outputs[0].cast(DType::F32).to_vec::<f32>()?;
        let here: f64 = values.iter().copied().map(f64::from).sum();
        let scale = here.abs().max(there.abs()).max(values.len() as f64);
        if (here - there).abs() > TOLERANCE * scale {
            return Err(format!("{}: the results sum up to {here}, candle's to {there}", op.name).into());
        }
    }
    Ok((median(&mut ours), (!theirs.is_empty()).then(|| median(&mut theirs))))
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
