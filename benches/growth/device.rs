//! A device that lowers like the CPU and then does nothing: what is left is the cost of the compiler's own stages.

use std::any::Any;
use std::sync::Arc;

use tinyspec::backends::{BackendError, CommandBuffer, Compiler, LinearKernel, Program, Runtime, Target};

/// Registers one under this name; no plan or kernel of another is known to it.
pub fn register(name: &str) {
    let target = Target { threads: 1, ..Target::native() };
    tinyspec::register(name, target, Arc::new(Nothing), Arc::new(Nothing));
}

struct Nothing;

impl Program for Nothing {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

// SAFETY: the runtime beside it runs nothing.
unsafe impl Compiler for Nothing {
    fn fingerprint(&self) -> String {
        "nothing".into()
    }

    fn compile(&self, _: &LinearKernel, _: &Target) -> Result<Vec<u8>, BackendError> {
        Ok(Vec::new())
    }

    fn source(&self, _: &LinearKernel, _: &Target) -> Result<String, BackendError> {
        Ok(String::new())
    }

    fn assembly(&self, _: &LinearKernel, _: &Target) -> Result<String, BackendError> {
        Ok(String::new())
    }
}

// SAFETY: memory is the trait's own, and nothing runs.
unsafe impl Runtime for Nothing {
    fn load(&self, _: &str, _: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        Ok(Arc::new(Nothing))
    }

    unsafe fn enqueue(&self, _: &CommandBuffer, _: &[*mut u8]) -> Result<(), BackendError> {
        Ok(())
    }
}
