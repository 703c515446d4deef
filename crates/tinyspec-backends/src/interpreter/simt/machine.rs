//! Executes resolved kernels, each instruction for all threads of a workgroup.

use super::super::linear::instruction::{Bound, Code, Instruction, Register, Space};
use super::races::{Marks, Moment};
use super::threads::{Frame, Threads};
use crate::host_memory::{self, HostMemory};
use crate::{BackendError, Grid};
use smallvec::SmallVec;
use std::ops::Range;
use tinyspec_ir::eval::eval_lanes;
use tinyspec_ir::special::SpecialIndex;

pub(super) struct Machine<'a> {
    pub code: &'a Code,
    grid: Grid,
    /// Threads of a workgroup.
    pub size: usize,
    /// Each lane of the code's file, for every thread.
    pub file: Vec<u64>,
    pub params: &'a [*mut u8],
    pub bound: Bound,
    /// Access records of the Params that are written.
    pub marks: Vec<Option<Marks>>,
    pub local: HostMemory,
    pub local_marks: Marks,
    pub group: u32,
    pub phase: u32,
    threads: Threads,
    frames: Vec<Frame>,
}

/// Runs all workgroups of a launch.
///
/// # Safety
/// `params` must be valid for the sizes that the kernel's Params declare, and not be used elsewhere during the call.
pub(super) unsafe fn run(code: &Code, params: &[*mut u8], grid: Grid, trips: Range<usize>) -> Result<(), BackendError> {
    if params.len() < code.params {
        return Err(code.failure(format!("it has {} buffers, {} were given", code.params, params.len())));
    }
    let size = grid.size();
    let groups = u32::try_from(grid.count()).ok().filter(|&groups| groups < u32::MAX);
    let (Some(groups), Some(lanes)) = (groups, (code.lanes as usize).checked_mul(size)) else {
        return Err(code.failure("it has more workgroups or threads than can be counted"));
    };
    if size == 0 {
        return Ok(());
    }
    let local = HostMemory::new(code.scratch_bytes)?;
    // SAFETY: as the caller promises.
    let bound = unsafe { code.bind(params) };
    let mut machine = Machine {
        code,
        grid,
        size,
        file: vec![0; lanes],
        params,
        marks: write_marks(code, &bound),
        bound,
        local,
        local_marks: Marks::new(code.scratch_bytes, true),
        group: 0,
        phase: 0,
        threads: Threads::all(size),
        frames: Vec::new(),
    };
    for &(lane, bits) in &code.constants {
        let start = lane as usize * size;
        machine.file[start..start + size].fill(bits);
    }
    for position in 0..machine.bound.lanes.len() {
        let (lane, value) = machine.bound.lanes[position];
        let start = lane as usize * size;
        machine.file[start..start + size].fill(value);
    }
    for group in 0..groups {
        machine.group = group;
        machine.phase = 0;
        // LOCAL memory is poisoned: nan in floats, -1 in integers.
        host_memory::write(&machine.local, &vec![0xff; code.scratch_bytes])?;
        let mut position = 0;
        while let Some(instruction) = code.instructions.get(position) {
            position = machine.step(instruction, position, &trips)?;
        }
        // A condition may extend to the end.
        machine.threads = Threads::all(size);
        machine.frames.clear();
    }
    Ok(())
}

/// Access records for every Param that some instruction writes.
fn write_marks(code: &Code, bound: &Bound) -> Vec<Option<Marks>> {
    let mut marks: Vec<Option<Marks>> = (0..code.params).map(|_| None).collect();
    for instruction in &code.instructions {
        if let Instruction::Store { address, .. } | Instruction::Accumulate { address, .. } = instruction
            && let Space::Param(slot) = address.space
            && let Some(marks) = marks.get_mut(slot as usize)
        {
            *marks = Some(Marks::new(bound.length(address.length), false));
        }
    }
    marks
}

impl Machine<'_> {
    /// Executes one instruction; returns the position of the next one.
    fn step(
        &mut self,
        instruction: &Instruction,
        position: usize,
        trips: &Range<usize>,
    ) -> Result<usize, BackendError> {
        while let Some(Frame::If(_, exit)) = self.frames.last()
            && *exit == position
        {
            if let Some(Frame::If(threads, _)) = self.frames.pop() {
                self.threads = threads;
            }
        }
        match instruction {
            Instruction::Compute { op, operand, dtype, sources, count, target } => {
                let (before, target) = self.split(*target);
                let size = before.1;
                let sources: SmallVec<[&[u64]; 3]> =
                    sources[..*count as usize].iter().map(|source| &before.0[lanes(*source, size)]).collect();
                eval_lanes(*op, *operand, *dtype, &sources, target)?;
            }
            Instruction::Single { instruction, sources, count, target } => {
                let of = |lane: u64| f64::from_bits(lane) as f32;
                for offset in 0..target.lanes as usize * self.size {
                    let value = |source: &Register| of(self.file[source.start as usize * self.size + offset]);
                    let values: SmallVec<[f32; 2]> = sources[..*count as usize].iter().map(value).collect();
                    let value = instruction.eval(&values).unwrap_or(f32::NAN);
                    self.file[target.start as usize * self.size + offset] = f64::from(value).to_bits();
                }
            }
            Instruction::Join { source, bytes, target } => {
                let count = source.lanes / target.lanes.max(1);
                for lane in 0..target.lanes {
                    for thread in 0..self.size {
                        let parts = (0..count).rev().map(|part| self.lane(*source, lane * count + part, thread));
                        let word = parts.fold(0, |word, part| word << (8 * bytes) | part);
                        let to = self.at(*target, lane, thread);
                        self.file[to] = word;
                    }
                }
            }
            Instruction::Splat { source, target } => {
                for lane in 0..target.lanes {
                    let to = self.at(*target, lane, 0);
                    let from = Register { lanes: 1, ..*source };
                    self.file.copy_within(lanes(from, self.size), to);
                }
            }
            Instruction::Concatenate { sources, target } => {
                let mut start = target.start as usize * self.size;
                for source in sources {
                    let from = lanes(*source, self.size);
                    let count = from.len();
                    self.file.copy_within(from, start);
                    start += count;
                }
            }
            Instruction::Extract { source, index, target } => {
                for lane in 0..target.lanes {
                    for thread in 0..self.size {
                        let from = self.lane(*index, lane, thread);
                        if from >= source.lanes as u64 {
                            if !self.takes(thread) {
                                continue;
                            }
                            let reason = format!("takes lane {} of {}", from as i64, source.lanes);
                            return Err(self.code.failure(reason));
                        }
                        let to = self.at(*target, lane, thread);
                        self.file[to] = self.lane(*source, from as u32, thread);
                    }
                }
            }
            Instruction::Horizontal { op, dtype, source, target } => {
                let mut total = self.file[lanes(Register { lanes: 1, ..*source }, self.size)].to_vec();
                for lane in 1..source.lanes {
                    let start = self.at(*source, lane, 0);
                    let before = total.clone();
                    let sources = [&before[..], &self.file[start..start + self.size]];
                    eval_lanes(*op, *dtype, *dtype, &sources, &mut total)?;
                }
                let to = self.at(*target, 0, 0);
                self.file[to..to + self.size].copy_from_slice(&total);
            }
            // A register keeps its value for inactive threads.
            Instruction::Move { source, gate, target } => match gate {
                None if self.threads.are_all() => {
                    self.file.copy_within(lanes(*source, self.size), target.start as usize * self.size);
                }
                _ => {
                    for lane in 0..target.lanes {
                        for thread in 0..self.size {
                            if self.takes(thread) && self.is_open(*gate, lane, thread) {
                                let to = self.at(*target, lane, thread);
                                self.file[to] = self.lane(*source, lane, thread);
                            }
                        }
                    }
                }
            },
            Instruction::Load { address, alternative, gate, target } => {
                self.load(address, *alternative, *gate, *target)?;
            }
            Instruction::Store { address, source, gate } => self.store(address, *source, *gate)?,
            Instruction::Accumulate { address, source, gate } => self.accumulate(address, *source, *gate)?,
            Instruction::Loop { bound, is_shared, counter, limit, exit, .. } => {
                for thread in 0..self.size {
                    let (first, end) = match is_shared {
                        true => (trips.start as i64, trips.end as i64),
                        false => (0, self.lane(*bound, 0, thread) as i64),
                    };
                    if self.takes(thread) {
                        let (counter, limit) = (self.at(*counter, 0, thread), self.at(*limit, 0, thread));
                        (self.file[counter], self.file[limit]) = (first as u64, end as u64);
                    }
                }
                let inside = self.below(*counter, *limit);
                if inside.is_empty() {
                    return Ok(*exit);
                }
                self.frames.push(Frame::Loop(std::mem::replace(&mut self.threads, inside)));
            }
            Instruction::Next { counter, limit, start } => {
                for thread in 0..self.size {
                    if self.takes(thread) {
                        let counter = self.at(*counter, 0, thread);
                        self.file[counter] = self.file[counter].wrapping_add(1);
                    }
                }
                let again = self.below(*counter, *limit);
                if !again.is_empty() {
                    self.threads = again;
                    return Ok(start + 1);
                }
                if let Some(Frame::Loop(threads)) = self.frames.pop() {
                    self.threads = threads;
                }
            }
            Instruction::If { gate, exit } => {
                let inside = self.threads.filter(|thread| self.lane(*gate, 0, thread) != 0);
                if inside.is_empty() {
                    return Ok(*exit);
                }
                self.frames.push(Frame::If(std::mem::replace(&mut self.threads, inside), *exit));
            }
            Instruction::Special { index, target } => {
                for thread in 0..self.size {
                    let to = self.at(*target, 0, thread);
                    self.file[to] = self.special(*index, thread) as u64;
                }
            }
            Instruction::Barrier => {
                if let Some((here, elsewhere)) = self.threads.divergent() {
                    let who = |thread: usize| {
                        self.who(Moment { group: self.group, thread: thread as u32, phase: self.phase })
                    };
                    let reason = format!("{} waits at a Barrier that {} does not reach", who(here), who(elsewhere));
                    return Err(BackendError::Divergence { name: self.code.name.clone(), reason });
                }
                self.phase += 1;
            }
        }
        Ok(position + 1)
    }

    /// The threads whose counter has not reached its limit.
    fn below(&self, counter: Register, limit: Register) -> Threads {
        self.threads.filter(|thread| (self.lane(counter, 0, thread) as i64) < self.lane(limit, 0, thread) as i64)
    }

    fn special(&self, index: SpecialIndex, thread: usize) -> usize {
        let (mut number, sizes, dimension) = match index {
            SpecialIndex::Group(dimension) => (self.group as usize, self.grid.groups, dimension),
            SpecialIndex::Thread(dimension) => (thread, self.grid.threads, dimension),
        };
        for &size in &sizes[..dimension] {
            number /= size;
        }
        number % sizes[dimension]
    }

    /// Describes a thread, for messages.
    pub(super) fn who(&self, moment: Moment) -> String {
        let place = |number: u32, sizes: [usize; 3]| {
            let number = number as usize;
            let at = [number % sizes[0], number / sizes[0] % sizes[1], number / sizes[0] / sizes[1]];
            let used = (0..3).rev().find(|&dimension| sizes[dimension] > 1).unwrap_or(0);
            at[..=used].iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
        };
        let (thread, group) = (place(moment.thread, self.grid.threads), place(moment.group, self.grid.groups));
        format!("thread ({thread}) of workgroup ({group})")
    }

    /// Splits the file into the part before a target, with the size of a lane, and the target.
    fn split(&mut self, target: Register) -> ((&[u64], usize), &mut [u64]) {
        let size = self.size;
        let (before, behind) = self.file.split_at_mut(target.start as usize * size);
        ((before, size), &mut behind[..target.lanes as usize * size])
    }

    pub(super) fn takes(&self, thread: usize) -> bool {
        self.threads.take(thread)
    }

    /// The position of a thread's lane in the file.
    pub(super) fn at(&self, register: Register, lane: u32, thread: usize) -> usize {
        (register.start + lane) as usize * self.size + thread
    }

    /// A thread's lane; of a register with one lane, that one.
    pub(super) fn lane(&self, register: Register, lane: u32, thread: usize) -> u64 {
        let lane = if register.lanes == 1 { 0 } else { lane };
        self.file[self.at(register, lane, thread)]
    }

    pub(super) fn is_open(&self, gate: Option<Register>, lane: u32, thread: usize) -> bool {
        gate.is_none_or(|gate| self.lane(gate, lane, thread) != 0)
    }
}

/// The positions of a register's lanes in the file.
fn lanes(register: Register, size: usize) -> Range<usize> {
    let range = register.range();
    range.start * size..range.end * size
}
