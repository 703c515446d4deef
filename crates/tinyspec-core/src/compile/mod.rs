//! From a graph to a plan for a device: runs the stages of `lower`, looks up schedules, compiles kernels and lays out
//! launches.

mod commands;
mod compared;
mod fallback;
mod linked;
mod pipeline;
mod plan;
mod program;
mod ranged;
mod stored;

pub(crate) use compared::{Compared, ComparedBuffer};
pub(crate) use linked::Linked;
pub(crate) use pipeline::{check_form, linear, load, planned, programs};
pub(crate) use plan::{CustomStep, Place, Plan};
pub(crate) use program::{Contents, Rendered};
pub(crate) use ranged::{Ranged, own};
