//! The memory traffic of a kernel: bytes moved between memory and the caches.

use rustc_hash::FxHashSet;
use tinyspec_backends::Target;
use tinyspec_ir::{Builder, Graph, NodeId, Op};

/// The least fraction of the moved bytes that must be stores. Below it, bypassing the caches saves less than the next reader
/// loses by not finding the data there.
const LEAST_WRITTEN: f64 = 1.0 / 16.0;

/// Whether a kernel that stores to these buffers moves more bytes than the caches hold, and stores enough of them.
pub(crate) fn bypassing_pays(graph: &Graph, order: &[NodeId], written: &FxHashSet<NodeId>, target: &Target) -> bool {
    let Moved { all, stored } = Moved::by(graph, order, written);
    all > kept(target) && stored as f64 >= LEAST_WRITTEN * all as f64
}

/// Bytes that a kernel moves.
struct Moved {
    /// Of all buffers.
    all: usize,
    /// Stored to those that are written.
    stored: usize,
}

impl Moved {
    fn by(graph: &Graph, order: &[NodeId], written: &FxHashSet<NodeId>) -> Moved {
        let trips = order.iter().filter(|&&node| graph.op(node) == Op::End).filter_map(|&node| {
            let trips = graph.as_int(graph.source(graph.source(node, 1), 0))?;
            usize::try_from(trips).ok()
        });
        let trips = trips.fold(1, usize::saturating_mul);
        let mut moved = Moved { all: 0, stored: 0 };
        for &node in order.iter().filter(|&&node| graph.op(node) == Op::Param) {
            let length = graph.props(node).shape.first().and_then(|length| usize::try_from(length.as_const()?).ok());
            let is_written = written.contains(&node);
            let length = length.map_or(0, |length| if is_written { length.min(trips) } else { length });
            let bytes = length.saturating_mul(graph.dtype(node).size());
            moved.all = moved.all.saturating_add(bytes);
            if is_written {
                moved.stored = moved.stored.saturating_add(bytes);
            }
        }
        moved
    }
}

/// Bytes of the last-level cache to count on: half of it for one thread, nearly all of it for several.
fn kept(target: &Target) -> usize {
    let [_, _, last] = target.cache_bytes;
    match target.threads {
        _ if last == 0 => usize::MAX,
        0 | 1 => last / 2,
        _ => last - last / 8,
    }
}
