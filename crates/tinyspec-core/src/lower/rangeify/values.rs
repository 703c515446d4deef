//! From demands to values: one sweep upwards builds the scalar for each demand.

use super::count::Count;
use super::index::{Tuple, dim_of};
use super::movement::shape;
use super::nested;
use super::walk::{DemandId, Met, Walk};
use crate::lower::terms::holds;
use smallvec::SmallVec;
use tinyspec_ir::eval::eval_op;
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, DType, Dim, NodeId, Op, Result, Shape};

/// The dtype in which values of `dtype` are stored.
pub(super) fn storage(dtype: DType) -> DType {
    if dtype == DType::Index { DType::I64 } else { dtype }
}

impl Walk<'_> {
    /// The scalar of each demand, by its number.
    pub(super) fn values(&mut self, live: &[NodeId]) -> Result<Vec<NodeId>> {
        // Every node is visited after its sources, so no demand is read before it is built.
        let mut values = vec![NodeId(0); self.needs.len()];
        for &node in live {
            for position in 0..self.of_node[node.index()].len() {
                let demand = self.of_node[node.index()][position];
                let value = self.value(demand, &values).map_err(|error| self.tensors.located(node, error))?;
                values[demand as usize] = value;
            }
        }
        Ok(values)
    }

    fn value(&mut self, demand: DemandId, values: &[NodeId]) -> Result<NodeId> {
        let need = &self.needs[demand as usize];
        let node = need.node;
        let dtype = self.tensors.dtype(node);
        match need.met {
            Met::Zero => return Ok(self.indices.graph.constant(Const::int(dtype, 0))),
            Met::Load => return self.load(demand),
            Met::Count(count) => return self.counted(count, dtype),
            Met::Inline => {}
        }
        let below: SmallVec<[NodeId; 3]> = need.sources.iter().map(|&source| values[source as usize]).collect();
        let (inner_gate, tuple) = (need.inner_gate, need.tuple.clone());
        let graph = &mut self.indices.graph;
        let (op, arg) = (self.tensors.op(node), self.tensors.arg(node));
        match op {
            Op::Const => graph.add(op, &[], arg.clone()),
            Op::Param => {
                let dim = dim_of(self.tensors, node).unwrap_or_else(|| Dim::from(0));
                self.indices.dim(&dim)
            }
            Op::Pad | Op::Index => match inner_gate {
                // A load with the same gate is already 0 outside it.
                Some(gate) if graph.op(below[0]) != Op::Load || graph.sources(below[0]).get(2) != Some(&gate) => {
                    let zero = graph.constant(Const::int(dtype, 0));
                    graph.alu(Op::Where, &[gate, below[0], zero])
                }
                _ => Ok(below[0]),
            },
            Op::Stack => self.pick(demand, &below),
            Op::Bitcast => self.bitcast(node, &tuple, &below),
            Op::Reduce => self.reduce(demand, below[0]),
            Op::Add | Op::Mul => match self.ramp(op, &below)? {
                Some(ramp) => Ok(ramp),
                None => self.indices.graph.add(op, &below, arg.clone()),
            },
            // Casts between integer widths stay: kernels pack pairs of integers into one.
            Op::Cast if dtype.is_float() || graph.dtype(below[0]).is_float() => match self.cast_ramp(below[0], dtype) {
                Some(index) => from_index(&mut self.indices.graph, index, dtype),
                None => self.indices.graph.add(op, &below, arg.clone()),
            },
            _ if op.is_elementwise() => graph.add(op, &below, arg.clone()),
            _ => Ok(below[0]),
        }
    }

    /// The constant times the number of trips, computed in the accumulator's dtype.
    fn counted(&mut self, count: Count, dtype: DType) -> Result<NodeId> {
        let wide = dtype.accumulator();
        let mut value = from_index(&mut self.indices.graph, count.trips, wide)?;
        let factor = eval_op(Op::Cast, wide, &[count.value])?;
        if factor != Const::int(wide, 1) {
            let factor = self.indices.graph.constant(factor);
            value = match self.ramp(Op::Mul, &[value, factor])? {
                Some(ramp) => ramp,
                None => self.indices.graph.alu(Op::Mul, &[value, factor])?,
            };
        }
        let value = match self.cast_ramp(value, dtype) {
            Some(index) => from_index(&mut self.indices.graph, index, dtype)?,
            None => cast(&mut self.indices.graph, value, dtype)?,
        };
        let graph = &mut self.indices.graph;
        match count.gate {
            Some(gate) => {
                let zero = graph.constant(Const::int(dtype, 0));
                graph.alu(Op::Where, &[gate, value, zero])
            }
            None => Ok(value),
        }
    }

    /// An integer value derived from indices and constants, as one index; `None` if that could wrap or round.
    fn ramp(&mut self, op: Op, below: &[NodeId]) -> Result<Option<NodeId>> {
        let &[value, other] = below else { return Ok(None) };
        let dtype = self.indices.graph.dtype(value);
        let Some(index) = self.cast_index(value) else { return Ok(None) };
        let number = self.indices.graph.as_const(other).and_then(Const::as_whole);
        // 0 times a negative float is -0.
        if op == Op::Mul && dtype.is_float() && number.is_none_or(|number| number <= 0) {
            return Ok(None);
        }
        let mut parts: SmallVec<[NodeId; 3]> = SmallVec::from_iter([index]);
        let made = match (op, number) {
            (Op::Add, Some(number)) => {
                let made = self.indices.offset(index, number)?;
                // A value that wraps around would differ from the index.
                match dtype.int_range() {
                    Some((least, most)) if !holds(&self.indices.graph, dtype, made) => {
                        let Ok(number) = i64::try_from(number as i128 - (most - least + 1)) else { return Ok(None) };
                        self.indices.offset(index, number)?
                    }
                    _ => made,
                }
            }
            (_, Some(number)) => self.indices.scale(index, number)?,
            // A quotient and its remainder recombine.
            (Op::Add, None) => {
                let Some(other) = self.cast_index(other) else { return Ok(None) };
                parts.push(other);
                self.indices.add(index, other)?
            }
            _ => return Ok(None),
        };
        parts.push(made);
        if !parts.iter().all(|&part| holds(&self.indices.graph, dtype, part)) {
            return Ok(None);
        }
        Ok(Some(from_index(&mut self.indices.graph, made, dtype)?))
    }

    /// The index that a value is a Cast of, if both its dtype and `to` can represent it.
    fn cast_ramp(&self, value: NodeId, to: DType) -> Option<NodeId> {
        let (graph, index) = (&self.indices.graph, self.cast_index(value)?);
        (holds(graph, graph.dtype(value), index) && holds(graph, to, index)).then_some(index)
    }

    /// The index that a value is a Cast of, possibly through other dtypes that can represent it.
    fn cast_index(&self, value: NodeId) -> Option<NodeId> {
        let graph = &self.indices.graph;
        let below = |node: NodeId| graph.sources(node).first().copied().filter(|_| graph.op(node) == Op::Cast);
        let mut between: SmallVec<[DType; 2]> = SmallVec::new();
        let mut index = below(value)?;
        while graph.dtype(index) != DType::Index {
            between.push(graph.dtype(index));
            index = below(index)?;
        }
        between.iter().all(|&dtype| holds(graph, dtype, index)).then_some(index)
    }

    fn load(&mut self, demand: DemandId) -> Result<NodeId> {
        let need = &self.needs[demand as usize];
        let (node, tuple, gate) = (need.node, need.tuple.clone(), need.gate);
        let size = shape(self.tensors, node);
        let dtype = self.tensors.dtype(node);
        let layout = self.layout(node, size.len());
        let in_order: Tuple = layout.iter().map(|&axis| tuple[axis]).collect();
        let extents: Shape = layout.iter().map(|&axis| size[axis].clone()).collect();
        let position = self.indices.flat(&in_order, &extents)?;
        let (position, length) = (self.placed(node, position)?, self.length(node));
        let graph = &mut self.indices.graph;
        let length = graph.shape(&Shape::from_iter([length]))?;
        let arg = Arg::Param { slot: node.0, dtype: storage(dtype), device: None, addrspace: Some(AddrSpace::Global) };
        let buffer = graph.add(Op::Param, &[length], arg)?;
        let address = graph.add(Op::Index, &[buffer, position], Arg::None)?;
        let arg = Arg::Load { device: None, addrspace: AddrSpace::Reg };
        let value = match gate {
            Some(gate) => {
                let outside = graph.constant(Const::int(storage(dtype), 0));
                graph.add(Op::Load, &[address, outside, gate], arg)?
            }
            None => graph.add(Op::Load, &[address], arg)?,
        };
        if storage(dtype) == dtype { Ok(value) } else { graph.add(Op::Cast, &[value], Arg::DType(dtype)) }
    }

    /// The element of a Stack that the index selects.
    fn pick(&mut self, demand: DemandId, below: &[NodeId]) -> Result<NodeId> {
        let need = &self.needs[demand as usize];
        let (selector, picks) = (need.tuple[0], need.picks.clone());
        let graph = &mut self.indices.graph;
        let Some((&last, others)) = below.split_last() else {
            let dtype = self.tensors.dtype(need.node);
            return Ok(graph.constant(Const::int(dtype, 0)));
        };
        let mut value = last;
        for (&element, &position) in others.iter().zip(&picks).rev() {
            let bound = graph.index(position + 1);
            // Later elements are chosen first, so "up to here" is enough.
            let here = graph.alu(Op::CmpLt, &[selector, bound])?;
            value = graph.alu(Op::Where, &[here, element, value])?;
        }
        Ok(value)
    }

    /// Reduce over fresh Ranges; small types accumulate in a larger one.
    fn reduce(&mut self, demand: DemandId, value: NodeId) -> Result<NodeId> {
        let need = &self.needs[demand as usize];
        let (node, ranges) = (need.node, need.ranges.clone());
        let Arg::Reduce { op, axes } = self.tensors.arg(node) else { return Ok(value) };
        if ranges.is_empty() {
            return Ok(value);
        }
        debug_assert!(!axes.is_empty());
        let dtype = self.tensors.dtype(node);
        let wide = dtype.accumulator_of(*op);
        let graph = &mut self.indices.graph;
        let value = cast(graph, value, wide)?;
        let (value, ranges) =
            if *op == Op::Add { nested::flattened(&mut self.indices, value, ranges)? } else { (value, ranges) };
        let graph = &mut self.indices.graph;
        let sources: SmallVec<[NodeId; 4]> = std::iter::once(value).chain(ranges).collect();
        let total = graph.add(Op::Reduce, &sources, Arg::Reduce { op: *op, axes: SmallVec::new() })?;
        cast(graph, total, dtype)
    }

    fn bitcast(&mut self, node: NodeId, tuple: &[NodeId], below: &[NodeId]) -> Result<NodeId> {
        let (from, to) = (self.tensors.dtype(self.tensors.source(node, 0)), self.tensors.dtype(node));
        let graph = &mut self.indices.graph;
        if from.size() == to.size() {
            return reinterpret(graph, below[0], to);
        }
        let (narrow, wide) = (unsigned(from), unsigned(to));
        let bits = |index: i64, size: usize| index * 8 * size as i64;
        if from.size() > to.size() {
            let parts = (from.size() / to.size()) as i64;
            let value = reinterpret(graph, below[0], narrow)?;
            let last = tuple.last().copied().unwrap_or(NodeId(0));
            let part = self.indices.remainder(last, parts)?;
            let shift = self.indices.scale(part, bits(1, to.size()))?;
            let graph = &mut self.indices.graph;
            let shift = cast(graph, shift, narrow)?;
            let shifted = graph.alu(Op::Shr, &[value, shift])?;
            let value = cast(graph, shifted, wide)?;
            return reinterpret(graph, value, to);
        }
        let mut total: Option<NodeId> = None;
        for (part, &value) in below.iter().enumerate() {
            let value = reinterpret(graph, value, narrow)?;
            let value = cast(graph, value, wide)?;
            let shift = graph.constant(Const::int(wide, bits(part as i64, from.size()) as i128));
            let value = graph.alu(Op::Shl, &[value, shift])?;
            total = Some(match total {
                Some(total) => graph.alu(Op::Or, &[total, value])?,
                None => value,
            });
        }
        match total {
            Some(total) => reinterpret(graph, total, to),
            None => Ok(below[0]),
        }
    }
}

/// The index as a number of `dtype`. The conversion to a float goes through i32 if possible, which vectors can convert.
fn from_index(graph: &mut tinyspec_ir::Graph, index: NodeId, dtype: DType) -> Result<NodeId> {
    let is_short = dtype.is_float() && holds(graph, DType::I32, index);
    let index = if is_short { cast(graph, index, DType::I32)? } else { index };
    cast(graph, index, dtype)
}

fn cast(graph: &mut tinyspec_ir::Graph, value: NodeId, dtype: DType) -> Result<NodeId> {
    if graph.dtype(value) == dtype { Ok(value) } else { graph.add(Op::Cast, &[value], Arg::DType(dtype)) }
}

/// Reinterprets bits as another type of the same size. A bool counts as 0 or 1.
fn reinterpret(graph: &mut tinyspec_ir::Graph, value: NodeId, dtype: DType) -> Result<NodeId> {
    let from = graph.dtype(value);
    if from == dtype {
        return Ok(value);
    }
    let op = if from == DType::Bool || dtype == DType::Bool { Op::Cast } else { Op::Bitcast };
    graph.add(op, &[value], Arg::DType(dtype))
}

fn unsigned(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    }
}
