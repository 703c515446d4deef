//! Folds that every rebuilding pass applies: conditions that are decided by intervals.

use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result, eval};

/// A bool constant.
pub(crate) fn truth(graph: &mut Graph, value: bool) -> NodeId {
    graph.constant(Const::int(DType::Bool, value as i128))
}

/// Adds an elementwise node, unless one of its sources is the result.
pub(crate) fn elementwise(graph: &mut Graph, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
    let constant = |graph: &Graph, node: NodeId| graph.as_int(node).filter(|_| graph.dtype(node) == DType::Bool);
    let scalar = |graph: &Graph, node: NodeId| graph.props(node).shape.is_empty();
    match (op, sources) {
        (Op::Where, &[condition, yes, no]) => {
            if let Some(value) = constant(graph, condition) {
                let (taken, other) = if value != 0 { (yes, no) } else { (no, yes) };
                if graph.props(taken).shape == graph.props(other).shape || scalar(graph, other) {
                    return Ok(taken);
                }
            }
        }
        (Op::And | Op::Or, &[a, b]) if graph.dtype(a) == DType::Bool => {
            for (a, b) in [(a, b), (b, a)] {
                match constant(graph, a) {
                    Some(value) if (value != 0) == (op == Op::And) => return Ok(b),
                    Some(_) if scalar(graph, b) => return Ok(a),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    let node = graph.add(op, sources, arg)?;
    if matches!(op, Op::CmpLt | Op::CmpNe)
        && scalar(graph, node)
        && let Some(value) = graph.props(node).interval.single()
    {
        return Ok(truth(graph, value != 0));
    }
    Ok(node)
}

/// Both conditions, where either may be absent.
pub(crate) fn both(graph: &mut Graph, a: Option<NodeId>, b: Option<NodeId>) -> Result<Option<NodeId>> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some(elementwise(graph, Op::And, &[a, b], Arg::None)?)),
        (one, other) => Ok(one.or(other)),
    }
}

/// The conditions that a gate is made of, all of which must hold.
pub(crate) fn conjuncts(graph: &Graph, gate: NodeId) -> SmallVec<[NodeId; 4]> {
    let (mut found, mut stack) = (SmallVec::new(), SmallVec::<[NodeId; 4]>::from_iter([gate]));
    while let Some(node) = stack.pop() {
        match graph.op(node) {
            Op::And => stack.extend_from_slice(graph.sources(node)),
            _ => found.push(node),
        }
    }
    found
}

/// The identity element of a Reduce.
pub(crate) fn identity(graph: &mut Graph, op: Op, dtype: DType) -> NodeId {
    graph.constant(eval::identity(op, dtype))
}
