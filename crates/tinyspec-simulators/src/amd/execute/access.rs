//! Accesses of memory.

use super::super::decode::{Access, Base};
use super::super::lanes::{PART, Words};
use super::super::table::{Atomic, Permutation, TransferKind};
use super::super::text::Half;
use super::super::wave::{Wave, known_of, unknown_in};
use super::vector::choose;
use super::{ARGUMENTS_ALIGN, Outcome, Shared, unwritten};
use crate::FaultKind;
use crate::lanes::memory::{self, Known, LOCAL_BASE, MOST_BYTES, MOST_ELEMENTS, MOST_LANES, Space};
use crate::lanes::{Mask, Trouble, lanes_of};

pub(super) type Addresses = [u64; MOST_LANES];

impl Shared<'_> {
    #[inline(always)]
    pub(super) fn access(&mut self, wave: &mut Wave, number: usize, access: &Access) -> Outcome<()> {
        if let Base::Scratch { .. } = access.base {
            wave.scratch_access(access)?;
            wave.requests.issue(access.counter, &access.results, false, false);
            return Ok(());
        }
        let is_store = !matches!(access.kind, TransferKind::Load | TransferKind::LoadTwo(_));
        if access.is_local && wave.signalled {
            let reason = "accesses LOCAL memory between signalling a barrier and waiting at it";
            return Err(Trouble::new(FaultKind::Race, wave.active, reason));
        }
        // Lanes of a wave go in step, so its instructions are ordered for all of them.
        if is_store {
            self.clocks.meet(number);
        }
        if let Base::Scalar { .. } = access.base {
            self.scalar_load(wave, number, access)?;
        } else if wave.active != 0 {
            let mut addresses = [0; MOST_LANES];
            match access.kind {
                TransferKind::Permute(kind) => permute(wave, access, kind)?,
                TransferKind::Load => {
                    wave.addresses(access, access.offsets[0], &mut addresses)?;
                    self.load(wave, number, access, &addresses, access.to.unwrap_or_default())?;
                }
                TransferKind::LoadTwo(_) => {
                    let to = access.to.unwrap_or_default();
                    // The first result may overwrite the address.
                    let mut second = [0; MOST_LANES];
                    wave.addresses(access, access.offsets[0], &mut addresses)?;
                    wave.addresses(access, access.offsets[1], &mut second)?;
                    self.load(wave, number, access, &addresses, to)?;
                    self.load(wave, number, access, &second, to + access.count as u16)?;
                }
                TransferKind::Store => {
                    wave.addresses(access, access.offsets[0], &mut addresses)?;
                    self.store(wave, number, access, &addresses, access.data[0].unwrap_or_default())?;
                }
                TransferKind::StoreTwo(_) => {
                    for (offset, data) in access.offsets.into_iter().zip(access.data) {
                        wave.addresses(access, offset, &mut addresses)?;
                        self.store(wave, number, access, &addresses, data.unwrap_or_default())?;
                    }
                }
                TransferKind::Atomic(atomic) | TransferKind::AtomicReturning(atomic) => {
                    self.atomic(wave, number, access, atomic)?;
                }
            }
        }
        if is_store {
            self.clocks.meet(number);
        }
        let is_scalar = matches!(access.base, Base::Scalar { .. });
        wave.requests.issue(access.counter, &access.results, is_scalar, access.is_local);
        Ok(())
    }

    fn scalar_load(&mut self, wave: &mut Wave, number: usize, access: &Access) -> Outcome<()> {
        let Base::Scalar { first, more } = access.base else { return Ok(()) };
        let (mut address, mut unknown) = (wave.scalar(first, 2), wave.unknown_bits(first, 2));
        if let Some(more) = more {
            let (bits, lost) = wave.scalar_from(more);
            (address, unknown) = (address.wrapping_add(u64::from(bits as u32)), unknown | lost);
        }
        if unknown != 0 {
            return Err(unwritten(wave.active, "an address"));
        }
        let to = access.to.unwrap_or_default();
        let mut addresses = [0; MOST_LANES];
        for element in 0..access.count {
            let address = address.wrapping_add_signed(access.offsets[0]);
            addresses[0] = address.wrapping_add((element * access.bytes) as u64);
            let mut value = 0;
            let now = self.clocks.now(self.group + 1, number);
            let wanted = request(access, &now, 1, &addresses, 1);
            let put = |_: usize, values: &Addresses| value = values[0];
            match access.bytes {
                1 => self.memory.load::<1>(&wanted, put),
                2 => self.memory.load::<2>(&wanted, put),
                _ => self.memory.load::<4>(&wanted, put),
            }?;
            let value = extended(value, access);
            // A load may read past the arguments, into padding that holds nothing.
            let end = self.arguments + self.code.argument_bytes as u64;
            let is_behind = (end..end.next_multiple_of(ARGUMENTS_ALIGN)).contains(&addresses[0]);
            wave.put_scalar(to + element as u16, value.into(), 1, if is_behind { u64::MAX } else { 0 })?;
        }
        Ok(())
    }

    #[inline(always)]
    fn load(&mut self, wave: &mut Wave, number: usize, access: &Access, addresses: &Addresses, to: u16) -> Outcome<()> {
        let active = wave.active;
        for (first, count) in pieces(access, addresses, active) {
            let mut room = [0; MOST_LANES];
            let addresses = moved(addresses, first * access.bytes, &mut room);
            let now = self.clocks.now(self.group + 1, number).private(access.is_local);
            let wanted = request(access, &now, active, addresses, count);
            let put = |element: usize, values: &Addresses| {
                let register = usize::from(to) + first + element;
                wave.receive(access, register, values, active);
            };
            let known = match access.bytes {
                1 => self.memory.load::<1>(&wanted, put),
                2 => self.memory.load::<2>(&wanted, put),
                _ => self.memory.load::<4>(&wanted, put),
            };
            let known = match known {
                Err(trouble) if access.allows(&trouble) => {
                    self.memory.watch_bytes(wanted.space);
                    let put = |values: &Addresses| {
                        wave.receive(access, usize::from(to) + first, values, active);
                    };
                    self.load_bytes(number, access, active, addresses, put)
                }
                known => known,
            }?;
            let known = known.as_deref().unwrap_or(&[Mask::MAX; MOST_BYTES]);
            for (element, known) in known.chunks_exact(access.bytes).enumerate().take(count) {
                wave.mark_received(access, usize::from(to) + first + element, known, active);
            }
        }
        Ok(())
    }

    /// Loads an unaligned element byte by byte.
    fn load_bytes(
        &mut self,
        number: usize,
        access: &Access,
        active: Mask,
        addresses: &Addresses,
        put: impl FnOnce(&Addresses),
    ) -> Outcome<Known> {
        let mut known = Box::new([0; MOST_BYTES]);
        let mut values = [0; MOST_LANES];
        for byte in 0..access.bytes {
            let mut room = [0; MOST_LANES];
            let now = self.clocks.now(self.group + 1, number).private(access.is_local);
            let wanted = request(access, &now, active, moved(addresses, byte, &mut room), 1);
            let written = self.memory.load::<1>(&wanted, |_, bytes| {
                lanes_of(active).for_each(|lane| values[lane] |= bytes[lane] << (8 * byte));
            })?;
            known[byte] = written.map_or(Mask::MAX, |written| written[0]);
        }
        put(&values);
        Ok(Some(known))
    }

    #[inline(always)]
    fn store(&mut self, wave: &Wave, number: usize, access: &Access, addresses: &Addresses, data: u16) -> Outcome<()> {
        let active = wave.active;
        wave.must_know(data, access, access.count)?;
        for (first, count) in pieces(access, addresses, active) {
            let mut room = [0; MOST_LANES];
            let addresses = moved(addresses, first * access.bytes, &mut room);
            let now = self.clocks.now(self.group + 1, number).private(access.is_local);
            let wanted = request(access, &now, active, addresses, count);
            let take = |element: usize, lane: usize| {
                let bits = wave.vectors[usize::from(data) + first + element][lane / PART][lane % PART];
                u64::from(if access.half == Some(Half::High) { bits >> 16 } else { bits })
            };
            let stored = match access.bytes {
                1 => self.memory.store::<1>(&wanted, take),
                2 => self.memory.store::<2>(&wanted, take),
                _ => self.memory.store::<4>(&wanted, take),
            };
            match stored {
                Err(trouble) if access.allows(&trouble) => {
                    self.memory.watch_bytes(wanted.space);
                    for byte in 0..access.bytes {
                        let mut room = [0; MOST_LANES];
                        let wanted = request(access, &now, active, moved(addresses, byte, &mut room), 1);
                        self.memory.store::<1>(&wanted, |_, lane| take(0, lane) >> (8 * byte))?;
                    }
                }
                stored => stored?,
            }
        }
        Ok(())
    }

    fn atomic(&mut self, wave: &mut Wave, number: usize, access: &Access, atomic: Atomic) -> Outcome<()> {
        let mut addresses = [0; MOST_LANES];
        wave.addresses(access, access.offsets[0], &mut addresses)?;
        let active = wave.active;
        let words = access.bytes / 4;
        // The operand, and what the old value is compared with.
        let (operand, compared) = match (atomic, access.data) {
            (Atomic::Compare, [Some(first), _]) => (first, Some(first + words as u16)),
            (Atomic::CompareApart, [Some(first), second]) => (first, second),
            (Atomic::CompareFirst, [Some(first), Some(second)]) => (second, Some(first)),
            (_, [first, _]) => (first.unwrap_or_default(), None),
        };
        for register in [Some(operand), compared].into_iter().flatten() {
            wave.must_know(register, access, words)?;
        }
        let mut order: smallvec::SmallVec<[usize; 64]> = lanes_of(active).collect();
        self.schedule.shuffle(&mut order);
        let now = self.clocks.now(self.group + 1, number).private(access.is_local);
        let wanted = request(access, &now, active, &addresses, 1);
        let value = |register: u16, lane: usize| {
            let word = |register: u16| u64::from(wave.vectors[usize::from(register)][lane / PART][lane % PART]);
            if words == 2 { word(register) | word(register + 1) << 32 } else { word(register) }
        };
        let mut old = [0; MOST_LANES];
        let of = |_: usize, lane: usize, bits: u64| {
            old[lane] = bits;
            match (atomic, compared) {
                (Atomic::Of(of), _) => of(bits, value(operand, lane)),
                (_, Some(compared)) if value(compared, lane) != bits => bits,
                _ => value(operand, lane),
            }
        };
        let known = match words {
            1 => self.memory.change::<4>(&wanted, &order, of),
            _ => self.memory.change::<8>(&wanted, &order, of),
        }?;
        if active & !known != 0 {
            return Err(unwritten(active & !known, "what is changed atomically"));
        }
        if let Some(to) = access.to {
            for word in 0..words {
                let register = usize::from(to) + word;
                for lane in lanes_of(active) {
                    wave.vectors[register][lane / PART][lane % PART] = (old[lane] >> (32 * word)) as u32;
                }
                wave.mark(register, active, [Mask::MAX; 4]);
            }
        }
        Ok(())
    }
}

impl Access {
    /// Whether the hardware carries out the access all the same: code for `amdhsa` runs in unaligned access mode.
    fn allows(&self, trouble: &Trouble) -> bool {
        trouble.kind == FaultKind::Misaligned && matches!(self.kind, TransferKind::Load | TransferKind::Store)
    }
}

fn request<'a>(
    access: &Access,
    now: &'a crate::lanes::clock::Now<'a>,
    mask: Mask,
    addresses: &'a Addresses,
    count: usize,
) -> memory::Access<'a> {
    memory::Access {
        now,
        space: if access.is_local { Space::Local } else { Space::Global },
        mask,
        addresses,
        count,
        origins: access.origins,
        is_strong: access.is_strong,
        is_constant: false,
    }
}

/// How a vector of elements is accessed: all at once where it is aligned as a whole, else one by one.
#[inline(always)]
fn pieces(access: &Access, addresses: &Addresses, active: Mask) -> impl Iterator<Item = (usize, usize)> + use<> {
    let (size, count) = (access.bytes * access.count, access.count);
    let is_aligned = || {
        let mut together = 0;
        for (lane, address) in addresses.iter().enumerate() {
            together |= address & (active >> lane & 1).wrapping_neg();
        }
        together & (size as u64 - 1) == 0
    };
    let at_once = count == 1 || size.is_power_of_two() && count <= MOST_ELEMENTS && is_aligned();
    let step = if at_once { count } else { 1 };
    (0..count).step_by(step).map(move |first| (first, step))
}

/// The addresses of a later element.
fn moved<'a>(addresses: &'a Addresses, by: usize, room: &'a mut Addresses) -> &'a Addresses {
    if by == 0 {
        return addresses;
    }
    for (to, from) in room.iter_mut().zip(addresses) {
        *to = from.wrapping_add(by as u64);
    }
    room
}

/// A loaded element, extended to a register.
#[inline]
fn extended(bits: u64, access: &Access) -> u32 {
    match (access.is_signed, access.bytes) {
        (true, 1) => i32::from(bits as i8) as u32,
        (true, 2) => i32::from(bits as i16) as u32,
        _ => bits as u32,
    }
}

impl Wave {
    /// The addresses of the lanes.
    #[inline(always)]
    pub(super) fn addresses(&self, access: &Access, offset: i64, addresses: &mut Addresses) -> Outcome<()> {
        let register =
            |register: u16| (&self.vectors[usize::from(register)], self.known_lanes_of(usize::from(register), 0b1111));
        let (addresses, _) = addresses.as_chunks_mut::<PART>();
        let parts = addresses.iter_mut().take(self.parts);
        let known = match access.base {
            Base::Each(first) => {
                let ((low, low_known), (high, high_known)) = (register(first), register(first + 1));
                for (addresses, (low, high)) in parts.zip(low.iter().zip(high)) {
                    for lane in 0..PART {
                        let base = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                        addresses[lane] = base.wrapping_add_signed(offset);
                    }
                }
                low_known & high_known
            }
            Base::Shared { first, each } => {
                let (words, known) = register(each);
                let base = self.scalar(first, 2).wrapping_add_signed(offset);
                for (addresses, words) in parts.zip(words) {
                    for lane in 0..PART {
                        addresses[lane] = base.wrapping_add(words[lane].into());
                    }
                }
                if self.unknown_bits(first, 2) == 0 { known } else { 0 }
            }
            Base::Local(each) => {
                let (words, known) = register(each);
                for (addresses, words) in parts.zip(words) {
                    for lane in 0..PART {
                        // The sum wraps at 32 bits: compilers use negative bases.
                        addresses[lane] = u64::from(words[lane].wrapping_add(offset as u32)) + LOCAL_BASE;
                    }
                }
                known
            }
            Base::Scratch { each, shared } => {
                let base = shared.map_or(0, |shared| self.scalar(shared, 1) as u32).wrapping_add(offset as u32);
                let is_known = shared.is_none_or(|shared| self.unknown_bits(shared, 1) == 0);
                let each = each.map(register);
                for (number, addresses) in parts.enumerate() {
                    for lane in 0..PART {
                        let own = each.map_or(0, |(words, _)| words[number][lane]);
                        addresses[lane] = base.wrapping_add(own).into();
                    }
                }
                if is_known { each.map_or(Mask::MAX, |(_, known)| known) } else { 0 }
            }
            Base::Scalar { .. } => self.active,
        };
        match self.active & !known {
            0 => Ok(()),
            lanes => Err(unwritten(lanes, "an address")),
        }
    }

    /// Writes a loaded element to a register.
    #[inline(always)]
    pub(super) fn receive(&mut self, access: &Access, register: usize, values: &Addresses, active: Mask) {
        if access.half.is_none() {
            let (values, _) = values.as_chunks::<PART>();
            for (part, (to, values)) in self.vectors[register].iter_mut().zip(values).enumerate().take(self.parts) {
                let mask = (active >> (PART * part)) as u32;
                match (access.is_signed, access.bytes) {
                    (true, 1 | 2) => choose(to, mask, |lane| extended(values[lane], access)),
                    _ => choose(to, mask, |lane| values[lane] as u32),
                }
            }
            return;
        }
        let mut words: [Words; 2] = [[0; PART]; 2];
        for lane in lanes_of(active) {
            words[lane / PART][lane % PART] = extended(values[lane], access);
        }
        let half = access.half.unwrap_or(Half::Low);
        self.put_half(register, (half, false), &words, active, [0; 2]);
    }

    /// Records which bytes of a register are written after a load; `known` has the lanes in which each loaded byte is.
    pub(super) fn mark_received(&mut self, access: &Access, register: usize, known: &[Mask], active: Mask) {
        let beyond = if access.is_signed { known[access.bytes - 1] } else { Mask::MAX };
        let extended = std::array::from_fn(|byte| if byte < access.bytes { known[byte] } else { beyond });
        match access.half {
            None => self.mark(register, active, extended),
            Some(half) => self.mark_half(register, half, active, [extended[0], extended[1]]),
        }
    }

    /// Checks that stored values are known.
    fn must_know(&self, data: u16, access: &Access, count: usize) -> Outcome<()> {
        let bytes = if access.bytes < 4 { (1 << access.bytes) - 1 } else { 0b1111 };
        let needs = if access.half == Some(Half::High) { bytes << 2 } else { bytes };
        for register in usize::from(data)..usize::from(data) + count {
            let known = self.known_lanes_of(register, needs);
            if self.active & !known != 0 {
                return Err(unwritten(self.active & !known, "a value that is stored"));
            }
        }
        Ok(())
    }
}

/// Lanes read each other's registers.
fn permute(wave: &mut Wave, access: &Access, kind: Permutation) -> Outcome<()> {
    let [to, data] = [access.to, access.data[0]].map(|register| usize::from(register.unwrap_or_default()));
    let width = PART * wave.parts;
    let active = wave.active;
    let mut from = [None; MOST_LANES];
    let named = |lane: usize, wave: &Wave| -> Outcome<usize> {
        let Base::Local(register) = access.base else { return Ok(lane) };
        if unknown_in(&wave.known[usize::from(register)], lane) != 0 {
            return Err(unwritten(1 << lane, "the number of a lane"));
        }
        let address = wave.vectors[usize::from(register)][lane / PART][lane % PART];
        Ok((address.wrapping_add(access.offsets[0] as u32) / 4) as usize % width)
    };
    for lane in lanes_of(active) {
        match kind {
            Permutation::From => from[lane] = Some(named(lane, wave)?),
            Permutation::To => from[named(lane, wave)?] = Some(lane),
            Permutation::Swizzle => from[lane] = Some(swizzled(lane, access.swizzle)),
        }
    }
    let (old, old_known) = (wave.vectors[data], wave.known[data]);
    for lane in lanes_of(active) {
        // Inactive lanes read as 0.
        let source = from[lane].filter(|&source| active >> source & 1 == 1);
        wave.vectors[to][lane / PART][lane % PART] = source.map_or(0, |source| old[source / PART][source % PART]);
        wave.mark(to, 1 << lane, known_of(source.map_or(0, |source| unknown_in(&old_known, source))));
    }
    Ok(())
}

/// The lane that a lane reads: of its four, or by bits of its number among 32.
fn swizzled(lane: usize, bits: u16) -> usize {
    let bits = usize::from(bits);
    if bits & 0x8000 != 0 {
        return lane & !3 | bits >> (2 * (lane & 3)) & 3;
    }
    let (and, or, xor) = (bits & 31, bits >> 5 & 31, bits >> 10 & 31);
    lane & !31 | ((lane & 31 & and | or) ^ xor)
}
