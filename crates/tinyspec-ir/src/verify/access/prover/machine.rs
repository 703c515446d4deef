//! Machine values of indices: sums and products wrap at 64 bits, and comparisons and quotients see the wrapped values.

use super::super::poly::Poly;
use super::Prover;
use crate::{AddrSpace, Builder, DType, NodeId, Op};

/// An upper bound on the elements of a buffer, beyond any memory.
const MOST_ELEMENTS: i128 = 1 << 48;

impl Prover<'_> {
    /// The machine value of an index: if it may wrap at 64 bits, nothing is known about it.
    pub fn machine(&mut self, node: NodeId, other: bool) -> Poly {
        if let Some(known) = self.machines.get(&(node, other)) {
            return known.clone();
        }
        let poly = self.poly(node, other);
        let poly = if self.fits(node, &poly) { poly } else { self.opaque(node, other) };
        self.machines.insert((node, other), poly.clone());
        poly
    }

    /// Whether the sum fits in 64 bits.
    fn fits(&mut self, node: NodeId, poly: &Poly) -> bool {
        if !self.overflows(node) {
            return true;
        }
        // Buffers have fewer elements than memory has bytes, whatever their dims.
        let buffers = self.buffers();
        self.under(&buffers, |prover| {
            prover.holds(&Poly::constant(i64::MAX.into()).minus(poly))
                && prover.holds(&poly.plus(&Poly::constant(i64::MAX.into())))
        })
    }

    /// Whether the intervals of its operands fail to show that it fits.
    fn overflows(&self, node: NodeId) -> bool {
        let graph = self.graph;
        self.arithmetic_below(node).into_iter().any(|node| {
            let of = |position: usize| graph.props(graph.source(node, position)).interval.int();
            let ends = match graph.op(node) {
                Op::Add => of(0).zip(of(1)).map(|(a, b)| vec![a.0.saturating_add(b.0), a.1.saturating_add(b.1)]),
                Op::Mul => of(0).zip(of(1)).map(|(a, b)| {
                    [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| a.saturating_mul(b)).to_vec()
                }),
                Op::Cast if graph.dtype(graph.source(node, 0)).is_int() => of(0).map(|a| vec![a.0, a.1]),
                _ => return false,
            };
            graph.dtype(node) == DType::Index
                && ends.is_none_or(|ends| ends.iter().any(|&end| i64::try_from(end).is_err()))
        })
    }

    /// The facts about the sizes of all buffers.
    fn buffers(&mut self) -> Vec<Poly> {
        let graph = self.graph;
        let is_buffer =
            |node: &NodeId| graph.op(*node) == Op::Param && graph.props(*node).addrspace == Some(AddrSpace::Global);
        let buffers: Vec<NodeId> = graph.nodes().filter(is_buffer).collect();
        let sizes = buffers.into_iter().map(|buffer| {
            let dims = graph.sources(graph.source(buffer, 0)).to_vec();
            let size = dims.into_iter().fold(Poly::constant(1), |size, dim| size.times(&self.poly(dim, false)));
            Poly::constant(MOST_ELEMENTS).minus(&size)
        });
        let mut sizes: Vec<Poly> = sizes.collect();
        sizes.dedup();
        sizes
    }

    /// The machine values of both operands.
    pub(super) fn both(&mut self, node: NodeId, other: bool) -> [Poly; 2] {
        [0, 1].map(|position| self.machine(self.graph.source(node, position), other))
    }
}
