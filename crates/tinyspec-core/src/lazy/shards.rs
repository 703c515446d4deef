//! Values on several devices.

use super::Node;
use std::sync::Arc;

/// The value of a tensor on a tuple of devices.
#[derive(Clone)]
pub(crate) struct Shards {
    /// The sharded axis; without one, every device has the whole value.
    pub axis: Option<u32>,
    /// One tensor per device, in the order of the tuple.
    pub parts: Arc<[Arc<Node>]>,
}
