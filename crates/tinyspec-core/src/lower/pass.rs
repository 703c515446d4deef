//! Defines passes over a kernel and the forms that they take and leave, and runs them: verified, printed and timed.

use crate::profile;
use std::sync::LazyLock;
use tinyspec_backends::Target;
use tinyspec_backends::settings;
use tinyspec_ir::{Graph, NodeId, Result, verify};

/// The form of a kernel between two passes. Each form has a verifier and an interpreter.
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

/// The rows of the specification's table that apply to single kernels; Special, which the specification lists as an op; and
/// Loops, for the late loop optimisations that the specification leaves open.
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
    /// Rewrites the instructions of loops.
    Loops,
    /// Gives storage to the values of a kernel.
    Plan,
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
            Stage::Loops => "loops",
            Stage::Plan => "plan",
        }
    }
}

/// Observes a kernel after each [`Pass`]: the pass's name, the graph and its root. `ranges` is the kernel before the
/// first pass, `scheduled` the kernel after its schedule has been applied.
pub type Observe<'a> = dyn FnMut(&'static str, &Graph, NodeId) + 'a;

/// Runs a verifier, if verifiers are enabled.
pub(crate) fn checked(stage: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    if cfg!(debug_assertions) || profile::verifies() {
        check().map_err(|error| error.help(format!("this is a mistake of the compiler, found after {stage}")))?;
    }
    Ok(())
}

/// Returns the new root of the kernel, or the old one if nothing changed.
type Run = fn(&mut Graph, NodeId, &Target) -> Result<NodeId>;

/// One pass over a kernel.
#[derive(Debug)]
pub struct Pass {
    /// The stage that it belongs to.
    pub stage: Stage,
    /// Its unique name in text.
    pub name: &'static str,
    /// The form that it takes.
    pub requires: Form,
    /// The form that it leaves.
    pub ensures: Form,
    run: Run,
}

pub(super) const fn pass(stage: Stage, name: &'static str, requires: Form, ensures: Form, run: Run) -> Pass {
    Pass { stage, name, requires, ensures, run }
}

/// The name under which a kernel is observed before the first pass.
pub const INPUT: &str = "ranges";
/// The name under which a kernel is observed after its schedule has been applied.
pub const SCHEDULED: &str = "scheduled";

/// The passes named by `TINYSPEC_PASSES`, whose results are printed; see [`passes::check_settings`](super::passes::check_settings).
static SHOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let named = settings::read_list("TINYSPEC_PASSES", "passes", |name| Some(name.to_string()));
    named.ok().flatten().unwrap_or_default()
});

/// Whether the result of this pass is printed.
pub(crate) fn is_shown(name: &str) -> bool {
    profile::shows(profile::Level::Stages) || SHOWN.iter().any(|shown| shown == name)
}

/// Runs passes over a kernel and returns its new root. `observe` gets the name and the result of each pass that changed it.
///
/// # Errors
/// The error of a pass, or of the verifier after it.
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
