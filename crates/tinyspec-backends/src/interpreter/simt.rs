//! Executes linear kernels as a GPU does: workgroups of threads that share LOCAL memory.
//!
//! The active threads of a workgroup execute every instruction together, so runs are deterministic. Undefined behaviour
//! of a GPU is an error here: a Barrier that not all threads reach, data races between threads
//! ([`BackendError::Race`]), LOCAL memory that is read before it is written, and accesses out of bounds.

mod access;
mod machine;
mod races;
mod threads;

use super::linear::{self, code, resolve};
use crate::{BackendError, CommandBuffer, Compiler, LinearKernel, Program, Rates, Runtime, Target, Workgroups};
use std::sync::Arc;

/// A GPU with moderate limits on which every op is native: other GPUs can run whatever it runs.
pub fn target() -> Target {
    Target {
        name: "simt".into(),
        fingerprint: format!("simt {}", env!("CARGO_PKG_VERSION")),
        // Up to four floats are loaded at once.
        vector_bytes: 16,
        vector_registers: 64,
        masked_access: false,
        // Threads keep values for reuse in registers; caches are not relied upon.
        cache_bytes: [0; 3],
        rates: Rates::TYPICAL,
        tensor_cores: Vec::new(),
        workgroups: Some(Workgroups {
            counts: [i32::MAX as usize, 65_535, 65_535],
            threads: [1024, 1024, 64],
            size: 1024,
            warp: 32,
            local_bytes: 48 << 10,
            processors: 16,
            resident: 2048,
        }),
        ..super::target()
    }
}

/// Checks a linear kernel and packs it; the bytes hold the kernel's graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimtCompiler;

// SAFETY: the code is the kernel itself, encoded.
unsafe impl Compiler for SimtCompiler {
    fn fingerprint(&self) -> String {
        format!("simt {}", env!("CARGO_PKG_VERSION"))
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        if let Some(workgroups) = &target.workgroups {
            workgroups.admit(kernel, &target.name)?;
        }
        // Loading resolves it again; here it detects kernels that cannot run.
        resolve::resolve(kernel)?;
        Ok(code::encode(kernel))
    }

    fn source(&self, kernel: &LinearKernel, _target: &Target) -> Result<String, BackendError> {
        Ok(linear::source(kernel))
    }

    fn assembly(&self, kernel: &LinearKernel, _target: &Target) -> Result<String, BackendError> {
        linear::assembly(kernel)
    }
}

/// Runs kernels synchronously, one workgroup after the other, in host memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimtRuntime;

// SAFETY: allocation is the trait's default; every access is checked before it is made.
unsafe impl Runtime for SimtRuntime {
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        linear::load(name, code)
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        linear::in_order(commands, table, |code, params, launch| {
            // SAFETY: the caller vouches for the addresses; every access is checked against the Params' sizes.
            unsafe { machine::run(code, params, launch.grid, launch.trips.clone()) }
        })
    }
}
