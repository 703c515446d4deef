//! Index arithmetic as machine integers: a scalar base per part of a tile, and the offsets of the lanes.

use super::{Cut, cast, dims, malformed, splat};
use crate::lower::select::tile::Layout;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::dim::shape;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// A sum of atoms for one part of a tile.
pub(super) struct Address {
    /// The address of the first lane.
    pub base: Affine,
    /// The stride between lanes.
    pub stride: i64,
    /// Vectors that vary irregularly from lane to lane, each with its factor.
    pub rest: SmallVec<[(NodeId, i64); 2]>,
}

impl Cut {
    pub(super) fn index_sum(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        if graph.dtype(node) != DType::Index {
            return Ok(());
        }
        let op = graph.op(node);
        let sum = match op {
            Op::Stack => return Ok(()),
            Op::Reshape => {
                let dims = dims(graph, node)?;
                let Some(axis) = dims.iter().position(|&size| size > 1) else { return Err(malformed(graph, node)) };
                self.axes.insert(node, axis);
                Affine::atom(node)
            }
            // A broadcast has the same sum.
            Op::Expand => self.sum(graph.source(node, 0)),
            // Only affine sums are tracked: quotients have been simplified before, and are computed lane by lane here.
            Op::Add | Op::Mul => {
                let sources: SmallVec<[Affine; 2]> =
                    graph.sources(node).iter().map(|source| self.sum(*source)).collect();
                Affine::linear(op, &sources).unwrap_or_else(|| Affine::atom(node))
            }
            _ => Affine::leaf(graph, node),
        };
        self.sums.insert(node, sum);
        Ok(())
    }

    /// An index scalar or tile as machine integers: i64 scalars, and vectors as narrow as their values allow.
    pub(super) fn index_part(
        &mut self,
        graph: &mut Graph,
        node: NodeId,
        layout: &Layout,
        at: &[i64],
    ) -> Result<NodeId> {
        let sum = self.sum(node);
        let Address { base, stride, rest } = self.address(graph, &sum, layout, at)?;
        if stride == 0 && rest.is_empty() {
            return self.scalar_sum(graph, &base);
        }
        let (low, high) = sum.bounds(graph);
        let narrow = low >= i32::MIN as i128 && high <= i32::MAX as i128;
        let dtype = if narrow { DType::I32 } else { DType::I64 };
        // The lane offsets are a constant vector, which includes the constant of the sum.
        let steps: SmallVec<[NodeId; 16]> = (0..layout.width)
            .map(|lane| lane.wrapping_mul(stride).wrapping_add(base.constant()))
            .map(|number| graph.constant(Const::int(dtype, number as i128)))
            .collect();
        let mut total = graph.add(Op::Stack, &steps, Arg::None)?;
        if base.as_number().is_none() {
            let base = self.scalar_sum(graph, &base.without_constant())?;
            let base = cast(graph, base, dtype)?;
            let base = splat(graph, base, layout.width)?;
            total = graph.alu(Op::Add, &[base, total])?;
        }
        for (vector, factor) in rest {
            let vector = cast(graph, vector, dtype)?;
            let factor = graph.constant(Const::int(dtype, factor as i128));
            let factor = splat(graph, factor, layout.width)?;
            let term = graph.alu(Op::Mul, &[vector, factor])?;
            total = graph.alu(Op::Add, &[total, term])?;
        }
        Ok(total)
    }

    /// A sum for the part of `layout` that starts at `at`.
    pub(super) fn address(&mut self, graph: &mut Graph, sum: &Affine, layout: &Layout, at: &[i64]) -> Result<Address> {
        let (mut base, mut stride, mut rest) = (Affine::number(sum.constant()), 0i64, SmallVec::new());
        for &(atom, coefficient) in sum.terms() {
            if let Some(&axis) = self.axes.get(&atom) {
                let coordinate = *at.get(axis).ok_or_else(|| malformed(graph, atom))?;
                base = base.offset(coefficient.wrapping_mul(coordinate));
                if Some(axis) == layout.lane {
                    stride = stride.wrapping_add(coefficient);
                }
            } else if self.has_parts(atom) {
                let part = self.part(graph, atom, layout, at)?;
                if graph.props(part).shape.is_empty() {
                    base = base.plus(&Affine::atom(part).scale(coefficient));
                } else {
                    rest.push((part, coefficient));
                }
            } else {
                base = base.plus(&Affine::atom(self.range_of(atom)).scale(coefficient));
            }
        }
        Ok(Address { base, stride, rest })
    }

    /// A sum of machine integers and Ranges, as i64. The sum without its constant is emitted once, since neighbouring
    /// addresses differ only in the constant.
    pub(super) fn scalar_sum(&mut self, graph: &mut Graph, sum: &Affine) -> Result<NodeId> {
        if sum.as_number().is_some() {
            return sum.emit_as(graph, DType::I64);
        }
        let terms = sum.without_constant();
        let total = match self.offsets.get(&terms) {
            Some(&known) => known,
            None => {
                let total = terms.emit_as(graph, DType::I64)?;
                self.offsets.insert(terms, total);
                total
            }
        };
        Affine::atom(total).offset(sum.constant()).emit_as(graph, DType::I64)
    }

    /// The address of `width` consecutive elements.
    pub(super) fn contiguous(
        &mut self,
        graph: &mut Graph,
        buffer: NodeId,
        base: &Affine,
        width: i64,
    ) -> Result<NodeId> {
        let offset = self.scalar_sum(graph, base)?;
        if width == 1 {
            return graph.add(Op::Index, &[buffer, offset], Arg::None);
        }
        let offset = graph.add(Op::Stack, &[offset], Arg::None)?;
        let dims = graph.shape(&shape(&[width]))?;
        graph.add(Op::Shrink, &[buffer, offset, dims], Arg::None)
    }
}

/// Index operands may be a mix of i32 vectors and i64 scalars: converts them to a common type.
pub(super) fn unify_integers(graph: &mut Graph, op: Op, operands: &mut [NodeId]) -> Result<()> {
    // Custom code declares the types of its operands.
    if op == Op::Custom {
        return Ok(());
    }
    let values = if op == Op::Where { 1.. } else { 0.. };
    let Some(values) = operands.get_mut(values) else { return Ok(()) };
    let mixed = values.windows(2).any(|pair| graph.dtype(pair[0]) != graph.dtype(pair[1]));
    if mixed && values.iter().all(|&value| matches!(graph.dtype(value), DType::I32 | DType::I64)) {
        let narrow = |&value: &NodeId| {
            let bounds = graph.props(value).interval.int();
            bounds.is_some_and(|(low, high)| low >= i32::MIN as i128 && high <= i32::MAX as i128)
        };
        let dtype = if values.iter().all(narrow) { DType::I32 } else { DType::I64 };
        for value in values {
            *value = cast(graph, *value, dtype)?;
        }
    }
    Ok(())
}
