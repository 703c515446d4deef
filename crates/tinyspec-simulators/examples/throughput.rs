//! Warp instructions a second: `throughput FILE.ptx GROUPS THREADS BYTES…`, sizes by dimension as `2,1,1`, bytes of each buffer.

use std::time::Instant;
use tinyspec_simulators::{Launch, Simulation, ptx::Module};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, groups, threads, sizes @ ..] = &arguments[..] else {
        return Err("usage: throughput FILE.ptx GROUPS THREADS BYTES…".into());
    };
    let dimensions = |text: &str| -> Result<[u32; 3], std::num::ParseIntError> {
        let mut all = [1; 3];
        for (size, text) in all.iter_mut().zip(text.split(',')) {
            *size = text.parse()?;
        }
        Ok(all)
    };
    let module = Module::parse(&std::fs::read_to_string(file)?)?;
    let name = module.kernels().next().ok_or("the module has no kernel")?.to_string();
    let kernel = module.kernel(&name)?;
    let mut simulation = Simulation::new();
    let mut buffers = Vec::new();
    for bytes in sizes {
        buffers.push(simulation.buffer(&vec![0; bytes.parse()?])?);
    }
    let launch = Launch::grid(dimensions(groups)?, dimensions(threads)?);
    let (mut executed, start) = (0, Instant::now());
    while start.elapsed().as_secs_f64() < 1.0 {
        executed += simulation.run(&kernel, &launch, &buffers)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: {:.1} M warp instructions a second", executed as f64 / seconds / 1e6);
    Ok(())
}
