//! Loads that a hardware prefetcher, which follows runs of lines within a page, does not anticipate.

use super::{Fetch, LINE, LoopNest, bytes, is_barrier, is_local};
use rustc_hash::FxHashMap;
use tinyspec_backends::Target;
use tinyspec_ir::address::{base_and_index, behind_after, register};
use tinyspec_ir::affine::Affine;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::instructions::lanes;
use tinyspec_ir::{Graph, NodeId, Op};

/// The least step, in bytes, that leaves the run of lines that a hardware prefetcher follows.
const RUN: i64 = 1024;
/// Lines at multiples of this stride, in bytes, compete for a few sets of the first cache.
const ALIAS_STRIDE: i64 = 1024;
/// Bytes of the smallest load that is worth a prefetch.
const LEAST_VECTOR: i64 = 32;
/// Bytes of a pair of lines: the second cache fetches the adjacent line by itself.
const PAIR: i64 = 2 * LINE;
/// The prefetch distance in trips, from memory (some 100 ns) and from the last cache.
const TRIPS_AHEAD: i64 = 8;
const TRIPS_AHEAD_IN_CACHE: i64 = 4;
/// The same if a trip computes a tile of multiply-adds, of which the out-of-order window holds half as many.
const TRIPS_AHEAD_OF_WORK: i64 = 32;
/// The prefetch distance of all streams together, in bytes: pages that the hardware prefetcher has not reached.
const STREAM_AHEAD: i64 = 8_192;
/// Instructions per load above which the out-of-order window holds too few loads, for one stream and for several.
const MIN_OPS_PER_LOAD: [usize; 2] = [3, 7];
/// The least ratio of bytes read to bytes stored at which a loop is bound by its reads.
const READ_PER_STORED: usize = 8;

/// The reads of a buffer by the trips of a loop, `bytes` further on each time.
#[derive(PartialEq, Eq, Hash)]
struct Row {
    buffer: NodeId,
    /// The loop.
    around: usize,
    bytes: i64,
}

/// A scalar or vector that is read.
struct Access {
    load: NodeId,
    buffer: NodeId,
    index: Affine,
    bytes: i64,
    /// Bytes that a trip of the innermost loop, and one of the loop around it, go on by.
    step: i64,
    row: i64,
    /// Bytes that do not depend on any trip.
    start: i64,
}

struct Streams<'a> {
    graph: &'a Graph,
    nest: &'a LoopNest<'a>,
    target: &'a Target,
    /// How many instructions use each node.
    users: FxHashMap<NodeId, usize>,
    /// Loops that are open.
    open: Vec<usize>,
    /// The start positions that this trip has fetched, by row.
    fetched: FxHashMap<Row, Vec<i64>>,
    /// The loops that read each row, in order, with the start of their reads.
    readers: FxHashMap<Row, Vec<(usize, i64)>>,
    /// [`Streams::streams`] by loop, buffer and step: the loads of a loop ask the same.
    known: FxHashMap<(usize, NodeId, i64), Option<i64>>,
}

pub(super) fn find(graph: &Graph, nest: &LoopNest, target: &Target, found: &mut dyn FnMut(usize, Fetch)) {
    let mut users: FxHashMap<NodeId, usize> = FxHashMap::default();
    for &user in nest.list {
        let sources = graph.sources(user);
        let first = |position: usize| !sources[..position].contains(&sources[position]);
        for (_, &source) in sources.iter().enumerate().filter(|&(position, _)| first(position)) {
            *users.entry(source).or_default() += 1;
        }
    }
    let (fetched, readers, known) = Default::default();
    let mut streams = Streams { graph, nest, target, users, open: Vec::new(), fetched, readers, known };
    let mut loops = 0..nest.loops.len();
    for (position, &node) in nest.list.iter().enumerate() {
        match graph.op(node) {
            Op::Range => streams.open.extend(loops.next()),
            Op::End => drop(streams.open.pop()),
            Op::Ins if is_barrier(graph, node) => {
                // The next trip of an unrolled loop.
                let innermost = streams.open.last().copied();
                streams.fetched.retain(|row, _| Some(row.around) != innermost);
            }
            Op::Load => {
                let Some(access) = streams.access(node) else { continue };
                let ways = [streams.far_apart(&access), streams.next_row(&access), streams.page_ahead(&access)];
                for (ahead, instruction) in ways.into_iter().flatten() {
                    let index = access.index.offset(ahead / graph.dtype(access.buffer).size() as i64);
                    found(position, Fetch { buffer: access.buffer, index, instruction });
                }
            }
            _ => {}
        }
    }
}

/// The distance to fetch ahead in bytes, and the instruction.
type Ahead = (i64, Instruction);

impl Streams<'_> {
    fn access(&self, load: NodeId) -> Option<Access> {
        let (graph, place) = (self.graph, self.graph.source(load, 0));
        let (base, index) = base_and_index(graph, place).filter(|_| register(graph, place).is_none())?;
        let index = match index {
            Some(index) if lanes(graph, index) > 1 => return None,
            Some(index) => Affine::of(graph, index),
            None => Affine::default(),
        };
        let size = graph.dtype(base).size() as i64;
        let step_of = |number: Option<&usize>| {
            let range = number.map(|&number| self.nest.loops[number].range);
            range.map_or(0, |range| index.coefficient(range)).saturating_mul(size)
        };
        let (step, row) = (step_of(self.open.last()), step_of(self.open.iter().nth_back(1)));
        let start = index.where_all_hold(graph).constant().saturating_mul(size);
        Some(Access {
            load,
            buffer: behind_after(graph, base),
            index,
            bytes: size * lanes(graph, load),
            step,
            row,
            start,
        })
    }

    /// Whether this trip has fetched nothing yet within `span` bytes before the access; notes it as fetched.
    fn begins(&mut self, access: &Access, span: i64) -> bool {
        let Some(&around) = self.open.last() else { return true };
        let fetched = self.fetched.entry(Row { buffer: access.buffer, around, bytes: access.row }).or_default();
        let is_new = !fetched.iter().any(|start| (0..span).contains(&(access.start - start)));
        if is_new {
            fetched.push(access.start);
        }
        is_new
    }

    /// A vector of a long innermost loop whose trips read far apart. Where a value has many uses, the loop is not bound by memory.
    fn far_apart(&mut self, access: &Access) -> Option<Ahead> {
        let own = &self.nest.loops[*self.open.last()?];
        let is_long = own.all_trips().is_some_and(|trips| trips >= 4 * TRIPS_AHEAD);
        let step = access.step / own.unrolled;
        let is_far = step.abs() >= RUN;
        let users = self.users.get(&access.load).copied().unwrap_or(0);
        if !is_far || !is_long || access.bytes < LEAST_VECTOR || users > 2 || !own.children.is_empty() {
            return None;
        }
        if !self.begins(access, PAIR) {
            return None;
        }
        let copies = own.body.iter().any(|&node| self.graph.op(node) == Op::Store && is_local(self.graph, node));
        let is_near = bytes(self.graph, access.buffer) <= self.target.cache_bytes[2] as i64;
        let (trips, instruction) = match is_near {
            // Rows at this stride compete for the same few sets of the first cache.
            _ if copies && step % ALIAS_STRIDE == 0 => (TRIPS_AHEAD_OF_WORK, Instruction::PrefetchSecond),
            _ if copies => (TRIPS_AHEAD_OF_WORK, Instruction::Prefetch),
            true => (TRIPS_AHEAD_IN_CACHE, Instruction::Prefetch),
            false => (TRIPS_AHEAD, Instruction::Prefetch),
        };
        Some((step.saturating_mul(trips), instruction))
    }

    /// A loop that reads a row for the second time hits the caches; meanwhile the next row can be fetched.
    fn next_row(&mut self, access: &Access) -> Option<Ahead> {
        let &[.., around, inner] = &self.open[..] else { return None };
        if self.graph.op(access.buffer) != Op::Param {
            return None;
        }
        let by = self.nest.first_version(inner);
        let length = self.nest.loops[inner].trips.unwrap_or(0).saturating_mul(access.step);
        let is_row = access.step > 0 && length > access.row / 2 && length <= access.row;
        let first = self.target.cache_bytes[0] as i64;
        // With short vectors a row takes longer, which leaves time for a long one; the first cache does not hold two long rows.
        let is_short = (self.target.vector_bytes as i64) < LINE;
        let (instruction, most) = match is_short && access.row > first / 3 {
            true => (Instruction::PrefetchSecond, first / 2),
            false => (Instruction::Prefetch, first / 3),
        };
        let readers = self.readers.entry(Row { buffer: access.buffer, around, bytes: access.row }).or_default();
        if readers.iter().all(|reader| reader.0 != by) {
            readers.push((by, access.start));
        }
        let &[(_, first), (second, start), ..] = &readers[..] else { return None };
        let fits = access.row >= RUN && access.row <= most;
        if !is_row || !fits || access.bytes < LEAST_VECTOR || second != by || !self.begins(access, LINE) {
            return None;
        }
        // If the first loop reads some rows ahead, it needs its next row right after this loop.
        let lead = first.saturating_sub(start);
        let leads = lead > 0 && lead.checked_rem(access.row) == Some(0);
        Some((if leads { lead.saturating_add(2 * access.row) } else { access.row }, instruction))
    }

    /// A compute-heavy loop that reads a large buffer once, line by line, and stores little.
    fn page_ahead(&mut self, access: &Access) -> Option<Ahead> {
        let is_run = access.step > 0 && access.step < RUN;
        let is_large = bytes(self.graph, access.buffer) > self.target.cache_bytes[1] as i64;
        let is_param = self.graph.op(access.buffer) == Op::Param;
        if !is_run || !is_large || !is_param || access.bytes < LEAST_VECTOR {
            return None;
        }
        let key = (*self.open.last()?, access.buffer, access.step);
        let known = self.known.get(&key).copied();
        let streams = known.unwrap_or_else(|| self.streams(key.0, key.1, key.2));
        self.known.insert(key, streams);
        let streams = streams?;
        // Prefetches of several streams into the first cache would occupy the fill buffers that its misses need.
        let instruction = if streams > 1 { Instruction::PrefetchSecond } else { Instruction::Prefetch };
        self.begins(access, PAIR).then_some((STREAM_AHEAD / streams, instruction))
    }

    /// The number of streams in which a loop reads a buffer: bytes read per trip over bytes stepped. `None` unless only this loop
    /// reads the buffer, computes enough for each load, and stores little.
    fn streams(&self, number: usize, buffer: NodeId, step: i64) -> Option<i64> {
        let graph = self.graph;
        let is_read = |node: &&NodeId| {
            let is_load = graph.op(**node) == Op::Load;
            is_load && base_and_index(graph, graph.source(**node, 0)).is_some_and(|(base, _)| base == buffer)
        };
        let body = self.nest.inside(number);
        let reads = body.iter().filter(is_read).count();
        let bytes = |value: NodeId| lanes(graph, value) as usize * graph.dtype(value).size();
        let is_memory =
            |node: &&NodeId| graph.op(**node) == Op::Store && register(graph, graph.source(**node, 0)).is_none();
        let stored: usize = body.iter().filter(is_memory).map(|&node| bytes(graph.source(node, 1))).sum();
        let read: usize = body.iter().filter(is_read).map(|&node| bytes(node)).sum();
        let reduces = !body.iter().any(|&node| matches!(graph.op(node), Op::Range | Op::AtomicAdd))
            && READ_PER_STORED * stored <= read;
        let computed = body.iter().filter(|&&node| graph.op(node).is_elementwise()).count();
        let streams = (read as i64 + step - 1) / step;
        let [one, several] = MIN_OPS_PER_LOAD;
        let least = if streams > 1 { several } else { one };
        let others = self.nest.other_versions(number);
        let elsewhere: usize = others.map(|other| self.nest.inside(other).iter().filter(is_read).count()).sum();
        let is_all = self.nest.list.iter().filter(is_read).count() == reads + elsewhere;
        (reduces && is_all && computed >= least * reads).then_some(streams)
    }
}
