//! Gradients as the results of one Function over values of the forward pass. Equal programs share the Function, so it is derived only
//! once.

use super::{Call, Derived, value_as_gradient};
use crate::Result;
use crate::kept::Kept;
use crate::lazy::callify::param;
use crate::lazy::{Body, LazyBuilder, Node, Walk};
use crate::tensor::Tensor;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, LazyLock};
use tinyspec_ir::{Builder, ContentHash, Graph, NodeId, Op};

/// Derived gradients, by the key of [`Walk::derivation`].
static KNOWN: LazyLock<Kept<ContentHash, Arc<Gradients>>> = LazyLock::new(|| Kept::new(8).with_at_least(4));

/// Derived gradients.
struct Gradients {
    /// The body of the Function.
    tuple: Arc<Node>,
    /// Positions of its arguments in the derivation.
    arguments: Vec<u32>,
    /// One a wanted tensor.
    gradients: Vec<Option<Gradient>>,
    /// The body moves values between devices, which has to be done outside of kernels.
    has_moves: bool,
}

#[derive(Clone, Copy)]
enum Gradient {
    /// The result of the Function with this number.
    Result(u32),
    /// The value of the forward pass at this position of the derivation.
    Value(u32),
}

/// Like [`super::nodes::of`], but returns `None` for programs whose gradients cannot be a Function.
pub(super) fn of(call: &Call) -> Result<Option<Vec<Option<Tensor>>>> {
    let Some(derivation) = call.walk.derivation(call.wanted) else { return Ok(None) };
    let gradients = match KNOWN.get(&derivation.key) {
        Some(known) => known,
        None => {
            let (gradients, bytes) = Gradients::of(call, &derivation)?;
            let gradients = Arc::new(gradients);
            KNOWN.insert(derivation.key, gradients.clone(), bytes)?;
            gradients
        }
    };
    if gradients.has_moves {
        return Ok(None);
    }
    let tensors = gradients.function_of(&derivation, call.location)?;
    call.walk.nodes().for_each(|value| value.become_differentiated());
    Ok(Some(tensors))
}

impl Gradients {
    /// Derives the gradients of a call. Also returns their size in bytes.
    fn of(call: &Call, derivation: &Walk) -> Result<(Gradients, u64)> {
        let Derived { opened, gradients: found, .. } = call.derive(derivation)?;
        let forward = &opened.graph;
        let mut positions: FxHashMap<NodeId, u32> = FxHashMap::default();
        for ((position, &node), value) in (0..).zip(&opened.entries).zip(derivation.nodes()) {
            if is_argument(value) {
                positions.entry(node).or_insert(position);
            }
        }
        let mut body = Graph::new();
        let mut new = vec![NodeId(0); forward.len()];
        let mut arguments = Vec::new();
        let mut outputs: Vec<NodeId> = found.iter().flatten().copied().collect();
        outputs.retain(|output| !positions.contains_key(output));
        outputs.sort_unstable();
        outputs.dedup();
        let mut has_moves = false;
        for node in forward.reachable_until(&outputs, |node| positions.contains_key(&node)) {
            let (op, sources) = (forward.op(node), forward.sources(node));
            new[node.index()] = match positions.get(&node) {
                Some(&position) => {
                    arguments.push(position);
                    param(&mut body, forward.props(node), arguments.len() as u32 - 1)?
                }
                None => {
                    let mut sources: SmallVec<[NodeId; 4]> = sources.iter().map(|source| new[source.index()]).collect();
                    if matches!(op, Op::Function | Op::Call) {
                        // A body is closed.
                        sources[0] = body.import(forward, &forward.sources(node)[..1], |_, _| Ok(None))?[0];
                    }
                    has_moves |= op == Op::Load;
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
        let tuple = Node::tuple(Arc::new(Body::new(body, outputs)))?;
        Ok((Gradients { tuple, arguments, gradients, has_moves }, bytes))
    }

    /// Calls the Function with the values of a derivation.
    fn function_of(&self, derivation: &Walk, line: &'static Location<'static>) -> Result<Vec<Option<Tensor>>> {
        let values: Vec<&Arc<Node>> = derivation.nodes().collect();
        let mut builder = LazyBuilder::new(line);
        let arguments = self.arguments.iter().map(|&position| values[position as usize].clone());
        let arguments: Vec<NodeId> = arguments.map(|value| builder.import(value)).collect();
        let results = builder.call(&self.tuple, &arguments)?;
        let mut tensor = |gradient: Gradient| -> Result<Tensor> {
            let node = match gradient {
                Gradient::Result(number) => results[number as usize],
                Gradient::Value(position) => {
                    let node = builder.import(values[position as usize].clone());
                    value_as_gradient(&mut builder, node)?
                }
            };
            Ok(Tensor::from_node(builder.node(node)))
        };
        self.gradients.iter().map(|gradient| gradient.map(&mut tensor).transpose()).collect()
    }
}

/// Whether a value of the forward pass is an argument of the Function. Constants and shapes are part of the body.
fn is_argument(value: &Node) -> bool {
    let is_constant = value.op == Op::Const && value.literal().is_none();
    value.op != Op::Function && value.props.value.is_none() && !is_constant
}
