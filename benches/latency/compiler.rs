//! LLVM with a clock: what it makes, and how long it takes for each kernel.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tinyspec::backends::cpu::CpuRuntime;
use tinyspec::backends::llvm::{Host, LlvmCompiler};
use tinyspec::backends::{BackendError, Compiler, LinearKernel, Listing, Target};

/// A kernel that was compiled.
pub struct Compiled {
    /// As the profile names it.
    pub name: String,
    /// The object.
    pub code: Vec<u8>,
    /// From UOps to the object.
    pub took: Duration,
    /// Time that the process had spent in the stages of kernels when this one came from them.
    pub lowered: Duration,
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
        let (compiler, target) = (Arc::new(Clocked::default()), Host::detect().target());
        let runtime = CpuRuntime::new(target.threads);
        tinyspec::register(name, target, compiler.clone(), Arc::new(runtime));
        compiler
    }

    /// What was compiled since the last time.
    pub fn take(&self) -> Vec<Compiled> {
        self.compiled.lock().map(|mut compiled| std::mem::take(&mut *compiled)).unwrap_or_default()
    }

    fn inner(&self) -> Result<&LlvmCompiler, BackendError> {
        self.inner.get_or_init(|| Ok(LlvmCompiler::new()?)).as_ref().map_err(BackendError::clone)
    }
}

impl Compiler for Clocked {
    fn fingerprint(&self) -> String {
        self.inner().map_or_else(|_| "none".into(), |compiler| compiler.fingerprint())
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        let (inner, lowered) = (self.inner()?, tinyspec::profile::counters().lowering);
        let start = Instant::now();
        let code = inner.compile(kernel, target)?;
        let compiled = Compiled { name: kernel.name.clone(), code: code.clone(), took: start.elapsed(), lowered };
        if let Ok(mut all) = self.compiled.lock() {
            all.push(compiled);
        }
        Ok(code)
    }

    fn listing(&self, kernel: &LinearKernel, target: &Target) -> Result<Listing, BackendError> {
        self.inner()?.listing(kernel, target)
    }
}
