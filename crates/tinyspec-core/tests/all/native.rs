//! The same kernels as machine code, shared by threads; and on the interpreter as a device, which checks every access, and
//! which runs what is lowered for other processors: one of them a kernel in turn, all with `TINYSPEC_SHAPES=all`.

use crate::evaluate::{self, Memory};
use crate::support::{SHAPES, takes_all_shapes};
use std::cell::Cell;
use std::sync::Arc;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_backends::{Compiler, Launch, LinearKernel, Memory as DeviceMemory, Processor, Runtime, Target};

type Device = (Target, Box<dyn Compiler>, Box<dyn Runtime>);

/// Devices that kernels are run on.
pub struct Devices {
    own: Vec<Device>,
    others: Vec<Device>,
    turn: Cell<usize>,
}

impl Devices {
    /// The interpreter, and the CPU where libLLVM is found.
    pub fn new() -> Devices {
        let interpreted =
            |target: Target| -> Device { (target, Box::new(InterpreterCompiler), Box::new(InterpreterRuntime)) };
        let shape = |name: &str| {
            let processor = Processor::named(name.trim_start_matches("interpreter/"));
            interpreted(processor.expect("a known name").target(2))
        };
        let mut devices = Devices {
            own: vec![interpreted(tinyspec_backends::interpreter::target())],
            others: SHAPES.map(shape).into(),
            turn: Cell::new(0),
        };
        devices.add_cpu();
        devices
    }

    #[cfg(feature = "llvm")]
    fn add_cpu(&mut self) {
        use tinyspec_backends::llvm::LlvmCompiler;
        let target = Processor::native().target(2);
        // Small kernels are more than its caches hold, so that stores bypass them.
        let crowded = Target { cache_bytes: [1 << 9, 1 << 10, 1 << 12], ..target.clone() };
        for target in [target, crowded] {
            match LlvmCompiler::new() {
                Ok(compiler) => {
                    let runtime = tinyspec_backends::cpu::CpuRuntime::new(2);
                    self.own.push((target, Box::new(compiler), Box::new(runtime)));
                }
                Err(error) => println!("skipped on the CPU: {error}"),
            }
        }
    }

    #[cfg(not(feature = "llvm"))]
    fn add_cpu(&mut self) {
        println!("skipped on the CPU: built without `llvm`");
    }

    /// The targets of the devices, and how to run a kernel lowered for each.
    pub fn iter(&self) -> impl Iterator<Item = (&Target, impl Fn(&LinearKernel, &mut Memory))> {
        self.iter_in_parts(1.0)
    }

    /// As [`Devices::iter`], in two launches: what stands behind this share of the THREAD Range comes first.
    pub fn iter_in_parts(&self, share: f64) -> impl Iterator<Item = (&Target, impl Fn(&LinearKernel, &mut Memory))> {
        let turn = self.turn.replace(self.turn.get() + 1) % self.others.len();
        let others = if takes_all_shapes() { &self.others[..] } else { &self.others[turn..=turn] };
        self.own.iter().chain(others).map(move |(target, compiler, runtime)| {
            let run = move |kernel: &LinearKernel, memory: &mut Memory| {
                launch(runtime.as_ref(), compiler.as_ref(), target, kernel, memory, share);
            };
            (target, run)
        })
    }
}

/// Runs a kernel over its whole THREAD Range, in up to two launches that meet at `share` of it.
pub fn launch(
    runtime: &dyn Runtime,
    compiler: &dyn Compiler,
    target: &Target,
    kernel: &LinearKernel,
    memory: &mut Memory,
    share: f64,
) {
    let code = compiler.compile(kernel, target).unwrap_or_else(|error| panic!("{error}"));
    let program = runtime.load(&kernel.name, &code).unwrap();
    let memories: Vec<Arc<dyn DeviceMemory>> = memory
        .iter()
        .map(|values| {
            let data = evaluate::bytes(values);
            let memory = runtime.allocate(data.len()).unwrap();
            runtime.write(memory.as_ref(), &data).unwrap();
            memory
        })
        .collect();
    let addresses: Vec<*mut u8> = memories.iter().map(|memory| memory.address()).collect();
    let all = kernel.shared_trips;
    let middle = (all as f64 * share) as usize;
    let mut launches = Vec::new();
    for trips in [middle..all, 0..middle].into_iter().filter(|trips| !trips.is_empty()) {
        launches.push(Launch {
            program: program.clone(),
            buffers: (0..memory.len() as u32).collect(),
            dims: Vec::new(),
            trips,
            grid: kernel.grid,
            scratch_bytes: kernel.scratch_bytes,
            nanoseconds: u64::MAX,
            has_prologue: false,
            line: Default::default(),
        });
    }
    // SAFETY: the memories are as long as the Params say, and live until the end.
    unsafe { runtime.enqueue(&launches.into(), &addresses).unwrap() }
    runtime.synchronize().unwrap();
    for (values, device) in memory.iter_mut().zip(&memories) {
        let Some(dtype) = values.first().map(|value| value.dtype) else { continue };
        let mut data = vec![0; device.len()];
        runtime.read(device.as_ref(), &mut data).unwrap();
        *values = evaluate::values(dtype, &data);
    }
}
