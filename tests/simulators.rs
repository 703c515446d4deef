//! GPUs in software, as devices: what they run is the machine code of each kernel.

use std::sync::{Arc, OnceLock};
use tinyspec::backends::Gpu;
use tinyspec::backends::llvm::LlvmCompiler;

/// The names of these devices; behind the `:` stands the GPU.
pub const SIMULATED: [&str; 2] = ["ptxsim:sm_80", "ptxsim:sm_90"];

/// Adds them, once a process.
///
/// # Errors
/// When there is no code generator.
pub fn register() -> Result<(), String> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let all = || {
        for name in SIMULATED {
            let gpu = Gpu::named(name.trim_start_matches("ptxsim:")).map_err(|error| error.to_string())?;
            let compiler = LlvmCompiler::new().map_err(|error| error.to_string())?;
            tinyspec_simulators::register_ptx(name, gpu.target(), Arc::new(compiler));
        }
        Ok(())
    };
    DONE.get_or_init(all).clone()
}
