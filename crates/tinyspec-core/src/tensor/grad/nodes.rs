//! Gradients as lazy nodes, one for each node of the derived graph. This serves programs that cannot be the body of a Function: on several
//! devices, of sizes that are not known, or with calls that are compiled once for all sizes.

use super::{Call, Derived, compared_maxima, value_as_gradient};
use crate::Result;
use crate::lazy::callify::Opened;
use crate::lazy::{Body, LazyBuilder, Node, is_moved, window};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op};

/// The gradient of each wanted tensor, or `None` if the loss does not depend on it.
pub(super) fn of(call: &Call, mut opened: Opened) -> Result<Vec<Option<Tensor>>> {
    let Derived { written, gradients } = call.derive(&mut opened)?;
    let found: Vec<NodeId> = gradients.iter().flatten().copied().collect();
    let maxima = compared_maxima(&opened, &found);
    opened.origins.retain(|node, _| !maxima.contains(node));
    let (graph, origins) = (&opened.graph, &opened.origins);
    // Back to lazy nodes; what the forward pass has computed or will compute is the same node as before.
    let mut builder = LazyBuilder::new(call.location);
    // By node; those that nothing needs stay what they are.
    let mut lazy = vec![NodeId(0); graph.len()];
    let is_shape = |graph: &Graph, node: NodeId| {
        graph.op(node) == Op::Stack && graph.dtype(node) == DType::Index && graph.props(node).value.is_some()
    };
    for node in reachable_until(graph, &found, |node| origins.contains_key(&node) || is_shape(graph, node)) {
        let new = match origins.get(&node) {
            Some(origin) => builder.import(Arc::<Node>::clone(origin)),
            None if let Some(dims) = graph.props(node).value.as_deref().filter(|_| is_shape(graph, node)) => {
                builder.shape(dims).map_err(|error| call.located(error))?
            }
            None if opened.gone.contains(&node) => return Err(call.gone(&opened, node)),
            None if is_moved(graph, node) => {
                let [x, offsets] = [0, 1].map(|number| lazy[graph.source(node, number).index()]);
                window(&mut builder, graph.op(node), x, offsets, &graph.props(node).shape)
                    .map_err(|error| call.located(error))?
            }
            None if graph.op(node) == Op::Function => {
                // A lazy body is closed: one node with a graph of its own.
                let tuple = Node::tuple(Arc::new(Body::of_function(graph, node).map_err(|error| call.located(error))?))
                    .map_err(|error| call.located(error))?;
                let mut sources: SmallVec<[NodeId; 4]> = SmallVec::from_iter([builder.import(tuple)]);
                sources.extend(graph.sources(node)[1..].iter().map(|source| lazy[source.index()]));
                builder.add(Op::Function, &sources, Arg::None).map_err(|error| call.located(error))?
            }
            // A constant from the history of a loss that was read. If it changes from step to step, it becomes an input here as well.
            None if node.index() < written
                && let Arg::Const(value) = *graph.arg(node) =>
            {
                builder.number(value)
            }
            None => {
                let mut sources: SmallVec<[NodeId; 4]> =
                    graph.sources(node).iter().map(|source| lazy[source.index()]).collect();
                if maxima.contains(&node) && graph.op(node) == Op::Reduce {
                    // Nodes are deduplicated by content: over the same source it would be the node in memory again.
                    sources[0] = builder.twin(sources[0]).map_err(|error| call.located(error))?;
                }
                builder.add(graph.op(node), &sources, graph.arg(node).clone()).map_err(|error| call.located(error))?
            }
        };
        if let Some(&tensor) = opened.copies.get(&node).filter(|_| !origins.contains_key(&node)) {
            builder.node(new).become_known_as(tensor);
        }
        lazy[node.index()] = new;
    }
    let mut tensor = |gradient: NodeId| -> Result<Tensor> {
        let node = lazy[gradient.index()];
        let node = match origins.contains_key(&gradient) {
            true => value_as_gradient(&mut builder, node).map_err(|error| call.located(error))?,
            false => node,
        };
        Ok(Tensor::from_node(builder.node(node)))
    };
    let gradients: Result<Vec<Option<Tensor>>> =
        gradients.into_iter().map(|gradient| gradient.map(&mut tensor).transpose()).collect();
    origins.values().for_each(|origin| origin.become_differentiated());
    gradients
}

/// Nodes that `roots` need, sources first, without what only nodes that `stop` need. A Function needs its arguments, not its body.
pub(super) fn reachable_until(graph: &Graph, roots: &[NodeId], stop: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
    let mut live = vec![false; graph.len()];
    for root in roots {
        live[root.index()] = true;
    }
    for node in graph.nodes().rev().filter(|&node| !stop(node)) {
        if live[node.index()] {
            for source in &graph.sources(node)[(graph.op(node) == Op::Function) as usize..] {
                live[source.index()] = true;
            }
        }
    }
    graph.nodes().filter(|node| live[node.index()]).collect()
}
