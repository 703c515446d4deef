//! Compiles linear kernels to objects, or to PTX.

use super::machine::{Machine, Output};
use super::{LlvmError, assembler_bugs, fatal, find, hsa_linker, llvm, render, split, wide_moves};
use crate::processor::{Architecture, Isa};
use crate::{BackendError, Compiler, LinearKernel, Target};
use inkwell::context::Context;
use inkwell::module::Module;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash as _;
use tinyspec_ir::{ContentHasher, Op};

/// Compiles kernels by LLVM, for the processor of each target. Threads compile concurrently, each with its own code
/// generators.
#[derive(Clone, Debug)]
pub struct LlvmCompiler {
    generator: Option<String>,
    is_located: bool,
}

thread_local! {
    /// Code generators of this thread.
    static MACHINES: RefCell<HashMap<Isa, Machine>> = RefCell::default();
}

impl LlvmCompiler {
    /// A compiler; loads libLLVM.
    ///
    /// # Errors
    /// When no libLLVM is found; the error lists what was tried.
    pub fn new() -> Result<LlvmCompiler, LlvmError> {
        llvm()?;
        Ok(LlvmCompiler { generator: find::identity(), is_located: false })
    }

    /// Adds debug locations to the code: the source line of an instruction is a line of the kernel's Linear form, as
    /// [`tinyspec_ir::text::print`] writes it. PTX carries them in `.loc` directives, objects in `.debug_line`.
    pub fn located(self) -> LlvmCompiler {
        LlvmCompiler { is_located: true, ..self }
    }

    fn generate(
        &self,
        name: &str,
        target: &Target,
        output: Output,
        build: impl for<'context> Fn(&'context Context, &Module<'context>) -> Result<(), BackendError>,
    ) -> Result<Vec<u8>, BackendError> {
        let isa = target.isa.as_ref().ok_or_else(|| {
            BackendError::Compile(format!("kernel `{name}`: the target {} has no instruction set", target.name))
        })?;
        MACHINES.with_borrow_mut(|machines| {
            if !machines.contains_key(isa) {
                machines.insert(isa.clone(), Machine::new(isa)?);
            }
            machines[isa].generate(name, output, build)
        })
    }

    fn alone(&self, kernel: &LinearKernel, target: &Target, output: Output) -> Result<Vec<u8>, BackendError> {
        let code = self.generate(&kernel.name, target, output, |context, module| {
            render::render(context, module, kernel, target, None, self.is_located).map_err(|error| match error {
                BackendError::Compile(reason) => BackendError::Compile(format!("kernel `{}`: {reason}", kernel.name)),
                other => other,
            })
        })?;
        match (output, architecture(target)) {
            (Output::Assembly, Some(Architecture::Nvptx64)) => {
                Ok(assembler_bugs::avoided(&String::from_utf8_lossy(&code)).into_owned().into_bytes())
            }
            _ => Ok(code),
        }
    }

    fn object(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        let mut code = self.alone(kernel, target, output(target))?;
        if target.isa.as_ref().is_some_and(|isa| wide_moves::is_broken(isa, &code)) {
            let text = self.alone(kernel, target, Output::Assembly)?;
            let text = wide_moves::mended(&String::from_utf8_lossy(&text));
            code = self.generate(&kernel.name, target, Output::Object, |_, module| {
                module.set_inline_assembly(&text);
                Ok(())
            })?;
        }
        match architecture(target) {
            Some(Architecture::Amdgcn) => hsa_linker::link(&code)
                .map_err(|error| BackendError::Compile(format!("kernel `{}`: {error}", kernel.name))),
            _ => Ok(code),
        }
    }

    fn text(&self, kernel: &LinearKernel, target: &Target, output: Output) -> Result<String, BackendError> {
        let text = match output {
            // LLVM IR needs no instruction selection.
            Output::Source => self.alone(kernel, target, output)?,
            _ => {
                self.contained(kernel, target, move |compiler, kernel, target| compiler.alone(kernel, target, output))?
            }
        };
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs `work`, with LLVM's fatal errors contained if the kernel may trigger one.
    fn contained<T: Send + 'static>(
        &self,
        kernel: &LinearKernel,
        target: &Target,
        work: impl FnOnce(&LlvmCompiler, &LinearKernel, &Target) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        if !may_be_fatal(kernel, target) {
            return work(self, kernel, target);
        }
        let key = || {
            let mut hasher = ContentHasher::default();
            format!("{kernel:?} {target:?}").hash(&mut hasher);
            hasher.content_hash()
        };
        let (compiler, owned, target) = (self.clone(), kernel.clone(), target.clone());
        fatal::contained(&kernel.name, key, move || work(&compiler, &owned, &target))
    }

    /// Compiles all of them in one module.
    fn together(&self, kernels: &[&LinearKernel], target: &Target) -> Result<Vec<Vec<u8>>, BackendError> {
        let object = self.generate("kernels", target, Output::Object, |context, module| {
            kernels.iter().enumerate().try_for_each(|(number, kernel)| {
                render::render(context, module, kernel, target, Some(&split::section(number)), self.is_located)
            })
        })?;
        split::split(&object, kernels.len()).map_err(BackendError::Compile)
    }
}

fn architecture(target: &Target) -> Option<Architecture> {
    target.isa.as_ref().map(|isa| isa.architecture)
}

fn is_gpu(target: &Target) -> bool {
    architecture(target).is_some_and(Architecture::is_gpu)
}

/// Whether the kernel may need something that the processor lacks. For a CPU only custom code may.
fn may_be_fatal(kernel: &LinearKernel, target: &Target) -> bool {
    is_gpu(target) || kernel.graph.nodes().any(|node| kernel.graph.op(node) == Op::Custom)
}

/// The kind of output for a target.
fn output(target: &Target) -> Output {
    match architecture(target) {
        // LLVM has no assembler for PTX; the driver has one.
        Some(Architecture::Nvptx64) => Output::Assembly,
        _ => Output::Object,
    }
}

// SAFETY: the code is generated from the kernel's own instructions.
unsafe impl Compiler for LlvmCompiler {
    fn fingerprint(&self) -> String {
        if self.is_located { "llvm, located".into() } else { "llvm".into() }
    }

    fn generator(&self) -> Option<String> {
        self.generator.clone()
    }

    /// For a CPU, an ELF object; for AMD GPUs, one that ROCm loads; for NVIDIA GPUs, PTX.
    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        self.contained(kernel, target, LlvmCompiler::object)
    }

    fn compile_all(&self, kernels: &[&LinearKernel], target: &Target) -> Vec<Result<Vec<u8>, BackendError>> {
        if kernels.len() > 1
            && !kernels.iter().any(|kernel| may_be_fatal(kernel, target))
            && let Ok(codes) = self.together(kernels, target)
        {
            return codes.into_iter().map(Ok).collect();
        }
        // Compiling each kernel in its own module shows which one failed.
        kernels.iter().map(|kernel| self.compile(kernel, target)).collect()
    }

    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.text(kernel, target, Output::Source)
    }

    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.text(kernel, target, Output::Assembly)
    }
}
