//! Turns Reduces over Ranges into REG Buffers that a loop updates.

use super::maximum;
use crate::lower::fold::identity;
use crate::lower::live::Live;
use crate::lower::loops::{closed, grouped};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::rewrite::{Permission, Rewriter};
use tinyspec_ir::{AddrSpace, Arg, Builder, Error, ErrorKind, Graph, NodeId, Op, Result, rules};

/// The Ranges of a loop nest: Reduces over the same ones share it.
type Ranges = SmallVec<[NodeId; 4]>;

pub(in super::super) fn accumulate(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let mut live = Live::new(graph, &order)?;
    let levels = levels(graph, &order)?;
    let count = order.iter().map(|node| levels[node.index()] as usize + 1).max().unwrap_or(1);
    let mut by_level: Vec<Vec<NodeId>> = vec![Vec::new(); count];
    let mut groups: Vec<Vec<(Ranges, Vec<NodeId>)>> = vec![Vec::new(); count];
    let mut known: FxHashMap<Ranges, usize> = FxHashMap::default();
    for &node in &order {
        let level = levels[node.index()] as usize;
        let Some(ranges) = loop_of(graph, node) else {
            by_level[level].push(node);
            continue;
        };
        let group = &mut groups[level];
        let position = *known.entry(ranges.clone()).or_insert_with(|| {
            group.push((ranges, Vec::new()));
            group.len() - 1
        });
        group[position].1.push(node);
    }
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    // Kernels written by hand have registers of their own.
    let mut next_slot = order.iter().filter_map(|&node| register_slot(graph, node)).max().map_or(0, |slot| slot + 1);
    for (nodes, groups) in by_level.iter().zip(&groups) {
        for (ranges, members) in groups {
            // Reduces that share a loop are inside the union of their enclosing loops, and so are their users.
            members.iter().for_each(|&node| live.follow(graph, node));
            let around = members.iter().fold(0, |set, &node| set | live.of(node));
            members.iter().for_each(|&node| live.put(node, around));
            let around: Ranges = live.members(around).collect();
            close(graph, &around, ranges, members, &mut new, &mut next_slot)?;
        }
        for &node in nodes {
            live.follow(graph, node);
            let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source.index()]).collect();
            let arg = graph.arg(node).clone();
            new[node.index()] = graph.add(graph.op(node), &sources, arg)?;
        }
    }
    Ok(new[sink.index()])
}

fn register_slot(graph: &Graph, node: NodeId) -> Option<u32> {
    match graph.arg(node) {
        Arg::Buffer { slot, addrspace: AddrSpace::Reg, .. } => Some(*slot),
        _ => None,
    }
}

/// The Ranges that a Reduce loops over; likewise for the End of a Store in such a loop.
fn loop_of(graph: &Graph, node: NodeId) -> Option<Ranges> {
    let ranges = graph.sources(node).get(1..)?;
    let is_reduce = |range: &NodeId| matches!(graph.arg(*range), Arg::Range { axis, .. } if axis.is_reduce());
    let loops = match graph.op(node) {
        Op::Reduce => !ranges.is_empty(),
        Op::End => ranges.iter().all(is_reduce),
        _ => false,
    };
    loops.then(|| ranges.into())
}

/// For each node, the number of loops that must finish before it can be computed. All Reduces of a loop are at the
/// level of the last of them, so the sweep is repeated up to a fixed point.
fn levels(graph: &Graph, order: &[NodeId]) -> Result<Vec<u32>> {
    let mut levels: Vec<u32> = vec![0; graph.len()];
    let mut of_loop: FxHashMap<Ranges, u32> = FxHashMap::default();
    // Every sweep but the last settles at least one loop.
    let mut sweeps = 2 + order.iter().filter(|&&node| loop_of(graph, node).is_some()).count();
    loop {
        let mut changed = false;
        for &node in order {
            let below = graph.sources(node).iter().map(|source| levels[source.index()]).max().unwrap_or(0);
            let level = match loop_of(graph, node) {
                None => below,
                Some(ranges) => {
                    let level = of_loop.entry(ranges).or_insert(0);
                    *level = (*level).max(below + 1);
                    *level
                }
            };
            changed |= std::mem::replace(&mut levels[node.index()], level) != level;
        }
        if !changed {
            return Ok(levels);
        }
        sweeps -= 1;
        if sweeps == 0 {
            let message = "Reduces that share a Range need each other";
            return Err(Error::new(ErrorKind::Verify, "select", message));
        }
    }
}

/// Emits one loop nest for several Reduces, inside the loops `around`.
fn close(
    graph: &mut Graph,
    around: &[NodeId],
    ranges: &[NodeId],
    members: &[NodeId],
    new: &mut [NodeId],
    next_slot: &mut u32,
) -> Result<()> {
    let mut updates: SmallVec<[NodeId; 4]> = SmallVec::new();
    let mut places: SmallVec<[NodeId; 4]> = SmallVec::new();
    let (ends, reduces): (Vec<NodeId>, Vec<NodeId>) = members.iter().partition(|&&node| graph.op(node) == Op::End);
    updates.extend(ends.iter().map(|&end| new[graph.source(end, 0).index()]));
    for &node in &reduces {
        let Arg::Reduce { op, .. } = *graph.arg(node) else { continue };
        let value = new[graph.source(node, 0).index()];
        let dtype = graph.dtype(value);
        let dims = graph.props(value).shape.clone();
        let dims = graph.shape(&dims)?;
        let arg = Arg::Buffer { slot: *next_slot, dtype, device: None, addrspace: AddrSpace::Reg };
        *next_slot += 1;
        let buffer = graph.add(Op::Buffer, &[dims], arg)?;
        // Initialised in every trip of the loops around.
        let mut begun: SmallVec<[NodeId; 4]> = around.iter().map(|range| new[range.index()]).collect();
        begun.insert(0, buffer);
        let place = if begun.len() > 1 { graph.add(Op::After, &begun, Arg::None)? } else { buffer };
        let start = identity(graph, op, dtype);
        let start = graph.add(Op::Store, &[place, start], Arg::None)?;
        // Read in every trip of its own loop.
        let mut ready: SmallVec<[NodeId; 4]> = ranges.iter().map(|range| new[range.index()]).collect();
        ready.insert_many(0, [place, start]);
        let ready = graph.add(Op::After, &ready, Arg::None)?;
        let before = graph.add(Op::Load, &[ready], Arg::Load { device: None, addrspace: AddrSpace::Reg })?;
        let after = update(graph, op, value, before)?;
        updates.push(graph.add(Op::Store, &[ready, after], Arg::None)?);
        places.push(place);
    }
    let body = grouped(graph, &updates)?;
    let loops: Ranges = ranges.iter().map(|range| new[range.index()]).collect();
    let body = closed(graph, body, &loops)?;
    for end in ends {
        new[end.index()] = body;
    }
    for (&node, &place) in reduces.iter().zip(&places) {
        let over = graph.add(Op::After, &[place, body], Arg::None)?;
        let load = Arg::Load { device: None, addrspace: AddrSpace::Reg };
        new[node.index()] = graph.add(Op::Load, &[over], load)?;
    }
    Ok(())
}

/// Adds a term to an accumulator. A packed dot product has the accumulator among its sources; a sum of float products
/// is the one place where `Contract` needs no permission (SEMANTICS, "Contraction").
pub(super) fn update(graph: &mut Graph, op: Op, value: NodeId, before: NodeId) -> Result<NodeId> {
    if let (Op::Add, Op::Wmma, &[a, b, start]) = (op, graph.op(value), graph.sources(value))
        && graph.as_const(start).is_some_and(|start| start.bits == 0)
    {
        let arg = graph.arg(value).clone();
        return graph.add(Op::Wmma, &[a, b, before], arg);
    }
    if let (Op::Max, Some(Instruction::Greater), &[number, _]) =
        (op, Instruction::of(graph, value), graph.sources(value))
    {
        // The accumulator is never nan, so the instruction can drop nans of the value.
        return graph.add(Op::Ins, &[before, number], graph.arg(value).clone());
    }
    if let (Op::Max, Some(number)) = (op, maximum::plain(graph, value)) {
        // This drops a nan for the same reason.
        let rises = graph.alu(Op::CmpLt, &[before, number])?;
        return graph.alu(Op::Where, &[rises, number, before]);
    }
    let after = graph.alu(op, &[before, value])?;
    Rewriter::new(&[rules::permitted(Permission::Contract)]).rewrite_node(graph, after)
}
