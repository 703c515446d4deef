//! Linearize: the execution order of a kernel, with its loops ("Lowering Pipeline").
//!
//! A node is placed in the innermost loop among the Ranges it depends on, so loop-invariant values are hoisted, except
//! reads of elements that may not exist unless the loop has a trip (`guarded_reads.rs`). Within a loop the order is
//! that of a walk from the effects down to their sources: a value is computed right before its first use, which keeps
//! live ranges short. Exceptions are orders that shorten them further (`pressure.rs`), and long chains, which are
//! interleaved (`interleave.rs`). Effects under one condition become blocks (`conditions.rs`).

mod conditions;
mod guarded_reads;
mod interleave;
mod pressure;

use super::live::{Live, RangeSet};
use tinyspec_ir::{Builder, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

/// Orders the instructions of a selected kernel: a `Linear` node.
///
/// # Errors
/// When a Range is used outside its End, or has none, or several.
pub fn linearize(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let live = Live::new(graph, &order)?;
    if live.of(sink) != 0 {
        return refuse("a range is used outside its loop");
    }
    let loops = Loops::new(graph, &live, &order)?;
    let required = guarded_reads::required_loops(graph, &live, &order);
    let (partners, effects) = (pressure::partners(graph, &order), pressure::effects(graph, &order));
    // One list per loop, the last one for nodes outside all loops.
    let mut bodies: Vec<Vec<NodeId>> = vec![Vec::new(); live.ranges.len() + 1];
    let mut done = vec![false; graph.len()];
    let mut stack: Vec<(NodeId, usize)> = vec![(sink, 0)];
    done[sink.index()] = true;
    while let Some((node, next)) = stack.pop() {
        let sources = effects.get(&node).map_or_else(|| graph.sources(node), Vec::as_slice);
        let then = match sources.get(next) {
            Some(&source) => {
                stack.push((node, next + 1));
                Some(source)
            }
            None => {
                if is_listed(graph, node) {
                    bodies[loops.innermost(live.of(node) | required.get(&node).copied().unwrap_or(0))].push(node);
                }
                partners.get(&node).copied()
            }
        };
        if let Some(then) = then.filter(|then| !done[then.index()]) {
            done[then.index()] = true;
            stack.push((then, 0));
        }
    }
    let bodies: Vec<Vec<NodeId>> = bodies.into_iter().map(|body| interleave::interleave(graph, body)).collect();
    let bodies = conditions::blocks(graph, &live, &bodies);
    conditions::listed(graph, &loops, &live, &bodies)
}

/// Whether a node is an instruction of its own. Constants and shapes are operands; a Range opens its loop.
fn is_listed(graph: &Graph, node: NodeId) -> bool {
    match graph.op(node) {
        Op::Const | Op::Range => false,
        Op::Stack => graph.props(node).value.is_none(),
        // A named dim is a number, not memory.
        Op::Param => graph.dtype(node) != DType::Index,
        _ => true,
    }
}

fn refuse<T>(message: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Verify, "linear", message))
}

/// How the loops nest.
struct Loops {
    /// The End of each Range.
    ends: Vec<NodeId>,
    /// Number of loops around each Range.
    depths: Vec<u32>,
}

impl Loops {
    fn new(graph: &Graph, live: &Live, order: &[NodeId]) -> Result<Loops> {
        let count = live.ranges.len();
        let mut ends: Vec<Option<NodeId>> = vec![None; count];
        // Loops around each loop. An outer End comes after the inner one, so the outer ones are known first.
        let mut around: Vec<RangeSet> = vec![0; count];
        for &end in order.iter().rev().filter(|&&node| graph.op(node) == Op::End) {
            let position = live.bit(graph.source(end, 1)).trailing_zeros() as usize;
            let Some(known) = ends.get_mut(position) else {
                return refuse("an end closes something that is not a range");
            };
            if known.replace(end).is_some() {
                return refuse("a range has two ends");
            }
            around[position] |= (0..count)
                .filter(|outer| live.of(end) >> outer & 1 == 1)
                .fold(live.of(end), |set, outer| set | around[outer]);
        }
        let Some(ends) = ends.into_iter().collect() else { return refuse("a range has no end") };
        Ok(Loops { ends, depths: around.iter().map(|set| set.count_ones()).collect() })
    }

    /// The innermost of the open loops, or the index of the list for nodes outside all loops.
    fn innermost(&self, open: RangeSet) -> usize {
        let open = (0..self.depths.len()).filter(|range| open >> range & 1 == 1);
        open.max_by_key(|&range| self.depths[range]).unwrap_or(self.depths.len())
    }
}
