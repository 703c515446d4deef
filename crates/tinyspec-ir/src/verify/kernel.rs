//! Kernels between Rangeify and Select: Ranges are closed once and used inside their loops only.

use super::access::open_ranges;
use super::order::{order, registers};
use super::{bounds::bounds, refuse};
use crate::dim::broadcast;
use crate::{AddrSpace, Arg, AxisType, Builder, DType, Dim, Graph, NodeId, Op, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A kernel in range form, before and after Optimize: every value has shape ().
///
/// # Errors
/// When a node is not allowed at this stage; the error names the first one.
pub fn ranges(graph: &Graph, sink: NodeId) -> Result<()> {
    loops(graph, sink)?;
    bounds("verify ranges", graph, sink, &graph.reachable(&[sink]))
}

/// The structural checks of [`ranges`], in linear time: all but the bounds of accesses.
///
/// # Errors
/// When a node is not allowed at this stage; the error names the first one.
pub fn loops(graph: &Graph, sink: NodeId) -> Result<()> {
    let live = common("verify ranges", graph, sink)?;
    // A Reduce's loop may contain stores.
    let is_reduce = |node: &&NodeId| graph.op(**node) == Op::Reduce;
    let reduced = live.iter().filter(is_reduce).flat_map(|&node| &graph.sources(node)[1..]);
    let reduced: FxHashSet<NodeId> = reduced.copied().collect();
    let mut closed: FxHashSet<NodeId> = FxHashSet::default();
    for node in live {
        if let (Op::End, &[_, range]) = (graph.op(node), graph.sources(node))
            && matches!(graph.arg(range), Arg::Range { axis, .. } if axis.is_reduce())
            && !reduced.contains(&range)
        {
            return refuse("verify ranges", graph, node, "closes a reduction Range that no Reduce has");
        }
        // Ends of other Ranges may merge or vanish.
        if let (Op::End, &[_, range]) = (graph.op(node), graph.sources(node))
            && matches!(graph.arg(range), Arg::Range { axis: AxisType::Loop, .. })
            && !closed.insert(range)
        {
            return refuse("verify ranges", graph, node, "closes a Range that another End closes");
        }
        let props = graph.props(node);
        let is_buffer = matches!(graph.op(node), Op::Param | Op::Buffer | Op::After | Op::Stack);
        if props.dtype != DType::Void && !is_buffer && !props.shape.is_empty() {
            return refuse("verify ranges", graph, node, "a value that is not a scalar");
        }
    }
    Ok(())
}

/// A kernel after Expand: no UPCAST or UNROLL Range is left, all tiles have the same rank, and an access's address is
/// as large as its gate and value.
///
/// # Errors
/// When a node is not allowed at this stage; the error names the first one.
pub fn tiles(graph: &Graph, sink: NodeId) -> Result<()> {
    let stage = "verify tiles";
    let live = common(stage, graph, sink)?;
    let mut rank = None;
    for node in live {
        if let Arg::Range { axis: AxisType::Upcast | AxisType::Unroll, .. } = graph.arg(node) {
            return refuse(stage, graph, node, "should have become an axis of the tile");
        }
        let (op, props) = (graph.op(node), graph.props(node));
        let is_tile = props.addrspace.is_none() && props.rank() > 0 && op != Op::Stack;
        if is_tile && *rank.get_or_insert(props.rank()) != props.rank() {
            return refuse(stage, graph, node, "a tile of another rank");
        }
        if let (Op::Load | Op::Store | Op::AtomicAdd, [address, others @ ..]) = (op, graph.sources(node)) {
            let span = &graph.props(*address).shape;
            let extent = |dims: &[Dim]| dims.iter().filter(|dim| !dim.is(1)).count();
            let fits = |&other: &NodeId| {
                broadcast(span, &graph.props(other).shape).is_some_and(|all| extent(&all) == extent(span))
            };
            if !others.iter().all(fits) {
                return refuse(stage, graph, node, "an access whose gate or value is larger than its address");
            }
        }
    }
    Ok(())
}

fn common(stage: &str, graph: &Graph, sink: NodeId) -> Result<Vec<NodeId>> {
    if graph.op(sink) != Op::Sink {
        return refuse(stage, graph, sink, "the root of a kernel is a Sink");
    }
    let live = graph.reachable(&[sink]);
    let mut ids: FxHashMap<u32, NodeId> = FxHashMap::default();
    // Ranges that a node is still inside of: open below an End or Reduce, closed above it.
    let mut open: Vec<SmallVec<[NodeId; 4]>> = vec![SmallVec::new(); graph.len()];
    for &node in &live {
        let mut ranges: FxHashSet<NodeId> = FxHashSet::default();
        let sources = graph.sources(node);
        for source in sources {
            ranges.extend(open[source.index()].iter().copied());
        }
        match (graph.op(node), graph.arg(node)) {
            (Op::Range, Arg::Range { id, .. }) => {
                if ids.insert(*id, node).is_some_and(|other| other != node) {
                    return refuse(stage, graph, node, format!("the id {id} belongs to another Range"));
                }
                ranges.insert(node);
            }
            (Op::End, _) => {
                let range = sources[1];
                if graph.op(range) != Op::Range {
                    return refuse(stage, graph, node, "closes something that is not a Range");
                }
                ranges.remove(&range);
            }
            (Op::Reduce, _) => {
                for range in &sources[1..] {
                    match graph.arg(*range) {
                        Arg::Range { axis, .. } if axis.is_reduce() => ranges.remove(range),
                        _ => return refuse(stage, graph, node, "reduces something that is not a reduction Range"),
                    };
                }
            }
            (Op::Index | Op::Shrink, _) => {
                let buffer = graph.props(sources[0]);
                if buffer.addrspace.is_some() && buffer.rank() != 1 && graph.op(node) == Op::Index {
                    return refuse(stage, graph, node, "kernels see flat buffers");
                }
            }
            (Op::Store, _) if graph.props(sources[0]).addrspace.is_none() => {
                return refuse(stage, graph, node, "stores into something that is not a buffer");
            }
            (Op::Load, Arg::Load { addrspace, .. }) if *addrspace != AddrSpace::Reg => {
                return refuse(stage, graph, node, "kernels load into registers");
            }
            (Op::Function | Op::Call | Op::Tuple | Op::GetTuple, _) => {
                return refuse(stage, graph, node, "belongs to the schedule");
            }
            (Op::Permute | Op::Flip | Op::Pad, _) => return refuse(stage, graph, node, "belongs to the tensor graph"),
            _ => {}
        }
        open[node.index()] = ranges.into_iter().collect();
    }
    match open[sink.index()].first() {
        Some(&range) => refuse(stage, graph, range, "is used outside its loop"),
        None => {
            registers(stage, graph, &live, &open_ranges(graph, sink))?;
            order(stage, graph, sink, &live)?;
            Ok(live)
        }
    }
}
