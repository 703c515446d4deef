//! Tuple devices: a value on n devices is n lazy tensors, one per device, so a graph over such values becomes one graph
//! per device ([`spread`]). Whatever a device needs from another is copied ([`moves`]); all layers below know single
//! devices only.

mod exchange;
mod moves;
mod reduce;
mod rules;
mod spread;
mod stages;

pub(super) use moves::{move_to_device, on_device};
pub(crate) use stages::{Input, Move, Output, Run, Stage, stages};

use super::run::realize_part;
use crate::Result;
use crate::lazy::{History, Node, Shards, Walk};
use std::sync::Arc;

/// Computes `roots`, which are all on the devices `names`.
pub(super) fn run(roots: &[Arc<Node>], walk: &Walk, names: &[Arc<str>]) -> Result<()> {
    let history = History::of_tensors(roots, &walk.changing)?;
    let shards = parts(roots, walk, names)?;
    let parts: Vec<Arc<Node>> = shards.iter().flat_map(|shards| shards.parts.iter().cloned()).collect();
    realize_part(&parts)?;
    for (position, (root, shards)) in roots.iter().zip(shards).enumerate() {
        root.become_shards(shards, history.as_ref().and_then(|history| history.result(position)));
    }
    Ok(())
}

/// The shards of `roots`, which are on all of the devices `names`. The parts are lazy.
pub(crate) fn parts(roots: &[Arc<Node>], walk: &Walk, names: &[Arc<str>]) -> Result<Vec<Shards>> {
    let program = walk.build()?;
    let leaves: Vec<&Arc<Node>> = walk.leaf_nodes().collect();
    let line = roots.first().and_then(|root| root.location);
    spread::spread(&program, &leaves, walk.numbers(), names, line)
}
