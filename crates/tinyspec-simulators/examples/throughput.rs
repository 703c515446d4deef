//! Wave instructions a second: `throughput FILE GROUPS THREADS BYTES…` of PTX or of a code object of AMD's GPUs, sizes by
//! dimension as `2,1,1`, bytes of each buffer.

use std::time::Instant;
use tinyspec_simulators::lanes::launch::Run;
use tinyspec_simulators::{Launch, Simulation, amd, ptx};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, groups, threads, sizes @ ..] = &arguments[..] else {
        return Err("usage: throughput FILE GROUPS THREADS BYTES…".into());
    };
    let dimensions = |text: &str| -> Result<[u32; 3], std::num::ParseIntError> {
        let mut all = [1; 3];
        for (size, text) in all.iter_mut().zip(text.split(',')) {
            *size = text.parse()?;
        }
        Ok(all)
    };
    let code = std::fs::read(file)?;
    let launch = Launch::grid(dimensions(groups)?, dimensions(threads)?);
    if code.starts_with(b"\x7fELF") {
        let module = amd::Module::read(&code)?;
        let name = module.kernels().next().ok_or("the code object has no kernel")?.to_string();
        measure(&module.kernel(&name)?, &launch, sizes)
    } else {
        let module = ptx::Module::parse(std::str::from_utf8(&code)?)?;
        let name = module.kernels().next().ok_or("the module has no kernel")?.to_string();
        measure(&module.kernel(&name)?, &launch, sizes)
    }
}

fn measure(kernel: &impl Run, launch: &Launch, sizes: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let mut simulation = Simulation::new();
    let mut buffers = Vec::new();
    for bytes in sizes {
        buffers.push(simulation.buffer(&vec![0; bytes.parse()?])?);
    }
    let (mut executed, start) = (0, Instant::now());
    while start.elapsed().as_secs_f64() < 1.0 {
        executed += simulation.run(kernel, launch, &buffers)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{}: {:.1} M wave instructions a second", kernel.kernel_name(), executed as f64 / seconds / 1e6);
    Ok(())
}
