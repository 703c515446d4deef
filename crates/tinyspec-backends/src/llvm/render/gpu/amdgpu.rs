//! Code specific to AMD: code objects for HSA.

use super::super::emit::{Emitter, Result, Scope};
use crate::{LinearKernel, Target};
use inkwell::context::Context;
use inkwell::module::{FlagBehavior, Module};
use llvm_sys::LLVMAtomicOrdering::{LLVMAtomicOrderingAcquire, LLVMAtomicOrderingRelease};
use tinyspec_ir::special::SpecialIndex;

/// `amdgpu_kernel`.
pub(super) const CONVENTION: u32 = 91;
/// Buffers are in the device's own memory, and flushing of subnormal numbers by the instruction is acceptable: then
/// floats are added by one instruction.
pub(super) const SCOPE: Scope = Scope {
    name: "agent",
    metadata: &["amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory", "amdgpu.ignore.denormal.mode"],
};
/// The version of code objects, which ROCm 6 and 7 can load.
const VERSION: u64 = 500;

/// Launch bounds, without which LLVM reserves registers for four times as many threads; and a declaration that a kernel
/// needs no implicit arguments.
pub(super) fn attributes(kernel: &LinearKernel) -> Vec<(&'static str, String)> {
    let size = kernel.grid.size();
    vec![
        ("amdgpu-flat-work-group-size", format!("{size},{size}")),
        ("amdgpu-no-implicitarg-ptr", String::new()),
        ("uniform-work-group-size", "true".into()),
    ]
}

/// Sets the version of code objects for this module.
pub(super) fn set_version<'context>(context: &'context Context, module: &Module<'context>) {
    let version = context.i32_type().const_int(VERSION, false);
    module.add_basic_value_flag("amdhsa_code_object_version", FlagBehavior::Error, version);
}

/// Whether an instruction atomically adds f64; otherwise, LLVM's loop begins with a load that is not atomic.
pub(in super::super) fn adds_doubles(target: &Target) -> bool {
    target.isa.as_ref().is_some_and(|isa| isa.cpu.starts_with("gfx9"))
}

pub(super) fn special(index: SpecialIndex) -> String {
    super::register(index, "llvm.amdgcn.workgroup.id", "llvm.amdgcn.workitem.id")
}

/// The instruction itself does not order memory.
pub(super) fn barrier(emit: &Emitter) -> Result<()> {
    const SCOPE: &str = "workgroup";
    emit.fence_in(SCOPE, LLVMAtomicOrderingRelease);
    emit.intrinsic("llvm.amdgcn.s.barrier", &[], &[], None)?;
    emit.fence_in(SCOPE, LLVMAtomicOrderingAcquire);
    Ok(())
}
