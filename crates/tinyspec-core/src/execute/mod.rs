//! Devices, their memory, and running plans on them.

mod built_in;
mod device;
mod pool;
mod run;
mod storage;

pub use device::{Device, default_device, device, register, set_default_device, with_default_device};
pub(crate) use run::{plan_for, realize, run};
pub(crate) use storage::Storage;
