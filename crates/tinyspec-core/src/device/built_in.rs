//! The built-in devices: the CPU by machine code, the interpreter, an interpreter of a GPU, GPUs behind a driver, and
//! chips that code is generated for but need not be present.

use super::Device;
use crate::Result;
use std::sync::Arc;
#[cfg(any(feature = "cuda", feature = "amdgpu"))]
use tinyspec_backends::{BackendError, Compiler, Runtime, gpu::DriverError};
use tinyspec_backends::{Gpu, Processor, Target, interpreter, settings};

/// How a device is opened.
type Open = fn(&str) -> Result<Device>;

/// Devices by name; the first is the default one.
pub(super) const DEVICES: &[(&str, Open)] = &[
    #[cfg(feature = "llvm")]
    ("cpu", cpu_device),
    ("interpreter", interpreter_device),
    ("simt", simt_device),
];

/// Kinds of devices of which a machine may have any number: `cuda` is the first of its kind, `cuda:1` the second.
const COUNTED: &[(&str, Open)] = &[
    #[cfg(feature = "cuda")]
    ("cuda", cuda_device),
    #[cfg(feature = "amdgpu")]
    ("amd", amd_device),
];

/// The names of all devices, and of the first one of each counted kind.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    DEVICES.iter().chain(COUNTED).map(|(name, _)| *name)
}

/// A list, in words, of the names of chips that code is generated for.
#[cfg(feature = "llvm")]
pub(super) fn chips() -> String {
    let list = |names: &mut dyn Iterator<Item = &'static str>| names.collect::<Vec<_>>().join(", ");
    format!("; the processors {}; the GPUs {}", list(&mut Processor::names()), list(&mut Gpu::names()))
}

#[cfg(not(feature = "llvm"))]
pub(super) fn chips() -> String {
    String::new()
}

/// How the device of this name is opened, and the kind of device whose kernels it runs. A name is one of these:
///
/// * [`DEVICES`] or [`COUNTED`];
/// * a processor, such as `znver4`; `interpreter/znver4`, which interprets what is lowered for it; and `native/znver4`, which
///   runs that in the host's instructions;
/// * a GPU that need not be present, such as `sm_80`, and `simt/sm_80`, which interprets what is lowered for it;
/// * a virtual device next to one of these, such as `cpu:1`, with memory of its own.
pub(super) fn find(name: &str) -> Option<(&str, Open)> {
    let kind = kind_of(name);
    if name.strip_prefix(kind)?.strip_prefix(':').is_some_and(|number| number.parse::<u16>().is_err()) {
        return None;
    }
    if let Some((_, open)) = COUNTED.iter().find(|(known, _)| *known == kind) {
        return Some((name, *open));
    }
    let known = DEVICES.iter().find(|(known, _)| *known == kind).map(|(_, open)| *open);
    let interpreted = || kind.strip_prefix(INTERPRETED).filter(|name| is_processor(name)).map(|_| shape_device as Open);
    let simulated = || kind.strip_prefix(SIMT).filter(|name| Gpu::named(name).is_ok()).map(|_| chip_device as Open);
    Some((kind, known.or_else(interpreted).or_else(simulated).or_else(|| machine(kind))?))
}

/// The name without the number of a virtual device.
fn kind_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(kind, _)| kind)
}

/// Reports a name that is no device's but looks like that of a chip.
///
/// # Errors
/// When it does: the error lists the known chips.
pub(super) fn check_chip(name: &str) -> Result<()> {
    let chip = kind_of(name).trim_start_matches(SIMT);
    let is_meant = ["sm_", "gfx"].iter().any(|family| chip.starts_with(family));
    if is_meant { Gpu::named(chip).map(drop).map_err(Into::into) } else { Ok(()) }
}

fn is_processor(name: &str) -> bool {
    Processor::names().any(|known| known == name)
}

#[cfg(feature = "llvm")]
fn machine(kind: &str) -> Option<Open> {
    if let Some(name) = kind.strip_prefix(NATIVE) {
        return is_processor(name).then_some(host_device as Open);
    }
    match Gpu::named(kind) {
        Ok(_) => Some(gpu_device as Open),
        Err(_) => is_processor(kind).then_some(processor_device as Open),
    }
}

#[cfg(not(feature = "llvm"))]
fn machine(_: &str) -> Option<Open> {
    None
}

/// The prefix of a processor's name for a device that runs, in the host's instructions, what is lowered for it.
#[cfg(feature = "llvm")]
const NATIVE: &str = "native/";

/// The prefix of a processor's name for a device that interprets what is lowered for it.
const INTERPRETED: &str = "interpreter/";

/// The prefix of a GPU's name for a device that interprets what is lowered for it.
const SIMT: &str = "simt/";

/// Threads of an interpreted processor, so that its kernels do not depend on this machine.
const INTERPRETED_THREADS: usize = 2;

/// The CPU: the processor that `TINYSPEC_CPU` names, else the host.
#[cfg(feature = "llvm")]
fn cpu_device(name: &str) -> Result<Device> {
    machine_code(name, &Processor::chosen()?)
}

/// A processor of the table, by its name.
#[cfg(feature = "llvm")]
fn processor_device(name: &str) -> Result<Device> {
    machine_code(name, &Processor::named(kind_of(name))?)
}

/// The host, running what is lowered for a processor of the table.
#[cfg(feature = "llvm")]
fn host_device(name: &str) -> Result<Device> {
    let processor = Processor::named(kind_of(name).trim_start_matches(NATIVE))?;
    runnable(name, processor.target_on_host(crate::threads()?))
}

#[cfg(feature = "llvm")]
fn machine_code(name: &str, processor: &Processor) -> Result<Device> {
    runnable(name, processor.target(crate::threads()?))
}

#[cfg(feature = "llvm")]
fn runnable(name: &str, target: Target) -> Result<Device> {
    let target = strictly(target);
    let runtime = tinyspec_backends::cpu::CpuRuntime::of(&target);
    Ok(Device::new(name, target, Arc::new(late::Compiler::default()), Arc::new(runtime)))
}

/// Removes instructions that round sums of products differently than written, if `TINYSPEC_STRICT` says so.
fn strictly(target: Target) -> Target {
    if settings::STRICT.is_on() { target.strict() } else { target }
}

fn interpreter_device(name: &str) -> Result<Device> {
    let (compiler, runtime) = (interpreter::linear::InterpreterCompiler, interpreter::linear::InterpreterRuntime);
    Ok(Device::new(name, strictly(interpreter::target()), Arc::new(compiler), Arc::new(runtime)))
}

/// The interpreter, of kernels that are lowered for a processor of the table.
fn shape_device(name: &str) -> Result<Device> {
    let processor = Processor::named(kind_of(name).trim_start_matches(INTERPRETED))?;
    let (compiler, runtime) = (interpreter::linear::InterpreterCompiler, interpreter::linear::InterpreterRuntime);
    let target = strictly(processor.target(INTERPRETED_THREADS));
    Ok(Device::new(name, target, Arc::new(compiler), Arc::new(runtime)))
}

/// A GPU of the table, by its name: it generates code that it cannot run.
#[cfg(feature = "llvm")]
fn gpu_device(name: &str) -> Result<Device> {
    let gpu = Gpu::named(kind_of(name))?;
    let runtime = tinyspec_backends::gpu::CompileOnly::of(&gpu);
    Ok(Device::new(name, gpu.target(), Arc::new(late::Compiler::default()), Arc::new(runtime)))
}

/// The NVIDIA GPU with this number in CUDA's driver.
#[cfg(feature = "cuda")]
fn cuda_device(name: &str) -> Result<Device> {
    let compiler = tinyspec_backends::gpu::ptxas::Assembling::new(late::Compiler::default());
    behind_driver(name, tinyspec_backends::gpu::cuda::open, Arc::new(compiler))
}

/// The AMD GPU with this number in HIP.
#[cfg(feature = "amdgpu")]
fn amd_device(name: &str) -> Result<Device> {
    behind_driver(name, tinyspec_backends::gpu::hip::open, Arc::new(late::Compiler::default()))
}

/// Opens the GPU of a number.
#[cfg(any(feature = "cuda", feature = "amdgpu"))]
type OpenDriver = fn(&str, usize) -> std::result::Result<(Gpu, Arc<dyn Runtime>), DriverError>;

#[cfg(any(feature = "cuda", feature = "amdgpu"))]
fn behind_driver(name: &str, open: OpenDriver, compiler: Arc<dyn Compiler>) -> Result<Device> {
    let number = name.split_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
    let (gpu, runtime) = open(name, number).map_err(BackendError::from)?;
    Ok(Device::new(name, gpu.target(), compiler, runtime))
}

/// The interpreter of workgroups, of kernels that are lowered for a GPU of the table.
fn chip_device(name: &str) -> Result<Device> {
    let gpu = Gpu::named(kind_of(name).trim_start_matches(SIMT))?;
    let (compiler, runtime) = (interpreter::simt::SimtCompiler, interpreter::simt::SimtRuntime);
    Ok(Device::new(name, gpu.target(), Arc::new(compiler), Arc::new(runtime)))
}

fn simt_device(name: &str) -> Result<Device> {
    let (compiler, runtime) = (interpreter::simt::SimtCompiler, interpreter::simt::SimtRuntime);
    Ok(Device::new(name, interpreter::simt::target(), Arc::new(compiler), Arc::new(runtime)))
}

/// LLVM, loaded when the first kernel is compiled: tensors and kernels from the object cache do not need it.
#[cfg(feature = "llvm")]
mod late {
    use std::result::Result;
    use std::sync::OnceLock;
    use tinyspec_backends::llvm::{LlvmCompiler, find};
    use tinyspec_backends::{BackendError, LinearKernel, Target};

    /// If no libLLVM is found, its first use reports that, and where it was searched.
    #[derive(Default)]
    pub struct Compiler {
        llvm: OnceLock<Result<LlvmCompiler, BackendError>>,
        generator: OnceLock<Option<String>>,
    }

    impl Compiler {
        fn get(&self) -> Result<&LlvmCompiler, BackendError> {
            self.llvm.get_or_init(|| Ok(LlvmCompiler::new()?)).as_ref().map_err(BackendError::clone)
        }
    }

    // SAFETY: the code is that of the wrapped compiler.
    unsafe impl tinyspec_backends::Compiler for Compiler {
        fn fingerprint(&self) -> String {
            "llvm".into()
        }

        fn generator(&self) -> Option<String> {
            self.generator.get_or_init(find::identity).clone()
        }

        fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
            self.get()?.compile(kernel, target)
        }

        fn compile_all(&self, kernels: &[&LinearKernel], target: &Target) -> Vec<Result<Vec<u8>, BackendError>> {
            match self.get() {
                Ok(llvm) => llvm.compile_all(kernels, target),
                Err(error) => kernels.iter().map(|_| Err(error.clone())).collect(),
            }
        }

        fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
            self.get()?.source(kernel, target)
        }

        fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
            self.get()?.assembly(kernel, target)
        }
    }
}
