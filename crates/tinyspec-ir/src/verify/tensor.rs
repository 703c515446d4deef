//! The tensor graph: no Ranges, no kernels, no machine ops.

use super::refuse;
use crate::{Arg, Category, Graph, NodeId, Op, Result};

/// Checks a tensor graph, as users and traces build it.
///
/// # Errors
/// When a node is not allowed at this stage; the error names the first one.
pub fn tensor(graph: &Graph, roots: &[NodeId]) -> Result<()> {
    let refuse = |node, why: &str| refuse("verify tensor", graph, node, why);
    for node in graph.reachable(roots) {
        match (graph.op(node), graph.arg(node)) {
            (Op::Call, _) if crate::kernel::is_opaque(graph, node) => {}
            (Op::CustomFunction | Op::Custom, _) => {}
            (Op::Range | Op::End | Op::Linear | Op::Call, _) => return refuse(node, "belongs to kernels"),
            (Op::Reduce, Arg::Reduce { axes, .. }) if axes.is_empty() => return refuse(node, "reduces no axis"),
            (Op::Store, _) if graph.sources(node).len() > 2 => return refuse(node, "a gate belongs to kernels"),
            (op, _) if op.category() == Category::Codegen => return refuse(node, "belongs to generated code"),
            _ => {}
        }
    }
    Ok(())
}
