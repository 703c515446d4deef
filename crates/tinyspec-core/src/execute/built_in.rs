//! The devices that every machine has: the CPU by machine code, the interpreter, and one like a GPU.

use super::Device;
use crate::Result;
use std::sync::Arc;
use tinyspec_backends::interpreter;

/// How a device is opened.
type Open = fn(&str) -> Result<Device>;

/// Devices by name; the first is the default one.
pub(super) const DEVICES: &[(&str, Open)] = &[
    #[cfg(feature = "llvm")]
    ("cpu", cpu_device),
    ("interpreter", interpreter_device),
    ("simt", simt_device),
];

/// The kind of the device of this name, and how to open it: one of [`DEVICES`], or a virtual one beside it, such as `cpu:1`,
/// with memory of its own.
pub(super) fn find(name: &str) -> Option<(&'static str, Open)> {
    let kind = match name.split_once(':') {
        Some((kind, number)) if number.parse::<u16>().is_ok() => kind,
        Some(_) => return None,
        None => name,
    };
    DEVICES.iter().find(|(known, _)| *known == kind).copied()
}

/// Is it one of them?
pub(super) fn is_built_in(name: &str) -> bool {
    DEVICES.iter().any(|(known, _)| *known == name)
}

#[cfg(feature = "llvm")]
fn cpu_device(name: &str) -> Result<Device> {
    let host = tinyspec_backends::llvm::Host::detect();
    // Subnormal numbers may count as 0 in products of bf16, which one instruction then multiplies in pairs.
    let mut target = if crate::profile::is_on("TINYSPEC_FLUSH") { host.flushing_target() } else { host.target() };
    target.threads = crate::threads()?;
    let runtime = tinyspec_backends::cpu::CpuRuntime::new(target.threads);
    Ok(Device::new(name, target, Arc::new(late::Compiler::default()), Arc::new(runtime)))
}

fn interpreter_device(name: &str) -> Result<Device> {
    let (compiler, runtime) = (interpreter::linear::InterpreterCompiler, interpreter::linear::InterpreterRuntime);
    Ok(Device::new(name, interpreter::target(), Arc::new(compiler), Arc::new(runtime)))
}

fn simt_device(name: &str) -> Result<Device> {
    let (compiler, runtime) = (interpreter::simt::SimtCompiler, interpreter::simt::SimtRuntime);
    Ok(Device::new(name, interpreter::simt::target(), Arc::new(compiler), Arc::new(runtime)))
}

/// LLVM, loaded when the first kernel is compiled: neither tensors nor kernels of the object cache need it.
#[cfg(feature = "llvm")]
mod late {
    use std::result::Result;
    use std::sync::OnceLock;
    use tinyspec_backends::llvm::{Host, LlvmCompiler, Processor, find, fingerprint};
    use tinyspec_backends::{BackendError, LinearKernel, Target};

    /// Says at the first use that no libLLVM was found, and where it was looked for.
    #[derive(Default)]
    pub struct Compiler {
        llvm: OnceLock<Result<LlvmCompiler, BackendError>>,
        fingerprint: OnceLock<String>,
        generator: OnceLock<Option<String>>,
    }

    impl Compiler {
        fn get(&self) -> Result<&LlvmCompiler, BackendError> {
            self.llvm.get_or_init(|| Ok(LlvmCompiler::new()?)).as_ref().map_err(BackendError::clone)
        }
    }

    // SAFETY: the code is that of the compiler behind it.
    unsafe impl tinyspec_backends::Compiler for Compiler {
        fn fingerprint(&self) -> String {
            self.fingerprint.get_or_init(|| fingerprint(&Host::detect(), Processor::Host)).clone()
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
