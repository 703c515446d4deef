//! Follows histories backwards: adds computed tensors to a graph for gradients, as far as they depend on the wanted
//! tensors.

use super::{Computed, GENERATIONS, History, Past};
use crate::lazy::callify::{param, twin};
use crate::lazy::{Identity, Node, Who};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use tinyspec_ir::eval::identity;
use tinyspec_ir::function::inline_known;
use tinyspec_ir::{Arg, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};

/// Opens computed tensors in a graph if they depend on a wanted one.
pub(crate) struct Opening {
    wanted: FxHashSet<Who>,
    /// Age of the oldest wanted tensor: older nodes depend on none of them.
    oldest: u64,
    /// Nodes of the graph, by the tensors that they stand for.
    known: FxHashMap<Who, NodeId>,
    /// The same for values that no gradient flows through. Another path to the same tensor may still be opened.
    data: FxHashMap<Who, NodeId>,
    /// Whether a result depends on a wanted tensor, by run and result.
    depends: FxHashMap<(*const History, NodeId), bool>,
    next_slot: u32,
    /// The tensors that were found on the way.
    pub origins: Vec<(NodeId, Arc<Node>)>,
    /// Copies of tensors that a program met and that may no longer exist.
    pub copies: Vec<(NodeId, Identity)>,
    /// Params that stand for values that are gone.
    pub gone: Vec<NodeId>,
    /// Numbers that the program may change.
    pub numbers: Vec<NodeId>,
    /// Calls a function that is compiled once for all sizes.
    pub has_ranged: bool,
}

/// The age below which no tensor depends on any of `wanted`.
pub(crate) fn oldest(wanted: &[Arc<Node>]) -> u64 {
    let age = |node: &Arc<Node>| if node.identity().is_tensor() { node.identity().age() } else { node.age };
    wanted.iter().map(age).min().unwrap_or_default()
}

/// A step back: a result to recompute, or a value to take as it is.
enum Step {
    Compute(Computed, Option<Arc<Node>>),
    /// The input of this slot, by its Param in the program.
    Take(Arc<History>, usize, NodeId),
}

impl Opening {
    /// Slots from `next_slot` on are free.
    pub fn new(wanted: &[Arc<Node>], next_slot: u32) -> Opening {
        Opening {
            wanted: wanted.iter().map(|node| node.who()).collect(),
            oldest: oldest(wanted),
            known: FxHashMap::default(),
            data: FxHashMap::default(),
            depends: FxHashMap::default(),
            next_slot,
            origins: Vec::new(),
            copies: Vec::new(),
            gone: Vec::new(),
            numbers: Vec::new(),
            has_ranged: false,
        }
    }

    /// The node that already represents a tensor in the graph.
    pub fn known(&self, tensor: &Node) -> Option<NodeId> {
        self.known.get(&tensor.who()).copied()
    }

    /// Records that `new` represents `node` in the graph.
    pub fn meet(&mut self, node: &Node, new: NodeId) {
        if node.identity().is_tensor() {
            self.known.insert(node.who(), new);
        }
    }

    /// The derivation of a computed tensor; a Param for data and for values that depend on no wanted tensor.
    ///
    /// # Errors
    /// When it lies too far back.
    pub fn open(&mut self, graph: &mut Graph, tensor: &Node, slot: u32) -> Result<NodeId> {
        let Some(computed) = self.history_of(tensor)? else {
            let param = param(graph, &tensor.props, slot)?;
            self.known.insert(tensor.who(), param);
            return Ok(param);
        };
        // Values that are taken as they are come first: a number may be younger than a value computed from it. Computed values are in the
        // order of their age, since each is older than whatever depends on it.
        let (taken, made): (Vec<_>, Vec<_>) =
            self.steps(tensor, computed)?.into_values().partition(|(_, step, _)| matches!(step, Step::Take(..)));
        for (who, step, flows) in taken.into_iter().chain(made) {
            let node = match (self.value(&who, flows), &step) {
                (Some(known), _) => known,
                (None, Step::Compute(computed, _)) => self.compute(graph, computed, flows)?,
                (None, Step::Take(history, slot, param)) => self.take(graph, history, *slot, *param)?,
            };
            let tensor = match step {
                Step::Compute(_, tensor) => tensor,
                Step::Take(history, slot, _) => history.inputs[slot].now().0,
            };
            match tensor {
                Some(tensor) => self.origins.push((node, tensor)),
                // Only a Param is a gone value; a recomputed one is a copy.
                None if graph.op(node) == Op::Param => self.gone.push(node),
                None => {}
            }
            self.insert(who, node, flows);
        }
        let opened = self.known.get(&tensor.who()).copied();
        opened.ok_or_else(|| Error::new(ErrorKind::Verify, "grad", "a history without a result"))
    }

    /// The history of a computed tensor, if it depends on a wanted one.
    ///
    /// # Errors
    /// When it lies too far back.
    pub fn history_of(&mut self, tensor: &Node) -> Result<Option<Computed>> {
        match tensor.computed() {
            Some(computed) if tensor.age > self.oldest && self.depends(&computed)? => Ok(Some(computed)),
            _ => Ok(None),
        }
    }

    /// The node that stands for a tensor, on a path that a gradient `flows` through or on another.
    fn value(&self, who: &Who, flows: bool) -> Option<NodeId> {
        self.known.get(who).or_else(|| self.data.get(who).filter(|_| !flows)).copied()
    }

    fn insert(&mut self, who: Who, node: NodeId, flows: bool) {
        if flows { &mut self.known } else { &mut self.data }.insert(who, node);
    }

    /// Whether gradients of a computed tensor reach another wanted tensor.
    ///
    /// # Errors
    /// When its history is no longer remembered.
    fn depends(&mut self, computed: &Computed) -> Result<bool> {
        let Computed { history, output, .. } = computed;
        let key = (Arc::as_ptr(history), *output);
        if let Some(&known) = self.depends.get(&key) {
            return Ok(known);
        }
        let program = &history.program;
        let passed = program.graph.reachable_until(computed.outputs(), |node| program.ends(node));
        let tensor = |node: NodeId| history.met.get(program.entry(node)?);
        let is_wanted = |node: &NodeId| tensor(*node).is_some_and(|tensor| self.wanted.contains(&tensor.as_tensor()));
        let mut depends = passed.iter().any(|node| node != output && is_wanted(node));
        for (slot, _) in history.inputs_among(&passed) {
            let input = &history.inputs[slot];
            depends |= self.wanted.contains(&input.who);
            depends |= match (input.now(), &input.past) {
                ((_, Some(past)), _) => input.age > self.oldest && self.depends(&past)?,
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

    /// Everything that `tensor` derives from and that is not in the graph, by age, and whether gradients flow through
    /// it.
    ///
    /// # Errors
    /// As [`Opening::depends`].
    fn steps(&mut self, tensor: &Node, computed: Computed) -> Result<BTreeMap<u64, (Who, Step, bool)>> {
        let mut steps = BTreeMap::new();
        let mut pending = vec![(tensor.age, tensor.who(), computed, None, true)];
        // Inputs that gradients do not flow through. They come last: a gradient may flow through the same tensors on other paths.
        let mut data: Vec<(Arc<History>, usize, NodeId)> = vec![];
        loop {
            while let Some((age, who, computed, tensor, flows)) = pending.pop() {
                if steps.contains_key(&age) {
                    continue;
                }
                let history = &computed.history;
                let known = self.known_of(history, flows);
                let (program, outputs) = (&history.program, computed.outputs());
                let needed = program.graph.reachable_until(outputs, |node| known.contains_key(&node));
                let flowing = if flows { program.flowing(outputs, &known) } else { FxHashSet::default() };
                for (slot, param) in history.inputs_among(&needed) {
                    let input = &history.inputs[slot];
                    if !flowing.contains(&param) {
                        data.push((history.clone(), slot, param));
                        continue;
                    }
                    if self.known.contains_key(&input.who) || steps.contains_key(&input.age) {
                        continue;
                    }
                    let past = match input.now() {
                        (Some(node), Some(past)) if input.age > self.oldest && self.depends(&past)? => {
                            Some((past, Some(node)))
                        }
                        (None, Some(past)) => Some((past, None)),
                        _ => None,
                    };
                    match past {
                        Some((past, node)) => pending.push((input.age, input.who, past, node, true)),
                        None => {
                            steps.insert(input.age, (input.who, Step::Take(history.clone(), slot, param), true));
                        }
                    }
                }
                steps.insert(age, (who, Step::Compute(computed, tensor), flows));
            }
            let Some((history, slot, param)) = data.pop() else { return Ok(steps) };
            let input = &history.inputs[slot];
            if self.value(&input.who, false).is_some() || steps.contains_key(&input.age) {
                continue;
            }
            match input.now() {
                (None, Some(past)) => pending.push((input.age, input.who, past, None, false)),
                _ => {
                    steps.insert(input.age, (input.who, Step::Take(history.clone(), slot, param), false));
                }
            }
        }
    }

    /// Nodes of a program that are in the graph: tensors that it met, and its inputs.
    fn known_of(&self, history: &History, flows: bool) -> FxHashMap<NodeId, NodeId> {
        let tensors = history.tensors().map(|(node, tensor)| (node, tensor.as_tensor()));
        tensors.filter_map(|(node, who)| Some((node, self.value(&who, flows)?))).collect()
    }

    /// Recomputes a result from known inputs.
    fn compute(&mut self, graph: &mut Graph, computed: &Computed, flows: bool) -> Result<NodeId> {
        let Computed { history, output, .. } = computed;
        let program = &history.program;
        let lost = || Error::new(ErrorKind::Verify, "grad", "a program without a result");
        if let Some(body) = &history.body {
            // Unneeded arguments may have any value.
            let argument = |input: &super::Input| match self.value(&input.who, false) {
                Some(known) => known,
                None => graph.constant(identity(Op::Add, input.dtype)),
            };
            let mut arguments: Vec<NodeId> = history.inputs.iter().map(argument).collect();
            for dim in &history.dims {
                arguments.push(graph.dim(dim)?);
            }
            self.has_ranged = true;
            let results = body.open(graph, &arguments)?;
            return twin(graph, *results.get(history.number(*output)).ok_or_else(lost)?);
        }
        let mut known = self.known_of(history, flows);
        let all = program.graph.reachable_until(&[*output], |node| known.contains_key(&node));
        let flowing = if flows { program.flowing(&[*output], &known) } else { FxHashSet::default() };
        for (slot, param) in history.inputs_among(&all) {
            if let Some(input) = self.value(&history.inputs[slot].who, false) {
                known.insert(param, input);
            }
        }
        let tensors: FxHashMap<NodeId, Identity> = history.tensors().collect();
        let nodes = inline_known(graph, &program.graph, &[*output], &known, |node| tensors.contains_key(&node))?;
        let new = |node: NodeId| nodes[node.index()].filter(|_| !known.contains_key(&node));
        for (node, tensor) in tensors {
            if let Some(new) = new(node) {
                self.insert(tensor.as_tensor(), new, flowing.contains(&node));
                self.copies.push((new, tensor));
            }
        }
        self.origins.extend(history.living().filter_map(|(node, living)| Some((new(node)?, living))));
        nodes[output.index()].ok_or_else(lost)
    }

    /// A Param for a value as it is. A number becomes a constant again, since the gradients of some ops look for constants.
    fn take(&mut self, graph: &mut Graph, history: &History, slot: usize, before: NodeId) -> Result<NodeId> {
        if let Some(number) = history.inputs[slot].number() {
            let number = graph.add_unmerged(Op::Const, &[], Arg::Const(number))?;
            self.numbers.push(number);
            return Ok(number);
        }
        let mut props = history.program.graph.props(before).clone();
        let first = history.inputs.len() as u32;
        let value = |slot: u32| history.dims.get(slot.checked_sub(first)? as usize).cloned();
        props.shape = props.shape.iter().map(|dim| dim.substitute(&value)).collect();
        let param = param(graph, &props, self.next_slot)?;
        self.next_slot += 1;
        Ok(param)
    }
}
