//! A wave: its registers, which of their bits have been written, and its outstanding memory accesses.

use super::lanes::{PART, Words};
use super::text::{Half, register};
use crate::lanes::Mask;
use crate::lanes::memory::MOST_LANES;
use smallvec::SmallVec;

/// Counters of outstanding accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    /// Loads from GLOBAL memory; on gfx9 stores too.
    Load,
    /// Stores to GLOBAL memory.
    Store,
    /// LOCAL memory; before gfx12 scalar loads too.
    Local,
    /// Scalar loads.
    Scalar,
}

pub(super) const COUNTERS: usize = 4;

/// Consecutive registers, numbered as in [`register`]: scalar registers first, then vector registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub first: u16,
    pub count: u16,
    /// Which halves are meant: the low one (1), the high one (2) or both (3).
    pub halves: u8,
}

impl Span {
    pub fn new(first: u16, count: u16) -> Span {
        Span { first, count, halves: 3 }
    }

    /// Only this half of each register.
    pub fn half(self, half: Option<Half>) -> Span {
        let halves = match half {
            None => self.halves,
            Some(Half::Low) => 1,
            Some(Half::High) => 2,
        };
        Span { halves, ..self }
    }
}

/// The maximum value of any chip's counter.
const MOST_REQUESTS: usize = 63;

/// All registers of a wave.
const REGISTERS: usize = register::SCALARS as usize + 512;

/// An outstanding access.
struct Request {
    to: SmallVec<[Span; 2]>,
    /// It may complete before accesses issued earlier.
    is_unordered: bool,
    is_local: bool,
}

/// Registers that an outstanding load will write, one bit each: by their low halves and by their high halves.
type Pending = [[u64; REGISTERS.div_ceil(64)]; 2];

/// Outstanding accesses by counter, and the registers they will write.
pub(super) struct Requests {
    queues: [Vec<Request>; COUNTERS],
    pending: Pending,
    /// At least one register is pending.
    pub any: bool,
}

/// Marks registers in a set.
fn mark(pending: &mut Pending, span: Span) {
    for register in span.first..span.first + span.count {
        for (half, pending) in pending.iter_mut().enumerate() {
            pending[usize::from(register) / 64] |= u64::from(span.halves >> half & 1) << (register % 64);
        }
    }
}

/// The first register of these that is marked.
#[inline]
fn first_of(pending: &Pending, spans: &[Span]) -> Option<u16> {
    for span in spans {
        for register in span.first..span.first + span.count {
            let is_pending = |half: usize| pending[half][usize::from(register) / 64] >> (register % 64) & 1 == 1;
            if span.halves & 1 != 0 && is_pending(0) || span.halves & 2 != 0 && is_pending(1) {
                return Some(register);
            }
        }
    }
    None
}

impl Requests {
    pub fn new() -> Requests {
        Requests { queues: Default::default(), pending: [[0; REGISTERS.div_ceil(64)]; 2], any: false }
    }

    pub fn reset(&mut self) {
        self.queues.iter_mut().for_each(Vec::clear);
        self.update();
    }

    pub fn issue(&mut self, counter: Counter, to: &[Span], is_unordered: bool, is_local: bool) {
        // The wave would stall at more than the counter can count.
        if self.queues[counter as usize].len() >= MOST_REQUESTS {
            self.wait(counter, MOST_REQUESTS - 1);
        }
        to.iter().for_each(|&span| mark(&mut self.pending, span));
        self.any |= !to.is_empty();
        self.queues[counter as usize].push(Request { to: to.into(), is_unordered, is_local });
    }

    /// Waits until at most `most` accesses are outstanding. Of accesses that may complete out of order, none is known to be
    /// complete unless all are.
    pub fn wait(&mut self, counter: Counter, most: usize) {
        let queue = &mut self.queues[counter as usize];
        if queue.len() <= most {
            return;
        }
        if most == 0 {
            queue.clear();
        } else {
            // A counter may count two kinds of access, each of which completes in its own order.
            let is_mixed = queue.iter().any(|request| request.is_unordered || request.is_local != queue[0].is_local);
            if is_mixed {
                return;
            }
            queue.drain(..queue.len() - most);
        }
        self.update();
    }

    fn update(&mut self) {
        (self.pending, self.any) = ([[0; REGISTERS.div_ceil(64)]; 2], false);
        for &span in self.queues.iter().flatten().flat_map(|request| &request.to) {
            mark(&mut self.pending, span);
            self.any = true;
        }
    }

    /// The first of these registers that an outstanding load will write.
    #[inline]
    pub fn pending(&self, spans: &[Span]) -> Option<u16> {
        first_of(&self.pending, spans)
    }

    /// The same, leaving out the loads that this counter counts.
    #[cold]
    pub fn pending_elsewhere(&self, spans: &[Span], counter: Counter) -> Option<u16> {
        let others = self.queues.iter().enumerate().filter(|(number, _)| *number != counter as usize);
        let mut pending = [[0; REGISTERS.div_ceil(64)]; 2];
        others.flat_map(|(_, queue)| queue).flat_map(|request| &request.to).for_each(|&span| mark(&mut pending, span));
        first_of(&pending, spans)
    }

    /// Accesses of LOCAL memory are outstanding.
    pub fn has_local(&self) -> bool {
        self.queues.iter().flatten().any(|request| request.is_local)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// It has arrived at a barrier and waits there.
    Waiting,
    Ended,
}

/// For each byte of a vector register, the lanes in which it has been written.
pub(super) type KnownBytes = [Mask; 4];

/// The bits of a lane that have not been written.
#[inline]
pub(super) fn unknown_in(known: &KnownBytes, lane: usize) -> u32 {
    u32::from_le_bytes(known.map(|known| if known >> lane & 1 == 1 { 0 } else { 0xff }))
}

/// The known bytes of a register that has these unwritten bits in all lanes.
pub(super) fn known_of(unknown: u32) -> KnownBytes {
    std::array::from_fn(|byte| if unknown >> (8 * byte) & 0xff == 0 { Mask::MAX } else { 0 })
}

/// Registers of a wave.
pub(super) struct Wave {
    /// Parts of 32 lanes.
    pub parts: usize,
    /// By register and part.
    pub vectors: Vec<[Words; 2]>,
    /// Which bytes of each register have been written.
    pub known: Vec<KnownBytes>,
    /// Scratch memory: the lanes' bytes at each address.
    pub scratch: Vec<[u8; MOST_LANES]>,
    /// Lanes whose byte at each address has been written.
    pub scratch_known: Vec<Mask>,
    pub scalars: [u32; register::SCALARS as usize],
    /// Bits that have not been written.
    pub unknown: [u32; register::SCALARS as usize],
    pub condition: bool,
    pub condition_known: bool,
    /// The lanes that execute, as EXEC has them.
    pub active: Mask,
    /// Lanes that have a thread.
    pub all: Mask,
    pub place: u32,
    pub state: State,
    /// It has signalled a barrier and not yet waited for it.
    pub signalled: bool,
    pub requests: Requests,
}

impl Wave {
    pub fn new(width: usize, vectors: usize, scratch_bytes: usize) -> Wave {
        Wave {
            parts: width / PART,
            vectors: vec![[[0; PART]; 2]; vectors],
            known: vec![[0; 4]; vectors],
            scratch: vec![[0; MOST_LANES]; scratch_bytes],
            scratch_known: vec![0; scratch_bytes],
            scalars: [0; _],
            unknown: [0; _],
            condition: false,
            condition_known: false,
            active: 0,
            all: 0,
            place: 0,
            state: State::Ready,
            signalled: false,
            requests: Requests::new(),
        }
    }

    /// Restarts at the beginning of the kernel.
    pub fn reset(&mut self, lanes: Mask) {
        self.known.fill([0; 4]);
        self.scratch_known.fill(0);
        self.unknown.fill(u32::MAX);
        self.condition_known = false;
        (self.all, self.place, self.state, self.signalled) = (lanes, 0, State::Ready, false);
        self.requests.reset();
        self.put(register::EXEC, lanes, 2, 0);
        self.unknown[usize::from(register::NULL)] = 0;
        self.scalars[usize::from(register::NULL)] = 0;
        self.active = lanes;
    }

    /// A scalar register, or a pair.
    #[inline]
    pub fn scalar(&self, register: u16, count: u16) -> u64 {
        let low = u64::from(self.scalars[usize::from(register)]);
        match count {
            1 => low,
            _ if register == register::NULL => 0,
            _ => low | u64::from(self.scalars[usize::from(register) + 1]) << 32,
        }
    }

    /// Which bits of it have not been written.
    #[inline]
    pub fn unknown_bits(&self, register: u16, count: u16) -> u64 {
        let low = u64::from(self.unknown[usize::from(register)]);
        match count {
            1 => low,
            _ if register == register::NULL => 0,
            _ => low | u64::from(self.unknown[usize::from(register) + 1]) << 32,
        }
    }

    /// Writes a scalar register or a pair. `put_scalar` does the same and keeps `active` up to date.
    #[inline]
    pub fn put(&mut self, register: u16, bits: u64, count: u16, unknown: u64) {
        if register == register::NULL {
            return;
        }
        self.scalars[usize::from(register)] = bits as u32;
        self.unknown[usize::from(register)] = unknown as u32;
        if count == 2 {
            self.scalars[usize::from(register) + 1] = (bits >> 32) as u32;
            self.unknown[usize::from(register) + 1] = (unknown >> 32) as u32;
        }
    }
}
