//! Flattens a sum of sums into one sum, which turns the gradient of a convolution into a convolution.

use super::index::{Indices, Ranges};
use crate::lower::fold::conjuncts;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// The terms and Ranges of a sum of `value` over `ranges`, where `value` may itself be a sum, possibly under a gate.
pub(super) fn flattened(indices: &mut Indices, value: NodeId, ranges: Ranges) -> Result<(NodeId, Ranges)> {
    let (mut terms, mut all, mut gate) = (value, ranges.clone(), None);
    let mut found = false;
    loop {
        let graph = &indices.graph;
        match (graph.op(terms), graph.sources(terms)) {
            (Op::Where, &[condition, yes, no]) if graph.as_const(no).is_some_and(|zero| zero.bits == 0) => {
                gate = indices.both(gate, Some(condition))?;
                terms = yes;
            }
            (Op::Reduce, [inner, others @ ..]) if matches!(graph.arg(terms), Arg::Reduce { op: Op::Add, .. }) => {
                all.extend_from_slice(others);
                terms = *inner;
                found = true;
            }
            _ => break,
        }
    }
    if !found {
        return Ok((value, ranges));
    }
    let terms = match gate {
        Some(gate) => gated(&mut indices.graph, terms, gate)?,
        None => terms,
    };
    Ok((terms, all))
}

/// `terms` where the gate holds, else 0. In a product of two elements, only the one out of bounds becomes 0, which is
/// how a convolution treats the padding of its input (an infinite filter gives nan in both).
fn gated(graph: &mut Graph, terms: NodeId, gate: NodeId) -> Result<NodeId> {
    if let (Op::Mul, &[a, b]) = (graph.op(terms), graph.sources(terms)) {
        let free: SmallVec<[bool; 2]> = [a, b].iter().map(|&operand| is_inside(graph, operand)).collect();
        let is_closed = |graph: &Graph, operand: NodeId| {
            graph.op(operand) == Op::Load && graph.sources(operand).get(2).is_some_and(|&own| implies(graph, own, gate))
        };
        match free.as_slice() {
            [true, false] if is_closed(graph, b) => {
                let a = ungated(graph, a)?;
                return graph.alu(Op::Mul, &[a, b]);
            }
            [false, true] if is_closed(graph, a) => {
                let b = ungated(graph, b)?;
                return graph.alu(Op::Mul, &[a, b]);
            }
            _ => {}
        }
    }
    let zero = graph.constant(tinyspec_ir::Const::int(graph.dtype(terms), 0));
    graph.alu(Op::Where, &[gate, terms, zero])
}

/// Whether a Load is in bounds even if its gate is closed.
fn is_inside(graph: &Graph, load: NodeId) -> bool {
    let (Op::Load, &[place, ..]) = (graph.op(load), graph.sources(load)) else { return false };
    let (Op::Index, &[buffer, index]) = (graph.op(place), graph.sources(place)) else { return false };
    let length = graph.props(buffer).element_count().as_const().unwrap_or(0);
    let bounds = graph.props(index).interval.int();
    bounds.is_some_and(|(low, high)| low >= 0 && high < length as i128)
}

/// Whether every condition of `b` is one of `a`.
fn implies(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let own = conjuncts(graph, a);
    conjuncts(graph, b).iter().all(|condition| own.contains(condition))
}

fn ungated(graph: &mut Graph, load: NodeId) -> Result<NodeId> {
    let (place, arg) = (graph.source(load, 0), graph.arg(load).clone());
    graph.add(Op::Load, &[place], arg)
}
