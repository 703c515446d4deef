//! A device that makes the code of a GPU, takes it, and runs nothing: programs go through it for what it leaves in the cache.

use crate::Outcome;
use std::any::Any;
use std::sync::Arc;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::backends::{BackendError, Gpu, Launch, Program, Runtime};

/// Takes any code, and runs none.
pub struct Nothing;

impl Program for Nothing {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

// SAFETY: it keeps the trait's own allocation methods, and runs no kernel that could access memory.
unsafe impl Runtime for Nothing {
    fn load(&self, _: &str, _: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        Ok(Arc::new(Nothing))
    }

    unsafe fn enqueue(&self, _: &[Launch], _: &[*mut u8]) -> Result<(), BackendError> {
        Ok(())
    }
}

/// Adds it for a chip, such as `sm_90a`; gives its name.
///
/// # Errors
/// When there is no such chip, or no code generator.
pub fn register(chip: &str) -> Outcome<String> {
    let name = format!("nothing:{chip}");
    tinyspec::register(&name, Gpu::named(chip)?.target(), Arc::new(LlvmCompiler::new()?), Arc::new(Nothing));
    Ok(name)
}
