//! The maximum of pairs of 32-bit numbers that are packed into 64 bits, as for the position of a maximum.
//!
//! The halves stay in two registers: the loop uses no vectors of 64-bit numbers; only the final result of each lane is
//! packed.

use crate::lower::live::Live;
use crate::lower::replace::replace;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// Splits Reduce-Max of pairs over one loop.
pub(in super::super) fn split(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut sink = sink;
    loop {
        let order = graph.reachable(&[sink]);
        let Some(pair) = order.iter().find_map(|&node| Pair::of(graph, node)) else { return Ok(sink) };
        let live = Live::new(graph, &order)?;
        let greatest = pair.build(graph, &live)?;
        let known = std::iter::once((pair.node, greatest)).collect();
        sink = substitute(graph, &[sink], &known)?[0];
    }
}

/// A Reduce-Max of `upper << 32 | lower`.
struct Pair {
    node: NodeId,
    value: NodeId,
    range: NodeId,
    upper: NodeId,
    lower: NodeId,
}

impl Pair {
    fn of(graph: &Graph, node: NodeId) -> Option<Pair> {
        let (Op::Reduce, &[value, range]) = (graph.op(node), graph.sources(node)) else { return None };
        let Arg::Reduce { op: Op::Max, .. } = graph.arg(node) else { return None };
        if graph.dtype(node) != DType::I64 || graph.op(value) != Op::Or {
            return None;
        }
        let &[a, b] = graph.sources(value) else { return None };
        let (shifted, lower) = if graph.op(a) == Op::Shl { (a, b) } else { (b, a) };
        let &[upper, count] = graph.sources(shifted) else { return None };
        let narrow = |node: NodeId| {
            let source = *graph.sources(node).first()?;
            (graph.op(node) == Op::Cast && graph.dtype(source) == DType::I32).then_some(source)
        };
        let (upper, lower) = (narrow(upper)?, narrow(lower)?);
        let positive = graph.props(lower).interval.int().is_some_and(|(least, _)| least >= 0);
        let shifts = graph.op(shifted) == Op::Shl && graph.as_int(count) == Some(32);
        (shifts && positive).then_some(Pair { node, value, range, upper, lower })
    }

    /// The lower halves of the first trip, if they decrease from trip to trip: among equal upper halves the first wins,
    /// even if all are the least number.
    fn first(&self, graph: &mut Graph) -> Result<Option<NodeId>> {
        let mut lower = self.lower;
        while graph.op(lower) == Op::Cast {
            lower = graph.source(lower, 0);
        }
        if graph.dtype(lower) != DType::Index || Affine::of(graph, lower).coefficient(self.range) >= 0 {
            return Ok(None);
        }
        let Some(first) = replace(graph, &[self.lower], self.range, &Affine::number(0), None)? else { return Ok(None) };
        let (have, dims) = (graph.props(first[0]).shape.clone(), graph.props(self.value).shape.clone());
        if have == dims {
            return Ok(Some(first[0]));
        }
        let dims = graph.shape(&dims)?;
        graph.add(Op::Expand, &[first[0], dims], Arg::None).map(Some)
    }

    /// The loop over two registers, and the pair of their final values.
    fn build(&self, graph: &mut Graph, live: &Live) -> Result<NodeId> {
        let dims = graph.props(self.value).shape.clone();
        let dims = graph.shape(&dims)?;
        let around: SmallVec<[NodeId; 4]> = live.members(live.of(self.node)).collect();
        let load = Arg::Load { device: None, addrspace: AddrSpace::Reg };
        let mut registers: SmallVec<[(NodeId, NodeId, NodeId); 2]> = SmallVec::new();
        let first = self.first(graph)?;
        for (slot, start) in (super::next_register(graph)..).zip([None, first]) {
            let arg = Arg::Buffer { slot, dtype: DType::I32, device: None, addrspace: AddrSpace::Reg };
            let mut place: SmallVec<[NodeId; 4]> = SmallVec::from_iter([graph.add(Op::Buffer, &[dims], arg)?]);
            place.extend(around.iter().copied());
            let place = if place.len() > 1 { graph.add(Op::After, &place, Arg::None)? } else { place[0] };
            let nothing = if registers.is_empty() { i32::MIN } else { 0 };
            let start = start.unwrap_or_else(|| graph.constant(Const::int(DType::I32, nothing.into())));
            let start = graph.add(Op::Store, &[place, start], Arg::None)?;
            let ready = graph.add(Op::After, &[place, start, self.range], Arg::None)?;
            registers.push((place, ready, graph.add(Op::Load, &[ready], load.clone())?));
        }
        let (upper, lower) = (registers[0], registers[1]);
        let truth = graph.constant(Const::int(DType::Bool, 1));
        let mut better = graph.alu(Op::CmpLt, &[upper.2, self.upper])?;
        if first.is_none() {
            let differs = graph.alu(Op::CmpNe, &[upper.2, self.upper])?;
            let equal = graph.alu(Op::CmpNe, &[differs, truth])?;
            let greater = graph.alu(Op::CmpLt, &[lower.2, self.lower])?;
            let ties = graph.alu(Op::And, &[equal, greater])?;
            better = graph.alu(Op::Or, &[better, ties])?;
        }
        let mut updates: SmallVec<[NodeId; 2]> = SmallVec::new();
        for ((_, ready, before), new) in [(upper, self.upper), (lower, self.lower)] {
            let new = graph.alu(Op::Where, &[better, new, before])?;
            updates.push(graph.add(Op::Store, &[ready, new], Arg::None)?);
        }
        let body = graph.add(Op::Group, &updates, Arg::None)?;
        let end = graph.add(Op::End, &[body, self.range], Arg::None)?;
        let mut halves: SmallVec<[NodeId; 2]> = SmallVec::new();
        for (place, ..) in [upper, lower] {
            let over = graph.add(Op::After, &[place, end], Arg::None)?;
            let half = graph.add(Op::Load, &[over], load.clone())?;
            halves.push(graph.add(Op::Cast, &[half], Arg::DType(DType::I64))?);
        }
        let count = graph.constant(Const::int(DType::I64, 32));
        let shifted = graph.alu(Op::Shl, &[halves[0], count])?;
        graph.alu(Op::Or, &[shifted, halves[1]])
    }
}
