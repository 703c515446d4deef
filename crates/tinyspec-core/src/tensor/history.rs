//! How a computed tensor came about, for gradients that are asked for after its value was read.
//!
//! A history holds the program that ran, which the plan has anyway, and weak references to its inputs: no memory lives
//! on for its sake. What is gone is computed again from its own history, as far as that goes back.

use super::node::Node;
use crate::function::Body;
use crate::lower::callify::{Callified, Walk, param};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use tinyspec_ir::eval::identity;
use tinyspec_ir::function::inline_known;
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
    /// What stood for the nodes of the program: tensors that were not read with it, too, may be asked for.
    met: Vec<ContentHash>,
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
    /// The run of the `program` of a walk.
    pub fn new(program: &Arc<Callified>, walk: &Walk) -> Arc<History> {
        let met = walk.nodes().map(|node| node.hash).collect();
        Arc::new(History { met, ..History::of(program, walk.leaf_nodes()) })
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
        History { program: program.clone(), inputs, dims: vec![], met: vec![], body: None, generation }
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
            let part = History::new(&Arc::new(walk.build()?), &walk);
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

    /// The result of a root, by its position; none where no gradient goes on from it: it is data.
    pub fn result(self: &Arc<History>, position: usize) -> Option<Computed> {
        let output = *self.program.outputs.get(position)?;
        (!ends(&self.program.graph, output)).then(|| Computed { history: self.clone(), output })
    }

    /// The tensors that the program met, with its nodes for them.
    fn met(&self) -> impl Iterator<Item = (ContentHash, NodeId)> {
        self.met.iter().copied().zip(self.program.nodes.iter().copied())
    }
}

/// Whether no gradient goes on to the sources of a node.
fn ends(program: &Graph, node: NodeId) -> bool {
    let dtype = program.dtype(node);
    // A kernel written by hand has none.
    matches!(program.op(node), Op::Detach | Op::After) || dtype.is_int() || dtype == DType::Bool
}

/// Opens computed tensors in a graph, where they depend on one that is asked for.
pub(crate) struct Opening {
    /// What is asked for. Tensors made of constants alone may be as old as they like: equal ones are one.
    wanted: FxHashSet<ContentHash>,
    /// Age of the oldest that is asked for: data that are older do not depend on it.
    oldest: u64,
    /// Nodes of the graph, by the tensors that they stand for.
    known: FxHashMap<ContentHash, NodeId>,
    /// What depends on something that is asked for, by run and result.
    depends: FxHashMap<(*const History, NodeId), bool>,
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
    Compute { computed: Computed, slots: Slots, known: FxHashMap<NodeId, NodeId>, tensor: Option<Arc<Node>> },
    Take(Arc<History>, u32, NodeId),
}

impl Opening {
    /// Slots from `next_slot` on are free.
    pub fn new(wanted: &[Arc<Node>], next_slot: u32) -> Opening {
        Opening {
            wanted: wanted.iter().map(|node| node.hash).collect(),
            oldest: wanted.iter().map(|node| node.age).min().unwrap_or_default(),
            known: FxHashMap::default(),
            depends: FxHashMap::default(),
            next_slot,
            origins: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// `new` stands for `tensor` in the graph.
    pub fn meet(&mut self, tensor: &Node, new: NodeId) {
        if self.wanted.contains(&tensor.hash) {
            self.known.insert(tensor.hash, new);
        }
    }

    /// How a computed tensor came about; a Param for data and for what does not depend on anything that is asked for.
    ///
    /// # Errors
    /// When it lies too far back.
    pub fn open(&mut self, graph: &mut Graph, tensor: &Node, slot: u32) -> Result<NodeId> {
        if let Some(&known) = self.known.get(&tensor.hash) {
            return Ok(known);
        }
        let computed = match tensor.computed() {
            Some(computed) if self.depends(&computed, tensor.hash)? => computed,
            _ => {
                let param = param(graph, &tensor.props, slot)?;
                self.known.insert(tensor.hash, param);
                return Ok(param);
            }
        };
        let mut last = None;
        let steps = self.steps(tensor, computed)?;
        // Inputs are older than what was made of them.
        for (hash, step) in steps.into_values() {
            let node = match step {
                Step::Compute { computed: Computed { history, output }, slots, mut known, tensor } => {
                    let inputs = slots.iter().map(|&(slot, param)| {
                        let hash = history.inputs[slot as usize].hash;
                        (slot as usize, param, self.known[&hash])
                    });
                    let result = match &history.body {
                        Some(body) => {
                            // What is not needed may be any value.
                            let nothing = |input: &Input| graph.constant(identity(Op::Add, input.dtype));
                            let mut arguments: Vec<NodeId> = history.inputs.iter().map(nothing).collect();
                            for dim in &history.dims {
                                arguments.push(graph.dim(dim)?);
                            }
                            for (slot, _, node) in inputs {
                                arguments[slot] = node;
                            }
                            body.open(graph, &arguments)?.get(history.number(output)).copied()
                        }
                        None => {
                            known.extend(inputs.map(|(_, param, node)| (param, node)));
                            inline_known(graph, &history.program.graph, &[output], &known)?.first().copied()
                        }
                    };
                    let result = result.unwrap_or(output);
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

    /// Whether gradients of a computed tensor reach something else that is asked for.
    ///
    /// # Errors
    /// When that is forgotten.
    fn depends(&mut self, computed: &Computed, own: ContentHash) -> Result<bool> {
        let key = (Arc::as_ptr(&computed.history), computed.output);
        if let Some(&known) = self.depends.get(&key) {
            return Ok(known);
        }
        let Computed { history, .. } = computed;
        let program = &history.program.graph;
        let passed = program.reachable_until(computed.outputs(), |node| ends(program, node));
        let is_passed = |node: NodeId| passed.binary_search(&node).is_ok();
        let mut depends =
            history.met().any(|(hash, node)| hash != own && self.wanted.contains(&hash) && is_passed(node));
        for (slot, _) in history.slots_among(&passed) {
            let input = &history.inputs[slot as usize];
            depends |= self.wanted.contains(&input.hash);
            depends |= match (input.now(), &input.past) {
                ((_, Some(past)), _) => self.depends(&past, input.hash)?,
                ((None, None), Past::Forgotten) if input.age > self.oldest => {
                    let message = format!(
                        "the loss was computed in more than {GENERATIONS} steps, and values in between are gone"
                    );
                    let error = Error::new(ErrorKind::Gradient, "grad", message);
                    return Err(error.help("`detach` what the gradient should not follow"));
                }
                _ => false,
            };
        }
        self.depends.insert(key, depends);
        Ok(depends)
    }

    /// Everything that `tensor` was made of and that is not in the graph, by age.
    fn steps(&mut self, tensor: &Node, computed: Computed) -> Result<BTreeMap<u64, (ContentHash, Step)>> {
        let mut steps = BTreeMap::new();
        let mut pending = vec![(tensor.age, tensor.hash, computed, None)];
        while let Some((age, hash, computed, tensor)) = pending.pop() {
            if steps.contains_key(&age) {
                continue;
            }
            let history = &computed.history;
            let known: FxHashMap<NodeId, NodeId> =
                history.met().filter_map(|(hash, node)| Some((node, *self.known.get(&hash)?))).collect();
            let needed = history.program.graph.reachable_until(computed.outputs(), |node| known.contains_key(&node));
            let slots: Slots = history.slots_among(&needed).collect();
            for &(slot, param) in &slots {
                let input = &history.inputs[slot as usize];
                if self.known.contains_key(&input.hash) || steps.contains_key(&input.age) {
                    continue;
                }
                let past = match input.now() {
                    (Some(node), Some(past)) if self.depends(&past, input.hash)? => Some((past, Some(node))),
                    (None, Some(past)) => Some((past, None)),
                    _ => None,
                };
                match past {
                    Some((past, node)) => pending.push((input.age, input.hash, past, node)),
                    None => {
                        let step = Step::Take(history.clone(), slot, param);
                        steps.insert(input.age, (input.hash, step));
                    }
                }
            }
            steps.insert(age, (hash, Step::Compute { computed, slots, known, tensor }));
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

impl History {
    /// The inputs among nodes of the program.
    fn slots_among(&self, nodes: &[NodeId]) -> impl Iterator<Item = (u32, NodeId)> {
        nodes.iter().filter_map(|&node| match self.program.graph.arg(node) {
            Arg::Param { slot, .. } if (*slot as usize) < self.inputs.len() => Some((*slot, node)),
            _ => None,
        })
    }
}

impl Input {
    /// The tensor, if it still has its value, and how that was computed.
    fn now(&self) -> (Option<Arc<Node>>, Option<Computed>) {
        let node = self.node.upgrade().filter(|node| !node.is_overwritten());
        let past = match (&node, &self.past) {
            (Some(node), Past::Computed(computed)) if !node.is_realized() => Some(computed.clone()),
            (Some(node), _) => node.computed(),
            (None, Past::Computed(computed)) => Some(computed.clone()),
            (None, _) => None,
        };
        (node, past)
    }
}

impl Computed {
    /// The nodes of the program to compute: a call is one node for all of its results.
    fn outputs(&self) -> &[NodeId] {
        match self.history.body {
            Some(_) => &self.history.program.outputs,
            None => std::slice::from_ref(&self.output),
        }
    }
}
