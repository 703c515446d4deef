//! Expand: UPCAST and UNROLL ranges become shape ("Lowering Pipeline").
//!
//! Every such Range is one axis of the register tile. All tile values have the same rank, with size 1 where a value
//! does not depend on the Range; scalars stay `()`.

mod join;
mod registers;

use super::live;
use super::replace::span;
pub(super) use join::join;
use smallvec::SmallVec;
use tinyspec_ir::address::is_register;
use tinyspec_ir::dim::shape;
use tinyspec_ir::{Arg, Axes, AxisType, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};

/// Replaces the UPCAST and UNROLL ranges of a kernel by tile axes.
///
/// # Errors
/// When such a Range has no constant bound.
pub fn expand(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let tiled: Vec<NodeId> = order.iter().copied().filter(|&node| is_tiled(graph, node)).collect();
    if tiled.is_empty() {
        return Ok(sink);
    }
    let tiles = registers::tiles(graph, &order, &tiled);
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    for node in order {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source.index()]).collect();
        let axis_of = |range: NodeId| tiled.iter().position(|&tile| tile == range);
        new[node.index()] = match graph.op(node) {
            Op::Range if is_tiled(graph, node) => tile_axis(graph, node, axis_of(node).unwrap_or(0), tiled.len())?,
            Op::End if is_tiled(graph, graph.source(node, 1)) => sources[0],
            Op::Reduce => {
                let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
                let axes: Axes = ranges.iter().filter_map(|&range| axis_of(range)).map(|axis| axis as u32).collect();
                let loops = ranges.iter().zip(&sources[1..]).filter(|(old, _)| axis_of(**old).is_none());
                let loops: SmallVec<[NodeId; 4]> = loops.map(|(_, &new)| new).collect();
                let Arg::Reduce { op, .. } = *graph.arg(node) else { continue };
                reduce(graph, op, sources[0], &loops, axes, &tiled)?
            }
            // A tile is in all iterations at once, so it waits for no single one.
            Op::After => {
                let waits = graph.sources(node).iter().zip(&sources).filter(|(old, _)| axis_of(**old).is_none());
                let sources: SmallVec<[NodeId; 4]> = waits.map(|(_, &new)| new).collect();
                if sources.len() == 1 { sources[0] } else { graph.add(Op::After, &sources, Arg::None)? }
            }
            op => {
                let arg = graph.arg(node).clone();
                let mut sources = sources;
                if let Some(&axes) = tiles.get(&node) {
                    sources[0] = registers::shape(graph, axes, &tiled)?;
                } else if op == Op::Store && is_register(graph, node) {
                    sources[1] = registers::whole(graph, sources[0], sources[1])?;
                } else if matches!(op, Op::Load | Op::Store | Op::AtomicAdd) {
                    sources[0] = span(graph, &sources)?;
                }
                graph.add(op, &sources, arg)?
            }
        };
    }
    Ok(new[sink.index()])
}

fn is_tiled(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.arg(node), Arg::Range { axis: AxisType::Upcast | AxisType::Unroll, .. })
}

fn trips(graph: &Graph, range: NodeId) -> Result<i64> {
    live::trips(graph, range)
        .ok_or_else(|| Error::new(ErrorKind::Verify, "range", "an UPCAST or UNROLL range must have a constant bound"))
}

/// `0, 1, …` along one axis of the tile.
fn tile_axis(graph: &mut Graph, range: NodeId, axis: usize, rank: usize) -> Result<NodeId> {
    let trips = trips(graph, range)?;
    let numbers: SmallVec<[NodeId; 64]> = (0..trips).map(|number| graph.index(number)).collect();
    let numbers = graph.add(Op::Stack, &numbers, Arg::None)?;
    let mut dims = vec![1; rank];
    dims[axis] = trips;
    let dims = graph.shape(&shape(&dims))?;
    graph.add(Op::Reshape, &[numbers, dims], Arg::None)
}

/// Reduces over the loops first, into a tile of accumulators, and then across the tile.
fn reduce(graph: &mut Graph, op: Op, value: NodeId, loops: &[NodeId], axes: Axes, tiled: &[NodeId]) -> Result<NodeId> {
    let mut value = value;
    if !axes.is_empty() {
        // A value that is the same in every trip still counts once per trip.
        let mut dims = match tinyspec_ir::dim::static_shape(&graph.props(value).shape) {
            Some(dims) if dims.len() == tiled.len() => dims,
            _ => SmallVec::from_elem(1, tiled.len()),
        };
        let before = dims.clone();
        for &axis in &axes {
            dims[axis as usize] = trips(graph, tiled[axis as usize])?;
        }
        if dims != before || graph.props(value).rank() != tiled.len() {
            let dims = graph.shape(&shape(&dims))?;
            value = graph.add(Op::Expand, &[value, dims], Arg::None)?;
        }
    }
    if !loops.is_empty() {
        let sources: SmallVec<[NodeId; 4]> = std::iter::once(value).chain(loops.iter().copied()).collect();
        value = graph.add(Op::Reduce, &sources, Arg::Reduce { op, axes: Axes::new() })?;
    }
    if axes.is_empty() {
        return Ok(value);
    }
    graph.add(Op::Reduce, &[value], Arg::Reduce { op, axes })
}
