//! Lowers a kernel from range form to the input of a compiler: Optimize, Special, Expand, Select, Linearize, the loop
//! passes, and its part of Plan. Verifiers run in between in debug builds and under `TINYSPEC_VERIFY=1`.

use super::optimize::{CopyKernel, Scheduled, Scheduler, Space, scatter};
use super::pass::{self, Form, Observe, Pass, checked};
use super::rangeify::HandWritten;
use super::{hand_written, live, loops, passes, plan};
use smallvec::SmallVec;
use tinyspec_backends::{BackendError, Grid, LinearKernel, Target};
use tinyspec_ir::{Arg, AxisType, Builder, DType, Dim, Error, ErrorKind, Graph, NodeId, Op, Result, verify};

/// Lowers a kernel by the target's heuristics.
///
/// # Errors
/// When the kernel is not in range form.
pub fn lower_kernel(graph: &mut Graph, sink: NodeId, name: &str, target: &Target) -> Result<LinearKernel> {
    // A graph of its own, since the passes' tables are as long as the graph.
    let mut own = Graph::new();
    let roots = own.import(graph, &[sink], |_, _| Ok(None))?;
    let sink = roots.first().copied().unwrap_or(sink);
    if is_ordered(&own, sink) {
        return finish(own, sink, name, target);
    }
    let scheduler = Scheduler::new(own, sink, target)?;
    let ops = scheduler.heuristics();
    let space = scheduler.space(&ops)?;
    stages(scheduler, &space, name, &mut |_, _, _| {})
}

/// Whether the axes of a kernel already have their types: a kernel with AtomicAdds was built for workgroups.
pub fn is_ordered(graph: &Graph, sink: NodeId) -> bool {
    graph.reachable(&[sink]).iter().any(|&node| graph.op(node) == Op::AtomicAdd)
}

/// Divides a kernel in range form where workgroups cannot wait for each other: a scatter must find its buffer
/// initialised, which takes a kernel of its own.
///
/// # Errors
/// When the kernel is not in range form.
pub fn split(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<SmallVec<[NodeId; 2]>> {
    let two = match &target.workgroups {
        // Each of the two would expect the values of named dims after its own buffers.
        Some(limits) if !loops::has_dims(graph, sink) => scatter::apart(graph, sink, limits)?,
        _ => None,
    };
    Ok(two.map_or(SmallVec::from_iter([sink]), SmallVec::from))
}

/// Lowers a kernel by the target's heuristics, or as its author wrote it; `observe` sees the output of each stage.
///
/// # Errors
/// When the kernel is not in range form.
pub fn lower_observed(
    graph: Graph,
    sink: NodeId,
    hand_written: Option<&HandWritten>,
    target: &Target,
    observe: &mut Observe,
) -> Result<LinearKernel> {
    observe(pass::INPUT, &graph, sink);
    if let Some(hand_written) = hand_written {
        return hand_written_stages(graph, sink, hand_written, target, observe);
    }
    if is_ordered(&graph, sink) {
        return finish_ordered(graph, sink, "kernel", target, observe);
    }
    let scheduler = Scheduler::observed(graph, sink, target, observe)?;
    let ops = scheduler.heuristics();
    let space = scheduler.space(&ops)?;
    stages(scheduler, &space, "kernel", observe)
}

/// The stages of a kernel over the axes of a schedule, without copy kernels.
///
/// # Errors
/// When it is not in range form.
pub(crate) fn stages(scheduler: Scheduler, space: &Space, name: &str, observe: &mut Observe) -> Result<LinearKernel> {
    let (target, params) = (scheduler.target(), params_of(&scheduler)?);
    let (graph, sink) = scheduler.build(space)?;
    let mut kernel = finish_ordered(graph, sink, name, target, observe)?;
    kernel.params = params;
    Ok(kernel)
}

/// A lowered kernel that fills a temporary which another kernel reads.
pub(crate) struct Copied {
    pub kernel: LinearKernel,
    /// The size of the temporary.
    pub bytes: usize,
}

impl Copied {
    /// An estimate of its time on one thread.
    pub fn nanoseconds(&self) -> u64 {
        /// Bytes that one thread of a typical machine copies in a nanosecond.
        const COPIED: u64 = 10;
        self.bytes as u64 / COPIED
    }
}

/// As [`stages`], for a kernel and its copy kernels.
///
/// # Errors
/// When it is not in range form.
pub(crate) fn all_stages(
    scheduler: Scheduler,
    space: &Space,
    name: &str,
    observe: &mut Observe,
) -> Result<(SmallVec<[Copied; 1]>, LinearKernel)> {
    let (target, params) = (scheduler.target(), params_of(&scheduler)?);
    let Scheduled { graph, sink, copies } = scheduler.build_all(space)?;
    let params = params + copies.len();
    let mut copied = SmallVec::new();
    for CopyKernel { sink, bytes } in copies {
        let mut own = Graph::new();
        let sink = own.import(&graph, &[sink], |_, _| Ok(None))?[0];
        checked("optimize", || verify::ranges(&own, sink))?;
        let mut kernel = finish_observed(own, sink, &format!("{name}_copy"), target, &mut |_, _, _| {})?;
        kernel.params = params;
        copied.push(Copied { kernel, bytes });
    }
    let mut kernel = finish_ordered(graph, sink, name, target, observe)?;
    kernel.params = params;
    Ok((copied, kernel))
}

/// How many buffers the kernel of a scheduler takes: one per Param, even if lowering finds it unused.
fn params_of(scheduler: &Scheduler) -> Result<usize> {
    checked("rangeify", || verify::ranges(scheduler.graph(), scheduler.kernel().sink))?;
    Ok(params(scheduler.graph(), scheduler.kernel().sink))
}

/// The stages of a kernel written by hand: its schedule stays as it is.
pub(crate) fn hand_written_stages(
    graph: Graph,
    sink: NodeId,
    HandWritten { name, buffers }: &HandWritten,
    target: &Target,
    observe: &mut Observe,
) -> Result<LinearKernel> {
    let params = params(&graph, sink);
    let mut graph = graph;
    checked("rangeify", || verify::ranges(&graph, sink))?;
    checked("rangeify", || verify::barriers(&graph, sink))?;
    let sink = hand_written::schedule(&mut graph, sink, target)?;
    let sink = hand_written::pack_dots(&mut graph, sink, target)?;
    let sink = hand_written::vectorize(&mut graph, sink, target)?;
    observe(pass::SCHEDULED, &graph, sink);
    checked("optimize", || verify::ranges(&graph, sink))?;
    let mut kernel = finish_observed(graph, sink, name, target, observe)?;
    kernel.params = params;
    kernel.hand_written = Some(buffers.clone());
    Ok(kernel)
}

/// Lowers a kernel whose axes already have their types.
///
/// # Errors
/// When the kernel is not in the form that Optimize leaves.
pub fn finish(graph: Graph, sink: NodeId, name: &str, target: &Target) -> Result<LinearKernel> {
    admitted(finish_observed(graph, sink, name, target, &mut |_, _, _| {})?, target)
}

/// Refuses a kernel that exceeds the limits of a launch, as a schedule that stages too much in LOCAL memory does. Hand-written kernels
/// are checked when they are compiled, where the error names their line.
fn admitted(kernel: LinearKernel, target: &Target) -> Result<LinearKernel> {
    if let Some(workgroups) = &target.workgroups {
        let refused = |error: BackendError| Error::new(ErrorKind::Value, "lowering", error.to_string());
        workgroups.admit(&kernel, &target.name).map_err(refused)?;
    }
    Ok(kernel)
}

/// As [`finish`], observed from the schedule on.
pub(crate) fn finish_ordered(
    graph: Graph,
    sink: NodeId,
    name: &str,
    target: &Target,
    observe: &mut Observe,
) -> Result<LinearKernel> {
    observe(pass::SCHEDULED, &graph, sink);
    checked("optimize", || verify::ranges(&graph, sink))?;
    admitted(finish_observed(graph, sink, name, target, observe)?, target)
}

fn finish_observed(
    graph: Graph,
    sink: NodeId,
    name: &str,
    target: &Target,
    observe: &mut Observe,
) -> Result<LinearKernel> {
    finish_by(passes::LOWERING, graph, sink, name, target, observe)
}

/// The forms that a kernel that is not a Linear yet may have, the earliest first: the output of a later pass may also be in
/// an earlier form.
///
/// # Errors
/// When it has none: the error of the earliest form.
pub(crate) fn forms(graph: &Graph, sink: NodeId) -> Result<SmallVec<[Form; 3]>> {
    let has_specials = graph.reachable(&[sink]).iter().any(|&node| graph.op(node) == Op::Special);
    let first = if has_specials { Form::Threads } else { Form::Ranges };
    let all = [first, Form::Tiles, Form::Machine].into_iter();
    let forms: SmallVec<[Form; 3]> = all.filter(|form| form.verify(graph, sink).is_ok()).collect();
    match forms.is_empty() {
        true => first.verify(graph, sink).map(|()| forms),
        false => Ok(forms),
    }
}

/// Whether no schedule has been applied to a kernel in range form.
pub(crate) fn is_unscheduled(graph: &Graph, sink: NodeId) -> bool {
    let is_plain = |&node: &NodeId| match graph.arg(node) {
        Arg::Range { axis, .. } => matches!(axis, AxisType::Loop | AxisType::Reduce),
        _ => true,
    };
    !is_ordered(graph, sink) && graph.reachable(&[sink]).iter().all(is_plain)
}

/// Lowers a kernel to which a schedule has been applied, from a form on that it has.
///
/// # Errors
/// When a pass refuses it, or it exceeds the limits of a launch.
pub(crate) fn resumed(graph: Graph, sink: NodeId, form: Form, name: &str, target: &Target) -> Result<LinearKernel> {
    let first = passes::LOWERING.iter().position(|pass| pass.requires == form).unwrap_or_default();
    admitted(finish_by(&passes::LOWERING[first..], graph, sink, name, target, &mut |_, _, _| {})?, target)
}

fn finish_by(
    passes: &'static [Pass],
    mut graph: Graph,
    sink: NodeId,
    name: &str,
    target: &Target,
    observe: &mut Observe,
) -> Result<LinearKernel> {
    let params = params(&graph, sink);
    let linear = pass::run(passes, &mut graph, sink, target, observe)?;
    let (local_offsets, scratch_bytes) = plan::locals(&graph, linear);
    checked("plan", || verify::storage(&graph, linear, &local_offsets))?;
    Ok(LinearKernel {
        hand_written: None,
        shared_trips: most_shared_trips(&graph, linear),
        grid: Grid::of(&graph, linear),
        linear,
        name: name.into(),
        params,
        local_offsets,
        scratch_bytes,
        graph,
    })
}

/// Whether there is a loop before the THREAD Range, such as one that packs an operand for all of its trips.
pub(crate) fn has_prologue(kernel: &LinearKernel) -> bool {
    let graph = &kernel.graph;
    let mut order = graph.sources(kernel.linear).iter().copied();
    let first = order.find(|&node| graph.op(node) == Op::Range);
    first.is_some_and(|node| !matches!(graph.arg(node), Arg::Range { axis: AxisType::Thread, .. }))
}

/// Trips of the THREAD Range of a kernel in range form.
pub(crate) fn shared_bound(graph: &Graph, sink: NodeId) -> Dim {
    let range = graph.reachable(&[sink]).into_iter().find(|&node| is_shared(graph, node));
    range.and_then(|range| live::bound(graph, range)).unwrap_or_else(|| Dim::from(1))
}

/// The most trips of the THREAD Range of a Linear.
pub(crate) fn most_shared_trips(graph: &Graph, linear: NodeId) -> usize {
    let range = graph.sources(linear).iter().find(|&&node| is_shared(graph, node));
    let most = range.and_then(|&range| graph.props(graph.source(range, 0)).interval.int());
    most.map_or(1, |(_, most)| usize::try_from(most).unwrap_or(0))
}

fn is_shared(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.arg(node), Arg::Range { axis: AxisType::Thread, .. }) && graph.op(node) == Op::Range
}

/// The number of buffers that a kernel takes: one more than the greatest slot of a Param, and one for the named dims.
pub(crate) fn params(graph: &Graph, sink: NodeId) -> usize {
    let live = graph.reachable(&[sink]);
    let slots = live.iter().filter_map(|&node| param_slot(graph, node));
    slots.max().map_or(0, |slot| slot as usize + 1) + loops::has_dims(graph, sink) as usize
}

/// The slot of a Param that is memory.
fn param_slot(graph: &Graph, node: NodeId) -> Option<u32> {
    match graph.arg(node) {
        Arg::Param { slot, dtype, .. } if graph.op(node) == Op::Param && *dtype != DType::Index => Some(*slot),
        _ => None,
    }
}
