//! Addresses in machine form: an element of a buffer of one axis, at a sum of multiples of values.

use crate::{AddrSpace, Arg, Builder, DType, Graph, NodeId, Op};

/// A linear combination of nodes plus a constant. A term of a bool node counts where the bool holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sum {
    /// Nodes and their coefficients.
    pub terms: Vec<(NodeId, i64)>,
    /// The constant term.
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

    /// The coefficient of a node; 0 if the sum has no such term.
    pub fn coefficient(&self, node: NodeId) -> i64 {
        self.terms.iter().find(|term| term.0 == node).map_or(0, |term| term.1)
    }

    /// The sum with all its bool nodes true: for a speculative load, the address it has while its gate is open.
    pub fn where_all_hold(self, graph: &Graph) -> Sum {
        let (conditions, terms): (Vec<_>, Vec<_>) =
            self.terms.into_iter().partition(|(node, _)| graph.dtype(*node) == DType::Bool);
        let constant = conditions.iter().fold(self.constant, |constant, (_, step)| constant.saturating_add(*step));
        Sum { terms, constant }
    }

    fn add(&mut self, node: NodeId, factor: i64) {
        match self.terms.iter_mut().find(|(term, _)| *term == node) {
            Some((_, old)) => *old = old.wrapping_add(factor),
            None => self.terms.push((node, factor)),
        }
    }
}

/// Whether the value is the mathematical result, without wrapping.
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

/// The node that a chain of Afters orders.
pub fn behind_after(graph: &Graph, mut node: NodeId) -> NodeId {
    while graph.op(node) == Op::After {
        node = graph.source(node, 0);
    }
    node
}

/// The REG Buffer behind a chain of Afters, with its slot.
pub fn register(graph: &Graph, place: NodeId) -> Option<(u32, NodeId)> {
    let buffer = behind_after(graph, place);
    match graph.arg(buffer) {
        Arg::Buffer { slot, addrspace: AddrSpace::Reg, .. } => Some((*slot, buffer)),
        _ => None,
    }
}

/// The one-axis buffer that a place lies in and the index of the place, which is absent for the buffer's beginning.
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

/// The Param and the address in it of a scalar, or of the first of consecutive elements. Terms are sorted by node.
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
