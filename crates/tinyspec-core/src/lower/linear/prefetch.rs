//! Inserts prefetches. A processor reads ahead along runs of lines by itself; software prefetches cover the rest: rows that lie far
//! apart, the next row while this one is read again, the next page of a stream, the next block while a loop works on this one, and
//! the operands of a tile's epilogue.

mod behind;
mod blocks;
mod streams;

use super::arithmetic::Arithmetic;
use super::{Instructions, LINE};
use crate::lower::live::trips;
use rustc_hash::FxHashMap;
use tinyspec_backends::Target;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::instructions::versions;
use tinyspec_ir::{AddrSpace, Arg, Builder, Graph, NodeId, Op, Result};

/// Inserts prefetches where the target has them.
///
/// # Errors
/// When [`tinyspec_ir::derive()`] rejects a node, which would be a bug in this pass.
pub fn prefetch(graph: &mut Graph, linear: NodeId, target: &Target) -> Result<NodeId> {
    if !target.instructions.contains(&Instruction::Prefetch) {
        return Ok(linear);
    }
    let list = graph.sources(linear).to_vec();
    let nest = LoopNest::of(graph, &list);
    // By the position of the instruction that they precede.
    let mut fetches: FxHashMap<usize, Vec<Fetch>> = FxHashMap::default();
    let mut found = |position: usize, fetch: Fetch| fetches.entry(position).or_default().push(fetch);
    behind::find(graph, &nest, target, &mut found);
    streams::find(graph, &nest, target, &mut found);
    let blocks = blocks::find(graph, &nest, target);
    if fetches.is_empty() && blocks.is_empty() {
        return Ok(linear);
    }
    let mut instructions = Instructions::default();
    let mut open: Vec<usize> = Vec::new();
    let mut loops = 0..nest.loops.len();
    for (position, &node) in list.iter().enumerate() {
        for fetch in fetches.get(&position).into_iter().flatten() {
            fetch.emit(graph, &mut instructions)?;
        }
        instructions.copy(graph, node)?;
        match graph.op(node) {
            Op::Range => {
                let Some(number) = loops.next() else { continue };
                open.push(number);
                for block in blocks.get(&nest.first_version(number)).into_iter().flatten() {
                    block.emit(graph, &mut instructions, &nest, &open)?;
                }
            }
            Op::End => drop(open.pop()),
            _ => {}
        }
    }
    instructions.linear(graph)
}

/// A line to fetch.
struct Fetch {
    buffer: NodeId,
    /// An element in the line.
    index: Affine,
    instruction: Instruction,
}

impl Fetch {
    fn emit(&self, graph: &mut Graph, instructions: &mut Instructions) -> Result<()> {
        let sum = Arithmetic { graph, instructions }.sum(&self.index)?;
        fetch(graph, instructions, self.buffer, sum, self.instruction)
    }
}

/// Emits the prefetch of an element's line.
fn fetch(
    graph: &mut Graph,
    instructions: &mut Instructions,
    buffer: NodeId,
    index: NodeId,
    instruction: Instruction,
) -> Result<()> {
    let place = instructions.push(graph, Op::Index, &[buffer, index], Arg::None)?;
    instructions.push(graph, Op::Ins, &[place], Arg::Text(instruction.name().into())).map(drop)
}

/// A loop of a kernel.
struct Loop {
    range: NodeId,
    /// Positions of its Range and of its End.
    start: usize,
    end: usize,
    parent: Option<usize>,
    children: Vec<usize>,
    /// The trip count, if it is a constant.
    trips: Option<i64>,
    /// Instructions directly inside.
    body: Vec<NodeId>,
    /// The unroll factor.
    unrolled: i64,
}

impl Loop {
    /// The trip count before unrolling.
    fn all_trips(&self) -> Option<i64> {
        self.trips.map(|trips| trips.saturating_mul(self.unrolled))
    }
}

/// The loops of an instruction sequence, in order.
struct LoopNest<'a> {
    list: &'a [NodeId],
    loops: Vec<Loop>,
    /// For each further version of a loop, the first.
    firsts: FxHashMap<usize, usize>,
}

impl<'a> LoopNest<'a> {
    fn of(graph: &Graph, list: &'a [NodeId]) -> LoopNest<'a> {
        let mut loops: Vec<Loop> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (position, &node) in list.iter().enumerate() {
            match graph.op(node) {
                Op::Range => {
                    let (number, parent) = (loops.len(), open.last().copied());
                    if let Some(parent) = parent {
                        loops[parent].children.push(number);
                    }
                    loops.push(Loop {
                        range: node,
                        start: position,
                        end: list.len(),
                        parent,
                        children: Vec::new(),
                        trips: trips(graph, node),
                        body: Vec::new(),
                        unrolled: 1,
                    });
                    open.push(number);
                }
                Op::End => {
                    let Some(number) = open.pop() else { continue };
                    let closed = &mut loops[number];
                    closed.end = position;
                    if closed.children.is_empty() {
                        let barriers = closed.body.iter().filter(|&&node| is_barrier(graph, node)).count();
                        closed.unrolled = barriers as i64 + 1;
                    }
                }
                _ => {
                    if let Some(&inside) = open.last() {
                        loops[inside].body.push(node);
                    }
                }
            }
        }
        let numbers: FxHashMap<NodeId, usize> =
            loops.iter().enumerate().map(|(number, own)| (own.range, number)).collect();
        let firsts = versions(graph, list).into_iter();
        let firsts =
            firsts.filter_map(|(second, first)| Some((*numbers.get(&second)?, *numbers.get(&first)?))).collect();
        LoopNest { list, loops, firsts }
    }

    /// The first version of a loop.
    fn first_version(&self, number: usize) -> usize {
        self.firsts.get(&number).copied().unwrap_or(number)
    }

    /// The other versions of a loop.
    fn other_versions(&self, number: usize) -> impl Iterator<Item = usize> {
        let first = self.first_version(number);
        let all = self.firsts.iter().filter(move |(_, of)| **of == first).map(|(&further, _)| further);
        all.chain([first]).filter(move |&version| version != number)
    }

    /// All instructions inside a loop.
    fn inside(&self, number: usize) -> &'a [NodeId] {
        &self.list[self.loops[number].start + 1..self.loops[number].end]
    }
}

/// Whether an instruction separates two trips of an unrolled loop.
fn is_barrier(graph: &Graph, node: NodeId) -> bool {
    Instruction::of(graph, node) == Some(Instruction::SchedulingBarrier)
}

/// The size of a buffer in bytes, or 0 if it is unknown.
fn bytes(graph: &Graph, buffer: NodeId) -> i64 {
    let length = graph.props(buffer).shape.first().and_then(|dim| dim.as_const()).unwrap_or(0);
    length.saturating_mul(graph.dtype(buffer).size() as i64)
}

/// Whether a Store writes LOCAL memory.
fn is_local(graph: &Graph, store: NodeId) -> bool {
    graph.props(graph.source(store, 0)).addrspace == Some(AddrSpace::Local)
}
