//! Executes decoded kernels: workgroups one after the other, their waves in random order.

mod access;
mod scalar;
mod scratch;
mod vector;

use super::chip::{Chip, Family};
use super::decode::{Action, Code, Step, When};
use super::lanes::PART;
use super::text::register;
use super::wave::{Counter, State, Wave};
use crate::lanes::barrier::Barriers;
use crate::lanes::clock::{Clocks, MOST_CLOCKS, MOST_GROUPS};
use crate::lanes::launch::Given;
use crate::lanes::memory::{Memory, Region};
use crate::lanes::schedule::Schedule;
use crate::lanes::{Mask, Trouble, show_lanes};
use crate::{Fault, FaultKind, Launch, Parameter, SimulatorError};
use std::num::NonZeroU32;
use tinyspec_backends::Memory as _;
use tinyspec_backends::host_memory::{self, HostMemory};

/// Threads of a workgroup, at the most.
const MOST_THREADS: u64 = 1024;

/// The segment of arguments is padded to this: loads of several words may read past its end.
const ARGUMENTS_ALIGN: u64 = 64;

pub(super) type Outcome<T> = Result<T, Box<Trouble>>;

/// The state that all waves of a workgroup share.
struct Shared<'a> {
    code: &'a Code,
    launch: &'a Launch,
    memory: Memory,
    clocks: Clocks,
    barriers: Barriers,
    schedule: Schedule,
    /// Where the arguments are.
    arguments: u64,
    /// Number of the workgroup, from 0.
    group: u64,
    executed: u64,
    threads: u32,
    room: Box<vector::Room>,
    /// This processor has vector registers of 256 bits.
    is_wide: bool,
}

/// A fault, before it is described.
struct Stop {
    trouble: Box<Trouble>,
    place: usize,
    wave: usize,
}

/// Why a wave stopped running.
enum Event {
    Turn,
    /// It waits at the barrier, or completes it.
    Barrier(bool),
    Ended,
}

/// Runs a launch; returns how many wave instructions it executed.
///
/// # Safety
/// The memory that is given is valid and not used elsewhere meanwhile.
pub(super) unsafe fn run(code: &Code, launch: &Launch, given: &[Given]) -> Result<u64, SimulatorError> {
    check(code, launch, given)?;
    let failed = |error: tinyspec_backends::BackendError| SimulatorError::Memory(error.to_string());
    let argument_bytes = code.argument_bytes.next_multiple_of(ARGUMENTS_ALIGN as usize);
    let arguments = HostMemory::new(argument_bytes).map_err(failed)?;
    host_memory::write(&arguments, &packed(code, given)).map_err(failed)?;
    // SAFETY: as the caller promises.
    let mut regions = unsafe { Region::of(given) };
    let start = arguments.address();
    // SAFETY: the memory lives until the end of the launch.
    regions.push(unsafe { Region::new("the arguments".into(), start as u64, start, argument_bytes) });
    let width = code.chip.wave;
    // The arguments are read-only, even to stores whose address derives from no parameter that is known.
    let written = if code.params.len() < 64 { code.written & !(1 << code.params.len()) } else { code.written };
    let local_bytes = code.local_bytes + launch.local_bytes;
    let memory = Memory::new(regions, written, local_bytes, code.granule, *launch, width)?;
    let threads = launch.size() as u32;
    let count = (threads as usize).div_ceil(width);
    let mut shared = Shared {
        code,
        launch,
        memory,
        clocks: Clocks::new(count),
        barriers: Barriers::default(),
        schedule: Schedule::new(launch.seed),
        arguments: start as u64,
        group: 0,
        executed: 0,
        threads,
        room: vector::Room::new(),
        is_wide: is_wide(),
    };
    let mut waves: Vec<Wave> = (0..count).map(|_| Wave::new(width, code.vectors, code.scratch_bytes)).collect();
    let order = shared.schedule.permutation(launch.count());
    for number in 0..launch.count() {
        shared.group = order.at(number);
        shared.clocks.reset();
        shared.barriers.reset();
        for (number, wave) in waves.iter_mut().enumerate() {
            shared.start(wave, number);
        }
        workgroup(&mut shared, &mut waves).map_err(|stop| shared.fault(&stop))?;
    }
    Ok(shared.executed)
}

#[cfg(target_arch = "x86_64")]
fn is_wide() -> bool {
    use std::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn is_wide() -> bool {
    false
}

fn check(code: &Code, launch: &Launch, given: &[Given]) -> Result<(), SimulatorError> {
    let refuse = |reason: String| Err(SimulatorError::Launch { kernel: code.name.clone(), reason });
    let (threads, size) = (launch.threads, launch.size());
    if size == 0 || size > MOST_THREADS.min(code.most_threads) {
        let most = MOST_THREADS.min(code.most_threads);
        return refuse(format!("{threads:?} threads in a workgroup: there must be some, {most} at the most"));
    }
    if launch.count() > MOST_GROUPS {
        return refuse(format!("{:?} workgroups are too many to tell apart", launch.groups));
    }
    if launch.groups.iter().zip(threads).any(|(&groups, threads)| groups.checked_mul(threads).is_none()) {
        return refuse(format!("{:?} workgroups of {threads:?} threads: 2^32 in a dimension, or more", launch.groups));
    }
    // `ttmp7` has 16 bits for each.
    if code.chip.family == Family::Gfx12 && launch.groups[1..].iter().any(|&count| count > 1 << 16) {
        return refuse(format!("{:?} workgroups, at most 65,536 in y and z", launch.groups));
    }
    if let Some(required) = code.required.filter(|required| *required != threads) {
        return refuse(format!("{threads:?} threads in a workgroup, where it requires {required:?}"));
    }
    if given.len() != code.params.len() {
        return refuse(format!("it takes {} parameters, {} are given", code.params.len(), given.len()));
    }
    let is_wrong = |(parameter, given): (&Parameter, &Given)| match given {
        Given::Memory { .. } => parameter.bytes != 8,
        Given::Value(_) => parameter.bytes > 8 || parameter.is_pointer,
    };
    match code.params.iter().zip(given).position(is_wrong) {
        Some(number) => refuse(format!("parameter {number} is given what it cannot be")),
        None => Ok(()),
    }
}

/// The segment of arguments.
fn packed(code: &Code, given: &[Given]) -> Vec<u8> {
    let mut bytes = vec![0; code.argument_bytes];
    for (parameter, given) in code.params.iter().zip(given) {
        let bits = match *given {
            Given::Memory { start, .. } => start as u64,
            Given::Value(value) => value,
        };
        if let Some(place) = bytes.get_mut(parameter.offset..parameter.offset + parameter.bytes) {
            place.copy_from_slice(&bits.to_le_bytes()[..parameter.bytes]);
        }
    }
    bytes
}

/// Runs the waves of a workgroup to their end.
fn workgroup(shared: &mut Shared, waves: &mut [Wave]) -> Result<(), Stop> {
    let mut ready = Vec::with_capacity(waves.len());
    let limit = shared.executed.saturating_add(shared.launch.limit);
    loop {
        ready.clear();
        ready.extend((0..waves.len()).filter(|&number| waves[number].state == State::Ready));
        if ready.is_empty() {
            return end(shared, waves);
        }
        let number = ready[shared.schedule.pick(ready.len())];
        let turn = shared.schedule.turn();
        let place = waves[number].place as usize;
        let event = shared.turn(&mut waves[number], number, turn)?;
        let stop =
            |kind: FaultKind, reason: String| Stop { trouble: Trouble::new(kind, 1, reason), place, wave: number };
        if shared.executed > limit {
            let reason = format!("the workgroup ran {} instructions without an end", shared.launch.limit);
            return Err(stop(FaultKind::Endless, reason));
        }
        if let Event::Barrier(true) = event {
            for wave in shared.barriers.complete(0, &mut shared.clocks) {
                (waves[wave].state, waves[wave].signalled) = (State::Ready, false);
                waves[wave].place += 1;
            }
        }
        if shared.clocks.of(number)[number] > MOST_CLOCKS {
            return Err(stop(FaultKind::Endless, "more accesses of memory than can be told apart".into()));
        }
    }
}

/// No wave is ready: all have ended, or some wait at a barrier that others never reach.
fn end(shared: &Shared, waves: &[Wave]) -> Result<(), Stop> {
    let Some(number) = waves.iter().position(|wave| wave.state == State::Waiting) else { return Ok(()) };
    let (arrived, expected) = shared.barriers.state(0);
    let elsewhere: Vec<String> = waves
        .iter()
        .enumerate()
        .filter(|(_, wave)| wave.state == State::Ended)
        .map(|(number, _)| format!("wave {number} ended"))
        .take(4)
        .collect();
    let reason = format!("waits at a barrier, which {arrived} of {expected} threads reach: {}", elsewhere.join("; "));
    let trouble = Trouble::new(FaultKind::Divergence, waves[number].all, reason);
    Err(Stop { trouble, place: waves[number].place as usize, wave: number })
}

impl Shared<'_> {
    /// Describes a fault.
    fn fault(&self, stop: &Stop) -> SimulatorError {
        let text = self.code.listing.get(stop.place).map_or("", String::as_str);
        let [x, y, _] = self.launch.groups.map(u64::from);
        let at = [self.group % x, self.group / x % y, self.group / x / y];
        let used = (0..3).rev().find(|&dimension| self.launch.groups[dimension] > 1).unwrap_or(0);
        let at = at[..=used].iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        SimulatorError::Fault(Box::new(Fault {
            kind: stop.trouble.kind,
            kernel: self.code.name.clone(),
            line: stop.place as u32 + 1,
            instruction: text.split_whitespace().collect::<Vec<_>>().join(" "),
            source_line: self.code.source_lines.get(stop.place).copied().and_then(NonZeroU32::new),
            threads: format!("workgroup ({at}), wave {}, {}", stop.wave, show_lanes(stop.trouble.lanes)),
            reason: stop.trouble.reason.clone(),
        }))
    }

    /// Registers of a wave at the start of the kernel.
    fn start(&self, wave: &mut Wave, number: usize) {
        let width = self.code.chip.wave;
        let lanes = (self.threads as usize - number * width).min(width);
        wave.reset(if lanes == 64 { Mask::MAX } else { (1 << lanes) - 1 });
        let start = &self.code.start;
        if let Some(register) = start.arguments {
            wave.put(register, self.arguments, 2, 0);
        }
        let [x, y, _] = self.launch.groups.map(u64::from);
        let group = [self.group % x, self.group / x % y, self.group / x / y];
        for (register, place) in start.groups.iter().zip(group) {
            if let Some(register) = *register {
                wave.put(register, place, 1, 0);
            }
        }
        if self.code.chip.family == Family::Gfx12 {
            wave.put(register::TTMP + 9, group[0], 1, 0);
            wave.put(register::TTMP + 7, group[1] & 0xffff | group[2] << 16, 1, 0);
        }
        let [x, y, _] = self.launch.threads;
        for lane in 0..width {
            let thread = (number * width + lane) as u32;
            let place = [thread % x, thread / x % y, thread / x / y];
            let used = &place[..(start.threads as usize).min(3)];
            let packed = used.iter().enumerate().fold(0, |all, (dimension, place)| all | place << (10 * dimension));
            wave.vectors[0][lane / PART][lane % PART] = packed;
        }
        // Lanes beyond the last thread hold nothing.
        wave.known[0] = [wave.all; 4];
    }

    /// Runs a wave for up to `turn` instructions, compiled for wide vector registers where this processor has them.
    fn turn(&mut self, wave: &mut Wave, number: usize, turn: u64) -> Result<Event, Stop> {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn wide(shared: &mut Shared, wave: &mut Wave, number: usize, turn: u64) -> Result<Event, Stop> {
                shared.steps(wave, number, turn)
            }
            if self.is_wide {
                // SAFETY: `is_wide` says that the processor has these features.
                return unsafe { wide(self, wave, number, turn) };
            }
        }
        self.steps(wave, number, turn)
    }

    #[inline(always)]
    fn steps(&mut self, wave: &mut Wave, number: usize, turn: u64) -> Result<Event, Stop> {
        let code = self.code;
        let mut place = wave.place as usize;
        let mut left = turn;
        let outcome = loop {
            if left == 0 {
                break Ok(Event::Turn);
            }
            left -= 1;
            let step = &code.steps[place];
            if wave.requests.any
                && let Some(register) = wave.hazard(step, code.chip)
            {
                break Err(not_waited_for(wave, register));
            }
            let done = match &step.action {
                Action::Vector(vector) => wave.vector(vector, &mut self.room),
                Action::Dual(both) => wave.dual(both, &mut self.room),
                Action::Scalar(scalar) => wave.scalar_step(scalar),
                Action::Access(access) => self.access(wave, number, access),
                Action::Branch { when, to } => match wave.takes(*when) {
                    Ok(true) => {
                        place = *to as usize;
                        continue;
                    }
                    Ok(false) => Ok(()),
                    Err(trouble) => Err(trouble),
                },
                Action::Wait(waits) => {
                    waits.iter().for_each(|&(counter, most)| wave.requests.wait(counter, most));
                    Ok(())
                }
                Action::ReadLane { to, from, lane } => wave.read_lane(*to, *from, *lane),
                Action::WriteLane { to, value, lane } => wave.write_lane(*to, *value, *lane),
                Action::CountBelow { to, mask, add, upper } => wave.count_below(*to, *mask, *add, *upper),
                Action::Nothing => Ok(()),
                Action::Barrier { arrives, waits } => match self.barrier(wave, number, *arrives, *waits) {
                    Ok(None) => Ok(()),
                    Ok(Some(is_complete)) => break Ok(Event::Barrier(is_complete)),
                    Err(trouble) => Err(trouble),
                },
                Action::End => {
                    wave.state = State::Ended;
                    break Ok(Event::Ended);
                }
                Action::Trap => Err(Trouble::new(FaultKind::Undefined, wave.all, "this must not be executed")),
            };
            match done {
                Ok(()) => place += 1,
                Err(trouble) => break Err(trouble),
            }
        };
        wave.place = place as u32;
        self.executed += turn - left;
        outcome.map_err(|trouble| Stop { trouble, place, wave: number })
    }

    /// Arrives at the workgroup's barrier; `None` if the wave continues, else whether the barrier is complete.
    fn barrier(&mut self, wave: &mut Wave, number: usize, arrives: bool, waits: bool) -> Outcome<Option<bool>> {
        if arrives {
            let missing = wave.all & !wave.active;
            if missing != 0 {
                let reason = "do not come to this barrier with the other lanes of their wave";
                return Err(Trouble::new(FaultKind::Divergence, missing, reason));
            }
            if wave.requests.has_local() {
                let reason =
                    "comes to a barrier before its accesses of LOCAL memory are waited for, so others may meet them";
                return Err(Trouble::new(FaultKind::Race, wave.active, reason));
            }
            wave.signalled = true;
            if !waits {
                return Ok(None);
            }
        }
        if !wave.signalled {
            let reason = "waits at a barrier that it has not signalled";
            return Err(Trouble::new(FaultKind::Divergence, wave.active, reason));
        }
        let lanes = wave.all.count_ones();
        let arrived = self.barriers.arrive(0, (number, lanes), self.threads, true, &self.clocks);
        let is_complete = arrived.map_err(|reason| Trouble::new(FaultKind::Divergence, wave.active, reason))?;
        wave.state = State::Waiting;
        Ok(Some(is_complete))
    }
}

#[cold]
fn not_waited_for(wave: &Wave, register: u16) -> Box<Trouble> {
    let name = match register.checked_sub(register::SCALARS) {
        Some(vector) => format!("v{vector}"),
        None => format!("s{register}"),
    };
    let reason = format!("uses {name}, which is being loaded: nothing has waited for it");
    Trouble::new(FaultKind::Uninitialised, wave.active, reason)
}

#[cold]
pub(super) fn unwritten(lanes: Mask, what: &str) -> Box<Trouble> {
    Trouble::new(FaultKind::Uninitialised, lanes, format!("{what} comes from what nobody has written"))
}

impl Wave {
    /// A register that the instruction reads or writes although an outstanding load will still write it.
    #[inline]
    fn hazard(&self, step: &Step, chip: Chip) -> Option<u16> {
        let is_written = || {
            self.requests.pending(&step.writes).and_then(|register| match &step.action {
                Action::Access(access) if access.counter == Counter::Load && chip.loads_in_order() => {
                    self.requests.pending_elsewhere(&step.writes, Counter::Load)
                }
                _ => Some(register),
            })
        };
        self.requests.pending(&step.reads).or_else(is_written)
    }

    fn takes(&self, when: When) -> Outcome<bool> {
        match when {
            When::Always => Ok(true),
            When::Condition(wanted) => match self.condition_known {
                true => Ok(self.condition == wanted),
                false => Err(unwritten(self.active, "the condition of a branch")),
            },
            When::ActiveZero(wanted) => Ok((self.active == 0) == wanted),
            When::MaskZero(wanted) => {
                let count = self.parts as u16;
                let (mask, unknown) = (self.scalar(register::VCC, count), self.unknown_bits(register::VCC, count));
                match mask & !unknown == 0 && unknown != 0 {
                    true => Err(unwritten(unknown, "the mask of a branch")),
                    false => Ok((mask & !unknown == 0) == wanted),
                }
            }
        }
    }

    /// Writes scalar registers; writing EXEC changes which lanes are active.
    pub(super) fn put_scalar(&mut self, register: u16, bits: u64, count: u16, unknown: u64) -> Outcome<()> {
        self.put(register, bits, count, unknown);
        if register <= register::EXEC + 1 && register + count > register::EXEC {
            let words = self.parts as u16;
            let unknown = self.unknown_bits(register::EXEC, words);
            if unknown != 0 {
                return Err(unwritten(unknown, "the mask of the lanes that execute"));
            }
            self.active = self.scalar(register::EXEC, words);
        }
        Ok(())
    }
}
