//! The runtime of a chip that code is generated for but that is not present.

use super::Gpu;
use crate::{BackendError, CommandBuffer, Program, Runtime};
use std::sync::Arc;

/// Holds memory, as tensors need to be lowered, and runs nothing.
#[derive(Debug)]
pub struct CompileOnly {
    name: &'static str,
}

impl CompileOnly {
    /// The runtime for this chip.
    pub fn of(gpu: &Gpu) -> CompileOnly {
        CompileOnly { name: gpu.name }
    }

    fn refusal(&self) -> BackendError {
        BackendError::CompileOnly { name: self.name.into() }
    }
}

// SAFETY: it keeps the trait's own allocation methods, and runs no kernel that could access memory.
unsafe impl Runtime for CompileOnly {
    fn load(&self, _: &str, _: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        Err(self.refusal())
    }

    unsafe fn enqueue(&self, _: &CommandBuffer, _: &[*mut u8]) -> Result<(), BackendError> {
        Err(self.refusal())
    }
}
