//! Gradients of lazy tensors: the graph of the loss goes through the language's gradient and comes back lazy.

use super::Tensor;
use crate::execute::settled_walk;
use crate::lazy::{Body, LazyBuilder, Node};
use crate::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, DType, ErrorKind, Graph, NodeId, Op, gradient};

/// The gradients of a scalar `loss` with respect to each of `wanted`, lazily.
///
/// Each result of a method or a constructor is a tensor of its own, whatever others are equal to it; its clones are the same
/// tensor, and so is what a method returns that has nothing to do, as `reshape` to the shape that is there or `cast` to the
/// dtype. All may be asked for: what a program starts from, values on the way, and what was detached.
///
/// The first read of one of these gradients, or of a value computed from it, computes all those that the program still holds.
///
/// Reading a tensor changes no gradient: how it was computed is remembered. A loss that was read keeps the tensors it was computed
/// from alive until its gradient is taken or it is dropped; only the 16 most recent losses of a thread do. A tensor that was read also
/// keeps alive the data that were made since the run before, such as a batch, and detached values, up to 64 MiB in each thread.
/// Numbers, keys of random values and positions of masks are always kept, since the caller has no tensor of them. If a derivative
/// needs another value that no tensor holds any more, the value is computed again; if it is data, that is an error. A detached
/// value, such as a weight after an optimiser's step, is data; a state that was assigned has the history of what it was assigned.
///
/// ```
/// # use tinyspec_core::{Tensor, grad};
/// let (a, b) = (Tensor::ones([2]), Tensor::ones([2]));
/// let loss = (&a * &b * &b).sum(.., false);
/// assert_eq!(loss.item::<f32>()?, 2.0);
/// let gradients = grad(&loss, &[&a, &b])?;
/// assert_eq!(gradients[0].to_vec::<f32>()?, [1.0, 1.0]);
/// assert_eq!(gradients[1].to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// # Errors
/// When the loss is not a float scalar, an op on the way has no gradient, the loss does not depend on a wanted tensor, or a
/// value that is needed is gone.
#[track_caller]
pub fn grad(loss: &Tensor, wanted: &[&Tensor]) -> Result<Vec<Tensor>> {
    let location = Location::caller();
    let gradients = connected(location, loss, wanted)?;
    gradients
        .into_iter()
        .enumerate()
        .map(|(position, gradient)| {
            gradient.ok_or_else(|| {
                tinyspec_ir::Error::new(
                    ErrorKind::Gradient,
                    "grad",
                    format!("the loss does not depend on wanted tensor {position}"),
                )
                .help(
                    "what was detached, as optimisers do, has no history; if there is no dependence, \
                     `grad_or_zeros` gives zeros",
                )
                .at(location)
                .into()
            })
        })
        .collect()
}

/// As [`grad`], with zeros for tensors that the loss does not depend on.
///
/// # Errors
/// As [`grad`], but for unconnected tensors.
#[track_caller]
pub fn grad_or_zeros(loss: &Tensor, wanted: &[&Tensor]) -> Result<Vec<Tensor>> {
    let gradients = connected(Location::caller(), loss, wanted)?;
    Ok(gradients
        .into_iter()
        .zip(wanted)
        .map(|(gradient, wanted)| gradient.unwrap_or_else(|| wanted.zeros_like()))
        .collect())
}

pub(crate) fn connected(
    location: &'static Location<'static>,
    loss: &Tensor,
    wanted: &[&Tensor],
) -> Result<Vec<Option<Tensor>>> {
    let mut roots = vec![loss.node()?.clone()];
    for tensor in wanted {
        roots.push(tensor.node()?.clone());
    }
    let refuse = |message: String, help: &str| {
        let error = tinyspec_ir::Error::new(ErrorKind::Gradient, "grad", message).help(help);
        Err(Error::from(error.at(location)))
    };
    let (dtype, shape) = (loss.dtype(), loss.shape());
    if !dtype.is_float() || !roots[0].props.element_count().is(1) {
        let message = format!("the loss must be a float scalar, found {dtype} {}", tinyspec_ir::dim::show(shape));
        return refuse(
            message,
            match dtype.is_float() {
                true => "`.mean(.., false)` or `.sum(.., false)` makes one number of it",
                false => "no gradient flows through whole numbers and comparisons: make the loss of floats",
            },
        );
    }
    if let Some(position) = wanted.iter().position(|tensor| !tensor.dtype().is_float()) {
        let message = format!("wanted tensor {position} is {}: only floats have gradients", wanted[position].dtype());
        return refuse(message, "leave it out of the wanted tensors");
    }
    let located = |error: tinyspec_ir::Error| Error::from(error.at(location));
    let walk = settled_walk(&roots, &roots[1..])?;
    let states = walk.states_beside();
    let mut opened = walk.open(&roots[1..]).map_err(located)?;
    let (graph, origins) = (&mut opened.graph, &mut opened.origins);
    let written = graph.len();
    let ones = {
        let one = graph.constant(tinyspec_ir::Const::float(dtype, 1.0));
        tinyspec_ir::ops::movement::expand(graph, one, shape)?
    };
    let gradients =
        gradient::gradient_or_none(graph, &[(opened.outputs[0], ones)], &opened.outputs[1..]).map_err(located)?;
    let found: Vec<NodeId> = gradients.iter().flatten().copied().collect();
    let maxima = compared_maxima(graph, &found, origins);
    origins.retain(|node, _| !maxima.contains(node));
    // Back to lazy nodes; what the forward pass has computed or will compute is the same node as before.
    let mut builder = LazyBuilder::new(location);
    // By node; those that nothing needs stay what they are.
    let mut lazy = vec![NodeId(0); graph.len()];
    let is_shape = |graph: &Graph, node: NodeId| {
        graph.op(node) == Op::Stack && graph.dtype(node) == DType::Index && graph.props(node).value.is_some()
    };
    for node in reachable_until(graph, &found, |node| origins.contains_key(&node) || is_shape(graph, node)) {
        let new = match origins.get(&node) {
            Some(origin) => builder.import(Arc::<Node>::clone(origin)),
            None if let Some(dims) = graph.props(node).value.as_deref().filter(|_| is_shape(graph, node)) => {
                builder.shape(dims).map_err(located)?
            }
            None if opened.gone.contains(&node) => {
                let props = graph.props(node);
                let what = format!("{} {}", props.dtype, tinyspec_ir::dim::show(&props.shape));
                let message = format!("needs a value that is gone: {what}, from which a tensor was computed and read");
                let error = tinyspec_ir::Error::new(ErrorKind::Gradient, "grad", message);
                return Err(located(error.help("keep that tensor, or take the gradient before the result is read")));
            }
            None if graph.op(node) == Op::Function => {
                // A lazy body is closed: one node with a graph of its own.
                let tuple = Node::tuple(Arc::new(Body::of_function(graph, node).map_err(located)?)).map_err(located)?;
                let mut sources: SmallVec<[NodeId; 4]> = SmallVec::from_iter([builder.import(tuple)]);
                sources.extend(graph.sources(node)[1..].iter().map(|source| lazy[source.index()]));
                builder.add(Op::Function, &sources, Arg::None).map_err(located)?
            }
            // Written for a loss that was read: where it changes from step to step it is data here too.
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
                    sources[0] = builder.twin(sources[0]).map_err(located)?;
                }
                builder.add(graph.op(node), &sources, graph.arg(node).clone()).map_err(located)?
            }
        };
        if let Some(&tensor) = opened.copies.get(&node).filter(|_| !origins.contains_key(&node)) {
            builder.node(new).become_known_as(tensor);
        }
        lazy[node.index()] = new;
    }
    let mut tensor = |gradient: NodeId| -> Result<Tensor> {
        let node = lazy[gradient.index()];
        // A node on the way to the loss stays nobody's: others may know it.
        let is_new = !origins.contains_key(&gradient) || builder.node(node).identity().is_tensor();
        let node = if is_new { node } else { builder.twin(node).map_err(located)? };
        Ok(Tensor::from_node(builder.node(node)))
    };
    let gradients: Result<Vec<Option<Tensor>>> =
        gradients.into_iter().map(|gradient| gradient.map(&mut tensor).transpose()).collect();
    if let Ok(gradients) = &gradients {
        become_gradients(gradients.iter().flatten(), roots.iter().take(1).chain(&states));
    }
    roots[0].become_differentiated();
    origins.values().for_each(|origin| origin.become_differentiated());
    gradients
}

/// Makes the first run that needs some of these gradients compute all of them, together with the other results of the same forward
/// pass: the loss, if the program still holds it, and the new states of buffers.
pub(crate) fn become_gradients<'a>(
    tensors: impl Iterator<Item = &'a Tensor>,
    beside: impl Iterator<Item = &'a Arc<Node>>,
) {
    let nodes: Vec<&Arc<Node>> = tensors.filter_map(|tensor| tensor.node().ok()).collect();
    Node::become_gradients(&nodes, beside);
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
