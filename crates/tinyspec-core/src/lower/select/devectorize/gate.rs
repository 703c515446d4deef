//! Gates lane by lane: which lanes of a vector constants close, and what is left to ask when the kernel runs.

use super::Cut;
use super::splat;
use crate::lower::fold;
use crate::lower::sum::Sum;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// Sums of which all must be positive, in the order of their terms.
pub(super) type Open = SmallVec<[Sum; 2]>;

/// The gate of a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lane {
    Closed,
    Open(Open),
}

impl Cut {
    /// The gate of one place of a tile; `None` where it is made of more than comparisons of sums.
    pub(super) fn lane_of(&self, graph: &Graph, gate: NodeId, at: &[i64]) -> Option<Lane> {
        let (mut open, mut stack) = (Open::new(), vec![gate]);
        while let Some(node) = stack.pop() {
            match graph.op(node) {
                Op::And => stack.extend(graph.sources(node)),
                Op::Expand => stack.push(graph.source(node, 0)),
                Op::Const if graph.as_int(node)? != 0 => {}
                Op::Const => return Some(Lane::Closed),
                Op::CmpLt if graph.dtype(graph.source(node, 0)) == DType::Index => {
                    let (a, b) = (self.sum(graph.source(node, 0)), self.sum(graph.source(node, 1)));
                    let condition = self.at(&b.plus(&a.scale(-1)), at)?;
                    match condition.bounds(graph) {
                        Some((low, _)) if low > 0 => {}
                        Some((_, high)) if high <= 0 => return Some(Lane::Closed),
                        _ if open.contains(&condition) => {}
                        _ => open.push(condition),
                    }
                }
                _ => return None,
            }
        }
        open.sort_by(|a, b| (&a.terms, a.constant).cmp(&(&b.terms, b.constant)));
        Some(Lane::Open(open))
    }

    /// A sum at one place of the tile.
    fn at(&self, sum: &Sum, at: &[i64]) -> Option<Sum> {
        let mut total = Sum::constant(sum.constant);
        for &(atom, coefficient) in &sum.terms {
            total = match self.axes.get(&atom) {
                Some(&axis) => total.plus(&Sum::constant(coefficient.checked_mul(*at.get(axis)?)?)),
                None if self.has_parts(atom) => return None,
                None => total.plus(&Sum::atom(self.range_of(atom)).scale(coefficient)),
            };
        }
        Some(total)
    }

    /// What is left to ask, as a bool; `None` where that is nothing.
    pub(super) fn condition(&mut self, graph: &mut Graph, lane: &Lane) -> Result<Option<NodeId>> {
        let mut all = None;
        let Lane::Open(sums) = lane else { return Ok(Some(fold::truth(graph, false))) };
        for sum in sums {
            let zero = graph.constant(Const::int(DType::I64, 0));
            let sum = self.scalar_sum(graph, sum)?;
            let holds = fold::elementwise(graph, Op::CmpLt, &[zero, sum], Arg::None)?;
            all = fold::both(graph, all, Some(holds))?;
        }
        Ok(all)
    }
}

/// Lanes that are open or closed, whatever runs.
pub(super) fn mask(graph: &mut Graph, open: &[bool]) -> Result<NodeId> {
    let zero = graph.constant(Const::int(DType::I32, 0));
    let mut lanes: SmallVec<[NodeId; 16]> = SmallVec::new();
    for &open in open {
        lanes.push(graph.constant(Const::int(DType::I32, open.into())));
    }
    let lanes = graph.add(Op::Stack, &lanes, Arg::None)?;
    let zero = splat(graph, zero, open.len() as i64)?;
    graph.alu(Op::CmpLt, &[zero, lanes])
}
