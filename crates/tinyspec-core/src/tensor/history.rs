//! How a computed tensor came about, for gradients that are asked for after its value was read.
//!
//! A history holds the program that ran, which the plan has anyway, and weak references to its inputs: no memory lives
//! on for its sake. What is gone is computed again from its own history, as far as that goes back.

use super::node::Node;
use crate::function::Body;
use crate::lower::callify::{Callified, Walk, param};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use tinyspec_ir::eval::identity;
use tinyspec_ir::function::inline;
use tinyspec_ir::{Arg, Builder, ContentHash, DType, Dim, Error, ErrorKind, Graph, NodeId, Op, Result};

/// Computations in a row that are remembered. A loop that computes a state from the one before it stays bounded.
const GENERATIONS: u32 = 64;

/// One run of a program.
pub(crate) struct History {
    program: Arc<Callified>,
    /// The inputs, by slot.
    inputs: Vec<Input>,
    /// The named dims of the program, whose slots come after those of the inputs.
    dims: Vec<Dim>,
    /// The function that was called.
    body: Option<Arc<Body>>,
    generation: u32,
}

/// A result of a run.
#[derive(Clone)]
pub(crate) struct Computed {
    history: Arc<History>,
    output: NodeId,
}

struct Input {
    node: Weak<Node>,
    hash: ContentHash,
    age: u64,
    dtype: DType,
    past: Past,
}

/// Where an input came from.
enum Past {
    Data,
    Computed(Computed),
    /// Computed longer ago than is remembered.
    Forgotten,
}

impl History {
    /// The run of `program` on `inputs`.
    pub fn new<'a>(program: &Arc<Callified>, inputs: impl Iterator<Item = &'a Arc<Node>>) -> Arc<History> {
        Arc::new(History::of(program, inputs))
    }

    fn of<'a>(program: &Arc<Callified>, inputs: impl Iterator<Item = &'a Arc<Node>>) -> History {
        let mut generation = 0;
        let inputs = inputs
            .map(|node| {
                let past = match node.computed() {
                    None => Past::Data,
                    Some(computed) if computed.history.generation + 1 < GENERATIONS => {
                        generation = generation.max(computed.history.generation + 1);
                        Past::Computed(computed)
                    }
                    Some(_) => Past::Forgotten,
                };
                Input { node: Arc::downgrade(node), hash: node.hash, age: node.age, dtype: node.props.dtype, past }
            })
            .collect();
        History { program: program.clone(), inputs, dims: vec![], body: None, generation }
    }

    /// The call of a function on tensors and, after them, its named dims; `program` is its body.
    ///
    /// # Errors
    /// None for arguments that were computed.
    pub fn of_call(program: &Arc<Callified>, body: &Arc<Body>, arguments: &[Arc<Node>]) -> Result<Arc<History>> {
        let dim = |node: &Arc<Node>| match node.props.value.as_deref() {
            Some([dim]) if node.props.shape.is_empty() => Some(dim.clone()),
            _ => None,
        };
        let dims: Vec<Dim> = arguments.iter().rev().map_while(dim).collect();
        let tensors = &arguments[..arguments.len() - dims.len()];
        let mut history = History::of(program, tensors.iter());
        history.dims = dims.into_iter().rev().collect();
        history.body = Some(body.clone());
        // A part that is read where it lies has no memory of its own, but it is made of the whole.
        for (position, tensor) in tensors.iter().enumerate().filter(|(_, tensor)| !tensor.is_realized()) {
            let walk = Walk::of(std::slice::from_ref(tensor));
            let part = History::new(&Arc::new(walk.build()?), walk.leaf_nodes());
            if let Some(computed) = part.result(0) {
                history.generation = history.generation.max(part.generation + 1);
                history.inputs[position].past = Past::Computed(computed);
            }
        }
        Ok(Arc::new(history))
    }

    /// Which result of the program it is.
    fn number(&self, output: NodeId) -> usize {
        self.program.outputs.iter().position(|&other| other == output).unwrap_or_default()
    }

    /// The result of a root, by its position; none where no gradient flows through it: it is data.
    pub fn result(self: &Arc<History>, position: usize) -> Option<Computed> {
        let output = *self.program.outputs.get(position)?;
        self.program.flows(position).then(|| Computed { history: self.clone(), output })
    }
}

/// Opens computed tensors in a graph, as far back as something that is asked for can lie.
pub(crate) struct Opening {
    /// Age of the oldest tensor that is asked for: what is older does not depend on any.
    oldest: u64,
    /// Nodes of the graph, by the tensors that they stand for.
    known: FxHashMap<ContentHash, NodeId>,
    next_slot: u32,
    /// The tensors that were found on the way.
    pub origins: Vec<(NodeId, Arc<Node>)>,
    /// Params that stand for values that are gone.
    pub gone: Vec<NodeId>,
}

/// Inputs of a program: slots and Params.
type Slots = Vec<(u32, NodeId)>;

/// A step back: a result to compute, with the slots that it needs, or a value to take as it is.
enum Step {
    Compute(Computed, Slots, Option<Arc<Node>>),
    Take(Arc<History>, u32, NodeId),
}

impl Opening {
    /// Slots from `next_slot` on are free.
    pub fn new(oldest: u64, next_slot: u32) -> Opening {
        Opening { oldest, known: FxHashMap::default(), next_slot, origins: Vec::new(), gone: Vec::new() }
    }

    /// How a computed tensor came about; a Param for data and for what is older than all that is asked for.
    ///
    /// # Errors
    /// When it lies too far back.
    pub fn open(&mut self, graph: &mut Graph, tensor: &Node, slot: u32) -> Result<NodeId> {
        if let Some(&known) = self.known.get(&tensor.hash) {
            return Ok(known);
        }
        let Some(computed) = tensor.computed().filter(|_| tensor.age > self.oldest) else {
            let param = param(graph, &tensor.props, slot)?;
            self.known.insert(tensor.hash, param);
            return Ok(param);
        };
        let mut last = None;
        let steps = self.steps(tensor, computed)?;
        // Inputs are older than what was made of them.
        for (hash, step) in steps.into_values() {
            let node = match step {
                Step::Compute(Computed { history, output }, slots, tensor) => {
                    // What is not needed may be any value.
                    let nothing = |input: &Input| graph.constant(identity(Op::Add, input.dtype));
                    let mut arguments: Vec<NodeId> = history.inputs.iter().map(nothing).collect();
                    for dim in &history.dims {
                        arguments.push(graph.dim(dim)?);
                    }
                    for (slot, _) in slots {
                        let hash = history.inputs[slot as usize].hash;
                        arguments[slot as usize] = self.known[&hash];
                    }
                    let (results, number) = match &history.body {
                        Some(body) => (body.open(graph, &arguments)?, history.number(output)),
                        None => (inline(graph, &history.program.graph, &[output], &arguments)?, 0),
                    };
                    let result = results.get(number).copied().unwrap_or(output);
                    self.origins.extend(tensor.map(|tensor| (result, tensor)));
                    result
                }
                Step::Take(history, slot, param) => self.take(graph, &history, slot, param)?,
            };
            self.known.insert(hash, node);
            last = Some(node);
        }
        last.ok_or_else(|| Error::new(ErrorKind::Verify, "grad", "a history without a result"))
    }

    /// Everything that `tensor` was made of and that is not in the graph, by age.
    fn steps(&self, tensor: &Node, computed: Computed) -> Result<BTreeMap<u64, (ContentHash, Step)>> {
        let mut steps = BTreeMap::new();
        let mut pending = vec![(tensor.age, tensor.hash, computed, None)];
        while let Some((age, hash, computed, node)) = pending.pop() {
            if steps.contains_key(&age) {
                continue;
            }
            let slots = computed.slots();
            for &(slot, param) in &slots {
                let input = &computed.history.inputs[slot as usize];
                if self.known.contains_key(&input.hash) || steps.contains_key(&input.age) {
                    continue;
                }
                let node = input.node.upgrade().filter(|node| !node.is_overwritten());
                let past = match (&node, &input.past) {
                    _ if input.age <= self.oldest => None,
                    (Some(node), Past::Computed(computed)) if !node.is_realized() => Some(computed.clone()),
                    (Some(node), _) => node.computed(),
                    (None, Past::Computed(computed)) => Some(computed.clone()),
                    (None, Past::Data) => None,
                    (None, Past::Forgotten) => {
                        let message = format!(
                            "the loss was computed in more than {GENERATIONS} steps, and values in between are gone"
                        );
                        let error = Error::new(ErrorKind::Gradient, "grad", message);
                        return Err(error.help("`detach` what the gradient should not follow"));
                    }
                };
                match past {
                    Some(past) => pending.push((input.age, input.hash, past, node)),
                    None => {
                        let step = Step::Take(computed.history.clone(), slot, param);
                        steps.insert(input.age, (input.hash, step));
                    }
                }
            }
            steps.insert(age, (hash, Step::Compute(computed, slots, node)));
        }
        Ok(steps)
    }

    /// A Param for a value as it is.
    fn take(&mut self, graph: &mut Graph, history: &History, slot: u32, before: NodeId) -> Result<NodeId> {
        let mut props = history.program.graph.props(before).clone();
        let first = history.inputs.len() as u32;
        let value = |slot: u32| history.dims.get(slot.checked_sub(first)? as usize).cloned();
        props.shape = props.shape.iter().map(|dim| dim.substitute(&value)).collect();
        let param = param(graph, &props, self.next_slot)?;
        self.next_slot += 1;
        match history.inputs[slot as usize].node.upgrade().filter(|node| !node.is_overwritten()) {
            Some(node) => self.origins.push((param, node)),
            None => self.gone.push(param),
        }
        Ok(param)
    }
}

impl Computed {
    /// The inputs that it needs.
    fn slots(&self) -> Slots {
        let program = &self.history.program.graph;
        let slot = |node: NodeId| match program.arg(node) {
            Arg::Param { slot, .. } if (*slot as usize) < self.history.inputs.len() => Some((*slot, node)),
            _ => None,
        };
        // A call is one node for all of its results.
        let outputs = match self.history.body {
            Some(_) => &self.history.program.outputs[..],
            None => std::slice::from_ref(&self.output),
        };
        program.reachable_outside_bodies(outputs).into_iter().filter_map(slot).collect()
    }
}
