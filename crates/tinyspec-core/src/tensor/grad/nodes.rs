//! Gradients as lazy nodes, one for each node of the derived graph. This serves programs whose gradients follow the history of a tensor or
//! change from call to call.

use super::{Call, Derived, value_as_gradient};
use crate::Result;
use crate::lazy::{Body, LazyBuilder, Node};
use crate::tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, DType, ErrorKind, Graph, NodeId, Op};

/// The gradient of each wanted tensor, or `None` if the loss does not depend on it.
pub(super) fn of(call: &Call) -> Result<Vec<Option<Tensor>>> {
    let Derived { mut opened, written, gradients } = call.derive(call.walk)?;
    let (graph, origins) = (&opened.graph, &mut opened.origins);
    let found: Vec<NodeId> = gradients.iter().flatten().copied().collect();
    let maxima = compared_maxima(graph, &found, origins);
    origins.retain(|node, _| !maxima.contains(node));
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
            None if opened.gone.contains(&node) => {
                let props = graph.props(node);
                let what = format!("{} {}", props.dtype, tinyspec_ir::dim::show(&props.shape));
                let message = format!("needs a value that is gone: {what}, from which a tensor was computed and read");
                let error = tinyspec_ir::Error::new(ErrorKind::Gradient, "grad", message);
                return Err(
                    call.located(error.help("keep that tensor, or take the gradient before the result is read"))
                );
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

/// The maxima that `gradients` compare with their terms, with the views in between, if any of these nodes is already in memory.
/// Recomputed terms may round differently, so that none equals the stored maximum: it has to be recomputed along with them.
fn compared_maxima(graph: &Graph, gradients: &[NodeId], origins: &FxHashMap<NodeId, Arc<Node>>) -> FxHashSet<NodeId> {
    let is_in_memory = |node: &NodeId| origins.get(node).is_some_and(|origin| origin.is_realized());
    let mut maxima = FxHashSet::default();
    for node in reachable_until(graph, gradients, |_| false) {
        let sides = if graph.op(node) == Op::CmpNe { graph.sources(node) } else { &[] };
        for &side in sides {
            let views =
                std::iter::successors(Some(side), |&node| graph.op(node).is_view().then(|| graph.source(node, 0)));
            let path: SmallVec<[NodeId; 4]> = views.collect();
            let is_maximum =
                path.last().is_some_and(|&node| matches!(graph.arg(node), Arg::Reduce { op: Op::Max, .. }));
            if is_maximum && path.iter().any(is_in_memory) {
                maxima.extend(path);
            }
        }
    }
    maxima
}

/// Nodes that `roots` need, sources first, without what only nodes that `stop` need.
fn reachable_until(graph: &Graph, roots: &[NodeId], stop: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
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
