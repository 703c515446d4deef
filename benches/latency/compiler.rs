//! LLVM with a clock: what it makes, and how long it takes for each kernel.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tinyspec::backends::cpu::CpuRuntime;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::backends::{BackendError, Compiler, LinearKernel, Target};

/// A kernel that was compiled.
pub struct Compiled {
    /// As the profile names it.
    pub name: String,
    /// The object.
    pub code: Vec<u8>,
    /// From UOps to the object. Of kernels that share a module each has its part, by the number of its instructions.
    pub took: Duration,
}

/// Compiles as the CPU's compiler does, and keeps what came of it.
#[derive(Default)]
pub struct Clocked {
    inner: OnceLock<Result<LlvmCompiler, BackendError>>,
    compiled: Mutex<Vec<Compiled>>,
}

impl Clocked {
    /// A new device of this name that compiles through a clock. Its kernels are compiled anew.
    pub fn device(name: &str) -> Arc<Clocked> {
        let (compiler, target) = (Arc::new(Clocked::default()), Target::native());
        let runtime = CpuRuntime::new(target.threads);
        tinyspec::register(name, target, compiler.clone(), Arc::new(runtime));
        compiler
    }

    /// What was compiled since the last time.
    pub fn take(&self) -> Vec<Compiled> {
        self.compiled.lock().map(|mut compiled| std::mem::take(&mut *compiled)).unwrap_or_default()
    }

    fn note<'a>(&self, kernels: &[&LinearKernel], took: Duration, codes: impl IntoIterator<Item = &'a Vec<u8>>) {
        let instructions = |kernel: &LinearKernel| kernel.graph.sources(kernel.linear).len() as f64;
        let all: f64 = kernels.iter().map(|kernel| instructions(kernel)).sum();
        let Ok(mut compiled) = self.compiled.lock() else { return };
        for (kernel, code) in kernels.iter().zip(codes) {
            let took = took.mul_f64(instructions(kernel) / all.max(1.0));
            compiled.push(Compiled { name: kernel.name.clone(), code: code.clone(), took });
        }
    }

    fn inner(&self) -> Result<&LlvmCompiler, BackendError> {
        self.inner.get_or_init(|| Ok(LlvmCompiler::new()?)).as_ref().map_err(BackendError::clone)
    }
}

// SAFETY: the code is another compiler's.
unsafe impl Compiler for Clocked {
    fn fingerprint(&self) -> String {
        self.inner().map_or_else(|_| "none".into(), |compiler| compiler.fingerprint())
    }

    fn generator(&self) -> Option<String> {
        self.inner().ok()?.generator()
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        let start = Instant::now();
        let code = self.inner()?.compile(kernel, target)?;
        self.note(&[kernel], start.elapsed(), [&code]);
        Ok(code)
    }

    fn compile_all(&self, kernels: &[&LinearKernel], target: &Target) -> Vec<Result<Vec<u8>, BackendError>> {
        let inner = match self.inner() {
            Ok(inner) => inner,
            Err(error) => return kernels.iter().map(|_| Err(error.clone())).collect(),
        };
        let start = Instant::now();
        let codes = inner.compile_all(kernels, target);
        self.note(kernels, start.elapsed(), codes.iter().flatten());
        codes
    }

    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.inner()?.source(kernel, target)
    }

    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.inner()?.assembly(kernel, target)
    }
}
