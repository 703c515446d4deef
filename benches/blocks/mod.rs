//! `cargo bench -- blocks`: blocks of real models, each beside its limit and beside PyTorch eager on the same core, with the same
//! instruction set; `cargo bench -- blocks/attention` runs one family.
//!
//! PyTorch's column is empty unless `benches/peers/install` has made its environment, or `TINYSPEC_PEERS` names one.

pub mod block;
pub mod families;
pub mod rows;
pub mod traced;

use std::env;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tinyspec::backends::Processor;
use tinyspec::backends::cpu::CpuRuntime;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::{DType, Function, Spec, Tensor, grad, profile};
use tinyspec_benches::limits::{LARGE, Limit, Machine, ROW, Resource, Words};

use crate::models;
use crate::peers::torch::{Array, Torch};
use block::{Block, Input, Memory, Unit, Work};
use rows::Row;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// A sample takes at least so long.
const SAMPLE: Duration = Duration::from_millis(5);
/// Samples of a row, by turns with those of PyTorch and of the limits; fewer where they take long.
const SAMPLES: usize = 9;
/// All samples of a program take about so long at most, but there are three.
const LONGEST: Duration = Duration::from_millis(1500);
/// Where values are wrong: the greatest difference from PyTorch's, by the greatest value; four times as much for bf16.
const TOLERANCE: f32 = 2e-3;

/// Does the command line ask for it?
pub fn selected() -> bool {
    env::args().skip(1).any(|argument| PARTS.iter().any(|part| argument.starts_with(part)))
}

/// What stands before the names of blocks, and of models.
const PARTS: [&str; 2] = ["blocks", "models"];

/// Runs the blocks and models that the command line selects, prints a line for each, and keeps them in [`rows::FILE_NAME`].
///
/// # Errors
/// When a value is wrong, a block fails, or the rows cannot be written.
pub fn run() -> Result<()> {
    // First calls compile: nothing may be on disk already.
    if env::var_os("TINYSPEC_CACHE").is_none_or(|cache| cache != "off") {
        let status =
            Command::new(env::current_exe()?).args(env::args().skip(1)).env("TINYSPEC_CACHE", "off").status()?;
        return if status.success() { Ok(()) } else { Err("some blocks failed".into()) };
    }
    println!("{}", rows::HEADING);
    let mut rows = Vec::new();
    let counts = Machine::new().thread_counts();
    for (part, blocks, counts) in [("blocks", families::all(), &counts[..1]), ("models", models::all(), &counts)] {
        for &threads in counts {
            let mut bench = None;
            for block in &blocks {
                for train in [false, true] {
                    let step = if train { "/train" } else { "" };
                    let name = format!("{part}/{}{step}/{threads}t", block.name);
                    if (train && block.train.is_empty()) || !crate::session::selects(&name) {
                        continue;
                    }
                    if bench.is_none() {
                        bench = Some(Bench::new(threads)?);
                    }
                    let Some(bench) = &mut bench else { continue };
                    let outcome = catch_unwind(AssertUnwindSafe(|| bench.row(&name, block, train)));
                    let row = match outcome {
                        Ok(Ok(row)) => row,
                        Ok(Err(error)) => Row::failed(&name, &error.to_string()),
                        Err(_) => Row::failed(&name, "panicked"),
                    };
                    println!("{row}");
                    rows.push(row);
                }
            }
        }
    }
    let is_right = rows.iter().all(|row| row.failure.is_none());
    println!("\n{}", rows::summary(&rows));
    rows::keep(rows)?;
    if is_right { Ok(()) } else { Err("some blocks failed".into()) }
}

struct Bench {
    machine: Machine,
    torch: Option<Torch>,
    threads: usize,
    devices: usize,
}

impl Bench {
    fn new(threads: usize) -> Result<Self> {
        let processor = Processor::chosen()?;
        println!("{processor}");
        let torch = Torch::start(threads, processor.target(threads).vector_bytes)?;
        Ok(Self { machine: Machine::new(), torch, threads, devices: 0 })
    }

    /// A device for which no kernel was compiled yet.
    fn device(&mut self) -> Result<String> {
        self.devices += 1;
        let name = format!("cpu:blocks{}", self.devices);
        let target = Processor::chosen()?.target(self.threads);
        let runtime = CpuRuntime::of(&target);
        tinyspec::register(&name, target, Arc::new(LlvmCompiler::new()?), Arc::new(runtime));
        Ok(name)
    }

    fn row(&mut self, name: &str, block: &Block, train: bool) -> Result<Row> {
        let device = self.device()?;
        let seeds = 1..;
        let mut arrays: Vec<Array> =
            block.inputs.iter().zip(seeds).map(|((name, input), seed)| array(name, input, seed)).collect();
        let mut inputs = arrays
            .iter()
            .zip(&block.inputs)
            .map(|(array, (_, input))| tensor(array, input.dtype, &device))
            .collect::<Result<Vec<_>>>()?;
        let mut cotangent = None;
        if train {
            let specs: Vec<Spec> = inputs.iter().map(Spec::of).collect();
            let mut result = None;
            Function::trace(&specs, |inputs| {
                let outputs = (block.ours)(inputs);
                result = outputs.first().map(|output| (output.sizes(), output.dtype()));
                outputs
            })?;
            let (shape, dtype) = result.ok_or("a block has an output")?;
            let slope = Input { fill: block::Fill::Normal(1.0), dtype, shape: shape? };
            let slope = array("cotangent", &slope, 77);
            inputs.push(tensor(&slope, DType::F32, &device)?);
            cotangent = Some(slope);
        }
        let inputs: Vec<&Tensor> = inputs.iter().collect();

        let kernels = profile::counters().kernels;
        let start = Instant::now();
        let specs: Vec<Spec> = inputs.iter().map(|input| Spec::of(input)).collect();
        let mut failure = None;
        let function = Function::trace(&specs, |inputs| {
            if !train {
                return (block.ours)(inputs);
            }
            step(block, inputs).unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let prepared = function?.prepare(&inputs)?;
        let mut outputs = prepared.outputs()?;
        prepared.call(&mut outputs, &inputs)?;
        let first = start.elapsed().as_secs_f64();
        let kernels = profile::counters().kernels - kernels;

        let mut refused = None;
        let mut error = None;
        let mut peer = self.torch.take().filter(|_| !block.torch.is_empty());
        if let Some(torch) = &mut peer {
            arrays.iter_mut().zip(&block.inputs).for_each(|(array, (_, input))| array.dtype = torch_dtype(input.dtype));
            let wanted = if train { block.train } else { &[] };
            match torch.load(&arrays, block.torch, wanted, cotangent.as_ref()) {
                Ok(expected) => error = Some(difference(&outputs, &expected)?),
                Err(error) => refused = Some(error.to_string()),
            }
        }
        drop(arrays);

        let work: Vec<Work> = block.work.iter().map(|work| if train { work.with_gradient() } else { *work }).collect();
        let mut run = || prepared.call(&mut outputs, &inputs);
        let times = self.times(&mut run, peer.as_mut().filter(|_| refused.is_none()), &work);
        self.torch = peer.or(self.torch.take());
        let (ours, torch, limit) = times?;
        let is_narrow = outputs.iter().any(|output| output.dtype() == DType::BF16);
        let tolerance = if is_narrow { 4.0 * TOLERANCE } else { TOLERANCE };
        let wrong = error.filter(|error| error.is_nan() || *error > tolerance);
        let failure = refused.or(wrong.map(|error| format!("differs from PyTorch by {error:.1e}")));
        Ok(Row { name: name.into(), ours, torch, limit, first, kernels, error, failure })
    }

    /// Seconds of an iteration: ours, PyTorch's, and the limit; the three by turns, as the clock and the memory of a machine move.
    fn times(
        &mut self,
        run: &mut dyn FnMut() -> tinyspec::Result<()>,
        mut torch: Option<&mut Torch>,
        work: &[Work],
    ) -> Result<(f64, Option<f64>, f64)> {
        let mut warm = |iterations: u64| -> Result<f64> {
            run()?;
            let start = Instant::now();
            for _ in 0..iterations {
                run()?;
            }
            Ok(start.elapsed().as_secs_f64() / iterations as f64)
        };
        let iterations = |seconds: f64| (SAMPLE.as_secs_f64() / seconds).ceil().max(1.0) as u64;
        let once = warm(1)?;
        let own = iterations(if once < 1e-3 { warm(4)? } else { once });
        let once_there = torch.as_mut().map(|torch| torch.time(2)).transpose()?;
        let theirs = iterations(once_there.unwrap_or(1.0));
        let longest = once.max(once_there.unwrap_or(0.0));
        let samples = ((LONGEST.as_secs_f64() / longest) as usize).clamp(3, SAMPLES);
        let threads = self.threads;
        let limits_of = |work: &Work| [arithmetic(work, threads), vec![memory(work, threads)]].concat();
        let mut limits: Vec<Limit> = work.iter().flat_map(limits_of).collect();
        limits.sort();
        limits.dedup();
        let turns: Vec<u64> = limits.iter().map(|&limit| self.machine.iterations(limit, SAMPLE / 2)).collect();
        let (mut ours, mut peer, mut rates) = (Vec::new(), Vec::new(), vec![Vec::new(); limits.len()]);
        for _ in 0..samples {
            ours.push(warm(own)?);
            if let Some(torch) = &mut torch {
                peer.push(torch.time(theirs)?);
            }
            for ((limit, turns), rates) in limits.iter().zip(&turns).zip(&mut rates) {
                self.machine.time(*limit, 1);
                rates.push(self.machine.seconds(*limit, *turns));
            }
        }
        for (limit, seconds) in limits.iter().zip(&mut rates) {
            self.machine.keep(*limit, limit.measure().value(median(seconds)));
        }
        let mut least = |work: &Work| {
            let rates = arithmetic(work, threads).into_iter().map(|limit| self.machine.rate(limit));
            let computed = work.flops / rates.fold(0.0, f64::max);
            work.count * computed.max(work.bytes / self.machine.rate(memory(work, threads))) * 1e-9
        };
        let limit = work.iter().map(&mut least).sum();
        Ok((median(&mut ours), (!peer.is_empty()).then(|| median(&mut peer)), limit))
    }
}

/// The rates of arithmetic that a contraction may go at, of which the best counts.
fn arithmetic(work: &Work, threads: usize) -> Vec<Limit> {
    let words = match work.unit {
        Unit::F32 => None,
        Unit::Bf16 => Some(Words::Bf16),
        Unit::I8 => Some(Words::Bytes),
    };
    let words = words.filter(|words| words.are_there()).map(Resource::Words);
    words.into_iter().chain([Resource::Fma]).map(|resource| Limit { resource, threads }).collect()
}

/// The rate that memory has for as many bytes.
fn memory(work: &Work, threads: usize) -> Limit {
    // More than this the machine is asked for only by whole models.
    let most = if work.walk > 0.0 { 4 * LARGE } else { LARGE };
    let elements = |size: f64| ((work.bytes.max(work.walk) / size) as usize).next_power_of_two().clamp(1 << 10, most);
    let resource = match work.memory {
        Memory::Copy => Resource::Copy(elements(8.0)),
        Memory::Read => Resource::Read(elements(4.0)),
        Memory::Rows => Resource::Rows((work.bytes / 8.0) as usize / ROW),
    };
    Limit { resource, threads }
}

/// The first output and the gradients of the inputs that the block names, by the last input.
fn step(block: &Block, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let (cotangent, inputs) = inputs.split_last().ok_or("a training step has a cotangent")?;
    let output = (block.ours)(inputs).swap_remove(0);
    let loss = (&output * cotangent).sum(.., false);
    let wanted: Vec<&Tensor> = block
        .inputs
        .iter()
        .zip(inputs)
        .filter(|((name, _), _)| block.train.contains(&name.as_str()))
        .map(|(_, tensor)| tensor)
        .collect();
    let gradients = grad(&loss, &wanted)?;
    Ok(std::iter::once(output).chain(gradients).collect())
}

fn array(name: &str, input: &Input, seed: u64) -> Array {
    Array { name: name.into(), dtype: "float32", shape: input.shape.clone(), values: input.values(seed) }
}

fn tensor(array: &Array, dtype: DType, device: &str) -> Result<Tensor> {
    let tensor = Tensor::from_slice(&array.values, array.shape.as_slice()).cast(dtype).to(device);
    tensor.realize()?;
    Ok(tensor)
}

/// Positions are i64 there.
fn torch_dtype(dtype: DType) -> &'static str {
    match dtype {
        DType::I32 => "int64",
        DType::Bool => "bool",
        DType::BF16 => "bfloat16",
        DType::F16 => "float16",
        DType::I8 => "int8",
        DType::U8 => "uint8",
        DType::F64 => "float64",
        _ => "float32",
    }
}

/// The greatest difference of two values, by the greatest value of their tensor.
fn difference(outputs: &[Tensor], expected: &[Vec<f32>]) -> Result<f32> {
    if outputs.len() != expected.len() {
        return Err(format!("{} outputs, PyTorch has {}", outputs.len(), expected.len()).into());
    }
    let mut worst = 0.0_f32;
    for (number, (output, expected)) in outputs.iter().zip(expected).enumerate() {
        let values: Vec<f32> = output.cast(DType::F32).to_vec()?;
        if values.len() != expected.len() {
            return Err(format!("output {number} has {} elements, PyTorch's {}", values.len(), expected.len()).into());
        }
        let scale = expected.iter().fold(1e-30_f32, |scale, value| scale.max(value.abs()));
        for (value, expected) in values.iter().zip(expected) {
            let difference = (value - expected).abs() / scale;
            if value.to_bits() != expected.to_bits()
                && (difference > worst || difference.is_nan())
                && !(value.is_nan() && expected.is_nan())
            {
                worst = difference;
            }
            if worst.is_nan() {
                return Ok(worst);
            }
        }
    }
    Ok(worst)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
