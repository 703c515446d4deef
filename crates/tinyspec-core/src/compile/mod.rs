//! From a graph to a plan for a device: the stages in `lower`, schedules that were found, compiled kernels, launches.

mod compared;
mod fallback;
mod pipeline;
mod plan;
mod program;
mod ranged;
mod symbolic_plan;

pub(crate) use compared::{Compared, ComparedBuffer};
pub(crate) use pipeline::{compile, compile_over, programs};
pub(crate) use plan::{Place, Plan};
pub(crate) use program::{Contents, Rendered};
pub(crate) use ranged::{Ranged, own};
