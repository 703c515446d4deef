//! The simulators' throughput in wave instructions per second, with all checks on: of a matrix product and a softmax on one
//! chip of each family, or, with `throughput FILE GROUPS THREADS BYTES…`, of a file of PTX or an AMD code object. Sizes are
//! given per dimension as `2,1,1`, bytes per buffer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_backends::{BackendError, Gpu, Grid, Program, Runtime};
use tinyspec_core::Tensor;
use tinyspec_core::execute::register;
use tinyspec_simulators::lanes::launch::Run;
use tinyspec_simulators::{Launch, Simulation, amd, ptx};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const CHIPS: [&str; 4] = ["sm_80", "gfx942", "gfx1100", "gfx1201"];

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => CHIPS.into_iter().try_for_each(programs),
        [file, groups, threads, sizes @ ..] => {
            let launch = Launch::grid(dimensions(groups)?, dimensions(threads)?);
            let sizes = sizes.iter().map(|bytes| bytes.parse()).collect::<Result<Vec<usize>, _>>()?;
            measure("", &std::fs::read(file)?, &launch, &sizes)
        }
        _ => Err("usage: throughput [FILE GROUPS THREADS BYTES…]".into()),
    }
}

fn dimensions(text: &str) -> Outcome<[u32; 3]> {
    let mut all = [1; 3];
    for (size, text) in all.iter_mut().zip(text.split(',')) {
        *size = text.parse()?;
    }
    Ok(all)
}

/// The programs that are measured, from the matrices `x` and `w`.
fn programs(chip: &str) -> Outcome {
    let recorder = Recorder::default();
    register(chip, Gpu::named(chip)?.target(), Arc::new(LlvmCompiler::new()?), Arc::new(recorder.clone()));
    let matrix = |rows: i64, columns: i64| Tensor::zeros([rows, columns]).to(chip).contiguous();
    let (x, w) = (matrix(128, 128), matrix(128, 128));
    tinyspec_core::realize_all(&[&x, &w])?;
    for (name, value) in [("product", x.matmul(&w)), ("softmax", x.softmax(-1))] {
        recorder.take();
        value.realize()?;
        for Made { code, grid, sizes } in recorder.take() {
            let sizes_of = |sizes: [usize; 3]| sizes.map(|size| size as u32);
            let launch = Launch::grid(sizes_of(grid.groups), sizes_of(grid.threads));
            measure(&format!("{chip}, {name}: "), &code, &launch, &sizes)?;
        }
    }
    Ok(())
}

/// A launch as a device is given it.
struct Made {
    code: Vec<u8>,
    grid: Grid,
    sizes: Vec<usize>,
}

/// Remembers launches, and runs nothing.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Made>>>);

struct Code(Vec<u8>);

impl Program for Code {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Recorder {
    fn take(&self) -> Vec<Made> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// SAFETY: it keeps the trait's own allocation methods, and runs no kernel that could access memory.
unsafe impl Runtime for Recorder {
    fn load(&self, _: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        Ok(Arc::new(Code(code.to_vec())))
    }

    unsafe fn enqueue(&self, launches: &[tinyspec_backends::Launch], _: &[*mut u8]) -> Result<(), BackendError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for launch in launches {
            let Some(Code(code)) = launch.program.as_any().downcast_ref() else { continue };
            // Every buffer of these programs is a matrix of this size, or less.
            let sizes = vec![128 * 128 * 4; launch.buffers.len()];
            all.push(Made { code: code.clone(), grid: launch.grid, sizes });
        }
        Ok(())
    }
}

fn measure(of: &str, code: &[u8], launch: &Launch, sizes: &[usize]) -> Outcome {
    if code.starts_with(b"\x7fELF") {
        let module = amd::Module::read(code)?;
        let name = module.kernels().next().ok_or("the code object has no kernel")?.to_string();
        run(of, &module.kernel(&name)?, launch, sizes)
    } else {
        let module = ptx::Module::parse(std::str::from_utf8(code)?)?;
        let name = module.kernels().next().ok_or("the module has no kernel")?.to_string();
        run(of, &module.kernel(&name)?, launch, sizes)
    }
}

fn run(of: &str, kernel: &impl Run, launch: &Launch, sizes: &[usize]) -> Outcome {
    let mut simulation = Simulation::new();
    let buffers = sizes.iter().map(|&bytes| simulation.zeros(bytes)).collect::<Result<Vec<_>, _>>()?;
    let (mut executed, start) = (0, Instant::now());
    while start.elapsed().as_secs_f64() < 1.0 {
        executed += simulation.run(kernel, launch, &buffers)?;
    }
    let rate = executed as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("{of}{}: {rate:.1} M wave instructions a second", kernel.name());
    Ok(())
}
