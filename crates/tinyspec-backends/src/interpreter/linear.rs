//! Executes linear kernels: values are resolved to registers in one file of lanes, and every access is checked.

pub(super) mod code;
pub(super) mod instruction;
pub(super) mod memory;
pub(super) mod races;
pub(super) mod resolve;
mod run;

use crate::{BackendError, CommandBuffer, Compiler, Launch, LinearKernel, Program, Runtime, Target};
use instruction::Code;
use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use tinyspec_ir::Op;

/// Checks a linear kernel and packs it; the bytes hold the kernel's graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterCompiler;

// SAFETY: the code is the kernel itself, encoded.
unsafe impl Compiler for InterpreterCompiler {
    fn fingerprint(&self) -> String {
        format!("interpreter {}", env!("CARGO_PKG_VERSION"))
    }

    fn compile(&self, kernel: &LinearKernel, _target: &Target) -> Result<Vec<u8>, BackendError> {
        // Loading resolves it again; here it detects kernels that cannot run.
        let code = resolve::resolve(kernel)?;
        if code.instructions.iter().any(|instruction| matches!(instruction, instruction::Instruction::Special { .. })) {
            return Err(BackendError::Unsupported {
                target: "interpreter".into(),
                op: Op::Special.name().into(),
                reason: format!("`{}` is a kernel of workgroups: run it on `simt`", kernel.name),
            });
        }
        Ok(code::encode(kernel))
    }

    fn source(&self, kernel: &LinearKernel, _target: &Target) -> Result<String, BackendError> {
        Ok(source(kernel))
    }

    fn assembly(&self, kernel: &LinearKernel, _target: &Target) -> Result<String, BackendError> {
        assembly(kernel)
    }
}

/// The text form of a kernel.
pub(super) fn source(kernel: &LinearKernel) -> String {
    tinyspec_ir::text::print(&kernel.graph, &[kernel.linear])
}

/// Its instructions.
pub(super) fn assembly(kernel: &LinearKernel) -> Result<String, BackendError> {
    let mut assembly = String::new();
    for (position, instruction) in resolve::resolve(kernel)?.instructions.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(assembly, "{position:4} {instruction:?}");
    }
    Ok(assembly)
}

/// Runs kernels synchronously, on the calling thread, in host memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterRuntime;

/// A kernel that is ready to run, here or as workgroups.
struct Resolved(Code);

impl Program for Resolved {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Decodes packed code, ready to run.
pub(super) fn load(name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
    let kernel = code::decode(name, code)?;
    Ok(Arc::new(Resolved(resolve::resolve(&kernel)?)))
}

/// Runs launches in order; `run` gets the code and the addresses of the Params.
pub(super) fn in_order(
    commands: &CommandBuffer,
    table: &[*mut u8],
    run: impl Fn(&Code, &[*mut u8], &Launch) -> Result<(), BackendError>,
) -> Result<(), BackendError> {
    for launch in commands.launches() {
        let Some(Resolved(code)) = launch.program.as_any().downcast_ref() else {
            return Err(BackendError::Load {
                name: "kernel".into(),
                reason: "it was compiled for another device".into(),
            });
        };
        let address = |&index: &u32| table.get(index as usize).copied();
        let params: Option<Vec<*mut u8>> = launch.buffers.iter().map(address).collect();
        let params = params.ok_or_else(|| code.failure("a buffer is missing"))?;
        run(code, &params, launch).map_err(|error| error.at(&launch.line))?;
    }
    Ok(())
}

// SAFETY: allocation is the trait's default; every access is checked before it is made.
unsafe impl Runtime for InterpreterRuntime {
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        load(name, code)
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        in_order(commands, table, |code, params, launch| {
            // SAFETY: the caller vouches for the addresses; every access is checked against the Params' sizes.
            unsafe { run::run(code, params, launch.trips.clone()) }
        })
    }
}
