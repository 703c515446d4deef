//! Executes resolved kernels.

use super::instruction::{Address, Bound, Code, Instruction, Register, Space};
use super::memory::View;
use super::races::{Parallel, Touch, Watch};
use crate::BackendError;
use crate::Memory;
use crate::host_memory::{self, HostMemory};
use smallvec::SmallVec;
use std::ops::Range;
use tinyspec_ir::Op;
use tinyspec_ir::eval::eval_lanes;

struct Machine<'a> {
    code: &'a Code,
    file: Vec<u64>,
    params: &'a [*mut u8],
    bound: Bound,
    scratch: HostMemory,
    watch: Option<Watch>,
}

/// Runs these trips of a kernel's THREAD Range.
///
/// # Safety
/// `params` must be valid for the sizes that the kernel's Params declare, and not be used elsewhere during the call.
pub(super) unsafe fn run(code: &Code, params: &[*mut u8], trips: Range<usize>) -> Result<(), BackendError> {
    if params.len() < code.params {
        return Err(code.failure(format!("it has {} buffers, {} were given", code.params, params.len())));
    }
    let mut file = vec![0; code.lanes as usize];
    for &(lane, bits) in &code.constants {
        file[lane as usize] = bits;
    }
    // SAFETY: as the caller promises.
    let bound = unsafe { code.bind(params) };
    for &(lane, value) in &bound.lanes {
        file[lane as usize] = value;
    }
    let watch = code.hand_written.is_some().then(Watch::default);
    // Scratch is poisoned: nan in floats, -1 in integers.
    let scratch = HostMemory::new(code.scratch_bytes)?;
    host_memory::write(&scratch, &vec![0xff; code.scratch_bytes])?;
    let mut machine = Machine { code, file, params, bound, scratch, watch };
    let mut position = 0;
    while let Some(instruction) = code.instructions.get(position) {
        position = machine.step(instruction, position, &trips)?;
    }
    Ok(())
}

impl Machine<'_> {
    /// Executes one instruction; returns the position of the next one.
    fn step(
        &mut self,
        instruction: &Instruction,
        position: usize,
        trips: &Range<usize>,
    ) -> Result<usize, BackendError> {
        match instruction {
            Instruction::Compute { op, operand, dtype, sources, count, target } => {
                let (sources_file, target) = self.split(*target);
                let sources: SmallVec<[&[u64]; 3]> =
                    sources[..*count as usize].iter().map(|source| &sources_file[source.range()]).collect();
                eval_lanes(*op, *operand, *dtype, &sources, target)?;
            }
            Instruction::Single { instruction, sources, count, target } => {
                let of = |lane: u64| f64::from_bits(lane) as f32;
                for lane in 0..target.lanes {
                    let values: SmallVec<[f32; 2]> = sources[..*count as usize]
                        .iter()
                        .map(|source| of(self.file[(source.start + lane) as usize]))
                        .collect();
                    let value = instruction.eval(&values).unwrap_or(f32::NAN);
                    self.file[(target.start + lane) as usize] = f64::from(value).to_bits();
                }
            }
            Instruction::Join { source, bytes, target } => {
                let count = (source.lanes / target.lanes.max(1)) as usize;
                for lane in 0..target.lanes as usize {
                    let first = source.start as usize + lane * count;
                    let parts = self.file[first..first + count].iter().rev();
                    self.file[target.start as usize + lane] = parts.fold(0, |word, part| word << (8 * bytes) | part);
                }
            }
            Instruction::Splat { source, target } => {
                let value = self.scalar(*source);
                self.file[target.range()].fill(value);
            }
            Instruction::Concatenate { sources, target } => {
                let mut start = target.start as usize;
                for source in sources {
                    self.file.copy_within(source.range(), start);
                    start += source.lanes as usize;
                }
            }
            Instruction::Extract { source, index, target } => {
                for lane in 0..target.lanes {
                    let from = self.file[(index.start + lane) as usize];
                    if from >= source.lanes as u64 {
                        return Err(self.code.failure(format!("takes lane {} of {}", from as i64, source.lanes)));
                    }
                    self.file[(target.start + lane) as usize] = self.file[source.start as usize + from as usize];
                }
            }
            Instruction::Horizontal { op, dtype, source, target } => {
                let mut total = self.scalar(*source);
                for lane in source.range().skip(1) {
                    let pair = [total, self.file[lane]];
                    let sources = [&pair[..1], &pair[1..]];
                    eval_lanes(*op, *dtype, *dtype, &sources, std::slice::from_mut(&mut total))?;
                }
                self.file[target.start as usize] = total;
            }
            Instruction::Move { source, gate, target } => match gate {
                None => self.file.copy_within(source.range(), target.start as usize),
                Some(gate) => {
                    for lane in 0..target.lanes {
                        if self.is_open(Some(*gate), lane) {
                            self.file[(target.start + lane) as usize] = self.file[(source.start + lane) as usize];
                        }
                    }
                }
            },
            Instruction::Load { address, alternative, gate, target } => {
                self.load(address, *alternative, *gate, *target)?;
            }
            Instruction::Store { address, source, gate } => self.store(address, *source, *gate)?,
            Instruction::Accumulate { address, source, gate } => self.accumulate(address, *source, *gate)?,
            Instruction::Loop { bound, is_shared, parallel, counter, limit, exit } => {
                let (first, end) = match is_shared {
                    true => (trips.start as i64, trips.end as i64),
                    false => (0, self.scalar(*bound) as i64),
                };
                self.file[limit.start as usize] = end as u64;
                self.file[counter.start as usize] = first as u64;
                if end <= first {
                    return Ok(*exit);
                }
                if let Some(watch) = &mut self.watch {
                    watch.enter(*parallel);
                }
            }
            Instruction::Next { counter, limit, start } => {
                let next = self.scalar(*counter) as i64 + 1;
                self.file[counter.start as usize] = next as u64;
                let again = next < self.scalar(*limit) as i64;
                if let Some(watch) = &mut self.watch
                    && let Some(&Instruction::Loop { parallel, .. }) = self.code.instructions.get(*start)
                    && parallel != Parallel::No
                {
                    if again { watch.next(parallel) } else { watch.leave(parallel) }
                }
                if again {
                    return Ok(start + 1);
                }
            }
            // A single thread has nobody to wait for.
            Instruction::Barrier => {}
            Instruction::Special { index, .. } => {
                return Err(self.code.failure(format!("{} needs a device with workgroups", index.name())));
            }
            Instruction::If { gate, exit } => {
                if self.scalar(*gate) == 0 {
                    return Ok(*exit);
                }
            }
        }
        Ok(position + 1)
    }

    /// Splits the file into the part before a target, and the target.
    fn split(&mut self, target: Register) -> (&[u64], &mut [u64]) {
        let (before, behind) = self.file.split_at_mut(target.start as usize);
        (before, &mut behind[..target.lanes as usize])
    }

    fn scalar(&self, register: Register) -> u64 {
        self.file[register.start as usize]
    }

    fn is_open(&self, gate: Option<Register>, lane: u32) -> bool {
        gate.is_none_or(|gate| self.file[(gate.start + if gate.lanes == 1 { 0 } else { lane }) as usize] != 0)
    }

    /// Whether an access has no gate, or one that is true for all lanes.
    fn is_whole(&self, gate: Option<Register>) -> bool {
        gate.is_none_or(|gate| gate.lanes == 1 && self.scalar(gate) != 0)
    }

    fn view(&self, address: &Address) -> Result<View, BackendError> {
        let start = match address.space {
            Space::Param(slot) => self.params[slot as usize],
            Space::Local(offset) => self.scratch.address().wrapping_add(offset),
        };
        if start.is_null() && self.length(address) > 0 {
            return Err(self.code.failure(format!("{} has no memory", self.name(address))));
        }
        Ok(View { start, dtype: address.dtype })
    }

    /// Records an access to an element if races are checked.
    fn touch(&mut self, address: &Address, element: usize, touch: Touch) -> Result<(), BackendError> {
        match self.watch.as_mut().and_then(|watch| watch.touch(self.code, address.space, element, touch)) {
            Some(what) => Err(self.code.race(what)),
            None => Ok(()),
        }
    }

    fn length(&self, address: &Address) -> usize {
        self.bound.length(address.length)
    }

    fn name(&self, address: &Address) -> String {
        match address.space {
            Space::Param(slot) => self.code.buffer(slot),
            Space::Local(offset) => format!("the scratch at {offset}"),
        }
    }

    /// The position of a lane's element, which is checked to be inside the buffer.
    fn element(&self, address: &Address, lane: u32, verb: &str) -> Result<usize, BackendError> {
        let position = if address.is_run() {
            (self.scalar(address.index) as i64).wrapping_add(lane as i64)
        } else {
            self.file[(address.index.start + lane) as usize] as i64
        };
        match usize::try_from(position) {
            Ok(position) if position < self.length(address) => Ok(position),
            _ => Err(self.code.failure(format!(
                "{verb} element {position} of {}, which has {} of {}",
                self.name(address),
                self.length(address),
                address.dtype
            ))),
        }
    }

    fn load(
        &mut self,
        address: &Address,
        alternative: Option<Register>,
        gate: Option<Register>,
        target: Register,
    ) -> Result<(), BackendError> {
        let view = self.view(address)?;
        if target.lanes == 0 {
            return Ok(());
        }
        if address.is_run() && self.is_whole(gate) && self.watch.is_none() {
            let first = self.element(address, 0, "reads")?;
            self.element(address, target.lanes - 1, "reads")?;
            // SAFETY: the first and the last element are inside the buffer.
            unsafe { view.load(first, &mut self.file[target.range()]) }
            return Ok(());
        }
        for lane in 0..target.lanes {
            let mut value = [0];
            if self.is_open(gate, lane) {
                let element = self.element(address, lane, "reads")?;
                self.touch(address, element, Touch::Read)?;
                // SAFETY: the element is inside the buffer.
                unsafe { view.load(element, &mut value) }
            } else if let Some(alternative) = alternative {
                let lane = if alternative.lanes == 1 { 0 } else { lane };
                value = [self.file[(alternative.start + lane) as usize]];
            }
            self.file[(target.start + lane) as usize] = value[0];
        }
        Ok(())
    }

    fn store(&mut self, address: &Address, source: Register, gate: Option<Register>) -> Result<(), BackendError> {
        let view = self.view(address)?;
        if address.lanes > 0 && address.is_run() && self.is_whole(gate) && self.watch.is_none() {
            let first = self.element(address, 0, "writes")?;
            self.element(address, address.lanes - 1, "writes")?;
            // SAFETY: the first and the last element are inside the buffer.
            unsafe { view.store(first, &self.file[source.range()]) }
            return Ok(());
        }
        for lane in 0..address.lanes {
            if !self.is_open(gate, lane) {
                continue;
            }
            let element = self.element(address, lane, "writes")?;
            self.touch(address, element, Touch::Write)?;
            // SAFETY: the element is inside the buffer.
            unsafe { view.store(element, &[self.file[(source.start + lane) as usize]]) }
        }
        Ok(())
    }

    fn accumulate(&mut self, address: &Address, source: Register, gate: Option<Register>) -> Result<(), BackendError> {
        let (view, dtype) = (self.view(address)?, address.dtype);
        for lane in 0..address.lanes {
            if !self.is_open(gate, lane) {
                continue;
            }
            let element = self.element(address, lane, "adds to")?;
            self.touch(address, element, Touch::Add)?;
            let (mut old, mut sum) = ([0], [0]);
            let value = [self.file[(source.start + lane) as usize]];
            // SAFETY: the element is inside the buffer.
            unsafe { view.load(element, &mut old) }
            eval_lanes(Op::Add, dtype, dtype, &[&old, &value], &mut sum)?;
            // SAFETY: as above.
            unsafe { view.store(element, &sum) }
        }
        Ok(())
    }
}
