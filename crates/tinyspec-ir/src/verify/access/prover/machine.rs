//! Indices on a machine: sums and products go round at 64 bits, comparisons and quotients look at what is left.

use super::super::poly::Poly;
use super::Prover;
use crate::{AddrSpace, Builder, DType, NodeId, Op};

/// More elements than any memory has.
const MOST_ELEMENTS: i128 = 1 << 48;

impl Prover<'_> {
    /// What a machine makes of an index: where 64 bits may not hold it, nothing is known of the result.
    pub fn machine(&mut self, node: NodeId, other: bool) -> Poly {
        if let Some(known) = self.machines.get(&(node, other)) {
            return known.clone();
        }
        let poly = self.poly(node, other);
        let poly = if self.fits(node, &poly) { poly } else { self.opaque(node, other) };
        self.machines.insert((node, other), poly.clone());
        poly
    }

    /// The sum is what 64 bits hold.
    fn fits(&mut self, node: NodeId, poly: &Poly) -> bool {
        if !self.overflows(node) {
            return true;
        }
        // Buffers have less elements than there are bytes, whatever their dims.
        let buffers = self.buffers();
        self.under(&buffers, |prover| {
            prover.holds(&Poly::constant(i64::MAX.into()).minus(poly))
                && prover.holds(&poly.plus(&Poly::constant(i64::MAX.into())))
        })
    }

    /// The intervals of what it is made of do not say that it fits.
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

    /// What is known of the sizes of all buffers.
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

    /// The operands of what does not go round at 64 bits.
    pub(super) fn both(&mut self, node: NodeId, other: bool) -> [Poly; 2] {
        [0, 1].map(|position| self.machine(self.graph.source(node, position), other))
    }
}
