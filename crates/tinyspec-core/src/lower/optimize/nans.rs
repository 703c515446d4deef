//! Maxima that may lose a nan, since all that is made of them is nan anyway: a softmax subtracts the greatest of a row,
//! and divides by a sum that has the nan for a term. To look for nans takes longer than the maximum itself.

use super::kernel::Kernel;
use crate::lower::fold::identity;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// The Reduces of a kernel that need no nan, where the target has a maximum that loses them.
pub(super) fn find(graph: &mut Graph, kernel: &Kernel, target: &Target) -> Result<Vec<NodeId>> {
    let mut found = Vec::new();
    if !target.instructions.contains(&Instruction::Greater) {
        return Ok(found);
    }
    for reduction in &kernel.reductions {
        let is_maximum = matches!(graph.arg(reduction.node), Arg::Reduce { op: Op::Max, .. });
        let &[range] = &reduction.ranges[..] else { continue };
        if !is_maximum || graph.dtype(reduction.node) != DType::F32 {
            continue;
        }
        let certain = certain(graph, kernel, (reduction.node, range))?;
        if !certain.is_empty() && is_covered(graph, kernel, reduction.node, &certain) {
            found.push(reduction.node);
        }
    }
    Ok(found)
}

/// A number that is no nan: what [`find`] lets a Reduce-Max take in the place of its value.
pub(super) fn dropped(graph: &mut Graph, value: NodeId) -> Result<NodeId> {
    let is_nan = graph.add(Op::CmpNe, &[value, value], Arg::None)?;
    let least = identity(graph, Op::Max, graph.dtype(value));
    graph.add(Op::Where, &[is_nan, least, value], Arg::None)
}

/// What is nan if one of the values is that the maximum is of: sums over as many trips that have all of them for
/// terms, and what is made of such sums.
fn certain(graph: &mut Graph, kernel: &Kernel, (maximum, range): (NodeId, NodeId)) -> Result<FxHashSet<NodeId>> {
    let mut certain = FxHashSet::default();
    let value = graph.source(maximum, 0);
    for sum in &kernel.reductions {
        let &[walked] = &sum.ranges[..] else { continue };
        let is_sum = matches!(graph.arg(sum.node), Arg::Reduce { op: Op::Add, .. });
        if !is_sum || !graph.dtype(sum.node).is_float() || graph.source(walked, 0) != graph.source(range, 0) {
            continue;
        }
        let image = substitute(graph, &[value], &FxHashMap::from_iter([(range, walked)]))?;
        let carriers = carriers(graph, kernel, FxHashSet::from_iter(image));
        if carriers.contains(&graph.source(sum.node, 0)) {
            certain.insert(sum.node);
        }
    }
    Ok(if certain.is_empty() { certain } else { carriers(graph, kernel, certain) })
}

/// With `nans` all that is nan where one of them is.
fn carriers(graph: &Graph, kernel: &Kernel, mut nans: FxHashSet<NodeId>) -> FxHashSet<NodeId> {
    for &node in &kernel.order {
        let is_nan = |source: &NodeId| nans.contains(source);
        let sources = graph.sources(node);
        let carries = match graph.op(node) {
            Op::Add | Op::Mul | Op::Div | Op::Max | Op::Mulacc => sources.iter().any(is_nan),
            Op::Recip | Op::Exp2 | Op::Log2 | Op::Sqrt | Op::Sin => is_nan(&sources[0]),
            Op::Cast => is_nan(&sources[0]) && graph.dtype(node).is_float(),
            Op::Where => sources[1..].iter().all(is_nan),
            _ => false,
        };
        if carries {
            nans.insert(node);
        }
    }
    nans
}

/// Does all that is made of the value go through what is `certain`, before it is stored or chooses a place?
fn is_covered(graph: &Graph, kernel: &Kernel, value: NodeId, certain: &FxHashSet<NodeId>) -> bool {
    let mut made: FxHashSet<NodeId> = FxHashSet::from_iter([value]);
    kernel.order.iter().all(|node| {
        let is_made = graph.sources(*node).iter().any(|source| made.contains(source));
        if !is_made || certain.contains(node) {
            return true;
        }
        made.insert(*node);
        graph.op(*node).is_elementwise() || graph.op(*node) == Op::Reduce
    })
}
