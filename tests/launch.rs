//! Linear kernels, run on arrays.

use std::sync::Arc;
use tinyspec::Device;
use tinyspec::backends::interpreter::array::Array;
use tinyspec::backends::{BackendError, Grid, Launch, LinearKernel, Memory, Program};

/// What is lowered for processors of other shapes than this machine, on the interpreter and in this machine's instructions.
pub const SHAPES: [&str; 5] = [
    "interpreter/x86-64-v3",
    "interpreter/x86-64-v4",
    "interpreter/neoverse-v2",
    "native/x86-64-v4",
    "native/neoverse-v2",
];

/// Are they all tried where some would do?
pub fn takes_all_shapes() -> bool {
    std::env::var("TINYSPEC_SHAPES").is_ok_and(|text| text == "all")
}

/// Runs a kernel whatever target it was lowered for: the interpreters have every op.
pub fn run(kernel: &LinearKernel, arrays: &[Array]) -> Result<Vec<Array>, String> {
    let name = if kernel.grid == Grid::default() { "interpreter" } else { "simt" };
    let device = tinyspec::device(name).map_err(|error| error.to_string())?;
    Loaded::new(&device, kernel)?.run(arrays)
}

/// A kernel on a device.
pub struct Loaded<'a> {
    device: &'a Device,
    kernel: &'a LinearKernel,
    program: Arc<dyn Program>,
}

fn text(error: BackendError) -> String {
    error.to_string()
}

impl<'a> Loaded<'a> {
    /// Compiled for the device, which it was lowered for.
    pub fn new(device: &'a Device, kernel: &'a LinearKernel) -> Result<Loaded<'a>, String> {
        let code = device.compiler().compile(kernel, device.target()).map_err(text)?;
        let program = device.runtime().load(&kernel.name, &code).map_err(text)?;
        Ok(Loaded { device, kernel, program })
    }

    /// Runs it over its whole THREAD Range: what it makes of its buffers.
    pub fn run(&self, arrays: &[Array]) -> Result<Vec<Array>, String> {
        let (runtime, kernel) = (self.device.runtime(), self.kernel);
        let mut memories: Vec<Arc<dyn Memory>> = Vec::new();
        for array in arrays {
            let data = array.to_bytes();
            let memory = runtime.allocate(data.len()).map_err(text)?;
            runtime.write(memory.as_ref(), &data).map_err(text)?;
            memories.push(memory);
        }
        if memories.len() < kernel.params {
            return Err("a buffer is missing".into());
        }
        let addresses: Vec<*mut u8> = memories.iter().map(|memory| memory.address()).collect();
        // They are the last array too.
        let dims = match kernel.dims() {
            0 => Vec::new(),
            count => arrays[kernel.params - 1].lanes().iter().take(count).map(|&lane| lane as i64).collect(),
        };
        let launch = Launch {
            program: self.program.clone(),
            buffers: (0..kernel.params as u32).collect(),
            dims,
            trips: 0..kernel.shared_trips,
            grid: kernel.grid,
            scratch_bytes: kernel.scratch_bytes,
            nanoseconds: u64::MAX,
            has_prologue: false,
            line: Default::default(),
        };
        // SAFETY: the memories are as long as the kernel's Params say, and live until the end.
        unsafe { runtime.enqueue(&vec![launch].into(), &addresses).map_err(text)? }
        runtime.synchronize().map_err(text)?;
        let mut after = Vec::new();
        for (array, device) in arrays.iter().zip(&memories) {
            let mut data = array.to_bytes();
            runtime.read(device.as_ref(), &mut data).map_err(text)?;
            after.push(Array::from_bytes(array.dtype(), array.shape(), &data).map_err(|error| error.to_string())?);
        }
        Ok(after)
    }
}
