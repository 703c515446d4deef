//! The gradients of a call as results of one Function, whose arguments are values of the forward pass: it is derived once for equal
//! programs.

use super::{Call, Derived};
use crate::Result;
use crate::kept::Kept;
use crate::lazy::callify::param;
use crate::lazy::{Body, LazyBuilder, Node, Walk};
use crate::tensor::Tensor;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, LazyLock};
use tinyspec_ir::{Arg, Builder, ContentHash, Graph, NodeId, Op};

/// By the key of the walk that they are derived of.
static KNOWN: LazyLock<Kept<ContentHash, Arc<Gradients>>> = LazyLock::new(|| Kept::new(8).with_at_least(4));

/// The gradients of a program.
struct Gradients {
    /// The results of the Function.
    tuple: Arc<Node>,
    /// Its arguments, by position in the walk that they are derived of.
    arguments: Vec<u32>,
    /// Of each wanted tensor.
    gradients: Vec<Option<Gradient>>,
    results: u32,
    /// Moves values from one device to another, which no kernel does.
    has_moves: bool,
}

#[derive(Clone, Copy)]
enum Gradient {
    /// Of the Function, by number.
    Result(u32),
    /// A value of the forward pass, by position in the walk that they are derived of.
    Value(u32),
}

/// As [`super::nodes::of`], or none for programs that no Function serves.
pub(super) fn of(call: &Call) -> Result<Option<Vec<Option<Tensor>>>> {
    let Some(part) = call.walk.derivation(call.wanted) else { return Ok(None) };
    let gradients = match KNOWN.get(&part.key) {
        Some(known) => known,
        None => {
            let (gradients, bytes) = Gradients::of(call, &part)?;
            let gradients = Arc::new(gradients);
            KNOWN.insert(part.key, gradients.clone(), bytes)?;
            gradients
        }
    };
    if gradients.has_moves {
        return Ok(None);
    }
    let tensors = gradients.function_of(&part, call.location)?;
    call.walk.nodes().for_each(|value| value.become_differentiated());
    Ok(Some(tensors))
}

impl Gradients {
    /// Those of a call, derived of this part of its walk, and the bytes that they need.
    fn of(call: &Call, part: &Walk) -> Result<(Gradients, u64)> {
        let Derived { opened, gradients: found, .. } = call.derive(part)?;
        let forward = &opened.graph;
        let mut positions: FxHashMap<NodeId, u32> = FxHashMap::default();
        for ((position, &node), value) in (0..).zip(&opened.entries).zip(part.nodes()) {
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
        let (bytes, results) = (body.bytes() as u64, outputs.len() as u32);
        let outputs = outputs.into_iter().map(|output| new[output.index()]).collect();
        let tuple = Node::tuple(Arc::new(Body::new(body, outputs)))?;
        Ok((Gradients { tuple, arguments, gradients, results, has_moves }, bytes))
    }

    /// The Function of the values of a walk.
    fn function_of(&self, part: &Walk, line: &'static Location<'static>) -> Result<Vec<Option<Tensor>>> {
        let values: Vec<&Arc<Node>> = part.nodes().collect();
        let mut builder = LazyBuilder::new(line);
        let mut sources = vec![builder.import(self.tuple.clone())];
        sources.extend(self.arguments.iter().map(|&position| builder.import(values[position as usize].clone())));
        let function = builder.add(Op::Function, &sources, Arg::None)?;
        let results: Vec<NodeId> = (0..self.results)
            .map(|number| builder.add(Op::GetTuple, &[function], Arg::Number(number)))
            .collect::<tinyspec_ir::Result<_>>()?;
        let mut tensor = |gradient: Gradient| -> Result<Tensor> {
            let node = match gradient {
                Gradient::Result(number) => results[number as usize],
                Gradient::Value(position) => {
                    let value = values[position as usize];
                    let node = builder.import(value.clone());
                    // A node on the way to the loss stays nobody's: others may know it.
                    if value.identity().is_tensor() { node } else { builder.twin(node)? }
                }
            };
            Ok(Tensor::from_node(builder.node(node)))
        };
        self.gradients.iter().map(|gradient| gradient.map(&mut tensor).transpose()).collect()
    }
}

/// Whether a value of the forward pass is an argument; what is the same in each run is a part of the body.
fn is_argument(value: &Node) -> bool {
    let is_constant = value.op == Op::Const && value.literal().is_none();
    value.op != Op::Function && value.props.value.is_none() && !is_constant
}
