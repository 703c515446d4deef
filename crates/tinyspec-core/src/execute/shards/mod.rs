//! Tuple devices: a value on n devices is n lazy tensors, one a device, so a graph over such values becomes a graph a
//! device ([`spread`]). What one device needs of another is a copy ([`moves`]); everything below knows single devices only.

mod exchange;
mod moves;
mod reduce;
mod rules;
mod spread;

pub(super) use moves::{beside, move_to_device};

use super::realize;
use crate::Result;
use crate::lower::callify::Walk;
use crate::tensor::{History, Node};
use std::sync::Arc;

/// The value of a tensor on a tuple of devices.
#[derive(Clone)]
pub(crate) struct Shards {
    /// The axis that is cut into equal parts; without one every device has the whole value.
    pub axis: Option<u32>,
    /// One tensor a device, in the order of the tuple.
    pub parts: Arc<[Arc<Node>]>,
}

/// Computes `roots`, which are all on the devices `names`.
pub(super) fn run(roots: &[Arc<Node>], walk: &Walk, names: &[Arc<str>]) -> Result<()> {
    let program = walk.build()?;
    let history = History::of_tensors(roots)?;
    let leaves: Vec<&Arc<Node>> = walk.leaf_nodes().collect();
    let line = roots.first().and_then(|root| root.location);
    let shards = spread::spread(&program, &leaves, walk.numbers(), names, line)?;
    let parts: Vec<Arc<Node>> = shards.iter().flat_map(|shards| shards.parts.iter().cloned()).collect();
    realize(&parts)?;
    for (position, (root, shards)) in roots.iter().zip(shards).enumerate() {
        root.become_shards(shards, history.as_ref().and_then(|history| history.result(position)));
    }
    Ok(())
}
