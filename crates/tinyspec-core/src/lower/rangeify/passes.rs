//! The passes over a tensor graph before it is cut into kernels, and over the resulting schedule.

use super::deduplicate::deduplicate;
use super::donate::{Donation, donate};
use super::{Costs, Schedule, block_products, parted, split_reduces, two_level_scans};
use crate::lower::pass::{checked, is_shown};
use crate::profile;
use tinyspec_backends::Target;
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{Graph, NodeId, Result, rules, verify};

/// A tensor graph and its outputs.
type Tensors = (Graph, Vec<NodeId>);

/// Returns the new graph, or `None` if nothing changed.
type RunOnTensors = fn(&Graph, &[NodeId], &Costs, &Target) -> Result<Option<Tensors>>;

/// One pass over a tensor graph.
#[derive(Debug)]
pub struct TensorPass {
    /// Its unique name in text.
    pub name: &'static str,
    run: RunOnTensors,
}

/// Passes over a tensor graph that do not depend on the target.
#[rustfmt::skip]
pub const SIMPLIFY: &[TensorPass] = &[
    TensorPass { name: "simplify", run: |graph, outputs, _, _| simplified(graph, outputs).map(Some) },
    TensorPass { name: "concat",   run: |graph, outputs, _, _| parted(graph, outputs) },
];

/// Passes over a tensor graph that divide what is too long for one kernel.
#[rustfmt::skip]
pub const DIVIDE: &[TensorPass] = &[
    TensorPass { name: "two-level-scan", run: |graph, outputs, _, target| two_level_scans(graph, outputs, target) },
    TensorPass { name: "split-reduce",  run: |graph, outputs, costs, _| split_reduces(graph, outputs, costs) },
    TensorPass { name: "cache-blocks", run: |graph, outputs, costs, _| block_products(graph, outputs, costs) },
];

fn simplified(graph: &Graph, outputs: &[NodeId]) -> Result<Tensors> {
    let mut graph = graph.clone();
    let outputs = simplify(&mut graph, outputs)?;
    Ok((graph, outputs))
}

/// Rewrites `roots` by all rules for tensors.
pub(super) fn simplify(graph: &mut Graph, roots: &[NodeId]) -> Result<Vec<NodeId>> {
    Rewriter::new(&[rules::EXACT, rules::REASSOC].concat()).rewrite(graph, roots)
}

/// Runs passes over a tensor graph; returns the new one, or `None` if nothing changed.
///
/// # Errors
/// The error of a pass, or of the verifier after it.
pub fn run_on_tensors(
    passes: &'static [TensorPass],
    graph: &Graph,
    outputs: &[NodeId],
    costs: &Costs,
    target: &Target,
) -> Result<Option<Tensors>> {
    let mut changed: Option<Tensors> = None;
    for pass in passes {
        let (graph, outputs) = changed.as_ref().map_or((graph, outputs), |(graph, outputs)| (graph, &outputs[..]));
        let timer = profile::pass_timer(pass.name);
        let new = (pass.run)(graph, outputs, costs, target)?;
        drop(timer);
        let Some((graph, outputs)) = new else { continue };
        if is_shown(pass.name) {
            profile::stage(pass.name, &graph, &outputs);
        }
        checked(pass.name, || verify::tensor(&graph, &outputs))?;
        changed = Some((graph, outputs));
    }
    Ok(changed)
}

/// Returns the new schedule; [`Donation`]s are those that the caller wants.
type RunOnSchedule = fn(Schedule, &[Donation]) -> Result<Schedule>;

/// One pass over a schedule.
#[derive(Debug)]
pub struct SchedulePass {
    /// Its unique name in text.
    pub name: &'static str,
    run: RunOnSchedule,
}

/// The name under which a schedule is shown before the first of its passes.
pub const CUT: &str = "cut";

/// Passes over a schedule.
pub const SCHEDULE: &[SchedulePass] = &[
    SchedulePass { name: "donate", run: donate },
    SchedulePass { name: "deduplicate", run: |schedule, _| deduplicate(schedule) },
];

/// Runs passes over a schedule that a tensor graph has been cut into.
///
/// # Errors
/// The error of a pass, or of the verifier before or after it.
pub fn run_on_schedule(
    passes: &'static [SchedulePass],
    mut schedule: Schedule,
    wanted: &[Donation],
) -> Result<Schedule> {
    check(CUT, &schedule)?;
    for pass in passes {
        let before = schedule.root;
        let timer = profile::pass_timer(pass.name);
        schedule = (pass.run)(schedule, wanted)?;
        drop(timer);
        if schedule.root != before {
            check(pass.name, &schedule)?;
        }
    }
    Ok(schedule)
}

/// Prints and verifies a schedule, if enabled.
fn check(pass: &str, schedule: &Schedule) -> Result<()> {
    let Schedule { graph, root, buffers, .. } = schedule;
    if is_shown(pass) {
        profile::stage(pass, graph, &[*root]);
    }
    checked(pass, || verify::schedule(graph, *root, buffers))
}
