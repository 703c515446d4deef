//! Words packed from numbers that are adjacent in memory, the operands of packed dot products: one contiguous load fills a vector of
//! words, masked where the last word of a row is partial.

use super::address::Address;
use super::gate::Lane;
use super::{Cut, New, dims, splat};
use crate::lower::select::tile::{Dims, Layout, Parts};
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// The Loads of a word, the lowest bits first.
pub(super) struct Word {
    loads: SmallVec<[NodeId; 4]>,
    buffer: NodeId,
    index: Affine,
    /// The value of masked-off lanes, if the Loads are gated.
    alt: Option<NodeId>,
}

impl Word {
    /// The index of the first number.
    pub(super) fn index(&self) -> &Affine {
        &self.index
    }

    /// The number of elements in the word.
    pub(super) fn count(&self) -> i64 {
        self.loads.len() as i64
    }

    /// The gate of a number.
    fn gate(&self, graph: &Graph, number: usize) -> Option<NodeId> {
        graph.sources(self.loads[number]).get(2).copied()
    }
}

impl Cut {
    /// The vectors of such words; `None` for any other value, or if neither the lanes nor another axis of the tile go from
    /// word to word.
    pub(super) fn words(&mut self, graph: &mut Graph, node: NodeId) -> Result<Option<New>> {
        let layout = self.layout(dims(graph, node)?);
        let (Some(lane), Some(word)) = (layout.lane, self.word(graph, node)) else { return Ok(None) };
        let next =
            |&axis: &usize| layout.dims[axis] % layout.width == 0 && self.step(&word.index, axis) == word.count();
        let Some(along) = std::iter::once(lane).chain(0..layout.dims.len()).find(next) else { return Ok(None) };
        let parts = if along == lane {
            let mut parts = Vec::with_capacity(layout.count());
            for at in layout.starts() {
                let Some(part) = self.row_of_words(graph, &word, &layout, along, &at)? else { return Ok(None) };
                parts.push(part);
            }
            Some(parts)
        } else {
            self.turned(graph, &layout, along, |cut, graph, at| cut.row_of_words(graph, &word, &layout, along, at))?
        };
        Ok(parts.map(|parts| New::Value(Parts { layout, parts })))
    }

    /// Matches a value that is such a word.
    pub(super) fn word(&self, graph: &Graph, node: NodeId) -> Option<Word> {
        if graph.op(node) != Op::Or {
            return None;
        }
        let mut numbers: SmallVec<[(i64, NodeId); 4]> = SmallVec::new();
        let mut others: SmallVec<[NodeId; 4]> = SmallVec::from_iter([node]);
        while let Some(node) = others.pop() {
            match graph.op(node) {
                Op::Or => others.extend_from_slice(graph.sources(node)),
                _ => numbers.push(shifted_load(graph, node)?),
            }
        }
        numbers.sort_unstable();
        let loads: SmallVec<[NodeId; 4]> = numbers.iter().map(|number| number.1).collect();
        let place = |load: NodeId| {
            let index = graph.source(load, 0);
            let is_index = graph.op(index) == Op::Index && graph.sources(index).len() == 2;
            is_index.then(|| (graph.source(index, 0), self.sum(graph.source(index, 1))))
        };
        let (buffer, index) = place(*loads.first()?)?;
        let dtype = graph.dtype(buffer);
        let (bits, count) = (8 * dtype.size() as i64, loads.len() as i64);
        let follows = |(number, &(shift, load)): (i64, &(i64, NodeId))| {
            shift == bits * number && place(load) == Some((buffer, index.offset(number)))
        };
        let is_word = bits * count == 8 * graph.dtype(node).size() as i64 && (0..).zip(&numbers).all(follows);
        // Other parts of the index may vary irregularly within the tile.
        let is_regular = |&(atom, _): &(NodeId, i64)| self.axes.contains_key(&atom) || !self.has_parts(atom);
        let alt = |load: NodeId| graph.sources(load).get(1).copied();
        let own = alt(loads[0]);
        let fits = loads.iter().all(|&load| alt(load) == own)
            && own.is_none_or(|alt| self.masked && graph.as_const(alt).is_some());
        let is_regular = index.terms().iter().all(is_regular);
        (is_word && fits && is_regular).then_some(Word { loads, buffer, index, alt: own })
    }

    /// A vector of words that are adjacent along an axis; `None` if their gates contain anything but comparisons of sums.
    fn row_of_words(
        &mut self,
        graph: &mut Graph,
        word: &Word,
        layout: &Layout,
        along: usize,
        start: &Dims,
    ) -> Result<Option<NodeId>> {
        let count = layout.width * word.count();
        let mut gate = None;
        if word.alt.is_some() {
            let mut lanes: SmallVec<[Lane; 64]> = SmallVec::new();
            let mut at = start.clone();
            for place in 0..layout.width {
                at[along] = start[along] + place;
                for number in 0..word.loads.len() {
                    let Some(own) = word.gate(graph, number) else { return Ok(None) };
                    let Some(lane) = self.lane_of(graph, own, &at) else { return Ok(None) };
                    lanes.push(lane);
                }
            }
            gate = self.gate_of_lanes(graph, &lanes)?;
        }
        let buffer = self.memory(graph, word.buffer)?;
        let Address { base, .. } = self.address(graph, &word.index, layout, start)?;
        let mut operands: SmallVec<[NodeId; 3]> = SmallVec::from_iter([self.contiguous(graph, buffer, &base, count)?]);
        if let (Some(alt), Some(gate)) = (word.alt, gate) {
            operands.extend([splat(graph, alt, count)?, gate]);
        }
        let arg = graph.arg(word.loads[0]).clone();
        let numbers = graph.add(Op::Load, &operands, arg)?;
        let bits = if word.count() == 4 { DType::U8 } else { DType::U16 };
        let numbers = graph.add(Op::Bitcast, &[numbers], Arg::DType(bits))?;
        graph.add(Op::Bitcast, &[numbers], Arg::DType(DType::U32)).map(Some)
    }
}

/// Matches the bits of a Load, zero-extended and shifted left: the shift, and the Load.
fn shifted_load(graph: &Graph, node: NodeId) -> Option<(i64, NodeId)> {
    let (shift, value) = match (graph.op(node), graph.sources(node)) {
        (Op::Shl, &[value, count]) => (graph.as_int(count)? as i64, value),
        _ => (0, node),
    };
    let bits = (graph.op(value) == Op::Cast && graph.dtype(value) == DType::U32).then(|| graph.source(value, 0))?;
    let load = if graph.op(bits) == Op::Bitcast { graph.source(bits, 0) } else { bits };
    let is_number =
        matches!(graph.dtype(bits), DType::U8 | DType::U16) && graph.dtype(load).size() == graph.dtype(bits).size();
    (is_number && graph.op(load) == Op::Load).then_some((shift, load))
}
