//! What is NVIDIA's own: numbers, names, and which PTX a driver takes.

use cudarc::driver::sys::CUresult;
use object::{Object as _, ObjectSection as _};
use std::ffi::c_int;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use tinyspec_mock_machine::{Kernel, Machine, Refusal, Settings, Vendor, Word};
use tinyspec_simulators::SimulatorError;
use tinyspec_simulators::ptx::Module;

pub(crate) static VENDOR: Vendor = Vendor {
    variable: "MOCK_CUDA",
    settings: || Settings::new("sm_80", 13_000, 90),
    words: WORDS,
    has_contexts: true,
    most_groups: [i32::MAX as u32, 65_535, 65_535],
};

/// The driver of this process.
pub(crate) fn machine() -> MutexGuard<'static, Machine> {
    static MACHINE: LazyLock<Mutex<Machine>> = LazyLock::new(|| Mutex::new(Machine::new(&VENDOR)));
    Machine::lock(&MACHINE)
}

macro_rules! words {
    ($($refusal:ident $result:ident $text:literal;)*) => {
        const WORDS: &[Word] = &[$((
            Refusal::$refusal,
            CUresult::$result as c_int,
            // SAFETY: the name of a result has no zero in it but its last byte.
            unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($result), "\0").as_bytes()) },
            $text,
        )),*];
    };
}

words! {
    Value CUDA_ERROR_INVALID_VALUE c"invalid argument";
    Memory CUDA_ERROR_OUT_OF_MEMORY c"out of memory";
    NotInitialised CUDA_ERROR_NOT_INITIALIZED c"initialization error";
    NoDevice CUDA_ERROR_NO_DEVICE c"no device is detected";
    Device CUDA_ERROR_INVALID_DEVICE c"invalid device ordinal";
    Image CUDA_ERROR_INVALID_PTX c"the PTX cannot be compiled";
    Newer CUDA_ERROR_UNSUPPORTED_PTX_VERSION c"the PTX is too new";
    OtherChip CUDA_ERROR_NO_BINARY_FOR_GPU c"no code for this device";
    Context CUDA_ERROR_INVALID_CONTEXT c"invalid device context";
    Handle CUDA_ERROR_INVALID_HANDLE c"invalid resource handle";
    NotFound CUDA_ERROR_NOT_FOUND c"named symbol not found";
    NotReady CUDA_ERROR_NOT_READY c"device not ready";
    Address CUDA_ERROR_ILLEGAL_ADDRESS c"an illegal memory access";
    Misaligned CUDA_ERROR_MISALIGNED_ADDRESS c"misaligned address";
    Resources CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES c"too many resources";
    Endless CUDA_ERROR_LAUNCH_TIMEOUT c"the launch timed out";
    Failed CUDA_ERROR_LAUNCH_FAILED c"the launch failed";
    Broken CUDA_ERROR_ECC_UNCORRECTABLE c"uncorrectable memory error";
}

/// The section in which a cubin has its text, as that of a fake assembler has: the machine code of no GPU of NVIDIA's is simulated.
const TEXT: &str = ".tinyspec.ptx";

/// The PTX of a cubin.
pub(crate) fn text_of_cubin(cubin: &[u8]) -> Result<String, (Refusal, String)> {
    let damaged = |error: object::Error| (Refusal::Image, error.to_string());
    let file = object::File::parse(cubin).map_err(damaged)?;
    let section = file.section_by_name(TEXT).ok_or_else(|| (Refusal::Image, "it is not of a fake assembler".into()))?;
    Ok(String::from_utf8_lossy(section.data().map_err(damaged)?).into_owned())
}

/// The number of a chip, such as 80 of `sm_80`.
pub(crate) fn capability(chip: &str) -> i32 {
    chip.trim_start_matches("sm_").trim_end_matches('a').parse().unwrap_or(i32::MAX)
}

/// The kernels of a module, and why it is refused, in words for its log.
pub(crate) fn read(text: &str, settings: &Settings) -> Result<Vec<Kernel>, (Refusal, String)> {
    let foreign = |error: SimulatorError| (Refusal::Image, error.to_string());
    let module = Module::parse(text).map_err(foreign)?;
    let kernels = module.kernels().map(|name| Ok(Arc::new(module.kernel(name)?) as Kernel));
    let kernels = kernels.collect::<Result<_, _>>().map_err(foreign)?;
    let (major, minor) = module.version();
    if 10 * major + minor > settings.format {
        return Err((Refusal::Newer, format!("version {major}.{minor} of PTX is newer than {}", settings.format)));
    }
    let (target, own) = (capability(module.target()), capability(&settings.chip));
    if target > own || module.target().ends_with('a') && target != own {
        return Err((Refusal::OtherChip, format!("{} is not sm_{own}", module.target())));
    }
    Ok(kernels)
}
