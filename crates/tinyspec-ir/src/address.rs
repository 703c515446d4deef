//! Addresses in machine form: an element of a buffer of one axis, at a sum of multiples of values.

use crate::{AddrSpace, Arg, Builder, DType, Graph, NodeId, Op};

/// A sum of multiples of nodes, and a constant. A multiple of a condition is there where it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sum {
    /// Nodes and what they are multiplied by.
    pub terms: Vec<(NodeId, i64)>,
    /// What is added to them.
    pub constant: i64,
}

impl Sum {
    /// Writes an index as a sum, as far as its additions cannot wrap.
    pub fn of(graph: &Graph, index: NodeId) -> Sum {
        let mut sum = Sum::default();
        let mut open = vec![(index, 1i64)];
        while let Some((node, factor)) = open.pop() {
            let scale = |node: NodeId| factor.checked_mul(i64::try_from(graph.as_int(node)?).ok()?);
            match (graph.op(node), graph.sources(node)) {
                (Op::Const, _) if let Some(constant) = scale(node).and_then(|all| sum.constant.checked_add(all)) => {
                    sum.constant = constant;
                }
                (Op::Where, &[condition, then, otherwise])
                    if graph.props(condition).shape.is_empty()
                        && let (Some(then), Some(otherwise)) = (scale(then), scale(otherwise))
                        && let Some(constant) = sum.constant.checked_add(otherwise)
                        && let Some(step) = then.checked_sub(otherwise) =>
                {
                    sum.constant = constant;
                    sum.add(condition, step);
                }
                (Op::Add, &[a, b]) if is_exact(graph, node) => open.extend([(a, factor), (b, factor)]),
                (Op::Mul, &[a, b]) if is_exact(graph, node) => match (scale(a), scale(b)) {
                    (_, Some(scale)) => open.push((a, scale)),
                    (Some(scale), _) => open.push((b, scale)),
                    _ => sum.add(node, factor),
                },
                (Op::Cast, &[a]) if is_exact(graph, node) => open.push((a, factor)),
                _ => sum.add(node, factor),
            }
        }
        sum
    }

    /// The sum where all conditions hold: where a load would go that goes elsewhere if one does not.
    pub fn where_all_hold(self, graph: &Graph) -> Sum {
        let (conditions, terms) = self.terms.into_iter().partition(|term| graph.dtype(term.0) == DType::Bool);
        let steps: Vec<(NodeId, i64)> = conditions;
        let constant = steps.iter().fold(self.constant, |constant, term| constant.saturating_add(term.1));
        Sum { terms, constant }
    }

    fn add(&mut self, node: NodeId, factor: i64) {
        match self.terms.iter_mut().find(|(term, _)| *term == node) {
            Some((_, old)) => *old = old.wrapping_add(factor),
            None => self.terms.push((node, factor)),
        }
    }
}

/// Is the value that of mathematics, never wrapped?
fn is_exact(graph: &Graph, node: NodeId) -> bool {
    let bounds = |node: NodeId| graph.props(node).interval.int();
    let (low, high) = match (graph.op(node), graph.sources(node)) {
        (Op::Add, [a, b]) => match (bounds(*a), bounds(*b)) {
            (Some((a, b)), Some((c, d))) => (a + c, b + d),
            _ => return false,
        },
        (Op::Mul, [a, b]) => match (bounds(*a), bounds(*b)) {
            (Some((a, b)), Some((c, d))) => {
                let corners = [a, b].map(|x| [c, d].map(|y| x.saturating_mul(y)));
                let corners = corners.as_flattened();
                (corners.iter().copied().min().unwrap_or(0), corners.iter().copied().max().unwrap_or(0))
            }
            _ => return false,
        },
        (Op::Cast, [a]) => match bounds(*a) {
            Some(bounds) if graph.dtype(*a) != DType::Bool => bounds,
            _ => return false,
        },
        _ => return false,
    };
    graph.dtype(node).int_range().is_some_and(|(least, greatest)| least <= low && high <= greatest)
}

/// What a chain of Afters orders.
pub fn behind_after(graph: &Graph, mut node: NodeId) -> NodeId {
    while graph.op(node) == Op::After {
        node = graph.source(node, 0);
    }
    node
}

/// Slot of a REG Buffer behind Afters, and the Buffer.
pub fn register(graph: &Graph, place: NodeId) -> Option<(u32, NodeId)> {
    let buffer = behind_after(graph, place);
    match graph.arg(buffer) {
        Arg::Buffer { slot, addrspace: AddrSpace::Reg, .. } => Some((*slot, buffer)),
        _ => None,
    }
}

/// The buffer of a place in one of one axis, and the index in it, unless it is its beginning.
pub fn base_and_index(graph: &Graph, place: NodeId) -> Option<(NodeId, Option<NodeId>)> {
    let place = behind_after(graph, place);
    let (base, index) = match (graph.op(place), graph.sources(place)) {
        (Op::Param | Op::Buffer, _) => return Some((place, None)),
        (Op::Index, &[base, index]) => (base, index),
        (Op::Shrink, &[base, offset, _]) => match graph.sources(offset) {
            &[offset] if graph.dtype(offset).is_int() => (base, offset),
            _ => return None,
        },
        _ => return None,
    };
    Some((behind_after(graph, base), Some(index)))
}

/// A scalar or the beginning of a run of elements of a Param, with the terms in order.
pub fn in_param(graph: &Graph, place: NodeId) -> Option<(NodeId, Sum)> {
    let (buffer, Some(index)) = base_and_index(graph, place)? else { return None };
    let lanes = &graph.props(index).shape;
    if graph.op(buffer) != Op::Param || lanes.iter().any(|lanes| !lanes.is(1)) {
        return None;
    }
    let mut sum = Sum::of(graph, index);
    sum.terms.sort_unstable();
    Some((buffer, sum))
}
