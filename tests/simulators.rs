//! GPUs in software, as devices: what they run is the machine code of each kernel.

use std::sync::{Arc, OnceLock};
use tinyspec::backends::Gpu;
use tinyspec::backends::llvm::LlvmCompiler;

/// The names of these devices; behind the `:` stands the GPU.
pub const SIMULATED: [&str; 5] = ["ptxsim:sm_80", "ptxsim:sm_90", "amdsim:gfx942", "amdsim:gfx1100", "amdsim:gfx1201"];

/// Others, which run where `TINYSPEC_DEVICES` names them.
const MORE: [&str; 11] = [
    "ptxsim:sm_75",
    "ptxsim:sm_100",
    "ptxsim:sm_120",
    "amdsim:gfx90a",
    "amdsim:gfx950",
    "amdsim:gfx1101",
    "amdsim:gfx1102",
    "amdsim:gfx1103",
    "amdsim:gfx1150",
    "amdsim:gfx1151",
    "amdsim:gfx1200",
];

/// Adds them, once a process.
///
/// # Errors
/// When there is no code generator.
pub fn register() -> Result<(), String> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| SIMULATED.into_iter().chain(MORE).try_for_each(add)).clone()
}

fn add(name: &'static str) -> Result<(), String> {
    let (simulator, gpu) = name.split_once(':').ok_or("no GPU in the name")?;
    let gpu = Gpu::named(gpu).map_err(|error| error.to_string())?;
    let compiler = Arc::new(LlvmCompiler::new().map_err(|error| error.to_string())?.located());
    match simulator {
        "ptxsim" => tinyspec_simulators::register_ptx(name, &gpu, compiler),
        _ => tinyspec_simulators::register_amd(name, &gpu, compiler),
    };
    Ok(())
}
