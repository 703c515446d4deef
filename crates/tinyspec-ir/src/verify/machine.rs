//! Kernels after Select: scalars and one-dimensional vectors of real dtypes.

use super::order::{order, registers};
use super::{access::open_ranges, bounds::bounds, refuse, threads::threads};
use crate::instruction::Instruction;
use crate::{AddrSpace, Arg, AxisType, Builder, Category, DType, Graph, NodeId, Op, Result};

/// A kernel in machine form.
///
/// # Errors
/// When a node is not allowed at this stage; the error names the first one.
pub fn machine(graph: &Graph, sink: NodeId) -> Result<()> {
    let stage = "verify machine";
    if graph.op(sink) != Op::Sink {
        return refuse(stage, graph, sink, "the root of a kernel is a Sink");
    }
    let live = graph.reachable(&[sink]);
    for &node in &live {
        check(stage, graph, node)?;
    }
    let open = open_ranges(graph, sink);
    if let Some(&range) = open.get(&sink).and_then(|open| open.first()) {
        return refuse(stage, graph, range, "is used outside its loop");
    }
    bounds(stage, graph, sink, &live)?;
    registers(stage, graph, &live, &open)?;
    order(stage, graph, sink, &live)?;
    threads(stage, graph, sink, &live)
}

/// The checks that machine form and linear form share.
pub(super) fn check(stage: &str, graph: &Graph, node: NodeId) -> Result<()> {
    let props = graph.props(node);
    let op = graph.op(node);
    if props.rank() > 1 {
        return refuse(stage, graph, node, "a value of more than one axis");
    }
    if op.is_elementwise() && op != Op::Cast && props.dtype == DType::Index && props.value.is_none() {
        return refuse(stage, graph, node, "index arithmetic should have become i32 or i64");
    }
    match (op, graph.arg(node)) {
        (Op::Range, Arg::Range { axis: AxisType::Upcast | AxisType::Unroll, .. }) => {
            refuse(stage, graph, node, "should have become lanes")
        }
        (Op::Reduce, _) if graph.sources(node).len() > 1 => {
            refuse(stage, graph, node, "a Reduce over Ranges should have become an accumulator")
        }
        (Op::Ins, _) => match Instruction::of(graph, node) {
            Some(Instruction::SchedulingBarrier) => match graph.dtype(graph.source(node, 0)) {
                DType::Void => Ok(()),
                _ => refuse(stage, graph, node, "comes after something that is not an effect"),
            },
            Some(known) if known.is_hint() => match graph.props(graph.source(node, 0)).addrspace {
                Some(AddrSpace::Global | AddrSpace::Local) => Ok(()),
                _ => refuse(stage, graph, node, "fetches something that is not a place in memory"),
            },
            Some(known) if known.arity() == graph.sources(node).len() && props.dtype == DType::F32 => Ok(()),
            _ => refuse(stage, graph, node, "an instruction that nobody defines"),
        },
        (Op::Load, _) if graph.props(graph.source(node, 0)).addrspace.is_none() => {
            refuse(stage, graph, node, "loads from something that is not a buffer")
        }
        (Op::Buffer, Arg::Buffer { addrspace: AddrSpace::Global, .. }) => {
            refuse(stage, graph, node, "a kernel reaches memory through its Params")
        }
        (Op::Permute | Op::Flip | Op::Pad | Op::Function | Op::Call | Op::GetTuple, _) => {
            refuse(stage, graph, node, "should be gone")
        }
        _ if op.category() == Category::Marker => refuse(stage, graph, node, "should be gone"),
        _ => Ok(()),
    }
}
