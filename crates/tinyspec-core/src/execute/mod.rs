//! Devices, their memory, and running plans on them.

mod built_in;
mod device;
mod kept;
mod memory;
mod overwrite;
mod ranged;
mod run;
mod shards;
mod together;
mod validate;

pub(crate) use device::device_of;
pub use device::{Device, default_device, device, register, set_default_device, with_default_device};
pub(crate) use kept::Kept;
pub use kept::limit_plans;
pub use memory::{Held, MemoryReport};
pub(crate) use memory::{Owner, Storage, size};
pub(crate) use overwrite::settled_walk;
pub(crate) use ranged::part;
pub(crate) use run::{plan_for, realize, run};
pub(crate) use shards::Shards;
pub use validate::Mismatch;
pub(crate) use validate::{Compared, ComparedBuffer, ComparedCall, reference_of};
