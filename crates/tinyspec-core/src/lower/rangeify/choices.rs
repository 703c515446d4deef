//! Helpers for the nodes between a Reduce and its data: casts, views, and conditions that select the terms.

use super::movement::{count, sizes};
use crate::lower::terms::vanishes;
use smallvec::SmallVec;
use tinyspec_ir::{DType, Graph, NodeId, Op, masks};

/// The node below some casts.
pub(super) fn uncast(graph: &Graph, node: NodeId) -> NodeId {
    let mut below = node;
    while graph.op(below) == Op::Cast {
        below = graph.source(below, 0);
    }
    below
}

/// The conditions under which a term counts in a Reduce by `op`, each with the outcome that it must have, and the value
/// of the term, unless that is a condition, too.
pub(super) fn choices(graph: &Graph, op: Op, terms: NodeId) -> (SmallVec<[(NodeId, bool); 2]>, Option<NodeId>) {
    let dtype = graph.dtype(terms);
    let mut casts: SmallVec<[DType; 2]> = SmallVec::new();
    let (mut below, mut found) = (terms, SmallVec::new());
    loop {
        let is_nothing = |node: NodeId| {
            let constant = graph.as_const(masks::repeated(graph, node));
            constant.is_some_and(|value| vanishes(op, dtype, &casts, value))
        };
        match (graph.op(below), graph.sources(below)) {
            (Op::Cast, &[inner]) => {
                casts.push(graph.dtype(below));
                below = inner;
            }
            (Op::Where, &[condition, yes, no]) => {
                let (chosen, holds) = match (is_nothing(yes), is_nothing(no)) {
                    (_, true) => (yes, true),
                    (true, _) => (no, false),
                    _ => break,
                };
                found.extend(masks::conjuncts(graph, condition, holds));
                below = chosen;
            }
            _ => break,
        }
    }
    if graph.dtype(below) == DType::Bool && op == Op::Add {
        found.extend(masks::conjuncts(graph, below, true));
        return (found, None);
    }
    (found, Some(below))
}

/// From this many terms per element of the source on, windows are not those of a pool.
const WINDOW: i64 = 16;

/// Whether views alone repeat each element in many terms, apart from padding.
pub(super) fn repeats(graph: &Graph, value: NodeId) -> bool {
    let is_padded = graph.views(value).any(|view| graph.op(view) == Op::Pad);
    let base = graph.viewed(value);
    is_padded && count(&sizes(graph, value)) / WINDOW >= count(&sizes(graph, base)).max(1)
}
