//! The passes over a program and over its kernels, in order, and the forms between them ("Lowering Pipeline").
//!
//! Passes over a tensor graph run before Rangeify cuts it into kernels: [`SIMPLIFY`] passes never weigh profit,
//! [`DIVIDE`] passes divide what is too long for one kernel. [`SCHEDULE`] passes run over the kernels' Calls. A pass
//! over a kernel takes it in one form and leaves it in another or the same one: [`CANONICAL`] passes, which never weigh
//! profit, run before the schedule ([`Scheduler`](super::optimize::Scheduler)), [`LOWERING`] passes after it. No pass
//! knows of any other. [`run_on_tensors`], [`run_on_schedule`] and [`run`] drive them: they verify and print the result
//! of each, and accumulate its time.

pub use super::optimize::CANONICAL;
pub use super::pass::{Form, INPUT, Observe, Pass, SCHEDULED, Stage, run};
pub use super::rangeify::{CUT, DIVIDE, SCHEDULE, SIMPLIFY, SchedulePass, TensorPass, run_on_schedule, run_on_tensors};

use super::pass::pass;
use super::{expand, linear, linearize, plan, select, special};
use std::iter::once;
use std::sync::LazyLock;
use tinyspec_backends::settings::{self, UnknownSetting};

/// Passes after the schedule.
#[rustfmt::skip]
pub const LOWERING: &[Pass] = &[
    pass(Stage::Special,   "special",     Form::Ranges,  Form::Threads, special::special),
    pass(Stage::Expand,    "join",        Form::Threads, Form::Threads, |graph, sink, _| expand::join(graph, sink)),
    pass(Stage::Expand,    "expand",      Form::Threads, Form::Tiles,   |graph, sink, _| expand::expand(graph, sink)),
    pass(Stage::Select,    "scan",        Form::Tiles,   Form::Tiles,   |graph, sink, _| select::scan(graph, sink)),
    pass(Stage::Select,    "pairs",       Form::Tiles,   Form::Tiles,   |graph, sink, _| select::split_pairs(graph, sink)),
    pass(Stage::Select,    "keys",        Form::Tiles,   Form::Tiles,   select::keys),
    pass(Stage::Select,    "share-accumulators", Form::Tiles, Form::Tiles, select::share_accumulators),
    pass(Stage::Select,    "accumulate",  Form::Tiles,   Form::Tiles,   |graph, sink, _| select::accumulate(graph, sink)),
    pass(Stage::Select,    "decompose",   Form::Tiles,   Form::Tiles,   select::decompose),
    pass(Stage::Select,    "devectorize", Form::Tiles,   Form::Machine, select::devectorize),
    pass(Stage::Linearize, "linearize",   Form::Machine, Form::Linear,  |graph, sink, _| linearize::linearize(graph, sink)),
    pass(Stage::Loops,     "dead-lanes",  Form::Linear,  Form::Linear,  linear::dead_lanes),
    pass(Stage::Loops,     "unswitch",    Form::Linear,  Form::Linear,  linear::unswitch),
    pass(Stage::Loops,     "full-tiles",  Form::Linear,  Form::Linear,  linear::full_tiles),
    pass(Stage::Loops,     "unroll",      Form::Linear,  Form::Linear,  linear::unroll),
    pass(Stage::Loops,     "prefetch",    Form::Linear,  Form::Linear,  linear::prefetch),
    pass(Stage::Loops,     "nontemporal", Form::Linear,  Form::Linear,  linear::nontemporal),
    pass(Stage::Loops,     "branches",    Form::Linear,  Form::Linear,  linear::branches),
    pass(Stage::Plan,      "registers",   Form::Linear,  Form::Linear,  plan::registers),
];

/// The names under which a kernel is observed, in the order of the pipeline.
pub fn observed() -> impl Iterator<Item = &'static str> {
    let names = |passes: &'static [Pass]| passes.iter().map(|pass| pass.name);
    once(INPUT).chain(names(CANONICAL)).chain(once(SCHEDULED)).chain(names(LOWERING))
}

/// The names of all passes, and those under which a kernel is observed.
fn names() -> impl Iterator<Item = &'static str> {
    let of_tensors = SIMPLIFY.iter().chain(DIVIDE).map(|pass| pass.name);
    of_tensors.chain(once(CUT)).chain(SCHEDULE.iter().map(|pass| pass.name)).chain(observed())
}

/// Checks `TINYSPEC_PASSES`.
///
/// # Errors
/// When it names something that is not a pass.
pub(crate) fn check_settings() -> Result<(), UnknownSetting> {
    static CHECKED: LazyLock<Result<(), UnknownSetting>> = LazyLock::new(|| {
        let expected = format!("passes, one or several of {}", names().collect::<Vec<_>>().join(", "));
        let known = |name: &str| names().any(|known| known == name).then_some(());
        settings::read_list("TINYSPEC_PASSES", &expected, known).map(drop)
    });
    CHECKED.clone()
}
