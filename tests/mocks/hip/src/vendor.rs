//! What is AMD's own: numbers, names, and which objects the runtime takes.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use tinyspec_mock_machine::{Kernel, Machine, Outcome, Refusal, Settings, Vendor, Word, say};
use tinyspec_simulators::amd::Module;

pub(crate) static VENDOR: Vendor = Vendor {
    variable: "MOCK_HIP",
    settings: || Settings::new("gfx942", 60_300_000, 5),
    words: WORDS,
    has_contexts: false,
    most_groups: [u32::MAX; 3],
};

/// The runtime of this process.
pub(crate) fn machine() -> MutexGuard<'static, Machine> {
    static MACHINE: LazyLock<Mutex<Machine>> = LazyLock::new(|| Mutex::new(Machine::new(&VENDOR)));
    Machine::lock(&MACHINE)
}

/// Numbers and names of `hip_runtime_api.h`.
const WORDS: &[Word] = &[
    (Refusal::Value, 1, c"hipErrorInvalidValue", c"invalid argument"),
    (Refusal::Memory, 2, c"hipErrorOutOfMemory", c"out of memory"),
    (Refusal::NotInitialised, 3, c"hipErrorNotInitialized", c"initialization error"),
    (Refusal::NoDevice, 100, c"hipErrorNoDevice", c"no ROCm-capable device is detected"),
    (Refusal::Device, 101, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    (Refusal::Image, 200, c"hipErrorInvalidImage", c"device kernel image is invalid"),
    (Refusal::Context, 201, c"hipErrorInvalidContext", c"invalid device context"),
    (Refusal::OtherChip, 209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
    (Refusal::Broken, 214, c"hipErrorECCNotCorrectable", c"uncorrectable ECC error encountered"),
    (Refusal::Handle, 400, c"hipErrorInvalidHandle", c"invalid resource handle"),
    (Refusal::NotFound, 500, c"hipErrorNotFound", c"named symbol not found"),
    (Refusal::NotReady, 600, c"hipErrorNotReady", c"device not ready"),
    (Refusal::Address, 700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
    (Refusal::Resources, 701, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch"),
    (Refusal::Endless, 702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated"),
    // There is no number for addresses that are not aligned.
    (Refusal::Misaligned, 719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    (Refusal::Failed, 719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
];

/// The kernels of a code object.
pub(crate) fn read(object: &[u8], settings: &Settings) -> Outcome<Vec<Kernel>> {
    let foreign = |error| {
        say(&error);
        Refusal::Image
    };
    let module = Module::read(object).map_err(foreign)?;
    if module.target() != settings.chip {
        return Err(Refusal::OtherChip);
    }
    let kernels = module.kernels().map(|name| Ok(Arc::new(module.kernel(name)?) as Kernel));
    kernels.collect::<Result<_, _>>().map_err(foreign)
}
