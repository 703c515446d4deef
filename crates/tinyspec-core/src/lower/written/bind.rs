//! Named dims and outer constants become numbers; loops without a trip vanish.

use crate::lower::fold::identity;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::rules::simplify;
use tinyspec_ir::{Arg, Builder, Category, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

pub(super) fn bind(kernel: &WrittenKernel, dims: &[i64]) -> Result<(Graph, NodeId)> {
    let mut graph = Graph::new();
    let roots = graph.import(&kernel.graph, &[kernel.sink], |graph, node| {
        match (kernel.graph.op(node), kernel.graph.arg(node)) {
            (Op::Param, Arg::Param { slot, dtype: DType::Index, .. }) => {
                let position = (*slot as usize).checked_sub(kernel.buffers.len());
                let Some(&value) = position.and_then(|position| dims.get(position)) else {
                    return refuse(kernel, format!("the dim of slot {slot} is missing"));
                };
                let bounds = kernel.graph.props(node).interval.int();
                if bounds.is_some_and(|(low, high)| (value as i128) < low || high < value as i128) {
                    return refuse(kernel, format!("a dim or constant is {value}, which is out of bounds"));
                }
                Ok(Some(graph.constant(Const::int(DType::Index, value as i128))))
            }
            _ => Ok(None),
        }
    })?;
    let roots = simplify(&mut graph, &roots)?;
    without_empty_loops(&graph, roots[0])
}

fn refuse<T>(kernel: &WrittenKernel, message: String) -> Result<T> {
    Err(Error::new(ErrorKind::Value, kernel.name.as_str(), message))
}

/// Neither loops that run no time nor markers, which say nothing once kernels are made.
fn without_empty_loops(graph: &Graph, sink: NodeId) -> Result<(Graph, NodeId)> {
    let is_empty = |range: NodeId| {
        graph.op(range) == Op::Range && graph.as_int(graph.source(range, 0)).is_some_and(|trips| trips <= 0)
    };
    let mut left = Graph::new();
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in graph.reachable(&[sink]) {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
        let made = match (graph.op(node), graph.arg(node)) {
            (Op::End, _) if is_empty(graph.source(node, 1)) => left.add(Op::Group, &[], Arg::None)?,
            (Op::Reduce, Arg::Reduce { op, .. }) if graph.sources(node)[1..].iter().any(|&range| is_empty(range)) => {
                identity(&mut left, *op, graph.dtype(node))
            }
            (op, _) if op.category() == Category::Marker => sources[0],
            (op, arg) => left.add(op, &sources, arg.clone())?,
        };
        new.insert(node, made);
    }
    Ok((left, new[&sink]))
}
