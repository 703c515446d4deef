//! LOCAL Buffers that share bytes: their live ranges must not overlap.
//!
//! Unlike the plan, which reasons about loops, this runs through the instructions, two trips per loop: a trip, and the next one.

use super::refuse;
use crate::special::SpecialIndex;
use crate::{AddrSpace, Arg, Builder, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;

/// The most accesses, Barriers and ends of loops to run through.
const STEPS: usize = 1 << 16;

/// Checks the offsets of a kernel's LOCAL Buffers, by slot.
///
/// # Errors
/// Names a Buffer without an offset, a read of a Buffer that another one has overwritten, and a write to shared bytes that no Barrier
/// separates from other threads' accesses to the previous Buffer there.
pub fn storage(graph: &Graph, linear: NodeId, offsets: &[(u32, usize)]) -> Result<()> {
    let (list, mut steps) = (graph.sources(linear), Vec::new());
    for &node in list {
        match graph.op(node) {
            Op::Range => steps.push(Step::Begin),
            // A loop without accesses says nothing.
            Op::End if matches!(steps.last(), Some(Step::Begin)) => drop(steps.pop()),
            Op::End => steps.push(Step::End),
            Op::Barrier => steps.push(Step::Barrier),
            Op::Load | Op::Store | Op::AtomicAdd => {
                let Some(memory) = graph.memory(graph.source(node, 0)) else { continue };
                if let Arg::Buffer { slot, dtype, addrspace: AddrSpace::Local, .. } = *graph.arg(memory) {
                    let Some(&(_, start)) = offsets.iter().find(|(known, _)| *known == slot) else {
                        return refuse("verify storage", graph, node, "has no place in LOCAL memory");
                    };
                    let elements = graph.props(memory).element_count().as_const().unwrap_or(0).max(0) as usize;
                    let end = start.saturating_add(elements.saturating_mul(dtype.size()));
                    steps.push(Step::Access { node, slot, bytes: (start, end) });
                }
            }
            _ => {}
        }
    }
    let is_thread = |&node: &NodeId| {
        SpecialIndex::of(graph, node).is_some_and(SpecialIndex::is_thread)
            && graph.as_int(graph.source(node, 0)) != Some(1)
    };
    let is_concurrent = list.iter().any(is_thread);
    let mut run = Run { graph, is_concurrent, seen: FxHashMap::default(), phase: 0 };
    // Where each open loop begins, and whether this is its second trip.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut at = 0;
    for _ in 0..STEPS {
        match steps.get(at) {
            None => break,
            Some(Step::Begin) => open.push((at, false)),
            Some(Step::End) => {
                if let Some((begin, false)) = open.pop() {
                    open.push((begin, true));
                    at = begin;
                }
            }
            Some(Step::Barrier) => run.phase += 1,
            Some(&Step::Access { node, slot, bytes }) => run.access(node, slot, bytes)?,
        }
        at += 1;
    }
    Ok(())
}

enum Step {
    Begin,
    End,
    Barrier,
    Access { node: NodeId, slot: u32, bytes: (usize, usize) },
}

/// The access history of a Buffer.
struct Seen {
    bytes: (usize, usize),
    /// Another Buffer has been written in its place since its last write.
    is_gone: bool,
    /// The number of Barriers before its last access.
    phase: usize,
}

struct Run<'a> {
    graph: &'a Graph,
    is_concurrent: bool,
    /// By slot.
    seen: FxHashMap<u32, Seen>,
    phase: usize,
}

impl Run<'_> {
    fn access(&mut self, node: NodeId, slot: u32, bytes: (usize, usize)) -> Result<()> {
        let graph = self.graph;
        let is_gone = self.seen.get(&slot).is_some_and(|seen| seen.is_gone);
        if graph.op(node) == Op::Store {
            for (&other, seen) in self.seen.iter_mut().filter(|(other, _)| **other != slot) {
                if seen.bytes.0 >= bytes.1 || bytes.0 >= seen.bytes.1 {
                    continue;
                }
                if self.is_concurrent && seen.phase == self.phase {
                    let why = format!("takes the place of LOCAL Buffer {other} without a Barrier between");
                    return refuse("verify storage", graph, node, why);
                }
                seen.is_gone = true;
            }
        } else if is_gone {
            return refuse("verify storage", graph, node, "reads LOCAL memory that another Buffer has taken");
        }
        self.seen.insert(slot, Seen { bytes, is_gone: false, phase: self.phase });
        Ok(())
    }
}
