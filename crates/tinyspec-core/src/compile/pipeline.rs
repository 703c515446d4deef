//! The driver of the lowering: from a stateless tensor graph to launches, one stage after the other.

use super::commands;
use super::compared::reference_of;
use super::fallback::{self, Attempt, Failure};
use super::linked::{Callee, Linked};
use super::plan::{Kernel, Plan};
use super::program::{self, Rendered};
use super::stored;
use crate::cache;
use crate::compare::Tolerance;
use crate::custom_function::find;
use crate::device::Device;
use crate::lower::functions::Outlined;
use crate::lower::kernel::Copied;
use crate::lower::optimize::{Estimate, OptOp, Scheduler, transforms};
use crate::lower::pass::{self, Form, checked};
use crate::lower::rangeify::{self, Costs, Donation, HandWritten, KernelCall, Schedule};
use crate::lower::{kernel, loops, multiversion, passes};
use crate::profile::{self, Level};
use crate::search::{self, Source};
use crate::threads::compilers;
use crate::{Error, Result};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::Cell;
use std::hash::Hash;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tinyspec_backends::{BackendError, LinearKernel, settings};
use tinyspec_ir::{ContentHash, ContentHasher, Dim, ErrorKind, Graph, NodeId, Op, custom_function, verify};

/// A program that takes longer to plan is kept on disk.
const WORTH_KEEPING: Duration = Duration::from_millis(2);

/// The plan of the program with this key: from disk, if an earlier run of it has left it there. `make` gives its graph and results;
/// some results may take the memory of arguments.
///
/// # Errors
/// Names the op and the user's line where a stage refuses something; or the compiler's error.
pub(crate) fn planned(
    key: ContentHash,
    device: &Arc<Device>,
    wanted: &[Donation],
    make: impl FnOnce() -> tinyspec_ir::Result<(Graph, Vec<NodeId>)>,
) -> Result<Plan> {
    check_settings()?;
    let start = Instant::now();
    let entry = is_kept()?.then(|| cache::Entry::of_commands(key, device));
    let known = entry.as_ref().and_then(|entry| entry.load(|bytes| stored::read(&bytes, device).ok()));
    let linked = match known {
        Some(linked) => linked,
        None => {
            let (graph, outputs) = make()?;
            let linked = linked_over(&graph, &outputs, device, wanted)?;
            if let Some(entry) = entry.filter(|_| start.elapsed() >= WORTH_KEEPING)
                && let Some(bytes) = stored::write(&linked)
            {
                entry.keep(&bytes);
            }
            linked
        }
    };
    let plan = linked.plan(&|_| None)?;
    Ok(Plan { stays_apart: !wanted.is_empty() && plan.overwritten.is_empty(), ..plan })
}

/// Whether command buffers come from disk: not where somebody wants to see how they are made, or has found better schedules.
fn is_kept() -> Result<bool> {
    let is_watched = profile::shows(Level::Schedules) || profile::verifies() || settings::VALIDATE.is_on();
    Ok(!is_watched && !search::is_used()? && cache::folder().is_some())
}

fn check_settings() -> Result<()> {
    search::check_settings()?;
    passes::check_settings()?;
    cache::check_settings()
}

/// The command buffer of a graph that keeps its named dims: its kernels work for all of their values.
///
/// # Errors
/// As [`planned`].
pub(crate) fn linked(graph: &Graph, outputs: &[NodeId], device: &Arc<Device>) -> Result<Linked> {
    linked_over(graph, outputs, device, &[])
}

fn linked_over(graph: &Graph, outputs: &[NodeId], device: &Arc<Device>, wanted: &[Donation]) -> Result<Linked> {
    let _timer = profile::plan_timer();
    if cfg!(debug_assertions) || profile::verifies() {
        verify::tensor(graph, outputs)?;
    }
    if profile::shows(Level::Stages) {
        profile::stage("tensor graph", graph, outputs);
    }
    let (tensors, roots) = (graph, outputs);
    check_settings()?;
    let mut outlined = Outlined::of(graph, outputs, device.target())?;
    let (mut graph, mut outputs) = simplified(&outlined.graph, &outlined.outputs, device)?;
    let (mut apart, mut failures) = (FxHashSet::default(), Vec::new());
    loop {
        let schedule = rangeify::rangeify_unfused(&graph, &outputs, device.target(), &apart)?;
        let schedule = outlined.splice(schedule)?;
        let mut schedule = passes::run_on_schedule(passes::SCHEDULE, schedule, wanted)?;
        if profile::shows(Level::Stages) {
            tinyspec_backends::tell!("{}{}", outlined.explain(), schedule.explain(&graph));
        }
        are_registered(&schedule.graph, &schedule.calls)?;
        match kernels(&schedule, device)? {
            Ok(kernels) => {
                failures.iter().for_each(|failure: &Failure| failure.warn("its sums run in kernels of their own"));
                let root = commands::of_schedule(&mut schedule, tensors, roots)?;
                return link(Arc::new(schedule.graph), root, &schedule.calls, &kernels, device);
            }
            // A kernel of a Function is cut where it is called.
            Err(_) if !outlined.is_empty() => {
                outlined = Outlined::inlined(tensors, roots)?;
                (graph, outputs) = simplified(&outlined.graph, &outlined.outputs, device)?;
            }
            Err(failed) => {
                let before = apart.len();
                for call in schedule.calls.iter().filter(|call| failed.iter().any(|(kernel, _)| *kernel == call.kernel))
                {
                    apart.extend(call.reduces.iter().copied());
                }
                failures.extend(failed.into_iter().map(|(_, failure)| failure));
                // The first attempt says best what is wrong.
                if apart.len() == before {
                    return Err(failures.swap_remove(0).error);
                }
            }
        }
    }
}

/// Compiles the kernels of a command buffer that was written down: from text, or by another process.
///
/// # Errors
/// Those of the verifiers, or that of the first kernel that cannot be compiled.
pub(crate) fn load(graph: Graph, root: NodeId, device: &Arc<Device>) -> Result<Linked> {
    verify::commands(&graph, root)?;
    let calls = commands::calls(&graph, root)?;
    are_registered(&graph, &calls)?;
    for call in distinct(&graph, &calls).into_iter().filter(|call| call.hand_written.is_none()) {
        verify::ranges(&graph, call.kernel)?;
    }
    match kernels_among(&graph, &distinct(&graph, &calls), device)? {
        Ok(kernels) => link(Arc::new(graph), root, &calls, &kernels, device),
        Err(mut failures) => Err(failures.swap_remove(0).1.error),
    }
}

/// Checks that there is code for each custom function.
fn are_registered(graph: &Graph, calls: &[KernelCall]) -> Result<()> {
    for call in calls {
        if let Some(function) = custom_function::of(graph, call.kernel) {
            find(&function.name).map_err(|error| error.at_known(call.locations.first().cloned()))?;
        }
    }
    Ok(())
}

/// A command buffer with its kernels, and, if it is to be validated, with those of the reference device.
fn link(
    graph: Arc<Graph>,
    root: NodeId,
    calls: &[KernelCall],
    kernels: &Kernels,
    device: &Arc<Device>,
) -> Result<Linked> {
    if cfg!(debug_assertions) || profile::verifies() {
        verify::commands(&graph, root)?;
    }
    let is_compared = settings::VALIDATE.is_on();
    let on = |kernels: &Kernels, device: &Arc<Device>| {
        let callee = |call: &KernelCall| Callee {
            // A custom function has no kernels.
            kernels: kernels.get(&call.kernel).cloned().unwrap_or_default(),
            line: call.line(),
            outputs: call.outputs,
            tolerance: if is_compared { Tolerance::of(&graph, call.kernel) } else { Tolerance::default() },
        };
        Linked::new(graph.clone(), root, calls.iter().map(callee).collect(), device)
    };
    let reference = match reference(&graph, calls, device)? {
        Some((reference, kernels)) => Some(on(&kernels, &reference)?),
        None => None,
    };
    Ok(on(kernels, device)?.compared_with(reference))
}

/// The tensor graph that is cut into kernels.
fn simplified(graph: &Graph, outputs: &[NodeId], device: &Device) -> Result<(Graph, Vec<NodeId>)> {
    let target = device.target();
    let simplified = passes::run_on_tensors(passes::SIMPLIFY, graph, outputs, &Costs::of(target), target)?;
    Ok(simplified.unwrap_or_else(|| (graph.clone(), outputs.to_vec())))
}

/// The kernels that compute `outputs` on a device, in order, each as a `Program` with the number of buffers that it
/// writes.
///
/// # Errors
/// As [`planned`].
pub(crate) fn programs(graph: &Graph, outputs: &[NodeId], device: &Arc<Device>) -> Result<Vec<(Rendered, usize)>> {
    let (graph, outputs) = simplified(graph, outputs, device)?;
    let schedule = rangeify::rangeify(&graph, &outputs, device.target())?;
    let mut programs = Vec::with_capacity(schedule.calls.len());
    for call in &schedule.calls {
        if loops::has_dims(&schedule.graph, call.kernel) {
            let message = "is for sizes that are not known yet";
            return Err(Error::refused(ErrorKind::Unsupported, Op::Program.name(), message));
        }
        if let Some(function) = custom_function::of(&schedule.graph, call.kernel) {
            let message = "a custom function is no kernel: it has no program";
            return Err(Error::refused(ErrorKind::Unsupported, &function.name, message));
        }
        let mut own = Graph::new();
        let sink = own.import(&schedule.graph, &[call.kernel], |_, _| Ok(None))?[0];
        let staged =
            staged(&own, sink, call.hand_written.as_ref(), device, Copies::Own).map_err(Unlowered::into_error)?;
        for staged in staged {
            programs.push((program::program(&staged.kernel, device)?, call.outputs));
        }
    }
    Ok(programs)
}

/// Checks that a kernel which is no Linear has the form of some stage.
///
/// # Errors
/// When it has none: the error of its earliest form.
pub(crate) fn check_form(graph: &Graph, sink: NodeId) -> Result<()> {
    let help = "a Program is a Program, a Linear, or a kernel as a stage leaves it";
    kernel::forms(graph, sink).map(drop).map_err(|error| error.help(help).into())
}

/// The Linear of a kernel that was written down before it was linearised, for a device.
///
/// # Errors
/// Where a stage refuses the kernel.
pub(crate) fn linear(graph: &Graph, sink: NodeId, device: &Arc<Device>) -> Result<(Graph, NodeId)> {
    check_settings()?;
    let mut own = Graph::new();
    let sink = own.import(graph, &[sink], |_, _| Ok(None))?[0];
    let name = profile::Facts::of(&own, sink).name;
    let by = |form: Form| -> Result<LinearKernel> {
        if form == Form::Ranges && kernel::is_unscheduled(&own, sink) {
            let staged = staged(&own, sink, None, device, Copies::Own).map_err(Unlowered::into_error)?;
            let kernel = staged.into_iter().next_back().map(|staged| staged.kernel);
            return kernel.ok_or_else(|| Error::refused(ErrorKind::Verify, Op::Program.name(), "it has no kernel"));
        }
        Ok(kernel::resumed(own.clone(), sink, form, &name, device.target())?)
    };
    let forms = kernel::forms(&own, sink)?;
    let kernel = forms[1..].iter().fold(by(forms[0]), |done, &form| match done {
        Ok(kernel) => Ok(kernel),
        // The error of the earliest form says best what is wrong.
        Err(error) => by(form).map_err(|_| error),
    })?;
    Ok((kernel.graph, kernel.linear))
}

/// The kernels that one kernel in range form was divided into, in order.
pub(crate) type Parts = SmallVec<[Arc<Kernel>; 1]>;

/// Kernels of a schedule, by their Sinks; or those that could not be lowered.
type Outcome = std::result::Result<Kernels, Vec<(NodeId, Failure)>>;

/// Why there is no kernel.
enum Unlowered {
    /// A stage refuses the kernel even without a schedule.
    Kernel(Box<Failure>),
    /// Something else is wrong.
    Error(Error),
}

impl Unlowered {
    fn into_error(self) -> Error {
        match self {
            Unlowered::Kernel(failure) => failure.error,
            Unlowered::Error(error) => error,
        }
    }
}

impl<E: Into<Error>> From<E> for Unlowered {
    fn from(error: E) -> Unlowered {
        Unlowered::Error(error.into())
    }
}

/// Kernels by their roots.
type Kernels = FxHashMap<NodeId, Parts>;

/// The reference device, if there is one, and the kernels there. Calls that it cannot run have none.
fn reference(graph: &Graph, calls: &[KernelCall], device: &Arc<Device>) -> Result<Option<(Arc<Device>, Kernels)>> {
    let Some(reference) = reference_of(device)? else { return Ok(None) };
    let mut kernels = Kernels::default();
    for one in distinct(graph, calls) {
        let refusal = match kernels_among(graph, &[one], &reference) {
            Ok(Ok(parts)) => {
                kernels.extend(parts);
                continue;
            }
            Ok(Err(failures)) => failures.into_iter().map(|(_, failure)| failure.error.to_string()).collect(),
            Err(error) => error.to_string(),
        };
        let name = match &one.hand_written {
            Some(hand_written) => hand_written.name.clone(),
            None => profile::Facts::of(graph, one.kernel).name,
        };
        tinyspec_backends::tell!(
            "tinyspec: warning: kernel `{name}` is not compared, {} cannot run it: {refusal}",
            reference.name()
        );
        kernels.insert(one.kernel, Parts::new());
    }
    Ok(Some((reference, kernels)))
}

/// The first call of each kernel.
fn distinct<'c>(graph: &Graph, calls: &'c [KernelCall]) -> Vec<&'c KernelCall> {
    let is_kernel = |call: &&KernelCall| !commands::is_custom(graph, call.kernel);
    let mut distinct: Vec<&KernelCall> = calls.iter().filter(is_kernel).collect();
    distinct.sort_by(|a, b| (a.kernel, &a.hand_written).cmp(&(b.kernel, &b.hand_written)));
    distinct.dedup_by_key(|call| call.kernel);
    distinct
}

/// All kernels of a schedule, lowered and compiled in parallel.
fn kernels(schedule: &Schedule, device: &Arc<Device>) -> Result<Outcome> {
    kernels_among(&schedule.graph, &distinct(&schedule.graph, &schedule.calls), device)
}

fn kernels_among(graph: &Graph, distinct: &[&KernelCall], device: &Arc<Device>) -> Result<Outcome> {
    let one = |call: &&KernelCall| parts_of(graph, call.kernel, call.hand_written.as_ref(), device);
    let drafts: Vec<std::result::Result<Drafts, Unlowered>> =
        // A thread's first kernel sets up its code generator: a single one stays with the caller's.
        // A search needs the machine for itself.
        match compilers().filter(|_| distinct.len() > 1 && !search::is_asked_for()) {
            Some(pool) => pool.install(|| distinct.par_iter().map(one).collect()),
            None => distinct.iter().map(one).collect(),
        };
    let mut failures = Vec::new();
    let mut lowered = Vec::with_capacity(drafts.len());
    for (call, drafts) in distinct.iter().zip(drafts) {
        match drafts {
            Ok(drafts) => lowered.push(drafts),
            Err(Unlowered::Kernel(failure)) => failures.push((call.kernel, *failure)),
            Err(Unlowered::Error(error)) => return Err(error.of_kernel(&call.line())),
        }
    }
    if !failures.is_empty() {
        return Ok(Err(failures));
    }
    let drafts = lowered;
    let missing: Vec<&Lowered> = drafts.iter().flatten().flat_map(Draft::lowered).collect();
    let mut compiled = compile_all(&missing, device).into_iter();
    let mut arrived = |draft| match draft {
        Draft::Known(kernels) => Ok(kernels),
        // One for each missing kernel, in order.
        Draft::Lowered(key, lowered) => {
            let kernels = compiled.by_ref().take(lowered.len()).collect::<Result<Parts>>()?;
            remember(key, &kernels);
            Ok(kernels)
        }
    };
    let mut kernels = FxHashMap::default();
    for (call, drafts) in distinct.iter().zip(drafts) {
        let parts = drafts.into_iter().map(&mut arrived).collect::<Result<Vec<Parts>>>();
        let parts = parts.map_err(|error| error.of_kernel(&call.line()))?;
        kernels.insert(call.kernel, parts.into_iter().flatten().collect());
    }
    Ok(Ok(kernels))
}

/// The most kernels in one module.
const TOGETHER: usize = 8;
/// From this number of instructions on, the work done once per module is negligible.
const LARGE: usize = 600;

/// Compiles and loads lowered kernels; the results are in the same order.
fn compile_all(lowered: &[&Lowered], device: &Device) -> Vec<Result<Arc<Kernel>>> {
    let compile = |batch: &Vec<usize>| {
        let kernels: Vec<_> =
            batch.iter().map(|&number| (&lowered[number].staged.kernel, &lowered[number].entry)).collect();
        cache::compile(&kernels, device)
    };
    let pool = if lowered.len() > 1 { compilers() } else { None };
    let batches = batches(lowered, pool.as_ref().map_or(1, |pool| pool.current_num_threads()));
    let programs: Vec<_> = match pool.filter(|_| batches.len() > 1) {
        Some(pool) => pool.install(|| batches.par_iter().with_max_len(1).map(compile).collect()),
        None => batches.iter().map(compile).collect(),
    };
    let mut kernels: Vec<(usize, Result<Arc<Kernel>>)> = (batches.into_iter().flatten())
        .zip(programs.into_iter().flatten())
        .map(|(number, program)| (number, program.and_then(|program| lowered[number].finish(program, device))))
        .collect();
    kernels.sort_unstable_by_key(|&(number, _)| number);
    kernels.into_iter().map(|(_, kernel)| kernel).collect()
}

/// Which kernels share a module: those of similar size, and so few that each thread gets several modules.
fn batches(lowered: &[&Lowered], threads: usize) -> Vec<Vec<usize>> {
    let size = |&number: &usize| lowered[number].instructions();
    let most = match threads {
        1 => TOGETHER,
        threads => lowered.len().div_ceil(2 * threads).min(TOGETHER),
    };
    let mut order: Vec<usize> = (0..lowered.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(size(number)));
    let (large, small) = order.split_at(order.partition_point(|number| size(number) >= LARGE));
    large.iter().map(|&number| vec![number]).chain(small.chunks(most.max(1)).map(<[usize]>::to_vec)).collect()
}

/// Kernels of this process. The plans that launch them keep them.
#[derive(Default)]
struct KnownKernels {
    known: FxHashMap<ContentHash, SmallVec<[Weak<Kernel>; 1]>>,
    /// The number of entries at which those of dropped kernels are next removed.
    many: usize,
}

fn compiled() -> std::sync::MutexGuard<'static, KnownKernels> {
    static KERNELS: LazyLock<Mutex<KnownKernels>> = LazyLock::new(Mutex::default);
    KERNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known(key: ContentHash) -> Option<Parts> {
    compiled().known.get(&key)?.iter().map(Weak::upgrade).collect()
}

fn remember(key: ContentHash, parts: &Parts) {
    const LEAST: usize = 1024;
    let mut kernels = compiled();
    if kernels.known.len() >= kernels.many.max(LEAST) {
        kernels.known.retain(|_, parts| parts.iter().all(|part| part.strong_count() > 0));
        kernels.many = 2 * kernels.known.len();
    }
    kernels.known.insert(key, parts.iter().map(Arc::downgrade).collect());
}

/// The drafts of the kernels that one kernel in range form was divided into, in order.
type Drafts = SmallVec<[Draft; 1]>;

fn parts_of(
    schedule: &Graph,
    kernel: NodeId,
    hand_written: Option<&HandWritten>,
    device: &Arc<Device>,
) -> std::result::Result<Drafts, Unlowered> {
    let is_one = device.target().workgroups.is_none() && !loops::has_dims(schedule, kernel);
    if hand_written.is_some() || is_one {
        return Ok(Drafts::from_iter([kernel_of(schedule, kernel, hand_written, Dim::from(1), device)?]));
    }
    let mut graph = Graph::new();
    let roots = graph.import(schedule, &[kernel], |_, _| Ok(None))?;
    let parts = multiversion::parts(&mut graph, roots[0], device.target())?;
    parts.into_iter().map(|part| kernel_of(&graph, part.sink, None, part.blocks, device)).collect()
}

/// A kernel with its copy kernels: of this process, else from disk, else to be compiled.
fn kernel_of(
    schedule: &Graph,
    kernel: NodeId,
    hand_written: Option<&HandWritten>,
    blocks: Dim,
    device: &Arc<Device>,
) -> std::result::Result<Draft, Unlowered> {
    let mut graph = Graph::new();
    let roots = graph.import(schedule, &[kernel], |_, _| Ok(None))?;
    let key = {
        let mut hasher = ContentHasher::default();
        (graph.content_hash(&roots), hand_written, device.family(), device.target_hash()).hash(&mut hasher);
        hasher.content_hash()
    };
    if let Some(kernels) = known(key) {
        return Ok(Draft::Known(kernels));
    }
    let code = match graph.op(roots[0]) {
        Op::Program => program::Contents::of(&graph, roots[0])?.binary.cloned(),
        _ => None,
    };
    let timer = profile::lowering_timer();
    let staged = staged(&graph, roots[0], hand_written, device, Copies::Before)?;
    timer.stop(staged.last().map_or("", |staged| staged.kernel.name.as_str()));
    let (mut lowered, mut programs) = (Vec::new(), Vec::new());
    for staged in staged {
        let entry = cache::Entry::of(&staged.kernel, device);
        programs.push(match &code {
            Some(code) => Some(cache::Object::load(&staged.kernel.name, code.to_vec(), device)?),
            None => entry.load(|code| cache::Object::load(&staged.kernel.name, code, device).ok()),
        });
        lowered.push(Lowered { staged, entry, blocks: blocks.clone() });
    }
    let Some(programs) = programs.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(Draft::Lowered(key, lowered));
    };
    let kernels = lowered.iter().zip(programs).map(|(lowered, program)| lowered.finish(program, device));
    let kernels = kernels.collect::<Result<Parts>>()?;
    remember(key, &kernels);
    Ok(Draft::Known(kernels))
}

/// A kernel, after its copy kernels, that may not be compiled yet.
enum Draft {
    /// They are compiled.
    Known(Parts),
    /// They are to be compiled, and remembered under this key.
    Lowered(ContentHash, Vec<Lowered>),
}

impl Draft {
    fn lowered(&self) -> &[Lowered] {
        match self {
            Draft::Known(_) => &[],
            Draft::Lowered(_, lowered) => lowered,
        }
    }
}

/// Whether copies that a schedule asks for become kernels of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// The kernel makes the copies itself.
    Own,
    /// Copy kernels run before it.
    Before,
}

/// A kernel that has gone through the stages, and its properties.
struct Staged {
    kernel: LinearKernel,
    axes: String,
    trips: Dim,
    work: u64,
    nanoseconds: Option<u64>,
    temporaries: SmallVec<[usize; 1]>,
    copied: Option<u64>,
}

/// A kernel that waits for its code.
struct Lowered {
    staged: Staged,
    entry: cache::Entry,
    blocks: Dim,
}

impl Lowered {
    fn instructions(&self) -> usize {
        let kernel = &self.staged.kernel;
        kernel.graph.sources(kernel.linear).len()
    }

    /// Combines the kernel with its code and remembers it.
    fn finish(&self, object: cache::Object, device: &Device) -> Result<Arc<Kernel>> {
        let Staged { kernel, axes, trips, work, nanoseconds, temporaries, copied } = &self.staged;
        let LinearKernel { name, scratch_bytes, params, grid, shared_trips, .. } = kernel;
        if profile::shows(Level::Stages) {
            let rendered = program::program(kernel, device)?;
            profile::stage(&format!("{name}: program"), &rendered.graph, &[rendered.root]);
        }
        if profile::shows(Level::Code) {
            let (compiler, target) = (device.compiler(), device.target());
            tinyspec_backends::tell!(
                "{name}\n{}\n{}",
                compiler.source(kernel, target)?,
                compiler.assembly(kernel, target)?
            );
        }
        Ok(Arc::new(Kernel {
            program: object.program,
            code: cache::folder().map(|_| object.code),
            name: name.clone(),
            axes: axes.clone(),
            scratch_bytes: *scratch_bytes,
            params: *params,
            buffers: kernel.buffers(),
            dims: kernel.dims(),
            // A constant trip count is taken from the last stage, which knows it best.
            trips: trips.as_const().map_or_else(|| trips.clone(), |_| Dim::from(*shared_trips as i64)),
            blocks: self.blocks.clone(),
            grid: *grid,
            work: *work,
            nanoseconds: *nanoseconds,
            has_prologue: kernel::has_prologue(kernel),
            temporaries: temporaries.clone(),
            copied: *copied,
        }))
    }
}

/// Runs the remaining stages for a kernel and its copy kernels: without its schedule if lowering fails with it.
fn staged(
    graph: &Graph,
    sink: NodeId,
    hand_written: Option<&HandWritten>,
    device: &Arc<Device>,
    copies: Copies,
) -> std::result::Result<SmallVec<[Staged; 1]>, Unlowered> {
    let by = |attempt| fallback::attempt(|| staged_by(graph.clone(), sink, hand_written, device, copies, attempt));
    let error = match by(Attempt::Scheduled) {
        // Errors of devices and code generators are not bugs of a stage, and only its author may change a hand-written
        // kernel.
        Err(error @ Error::Graph(_)) if hand_written.is_none() && fallback::is_allowed() => error,
        done => return Ok(done.map_err(|error| refused(error, hand_written))?),
    };
    let failure = Failure::new(error, graph, sink, &profile::Facts::of(graph, sink).name, device);
    match by(Attempt::Plain) {
        Ok(staged) => {
            failure.warn("runs without a schedule");
            Ok(staged)
        }
        Err(_) => Err(Unlowered::Kernel(Box::new(failure))),
    }
}

/// Names a hand-written kernel in a verifier's error, since the mistake may be its author's.
fn refused(error: Error, hand_written: Option<&HandWritten>) -> Error {
    match (error, hand_written) {
        (Error::Graph(error), Some(HandWritten { name, .. })) if error.kind() == ErrorKind::Verify => {
            let (message, suggestion) =
                (error.message(), error.suggestion().unwrap_or("this is a mistake of the compiler"));
            let reason = format!(
                "{message}\nhelp: the kernel may read LOCAL memory that it has not written, or its iterations may meet in `unsafe` \
                 code; if neither is so, {suggestion}"
            );
            BackendError::Execution { name: name.clone(), reason }.into()
        }
        (error, _) => error,
    }
}

fn staged_by(
    graph: Graph,
    sink: NodeId,
    hand_written: Option<&HandWritten>,
    device: &Arc<Device>,
    copies: Copies,
    attempt: Attempt,
) -> Result<SmallVec<[Staged; 1]>> {
    let target = device.target();
    if let Some(hand_written) = hand_written
        && graph.op(sink) != Op::Sink
    {
        let linear = program::Contents::of(&graph, sink)?.linear;
        let kernel = program::linear_kernel(&graph, linear, &hand_written.name, hand_written.buffers.len())?;
        let (axes, work) = (profile::axes(&graph, linear), profile::Facts::of(&graph, linear).work);
        let (trips, nanoseconds, temporaries, copied) = (Dim::from(1), None, SmallVec::new(), None);
        return Ok(SmallVec::from_iter([Staged { kernel, axes, trips, work, nanoseconds, temporaries, copied }]));
    }
    let name = profile::Facts::of(&graph, sink).name;
    if hand_written.is_none() {
        fallback::fault(&graph, sink, attempt)?;
    }
    let mut facts = profile::Facts { name, ..profile::Facts::of(&graph, sink) };
    if let Some(hand_written) = hand_written {
        facts.name.clone_from(&hand_written.name);
    }
    let (mut axes, mut trips) = (String::new(), Dim::from(1));
    // Kernels with loops of their own do not execute what the Ranges say.
    let (mut work, has_own_loops) = (facts.work, Cell::new(false));
    let mut observe = |stage: &'static str, graph: &Graph, root: NodeId| {
        if stage == pass::SCHEDULED {
            axes = profile::axes(graph, root);
            trips = kernel::shared_bound(graph, root);
            if has_own_loops.get() {
                work = profile::Facts::of(graph, root).work;
            }
        }
        if pass::is_shown(stage) {
            profile::stage(&format!("{}: {stage}", facts.name), graph, &[root]);
        }
    };
    let mut nanoseconds = None;
    let mut copied = SmallVec::new();
    let kernel = match hand_written {
        Some(hand_written) => kernel::hand_written_stages(graph, sink, hand_written, target, &mut observe)?,
        None if kernel::is_ordered(&graph, sink) => {
            kernel::finish_ordered(graph, sink, &facts.name, target, &mut observe)?
        }
        None => {
            observe(pass::INPUT, &graph, sink);
            let (scheduler, schedule, source, space);
            match attempt {
                Attempt::Scheduled => {
                    scheduler = Scheduler::observed(graph, sink, target, &mut observe)?;
                    (schedule, source) = search::schedule(&scheduler, &facts.name, device)?;
                    checked("schedule", || transforms::verify(&schedule))?;
                    space = scheduler.space(&schedule)?;
                }
                Attempt::Plain => {
                    scheduler = Scheduler::plain(graph, sink, target)?;
                    (schedule, space) = scheduler.shared(Vec::new())?;
                    source = Source::None;
                }
            }
            let estimate = scheduler.estimate(&space);
            if profile::shows(Level::Schedules) {
                show_schedule(&facts.name, &schedule, &source, &estimate);
            }
            nanoseconds = Some(estimate.on_one_thread() as u64);
            has_own_loops.set(space.has_own_loops());
            match copies {
                Copies::Own => kernel::stages(scheduler, &space, &facts.name, &mut observe)?,
                Copies::Before => {
                    let kernel;
                    (copied, kernel) = kernel::all_stages(scheduler, &space, &facts.name, &mut observe)?;
                    kernel
                }
            }
        }
    };
    let temporaries = copied.iter().map(|copied| copied.bytes).collect();
    let copy = |copied: Copied| Staged {
        axes: profile::axes(&copied.kernel.graph, copied.kernel.linear),
        trips: Dim::from(copied.kernel.shared_trips as i64),
        work: 0,
        nanoseconds: Some(copied.nanoseconds()),
        temporaries: SmallVec::new(),
        copied: Some(2 * copied.bytes as u64),
        kernel: copied.kernel,
    };
    let mut all: SmallVec<[Staged; 1]> = copied.into_iter().map(copy).collect();
    all.push(Staged { kernel, axes, trips, work, nanoseconds, temporaries, copied: None });
    Ok(all)
}

/// Prints a kernel's schedule, its origin, and the cost model's estimate.
fn show_schedule(kernel: &str, ops: &[OptOp], source: &Source, estimate: &Estimate) {
    let ops: Vec<String> = ops.iter().map(OptOp::to_string).collect();
    let ops = if ops.is_empty() { "no optimization".into() } else { ops.join("; ") };
    tinyspec_backends::tell!("── {kernel}: {ops}\n   {source}; estimated {estimate}");
}
