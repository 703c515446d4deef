//! Processes of their own: a first call happens once in each.

use std::process::Command;
use std::time::Instant;
use std::{env, fs, io};

use serde::{Deserialize, Serialize};
use tinyspec::profile;

use super::compiler::{Clocked, Compiled};
use super::programs::Program;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The argument that makes this program a probe.
const ARGUMENT: &str = "--probe";
/// The probe that compiles kernels again and again.
const KERNELS: &str = "kernels";
/// Times that every kernel is compiled, after the first.
const REPETITIONS: usize = 5;

/// What the first call of a program in a fresh process cost, in µs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct First {
    /// From tensors to results.
    pub call: f64,
    /// Of that, until plans and kernels were there.
    pub compiling: f64,
    pub kernels: u64,
    /// Over all threads.
    pub lowering: f64,
    pub generating: f64,
    pub loading: f64,
    /// Was libLLVM mapped at the end?
    pub llvm_loaded: bool,
}

/// What a kernel costs once the compiler's own pages are warm, in µs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// As the profile names it.
    pub name: String,
    /// In the stages from Optimize on.
    pub lowering: f64,
    /// From UOps to the object.
    pub generating: f64,
    /// Of the object.
    pub bytes: usize,
}

/// The first call, with an object cache in `cache` (`off` for none).
pub fn first(program: Program, cache: &str) -> Result<First> {
    ask("first", program, cache)
}

/// Each kernel, compiled alone and without an object cache.
pub fn kernels(program: Program) -> Result<Vec<Kernel>> {
    ask(KERNELS, program, "off")
}

fn ask<T: for<'a> Deserialize<'a>>(what: &str, program: Program, cache: &str) -> Result<T> {
    let mut command = Command::new(env::current_exe()?);
    command.args([ARGUMENT, what, program.name]).env("TINYSPEC_CACHE", cache);
    if what == KERNELS {
        // One after the other: what a kernel costs alone, not beside another.
        command.env("RAYON_NUM_THREADS", "1");
    }
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the probe `{what} {}` failed: {}", program.name, output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Is this process a probe? Then it has answered.
pub fn answered() -> Result<bool> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [first, what, name] = &arguments[..] else { return Ok(false) };
    if first != ARGUMENT {
        return Ok(false);
    }
    let program = Program::named(name).ok_or_else(|| format!("no program `{name}`"))?;
    match &**what {
        "first" => serde_json::to_writer(io::stdout(), &measure_first(program)?)?,
        _ => serde_json::to_writer(io::stdout(), &measure_kernels(program)?)?,
    }
    Ok(true)
}

fn measure_first(program: Program) -> Result<First> {
    let start = Instant::now();
    program.run()?;
    let call = start.elapsed();
    let spent = profile::counters();
    let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    Ok(First {
        call: micros(call),
        compiling: micros(spent.compiling),
        kernels: spent.kernels,
        lowering: micros(spent.lowering),
        generating: micros(spent.generating),
        loading: micros(spent.loading),
        llvm_loaded: fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("libLLVM")),
    })
}

fn measure_kernels(program: Program) -> Result<Vec<Kernel>> {
    program.run()?;
    let mut all: Vec<Vec<Kernel>> = Vec::new();
    for repetition in 0..REPETITIONS {
        let name = format!("cpu:clocked{repetition}");
        let compiler = Clocked::device(&name);
        profile::take_lowered();
        tinyspec::with_default_device(&name, || program.run())?;
        let (mut compiled, mut lowered) = (compiler.take(), profile::take_lowered());
        // Those of one name are paired as they came; nothing but their order within a name could tell them apart.
        compiled.sort_by(|a, b| a.name.cmp(&b.name));
        lowered.sort_by(|a, b| a.0.cmp(&b.0));
        let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
        let kernel = |(kernel, (_, lowering)): (Compiled, (_, std::time::Duration))| Kernel {
            lowering: micros(lowering),
            generating: micros(kernel.took),
            bytes: kernel.code.len(),
            name: kernel.name,
        };
        all.push(compiled.into_iter().zip(lowered).map(kernel).collect());
    }
    let count = all.iter().map(Vec::len).min().unwrap_or(0);
    let middle = |kernel: usize, value: fn(&Kernel) -> f64| {
        median(&mut all.iter().map(|repetition| value(&repetition[kernel])).collect::<Vec<_>>())
    };
    let kernel = |index: usize| Kernel {
        lowering: middle(index, |kernel| kernel.lowering),
        generating: middle(index, |kernel| kernel.generating),
        ..all[0][index].clone()
    };
    Ok((0..count).map(kernel).collect())
}

/// The arithmetic mean; 0 of none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The middle one; 0 of none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
