//! Executes decoded kernels: workgroups one after the other, their warps in random order.

mod atomics;
mod barriers;
mod parts;
mod step;
mod transfer;
mod warp;

use super::arithmetic::WARP;
use super::decode::{Code, Special};
use crate::lanes::barrier::Barriers;
use crate::lanes::clock::{Clocks, MOST_CLOCKS, MOST_GROUPS};
use crate::lanes::launch::Given;
use crate::lanes::memory::{Memory, Region};
use crate::lanes::schedule::Schedule;
use crate::lanes::{Trouble, show_lanes};
use crate::{Fault, FaultKind, Launch, SimulatorError};
use std::num::NonZeroU32;
use tinyspec_backends::Memory as _;
use tinyspec_backends::host_memory::{self, HostMemory};
use warp::{State, Warp};

/// Threads of a workgroup, at the most.
const MOST_THREADS: u64 = 1024;

/// The state that all warps of a workgroup share.
struct Shared<'a> {
    code: &'a Code,
    launch: &'a Launch,
    params: Vec<u8>,
    memory: Memory,
    clocks: Clocks,
    barriers: Barriers,
    schedule: Schedule,
    /// Number of the workgroup, from 0.
    group: u64,
    executed: u64,
    /// Threads of the workgroup.
    threads: u32,
}

/// A fault before it is put into words: the place of the instruction, and the warp.
struct Stop {
    trouble: Box<Trouble>,
    place: usize,
    warp: usize,
}

/// Runs a launch; how many warp instructions it was.
///
/// # Safety
/// The memory that is given is valid and not used elsewhere meanwhile.
pub(crate) unsafe fn run(code: &Code, launch: &Launch, given: &[Given]) -> Result<u64, SimulatorError> {
    check(code, launch, given)?;
    let params = parameters(code, given);
    // SAFETY: as the caller promises.
    let mut regions = unsafe { Region::of(given) };
    let mut variables = Vec::new();
    for data in &code.variables {
        let failed = |error: tinyspec_backends::BackendError| SimulatorError::Memory(error.to_string());
        let memory = HostMemory::new(data.bytes.len()).map_err(failed)?;
        host_memory::write(&memory, &data.bytes).map_err(failed)?;
        let (name, start) = (format!("variable `{}`", data.name), memory.address());
        // SAFETY: the memory lives until the end of the launch.
        regions.push(unsafe { Region::new(name, start as u64, start, data.bytes.len()) });
        variables.push(memory);
    }
    let local_bytes = code.local_bytes + launch.local_bytes;
    let memory = Memory::new(regions, code.written, local_bytes, code.granule, *launch, WARP)?;
    let threads = launch.size() as u32;
    let count = (threads as usize).div_ceil(WARP);
    let mut shared = Shared {
        code,
        launch,
        params,
        memory,
        clocks: Clocks::new(count),
        barriers: Barriers::default(),
        schedule: Schedule::new(launch.seed),
        group: 0,
        executed: 0,
        threads,
    };
    let mut warps: Vec<Warp> = (0..count).map(|_| Warp::new(code)).collect();
    for warp in &mut warps {
        fill_constants(warp, code, &variables);
    }
    let order = shared.schedule.permutation(launch.count());
    for number in 0..launch.count() {
        shared.group = order.at(number);
        shared.clocks.reset();
        shared.barriers.reset();
        for (number, warp) in warps.iter_mut().enumerate() {
            warp.start(number, &shared);
        }
        block(&mut shared, &mut warps).map_err(|stop| shared.fault(&stop))?;
    }
    Ok(shared.executed)
}

fn check(code: &Code, launch: &Launch, given: &[Given]) -> Result<(), SimulatorError> {
    let refuse = |reason: String| Err(SimulatorError::Launch { kernel: code.name.clone(), reason });
    let (threads, size) = (launch.threads, launch.size());
    if size == 0 || size > MOST_THREADS {
        return refuse(format!("{threads:?} threads in a workgroup: there must be some, {MOST_THREADS} at the most"));
    }
    if launch.count() > MOST_GROUPS {
        return refuse(format!("{:?} workgroups are too many to tell apart", launch.groups));
    }
    if let Some(required) = code.required.filter(|required| *required != threads) {
        return refuse(format!("{threads:?} threads in a workgroup, where it requires {required:?}"));
    }
    if let Some(most) = &code.most {
        let bound: u64 = most.iter().map(|&most| u64::from(most)).product();
        if size > bound {
            return refuse(format!("{threads:?} threads in a workgroup, at most {most:?}"));
        }
    }
    if given.len() != code.params.len() {
        return refuse(format!("it takes {} parameters, {} are given", code.params.len(), given.len()));
    }
    let is_wrong = |(parameter, given): (&crate::Parameter, &Given)| match given {
        Given::Memory { .. } => parameter.bytes != 8,
        Given::Value(_) => parameter.bytes > 8,
    };
    match code.params.iter().zip(given).position(is_wrong) {
        Some(number) => refuse(format!("parameter {number} has {} bytes", code.params[number].bytes)),
        None => Ok(()),
    }
}

fn parameters(code: &Code, given: &[Given]) -> Vec<u8> {
    let end = code.params.iter().map(|parameter| parameter.offset + parameter.bytes).max().unwrap_or(0);
    let mut bytes = vec![0; end];
    for (parameter, given) in code.params.iter().zip(given) {
        let bits = match *given {
            Given::Memory { start, .. } => start as u64,
            Given::Value(value) => value,
        };
        bytes[parameter.offset..][..parameter.bytes].copy_from_slice(&bits.to_le_bytes()[..parameter.bytes]);
    }
    bytes
}

fn fill_constants(warp: &mut Warp, code: &Code, variables: &[HostMemory]) {
    for &(register, value) in &code.word_constants {
        warp.words.values[register as usize] = [value; WARP];
    }
    for &(register, value) in &code.long_constants {
        warp.longs.values[register as usize] = [value; WARP];
    }
    for &(register, variable, offset) in &code.addresses {
        let address = (variables[variable].address() as u64).wrapping_add_signed(offset);
        warp.longs.values[register as usize] = [address; WARP];
    }
    for &(register, value) in &code.predicate_constants {
        warp.predicates[register as usize] = if value { u32::MAX } else { 0 };
    }
}

/// Runs the warps of a workgroup to their end.
fn block(shared: &mut Shared, warps: &mut [Warp]) -> Result<(), Stop> {
    let mut ready = Vec::with_capacity(warps.len());
    let limit = shared.executed.saturating_add(shared.launch.limit);
    loop {
        ready.clear();
        ready.extend((0..warps.len()).filter(|&number| warps[number].is_ready()));
        if ready.is_empty() {
            return barriers::end(shared, warps);
        }
        let number = ready[shared.schedule.pick(ready.len())];
        let candidates = warps[number].ready();
        let strand = candidates[shared.schedule.pick(candidates.len())];
        let turn = shared.schedule.turn();
        let place = warps[number].strands[strand].place as usize;
        let event = warps[number].run(number, strand, turn, shared)?;
        if shared.executed > limit {
            let reason = format!("the workgroup ran {} instructions without an end", shared.launch.limit);
            return Err(Stop { trouble: Trouble::new(FaultKind::Endless, 1, reason), place, warp: number });
        }
        if let Some(barrier) = event {
            barriers::complete(shared, warps, barrier);
        }
        if shared.clocks.of(number)[number] > MOST_CLOCKS {
            let reason = "more synchronisations than can be told apart";
            return Err(Stop { trouble: Trouble::new(FaultKind::Endless, 1, reason), place, warp: number });
        }
    }
}

impl Shared<'_> {
    /// A fault in words.
    fn fault(&self, stop: &Stop) -> SimulatorError {
        let (line, source_line) = self.code.steps.get(stop.place).map_or((0, 0), |step| (step.line, step.source_line));
        let text = self.code.text.lines().nth((line as usize).saturating_sub(1)).unwrap_or("");
        let [x, y, _] = self.launch.groups.map(u64::from);
        let at = [self.group % x, self.group / x % y, self.group / x / y];
        let used = (0..3).rev().find(|&dimension| self.launch.groups[dimension] > 1).unwrap_or(0);
        let at = at[..=used].iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let lanes = show_lanes(stop.trouble.lanes);
        SimulatorError::Fault(Box::new(Fault {
            kind: stop.trouble.kind,
            kernel: self.code.name.clone(),
            line,
            instruction: text.split_whitespace().collect::<Vec<_>>().join(" "),
            source_line: NonZeroU32::new(source_line),
            threads: format!("workgroup ({at}), warp {}, {lanes}", stop.warp),
            reason: stop.trouble.reason.clone(),
        }))
    }

    fn special(&self, special: Special, warp: usize, lane: usize) -> u32 {
        let thread = (warp * WARP + lane) as u32;
        let below = (1u32 << lane).wrapping_sub(1);
        match special {
            Special::Thread(dimension) => {
                let before: u32 = self.launch.threads[..dimension].iter().product();
                thread / before % self.launch.threads[dimension]
            }
            Special::Threads(dimension) => self.launch.threads[dimension],
            Special::Block(dimension) => {
                let before: u64 = self.launch.groups[..dimension].iter().map(|&size| u64::from(size)).product();
                (self.group / before % u64::from(self.launch.groups[dimension])) as u32
            }
            Special::Blocks(dimension) => self.launch.groups[dimension],
            Special::Lane => lane as u32,
            Special::Warp => warp as u32,
            Special::Warps => self.threads.div_ceil(WARP as u32),
            Special::LanesEqual => 1 << lane,
            Special::LanesBelow => below,
            Special::LanesUpTo => below | 1 << lane,
            Special::LanesFrom => !below,
            Special::LanesAbove => !(below | 1 << lane),
            Special::LocalBytes => (self.code.local_bytes + self.launch.local_bytes) as u32,
            Special::ExternalBytes => self.launch.local_bytes as u32,
        }
    }
}

impl Warp {
    /// Its lanes at the start of the kernel.
    fn start(&mut self, number: usize, shared: &Shared) {
        let lanes = (shared.threads as usize - number * WARP).min(WARP);
        self.reset(if lanes == WARP { u32::MAX } else { (1 << lanes) - 1 });
        let code = shared.code;
        for &(register, special) in &code.specials {
            for lane in 0..WARP {
                self.words.values[register as usize][lane] = shared.special(special, number, lane);
            }
            self.words.known[register as usize] = u32::MAX;
        }
        for &(register, _) in &code.word_constants {
            self.words.known[register as usize] = u32::MAX;
        }
        for &(register, _) in &code.long_constants {
            self.longs.known[register as usize] = u32::MAX;
        }
        for &(register, ..) in &code.addresses {
            self.longs.known[register as usize] = u32::MAX;
        }
        for &(register, _) in &code.predicate_constants {
            self.predicates_known[register as usize] = u32::MAX;
        }
    }

    fn is_ready(&self) -> bool {
        self.strands.iter().any(|strand| strand.state == State::Ready)
    }

    fn ready(&self) -> smallvec::SmallVec<[usize; 4]> {
        let is_ready = |&strand: &usize| self.strands[strand].state == State::Ready;
        (0..self.strands.len()).filter(is_ready).collect()
    }
}
