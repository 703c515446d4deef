//! Words of two terms of a sum of products, and the instruction that multiplies them.

use super::stage::Form;
use super::{Rebuild, gated_load};
use crate::lower::fold::identity;
use crate::lower::live::RangeSet;
use crate::lower::optimize::kernel::slot;
use crate::lower::optimize::packed_dot::Product;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

impl Rebuild<'_> {
    /// The product of two words.
    pub(super) fn product(&mut self, graph: &mut Graph, product: &Product) -> Result<()> {
        let dtype = graph.dtype(product.node);
        let mut sources: SmallVec<[NodeId; 3]> = SmallVec::new();
        let mut vanishes: Option<RangeSet> = None;
        for load in product.loads {
            let (word, padded) = self.word(graph, load)?;
            sources.push(word);
            // 0 times an unknown float may be nan.
            vanishes =
                Some(vanishes.map_or(padded, |other| if dtype.is_float() { other & padded } else { other | padded }));
        }
        sources.push(identity(graph, Op::Add, dtype));
        let new = graph.add(Op::Wmma, &sources, Arg::Text(product.dtype.name().into()))?;
        self.new[product.node.index()] = Some(new);
        self.vanishes[product.node.index()] = vanishes.unwrap_or(0);
        Ok(())
    }

    /// The word that a Load is the first half of, and the padded ranges beyond whose bounds it is 0.
    fn word(&mut self, graph: &mut Graph, load: NodeId) -> Result<(NodeId, RangeSet)> {
        let (Some(&access), Some(words)) = (self.accesses.get(&load), self.space.words) else {
            return Err(Error::new(ErrorKind::Verify, Op::Wmma.name(), "an operand is not a Load of the kernel"));
        };
        let step = access.index.coefficient(self.space.origins[words].range);
        let index = self.sum(graph, graph.source(graph.source(load, 0), 1));
        let alt = identity(graph, Op::Add, access.dtype);
        let padded = access.open & self.padded;
        let staged = self.space.stages.iter().find(|stage| Some(stage.slot) == slot(graph, access.buffer));
        if let Some(&staged) = staged
            && let Some(copy) = self.stage(graph, access, &index, (alt, None), Form::Words(step), staged)?
        {
            return Ok((copy, padded));
        }
        let axes = std::mem::take(&mut self.axes);
        let word = self.halves(|rebuild, half| {
            let valid = rebuild.valid(graph, access.open, &axes)?;
            gated_load(graph, access.buffer, &index.offset(half * step), alt, valid)
        });
        self.axes = axes;
        Ok((join(graph, word?)?, padded))
    }

    /// Both halves of a word.
    pub(super) fn halves(&mut self, mut of: impl FnMut(&mut Self, i64) -> Result<NodeId>) -> Result<[NodeId; 2]> {
        let mut one = |half: i64| {
            self.half = half;
            let value = of(self, half);
            self.half = 0;
            value
        };
        Ok([one(0)?, one(1)?])
    }
}

/// Two numbers in a word, the first one in the lower half.
pub(super) fn join(graph: &mut Graph, halves: [NodeId; 2]) -> Result<NodeId> {
    let bits = |graph: &mut Graph, half: NodeId| {
        let bits = match graph.dtype(half) {
            DType::BF16 => graph.add(Op::Bitcast, &[half], Arg::DType(DType::U16))?,
            _ => half,
        };
        graph.add(Op::Cast, &[bits], Arg::DType(DType::U32))
    };
    let (mut low, high) = (bits(graph, halves[0])?, bits(graph, halves[1])?);
    if matches!(graph.dtype(halves[0]), DType::I8 | DType::I16) {
        let mask = graph.constant(Const::int(DType::U32, 0xffff));
        low = graph.alu(Op::And, &[low, mask])?;
    }
    let width = graph.constant(Const::int(DType::U32, 16));
    let high = graph.alu(Op::Shl, &[high, width])?;
    graph.alu(Op::Or, &[low, high])
}
