//! REG Buffers of kernels written by hand: one that holds a different value in each iteration of an UPCAST loop becomes
//! a tile.

use super::trips;
use crate::lower::live::RangeSet;
use rustc_hash::FxHashMap;
use tinyspec_ir::address::{behind_after, is_register};
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// For each such Buffer, the axes of its tile: the Ranges of `tiled` that a stored value depends on.
pub(super) fn tiles(graph: &Graph, order: &[NodeId], tiled: &[NodeId]) -> FxHashMap<NodeId, RangeSet> {
    let mut tiles: FxHashMap<NodeId, RangeSet> = FxHashMap::default();
    let is_access = |node: NodeId| matches!(graph.op(node), Op::Load | Op::Store) && is_register(graph, node);
    if !order.iter().any(|&node| is_access(node)) {
        return tiles;
    }
    // A stored value may depend on the contents of another register.
    loop {
        let mut depends: FxHashMap<NodeId, RangeSet> = FxHashMap::default();
        let mut grows = false;
        for &node in order {
            let of = |node: &NodeId| depends.get(node).copied().unwrap_or(0);
            let sources = graph.sources(node);
            let set = match graph.op(node) {
                Op::Range => tiled.iter().position(|&range| range == node).map_or(0, |axis| 1 << axis),
                // Ordering carries no value.
                Op::After => of(&sources[0]),
                Op::Load if is_access(node) => tiles.get(&behind_after(graph, sources[0])).copied().unwrap_or(0),
                Op::Store if is_access(node) => {
                    let set = sources[1..].iter().map(of).fold(0, |all, one| all | one);
                    let tile = tiles.entry(behind_after(graph, sources[0])).or_default();
                    grows |= *tile | set != *tile;
                    *tile |= set;
                    0
                }
                Op::Reduce => {
                    let inside = sources[1..].iter().filter_map(|range| tiled.iter().position(|tile| tile == range));
                    inside.fold(of(&sources[0]), |set, axis| set & !(1 << axis))
                }
                Op::Store | Op::AtomicAdd | Op::End | Op::Group | Op::Barrier | Op::Sink => 0,
                _ => sources.iter().map(of).fold(0, |all, one| all | one),
            };
            depends.insert(node, set);
        }
        if !grows {
            tiles.retain(|_, axes| *axes != 0);
            return tiles;
        }
    }
}

/// The shape of a register tile over these axes.
pub(super) fn shape(graph: &mut Graph, axes: RangeSet, tiled: &[NodeId]) -> Result<NodeId> {
    let size = |(axis, &range): (usize, &NodeId)| if axes >> axis & 1 == 1 { trips(graph, range) } else { Ok(1) };
    let dims: Vec<i64> = tiled.iter().enumerate().map(size).collect::<Result<_>>()?;
    graph.shape(&tinyspec_ir::dim::shape(&dims))
}

/// The value for each element of the register; a scalar is one for all, and a scalar register holds a tile of one element.
pub(super) fn whole(graph: &mut Graph, register: NodeId, value: NodeId) -> Result<NodeId> {
    let (want, have) = (graph.props(register).shape.clone(), graph.props(value).shape.clone());
    if have.is_empty() || want.is_empty() || want == have {
        return Ok(value);
    }
    let dims = graph.shape(&want)?;
    graph.add(Op::Expand, &[value, dims], Arg::None)
}
