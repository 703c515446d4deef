//! The comparison of `TINYSPEC_VALIDATE=1`: a plan with the same plan for another device.

use super::plan::Plan;
use crate::Result;
use crate::compare::Tolerance;
use crate::device::{Device, device};
use std::ops::Range;
use std::sync::Arc;
use tinyspec_backends::settings;
use tinyspec_ir::DType;

/// The reference for the launches of a plan.
pub(crate) struct Compared {
    pub reference: Plan,
    pub calls: Vec<ComparedCall>,
}

/// Launches of both plans that compute the same.
pub(crate) struct ComparedCall {
    pub launches: Range<usize>,
    /// Empty where the other device cannot run it.
    pub reference: Range<usize>,
    pub buffers: Vec<ComparedBuffer>,
    pub tolerance: Tolerance,
}

/// A buffer that both launches take: its positions in the tables of both plans.
pub(crate) struct ComparedBuffer {
    pub here: u32,
    pub there: u32,
    pub bytes: usize,
    pub dtype: DType,
    pub is_output: bool,
}

/// The device that another one is compared with: `cpu`, and for `cpu` the interpreter.
///
/// # Errors
/// When the value of `TINYSPEC_VALIDATE` is unknown.
pub(crate) fn reference_of(compared: &Device) -> Result<Option<Arc<Device>>> {
    if !settings::VALIDATE.read()? || compared.is_interpreter() {
        return Ok(None);
    }
    let is_cpu = compared.family() == "built-in cpu" || !cfg!(feature = "llvm");
    Ok(Some(device(if is_cpu { "interpreter" } else { "cpu" })?))
}
