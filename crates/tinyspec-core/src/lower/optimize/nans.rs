//! Maxima that need not propagate nans, since everything computed from them is nan anyway: a softmax subtracts the
//! maximum of a row, and divides by a sum with the nan as a term. Testing for nans takes longer than the maximum
//! itself. Most processors' maximum also does not order -0 and +0, which is unobservable if only powers are computed
//! from it.

use super::kernel::Kernel;
use crate::lower::fold::identity;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// The Reduce-Max nodes of a kernel that need not propagate nans.
pub(super) fn find(graph: &mut Graph, kernel: &Kernel, target: &Target) -> Result<Vec<NodeId>> {
    let mut found = Vec::new();
    for reduction in &kernel.reductions {
        let is_maximum = matches!(graph.arg(reduction.node), Arg::Reduce { op: Op::Max, .. });
        let &[range] = &reduction.ranges[..] else { continue };
        if !is_maximum || graph.dtype(reduction.node) != DType::F32 {
            continue;
        }
        if !knows_zeros(target) && !is_blind(graph, &kernel.order, reduction.node) {
            continue;
        }
        let certain = certain(graph, kernel, (reduction.node, range))?;
        if !certain.is_empty() && is_covered(graph, kernel, reduction.node, &certain) {
            found.push(reduction.node);
        }
    }
    Ok(found)
}

/// Whether the target has a maximum that orders -0 before +0.
fn knows_zeros(target: &Target) -> bool {
    target.instructions.contains(&Instruction::Greater)
}

/// Whether a maximum may drop nans here, given that everything else computed from `value` is nan.
pub(super) fn may_drop(graph: &Graph, order: &[NodeId], value: NodeId, target: &Target) -> bool {
    knows_zeros(target) || is_blind(graph, order, value)
}

/// The value with nans replaced, as the operand of a Reduce-Max that [`find`] returns. Where the target's maximum does not
/// order -0 and +0, the result is not -0 either.
pub(super) fn dropped(graph: &mut Graph, value: NodeId, target: &Target) -> Result<NodeId> {
    let is_nan = graph.add(Op::CmpNe, &[value, value], Arg::None)?;
    let least = identity(graph, Op::Max, graph.dtype(value));
    let number = graph.add(Op::Where, &[is_nan, least, value], Arg::None)?;
    if knows_zeros(target) {
        return Ok(number);
    }
    let zero = graph.constant(Const::float(graph.dtype(value), 0.0));
    graph.alu(Op::Add, &[number, zero])
}

/// Whether the sign of a zero value is unobservable. Sums and products pass it on, to a power or a comparison.
fn is_blind(graph: &Graph, order: &[NodeId], value: NodeId) -> bool {
    let mut zeros: FxHashSet<NodeId> = FxHashSet::from_iter([value]);
    order.iter().all(|node| {
        if !graph.sources(*node).iter().any(|source| zeros.contains(source)) {
            return true;
        }
        match graph.op(*node) {
            Op::Exp2 | Op::CmpLt | Op::CmpNe => true,
            Op::Add | Op::Mul | Op::Where => zeros.insert(*node),
            _ => false,
        }
    })
}

/// Values that are nan if any operand of the maximum is: sums over as many trips whose terms propagate the nans of
/// these operands, and values that propagate those of such sums.
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

/// `nans`, and all values that are nan where one of them is.
fn carriers(graph: &Graph, kernel: &Kernel, mut nans: FxHashSet<NodeId>) -> FxHashSet<NodeId> {
    for &node in &kernel.order {
        let is_nan = |source: &NodeId| nans.contains(source);
        let sources = graph.sources(node);
        let carries = match graph.op(node) {
            Op::Add | Op::Mul | Op::Div | Op::Max | Op::Mulacc => sources.iter().any(is_nan),
            Op::Recip | Op::Exp2 | Op::Log2 | Op::Sqrt | Op::Sin => is_nan(&sources[0]),
            Op::Cast => is_nan(&sources[0]) && graph.dtype(node).is_float(),
            Op::Where => sources[1..].iter().all(is_nan) || is_nan(&sources[2]) && is_bound(graph, sources),
            _ => false,
        };
        if carries {
            nans.insert(node);
        }
    }
    nans
}

/// Whether a Where chooses its last source if that is nan: its condition compares that source.
fn is_bound(graph: &Graph, sources: &[NodeId]) -> bool {
    graph.op(sources[0]) == Op::CmpLt && graph.sources(sources[0]).contains(&sources[2])
}

/// Whether everything computed from the value passes through a `certain` node before it is stored or used as an index.
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
