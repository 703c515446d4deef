//! GPUs in software: the PTX of each kernel, executed instruction by instruction.

use std::sync::Arc;
use tinyspec::backends::Gpu;
use tinyspec::backends::llvm::LlvmCompiler;

/// The names of these devices; behind the `:` stands the GPU.
pub const SIMULATED: [&str; 2] = ["ptxsim:sm_80", "ptxsim:sm_90"];

/// Adds them.
pub fn register() -> Result<(), Box<dyn std::error::Error>> {
    for name in SIMULATED {
        let gpu = Gpu::named(name.trim_start_matches("ptxsim:"))?;
        tinyspec_simulators::register_ptx(name, gpu.target(), Arc::new(LlvmCompiler::new()?));
    }
    Ok(())
}
