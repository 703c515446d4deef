//! The driver of the lowering: from a stateless tensor graph to launches, one stage after the other.

use super::callify::Callified;
use super::kernel;
use super::optimize::Scheduler;
use super::plan::{self, Lifetime};
use super::rangeify::{self, ByHand, KernelCall, Schedule};
use crate::Result;
use crate::cache;
use crate::execute::{Device, Owner, Storage};
use crate::profile::{self, Level};
use crate::search;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tinyspec_backends::{Grid, Launch, LinearKernel, Program};
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{Arg, Builder, ContentHash, ContentHasher, Graph, NodeId, Op, rules, verify};

/// A compiled kernel, shared by all plans that launch it.
pub(crate) struct Kernel {
    pub program: Arc<dyn Program>,
    pub name: String,
    /// Axes as the profile shows them.
    pub axes: String,
    pub scratch_bytes: usize,
    pub global_trips: usize,
    pub grid: Grid,
    /// Operations on elements.
    pub work: u64,
    /// Estimated time on one thread; none where nobody knows the schedule.
    pub nanoseconds: Option<u64>,
}

/// What a launch does, for the profile.
pub(crate) struct Step {
    pub kernel: Arc<Kernel>,
    pub location: String,
    /// Bytes of the buffers it reads and writes.
    pub bytes: u64,
}

/// Where a buffer of the launches comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    /// An argument, by slot.
    Leaf(u32),
    /// A result, by number.
    Output(u32),
    /// A temporary, by offset in the arena.
    Arena(usize),
    /// Data of the graph itself, by number.
    Constant(u32),
}

/// What runs: a list of launches over a table of buffers. Running it looks at no graph.
pub(crate) struct Plan {
    /// What it computes, where gradients may ask.
    pub program: Option<Arc<Callified>>,
    pub device: Arc<Device>,
    pub launches: Vec<Launch>,
    pub steps: Vec<Step>,
    pub table: Vec<Place>,
    pub constants: Vec<Storage>,
    pub arena_bytes: usize,
    /// Bytes of each result.
    pub outputs: Vec<usize>,
    /// The result of each root: equal roots share one.
    pub output_of_root: Vec<u32>,
}

/// Lowers `outputs` for a device.
///
/// # Errors
/// Names the op and the user's line where a stage refuses something, or what the compiler reports.
pub(crate) fn compile(graph: &Graph, outputs: &[NodeId], device: &Arc<Device>) -> Result<Plan> {
    let _timer = profile::plan_timer();
    if cfg!(debug_assertions) || profile::verifies() {
        verify::tensor(graph, outputs)?;
    }
    if profile::shows(Level::Stages) {
        profile::stage("tensor graph", graph, outputs);
    }
    let mut graph = graph.clone();
    let outputs = Rewriter::new(&[rules::EXACT, rules::REASSOC].concat()).rewrite(&mut graph, outputs)?;
    let schedule = rangeify::rangeify(&graph, &outputs, device.target())?;
    kernel::checked("rangeify", || verify::schedule(&schedule.graph, schedule.root, &schedule.buffers))?;
    if profile::shows(Level::Stages) {
        profile::stage("schedule", &schedule.graph, &[schedule.root]);
        eprintln!("{}", schedule.explain(&graph));
    }
    let kernels = kernels(&schedule, device)?;
    assemble(&schedule, &kernels, device)
}

/// All kernels of a schedule, compiled side by side; equal ones once.
fn kernels(schedule: &Schedule, device: &Arc<Device>) -> Result<FxHashMap<NodeId, Arc<Kernel>>> {
    let mut distinct: Vec<(NodeId, Option<&ByHand>)> =
        schedule.calls.iter().map(|call| (call.kernel, call.written.as_ref())).collect();
    distinct.sort_unstable();
    distinct.dedup_by_key(|(kernel, _)| *kernel);
    let one = |&(kernel, written): &(NodeId, Option<&ByHand>)| kernel_of(&schedule.graph, kernel, written, device);
    let compiled: Vec<Result<Arc<Kernel>>> =
        // A thread's first kernel sets up its code generator: a single one stays with the caller's.
        // A search needs the machine for itself.
        if distinct.len() < 2 || search::is_asked_for() { distinct.iter().map(one).collect() } else { distinct.par_iter().map(one).collect() };
    distinct.into_iter().zip(compiled).map(|((node, _), kernel)| Ok((node, kernel?))).collect()
}

type Kernels = Mutex<FxHashMap<ContentHash, Arc<Kernel>>>;

/// A kernel of this process, else from the disk, else compiled.
fn kernel_of(schedule: &Graph, kernel: NodeId, written: Option<&ByHand>, device: &Arc<Device>) -> Result<Arc<Kernel>> {
    static KNOWN: OnceLock<Kernels> = OnceLock::new();
    let known = KNOWN.get_or_init(Kernels::default);
    let mut graph = Graph::new();
    let roots = graph.import(schedule, &[kernel], |_, _| Ok(None))?;
    let key = {
        let mut hasher = ContentHasher::default();
        (graph.content_hash(&roots), written, device.name(), device.target_hash()).hash(&mut hasher);
        hasher.content_hash()
    };
    if let Some(kernel) = known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(kernel.clone());
    }
    let kernel = Arc::new(lower(graph, roots[0], written, device)?);
    known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, kernel.clone());
    Ok(kernel)
}

/// One kernel through the stages, the code generator and the loader.
fn lower(mut graph: Graph, sink: NodeId, written: Option<&ByHand>, device: &Arc<Device>) -> Result<Kernel> {
    let target = device.target();
    let timer = profile::lowering_timer();
    let name = profile::Facts::of(&graph, sink).name;
    let ordered = if written.is_some() { None } else { kernel::ordered(&mut graph, sink, target)? };
    let sink = ordered.unwrap_or(sink);
    let mut facts = profile::Facts { name, ..profile::Facts::of(&graph, sink) };
    if let Some(written) = written {
        facts.name.clone_from(&written.name);
    }
    let mut axes = String::new();
    let mut observe = |stage: &'static str, graph: &Graph, root: NodeId| {
        if stage == "optimized" {
            axes = profile::axes(graph, root);
        }
        if profile::shows(Level::Stages) {
            profile::stage(&format!("{}: {stage}", facts.name), graph, &[root]);
        }
    };
    let mut nanoseconds = None;
    let kernel = match written {
        Some(written) => kernel::written_stages(graph, sink, written, target, &mut observe)?,
        None if ordered.is_some() => kernel::finish_ordered(graph, sink, &facts.name, target, &mut observe)?,
        None => {
            observe("ranges", &graph, sink);
            let scheduler = Scheduler::new(graph, sink, target)?;
            let (schedule, source) = search::schedule(&scheduler, &facts.name, device)?;
            let space = scheduler.space(&schedule)?;
            let estimate = scheduler.estimate(&space);
            if profile::shows(Level::Schedules) {
                profile::schedule(&facts.name, &schedule, &source, &estimate);
            }
            nanoseconds = Some(estimate.on_one_thread() as u64);
            kernel::stages(scheduler, &space, &facts.name, &mut observe)?
        }
    };
    drop(timer);
    let program = cache::program(&kernel, device)?;
    if profile::shows(Level::Code) {
        let listing = device.compiler().listing(&kernel, target)?;
        eprintln!("{}\n{}\n{}", kernel.name, listing.source, listing.assembly);
    }
    let LinearKernel { name, scratch_bytes, global_trips, grid, .. } = kernel;
    Ok(Kernel { program, name, axes, scratch_bytes, global_trips, grid, work: facts.work, nanoseconds })
}

/// Launches in order, and the memory of everything they touch.
fn assemble(schedule: &Schedule, kernels: &FxHashMap<NodeId, Arc<Kernel>>, device: &Arc<Device>) -> Result<Plan> {
    let graph = &schedule.graph;
    let bytes_of = |node: NodeId| -> usize {
        let props = graph.props(node);
        props.element_count().as_const().unwrap_or(0).max(0) as usize * props.dtype.size()
    };
    let base = |mut node: NodeId| {
        while graph.op(node) == Op::After {
            node = graph.source(node, 0);
        }
        node
    };
    let mut outputs: Vec<NodeId> = Vec::new();
    let mut output_of_root = Vec::new();
    let mut output_numbers: FxHashMap<NodeId, u32> = FxHashMap::default();
    for &root in &schedule.outputs {
        let buffer = base(root);
        let number = *output_numbers.entry(buffer).or_insert_with(|| {
            outputs.push(buffer);
            outputs.len() as u32 - 1
        });
        output_of_root.push(number);
    }
    let buffers_of =
        |call: &KernelCall| -> Vec<NodeId> { graph.sources(call.node)[1..].iter().map(|&b| base(b)).collect() };
    let mut lives: Vec<(NodeId, Lifetime)> = Vec::new();
    let mut positions: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (step, call) in schedule.calls.iter().enumerate() {
        for buffer in buffers_of(call) {
            if graph.op(buffer) != Op::Buffer || output_numbers.contains_key(&buffer) {
                continue;
            }
            let position = *positions.entry(buffer).or_insert_with(|| {
                lives.push((buffer, Lifetime { first: step, last: step, bytes: bytes_of(buffer) }));
                lives.len() - 1
            });
            lives[position].1.last = step;
        }
    }
    let (offsets, arena_bytes) = plan::arena(&lives.iter().map(|(_, lifetime)| *lifetime).collect::<Vec<_>>());
    let mut plan = Plan {
        program: None,
        device: device.clone(),
        launches: Vec::with_capacity(schedule.calls.len()),
        steps: Vec::with_capacity(schedule.calls.len()),
        table: Vec::new(),
        constants: Vec::new(),
        arena_bytes,
        outputs: outputs.iter().map(|&buffer| bytes_of(buffer)).collect(),
        output_of_root,
    };
    let mut entries: FxHashMap<NodeId, u32> = FxHashMap::default();
    for call in &schedule.calls {
        let mut buffers = Vec::new();
        let mut bytes = 0;
        for buffer in buffers_of(call) {
            bytes += bytes_of(buffer) as u64;
            let entry = match entries.get(&buffer) {
                Some(&entry) => entry,
                None => {
                    let place = match (graph.op(buffer), graph.arg(buffer)) {
                        (Op::Param, Arg::Param { slot, .. }) => Place::Leaf(*slot),
                        (Op::Binary, Arg::Bytes(data)) => {
                            let storage = Storage::allocate(device, data.len(), &Owner::constant())?;
                            storage.write(data)?;
                            plan.constants.push(storage);
                            Place::Constant(plan.constants.len() as u32 - 1)
                        }
                        _ => match output_numbers.get(&buffer) {
                            Some(&number) => Place::Output(number),
                            None => Place::Arena(offsets[positions[&buffer]]),
                        },
                    };
                    plan.table.push(place);
                    let entry = plan.table.len() as u32 - 1;
                    entries.insert(buffer, entry);
                    entry
                }
            };
            buffers.push(entry);
        }
        let kernel = kernels[&call.kernel].clone();
        plan.launches.push(Launch {
            program: kernel.program.clone(),
            buffers,
            trips: 0..kernel.global_trips,
            grid: kernel.grid,
            scratch_bytes: kernel.scratch_bytes,
            nanoseconds: kernel.nanoseconds.unwrap_or_else(|| nanoseconds(kernel.work, bytes)),
        });
        let location = call.locations.first().map(ToString::to_string).unwrap_or_default();
        plan.steps.push(Step { kernel, location, bytes });
    }
    Ok(plan)
}

/// How long one thread of a middling machine needs for so many operations and bytes.
fn nanoseconds(work: u64, bytes: u64) -> u64 {
    const OPERATIONS: u64 = 32;
    const BYTES: u64 = 20;
    (work / OPERATIONS).max(bytes / BYTES)
}
