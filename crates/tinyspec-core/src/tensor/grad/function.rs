//! Gradients as the results of one Function over values of the forward pass. Equal programs share the Function, so it is derived only
//! once.

use super::forward::Forward;
use super::{Call, Derived, compared_maxima, value_as_gradient};
use crate::Result;
use crate::kept::Kept;
use crate::lazy::callify::param;
use crate::lazy::{Body, LazyBuilder, Node, is_moved, window};
use crate::tensor::Tensor;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, LazyLock};
use tinyspec_ir::{Builder, ContentHash, Graph, NodeId, Op};

/// Derived gradients, by [`Forward::key`].
static KNOWN: LazyLock<Kept<ContentHash, Arc<Gradients>>> = LazyLock::new(|| Kept::new(8).with_at_least(4));

/// Derived gradients.
struct Gradients {
    /// The body of the Function.
    tuple: Arc<Node>,
    /// Positions of its arguments in [`Forward`].
    arguments: Vec<u32>,
    /// One per wanted tensor.
    gradients: Vec<Option<Gradient>>,
}

#[derive(Clone, Copy)]
enum Gradient {
    /// The result of the Function with this number.
    Result(u32),
    /// The forward value at this position of [`Forward`].
    Value(u32),
}

/// The gradient of each wanted tensor, or `None` if the loss does not depend on it.
pub(super) fn of(call: &Call, mut forward: Forward) -> Result<Vec<Option<Tensor>>> {
    let gradients = match KNOWN.get(&forward.key) {
        Some(known) => known,
        None => {
            let (gradients, bytes) = Gradients::of(call, &mut forward)?;
            let gradients = Arc::new(gradients);
            KNOWN.insert(forward.key, gradients.clone(), bytes)?;
            gradients
        }
    };
    let tensors = gradients.function_of(&forward, call)?;
    forward.become_differentiated();
    Ok(tensors)
}

impl Gradients {
    /// Derives the gradients of a call. Also returns their size in bytes.
    fn of(call: &Call, forward: &mut Forward) -> Result<(Gradients, u64)> {
        let (mut opened, mut positions) = forward.open(call)?;
        let Derived { gradients: found, .. } = call.derive(&mut opened)?;
        let mut outputs: Vec<NodeId> = found.iter().flatten().copied().collect();
        let maxima = compared_maxima(&opened, &outputs);
        positions.retain(|node, _| !maxima.contains(node));
        outputs.retain(|output| !positions.contains_key(output));
        outputs.sort_unstable();
        outputs.dedup();
        let forward = &opened.graph;
        let mut body = Graph::new();
        let mut new = vec![NodeId(0); forward.len()];
        let (mut arguments, mut bodies) = (Vec::new(), FxHashMap::default());
        for node in forward.reachable_until(&outputs, |node| positions.contains_key(&node)) {
            let (op, sources) = (forward.op(node), forward.sources(node));
            new[node.index()] = match positions.get(&node) {
                Some(&position) => {
                    arguments.push(position);
                    param(&mut body, forward.props(node), arguments.len() as u32 - 1)?
                }
                None if opened.gone.contains(&node) => return Err(call.gone(&opened, node)),
                None if is_moved(forward, node) => {
                    let [x, offsets] = [0, 1].map(|number| new[sources[number].index()]);
                    window(&mut body, op, x, offsets, &forward.props(node).shape)?
                }
                None => {
                    let mut sources: SmallVec<[NodeId; 4]> = sources.iter().map(|source| new[source.index()]).collect();
                    if matches!(op, Op::Function | Op::Call) {
                        let of_call = forward.source(node, 0);
                        sources[0] = match bodies.get(&of_call) {
                            Some(&known) => known,
                            // A body is closed.
                            None => body.import(forward, &[of_call], |_, _| Ok(None))?[0],
                        };
                        bodies.insert(of_call, sources[0]);
                    }
                    body.add(op, &sources, forward.arg(node).clone())?
                }
            };
        }
        let gradient = |node: NodeId| match (positions.get(&node), outputs.binary_search(&node)) {
            (Some(&position), _) => Some(Gradient::Value(position)),
            (None, Ok(number)) => Some(Gradient::Result(number as u32)),
            (None, Err(_)) => None,
        };
        let gradients = found.into_iter().map(|found| found.and_then(gradient)).collect();
        let bytes = body.bytes() as u64;
        let outputs = outputs.into_iter().map(|output| new[output.index()]).collect();
        let tuple = Node::tuple(Arc::new(Body::new(body, outputs).derived_by_inlining(opened.inlined)))?;
        Ok((Gradients { tuple, arguments, gradients }, bytes))
    }

    /// Calls the Function with values of the forward pass.
    fn function_of(&self, forward: &Forward, call: &Call) -> Result<Vec<Option<Tensor>>> {
        let mut builder = LazyBuilder::new(call.location);
        let arguments: Vec<NodeId> = self
            .arguments
            .iter()
            .map(|&position| forward.value(position, &mut builder, call))
            .collect::<Result<_>>()?;
        let results = builder.call(&self.tuple, &arguments)?;
        let mut tensor = |gradient: Gradient| -> Result<Tensor> {
            let node = match gradient {
                Gradient::Result(number) => results[number as usize],
                Gradient::Value(position) => {
                    let node = forward.value(position, &mut builder, call)?;
                    value_as_gradient(&mut builder, node)?
                }
            };
            Ok(Tensor::from_node(builder.node(node)))
        };
        self.gradients.iter().map(|gradient| gradient.map(&mut tensor).transpose()).collect()
    }
}
