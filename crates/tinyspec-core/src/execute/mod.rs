//! Devices, their memory, and running plans on them.

mod overwrite;
mod ranged;
mod run;
pub(crate) mod shards;
mod together;
mod validate;

pub use crate::device::{Device, default_device, device, register, set_default_device, with_default_device};
pub use crate::error::{Held, MemoryReport, Mismatch};
pub use crate::kept::limit_plans;
pub(crate) use overwrite::settled_walk;
pub(crate) use run::{key_for, plan_for, realize, run};
pub(crate) use shards::{Input, Move, Output, Run, Stage, stages};
pub(crate) use together::together;
