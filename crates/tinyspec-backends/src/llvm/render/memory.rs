//! Loads and stores: contiguous, masked, gathered, non-temporal.

use super::address::Address;
use super::emit::{Block, Kind, Result, Value};
use super::{Placed, Renderer};
use llvm_sys::LLVMIntPredicate::{LLVMIntNE, LLVMIntSLT};
use llvm_sys::LLVMOpcode::LLVMZExt;
use rustc_hash::FxHashSet;
use tinyspec_ir::address::{base_and_index, behind_after, in_param, register};
use tinyspec_ir::{Arg, Builder, NodeId, Op};

/// The largest access through a scalar gate: a vector of AVX-512.
const DUMMY_BYTES: u32 = 64;

/// A step of so many bytes leaves the run of lines that the processor reads ahead of.
const RUN: u64 = 1024;
/// Lines a multiple of so many bytes apart share few places of the first cache.
const APART: i64 = 1024;
/// The shortest vector that a single instruction writes around the caches.
pub(super) const LEAST_NONTEMPORAL: u32 = 16;
/// Bytes of a load that are worth an instruction more.
const LEAST_VECTOR: u32 = 32;
const LINE: i64 = 64;
/// Lines come in pairs: the second-level cache asks for the neighbour by itself.
const PAIR: i64 = 2 * LINE;
/// Trips after which what is read ahead is needed: some 100 ns from memory, fewer from the last cache.
const TRIPS_AHEAD: i64 = 8;
const TRIPS_AHEAD_IN_CACHE: i64 = 4;
/// The same where a tile of multiply-adds is the work of a trip: of those the processor itself sees half as many ahead.
const TRIPS_AHEAD_OF_WORK: i64 = 32;

/// Bytes ahead at which streams are fetched, all together: in pages that the processor has not begun to read ahead in.
const STREAM_AHEAD: i64 = 8_192;
/// Instructions for each load, from which on the processor sees too few loads ahead of itself: of one stream, and of several
/// beside each other.
const LABOUR: [usize; 2] = [3, 6];
/// Bytes read for each that is stored, at least, where reading sets the pace.
const STORED: usize = 8;

/// Lines that are fetched while the sums of a tile are made, at most: the first cache waits for no more at once.
const MOST_BEHIND: usize = 64;

/// The cache that a line is fetched into.
#[derive(Clone, Copy)]
enum Level {
    First,
    Second,
}

/// What the trips of a loop read of a buffer: so many bytes further on each time.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Row {
    buffer: NodeId,
    /// The loop.
    pub(super) around: NodeId,
    bytes: i64,
}

impl Renderer<'_, '_> {
    pub(super) fn load(&mut self, node: NodeId) -> Result<()> {
        let value = self.loaded(node)?;
        self.values[node.index()] = Some(Placed { value, depth: self.levels.len() });
        Ok(())
    }

    fn loaded(&mut self, node: NodeId) -> Result<Value> {
        let sources = self.graph.sources(node);
        let (place, lanes) = (sources[0], self.lanes(node)?);
        if let Some((slot, buffer)) = register(self.graph, place) {
            // An accumulator that was never written has no defined value.
            let undefined = self.emit.undefined(self.kind(buffer), lanes);
            return Ok(self.registers.read(slot).unwrap_or(undefined));
        }
        let known = sources.get(2).and_then(|&gate| self.is_open(gate));
        if let (&[_, alt, _], Some(false)) = (sources, known) {
            return self.value_in(alt, lanes);
        }
        let address = self.address(place)?;
        let kind = Kind::of(address.dtype);
        let bytes = kind.in_memory().bits() / 8 * lanes;
        if !self.is_gpu() {
            self.read_ahead(node, &address, bytes)?;
            self.read_next_row(node, &address, bytes)?;
            if let Some(streams) = self.laboured_streams(node, &address, bytes)
                && self.begins(self.buffer_read(node), &address, PAIR)
            {
                self.prefetch(&address, STREAM_AHEAD / streams)?;
            }
        }
        let (alt, gate) = match *sources {
            [_, alt, gate] if known.is_none() => (self.value_in(alt, lanes)?, self.value(gate)?),
            [_] | [_, _, _] => {
                let value = if self.is_gpu() {
                    self.load_lanes(&address, kind.in_memory(), lanes)?
                } else if address.pointer.lanes > 1 {
                    let all = self.emit.int(Kind::I1, lanes, 1);
                    let any = self.emit.undefined(kind.in_memory(), lanes);
                    self.masked_read("llvm.masked.gather", &address, all, any)?
                } else {
                    self.emit.load(address.pointer, kind.in_memory(), lanes, address.alignment)?
                };
                return self.read_bools(kind, value);
            }
            _ => return Err(self.unsupported(node, "an alternative value needs a gate")),
        };
        if self.is_gpu() {
            let alt = self.write_bools(kind, alt)?;
            let value = self.load_behind(gate, &address, alt)?;
            return self.read_bools(kind, value);
        }
        if address.pointer.lanes == 1 && gate.lanes == 1 && kind.in_memory().bits() / 8 * lanes <= DUMMY_BYTES {
            // Always reads, but where the gate is closed from memory of its own.
            let dummy = self.emit.scratch(self.entry, Kind::I8, DUMMY_BYTES);
            let pointer = self.emit.select(gate, address.pointer, dummy)?;
            let value = self.emit.load(pointer, kind.in_memory(), lanes, kind.in_memory().bits() / 8)?;
            let value = self.read_bools(kind, value)?;
            return self.emit.select(gate, value, alt);
        }
        let alt = self.write_bools(kind, alt)?;
        let gate = self.emit.splat(gate, lanes)?;
        let value = if address.pointer.lanes == 1 && !self.target.masks_loads(address.dtype) {
            // Without a masked load instruction, LLVM emits a branch per lane.
            let (all, pointer, alignment) = (self.all(sources[2])?, address.pointer, address.alignment);
            let ways = self.either(
                all,
                |renderer| renderer.emit.load(pointer, kind.in_memory(), lanes, alignment),
                |renderer| renderer.masked_load(place, address, gate, alt),
            )?;
            let joined = self.emit.phi(alt.kind, lanes);
            for (value, from) in ways {
                self.emit.arrive(joined, value, from)?;
            }
            joined
        } else {
            self.masked_load(place, address, gate, alt)?
        };
        self.read_bools(kind, value)
    }

    fn masked_load(&mut self, place: NodeId, mut address: Address, gate: Value, alt: Value) -> Result<Value> {
        let lanes = alt.lanes;
        let bytes = alt.kind.bits() / 8 * lanes;
        if address.pointer.lanes == 1 && bytes <= DUMMY_BYTES && self.is_far(place, lanes) {
            // Lanes that are left out are no fault, but where memory has no such page the processor takes hundreds of
            // cycles to find that out.
            let any = self.any(gate)?;
            let dummy = self.emit.scratch(self.entry, Kind::I8, DUMMY_BYTES);
            address.pointer = self.emit.select(any, address.pointer, dummy)?;
        }
        let name = if address.pointer.lanes > 1 { "llvm.masked.gather" } else { "llvm.masked.load" };
        self.masked_read(name, &address, gate, alt)
    }

    /// The processor reads ahead along runs of lines, but not from row to row of a matrix: there it is told what comes.
    /// Where a value is used many times, memory does not set the pace.
    fn read_ahead(&mut self, node: NodeId, address: &Address, bytes: u32) -> Result<()> {
        // A loop that was freed of its masks is short enough for the processor to run ahead of itself, unless it copies on
        // the way.
        let copies = !self.known.is_empty();
        let leaves = self.leaves_runs(node, address, bytes) && !self.is_around_others();
        let buffer = self.buffer_read(node);
        if !(self.open.is_empty() || copies) || !leaves || !self.begins(buffer, address, PAIR) {
            return Ok(());
        }
        let is_near = buffer.is_some_and(|buffer| self.bytes(buffer, address) <= self.target.cache_bytes[2]);
        let (trips, level) = match is_near {
            // Rows so far apart all belong to the same few places of the first cache.
            _ if copies && address.step % APART == 0 => (TRIPS_AHEAD_OF_WORK, Level::Second),
            _ if copies => (TRIPS_AHEAD_OF_WORK, Level::First),
            true => (TRIPS_AHEAD_IN_CACHE, Level::First),
            false => (TRIPS_AHEAD, Level::First),
        };
        self.prefetch_to(level, address, address.step.saturating_mul(trips))
    }

    /// What is read once the sums of a tile are there, such as a matrix that is added to them: where it is far it is fetched
    /// before the loop begins that ends here. Otherwise the next tile would wait for it too.
    pub(super) fn fetch_behind(&mut self, end: NodeId) -> Result<()> {
        let graph = self.graph;
        let behind = graph.sources(self.kernel.linear).iter().copied().skip_while(|&node| node != end).skip(1);
        let behind = behind.take_while(|&node| !matches!(graph.op(node), Op::Range | Op::End));
        let mut lines = FxHashSet::default();
        for load in behind.filter(|&node| graph.op(node) == Op::Load) {
            let place = graph.source(load, 0);
            let Some((buffer, sum)) = in_param(self.graph, place) else { continue };
            let is_known = sum.terms.iter().all(|term| self.values[term.0.index()].is_some());
            let size = graph.dtype(buffer).size() as i64;
            let length = graph.props(buffer).shape.first().and_then(|dim| dim.as_const()).unwrap_or(0);
            let is_far = length.saturating_mul(size) > self.target.cache_bytes[1] as i64;
            let is_room = lines.len() < MOST_BEHIND;
            if is_known
                && is_far
                && is_room
                && lines.insert((buffer, sum.terms, sum.constant.saturating_mul(size) / LINE))
            {
                let address = self.address(place)?;
                self.prefetch(&address, 0)?;
            }
        }
        Ok(())
    }

    /// Nothing of this trip that was prefetched lies in the same `span` of bytes.
    fn begins(&mut self, buffer: Option<NodeId>, address: &Address, span: i64) -> bool {
        let (Some(level), Some(buffer)) = (self.levels.last(), buffer) else { return true };
        let fetched = self.fetched.entry(Row { buffer, around: level.node, bytes: address.row }).or_default();
        let is_new = !fetched.iter().any(|start| (0..span).contains(&(address.start - start)));
        if is_new {
            fetched.push(address.start);
        }
        is_new
    }

    /// A vector from memory, of which the next trip of a long loop reads no neighbour.
    fn leaves_runs(&self, node: NodeId, address: &Address, bytes: u32) -> bool {
        let few = self.trips().is_none_or(|trips| trips < 4 * i128::from(TRIPS_AHEAD));
        let far = address.step.unsigned_abs() >= RUN;
        far && !few && bytes >= LEAST_VECTOR && address.pointer.lanes == 1 && self.users(node) <= 2
    }

    /// The loop has others inside: what it reads itself is seldom, and comes while those work.
    fn is_around_others(&self) -> bool {
        let Some(level) = self.levels.last() else { return false };
        let mut rest = self.graph.sources(self.kernel.linear).iter().skip_while(|&&node| node != level.node).skip(1);
        let bound = |&&node: &&NodeId| matches!(self.graph.op(node), Op::Range | Op::End);
        rest.find(bound).is_some_and(|&node| self.graph.op(node) == Op::Range)
    }

    /// Trips of the innermost loop.
    fn trips(&self) -> Option<i128> {
        self.levels.last().and_then(|level| self.graph.as_int(*self.graph.sources(level.node).first()?))
    }

    /// A loop that reads a row for the second time finds it in the caches: meanwhile the next row can come.
    fn read_next_row(&mut self, node: NodeId, address: &Address, bytes: u32) -> Result<()> {
        let [.., around, inner] = &self.levels[..] else { return Ok(()) };
        let Some(buffer) = self.buffer_read(node).filter(|&buffer| self.graph.op(buffer) == Op::Param) else {
            return Ok(());
        };
        let (by, outside) = (inner.node, around.node);
        let length = self.trips().unwrap_or(0).saturating_mul(address.step.into());
        let is_row = address.step > 0 && length > i128::from(address.row / 2) && length <= address.row.into();
        let first = self.target.cache_bytes[0] as i64;
        // Short vectors take longer over a row, so that a longer one has come in time; the first cache does not hold two of those.
        let is_short = self.target.vector_bytes < LINE as usize;
        let (level, most) = match is_short && address.row > first / 3 {
            true => (Level::Second, first / 2),
            false => (Level::First, first / 3),
        };
        let fits = address.row >= RUN as i64 && address.row <= most;
        let readers = self.rows.entry(Row { buffer, around: outside, bytes: address.row }).or_default();
        if readers.iter().all(|reader| reader.0 != by) {
            readers.push((by, address.start));
        }
        let readers = [readers.first().copied(), readers.get(1).copied()];
        if !is_row || !fits || bytes < LEAST_VECTOR || address.pointer.lanes != 1 {
            return Ok(());
        }
        match readers {
            [Some((_, first)), Some((second, start))] if second == by && self.begins(Some(buffer), address, LINE) => {
                // Where the first loop is some rows ahead it follows at once: what it needs next is on its way then.
                let lead = first.saturating_sub(start);
                let leads = lead > 0 && lead.checked_rem(address.row) == Some(0);
                let ahead = if leads { lead.saturating_add(2 * address.row) } else { address.row };
                self.prefetch_to(level, address, ahead)
            }
            _ => Ok(()),
        }
    }

    /// In how many streams a loop that stores little and takes its time reads a large buffer once, each line after line.
    fn laboured_streams(&mut self, node: NodeId, address: &Address, bytes: u32) -> Option<i64> {
        let graph = self.graph;
        let (level, buffer) = (self.levels.last()?, self.buffer_read(node)?);
        let is_run = address.step > 0 && address.step.unsigned_abs() < RUN && address.pointer.lanes == 1;
        if !is_run || bytes < LEAST_VECTOR || graph.op(buffer) != Op::Param {
            return None;
        }
        if self.bytes(buffer, address) <= self.target.cache_bytes[1] {
            return None;
        }
        let key = (level.node, buffer);
        if let Some(&known) = self.laboured.get(&key) {
            return known;
        }
        let streams = self.streams_of_labour(level.node, buffer, address.step);
        self.laboured.insert(key, streams);
        streams
    }

    /// Bytes of a buffer; 0 where they are not known.
    fn bytes(&self, buffer: NodeId, address: &Address) -> usize {
        let length = self.graph.props(buffer).shape.first().and_then(|dim| dim.as_const()).unwrap_or(0);
        usize::try_from(length).unwrap_or(0).saturating_mul(address.dtype.size())
    }

    fn buffer_read(&self, load: NodeId) -> Option<NodeId> {
        match self.graph.op(load) {
            Op::Load => self.graph.sources(behind_after(self.graph, self.graph.source(load, 0))).first().copied(),
            _ => None,
        }
    }

    /// As many times as a trip goes on, it reads; `None` unless nothing but this loop reads the buffer, and it takes its time and
    /// stores little of what it makes of it.
    fn streams_of_labour(&self, range: NodeId, buffer: NodeId, step: i64) -> Option<i64> {
        let graph = self.graph;
        let instructions = graph.sources(self.kernel.linear);
        let begin = instructions.iter().position(|&it| it == range);
        let end = instructions.iter().position(|&it| graph.op(it) == Op::End && graph.source(it, 1) == range);
        let body = instructions.get(begin? + 1..end?).unwrap_or_default();
        let is_read = |&&it: &&NodeId| self.buffer_read(it) == Some(buffer);
        let reads = body.iter().filter(is_read).count();
        let bytes = |value: NodeId| self.lanes(value).unwrap_or(1) as usize * graph.dtype(value).size();
        let is_memory = |&&it: &&NodeId| graph.op(it) == Op::Store && register(graph, graph.source(it, 0)).is_none();
        let stored: usize = body.iter().filter(is_memory).map(|&it| bytes(graph.source(it, 1))).sum();
        let read: usize = body.iter().filter(is_read).map(|&it| bytes(it)).sum();
        let reduces =
            !body.iter().any(|&it| matches!(graph.op(it), Op::Range | Op::AtomicAdd)) && STORED * stored <= read;
        let computed = body.iter().filter(|&&it| graph.op(it).is_elementwise()).count();
        let streams = (read as i64 + step - 1) / step;
        let [one, several] = LABOUR;
        let labour = if streams > 1 { several } else { one };
        let is_all = instructions.iter().filter(is_read).count() == reads;
        (reduces && is_all && computed >= labour * reads).then_some(streams)
    }

    fn prefetch(&mut self, address: &Address, bytes_ahead: i64) -> Result<()> {
        self.prefetch_to(Level::First, address, bytes_ahead)
    }

    fn prefetch_to(&mut self, level: Level, address: &Address, bytes_ahead: i64) -> Result<()> {
        let ahead = self.emit.int(Kind::I64, 1, bytes_ahead);
        let pointer = self.emit.offset(address.pointer, ahead, Kind::I8)?;
        let levels = match level {
            Level::First => 3,
            Level::Second => 2,
        };
        let [read, levels, data] = [0, levels, 1].map(|number| self.emit.int(Kind::I32, 1, number));
        self.emit.intrinsic("llvm.prefetch", &[(pointer.kind, 1)], &[pointer, read, levels, data], None)?;
        Ok(())
    }

    /// How many instructions use a value.
    fn users(&self, node: NodeId) -> usize {
        let instructions = self.graph.sources(self.kernel.linear);
        instructions.iter().filter(|&&user| self.graph.sources(user).contains(&node)).count()
    }

    /// Is any lane of a gate open?
    fn any(&self, gate: Value) -> Result<Value> {
        self.joined("llvm.vector.reduce.or", gate)
    }

    /// Is a gate open for all lanes? Asked once, where the gate is computed.
    pub(super) fn all(&mut self, gate: NodeId) -> Result<Value> {
        if let Some(placed) = self.whole.get(&gate) {
            return Ok(placed.value);
        }
        let (value, depth) = match self.greatest(gate) {
            Some((bound, number)) => {
                let Placed { value: number, depth } = self.placed(number)?;
                let bound = self.value(bound)?;
                (self.at_depth(depth, |renderer| renderer.emit.compare_ints(LLVMIntSLT, bound, number))?, depth)
            }
            None => {
                let Placed { value, depth } = self.placed(gate)?;
                (self.at_depth(depth, |renderer| renderer.joined("llvm.vector.reduce.and", value))?, depth)
            }
        };
        self.whole.insert(gate, Placed { value, depth });
        Ok(value)
    }

    /// If the lanes of a gate compare one number with constants from above, the largest constant and the number: all lanes are open
    /// exactly if the number exceeds it.
    fn greatest(&self, gate: NodeId) -> Option<(NodeId, NodeId)> {
        let graph = self.graph;
        let (Op::CmpLt, &[bounds, numbers]) = (graph.op(gate), graph.sources(gate)) else { return None };
        let (Op::Stack, Op::Expand, false) = (graph.op(bounds), graph.op(numbers), graph.dtype(bounds).is_unsigned())
        else {
            return None;
        };
        let number = graph.source(numbers, 0);
        let known: Option<Vec<i128>> = graph.sources(bounds).iter().map(|&bound| graph.as_int(bound)).collect();
        let (greatest, _) = known?.into_iter().enumerate().max_by_key(|&(_, bound)| bound)?;
        graph.props(number).shape.is_empty().then_some((graph.source(bounds, greatest), number))
    }

    /// One bool for all lanes of a gate.
    fn joined(&self, name: &str, gate: Value) -> Result<Value> {
        if gate.lanes == 1 {
            return Ok(gate);
        }
        let joined = self.emit.intrinsic(name, &[(Kind::I1, gate.lanes)], &[gate], Some((Kind::I1, 1)))?;
        Ok(joined.unwrap_or(gate))
    }

    /// May the place lie outside of its buffer, where perhaps no memory is, not only now and then, at the ends?
    fn is_far(&self, place: NodeId, lanes: u32) -> bool {
        /// Of the elements, and elements at most.
        const NEAR: (i128, i128) = (16, 1024);
        let Some((base, Some(index))) = base_and_index(self.graph, place) else { return false };
        let length = self.graph.props(base).shape.first().and_then(|length| length.as_const()).map(i128::from);
        match (self.graph.props(index).interval.int(), length) {
            (Some((low, high)), Some(length)) => {
                let near = (length / NEAR.0).min(NEAR.1).max(lanes.into());
                low < -near || high + i128::from(lanes) > length + near
            }
            _ => true,
        }
    }

    fn masked_read(&mut self, name: &str, address: &Address, mask: Value, alt: Value) -> Result<Value> {
        let (kind, lanes) = (alt.kind, alt.lanes);
        let overloads = [(kind, lanes), (address.pointer.kind, address.pointer.lanes)];
        // Until LLVM 21 the alignment was an operand.
        let alignment = self.emit.int(Kind::I32, 1, (kind.bits() / 8).into());
        let arguments = [address.pointer, alignment, mask, alt];
        let arguments = if self.emit.parameters_of(name, &overloads) == 4 {
            arguments.to_vec()
        } else {
            vec![address.pointer, mask, alt]
        };
        let value = self.emit.intrinsic(name, &overloads, &arguments, Some((kind, lanes)))?;
        Ok(value.unwrap_or(alt))
    }

    pub(super) fn store(&mut self, node: NodeId) -> Result<()> {
        let sources = self.graph.sources(node);
        let (place, source) = (sources[0], sources[1]);
        if let Some((slot, buffer)) = register(self.graph, place) {
            let lanes = self.lanes(buffer)?;
            let mut value = self.value_in(source, lanes)?;
            if let Some(gate) = sources.get(2) {
                let gate = self.value(*gate)?;
                let old = self.registers.read(slot).unwrap_or(self.emit.undefined(value.kind, lanes));
                value = self.emit.select(gate, value, old)?;
            }
            self.registers.write(slot, value);
            return Ok(());
        }
        let known = sources.get(2).and_then(|&gate| self.is_open(gate));
        if known == Some(false) {
            return Ok(());
        }
        let address = self.address(place)?;
        let kind = Kind::of(address.dtype);
        let lanes = self.lanes(source)?.max(self.lanes(place)?);
        let value = self.value_in(source, lanes)?;
        let value = self.write_bools(kind, value)?;
        let gate = match sources.get(2).filter(|_| known.is_none()) {
            Some(gate) => Some(self.value(*gate)?),
            None => None,
        };
        if self.is_gpu() {
            return self.store_behind(gate, &address, value);
        }
        match gate {
            Some(gate) if gate.lanes > 1 || address.pointer.lanes > 1 => {
                let gate = self.emit.splat(gate, lanes)?;
                if address.pointer.lanes > 1 || self.target.masked_access {
                    return self.masked_write(&address, gate, value);
                }
                // Where masks are not the processor's own, such a store takes as long as ten whole ones.
                let all = self.all(sources[2])?;
                self.either(
                    all,
                    |renderer| renderer.emit.store(address.pointer, value, address.alignment, false),
                    |renderer| {
                        let any = renderer.any(gate)?;
                        renderer.only_if(any, |renderer| renderer.masked_write(&address, gate, value))
                    },
                )
                .map(drop)
            }
            None if address.pointer.lanes > 1 => {
                let all = self.emit.int(Kind::I1, lanes, 1);
                self.masked_write(&address, all, value)
            }
            Some(gate) => {
                self.only_if(gate, |renderer| renderer.emit.store(address.pointer, value, address.alignment, false))
            }
            None => {
                // The instructions exist for aligned vectors: what is aligned to its half is written in halves.
                let bytes = kind.in_memory().bits() / 8 * lanes;
                let piece = bytes.min(address.alignment);
                let is_whole = bytes.is_power_of_two() && piece >= LEAST_NONTEMPORAL.max(bytes / 2);
                let streams = *self.graph.arg(node) == Arg::Nontemporal && is_whole;
                let buffer = base_and_index(self.graph, place).map(|(buffer, _)| buffer);
                if !(streams && buffer.is_some_and(|buffer| self.fills_lines(buffer))) {
                    return self.emit.store(address.pointer, value, address.alignment, false);
                }
                self.streams = true;
                let lanes_of_piece = lanes / (bytes / piece);
                for first in (0..lanes).step_by(lanes_of_piece as usize) {
                    let mut part = value;
                    if lanes_of_piece < lanes {
                        let places: Vec<u32> = (first..first + lanes_of_piece).collect();
                        part = self.emit.shuffle(value, value, &places)?;
                    }
                    let offset = self.emit.int(Kind::I64, 1, first.into());
                    let pointer = self.emit.offset(address.pointer, offset, kind.in_memory())?;
                    self.emit.store(pointer, part, piece, true)?;
                }
                Ok(())
            }
        }
    }

    fn masked_write(&mut self, address: &Address, mask: Value, value: Value) -> Result<()> {
        let name = if address.pointer.lanes > 1 { "llvm.masked.scatter" } else { "llvm.masked.store" };
        let overloads = [(value.kind, value.lanes), (address.pointer.kind, address.pointer.lanes)];
        let alignment = self.emit.int(Kind::I32, 1, (value.kind.bits() / 8).into());
        let arguments = if self.emit.parameters_of(name, &overloads) == 4 {
            vec![value, address.pointer, alignment, mask]
        } else {
            vec![value, address.pointer, mask]
        };
        self.emit.intrinsic(name, &overloads, &arguments, None).map(drop)
    }

    pub(super) fn only_if(&mut self, gate: Value, effect: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let (then, after) = (self.emit.new_block(), self.emit.new_block());
        self.emit.branch(gate, then, after)?;
        self.emit.enter(then);
        effect(self)?;
        self.emit.jump(after);
        self.emit.enter(after);
        Ok(())
    }

    /// Emits a branch with two arms; returns the result of each arm and the block that it ends in.
    fn either<T>(
        &mut self,
        gate: Value,
        way: impl FnOnce(&mut Self) -> Result<T>,
        other: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<[(T, Block); 2]> {
        let (then, otherwise, after) = (self.emit.new_block(), self.emit.new_block(), self.emit.new_block());
        self.emit.branch(gate, then, otherwise)?;
        self.emit.enter(then);
        let first = (way(self)?, self.emit.block());
        self.emit.jump(after);
        self.emit.enter(otherwise);
        let second = (other(self)?, self.emit.block());
        self.emit.jump(after);
        self.emit.enter(after);
        Ok([first, second])
    }

    /// A bool is a byte in memory, and one bit in registers.
    fn read_bools(&self, kind: Kind, value: Value) -> Result<Value> {
        if kind != Kind::I1 {
            return Ok(value);
        }
        let zero = self.emit.int(Kind::I8, value.lanes, 0);
        self.emit.compare_ints(LLVMIntNE, value, zero)
    }

    pub(super) fn write_bools(&self, kind: Kind, value: Value) -> Result<Value> {
        if kind == Kind::I1 { self.emit.convert(LLVMZExt, value, Kind::I8) } else { Ok(value) }
    }
}
