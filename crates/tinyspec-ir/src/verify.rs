//! A verifier per stage: what must hold for a graph before the next stage.
//!
//! Properties are right by construction, since [`crate::derive()`] made every node. Verifiers check what is not local
//! to a node: which ops a stage allows, that Ranges are used only inside their loops, and that effects are ordered.

pub mod access;
mod arena;
mod arithmetic;
mod barriers;
mod bounds;
mod calls;
mod commands;
mod conditions;
mod conflicts;
mod hand_written;
mod kernel;
mod linear;
mod machine;
mod order;
mod schedule;
mod storage;
mod tensor;
mod threads;

pub use arena::{Placed, Temporary, arena};
pub use barriers::barriers;
pub use commands::commands;
pub use hand_written::hand_written;
pub use kernel::{loops, ranges, tiles};
pub use linear::linear;
pub use machine::machine;
pub use schedule::schedule;
pub use storage::storage;
pub use tensor::tensor;

use crate::{Error, ErrorKind, Graph, NodeId, Result};

fn refuse<T>(stage: &str, graph: &Graph, node: NodeId, why: impl std::fmt::Display) -> Result<T> {
    let message = format!("node %{} `{}`: {why}", node.0, graph.op(node));
    let error = Error::new(ErrorKind::Verify, stage, message);
    Err(match graph.locations(node).first() {
        Some(place) => error.at(place.clone()),
        None => error,
    })
}
