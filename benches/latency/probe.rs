//! Processes of their own: a first call happens once in each.

use std::process::Command;
use std::time::Instant;
use std::{env, fs, io};

use serde::{Deserialize, Serialize};
use tinyspec::profile;

use super::compiler::Clocked;
use super::programs::Program;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The argument that makes this program a probe.
const ARGUMENT: &str = "--probe";
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

/// What kernels cost once the compiler's own pages are warm, in µs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kernels {
    /// Mean over the kernels, of the stages from Optimize on.
    pub lowering: f64,
    /// Of each kernel, from UOps to the object.
    pub generating: Vec<(String, f64, usize)>,
}

/// The first call, with an object cache in `cache` (`off` for none).
pub fn first(program: Program, cache: &str) -> Result<First> {
    ask("first", program, cache)
}

/// Each kernel, without an object cache.
pub fn kernels(program: Program) -> Result<Kernels> {
    ask("kernels", program, "off")
}

fn ask<T: for<'a> Deserialize<'a>>(what: &str, program: Program, cache: &str) -> Result<T> {
    let output = Command::new(env::current_exe()?)
        .args([ARGUMENT, what, program.name])
        .env("TINYSPEC_CACHE", cache)
        .stderr(std::process::Stdio::inherit())
        .output()?;
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

fn measure_kernels(program: Program) -> Result<Kernels> {
    program.run()?;
    let before = profile::counters();
    let mut all: Vec<Vec<(String, f64, usize)>> = Vec::new();
    for repetition in 0..REPETITIONS {
        let name = format!("cpu:clocked{repetition}");
        let compiler = Clocked::device(&name);
        tinyspec::with_default_device(&name, || program.run())?;
        let mut compiled = compiler.take();
        compiled.sort_by(|a, b| a.name.cmp(&b.name).then(a.code.cmp(&b.code)));
        all.push(compiled.into_iter().map(|c| (c.name, c.took.as_secs_f64() * 1e6, c.code.len())).collect());
    }
    let after = profile::counters();
    let count = all.iter().map(Vec::len).min().unwrap_or(0);
    let generating = (0..count)
        .map(|kernel| {
            let mut times: Vec<f64> = all.iter().map(|repetition| repetition[kernel].1).collect();
            (all[0][kernel].0.clone(), median(&mut times), all[0][kernel].2)
        })
        .collect();
    let lowered = (after.kernels - before.kernels).max(1) as f64;
    Ok(Kernels { lowering: (after.lowering - before.lowering).as_secs_f64() * 1e6 / lowered, generating })
}

/// The middle one; 0 of none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
