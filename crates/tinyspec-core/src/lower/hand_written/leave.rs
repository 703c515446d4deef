//! Loops that a register ends: all that such a loop does is a loop whose number of trips the register holds, which only that
//! loop stores to. Once the register is 0, the trips that are left do nothing.
//!
//! A long one becomes a loop over blocks of trips, and a block has no trips if the register is 0 where it begins. So about
//! twice the square root of their number remain of the trips that do nothing.

use super::vectorize::wait_for_loops;
use crate::lower::live::{next_range_id, trips};
use rustc_hash::FxHashMap;
use tinyspec_ir::address::{behind_after, is_register};
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// The shortest loop that becomes one over blocks.
const LONG: i64 = 32;

pub(super) fn leave(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let ends: Vec<NodeId> = graph.reachable(&[sink]).into_iter().filter(|&node| graph.op(node) == Op::End).collect();
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for end in ends {
        // Inner loops come first, and are part of the outer ones.
        let now = substitute(graph, &[end], &new)?[0];
        if let Some((register, count)) = ended_by(graph, now) {
            let blocks = in_blocks(graph, now, register, count)?;
            new.insert(end, blocks);
        }
    }
    if new.is_empty() {
        return Ok(sink);
    }
    let sink = substitute(graph, &[sink], &new)?[0];
    wait_for_loops(graph, sink)
}

/// The Load of the register that ends this loop, and its number of trips.
fn ended_by(graph: &Graph, end: NodeId) -> Option<(NodeId, i64)> {
    let &[body, range] = graph.sources(end) else { return None };
    let is_serial = |range: NodeId| matches!(graph.arg(range), Arg::Range { axis: AxisType::Loop, .. });
    let once = *graph.sources(body).get(1).filter(|_| graph.op(body) == Op::End)?;
    let bound = graph.source(once, 0);
    let load = if graph.op(bound) == Op::Cast { graph.source(bound, 0) } else { bound };
    let count = trips(graph, range).filter(|&count| count >= LONG)?;
    let is_load = graph.op(load) == Op::Load && graph.sources(load).len() == 1 && is_register(graph, load);
    (is_serial(range) && is_serial(once) && is_load).then_some((load, count))
}

/// The same loop over blocks of trips.
fn in_blocks(graph: &mut Graph, end: NodeId, load: NodeId, count: i64) -> Result<NodeId> {
    let (body, range) = (graph.source(end, 0), graph.source(end, 1));
    let size = (count.unsigned_abs().isqrt() + 1).next_power_of_two() as i64;
    let id = next_range_id(graph, graph.nodes());
    let bound = graph.index((count + size - 1) / size);
    let block = graph.range(bound, id, AxisType::Loop)?;
    // The register where a block begins.
    let mut place: Vec<NodeId> = vec![behind_after(graph, graph.source(load, 0))];
    let waited = graph.sources(graph.source(load, 0)).iter().skip(1).filter(|&&source| source != range);
    place.extend(waited);
    place.push(block);
    let place = graph.add(Op::After, &place, Arg::None)?;
    let register = graph.add(Op::Load, &[place], Arg::Load { device: None, addrspace: AddrSpace::Reg })?;
    let zero = graph.constant(tinyspec_ir::Const::int(graph.dtype(register), 0));
    let runs = graph.alu(Op::CmpLt, &[zero, register])?;
    let (size, count, none) = (graph.index(size), graph.index(count), graph.index(0));
    let first = graph.alu(Op::Mul, &[block, size])?;
    let minus = graph.index(-1);
    let negative = graph.alu(Op::Mul, &[first, minus])?;
    let left = graph.alu(Op::Add, &[count, negative])?;
    let is_last = graph.alu(Op::CmpLt, &[left, size])?;
    let some = graph.alu(Op::Where, &[is_last, left, size])?;
    let bound = graph.alu(Op::Where, &[runs, some, none])?;
    let inner = graph.range(bound, id + 1, AxisType::Loop)?;
    let at = graph.alu(Op::Add, &[first, inner])?;
    let body = substitute(graph, &[body], &FxHashMap::from_iter([(range, at)]))?[0];
    let trips = graph.add(Op::End, &[body, inner], Arg::None)?;
    graph.add(Op::End, &[trips, block], Arg::None)
}
