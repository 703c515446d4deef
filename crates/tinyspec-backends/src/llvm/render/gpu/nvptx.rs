//! Code specific to NVIDIA: PTX.

use super::super::emit::{Emitter, Kind, Result, Scope};
use crate::LinearKernel;
use tinyspec_ir::special::SpecialIndex;

/// `ptx_kernel`.
pub(super) const CONVENTION: u32 = 71;

pub(super) const SCOPE: Scope = Scope { name: "device", metadata: &[] };

/// Launch bounds: the exact number of threads.
pub(super) fn attributes(kernel: &LinearKernel) -> Vec<(&'static str, String)> {
    let [x, y, z] = kernel.grid.threads;
    vec![("nvvm.reqntid", format!("{x},{y},{z}"))]
}

pub(super) fn special(index: SpecialIndex) -> String {
    super::register(index, "llvm.nvvm.read.ptx.sreg.ctaid", "llvm.nvvm.read.ptx.sreg.tid")
}

/// The instruction orders all memory that the threads of a workgroup share.
pub(super) fn barrier(emit: &Emitter) -> Result<()> {
    let first = emit.int(Kind::I32, 1, 0);
    emit.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", &[], &[first], None).map(drop)
}
