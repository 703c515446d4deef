//! The memory of devices: buffers, the pool of freed memory, limits.

mod limit;
mod owner;
mod pool;
mod shortage;
mod storage;

pub(crate) use limit::{from_environment, size_of_environment};
pub(crate) use owner::Owner;
pub(crate) use pool::Pool;
pub(crate) use shortage::on_shortage;
pub(crate) use storage::Storage;
