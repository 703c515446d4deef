//! Blocks that a loop packs into LOCAL memory before it works on them, or reads repeatedly in place: while it works on one, the next
//! is fetched. This overlaps memory accesses and arithmetic beyond the processor's reorder window.

use super::{Arithmetic, LINE, Loop, LoopNest, bytes, fetch, is_local};
use crate::lower::linear::Instructions;
use rustc_hash::FxHashMap;
use std::iter::once;
use tinyspec_backends::Target;
use tinyspec_ir::address::in_param;
use tinyspec_ir::affine::{Affine, Footprint};
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::instructions::lanes;
use tinyspec_ir::{Arg, Graph, NodeId, Op, Result};

/// The most lines fetched in one trip: the processor tracks no more misses at once.
const AT_ONCE: i64 = 8;
/// The least instructions of work per line; less work than that overlaps by itself.
const WORK: i64 = 8;
/// The most trips per line if the work itself waits for the block.
const SELDOM: i64 = 8;
/// The least number of rows that exceeds the streams a hardware prefetcher follows.
const LEAST_ROWS: usize = 4;
/// The denominator of the lines per trip, a fixed-point number.
const FRACTION: i64 = 1 << 20;

/// The memory that the next trip of a loop packs or reads in place.
pub(super) struct Block {
    buffer: NodeId,
    /// Where the block begins, in elements.
    start: Affine,
    /// The stride between runs of lines in bytes and their number, innermost first.
    rows: Vec<(i64, i64)>,
    /// Lines of a run.
    run: i64,
    /// The loop around the copy.
    around: usize,
    /// Whether the buffer exceeds the caches.
    is_far: bool,
    /// Whether the first-level cache holds it along with the current block.
    is_small: bool,
    /// Whether the work itself reads it, rather than a copy before the work.
    is_awaited: bool,
}

/// Which reads of a loop make up a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    All,
    /// Those that each of its trips repeats.
    Again,
    /// Adjacent rows, each read element by element.
    Rows,
}

/// An inner loop before unrolling.
struct Inner {
    range: NodeId,
    trips: i64,
    unrolled: i64,
}

impl Inner {
    /// The distance between two trips, given the coefficient of the Range.
    fn step(&self, factor: i64) -> i64 {
        factor / self.unrolled
    }
}

/// The constants of those reads that belong to the first trip of each unrolled loop, ascending.
fn first_trip(inside: &[Inner], read: &Read, mut constants: Vec<i64>) -> Vec<i64> {
    constants.sort_unstable();
    constants.dedup();
    for inner in inside.iter().filter(|inner| inner.unrolled > 1) {
        let step = inner.step(read.index.coefficient(inner.range));
        let all = constants.clone();
        constants.retain(|constant| step == 0 || !all.contains(&(constant - step)));
    }
    constants
}

/// A Load from a Param.
struct Read {
    buffer: NodeId,
    index: Affine,
    lanes: i64,
}

/// The blocks to fetch, by the loop that fetches them in small parts.
pub(super) fn find(graph: &Graph, nest: &LoopNest, target: &Target) -> FxHashMap<usize, Vec<Block>> {
    let mut found: FxHashMap<usize, Vec<Block>> = FxHashMap::default();
    if !runs_each_trip(graph, nest) {
        return found;
    }
    let blocks = Blocks { graph, nest, target };
    for (number, own) in nest.loops.iter().enumerate() {
        let Some(parent) = own.parent.filter(|&parent| !blocks.is_copy(parent)) else { continue };
        if nest.firsts.contains_key(&number) {
            continue;
        }
        let (chain, reads) = if blocks.is_copy(number) {
            let siblings = nest.loops[parent].children.iter().copied();
            let work = siblings.filter(|&sibling| sibling > number && !blocks.is_copy(sibling));
            let Some(chain) = work.map(|work| nest.hottest(work)).max_by_key(|chain| chain.1) else { continue };
            (chain, Reads::All)
        } else {
            // Adjacent rows are too many and too short for the processor to read ahead in each.
            let reads = if own.children.is_empty() { Reads::Rows } else { Reads::Again };
            (nest.hottest(number), reads)
        };
        for block in blocks.of(number, reads) {
            if let Some(place) = block.place(nest, &chain.0) {
                found.entry(nest.first_version(place)).or_default().push(block);
            }
        }
    }
    found
}

/// Whether trip counts alone determine how often loops run: no loop is inside an If, unless its other versions are inside the
/// opposite ones.
fn runs_each_trip(graph: &Graph, nest: &LoopNest) -> bool {
    let (mut conditions, mut loops) = (0, 0..nest.loops.len());
    nest.list.iter().all(|&node| {
        match graph.op(node) {
            Op::If => conditions += 1,
            Op::Endif => conditions -= 1,
            Op::Range => {
                let has_versions = loops.next().is_some_and(|number| nest.other_versions(number).next().is_some());
                return conditions == 0 || has_versions;
            }
            _ => {}
        }
        true
    })
}

impl LoopNest<'_> {
    /// The path from a loop down to the innermost one that runs most often, and how often that runs.
    fn hottest(&self, number: usize) -> (Vec<usize>, i64) {
        let own = &self.loops[number];
        let Some(trips) = own.all_trips() else { return (Vec::new(), 0) };
        let below = own.children.iter().map(|&child| self.hottest(child)).max_by_key(|chain| chain.1);
        let (mut chain, times) = below.filter(|below| below.1 > 0).unwrap_or((Vec::new(), 1));
        chain.insert(0, number);
        (chain, trips.saturating_mul(times))
    }
}

struct Blocks<'a> {
    graph: &'a Graph,
    nest: &'a LoopNest<'a>,
    target: &'a Target,
}

impl Blocks<'_> {
    /// Whether the loop only copies to LOCAL memory; computing takes time of its own.
    fn is_copy(&self, number: usize) -> bool {
        let graph = self.graph;
        let mut writes = false;
        for &node in self.nest.inside(number) {
            match graph.op(node) {
                Op::Range | Op::End | Op::Cast | Op::Where => {}
                Op::Store if is_local(graph, node) => writes = true,
                op if op.has_effect() || op.is_elementwise() && graph.dtype(node).is_float() => return false,
                _ => {}
            }
        }
        writes
    }

    /// The blocks of large buffers that a loop reads and that move with the loop around it.
    fn of(&self, number: usize, reads: Reads) -> Vec<Block> {
        let nest = self.nest;
        let own = &nest.loops[number];
        let within = nest.loops.iter().filter(|inner| own.start <= inner.start && inner.end <= own.end);
        let inner =
            |inner: &Loop| Some(Inner { range: inner.range, trips: inner.all_trips()?, unrolled: inner.unrolled });
        let Some(inside) = within.map(inner).collect::<Option<Vec<Inner>>>() else { return Vec::new() };
        let step = |index: &Affine| index.coefficient(own.range);
        let is_meant = |read: &Read| match reads {
            Reads::All => true,
            Reads::Again => step(&read.index) == 0,
            Reads::Rows => step(&read.index) == own.unrolled && read.lanes == 1,
        };
        let reads_found: Vec<Read> =
            nest.inside(number).iter().filter_map(|&node| self.read(node)).filter(is_meant).collect();
        let mut blocks: Vec<Block> = Vec::new();
        for read in &reads_found {
            if blocks.iter().any(|block| block.buffer == read.buffer) {
                continue;
            }
            let same = reads_found
                .iter()
                .filter(|other| other.buffer == read.buffer && other.index.terms() == read.index.terms());
            let constants = first_trip(&inside, read, same.map(|other| other.index.constant()).collect());
            if reads == Reads::Rows && (constants.len() < LEAST_ROWS || !self.is_crowded(read.buffer)) {
                continue;
            }
            let block = self.block(read, constants, own, &inside);
            blocks.extend(block.map(|block| Block { is_awaited: reads != Reads::All, ..block }));
        }
        blocks
    }

    /// Whether the buffer takes a large share of the last cache.
    fn is_crowded(&self, buffer: NodeId) -> bool {
        bytes(self.graph, buffer) > self.target.cache_bytes[2] as i64 / 4
    }

    fn read(&self, load: NodeId) -> Option<Read> {
        let graph = self.graph;
        let (buffer, index) = (graph.op(load) == Op::Load).then(|| in_param(graph, graph.source(load, 0)))??;
        Some(Read { buffer, index: index.where_all_hold(graph), lanes: lanes(graph, load) })
    }

    fn block(&self, read: &Read, constants: Vec<i64>, own: &Loop, inside: &[Inner]) -> Option<Block> {
        let around = own.parent?;
        let size = self.graph.dtype(read.buffer).size() as i64;
        let length = bytes(self.graph, read.buffer);
        let [first, second, last] = self.target.cache_bytes.map(|bytes| bytes as i64);
        if length <= second {
            return None;
        }
        let mut steps: Vec<(i64, i64)> = vec![(1, read.lanes)];
        // The reads of a tile are adjacent.
        if let [one, other, ..] = constants[..] {
            steps.push((other - one, constants.len() as i64));
        }
        let inner = |node: NodeId| inside.iter().find(|inner| inner.range == node);
        for &(node, factor) in read.index.terms() {
            match inner(node) {
                Some(inner) if factor > 0 => steps.push((inner.step(factor), inner.trips)),
                None if self.is_around(around, node) => {}
                _ => return None,
            }
        }
        let start = read.index.filter(|node| inner(node).is_none()).without_constant().offset(*constants.first()?);
        let moves = start.coefficient(self.nest.loops[around].range) != 0;
        let footprint = Footprint::of(steps);
        let mut rows = Vec::<(i64, i64)>::new();
        for (distance, count) in footprint.rows {
            let distance = distance.checked_mul(size)?;
            match rows.last_mut() {
                // Rows between the rows.
                Some(last) if distance <= last.0.saturating_mul(last.1) && distance % last.0 == 0 => {
                    last.1 = last.1.max(distance / last.0 * (count - 1) + last.1);
                }
                _ => rows.push((distance, count)),
            }
        }
        let is_whole = |elements: i64| elements.wrapping_mul(size) % LINE == 0;
        let aligned = rows.iter().all(|row| row.0 % LINE == 0)
            && start.terms().iter().all(|term| is_whole(term.1))
            && is_whole(start.constant());
        let run = (footprint.run.checked_mul(size)? + LINE - 1) / LINE + i64::from(!aligned && !rows.is_empty());
        let is_far = length > last / 2;
        let buffer = read.buffer;
        let block = Block { buffer, start, rows, run, around, is_far, is_small: false, is_awaited: false };
        let bytes = block.lines().saturating_mul(LINE);
        let fits = bytes <= second / 2 && block.lines() > AT_ONCE;
        (moves && fits).then_some(Block { is_small: bytes <= first / 3, ..block })
    }

    /// Whether a node is the Range of this loop or of one around it.
    fn is_around(&self, number: usize, node: NodeId) -> bool {
        let own = &self.nest.loops[number];
        own.range == node || own.parent.is_some_and(|parent| self.is_around(parent, node))
    }
}

impl Block {
    fn lines(&self) -> i64 {
        self.rows.iter().fold(self.run, |lines, row| lines.saturating_mul(row.1))
    }

    /// The outermost loop of a chain that can fetch the block in small parts, if there is enough work to hide them. If most trips
    /// would have nothing to fetch, the overhead exceeds the latency that is hidden.
    fn place(&self, nest: &LoopNest, chain: &[usize]) -> Option<usize> {
        let lines = self.lines();
        let (mut total, mut found, mut work) = (1i64, None, 0i64);
        for &number in chain {
            let own = &nest.loops[number];
            total = total.saturating_mul(own.all_trips()?);
            if found.is_none() && total.saturating_mul(AT_ONCE) >= lines {
                found = Some((number, total));
            }
            work = work.saturating_add(total.saturating_mul(own.body.len() as i64 / own.unrolled));
        }
        let (number, trips) = found?;
        let seldom = if self.is_awaited { SELDOM } else { 1 };
        let is_often = self.is_far || trips <= lines.saturating_mul(seldom);
        (is_often && work >= lines.saturating_mul(WORK)).then_some(number)
    }

    /// Emits the fetches of one trip of the innermost open loop.
    pub fn emit(
        &self,
        graph: &mut Graph,
        instructions: &mut Instructions,
        nest: &LoopNest,
        open: &[usize],
    ) -> Result<()> {
        let Some(position) = open.iter().position(|&number| number == self.around) else { return Ok(()) };
        let (around, inside) = open.split_at(position + 1);
        let mut index = Arithmetic { graph, instructions };
        let start = self.next(&mut index, nest, around)?;
        // The index of this trip since the copy, and the total number of trips.
        let (mut total, mut trip) = (1i64, None);
        for &number in inside.iter().rev() {
            let own = &nest.loops[number];
            let term = index.scaled(own.range, total)?;
            trip = Some(trip.map_or(Ok(term), |trip| index.binary(Op::Add, trip, term))?);
            total = total.saturating_mul(own.trips.unwrap_or(1));
        }
        let Some(trip) = trip else { return Ok(()) };
        let lines = self.lines();
        let at_once = (lines + total - 1) / total;
        let first = if at_once > 1 {
            let number = index.number(at_once);
            index.binary(Op::Mul, trip, number)?
        } else {
            let [rate, fraction] = [lines * FRACTION / total + 1, FRACTION].map(|number| index.number(number));
            let scaled = index.binary(Op::Mul, trip, rate)?;
            index.binary(Op::Idiv, scaled, fraction)?
        };
        let size = index.graph.dtype(self.buffer).size() as i64;
        let instruction = if self.is_small { Instruction::Prefetch } else { Instruction::PrefetchSecond };
        for further in 0..at_once {
            let further = index.number(further);
            let mut line = index.binary(Op::Add, first, further)?;
            let mut element = start;
            let dims = once((LINE, self.run)).chain(self.rows.iter().copied());
            for (position, (step, extent)) in dims.enumerate() {
                let mut at = line;
                if position < self.rows.len() {
                    let extent = index.number(extent);
                    at = index.binary(Op::Mod, line, extent)?;
                    line = index.binary(Op::Idiv, line, extent)?;
                }
                let step = index.number(step / size);
                let offset = index.binary(Op::Mul, at, step)?;
                element = index.binary(Op::Add, element, offset)?;
            }
            fetch(index.graph, index.instructions, self.buffer, element, instruction)?;
        }
        Ok(())
    }

    /// The start of the block that the next trip reads; in the last trip, of the first block of the enclosing loop's next trip.
    fn next(&self, index: &mut Arithmetic, nest: &LoopNest, around: &[usize]) -> Result<NodeId> {
        let mut start = index.number(self.start.constant());
        let mut further: Option<NodeId> = None;
        for &number in around {
            let own = &nest.loops[number];
            let step = self.start.coefficient(own.range);
            if step != 0 {
                let at = index.scaled(own.range, step)?;
                start = index.binary(Op::Add, start, at)?;
            }
            let one = index.number(step);
            further = Some(match (further, own.trips) {
                (Some(outer), Some(trips)) => {
                    let trip = index.wide(own.range)?;
                    let last = index.number(trips - 1);
                    let goes_on = index.binary(Op::CmpLt, trip, last)?;
                    let back = index.number(step.wrapping_mul(1 - trips));
                    let outer = index.binary(Op::Add, outer, back)?;
                    index.instructions.push(index.graph, Op::Where, &[goes_on, one, outer], Arg::None)?
                }
                _ => one,
            });
        }
        further.map_or(Ok(start), |further| index.binary(Op::Add, start, further))
    }
}
