//! The simulators' throughput in wave instructions per second, with all checks on: of a matrix product and a softmax on one
//! chip of each family, or, with `throughput FILE GROUPS THREADS BYTES…`, of a file of PTX or an AMD code object. Sizes are
//! given per dimension as `2,1,1`, bytes per buffer.

#[path = "../../../tests/recorder.rs"]
mod recorder;

use recorder::Recorder;
use std::sync::Arc;
use std::time::Instant;
use tinyspec::Tensor;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec_simulators::lanes::launch::Run;
use tinyspec_simulators::{Launch, Simulation, amd, ptx};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Rows and columns of the matrices.
const SIDE: i64 = 128;
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

/// Measures the kernels of both programs.
fn programs(chip: &str) -> Outcome {
    let device = format!("recorded/{chip}");
    let recorder = Recorder::register(&device, chip, Arc::new(LlvmCompiler::new()?))?;
    let [x, w] = [(); 2].map(|()| Tensor::zeros([SIDE, SIDE]).to(device.as_str()).contiguous());
    tinyspec::realize_all(&[&x, &w])?;
    for (name, value) in [("product", x.matmul(&w)), ("softmax", x.softmax(-1))] {
        value.realize()?;
        for (code, grid) in recorder.launched() {
            let [groups, threads] = [grid.groups, grid.threads].map(|sizes| sizes.map(|size| size as u32));
            measure(&format!("{chip}, {name}: "), &code, &Launch::grid(groups, threads), &[])?;
        }
    }
    Ok(())
}

/// Measures a kernel on buffers of these sizes; where there are none, each is as large as a matrix of the programs.
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
    let of_matrices = vec![(4 * SIDE * SIDE) as usize; kernel.parameters().len()];
    let sizes = if sizes.is_empty() { &of_matrices } else { sizes };
    let buffers = sizes.iter().map(|&bytes| simulation.zeros(bytes)).collect::<Result<Vec<_>, _>>()?;
    let (mut executed, start) = (0, Instant::now());
    while start.elapsed().as_secs_f64() < 1.0 {
        executed += simulation.run(kernel, launch, &buffers)?;
    }
    let rate = executed as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("{of}{}: {rate:.1} M wave instructions a second", kernel.name());
    Ok(())
}
