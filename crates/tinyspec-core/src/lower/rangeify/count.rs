//! Counting Reduces: a sum over views of one constant is that constant times the number of trips whose gates hold,
//! which is index arithmetic. So the spec's arange, and the length that a mean divides by, need no loop.

use super::index::Tuple;
use super::movement;
use super::walk::{DemandId, Walk, named};
use smallvec::SmallVec;
use tinyspec_ir::eval::eval_op;
use tinyspec_ir::{Arg, AxisType, Const, DType, Dim, Graph, NodeId, Op, Result};

/// The constant below a Reduce-Add, if there are only views and casts in between. Padding with 0 stays 0.
pub(super) fn counted(graph: &Graph, node: NodeId) -> Option<Const> {
    match graph.arg(node) {
        Arg::Reduce { op: Op::Add, .. } => {}
        _ => return None,
    }
    let mut below = graph.source(node, 0);
    // Outermost first.
    let mut casts: SmallVec<[DType; 2]> = SmallVec::new();
    loop {
        below = named(graph, below).0;
        match graph.op(below) {
            Op::Cast => {
                casts.push(graph.dtype(below));
                below = graph.source(below, 0);
            }
            op if op.is_view() => below = graph.source(below, 0),
            _ => break,
        }
    }
    // 0 times infinity is not 0.
    let value = casts.iter().rev().try_fold(graph.as_const(below)?, |value, &to| eval_op(Op::Cast, to, &[value]).ok());
    value.filter(|value| value.as_float().is_none_or(f64::is_finite))
}

/// The number of trips, and the gate outside which it is 0.
#[derive(Clone, Copy)]
pub(super) struct Count {
    pub(super) trips: NodeId,
    pub(super) gate: Option<NodeId>,
    pub(super) value: Const,
}

impl Walk<'_> {
    /// The count for a demand on a counting Reduce; `None` if the gates are too complex.
    pub(super) fn count(&mut self, demand: DemandId) -> Result<Option<Count>> {
        let need = &self.needs[demand as usize];
        let (node, mut index) = (need.node, need.tuple.clone());
        let Some(value) = counted(self.tensors, node) else { return Ok(None) };
        let Arg::Reduce { axes, .. } = self.tensors.arg(node) else { return Ok(None) };
        let mut below = self.tensors.source(node, 0);
        let from = movement::shape(self.tensors, below);
        let mut ranges: SmallVec<[(NodeId, &Dim); 2]> = SmallVec::new();
        for &axis in axes.iter().filter(|&&axis| !from[axis as usize].is(1)) {
            let range = self.indices.fresh_range(&from[axis as usize], AxisType::Reduce)?;
            index[axis as usize] = range;
            ranges.push((range, &from[axis as usize]));
        }
        let gate = self.constant_below(&mut below, index)?;
        let mut conditions: Vec<NodeId> = gate.into_iter().collect();
        let mut position = 0;
        while let Some(&condition) = conditions.get(position) {
            if self.indices.graph.op(condition) == Op::And {
                conditions.extend_from_slice(self.indices.graph.sources(condition));
                conditions.swap_remove(position);
            } else {
                position += 1;
            }
        }
        let mut trips = self.indices.number(1);
        for (position, &(range, extent)) in ranges.iter().enumerate() {
            let Some(count) = self.trips_within(range, extent, &mut conditions)? else { return Ok(None) };
            // The product of trip counts is only right for a box: not if one Range bounds another, as in a triangle.
            let others = self.indices.ranges_of([count]);
            if ranges[position + 1..].iter().any(|(other, _)| others.contains(other)) {
                return Ok(None);
            }
            trips = match self.indices.graph.as_int(trips) {
                Some(factor) => self.indices.scale(count, factor as i64)?,
                None => match self.indices.graph.as_int(count) {
                    Some(factor) => self.indices.scale(trips, factor as i64)?,
                    None => return Ok(None),
                },
            };
        }
        let mut gate = None;
        for condition in conditions {
            gate = self.indices.both(gate, Some(condition))?;
        }
        Ok(Some(Count { trips, gate, value }))
    }

    /// Follows `index` down to the constant; the gate under which it is read.
    fn constant_below(&mut self, node: &mut NodeId, mut index: Tuple) -> Result<Option<NodeId>> {
        let mut gate = None;
        loop {
            *node = named(self.tensors, *node).0;
            if self.tensors.op(*node) == Op::Const {
                return Ok(gate);
            }
            if self.tensors.op(*node) == Op::Cast {
                *node = self.tensors.source(*node, 0);
                continue;
            }
            let (inner, inside) = movement::source_index(&mut self.indices, self.tensors, *node, &index)?;
            gate = self.indices.both(gate, inside)?;
            index = inner;
            *node = self.tensors.source(*node, 0);
        }
    }

    /// How many values of `range` satisfy the conditions on it, which are removed from the list.
    fn trips_within(&mut self, range: NodeId, extent: &Dim, conditions: &mut Vec<NodeId>) -> Result<Option<NodeId>> {
        let (mut low, mut high) = (self.indices.number(0), self.indices.dim(extent)?);
        let mut others = Vec::new();
        for &condition in conditions.iter() {
            if !self.indices.ranges_of([condition]).contains(&range) {
                others.push(condition);
                continue;
            }
            let &[a, b] = self.indices.graph.sources(condition) else { return Ok(None) };
            if self.indices.graph.op(condition) != Op::CmpLt {
                return Ok(None);
            }
            // a < b as `0 <= rest + sign * range`.
            let minus = self.indices.scale(a, -1)?;
            let room = self.indices.add(b, minus)?;
            let room = self.indices.offset(room, -1)?;
            let Some((sign, rest)) = self.indices.without(room, range)? else { return Ok(None) };
            if sign == 1 {
                let least = self.indices.scale(rest, -1)?;
                low = self.indices.maximum(low, least)?;
            } else {
                let end = self.indices.offset(rest, 1)?;
                high = self.indices.minimum(high, end)?;
            }
        }
        *conditions = others;
        let low = self.indices.scale(low, -1)?;
        let length = self.indices.add(high, low)?;
        let zero = self.indices.number(0);
        Ok(Some(self.indices.maximum(length, zero)?))
    }
}
