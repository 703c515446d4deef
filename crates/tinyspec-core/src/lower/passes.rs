//! The passes over a program and over its kernels, in order, and the forms between them ("Lowering Pipeline").
//!
//! Passes over a tensor graph run before Rangeify cuts it into kernels: [`SIMPLIFY`] passes never weigh profit, [`DIVIDE`] passes
//! divide what is too long for one kernel. A pass over a kernel takes it in one form and leaves it in another, or in the same
//! one: [`CANONICAL`] passes, which never weigh profit, run before the schedule
//! ([`Scheduler`](super::optimize::Scheduler)), [`LOWERING`] passes after it. No pass knows of any other. [`run_on_tensors`] and
//! [`run`] drive them: they verify the result of each, show it, and accumulate the time that each takes.

use super::kernel::{Observe, checked};
use super::optimize::{bounds, delinearize, separate, windows, words};
use super::rangeify::{self, Costs};
use super::{expand, linearize, select, special};
use crate::profile;
use std::iter::once;
use std::sync::LazyLock;
use tinyspec_backends::Target;
use tinyspec_backends::settings::{self, UnknownSetting};
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{Graph, NodeId, Result, rules, verify};

/// What is true of a kernel between two passes. Each form has a verifier, and an interpreter runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Values have shape `()`; loops are Ranges.
    Ranges,
    /// As [`Form::Ranges`], for one thread: no GLOBAL, LOCAL or GROUP_REDUCE Range is left where the target has workgroups.
    Threads,
    /// UPCAST and UNROLL Ranges are axes of the values' shapes.
    Tiles,
    /// Values have shape `()` or `(lanes,)`, and every op is one that the target has.
    Machine,
    /// The order of execution.
    Linear,
}

impl Form {
    /// Verifies that a kernel has this form.
    ///
    /// # Errors
    /// When a node is not allowed in this form; the error names the first one.
    pub fn verify(self, graph: &Graph, root: NodeId) -> Result<()> {
        match self {
            Form::Ranges | Form::Threads => verify::ranges(graph, root),
            Form::Tiles => verify::tiles(graph, root),
            Form::Machine => verify::machine(graph, root),
            Form::Linear => verify::linear(graph, root),
        }
    }
}

/// The rows of the specification's table that apply to single kernels, and Special, which the specification lists as an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Decides which axes are parallel and which are serial; inserts local buffers.
    Optimize,
    /// Turns parallel Ranges into workgroups and threads.
    Special,
    /// Expands parallel Ranges into shape.
    Expand,
    /// Selects instructions of the target.
    Select,
    /// Determines the order of execution.
    Linearize,
}

impl Stage {
    /// Its name in text.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Optimize => "optimize",
            Stage::Special => "special",
            Stage::Expand => "expand",
            Stage::Select => "select",
            Stage::Linearize => "linearize",
        }
    }
}

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
    TensorPass { name: "simplify", run: |graph, outputs, _, _| simplify(graph, outputs).map(Some) },
    TensorPass { name: "concat",   run: |graph, outputs, _, _| rangeify::parted(graph, outputs) },
];

/// Passes over a tensor graph that divide what is too long for one kernel.
#[rustfmt::skip]
pub const DIVIDE: &[TensorPass] = &[
    TensorPass { name: "levels", run: |graph, outputs, _, target| rangeify::in_levels(graph, outputs, target) },
    TensorPass { name: "split",  run: |graph, outputs, costs, _| rangeify::split_reduces(graph, outputs, costs) },
    TensorPass { name: "blocks", run: |graph, outputs, costs, _| rangeify::block_products(graph, outputs, costs) },
];

fn simplify(graph: &Graph, outputs: &[NodeId]) -> Result<Tensors> {
    let mut graph = graph.clone();
    let outputs = Rewriter::new(&[rules::EXACT, rules::REASSOC].concat()).rewrite(&mut graph, outputs)?;
    Ok((graph, outputs))
}

/// Runs passes over a tensor graph; returns the new one, or `None` if nothing changed.
///
/// # Errors
/// The error of a pass, or of the verifier after it where verifiers run.
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

/// Returns the new root of the kernel, or the old one if nothing changed.
type Run = fn(&mut Graph, NodeId, &Target) -> Result<NodeId>;

/// One pass over a kernel.
#[derive(Debug)]
pub struct Pass {
    /// The row that it belongs to.
    pub stage: Stage,
    /// Its unique name in text.
    pub name: &'static str,
    /// The form that it takes.
    pub requires: Form,
    /// The form that it leaves.
    pub ensures: Form,
    run: Run,
}

const fn pass(stage: Stage, name: &'static str, requires: Form, ensures: Form, run: Run) -> Pass {
    Pass { stage, name, requires, ensures, run }
}

/// The name under which a kernel is observed before the first pass.
pub const INPUT: &str = "ranges";
/// The name under which a kernel is observed after its schedule has been applied.
pub const SCHEDULED: &str = "scheduled";

/// Passes before the schedule, which bring a kernel into canonical form.
#[rustfmt::skip]
pub const CANONICAL: &[Pass] = &[
    pass(Stage::Optimize, "domains",     Form::Ranges, Form::Ranges, |graph, sink, _| windows::simplify(graph, sink)),
    pass(Stage::Optimize, "rename",      Form::Ranges, Form::Ranges, |graph, sink, _| separate::separate(graph, sink)),
    pass(Stage::Optimize, "delinearize", Form::Ranges, Form::Ranges, |graph, sink, _| delinearize::delinearize(graph, sink)),
    pass(Stage::Optimize, "strict",      Form::Ranges, Form::Ranges, |graph, sink, _| words::as_written(graph, sink)),
    pass(Stage::Optimize, "signs",       Form::Ranges, Form::Ranges, bounds::write),
];

/// Passes after the schedule.
#[rustfmt::skip]
pub const LOWERING: &[Pass] = &[
    pass(Stage::Special,   "special",     Form::Ranges,  Form::Threads, special::special),
    pass(Stage::Expand,    "join",        Form::Threads, Form::Threads, |graph, sink, _| expand::join(graph, sink)),
    pass(Stage::Expand,    "expand",      Form::Threads, Form::Tiles,   |graph, sink, _| expand::expand(graph, sink)),
    pass(Stage::Select,    "scan",        Form::Tiles,   Form::Tiles,   |graph, sink, _| select::scan(graph, sink)),
    pass(Stage::Select,    "pairs",       Form::Tiles,   Form::Tiles,   |graph, sink, _| select::pairs(graph, sink)),
    pass(Stage::Select,    "keys",        Form::Tiles,   Form::Tiles,   select::keys),
    pass(Stage::Select,    "accumulate",  Form::Tiles,   Form::Tiles,   |graph, sink, _| select::accumulate(graph, sink)),
    pass(Stage::Select,    "decompose",   Form::Tiles,   Form::Tiles,   select::decompose),
    pass(Stage::Select,    "devectorize", Form::Tiles,   Form::Machine, select::devectorize),
    pass(Stage::Linearize, "linearize",   Form::Machine, Form::Linear,  |graph, sink, _| linearize::linearize(graph, sink)),
];

/// The names under which a kernel is observed, in the order of the pipeline.
pub fn observed() -> impl Iterator<Item = &'static str> {
    let names = |passes: &'static [Pass]| passes.iter().map(|pass| pass.name);
    once(INPUT).chain(names(CANONICAL)).chain(once(SCHEDULED)).chain(names(LOWERING))
}

/// The names of all passes, and those under which a kernel is observed.
fn names() -> impl Iterator<Item = &'static str> {
    SIMPLIFY.iter().chain(DIVIDE).map(|pass| pass.name).chain(observed())
}

/// The passes named by `TINYSPEC_PASSES`, whose results are printed.
static SHOWN: LazyLock<Result<Vec<String>, UnknownSetting>> = LazyLock::new(|| {
    let expected = format!("passes, one or several of {}", names().collect::<Vec<_>>().join(", "));
    let known = |name: &str| names().any(|known| known == name).then(|| name.to_string());
    Ok(settings::read_list("TINYSPEC_PASSES", &expected, known)?.unwrap_or_default())
});

/// Checks `TINYSPEC_PASSES`.
///
/// # Errors
/// When it names something that is not a pass.
pub(crate) fn check_settings() -> Result<(), UnknownSetting> {
    SHOWN.as_ref().map(|_| ()).map_err(Clone::clone)
}

/// Is the result of this pass printed?
pub(crate) fn is_shown(name: &str) -> bool {
    profile::shows(profile::Level::Stages) || SHOWN.as_ref().is_ok_and(|shown| shown.iter().any(|known| known == name))
}

/// Runs passes over a kernel and returns its new root. `observe` gets the name and the result of each pass that changed it.
///
/// # Errors
/// The error of a pass, or of the verifier after it where verifiers run.
pub fn run(
    passes: &'static [Pass],
    graph: &mut Graph,
    mut root: NodeId,
    target: &Target,
    observe: &mut Observe,
) -> Result<NodeId> {
    for pass in passes {
        let timer = profile::pass_timer(pass.name);
        let new = (pass.run)(graph, root, target)?;
        drop(timer);
        if new == root && pass.requires == pass.ensures {
            continue;
        }
        root = new;
        observe(pass.name, graph, root);
        checked(pass.name, || pass.ensures.verify(graph, root))?;
    }
    Ok(root)
}
