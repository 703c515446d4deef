//! Gates per lane: which lanes of a vector constants mask off, and which conditions must be tested at run time.

use super::Cut;
use super::{cast, splat};
use crate::lower::fold;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// Forms that must all be positive, in the order of their terms; of forms that differ in the constant alone, only the
/// least is kept.
pub(super) type Open = SmallVec<[Affine; 2]>;

/// The gate of a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lane {
    Closed,
    Open(Open),
}

impl Cut {
    /// The gate of one element of a tile; `None` if it contains anything but comparisons of sums.
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
                    let condition = self.at(&b.minus(&a), at)?;
                    match condition.bounds(graph) {
                        (low, _) if low > 0 => {}
                        (_, high) if high <= 0 => return Some(Lane::Closed),
                        _ => match open.iter_mut().find(|known| known.terms() == condition.terms()) {
                            Some(known) if known.constant() <= condition.constant() => {}
                            Some(known) => *known = condition,
                            None => open.push(condition),
                        },
                    }
                }
                _ => return None,
            }
        }
        open.sort_by(|a, b| a.terms().cmp(b.terms()));
        Some(Lane::Open(open))
    }

    /// A sum at one element of the tile.
    fn at(&self, sum: &Affine, at: &[i64]) -> Option<Affine> {
        let mut total = Affine::number(sum.constant());
        for &(atom, coefficient) in sum.terms() {
            total = match self.axes.get(&atom) {
                Some(&axis) => total.offset(coefficient.checked_mul(*at.get(axis)?)?),
                None if self.has_parts(atom) => return None,
                None => total.plus(&Affine::atom(self.range_of(atom)).scale(coefficient)),
            };
        }
        Some(total)
    }

    /// The gate of a vector of such lanes: a mask, or one bool for all lanes; `None` if all are open.
    pub(super) fn gate_of_lanes(&mut self, graph: &mut Graph, lanes: &[Lane]) -> Result<Option<NodeId>> {
        let width = lanes.len() as i64;
        let mut all: Option<NodeId> = None;
        let open: SmallVec<[bool; 16]> = lanes.iter().map(|lane| *lane != Lane::Closed).collect();
        if open.contains(&false) {
            all = Some(mask(graph, &open)?);
        }
        let sums = |lane: &Lane| match lane {
            Lane::Open(sums) => sums.clone(),
            Lane::Closed => Open::new(),
        };
        let mut kinds = Open::new();
        for sum in lanes.iter().flat_map(sums) {
            if !kinds.iter().any(|kind| kind.terms() == sum.terms()) {
                kinds.push(sum.without_constant());
            }
        }
        for kind in kinds {
            // `kind > -constant` per lane; lanes without this condition have no bound.
            let bound = |lane: &Lane| {
                sums(lane).iter().find(|sum| sum.terms() == kind.terms()).map(|sum| sum.constant().saturating_neg())
            };
            let bounds: SmallVec<[Option<i64>; 16]> = lanes.iter().map(bound).collect();
            let mut asked = bounds.iter().zip(&open).filter(|(_, open)| **open).map(|(bound, _)| *bound);
            let first = asked.next().flatten();
            let holds = match first.filter(|_| asked.all(|bound| bound == first)) {
                Some(bound) => {
                    let bound = graph.constant(Const::int(DType::I64, bound as i128));
                    let value = self.scalar_sum(graph, &kind)?;
                    fold::elementwise(graph, Op::CmpLt, &[bound, value], Arg::None)?
                }
                None => self.exceeds(graph, &kind, &bounds)?,
            };
            all = Some(match all {
                Some(all) => {
                    let (all, holds) = (splat(graph, all, width)?, splat(graph, holds, width)?);
                    graph.alu(Op::And, &[all, holds])?
                }
                None => holds,
            });
        }
        Ok(all)
    }

    /// Per lane, whether a sum is greater than a bound; true for lanes without one.
    fn exceeds(&mut self, graph: &mut Graph, sum: &Affine, bounds: &[Option<i64>]) -> Result<NodeId> {
        let fits = |low: i128, high: i128| low > i32::MIN as i128 && high < i32::MAX as i128;
        let (low, high) = sum.bounds(graph);
        let is_narrow = fits(low, high) && bounds.iter().flatten().all(|&bound| fits(bound.into(), bound.into()));
        let (dtype, least) = if is_narrow { (DType::I32, i32::MIN as i128) } else { (DType::I64, i64::MIN as i128) };
        let value = self.scalar_sum(graph, sum)?;
        let value = cast(graph, value, dtype)?;
        let value = splat(graph, value, bounds.len() as i64)?;
        let bound = |bound: &Option<i64>| Const::int(dtype, bound.map_or(least, i128::from));
        let bounds: SmallVec<[NodeId; 16]> = bounds.iter().map(|each| graph.constant(bound(each))).collect();
        let bounds = graph.add(Op::Stack, &bounds, Arg::None)?;
        graph.alu(Op::CmpLt, &[bounds, value])
    }
}

impl Lane {
    /// The conditions of this lane that another, which it implies, lacks.
    pub(super) fn beyond(&self, other: &Lane) -> Lane {
        match (self, other) {
            (_, Lane::Closed) => Lane::Open(Open::new()),
            (Lane::Closed, _) => Lane::Closed,
            (Lane::Open(sums), Lane::Open(known)) => {
                Lane::Open(sums.iter().filter(|sum| !known.contains(sum)).cloned().collect())
            }
        }
    }
}

/// Whether the other lane is open whenever the first is.
pub(super) fn implies(lane: &Lane, other: &Lane) -> bool {
    match (lane, other) {
        (Lane::Closed, _) => true,
        (_, Lane::Closed) => false,
        (Lane::Open(sums), Lane::Open(others)) => others
            .iter()
            .all(|other| sums.iter().any(|sum| sum.terms() == other.terms() && sum.constant() <= other.constant())),
    }
}

/// A constant mask.
fn mask(graph: &mut Graph, open: &[bool]) -> Result<NodeId> {
    let zero = graph.constant(Const::int(DType::I32, 0));
    let mut lanes: SmallVec<[NodeId; 16]> = SmallVec::new();
    for &open in open {
        lanes.push(graph.constant(Const::int(DType::I32, open.into())));
    }
    let lanes = graph.add(Op::Stack, &lanes, Arg::None)?;
    let zero = splat(graph, zero, open.len() as i64)?;
    graph.alu(Op::CmpLt, &[zero, lanes])
}
