//! Values that go through LOCAL memory, independent of the axes: those that two loops compute, and the sums of a register
//! tile.

use crate::lower::optimize::kernel::{Kernel, slot};
use crate::lower::optimize::space::{Epilogue, Space};
use crate::lower::optimize::transforms::Stage;
use crate::lower::select::decompose::Sizes;
use tinyspec_backends::Target;
use tinyspec_ir::{DType, Graph, Op};

/// Kept values may fill one part in this many of a core's second-level cache, which other data share.
const SHARE: usize = 4;
/// Instructions per element from which on the overhead of the epilogue's loop, stores and loads is small.
const LONG: usize = 12;
/// Rows of a tile that are worth a loop.
const LEAST_ROWS: i64 = 3;

/// Stages the values that are worth it, once the axes are final.
pub(in super::super) fn values(graph: &Graph, kernel: &Kernel, space: &mut Space, target: &Target) -> Vec<Stage> {
    let mut stages = Vec::new();
    for (number, repeat) in kernel.recomputed.iter().enumerate() {
        let trips = graph.as_int(graph.source(repeat.from, 0)).unwrap_or(i128::MAX);
        let bytes = trips.saturating_mul(graph.dtype(repeat.value).size() as i128);
        let stage = Stage::Value(number);
        if bytes <= (target.cache_bytes[1] / SHARE) as i128 && space.apply(&stage.clone().into()).is_ok() {
            stages.push(stage);
        }
    }
    if is_long(graph, kernel, space, target) && space.apply(&Stage::Sums.into()).is_ok() {
        stages.push(Stage::Sums);
    }
    stages
}

/// Whether the sums of a tile have a long epilogue. A register tile has a dozen vectors, and each instruction of the epilogue
/// would be emitted a dozen times: long functions, such as gelu or the step of an optimiser, would compile slowly and need more
/// constants than there are registers beside the tile.
fn is_long(graph: &Graph, kernel: &Kernel, space: &Space, target: &Target) -> bool {
    let Some(Epilogue { row, .. }) = space.epilogue() else { return false };
    if space.axes[row].trips.is_none_or(|rows| rows < LEAST_ROWS) {
        return false;
    }
    let ([nest], along) = (&kernel.nests[..], kernel.live.bit(space.origins[space.axes[row].origin].range)) else {
        return false;
    };
    let sizes = Sizes::of(target);
    let mut needed = vec![false; graph.len()];
    needed[nest.body.index()] = true;
    let (mut has_sums, mut size) = (false, 0);
    for &node in kernel.order.iter().rev().filter(|node| node.index() <= nest.body.index()) {
        if !needed[node.index()] {
            continue;
        }
        let changes = kernel.live.of(node) & along != 0;
        match graph.op(node) {
            Op::Reduce if changes => {
                has_sums = true;
                continue;
            }
            // A staged copy is read where it was filled, before the epilogue.
            Op::Load
                if slot(graph, graph.source(graph.source(node, 0), 0))
                    .is_some_and(|slot| space.packing(slot).is_some()) =>
            {
                return false;
            }
            _ if space.kept().any(|kept| kernel.recomputed[kept].again == node) => return false,
            _ => {}
        }
        graph.sources(node).iter().for_each(|source| needed[source.index()] = true);
        let is_value = graph.op(node).is_elementwise() && graph.dtype(node) != DType::Index;
        size += if changes && is_value { sizes.size(graph, node) } else { 0 };
    }
    has_sums && size >= LONG
}
