//! Rangeify ("Lowering Pipeline"): divides a tensor graph into kernels and reduces all values to shape `()`.
//!
//! One walk from the outputs down gives every tensor node the indices at which its consumers read it (`walk`), with
//! movement ops as functions of an index (`movement`, `index`). All demands on a node are known when it is reached, so
//! one law decides there whether it is recomputed in its consumers or written to memory (`fusion`). A sweep upwards
//! then builds the scalar values (`values`). Kernels over one iteration space merge (`horizontal_fusion`), and each is
//! closed over its own Params and Ranges (`close`).

mod cache_blocks;
mod choices;
mod close;
mod compared;
mod concat;
mod count;
mod deduplicate;
mod depends;
mod donate;
mod fusion;
mod hand_written;
mod horizontal_fusion;
mod index;
mod movement;
mod narrow;
mod nested;
mod online;
mod passes;
mod split_reduce;
mod tile;
mod two_level_scan;
mod values;
mod variance;
mod walk;

use cache_blocks::block_products;
pub use concat::parted;
pub use donate::Donation;
pub use fusion::{Costs, Decision, Reason};
pub use passes::{CUT, DIVIDE, SCHEDULE, SIMPLIFY, SchedulePass, TensorPass, run_on_schedule, run_on_tensors};
use split_reduce::split_reduces;
use two_level_scan::two_level_scans;

use super::optimize;
use concat::{Concats, Region};
use movement::{elements, shape};
use online::Online;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::{
    AddrSpace, Arg, Builder, ContentHash, DType, Device, Dim, Error, ErrorKind, Graph, Location, NodeId, Op, Result,
    Shape, dim, verify,
};
use walk::Walk;

/// A Call of the schedule.
#[derive(Clone, Debug)]
pub struct KernelCall {
    /// The Call: `(kernel, buffers…, dims…)`.
    pub node: NodeId,
    /// Its kernel: a Sink in range form, or a custom function. Equal kernels are one node.
    pub kernel: NodeId,
    /// The number of buffers that it writes; they come first.
    pub outputs: usize,
    /// The user's lines that it computes; for a kernel written by hand, those that call it.
    pub locations: Vec<Location>,
    /// The Reduces that it computes, in the tensor graph that was cut into kernels.
    pub reduces: Vec<NodeId>,
    /// Written by hand: its schedule is the user's.
    pub hand_written: Option<HandWritten>,
    /// The dtypes and shapes of its buffers, if they are told to a custom function; its `kernel` is a CustomFunction then.
    pub told: Vec<(DType, Shape)>,
    /// The definition of a hand-written kernel, unless it is called on the same line.
    pub definition: Option<Location>,
}

impl KernelCall {
    /// The user's line that errors and the profile show; empty where none is known.
    pub(crate) fn line(&self) -> String {
        match (self.locations.first(), &self.definition) {
            (Some(call), Some(definition)) => format!("{call} (kernel at {definition})"),
            (one, other) => one.or(other.as_ref()).map(ToString::to_string).unwrap_or_default(),
        }
    }

    /// Whether its arguments include values of named dims.
    fn takes_dims(&self, graph: &Graph) -> bool {
        graph.sources(self.node)[1..].iter().any(|&node| graph.dtype(node) == DType::Index)
    }
}

/// The user's names for a kernel and its buffers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandWritten {
    /// The kernel.
    pub name: String,
    /// Its buffers, by Param.
    pub buffers: Vec<String>,
}

/// A tensor graph as Calls on kernels.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Kernels, Calls and buffers.
    pub graph: Graph,
    /// `Sink(After(Buffer, Call) …)`, one source per output, in order. An empty tensor is a bare Buffer.
    pub root: NodeId,
    /// The sources of `root`.
    pub outputs: Vec<NodeId>,
    /// The Calls, in an order in which they can run.
    pub calls: Vec<KernelCall>,
    /// The Buffers that Calls write, outputs and temporaries, by slot (from 0, or above the tensor graph's own).
    pub buffers: Vec<NodeId>,
    /// The decisions of the fusion law, consumers first.
    pub decisions: Vec<Decision>,
    /// The results that take the memory of an input.
    pub donations: Vec<Donation>,
}

impl Schedule {
    /// The decisions of the fusion law, one per line, with the user's line if known.
    pub fn explain(&self, tensors: &Graph) -> String {
        let mut text = String::new();
        for decision in &self.decisions {
            text += &decision.to_string();
            if let Some(location) = tensors.locations(decision.node).first() {
                text += &format!(" (at {location})");
            }
            text.push('\n');
        }
        text
    }
}

/// The schedule that computes `outputs`: Functions inlined, Params (or Buffers) for inputs.
///
/// # Errors
/// When the graph has something that no kernel can contain: named dims, calls, moves between devices.
pub fn rangeify(graph: &Graph, outputs: &[NodeId], target: &Target) -> Result<Schedule> {
    rangeify_unfused(graph, outputs, target, &FxHashSet::default())
}

/// As [`rangeify`], with kernels of their own for some of the [reduces](KernelCall::reduces) of an earlier schedule.
///
/// # Errors
/// As [`rangeify`].
pub(crate) fn rangeify_unfused(
    graph: &Graph,
    outputs: &[NodeId],
    target: &Target,
    unfused: &FxHashSet<NodeId>,
) -> Result<Schedule> {
    rangeify_by(graph, outputs, &Costs::of(target), target, unfused)
}

/// As [`rangeify`], with the costs that the fusion law weighs.
///
/// # Errors
/// As [`rangeify`].
pub fn rangeify_with(graph: &Graph, outputs: &[NodeId], costs: &Costs, target: &Target) -> Result<Schedule> {
    rangeify_by(graph, outputs, costs, target, &FxHashSet::default())
}

fn rangeify_by(
    graph: &Graph,
    outputs: &[NodeId],
    costs: &Costs,
    target: &Target,
    unfused: &FxHashSet<NodeId>,
) -> Result<Schedule> {
    let divided = run_on_tensors(DIVIDE, graph, outputs, costs, target)?;
    let (graph, outputs) = divided.as_ref().map_or((graph, outputs), |(graph, outputs)| (graph, &outputs[..]));
    let mut refused = Refused { unfused: unfused.clone(), ..Refused::default() };
    let mut known = FxHashMap::default();
    loop {
        let Scheduled { schedule, online, apart } = schedule(graph, outputs, costs, &refused)?;
        let before = refused.fused.len();
        refused.fused.extend(apart);
        let failed = without_blocks(&schedule, &online, target, &mut known)?;
        if failed.is_empty() && refused.fused.len() == before {
            return Ok(schedule);
        }
        for family in failed {
            if !refused.together.insert(family) {
                refused.families.insert(family);
            }
        }
    }
}

/// Decisions that an earlier attempt at a schedule has ruled out.
#[derive(Default)]
struct Refused {
    /// Matrices for which no kernel over blocks can compute several sums, or a sum and something else: each sum has its
    /// own kernel.
    together: FxHashSet<usize>,
    /// Matrices for which there is no kernel over blocks even then: they are stored after all.
    families: FxHashSet<usize>,
    /// Running Reduces that no loop of their consumer carries.
    fused: FxHashSet<NodeId>,
    /// Reduces whose kernels could not be lowered: each gets a kernel of its own.
    unfused: FxHashSet<NodeId>,
}

/// A schedule, and facts that are known only once its kernels are built.
struct Scheduled {
    schedule: Schedule,
    /// For each of its Calls, the matrices that it sums in blocks.
    online: Vec<Option<usize>>,
    /// Running Reduces that should have kernels of their own.
    apart: Vec<NodeId>,
}

/// The families whose kernels cannot be tiled online. `known` memoises which kernels can.
fn without_blocks(
    schedule: &Schedule,
    online: &[Option<usize>],
    target: &Target,
    known: &mut FxHashMap<ContentHash, bool>,
) -> Result<FxHashSet<usize>> {
    let mut failed = FxHashSet::default();
    for (call, family) in schedule.calls.iter().zip(online) {
        let Some(family) = *family else { continue };
        let hash = schedule.graph.content_hash(&[call.kernel]);
        let sums = match known.get(&hash) {
            Some(&sums) => sums,
            None => sums_in_blocks(&schedule.graph, call.kernel, target)?,
        };
        known.insert(hash, sums);
        if !sums {
            failed.insert(family);
        }
    }
    Ok(failed)
}

/// Whether online tiling can compute the sums of a kernel.
fn sums_in_blocks(graph: &Graph, kernel: NodeId, target: &Target) -> Result<bool> {
    let mut own = Graph::new();
    let roots = own.import(graph, &[kernel], |_, _| Ok(None))?;
    let Some(online) = optimize::online::Online::of(&mut own, roots[0], target)? else { return Ok(false) };
    let (own, sink) = online.build(optimize::Blocking::default(), target)?;
    Ok(verify::loops(&own, sink).is_ok())
}

fn schedule(graph: &Graph, outputs: &[NodeId], costs: &Costs, refused: &Refused) -> Result<Scheduled> {
    let live = graph.reachable(outputs);
    let mut forced: FxHashMap<NodeId, Reason> = FxHashMap::default();
    for &node in &live {
        check(graph, node).map_err(|error| graph.located(node, error))?;
        if let (named, Some(reason)) = walk::named(graph, node)
            && forced.get(&named) != Some(&Reason::Contiguous)
        {
            forced.insert(named, reason);
        }
    }
    let results: Vec<NodeId> = outputs.iter().map(|&output| walk::held_in(graph, output)).collect();
    for &result in &results {
        if walk::is_leaf(graph, result) || forced.get(&result) != Some(&Reason::Contiguous) {
            forced.insert(result, Reason::Output);
        }
    }
    for sum in compared::sums_below_compared_maxima(graph, &live) {
        forced.entry(sum).or_insert(Reason::Compared);
    }
    forced.extend(refused.fused.iter().map(|&node| (node, Reason::Direction)));
    forced.extend(refused.unfused.iter().map(|&node| (node, Reason::Unfused)));
    let calls = hand_written::calls(graph, &live)?;
    for (&call, hand_written) in &calls {
        for input in hand_written.inputs(graph, call) {
            forced.entry(input).or_insert(Reason::Call);
        }
    }
    let online = Online::find(graph, &live, &forced, costs, &refused.families, &refused.together);
    // Kernels written by hand take whole buffers.
    let concats = if calls.is_empty() { Concats::find(graph, &live, &results) } else { Concats::default() };
    for whole in concats.wholes() {
        forced.entry(whole).or_insert(Reason::Parts);
    }
    let mut walk = Walk::new(graph, &live, &forced, costs, &calls, online, concats);
    walk.run(&live, &forced)?;
    let values = walk.values(&live)?;
    let groups = horizontal_fusion::groups(&mut walk, &values, costs);
    let first_slot = live.iter().filter_map(|&node| buffer_slot(graph, node)).max().map_or(0, |slot| slot + 1);
    let mut assembly = Assembly {
        graph: Graph::new(),
        tensors: graph,
        places: FxHashMap::default(),
        buffers: vec![],
        first_slot,
        results: &results,
        wholes: FxHashMap::default(),
    };
    let mut schedule = Vec::with_capacity(groups.len());
    let mut online = Vec::with_capacity(groups.len());
    let mut apart = Vec::new();
    for members in groups {
        let family = members.first().and_then(|&member| walk.kernels[member].online);
        match members.first().and_then(|&member| walk.kernels[member].hand_written) {
            Some(call) => schedule.extend(assembly.hand_written(&walk, call)?),
            None => schedule.extend(assembly.calls(&mut walk, &members, &values, &mut apart)?),
        }
        online.resize(schedule.len(), family);
    }
    let outputs = results.iter().map(|&result| assembly.output(&walk, result)).collect::<Result<Vec<_>>>()?;
    let root = assembly.graph.add(Op::Sink, &outputs, Arg::None)?;
    let schedule = Schedule {
        graph: assembly.graph,
        root,
        outputs,
        calls: schedule,
        buffers: assembly.buffers,
        decisions: walk.decisions,
        donations: Vec::new(),
    };
    Ok(Scheduled { schedule, online, apart })
}

/// Refuses nodes that no kernel can express.
fn check(graph: &Graph, node: NodeId) -> Result<()> {
    let device = |node: NodeId| graph.props(node).device.as_ref();
    match graph.op(node) {
        Op::Load if let &Arg::Load { addrspace: space @ (AddrSpace::Local | AddrSpace::Reg), .. } = graph.arg(node) => {
            let (space, shape) = (space.name().to_uppercase(), dim::show(&graph.props(node).shape));
            let message = format!("a temporary of shape {shape} is placed in {space} memory, which only kernels have");
            Err(Error::new(ErrorKind::Unsupported, Op::Load.name(), message).help(
                "load[global], as contiguous() does, stores it for all kernels; a kernel of uop! has LOCAL buffers and registers, \
                 and stage(…) in a schedule copies what a kernel reads into LOCAL memory",
            ))
        }
        Op::Load if device(node).is_some() && device(node) != device(graph.source(node, 0)) => {
            // A constant has no device: it can be made anywhere.
            match device(graph.source(node, 0)) {
                None => Ok(()),
                Some(from) => {
                    let to = device(node).map(Device::to_string).unwrap_or_default();
                    let message = format!("a move from {from} to {to} is not a kernel");
                    Err(Error::new(ErrorKind::Unsupported, Op::Load.name(), message)
                        .help("realize the value, then move its data"))
                }
            }
        }
        Op::Call if tinyspec_ir::kernel::is_opaque(graph, node) => Ok(()),
        op @ (Op::Function | Op::Call | Op::Replicated) => {
            Err(Error::new(ErrorKind::Unsupported, op.name(), "is still there when kernels are made"))
        }
        _ => Ok(()),
    }
}

/// The schedule graph while it grows.
struct Assembly<'a> {
    graph: Graph,
    tensors: &'a Graph,
    /// The storage of each tensor node: a leaf, or a Buffer after its Call.
    places: FxHashMap<NodeId, NodeId>,
    buffers: Vec<NodeId>,
    /// Lower slots belong to Buffers of the tensor graph.
    first_slot: u32,
    /// The tensor nodes of the roots.
    results: &'a [NodeId],
    /// The Buffers of stacks that are written in parts.
    wholes: FxHashMap<NodeId, NodeId>,
}

fn buffer_slot(graph: &Graph, node: NodeId) -> Option<u32> {
    match graph.arg(node) {
        Arg::Buffer { slot, .. } => Some(*slot),
        _ => None,
    }
}

impl Assembly<'_> {
    /// One kernel, unless no single loop can carry its running Reduces: then its members become separate kernels, and
    /// if that is not enough, one of the Reduces is added to `apart`.
    fn calls(
        &mut self,
        walk: &mut Walk,
        members: &[usize],
        values: &[NodeId],
        apart: &mut Vec<NodeId>,
    ) -> Result<Vec<KernelCall>> {
        let running: usize = members.iter().map(|&member| walk.kernels[member].running.len()).sum();
        let (buffers, wholes) = (self.buffers.len(), self.wholes.clone());
        let call = self.call(walk, members, values)?;
        if running < 2 || optimize::windows::agree(&self.graph, call.kernel)? {
            return Ok(vec![call]);
        }
        if let &[member] = members {
            let kernel = &walk.kernels[member];
            let is_inner = |node: &&NodeId| kernel.outputs.first().is_some_and(|output| output.0 != **node);
            apart.extend(kernel.running.iter().find(is_inner));
            return Ok(vec![call]);
        }
        self.buffers.truncate(buffers);
        self.wholes = wholes;
        let mut calls = Vec::new();
        for &member in members {
            calls.extend(self.calls(walk, &[member], values, apart)?);
        }
        Ok(calls)
    }

    fn call(&mut self, walk: &mut Walk, members: &[usize], values: &[NodeId]) -> Result<KernelCall> {
        let closed = close::close(walk, &mut self.graph, members, values)?;
        let outputs: usize = members.iter().map(|&member| walk.kernels[member].outputs.len()).sum();
        let mut sources = vec![closed.sink];
        let mut written = Vec::with_capacity(outputs);
        for &tensor in &closed.slots[..outputs] {
            let buffer = match walk.concats.part(tensor) {
                Some(part) => self.part(part)?,
                None => self.buffer(tensor)?,
            };
            written.push((tensor, buffer));
            sources.push(buffer);
        }
        for &tensor in &closed.slots[outputs..] {
            sources.push(match (walk.concats.parts(tensor), walk.concats.overlapping(tensor)) {
                (Some(parts), _) => self.whole(walk, tensor, parts)?,
                (None, Some(part)) => self.part(part)?,
                (None, None) => self.place(tensor)?,
            });
        }
        for dim in &closed.dims {
            sources.push(self.graph.dim(dim)?);
        }
        let node = self.graph.add(Op::Call, &sources, Arg::None)?;
        for (tensor, buffer) in written {
            let after = self.graph.add(Op::After, &[buffer, node], Arg::None)?;
            self.places.insert(tensor, after);
        }
        // Order Calls whose memory overlaps.
        for (whole, _) in closed.slots.iter().filter_map(|&tensor| walk.concats.overlapping(tensor)) {
            let state = self.graph.add(Op::After, &[self.wholes[&whole], node], Arg::None)?;
            self.wholes.insert(whole, state);
        }
        let mut locations: Vec<Location> = Vec::new();
        for &member in members {
            for &located in &walk.kernels[member].located {
                for location in self.tensors.locations(located) {
                    if !locations.contains(location) {
                        locations.push(location.clone());
                    }
                }
            }
        }
        let reduces = members.iter().flat_map(|&member| walk.kernels[member].reduces.iter().copied()).collect();
        for location in &locations {
            self.graph.locate(node, location.clone());
        }
        Ok(KernelCall {
            node,
            kernel: closed.sink,
            outputs,
            locations,
            reduces,
            hand_written: None,
            told: vec![],
            definition: None,
        })
    }

    /// A new flat Buffer for a tensor node.
    fn buffer(&mut self, tensor: NodeId) -> Result<NodeId> {
        let size = elements(shape(self.tensors, tensor));
        let arg = Arg::Buffer {
            slot: self.first_slot + self.buffers.len() as u32,
            dtype: values::storage(self.tensors.dtype(tensor)),
            device: self.tensors.props(tensor).device.clone(),
            addrspace: AddrSpace::Global,
        };
        let shape = self.graph.shape(&Shape::from_iter([size]))?;
        let buffer = self.graph.add(Op::Buffer, &[shape], arg)?;
        self.buffers.push(buffer);
        Ok(buffer)
    }

    /// The section of a concatenation's Buffer that holds one of its parts.
    fn part(&mut self, (whole, place): (NodeId, Region)) -> Result<NodeId> {
        let state = match self.wholes.get(&whole) {
            Some(&state) => state,
            None => {
                let buffer = self.buffer(whole)?;
                self.wholes.insert(whole, buffer);
                buffer
            }
        };
        let offset = self.graph.shape(&Shape::from_iter([Dim::from(place.start())]))?;
        let size = self.graph.shape(&Shape::from_iter([Dim::from(place.length())]))?;
        self.graph.add(Op::Shrink, &[state, offset, size], Arg::None)
    }

    /// The Buffer of a concatenation, after the Calls that write its parts.
    fn whole(&mut self, walk: &Walk, whole: NodeId, parts: &[NodeId]) -> Result<NodeId> {
        if parts.iter().any(|&part| walk.concats.overlapping(part).is_some()) {
            return Ok(self.wholes[&whole]);
        }
        let mut sources = vec![self.wholes[&whole]];
        for part in parts {
            let call = self.graph.source(self.places[part], 1);
            if !sources.contains(&call) {
                sources.push(call);
            }
        }
        self.graph.add(Op::After, &sources, Arg::None)
    }

    /// The flat storage of a tensor node that a kernel reads: a leaf, or a Buffer written earlier.
    fn place(&mut self, tensor: NodeId) -> Result<NodeId> {
        if let Some(&place) = self.places.get(&tensor).filter(|_| !walk::is_leaf(self.tensors, tensor)) {
            return Ok(place);
        }
        let (op, arg) = (self.tensors.op(tensor), self.tensors.arg(tensor).clone());
        if op == Op::Binary {
            return self.graph.add(op, &[], arg);
        }
        debug_assert!(walk::is_leaf(self.tensors, tensor), "kernels run after those whose results they read");
        let size = elements(shape(self.tensors, tensor));
        let shape = self.graph.shape(&Shape::from_iter([size]))?;
        let arg = match arg {
            Arg::Param { slot, dtype, device, .. } => {
                Arg::Param { slot, dtype: values::storage(dtype), device, addrspace: Some(AddrSpace::Global) }
            }
            other => other,
        };
        self.graph.add(op, &[shape], arg)
    }

    fn output(&mut self, walk: &Walk, tensor: NodeId) -> Result<NodeId> {
        if let Some(parts) = walk.concats.parts(tensor) {
            return self.whole(walk, tensor, parts);
        }
        match self.places.get(&tensor) {
            Some(&place) => Ok(place),
            // An empty tensor: nothing writes it.
            None => {
                let buffer = self.buffer(tensor)?;
                self.places.insert(tensor, buffer);
                Ok(buffer)
            }
        }
    }
}
