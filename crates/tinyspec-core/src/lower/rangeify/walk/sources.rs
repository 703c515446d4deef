//! A demand that is met in the kernel becomes demands on the sources of its node.

use super::super::fusion::value_sources;
use super::super::index::Tuple;
use super::super::movement::{self, broadcast, estimate, shape};
use super::{DemandId, Met, Walk};
use smallvec::{SmallVec, smallvec};
use tinyspec_ir::{Arg, AxisType, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};

impl Walk<'_> {
    /// Passes a demand on to the sources of its node.
    pub(super) fn expand(&mut self, demand: DemandId) -> Result<()> {
        let need = &self.needs[demand as usize];
        let (node, kernel, tuple, gate) = (need.node, need.kernel, need.tuple.clone(), need.gate);
        let tensors = self.tensors;
        let op = tensors.op(node);
        match op {
            // A Param that is not a leaf is a named dim.
            Op::Const | Op::Param => {}
            Op::Permute | Op::Flip | Op::Reshape | Op::Expand | Op::Shrink => {
                let (index, _) = movement::source_index(&mut self.indices, tensors, node, &tuple)?;
                self.pass(demand, kernel, tensors.source(node, 0), index, gate)?;
            }
            Op::Pad => {
                let (index, inside) = movement::source_index(&mut self.indices, tensors, node, &tuple)?;
                self.pass_gated(demand, kernel, tensors.source(node, 0), index, gate, inside)?;
            }
            Op::Index => self.expand_index(demand, &tuple, gate)?,
            Op::Stack => self.expand_stack(demand, &tuple, gate)?,
            Op::Bitcast => self.expand_bitcast(demand, &tuple, gate)?,
            Op::Reduce => self.expand_reduce(demand, &tuple, gate)?,
            Op::After => {
                let value = assigned(tensors, node)?;
                let index = broadcast(&mut self.indices, &tuple, shape(tensors, node), shape(tensors, value));
                self.pass(demand, kernel, value, index, gate)?;
            }
            _ if op.is_elementwise() => {
                for &source in value_sources(tensors, node) {
                    let index = broadcast(&mut self.indices, &tuple, shape(tensors, node), shape(tensors, source));
                    self.pass(demand, kernel, source, index, gate)?;
                }
            }
            _ => {
                let message = "cannot be part of a kernel".to_string();
                return Err(Error::new(ErrorKind::Unsupported, op.name(), message)
                    .help("inline Functions and bind named dims before scheduling"));
            }
        }
        Ok(())
    }

    fn pass(
        &mut self,
        demand: DemandId,
        kernel: usize,
        source: NodeId,
        index: Tuple,
        gate: Option<NodeId>,
    ) -> Result<DemandId> {
        let below = self.demand(source, kernel, index, gate)?;
        self.needs[demand as usize].sources.push(below);
        Ok(below)
    }

    /// Passes a demand on to a source that counts as 0 where `inside` does not hold.
    fn pass_gated(
        &mut self,
        demand: DemandId,
        kernel: usize,
        source: NodeId,
        index: Tuple,
        gate: Option<NodeId>,
        inside: Option<NodeId>,
    ) -> Result<()> {
        if inside.is_some_and(|inside| self.indices.is_never(inside)) {
            self.needs[demand as usize].met = Met::Zero;
            return Ok(());
        }
        let both = self.indices.both(gate, inside)?;
        if inside.is_some() {
            self.needs[demand as usize].inner_gate = both;
        }
        self.pass(demand, kernel, source, index, both)?;
        Ok(())
    }

    /// Index: `(T, i0, …)`; an index that is data becomes a placeholder until its value is built.
    fn expand_index(&mut self, demand: DemandId, tuple: &[NodeId], gate: Option<NodeId>) -> Result<()> {
        let need = &self.needs[demand as usize];
        let (node, kernel) = (need.node, need.kernel);
        let tensors = self.tensors;
        let from = shape(tensors, tensors.source(node, 0));
        let (mut index, mut inside, mut rest) = (Tuple::new(), None, tuple);
        let mut data: SmallVec<[DemandId; 3]> = smallvec![];
        for (&source, dim) in tensors.sources(node)[1..].iter().zip(from) {
            let rank = tensors.props(source).rank();
            let (own, others) = rest.split_at(rank);
            rest = others;
            let known = tensors.props(source).value.as_ref().filter(|_| rank == 0);
            let position = match known.and_then(|value| value.first()) {
                Some(number) => self.indices.dim(number)?,
                None => {
                    let below = self.demand(source, kernel, own.into(), gate)?;
                    data.push(below);
                    let (low, high) =
                        tensors.props(source).interval.int().unwrap_or((i64::MIN.into(), i64::MAX.into()));
                    // A u64 beyond i64 wraps to a negative index, which is out of bounds as well.
                    let clamped = match (i64::try_from(low), i64::try_from(high)) {
                        (Ok(low), Ok(high)) => (low.min(0), high.max(0)),
                        _ => (i64::MIN, i64::MAX),
                    };
                    let ranges = self.indices.ranges_of(own.iter().copied().chain(gate));
                    self.indices.placeholder(below, clamped, ranges)?
                }
            };
            let fits = self.indices.within_dim(position, dim)?;
            inside = self.indices.both(inside, fits)?;
            index.push(position);
        }
        index.extend(rest.iter().copied());
        self.pass_gated(demand, kernel, tensors.source(node, 0), index, gate, inside)?;
        self.needs[demand as usize].sources.extend(data);
        Ok(())
    }

    fn expand_stack(&mut self, demand: DemandId, tuple: &[NodeId], gate: Option<NodeId>) -> Result<()> {
        let need = &self.needs[demand as usize];
        let (node, kernel) = (need.node, need.kernel);
        let Some((&selector, rest)) = tuple.split_first() else { return Ok(()) };
        let (low, high) = self.indices.graph.props(selector).interval.int().unwrap_or((0, 0));
        for (position, &source) in self.tensors.sources(node).iter().enumerate() {
            if low <= position as i128 && position as i128 <= high {
                self.pass(demand, kernel, source, rest.into(), gate)?;
                self.needs[demand as usize].picks.push(position as i64);
            }
        }
        Ok(())
    }

    /// A Bitcast to another size reads the element that contains the bytes, or the elements that consist of them.
    fn expand_bitcast(&mut self, demand: DemandId, tuple: &[NodeId], gate: Option<NodeId>) -> Result<()> {
        let need = &self.needs[demand as usize];
        let (node, kernel) = (need.node, need.kernel);
        let source = self.tensors.source(node, 0);
        let (from, to) = (self.tensors.dtype(source).size() as i64, self.tensors.dtype(node).size() as i64);
        let mut index: Tuple = tuple.into();
        match index.last().copied() {
            Some(last) if from > to => {
                let inner = self.indices.divide(last, from / to)?;
                *index.last_mut().unwrap_or(&mut tuple[0].clone()) = inner;
                self.pass(demand, kernel, source, index, gate)?;
            }
            Some(last) if from < to => {
                let axis = index.len() - 1;
                let first = self.indices.scale(last, to / from)?;
                for part in 0..to / from {
                    index[axis] = self.indices.offset(first, part)?;
                    self.pass(demand, kernel, source, index.clone(), gate)?;
                }
            }
            _ => {
                self.pass(demand, kernel, source, index, gate)?;
            }
        }
        Ok(())
    }

    fn expand_reduce(&mut self, demand: DemandId, tuple: &[NodeId], gate: Option<NodeId>) -> Result<()> {
        let need = &self.needs[demand as usize];
        let (node, kernel) = (need.node, need.kernel);
        let source = self.tensors.source(node, 0);
        let Arg::Reduce { axes, .. } = self.tensors.arg(node) else { return Ok(()) };
        let from = shape(self.tensors, source);
        let outer = self.ranges_of(demand);
        let mut trips = self.trips_of(&outer);
        let mut index: Tuple = tuple.into();
        for &axis in axes {
            let extent = &from[axis as usize];
            if extent.is(1) {
                continue;
            }
            let range = self.indices.fresh_range(extent, AxisType::Reduce)?;
            trips *= estimate(extent) as f64;
            self.trips.insert(range, trips);
            index[axis as usize] = range;
            self.needs[demand as usize].ranges.push(range);
        }
        self.pass(demand, kernel, source, index, gate)?;
        Ok(())
    }
}

/// The value of `After(buffer, Store(buffer, value))`.
fn assigned(graph: &Graph, node: NodeId) -> Result<NodeId> {
    let buffer = graph.source(node, 0);
    let mut value = buffer;
    for &effect in &graph.sources(node)[1..] {
        match graph.sources(effect) {
            &[target, stored] if graph.op(effect) == Op::Store && target == buffer => value = stored,
            _ => {
                let message = format!("waits for {}, which no kernel can contain", graph.op(effect));
                return Err(Error::new(ErrorKind::Unsupported, Op::After.name(), message)
                    .help("an assignment stores to a buffer, or to a view of one that has each element once"));
            }
        }
    }
    Ok(value)
}
