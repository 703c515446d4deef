//! Blocks that loops copy into LOCAL memory before they work on them, or that they read again and again where they lie:
//! while they work on one, the next is fetched. Memory and arithmetic then overlap, which no processor does by itself over
//! so many instructions.

use super::Renderer;
use super::control::trips_of;
use super::emit::{Kind, Result, Value};
use llvm_sys::LLVMIntPredicate::LLVMIntSLT;
use llvm_sys::LLVMOpcode::{LLVMAdd, LLVMLShr, LLVMMul, LLVMUDiv, LLVMURem};
use rustc_hash::FxHashMap;
use tinyspec_ir::address::{Sum, behind_after, in_param};
use tinyspec_ir::{AddrSpace, Arg, Builder, Graph, NodeId, Op};

const LINE: i64 = 64;
/// Lines that are fetched at once: the processor waits for no more.
const AT_ONCE: i64 = 8;
/// Instructions of work for each line, at least; less work than that overlaps by itself.
const WORK: i64 = 8;
/// Trips for each line, at most, where the work waits for it.
const SELDOM: i64 = 8;
/// So many rows are more than the processor reads ahead in.
const LEAST_ROWS: usize = 4;
/// Digits behind the point of the number of lines a trip.
const FRACTION: i64 = 20;

/// What the next trip of a loop copies, or reads more than once.
pub(super) struct Ahead {
    buffer: NodeId,
    /// Where the block begins, in elements.
    start: Sum,
    /// Bytes from one run of lines to the next, and how many there are, the innermost first.
    rows: Vec<(i64, i64)>,
    /// Lines of a run.
    run: i64,
    /// Number of loops around the copy, and around the loop that fetches.
    around: usize,
    /// No cache holds the whole buffer.
    is_far: bool,
    /// Does the first cache hold it, beside this trip's?
    is_small: bool,
    /// The work itself waits for it, not a copy before.
    is_awaited: bool,
}

impl Ahead {
    fn lines(&self) -> i64 {
        self.rows.iter().fold(self.run, |lines, row| lines.saturating_mul(row.1))
    }
}

/// What of a loop's reads is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    All,
    /// What each of its trips reads again.
    Again,
    /// Rows side by side, element by element.
    Rows,
}

/// A loop of the kernel.
struct Loop {
    range: NodeId,
    parent: Option<usize>,
    trips: Option<i64>,
    /// Instructions directly inside.
    body: Vec<NodeId>,
    children: Vec<usize>,
}

fn loops(graph: &Graph, instructions: &[NodeId]) -> Vec<Loop> {
    let mut loops: Vec<Loop> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for &node in instructions {
        match graph.op(node) {
            Op::Range => {
                let trips = trips_of(graph, node);
                let (number, parent) = (loops.len(), open.last().copied());
                if let Some(parent) = parent {
                    loops[parent].children.push(number);
                }
                loops.push(Loop { range: node, parent, trips, body: Vec::new(), children: Vec::new() });
                open.push(number);
            }
            Op::End => drop(open.pop()),
            _ => {
                if let Some(&inside) = open.last() {
                    loops[inside].body.push(node);
                }
            }
        }
    }
    loops
}

impl Renderer<'_, '_> {
    /// What to fetch, by the loop in which.
    pub(super) fn blocks_ahead(&self, instructions: &[NodeId]) -> FxHashMap<NodeId, Vec<Ahead>> {
        let mut ahead: FxHashMap<NodeId, Vec<Ahead>> = FxHashMap::default();
        // Trips are counted by loops alone: none may stand in a condition.
        let mut conditions = 0;
        for &node in instructions {
            match self.graph.op(node) {
                Op::If => conditions += 1,
                Op::Endif => conditions -= 1,
                Op::Range if conditions > 0 => return ahead,
                _ => {}
            }
        }
        let loops = loops(self.graph, instructions);
        for (number, copy) in loops.iter().enumerate() {
            let Some(parent) = copy.parent else { continue };
            if self.is_copy(&loops, parent) {
                continue;
            }
            if !self.is_copy(&loops, number) {
                self.blocks_in_place(&loops, number, &mut ahead);
                continue;
            }
            let siblings = loops[parent].children.iter().copied();
            let work = siblings.filter(|&sibling| sibling > number && !self.is_copy(&loops, sibling));
            let Some(chain) = work.map(|work| hottest(&loops, work)).max_by_key(|chain| chain.1) else { continue };
            for block in self.blocks(&loops, number, What::All) {
                if let Some(range) = place(&loops, &chain.0, &block) {
                    ahead.entry(range).or_default().push(block);
                }
            }
        }
        ahead
    }

    /// What every trip of a loop reads again; of an innermost one, the rows that it walks along side by side: they are
    /// too many, and too short, for the processor to read ahead in each.
    fn blocks_in_place(&self, loops: &[Loop], number: usize, ahead: &mut FxHashMap<NodeId, Vec<Ahead>>) {
        let is_innermost = loops[number].children.is_empty();
        let chain = hottest(loops, number);
        let what = if is_innermost { What::Rows } else { What::Again };
        for block in self.blocks(loops, number, what) {
            if let Some(range) = place(loops, &chain.0, &block) {
                ahead.entry(range).or_default().push(block);
            }
        }
    }

    /// Does the loop copy to LOCAL memory, and do nothing else? Numbers that it would compute take time of their own.
    fn is_copy(&self, loops: &[Loop], number: usize) -> bool {
        let mut open = vec![number];
        let mut writes = false;
        while let Some(number) = open.pop() {
            open.extend(&loops[number].children);
            for &node in &loops[number].body {
                match self.graph.op(node) {
                    Op::Store if self.is_local(self.graph.source(node, 0)) => writes = true,
                    Op::Cast | Op::Where => {}
                    op if op.has_effect() || op.is_elementwise() && self.graph.dtype(node).is_float() => return false,
                    _ => {}
                }
            }
        }
        writes
    }

    fn is_local(&self, place: NodeId) -> bool {
        let place = behind_after(self.graph, place);
        let base = self.graph.sources(place).first().map_or(place, |&base| behind_after(self.graph, base));
        matches!(self.graph.arg(base), Arg::Buffer { addrspace: AddrSpace::Local, .. })
    }

    /// What a loop reads of buffers that are far away, where it moves on with the loop around.
    fn blocks(&self, loops: &[Loop], copy: usize, what: What) -> Vec<Ahead> {
        let mut around: Vec<NodeId> = Vec::new();
        let mut outer = loops[copy].parent;
        while let Some(number) = outer {
            around.push(loops[number].range);
            outer = loops[number].parent;
        }
        let (mut open, mut blocks) = (vec![copy], Vec::<Ahead>::new());
        let mut inside: Vec<(NodeId, i64)> = Vec::new();
        while let Some(number) = open.pop() {
            let Some(trips) = loops[number].trips else { return Vec::new() };
            inside.push((loops[number].range, trips));
            open.extend(&loops[number].children);
        }
        let numbers = std::iter::once(copy).chain((copy + 1..loops.len()).take_while(|&number| {
            let mut outer = loops[number].parent;
            while outer.is_some_and(|outer| outer > copy) {
                outer = outer.and_then(|outer| loops[outer].parent);
            }
            outer == Some(copy)
        }));
        let loads = numbers.flat_map(|number| &loops[number].body).copied();
        let own = |sum: &Sum| sum.terms.iter().find(|term| term.0 == loops[copy].range).map_or(0, |term| term.1);
        let is_meant = |(_, sum, lanes): &(NodeId, Sum, i64)| match what {
            What::All => true,
            What::Again => own(sum) == 0,
            What::Rows => own(sum) == 1 && *lanes == 1,
        };
        let loads: Vec<_> = loads.filter_map(|node| self.read(node)).filter(is_meant).collect();
        for (position, (buffer, sum, lanes)) in loads.iter().enumerate() {
            let is_other = |other: &(NodeId, Sum, i64)| other.0 != *buffer;
            if loads[..position].iter().all(is_other) {
                let same = loads.iter().filter(|other| !is_other(other) && other.1.terms == sum.terms);
                let constants: Vec<i64> = same.map(|other| other.1.constant).collect();
                if what == What::Rows && (constants.len() < LEAST_ROWS || !self.is_crowded(*buffer)) {
                    continue;
                }
                let block = self.block(*buffer, &sum.terms, constants, *lanes, &around, &inside);
                blocks.extend(block.map(|block| Ahead { is_awaited: what != What::All, ..block }));
            }
        }
        blocks
    }

    /// The last cache hardly holds the buffer beside others.
    fn is_crowded(&self, buffer: NodeId) -> bool {
        let length = self.graph.props(buffer).shape.first().and_then(|dim| dim.as_const());
        let bytes = length.map_or(0, |length| length.saturating_mul(self.graph.dtype(buffer).size() as i64));
        bytes > self.target.cache_bytes[2] as i64 / 4
    }

    /// The buffer that a Load reads, where, and how many elements.
    fn read(&self, load: NodeId) -> Option<(NodeId, Sum, i64)> {
        if self.graph.op(load) != Op::Load {
            return None;
        }
        let (buffer, sum) = in_param(self.graph, self.graph.source(load, 0))?;
        Some((buffer, sum.where_all_hold(self.graph), i64::from(self.lanes(load).ok()?)))
    }

    fn block(
        &self,
        buffer: NodeId,
        terms: &[(NodeId, i64)],
        mut constants: Vec<i64>,
        lanes: i64,
        around: &[NodeId],
        inside: &[(NodeId, i64)],
    ) -> Option<Ahead> {
        let length = self.graph.props(buffer).shape.first()?.as_const()?;
        let size = self.graph.dtype(buffer).size() as i64;
        let [first, second, last] = self.target.cache_bytes.map(|bytes| bytes as i64);
        if length.saturating_mul(size) <= second {
            return None;
        }
        constants.sort_unstable();
        constants.dedup();
        let mut steps: Vec<(i64, i64)> = vec![(size, lanes)];
        // Unrolled copies lie side by side.
        if let [one, other, ..] = constants[..] {
            steps.push(((other - one).checked_mul(size)?, constants.len() as i64));
        }
        let mut start = Sum { terms: Vec::new(), constant: *constants.first()? };
        for &(node, factor) in terms {
            match inside.iter().find(|range| range.0 == node) {
                Some(&(_, trips)) if factor > 0 => steps.push((factor.checked_mul(size)?, trips)),
                None if around.contains(&node) => start.terms.push((node, factor)),
                _ => return None,
            }
        }
        let moves = start.terms.iter().any(|term| Some(&term.0) == around.first());
        steps.sort_unstable();
        // Steps within what the smaller ones reach make it longer, others repeat it.
        let (mut reach, mut rows) = (size, Vec::<(i64, i64)>::new());
        for (step, trips) in steps {
            match rows.last_mut() {
                Some(last) if step <= last.0.saturating_mul(last.1) && step % last.0 == 0 => {
                    last.1 = last.1.max(step / last.0 * (trips - 1) + last.1);
                }
                None if step <= reach => reach = reach.checked_add(step.checked_mul(trips - 1)?)?,
                _ => rows.push((step, trips)),
            }
        }
        let aligned = rows.iter().all(|row| row.0 % LINE == 0)
            && start.terms.iter().all(|term| term.1 * size % LINE == 0)
            && start.constant * size % LINE == 0;
        let run = (reach + LINE - 1) / LINE + i64::from(!aligned && !rows.is_empty());
        let is_far = length.saturating_mul(size) > last / 2;
        let block =
            Ahead { buffer, start, rows, run, around: around.len(), is_far, is_small: false, is_awaited: false };
        let bytes = block.lines().saturating_mul(LINE);
        let fits = bytes <= second / 2 && block.lines() > AT_ONCE;
        (moves && fits).then_some(Ahead { is_small: bytes <= first / 3, ..block })
    }

    /// Fetches a part of each block that goes with the loop that was just opened.
    pub(super) fn fetch_ahead(&mut self, range: NodeId) -> Result<()> {
        let Some(blocks) = self.ahead.remove(&range) else { return Ok(()) };
        for block in &blocks {
            self.fetch(block)?;
        }
        self.ahead.insert(range, blocks);
        Ok(())
    }

    fn fetch(&mut self, block: &Ahead) -> Result<()> {
        let start = self.at_depth(block.around, |renderer| renderer.next_block(block))?;
        // How many trips there were since the copy, and will have been.
        let (mut total, mut trips) = (1i64, Vec::new());
        for level in self.levels[block.around..].iter().rev() {
            trips.push((level.node, level.step(), total));
            let own = trips_of(self.graph, level.node).unwrap_or(1);
            total *= own / level.step();
        }
        let mut trip: Option<Value> = None;
        for &(range, step, factor) in trips.iter().rev() {
            let mut index = self.wide(range)?.value;
            if step > 1 {
                index = self.emit.binary(LLVMUDiv, index, self.emit.int(Kind::I64, 1, step))?;
            }
            let factor = self.emit.int(Kind::I64, 1, factor);
            let term = self.emit.binary(LLVMMul, index, factor)?;
            trip = Some(match trip {
                Some(trip) => self.emit.binary(LLVMAdd, trip, term)?,
                None => term,
            });
        }
        let Some(trip) = trip else { return Ok(()) };
        let lines = block.lines();
        let at_once = (lines + total - 1) / total;
        let number = |renderer: &Self, number: i64| renderer.emit.int(Kind::I64, 1, number);
        let first = if at_once > 1 {
            self.emit.binary(LLVMMul, trip, number(self, at_once))?
        } else {
            let rate = number(self, (lines << FRACTION) / total + 1);
            let scaled = self.emit.binary(LLVMMul, trip, rate)?;
            self.emit.binary(LLVMLShr, scaled, number(self, FRACTION))?
        };
        for further in 0..at_once {
            let mut line = self.emit.binary(LLVMAdd, first, number(self, further))?;
            let mut offset = None;
            let dims = std::iter::once((LINE, block.run)).chain(block.rows.iter().copied());
            let count = block.rows.len();
            for (position, (step, extent)) in dims.enumerate() {
                let mut at = line;
                if position < count {
                    at = self.emit.binary(LLVMURem, line, number(self, extent))?;
                    line = self.emit.binary(LLVMUDiv, line, number(self, extent))?;
                }
                let bytes = self.emit.binary(LLVMMul, at, number(self, step))?;
                offset = Some(match offset {
                    Some(offset) => self.emit.binary(LLVMAdd, offset, bytes)?,
                    None => bytes,
                });
            }
            let Some(offset) = offset else { continue };
            let pointer = self.emit.offset(start, offset, Kind::I8)?;
            let caches = if block.is_small { 3 } else { 2 };
            let [read, caches, data] = [0, caches, 1].map(|number| self.emit.int(Kind::I32, 1, number));
            self.emit.intrinsic("llvm.prefetch", &[(pointer.kind, 1)], &[pointer, read, caches, data], None)?;
        }
        Ok(())
    }

    /// Where the copy of the next trip begins: at the end of a loop, that of the next trip of the loop around it.
    fn next_block(&mut self, block: &Ahead) -> Result<Value> {
        let size = Kind::of(self.graph.dtype(block.buffer)).in_memory();
        let number = |renderer: &Self, number: i64| renderer.emit.int(Kind::I64, 1, number);
        let mut index = number(self, block.start.constant);
        let mut further: Option<Value> = None;
        let ranges: Vec<NodeId> = self.levels[..block.around].iter().map(|level| level.node).collect();
        for range in ranges {
            let step = block.start.terms.iter().find(|term| term.0 == range).map_or(0, |term| term.1);
            let trip = self.wide(range)?.value;
            let at = self.emit.binary(LLVMMul, trip, number(self, step))?;
            index = self.emit.binary(LLVMAdd, index, at)?;
            let trips = trips_of(self.graph, range);
            let one = number(self, step);
            further = Some(match (further, trips) {
                (Some(outer), Some(trips)) => {
                    let next = self.emit.binary(LLVMAdd, trip, number(self, 1))?;
                    let goes_on = self.emit.compare_ints(LLVMIntSLT, next, number(self, trips))?;
                    let back = number(self, step.wrapping_mul(1 - trips));
                    let outer = self.emit.binary(LLVMAdd, outer, back)?;
                    self.emit.select(goes_on, one, outer)?
                }
                _ => one,
            });
        }
        if let Some(further) = further {
            index = self.emit.binary(LLVMAdd, index, further)?;
        }
        let base = self.base(block.buffer)?;
        self.emit.offset(base, index, size)
    }
}

/// The loops from `number` down to the one that runs most often, and how often that is.
fn hottest(loops: &[Loop], number: usize) -> (Vec<usize>, i64) {
    let Some(trips) = loops[number].trips else { return (Vec::new(), 0) };
    let below = loops[number].children.iter().map(|&child| hottest(loops, child)).max_by_key(|chain| chain.1);
    let (mut chain, times) = below.filter(|below| below.1 > 0).unwrap_or((Vec::new(), 1));
    chain.insert(0, number);
    (chain, trips.saturating_mul(times))
}

/// The outermost loop of a chain that fetches the block in small parts, if there is work enough for all of them. Where
/// most trips have nothing to fetch, it costs them more than what a cache would take longer.
fn place(loops: &[Loop], chain: &[usize], block: &Ahead) -> Option<NodeId> {
    let lines = block.lines();
    let (mut total, mut found, mut work) = (1i64, None, 0i64);
    for &number in chain {
        total = total.saturating_mul(loops[number].trips?);
        if found.is_none() && total.saturating_mul(AT_ONCE) >= lines {
            found = Some((loops[number].range, total));
        }
        work = work.saturating_add(total.saturating_mul(loops[number].body.len() as i64));
    }
    let (range, trips) = found?;
    let seldom = if block.is_awaited { SELDOM } else { 1 };
    ((block.is_far || trips <= lines.saturating_mul(seldom)) && work >= lines.saturating_mul(WORK)).then_some(range)
}
