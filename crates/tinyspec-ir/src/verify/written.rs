//! Kernels written by hand, as they come out of a binary: what the macro has shown is asked again.

use super::{access, refuse};
use crate::kernel::WrittenKernel;
use crate::{Op, Result};

/// A kernel whose accesses are inside of their buffers and whose parallel iterations never meet.
///
/// # Errors
/// Names the first access of which that cannot be shown. Where parts are the author's word, iterations may meet.
pub fn written(kernel: &WrittenKernel) -> Result<()> {
    if kernel.graph.op(kernel.sink) != Op::Sink {
        return refuse("verify written", &kernel.graph, kernel.sink, "is not a kernel in the form of its author");
    }
    let problems = access::problems(&kernel.graph, kernel.sink, &|_| None, &|_| kernel.vouched);
    match problems.first() {
        Some(problem) => refuse("verify written", &kernel.graph, problem.node, format!("{:?}", problem.kind)),
        None => Ok(()),
    }
}
