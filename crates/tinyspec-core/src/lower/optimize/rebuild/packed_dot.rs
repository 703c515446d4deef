//! Words of several terms of a sum of products, and the instruction that multiplies them.

use super::stage::Form;
use super::{Rebuild, gated_load};
use crate::lower::fold::identity;
use crate::lower::live::RangeSet;
use crate::lower::optimize::kernel::slot;
use crate::lower::optimize::packed_dot::Product;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result, words};

/// The numbers of a word, the first one in the lowest bits.
type Parts = SmallVec<[NodeId; 4]>;

/// How elements are packed into words.
#[derive(Clone, Copy)]
pub(super) struct Word {
    /// The stride of the numbers in memory.
    step: i64,
    /// The dtype of its elements.
    numbers: DType,
    /// Whether signed bytes become unsigned ones, biased by 128.
    biased: bool,
}

impl Word {
    /// Whether the numbers of a word are adjacent in memory.
    pub(super) fn is_contiguous(self) -> bool {
        self.step == 1
    }

    pub(super) fn count(self) -> i64 {
        words::count(self.numbers) as i64
    }
}

impl Rebuild<'_> {
    /// The product of two words.
    pub(super) fn product(&mut self, graph: &mut Graph, product: &Product) -> Result<()> {
        let dtype = graph.dtype(product.node);
        let zero = identity(graph, Op::Add, dtype);
        let loads = self.unsigned_first(graph, product);
        let is_signed = |load: NodeId| graph.dtype(load) == DType::I8;
        let biased = self.space.facts.numbers == Some(DType::U8) && loads.iter().all(|&load| is_signed(load));
        let mut operands: SmallVec<[NodeId; 2]> = SmallVec::new();
        let mut vanishes: Option<RangeSet> = None;
        for (position, load) in loads.into_iter().enumerate() {
            let (word, padded) = self.word(graph, load, biased && position == 0)?;
            operands.push(word);
            // 0 times an unknown float may be nan.
            vanishes =
                Some(vanishes.map_or(padded, |other| if dtype.is_float() { other & padded } else { other | padded }));
        }
        let arg = Arg::Text(self.space.facts.numbers.map_or("", DType::name).into());
        if biased {
            // The bias adds 128 times the other factor to each product.
            let bias = graph.constant(Const::int(DType::I32, BIAS));
            self.excess = Some(graph.add(Op::Wmma, &[bias, operands[1], zero], arg.clone())?);
        }
        let new = graph.add(Op::Wmma, &[operands[0], operands[1], zero], arg)?;
        self.new[product.node.index()] = Some(new);
        self.vanishes[product.node.index()] = vanishes.unwrap_or(0);
        Ok(())
    }

    /// The Loads of the operands, the one that the instruction takes as unsigned bytes first. Of two signed operands it is the one
    /// with more vectors in a tile, because the correction for its bias sums the other.
    fn unsigned_first(&self, graph: &Graph, product: &Product) -> [NodeId; 2] {
        let [a, b] = product.loads;
        let vectors = |load: NodeId| -> i64 {
            let open = self.accesses.get(&load).map_or(0, |access| access.open);
            let is_inside = |axis: &usize| {
                let axis = &self.space.axes[*axis];
                axis.kind == AxisType::Upcast && open & self.kernel.live.bit(self.space.origins[axis.origin].range) != 0
            };
            let tile = (0..self.space.axes.len()).filter(is_inside);
            let lanes = self.target.lanes(DType::I32) as i64;
            let vectors = |axis: usize| {
                let trips = self.space.axes[axis].trips.unwrap_or(1);
                if self.space.is_lane(axis) { (trips + lanes - 1) / lanes } else { trips }
            };
            tile.map(vectors).product()
        };
        match [a, b].map(|load| graph.dtype(load) == DType::U8) {
            [true, false] => [a, b],
            [false, true] => [b, a],
            _ if vectors(a) < vectors(b) => [b, a],
            _ => [a, b],
        }
    }

    /// The word that a Load is the first number of, and the padded ranges beyond whose bounds it is 0.
    fn word(&mut self, graph: &mut Graph, load: NodeId, biased: bool) -> Result<(NodeId, RangeSet)> {
        let (Some(&access), Some(origin), Some(numbers)) =
            (self.accesses.get(&load), self.space.words, self.space.facts.numbers)
        else {
            return Err(Error::new(ErrorKind::Verify, Op::Wmma.name(), "an operand is not a Load of the kernel"));
        };
        let step = access.index.coefficient(self.space.origins[origin].range);
        let word = Word { step, numbers, biased };
        let index = self.sum(graph, graph.source(graph.source(load, 0), 1));
        let alt = identity(graph, Op::Add, access.dtype);
        let padded = access.open & self.padded;
        let packing = slot(graph, access.buffer).and_then(|slot| self.space.packing(slot));
        if let Some(packing) = packing
            && let Some(copy) = self.stage(graph, access, &index, (alt, None), Form::Words(word), packing)?
        {
            return Ok((copy, padded));
        }
        let axes = std::mem::take(&mut self.axes);
        let joined = self.joined(graph, word, |rebuild, graph, offset| {
            let valid = rebuild.valid(graph, access.open, &axes)?;
            gated_load(graph, access.buffer, &index.offset(offset), alt, valid)
        });
        self.axes = axes;
        Ok((joined?, padded))
    }

    /// Packs a word of the numbers that `of` gives for each offset from the first one.
    pub(super) fn joined(
        &mut self,
        graph: &mut Graph,
        word: Word,
        mut of: impl FnMut(&mut Self, &mut Graph, i64) -> Result<NodeId>,
    ) -> Result<NodeId> {
        let mut parts = Parts::new();
        for part in 0..word.count() {
            self.part = part;
            let value = of(self, graph, part * word.step);
            self.part = 0;
            parts.push(value?);
        }
        join(graph, &parts, word)
    }
}

/// 128 in each byte.
const BIAS: i128 = 0x8080_8080_u32 as i32 as i128;

/// A number of a word as its unsigned bits.
fn in_word(graph: &mut Graph, part: NodeId, numbers: DType) -> Result<NodeId> {
    let bits = match numbers {
        DType::U8 => DType::U8,
        _ => DType::U16,
    };
    match graph.dtype(part) {
        dtype if dtype == bits => Ok(part),
        dtype if dtype.size() == bits.size() => graph.add(Op::Bitcast, &[part], Arg::DType(bits)),
        _ => graph.add(Op::Cast, &[part], Arg::DType(bits)),
    }
}

fn join(graph: &mut Graph, parts: &[NodeId], word: Word) -> Result<NodeId> {
    let bits = 8 * word.numbers.size() as i128;
    let mut joined: Option<NodeId> = None;
    for (position, &part) in (0..).zip(parts) {
        let number = in_word(graph, part, word.numbers)?;
        let mut number = graph.add(Op::Cast, &[number], Arg::DType(DType::U32))?;
        if position > 0 {
            let shift = graph.constant(Const::int(DType::U32, bits * position));
            number = graph.alu(Op::Shl, &[number, shift])?;
        }
        joined = Some(match joined {
            Some(others) => graph.alu(Op::Or, &[others, number])?,
            None => number,
        });
    }
    let joined = joined.unwrap_or_else(|| graph.constant(Const::int(DType::U32, 0)));
    if word.numbers != DType::U8 {
        return Ok(joined);
    }
    let joined = graph.add(Op::Bitcast, &[joined], Arg::DType(DType::I32))?;
    let bias = graph.constant(Const::int(DType::I32, BIAS));
    if word.biased { graph.alu(Op::Xor, &[joined, bias]) } else { Ok(joined) }
}
