//! Records how a computed tensor was derived, for gradients that are requested after its value was read.
//!
//! A history holds the program that ran, which the plan has anyway, the identities of the tensors that it met, and weak
//! references to its inputs and to intermediate values that the caller had tensors of. A value that is gone is
//! recomputed from its own history, as far as that goes back. Inputs that could not be recomputed are kept alive:
//! buffers that the library made for a caller who cannot keep them, such as that of a number that was passed, and,
//! [within limits](Held), new and detached data. A scalar is likely to be differentiated, so it holds the inputs of its
//! run.

mod held;
mod opening;
mod program;

use held::{Held, Holding};
pub(crate) use opening::{Opening, oldest};
pub(crate) use program::{Program, ends_gradients};

use super::changing::{Changing, moved_windows};
use super::identity::{Identity, Who};
use super::node::Node;
use crate::Result;
use crate::kept::Kept;
use crate::lazy::{Body, Walk, within};
use std::sync::{Arc, LazyLock, Weak};
use tinyspec_ir::{Const, ContentHash, DType, Dim, NodeId, Op};

/// The most successive runs to remember, and the most bytes of programs that no other run shares. They bound a loop
/// that computes each state from the one before.
const GENERATIONS: u32 = 64;
const BYTES: u64 = 64 << 20;

/// One run of a program.
pub(crate) struct History {
    program: Arc<Program>,
    /// The inputs, by slot.
    inputs: Vec<Input>,
    /// The identities of the entries of the program.
    met: Vec<Identity>,
    /// Values that the caller had tensors of. One that is read later than the result may outlive its inputs.
    had: Vec<(NodeId, Weak<Node>)>,
    /// The named dims of the program, whose slots come after those of the inputs.
    dims: Vec<Dim>,
    /// The function that was called.
    body: Option<Arc<Body>>,
    /// Keeps alive the inputs that could not be recomputed.
    #[expect(dead_code, reason = "owned for its inputs")]
    data: Option<Arc<Held>>,
    generation: u32,
    /// Bytes of the program if no other run shares it, like that of a write at a changing offset.
    own_bytes: u64,
    /// The same, summed over everything that is remembered.
    bytes: u64,
}

/// A result of a run.
#[derive(Clone)]
pub(crate) struct Computed {
    history: Arc<History>,
    output: NodeId,
    held: Option<(Holding, Arc<Held>)>,
}

struct Input {
    node: Weak<Node>,
    /// The node itself if the caller has no tensor of it: a number that was passed, a key of random values.
    kept: Option<Arc<Node>>,
    /// A node with its value among the data that the history keeps alive.
    value: Weak<Node>,
    who: Who,
    age: u64,
    dtype: DType,
    past: Past,
}

/// The origin of an input.
enum Past {
    Data,
    Computed(Computed),
    /// Computed longer ago than is remembered.
    Forgotten,
}

impl History {
    /// The run of the `program` of a walk.
    ///
    /// # Errors
    /// As [`History::of_tensors`].
    pub fn new(program: &Arc<Program>, walk: &Walk) -> Result<Arc<History>> {
        Ok(Arc::new(History::run(program, walk)?))
    }

    fn run(program: &Arc<Program>, walk: &Walk) -> Result<History> {
        let met = walk.nodes().map(|node| node.identity()).collect();
        let had = program.entries.iter().zip(walk.nodes());
        let had = had.filter(|(_, node)| !node.is_unheld() && !node.is_realized());
        let had = had.map(|(&entry, node)| (entry, Arc::downgrade(node))).collect();
        Ok(History { met, had, ..History::of(program, walk.leaf_nodes().zip(walk.new_leaves()))? })
    }

    /// The run that computes `roots`. Equal tensors stay separate: plans compute them once, but a gradient is taken
    /// with respect to one of them. Numbers and parts in `changing` become inputs, so that runs which differ only in
    /// these share a program. `None` if something that the roots need is being overwritten.
    ///
    /// # Errors
    /// None for nodes that [`tinyspec_ir::derive()`] has accepted.
    pub fn of_tensors(roots: &[Arc<Node>], changing: &Changing) -> Result<Option<Arc<History>>> {
        static KNOWN: LazyLock<Kept<ContentHash, Arc<Program>>> = LazyLock::new(|| Kept::new(8).with_at_least(4));
        let walk = Walk::of_tensors(roots, changing);
        if !walk.overwritten.is_empty() {
            return Ok(None);
        }
        if let Some(program) = KNOWN.get(&walk.key) {
            return History::new(&program, &walk).map(Some);
        }
        let program = Arc::new(walk.program()?);
        let bytes = program.bytes() as u64;
        KNOWN.insert(walk.key, program.clone(), bytes)?;
        let mut history = History::run(&program, &walk)?;
        history.own_bytes = bytes;
        history.bytes += bytes;
        Ok(Some(Arc::new(history)))
    }

    /// As [`History::of_tensors`], of one tensor.
    ///
    /// # Errors
    /// As there.
    pub fn of_tensor(tensor: &Arc<Node>) -> Result<Option<Arc<History>>> {
        History::of_tensors(std::slice::from_ref(tensor), &Changing::default())
    }

    /// A history with these inputs, each with whether it is new. New data are kept alive, as they may be a batch that
    /// the program is about to drop.
    fn of<'a>(program: &Arc<Program>, inputs: impl Iterator<Item = (&'a Arc<Node>, bool)>) -> Result<History> {
        let (mut generation, mut bytes) = (0, 0);
        let mut data = vec![];
        let inputs = inputs
            .zip(0..)
            .map(|((node, is_new), slot)| {
                // A part is read in place or copied: it stays lazy, and its history is that of the whole tensor.
                let is_part = !matches!(node.op, Op::Const | Op::Buffer) && node.is_lazy();
                let computed = if is_part { Computed::of_part(node)? } else { node.computed() };
                let value = match &computed {
                    _ if is_part || node.is_loop_carried() => None,
                    // No gradient follows its history.
                    Some(_) if !program.reaches(slot) => node.as_data(),
                    None if node.op == Op::Detach || is_new => Some(node.clone()),
                    _ => None,
                };
                data.extend(value.clone());
                let past = match computed {
                    None => Past::Data,
                    Some(_) if value.is_some() => Past::Data,
                    Some(computed) if computed.history.is_remembered() => {
                        generation = generation.max(computed.history.generation + 1);
                        bytes = bytes.max(computed.history.bytes);
                        // A tensor does not keep alive what its inputs hold.
                        Past::Computed(Computed { held: None, ..computed })
                    }
                    Some(_) => Past::Forgotten,
                };
                let kept = (node.op == Op::Const || node.is_internal()).then(|| node.clone());
                Ok(Input {
                    node: Arc::downgrade(node),
                    kept,
                    value: value.as_ref().map(Arc::downgrade).unwrap_or_default(),
                    who: node.who(),
                    age: node.age,
                    dtype: node.props.dtype,
                    past,
                })
            })
            .collect::<Result<_>>()?;
        let data = (!data.is_empty()).then(|| Held::new(Holding::Data, data.into_iter(), 0));
        let (met, had, dims) = (vec![], vec![], vec![]);
        let program = program.clone();
        Ok(History { program, inputs, met, had, dims, body: None, data, generation, own_bytes: 0, bytes })
    }

    /// Whether values computed from its results remember it.
    fn is_remembered(&self) -> bool {
        self.generation + 1 < GENERATIONS && self.bytes < BYTES
    }

    /// The call of a function on tensors and, after them, its named dims; `program` is its body.
    ///
    /// # Errors
    /// None for arguments that were computed.
    pub fn of_call(
        program: &Arc<Program>,
        body: &Arc<Body>,
        arguments: &[Arc<Node>],
        last_run: u64,
    ) -> Result<Arc<History>> {
        let dim = |node: &Arc<Node>| match node.props.value.as_deref() {
            Some([dim]) if node.props.shape.is_empty() => Some(dim.clone()),
            _ => None,
        };
        let dims: Vec<Dim> = arguments.iter().rev().map_while(dim).collect();
        let tensors = &arguments[..arguments.len() - dims.len()];
        let new = tensors.iter().map(|node| (node, node.age >= last_run));
        let mut history = History::of(program, new)?;
        history.dims = dims.into_iter().rev().collect();
        history.body = Some(body.clone());
        Ok(Arc::new(history))
    }

    /// The result of a root, by its position; `None` if no gradient flows through it, so that it is data.
    pub fn result(self: &Arc<History>, position: usize) -> Option<Computed> {
        let output = *self.program.outputs.get(position)?;
        self.program.flows(position).then(|| Computed { history: self.clone(), output, held: None })
    }

    /// Which result of the program it is.
    fn number(&self, output: NodeId) -> usize {
        self.program.outputs.iter().position(|&other| other == output).unwrap_or_default()
    }

    /// The tensors that the program met, with its nodes for them.
    fn tensors(&self) -> impl Iterator<Item = (NodeId, Identity)> {
        let tensors = self.program.tensors.iter();
        let tensors = tensors.filter_map(|&(node, entry)| Some((node, *self.met.get(entry as usize)?)));
        tensors.filter(|(_, identity)| identity.is_tensor())
    }

    /// Values of the program that the caller still has.
    fn living(&self) -> impl Iterator<Item = (NodeId, Arc<Node>)> {
        let living = self.had.iter().filter_map(|(node, had)| Some((*node, had.upgrade()?)));
        living.filter(|(_, had)| !within(had).0.is_overwritten())
    }

    /// The inputs among nodes of the program: slots and Params.
    fn inputs_among(&self, nodes: &[NodeId]) -> impl Iterator<Item = (usize, NodeId)> {
        let slots = nodes.iter().filter_map(|&node| Some((self.program.slot(node)? as usize, node)));
        slots.filter(|&(slot, _)| slot < self.inputs.len())
    }
}

impl Input {
    /// Its value, if the program wrote it as a number.
    fn number(&self) -> Option<Const> {
        self.kept.as_ref().filter(|node| node.op == Op::Const)?.literal()
    }

    /// The tensor, if it still has its value, and how that was computed. A number has no tensor: a gradient emits it as
    /// a constant again.
    fn now(&self) -> (Option<Arc<Node>>, Option<Computed>) {
        if self.number().is_some() {
            return (None, None);
        }
        let held = [self.kept.clone(), self.node.upgrade(), self.value.upgrade()];
        // A part is read in place from the whole tensor.
        let node = held.into_iter().flatten().find(|node| !within(node).0.is_overwritten());
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
    /// How a part derives from the whole tensor; `None` if that is being overwritten. Its offsets change from run to
    /// run, so they are data.
    fn of_part(part: &Arc<Node>) -> Result<Option<Computed>> {
        let windows = moved_windows(part)?;
        let Some(mut history) = History::of_tensors(std::slice::from_ref(part), &windows)? else { return Ok(None) };
        if let Some(history) = Arc::get_mut(&mut history) {
            // A part is no run.
            history.generation = history.generation.saturating_sub(1);
            // If the whole tensor is the last that is remembered, it is forgotten rather than the part.
            if !history.is_remembered() {
                history.inputs.iter_mut().for_each(|input| input.past = Past::Forgotten);
                (history.generation, history.bytes) = (0, history.own_bytes);
            }
        }
        let output = history.program.outputs.first().copied();
        Ok(output.map(|output| Computed { history, output, held: None }))
    }

    /// The history of `tensor`. A scalar that has not been differentiated also holds the inputs of its run. So does a tensor that was
    /// computed without a request, except for weights stepped by an optimiser, which gradients treat as data.
    pub fn of(mut self, tensor: &Node) -> Computed {
        let inputs = self.history.inputs.iter().filter_map(|input| input.node.upgrade());
        let bytes = self.history.own_bytes;
        self.held = match tensor.props.element_count().is(1) && !tensor.is_differentiated() {
            true => Some((Holding::Loss, Held::new(Holding::Loss, inputs, bytes))),
            false if tensor.is_unrequested() => {
                let inputs = inputs.filter(|input| !input.is_loop_carried());
                Some((Holding::Unrequested, Held::new(Holding::Unrequested, inputs, bytes)))
            }
            false => None,
        };
        self
    }

    /// Releases the inputs of a loss.
    pub fn release(&self) {
        if let Some((Holding::Loss, held)) = &self.held {
            held.release();
        }
    }

    /// The nodes of the program to compute: a call is one node for all of its results.
    fn outputs(&self) -> &[NodeId] {
        match self.history.body {
            Some(_) => &self.history.program.outputs,
            None => std::slice::from_ref(&self.output),
        }
    }
}
