//! Verifies kernels written by hand after decoding, repeating the proofs of the macro.

use super::{access, refuse};
use crate::kernel::WrittenKernel;
use crate::{Op, Result};

/// Checks that the accesses of a kernel are in bounds, and that its parallel iterations do not race.
///
/// # Errors
/// Names the first access for which that cannot be proved. In `unsafe` parts, iterations may race.
pub fn hand_written(kernel: &WrittenKernel) -> Result<()> {
    if kernel.graph.op(kernel.sink) != Op::Sink {
        return refuse("verify written", &kernel.graph, kernel.sink, "is not a kernel in the form of its author");
    }
    let problems = access::problems(&kernel.graph, kernel.sink, &|_| None, &|_| kernel.vouched);
    match problems.first() {
        Some(problem) => refuse("verify written", &kernel.graph, problem.node, format!("{:?}", problem.kind)),
        None => Ok(()),
    }
}
