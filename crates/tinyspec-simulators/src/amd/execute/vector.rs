//! Vector instructions: operands are fetched and their modifiers applied, the function of the lanes is called, and the results
//! of active lanes are written.

use super::super::decode::{Dpp, MaskOut, Select, Source, SourcePlace, To, Vector};
use super::super::kind::Kind;
use super::super::lanes::{Function, Longs, PART, Words};
use super::super::text::{Half, register};
use super::super::wave::Wave;
use super::Outcome;
use crate::lanes::Mask;
use crate::lanes::registers::FILLS;

/// What an instruction has computed, before it is written.
pub(super) struct Computed {
    words: [Words; 2],
    /// The second registers of pairs, where the function takes each register by itself.
    above: [Words; 2],
    /// Results of functions of 64 bits.
    longs: [Longs; 2],
    /// Lanes that are written.
    lanes: Mask,
    /// Lanes whose low half and whose high half are known; of a pair, its registers.
    known: [Mask; 2],
    mask: Mask,
    /// Lanes of the mask that are known.
    mask_known: Mask,
}

/// Scratch space for the operands and the results of an instruction: to clear it each time would take longer than the rest.
pub(super) struct Room {
    words: [Words; 3],
    longs: [Longs; 3],
    computed: [Computed; 2],
}

impl Room {
    pub fn new() -> Box<Room> {
        let computed = || Computed {
            words: [[0; PART]; 2],
            above: [[0; PART]; 2],
            longs: [[0; PART]; 2],
            lanes: 0,
            known: [0; 2],
            mask: 0,
            mask_known: 0,
        };
        Box::new(Room { words: [[0; PART]; 3], longs: [[0; PART]; 3], computed: [computed(), computed()] })
    }
}

#[inline]
fn part_of(mask: Mask, part: usize) -> u32 {
    (mask >> (PART * part)) as u32
}

/// Writes the lanes of a mask.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "the bound lets `value` index without checks")]
pub(super) fn choose(words: &mut Words, mask: u32, value: impl Fn(usize) -> u32) {
    if mask == u32::MAX {
        for lane in 0..PART {
            words[lane] = value(lane);
        }
    } else {
        for lane in 0..PART {
            let takes = (mask >> lane & 1).wrapping_neg();
            words[lane] = words[lane] & !takes | value(lane) & takes;
        }
    }
}

impl Wave {
    #[inline(always)]
    pub(super) fn vector(&mut self, vector: &Vector, room: &mut Room) -> Outcome<()> {
        let [out, _] = &mut room.computed;
        // The common case.
        if let (Function::Words(of), To::Word(register), None, false) =
            (vector.function, vector.to, &vector.lanes, vector.clamps)
        {
            let lanes = self.active;
            for part in 0..self.parts {
                of(&self.words(vector, part, &mut room.words), &mut out.words[part]);
            }
            let all = (0..vector.count).fold(Mask::MAX, |all, number| all & self.known_lanes(vector, number));
            let mut known = [all; 2];
            if vector.follows && lanes & !all != 0 {
                known = self.followed(vector, out, &mut room.words);
            }
            self.merge(usize::from(register), &out.words, lanes);
            self.mark(usize::from(register), lanes, known);
            return Ok(());
        }
        self.compute(vector, &mut room.words, &mut room.longs, out);
        self.write(vector, out)
    }

    /// Both halves read before either writes.
    pub(super) fn dual(&mut self, both: &[Vector; 2], room: &mut Room) -> Outcome<()> {
        for (vector, out) in both.iter().zip(&mut room.computed) {
            self.compute(vector, &mut room.words, &mut room.longs, out);
        }
        for (vector, out) in both.iter().zip(&mut room.computed) {
            self.write(vector, out)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn compute(&self, vector: &Vector, words: &mut [Words; 3], longs: &mut [Longs; 3], out: &mut Computed) {
        let mut lanes = self.active;
        if let Some(dpp) = &vector.lanes {
            lanes = self.enabled(dpp);
        }
        let (mask_in, mask_in_known) = match vector.mask_in {
            Some(register) => {
                let count = self.parts as u16;
                (self.scalar(register, count), !self.unknown_bits(register, count))
            }
            None => (0, Mask::MAX),
        };
        let mut mask = 0;
        for part in 0..self.parts {
            let place = PART * part;
            match vector.function {
                Function::Words(of) => of(&self.words(vector, part, words), &mut out.words[part]),
                Function::TestWords(of) => mask |= Mask::from(of(&self.words(vector, part, words))) << place,
                Function::CarryWords(of) => {
                    let from = self.words(vector, part, words);
                    mask |= Mask::from(of(&from, part_of(mask_in, part), &mut out.words[part])) << place;
                }
                Function::Select => {
                    let [zero, one, _] = self.words(vector, part, words);
                    let mask = part_of(mask_in, part);
                    for lane in 0..PART {
                        let takes = (mask >> lane & 1).wrapping_neg();
                        out.words[part][lane] = zero[lane] & !takes | one[lane] & takes;
                    }
                }
                Function::Table => {
                    let [a, b, c] = self.words(vector, part, words);
                    for lane in 0..PART {
                        out.words[part][lane] = looked_up(vector.table, a[lane], b[lane], c[lane]);
                    }
                }
                Function::Longs(of) => {
                    self.longs(vector, part, longs);
                    of(&longs.each_ref(), &mut out.longs[part]);
                    // The result may be a single register.
                    if vector.kind.count() == 1 {
                        for lane in 0..PART {
                            out.words[part][lane] = out.longs[part][lane] as u32;
                        }
                    }
                }
                Function::Pairs(of) => {
                    of(&self.of_pairs(vector, part, 0, words), &mut out.words[part]);
                    of(&self.of_pairs(vector, part, 1, words), &mut out.above[part]);
                }
                Function::TestLongs(of) => {
                    self.longs(vector, part, longs);
                    mask |= Mask::from(of(&longs.each_ref())) << place;
                }
                Function::CarryLongs(of) => {
                    self.longs(vector, part, longs);
                    let carried = of(&longs.each_ref(), part_of(mask_in, part), &mut out.longs[part]);
                    mask |= Mask::from(carried) << place;
                }
            }
        }
        let mut known = [mask_in_known; 2];
        if matches!(vector.function, Function::Select) {
            let [zero, one] = [self.halves(vector, 0), self.halves(vector, 1)];
            let chosen = |half: usize| !mask_in & zero[half] | mask_in & one[half];
            known = [mask_in_known & chosen(0), mask_in_known & chosen(1)];
        } else {
            let all = (0..vector.count).fold(mask_in_known, |all, number| all & self.known_lanes(vector, number));
            known = [known[0] & all, known[1] & all];
            if lanes & !all != 0 {
                if vector.follows {
                    known = self.followed(vector, out, words);
                } else if matches!(vector.kind, Kind::U64 | Kind::I64) {
                    known[0] |= mask_in_known & self.low_known(vector);
                }
            }
        }
        (out.lanes, out.known, out.mask, out.mask_known) = (lanes, known, mask, known[0] & known[1]);
    }

    /// The lanes that are written with DPP.
    fn enabled(&self, dpp: &Dpp) -> Mask {
        let mut lanes = self.active & dpp.enabled;
        if !dpp.zero {
            for lane in crate::lanes::lanes_of(lanes) {
                if self.source_lane(dpp, lane).is_none() {
                    lanes &= !(1 << lane);
                }
            }
        }
        lanes
    }

    /// The lane that a lane reads, if there is one and it may be read.
    fn source_lane(&self, dpp: &Dpp, lane: usize) -> Option<usize> {
        let from = usize::from(dpp.from[lane]);
        (from < 64 && (dpp.reads_inactive || self.active >> from & 1 == 1)).then_some(from)
    }

    /// Lanes in which the low words of all operands are known, which alone decide the low word of a sum or a product.
    #[cold]
    fn low_known(&self, vector: &Vector) -> Mask {
        (0..vector.count).fold(Mask::MAX, |all, number| {
            let [low, high] = self.halves(vector, number);
            all & low & if vector.from[number].kind.count() == 2 { Mask::MAX } else { high }
        })
    }

    /// Lanes in which everything that is read of an operand is known.
    #[inline(always)]
    fn known_lanes(&self, vector: &Vector, number: usize) -> Mask {
        let [low, high] = self.halves(vector, number);
        low & high
    }

    /// Lanes in which the low half and lanes in which the high half of an operand is known or not read; of a pair, its registers.
    #[inline(always)]
    fn halves(&self, vector: &Vector, number: usize) -> [Mask; 2] {
        let source = &vector.from[number];
        let halves = match source.place {
            SourcePlace::Vector(register) => {
                let register = usize::from(register);
                let all = |[low, high]: [Mask; 2]| low & high;
                match source.kind.count() {
                    2 => [all(self.known[register]), all(self.known[register + 1])],
                    _ => self.known[register],
                }
            }
            SourcePlace::Scalar(register) => {
                let count = source.kind.count();
                let unknown = self.unknown_bits(register, count);
                let half = if count == 2 { 0xffff_ffff } else { 0xffff };
                [unknown & half, unknown & !half].map(|bits| if bits == 0 { Mask::MAX } else { 0 })
            }
            SourcePlace::Value(_) => return [Mask::MAX; 2],
            SourcePlace::Flag(_) => return [if self.condition_known { Mask::MAX } else { 0 }; 2],
        };
        let mut needed = match source.needs {
            [true, true] => halves,
            // One half is all of the operand.
            [true, false] => [halves[0], Mask::MAX],
            [false, true] => [halves[1], Mask::MAX],
            [false, false] => [Mask::MAX; 2],
        };
        if let (Some(dpp), 0) = (&vector.lanes, number) {
            for half in &mut needed {
                let known = *half;
                *half = (0..64).fold(0, |all, lane| {
                    let is_known = self.source_lane(dpp, lane).is_none_or(|from| known >> from & 1 == 1);
                    all | Mask::from(is_known) << lane
                });
            }
        }
        needed
    }

    /// The operands of a part of the wave.
    #[inline(always)]
    fn words<'a>(&'a self, vector: &Vector, part: usize, operands: &'a mut [Words; 3]) -> [&'a Words; 3] {
        for (number, operand) in operands.iter_mut().enumerate().take(vector.count) {
            if !(vector.from[number].is_plain && (number > 0 || vector.lanes.is_none())) {
                self.fill(vector, number, part, operand);
            }
        }
        let operands = &*operands;
        std::array::from_fn(|number| match vector.from[number] {
            Source { is_plain: true, place: SourcePlace::Vector(register), .. }
                if number > 0 || vector.lanes.is_none() =>
            {
                &self.vectors[usize::from(register)][part]
            }
            _ => &operands[number],
        })
    }

    /// Fetches an operand that is not a plain register.
    #[inline(always)]
    fn fill(&self, vector: &Vector, number: usize, part: usize, out: &mut Words) {
        let source = &vector.from[number];
        match source.place {
            SourcePlace::Vector(register) => match &vector.lanes {
                Some(dpp) if number == 0 => {
                    for (lane, out) in out.iter_mut().enumerate() {
                        let from = self.source_lane(dpp, PART * part + lane);
                        let value = |from: usize| self.vectors[usize::from(register)][from / PART][from % PART];
                        *out = from.map_or(0, value);
                    }
                }
                _ => *out = self.vectors[usize::from(register)][part],
            },
            SourcePlace::Scalar(register) => *out = [self.scalar(register, 1) as u32; PART],
            SourcePlace::Value(value) => *out = [value as u32; PART],
            SourcePlace::Flag(_) => *out = [u32::from(self.condition); PART],
        }
        match source.select {
            Select::All | Select::Of(Half::Low) | Select::Pair(Half::Low, Half::High) => {}
            Select::Of(Half::High) | Select::Word(Half::High, false) => each(out, |bits| bits >> 16),
            Select::Word(Half::Low, false) => each(out, |bits| bits & 0xffff),
            Select::Word(Half::Low, true) => each(out, |bits| i32::from(bits as i16) as u32),
            Select::Word(Half::High, true) => each(out, |bits| (bits as i32 >> 16) as u32),
            Select::Byte(byte, false) => each(out, |bits| bits >> (8 * byte) & 0xff),
            Select::Byte(byte, true) => each(out, |bits| i32::from((bits >> (8 * byte)) as i8) as u32),
            Select::Pair(Half::Low, Half::Low) => each(out, |bits| bits & 0xffff | bits << 16),
            Select::Pair(Half::High, Half::High) => each(out, |bits| bits >> 16 | bits & 0xffff_0000),
            Select::Pair(Half::High, Half::Low) => each(out, |bits| bits.rotate_left(16)),
        }
        if source.kind == Kind::Mixed && source.select != Select::All {
            each(out, |bits| super::super::arithmetic::widen(bits & 0xffff).to_bits());
        }
        let sign = match source.kind {
            Kind::F16 | Kind::B16 => 0x8000,
            _ => 0x8000_0000,
        };
        if source.absolute {
            each(out, |bits| bits & !sign);
        }
        if source.negative {
            each(out, |bits| bits ^ sign);
        }
        let [low, high] = source.negative_parts;
        let flips = u32::from(low) << 15 | u32::from(high) << 31;
        if flips != 0 {
            each(out, |bits| bits ^ flips);
        }
    }

    /// The operands of the first (0) or the second register of a pair.
    #[inline(always)]
    fn of_pairs<'a>(
        &'a self,
        vector: &Vector,
        part: usize,
        number: usize,
        operands: &'a mut [Words; 3],
    ) -> [&'a Words; 3] {
        // Which register of the operand is meant, and whether it can be read where it is.
        let chosen = |source: &Source| match source.select {
            Select::Pair(low, high) => u16::from([low, high][number] == Half::High),
            _ => number as u16,
        };
        let is_plain = |source: &Source| !source.negative_parts[number] && vector.lanes.is_none();
        for (source, out) in vector.from.iter().zip(operands.iter_mut()).take(vector.count) {
            match source.place {
                SourcePlace::Vector(_) if is_plain(source) => continue,
                SourcePlace::Vector(register) => {
                    let words = &self.vectors[usize::from(register + chosen(source))];
                    *out = std::array::from_fn(|lane| {
                        let lane = PART * part + lane;
                        let from = match &vector.lanes {
                            Some(dpp) if std::ptr::eq(source, &vector.from[0]) => self.source_lane(dpp, lane),
                            _ => Some(lane),
                        };
                        from.map_or(0, |from| words[from / PART][from % PART])
                    });
                }
                SourcePlace::Scalar(register) => {
                    *out = [(self.scalar(register, 2) >> (32 * chosen(source))) as u32; PART]
                }
                SourcePlace::Value(value) => *out = [(value >> (32 * chosen(source))) as u32; PART],
                SourcePlace::Flag(_) => *out = [u32::from(self.condition && chosen(source) == 0); PART],
            }
            if source.negative_parts[number] {
                each(out, |bits| bits ^ 1 << 31);
            }
        }
        let operands = &*operands;
        std::array::from_fn(|place| match vector.from[place] {
            source @ Source { place: SourcePlace::Vector(register), .. }
                if place < vector.count && is_plain(&source) =>
            {
                &self.vectors[usize::from(register + chosen(&source))][part]
            }
            _ => &operands[place],
        })
    }

    /// The operands of a function of pairs as one number.
    #[inline(always)]
    fn longs(&self, vector: &Vector, part: usize, all: &mut [Longs; 3]) {
        for (number, out) in all.iter_mut().enumerate().take(vector.count) {
            let source = &vector.from[number];
            if source.kind.count() == 1 {
                let mut words = [0; PART];
                self.fill(vector, number, part, &mut words);
                for lane in 0..PART {
                    out[lane] = words[lane].into();
                }
                continue;
            }
            match source.place {
                SourcePlace::Vector(register) => {
                    let register = usize::from(register);
                    let (low, high) = (&self.vectors[register][part], &self.vectors[register + 1][part]);
                    for (out, (low, high)) in out.iter_mut().zip(low.iter().zip(high)) {
                        *out = u64::from(*low) | u64::from(*high) << 32;
                    }
                    if let (Some(dpp), 0) = (&vector.lanes, number) {
                        for (lane, out) in out.iter_mut().enumerate() {
                            let from = self.source_lane(dpp, PART * part + lane);
                            let value = |register: usize, from: usize| self.vectors[register][from / PART][from % PART];
                            *out = from.map_or(0, |from| {
                                u64::from(value(register, from)) | u64::from(value(register + 1, from)) << 32
                            });
                        }
                    }
                }
                SourcePlace::Scalar(register) => *out = [self.scalar(register, 2); PART],
                SourcePlace::Value(value) => *out = [value; PART],
                SourcePlace::Flag(_) => *out = [u64::from(self.condition); PART],
            }
            if let Select::Pair(low, high) = source.select
                && (low, high) != (Half::Low, Half::High)
            {
                let half = |bits: u64, half: Half| if half == Half::High { bits >> 32 } else { bits & 0xffff_ffff };
                for bits in out.iter_mut() {
                    *bits = half(*bits, low) | half(*bits, high) << 32;
                }
            }
            let [low, high] = source.negative_parts;
            let mut flips = u64::from(low) << 31 | u64::from(high) << 63;
            if source.absolute {
                out.iter_mut().for_each(|bits| *bits &= !(1 << 63));
            }
            if source.negative {
                flips ^= 1 << 63;
            }
            if flips != 0 {
                out.iter_mut().for_each(|bits| *bits ^= flips);
            }
        }
    }

    /// Of operands that are unknown in part: which halves of the result do not depend on that.
    #[cold]
    fn followed(&self, vector: &Vector, computed: &Computed, operands: &mut [Words; 3]) -> [Mask; 2] {
        let mut known = [Mask::MAX; 2];
        for fill in FILLS {
            for part in 0..self.parts {
                let (mut low_lost, mut high_lost) = (0u32, 0u32);
                match vector.function {
                    Function::Words(of) => {
                        let out = &computed.words;
                        let mut filled = self.words(vector, part, operands).map(|words| *words);
                        for (number, words) in filled.iter_mut().enumerate().take(vector.count) {
                            let lost = self.unknown_words(vector, number, part);
                            for lane in 0..PART {
                                words[lane] = words[lane] & !lost[lane] | fill as u32 & lost[lane];
                            }
                        }
                        let mut other = [0; PART];
                        of(&[&filled[0], &filled[1], &filled[2]], &mut other);
                        for lane in 0..PART {
                            let differs = other[lane] ^ out[part][lane];
                            low_lost |= u32::from(differs & 0xffff != 0) << lane;
                            high_lost |= u32::from(differs >> 16 != 0) << lane;
                        }
                    }
                    Function::Longs(of) => {
                        let out = &computed.longs;
                        let mut filled = [[0; PART]; 3];
                        self.longs(vector, part, &mut filled);
                        for (number, longs) in filled.iter_mut().enumerate().take(vector.count) {
                            let [low, high] = self.halves(vector, number);
                            for (lane, bits) in longs.iter_mut().enumerate() {
                                let is_lost = |known: Mask| known >> (PART * part + lane) & 1 == 0;
                                let lost = match vector.from[number].kind.count() {
                                    2 => {
                                        let words =
                                            [is_lost(low), is_lost(high)].map(|lost| if lost { u32::MAX } else { 0 });
                                        u64::from(words[0]) | u64::from(words[1]) << 32
                                    }
                                    _ => (u64::from(is_lost(low)) * 0xffff) | (u64::from(is_lost(high)) * 0xffff_0000),
                                };
                                *bits = *bits & !lost | fill & lost;
                            }
                        }
                        let mut other = [0; PART];
                        of(&[&filled[0], &filled[1], &filled[2]], &mut other);
                        for lane in 0..PART {
                            let differs = other[lane] ^ out[part][lane];
                            low_lost |= u32::from(differs & 0xffff_ffff != 0) << lane;
                            high_lost |= u32::from(differs >> 32 != 0) << lane;
                        }
                    }
                    _ => (low_lost, high_lost) = (u32::MAX, u32::MAX),
                }
                known[0] &= !(Mask::from(low_lost) << (PART * part));
                known[1] &= !(Mask::from(high_lost) << (PART * part));
            }
        }
        known
    }

    /// The unwritten bits of an operand, at the positions where they are used.
    fn unknown_words(&self, vector: &Vector, number: usize, part: usize) -> Words {
        let source = &vector.from[number];
        if let (SourcePlace::Scalar(register), Select::All | Select::Of(Half::Low)) = (source.place, source.select) {
            return [self.unknown_bits(register, 1) as u32; PART];
        }
        let is_whole = matches!(source.select, Select::All | Select::Pair(Half::Low, Half::High));
        let [low, high] = self.halves(vector, number);
        std::array::from_fn(|lane| {
            let known = |mask: Mask| mask >> (PART * part + lane) & 1 == 1;
            match (known(low), known(high)) {
                (true, true) => 0,
                (false, true) if is_whole => 0xffff,
                (true, false) if is_whole => 0xffff_0000,
                _ => u32::MAX,
            }
        })
    }

    #[inline(always)]
    fn write(&mut self, vector: &Vector, computed: &mut Computed) -> Outcome<()> {
        let Computed { lanes, known, mask, mask_known, .. } = *computed;
        if let Some(MaskOut { register, active }) = vector.mask_out {
            let count = self.parts as u16;
            // Bits of inactive lanes are 0.
            let (bits, unknown) = (mask & self.active, self.active & !mask_known);
            self.put_scalar(register, bits, count, unknown)?;
            if active {
                self.put_scalar(register::EXEC, bits, count, unknown)?;
            }
        }
        if vector.clamps {
            clamp(vector.kind, computed);
        }
        match vector.to {
            To::Nothing => {}
            To::Word(register) => {
                self.merge(usize::from(register), &computed.words, lanes);
                self.mark(usize::from(register), lanes, known);
            }
            To::Long(register) if matches!(vector.function, Function::Pairs(_)) => {
                for (register, values, known) in
                    [(register, &computed.words, known[0]), (register + 1, &computed.above, known[1])]
                {
                    self.merge(usize::from(register), values, lanes);
                    self.mark(usize::from(register), lanes, [known; 2]);
                }
            }
            To::Long(register) => {
                let register = usize::from(register);
                for part in 0..self.parts {
                    let (mask, longs) = (part_of(lanes, part), &computed.longs[part]);
                    choose(&mut self.vectors[register][part], mask, |lane| longs[lane] as u32);
                    choose(&mut self.vectors[register + 1][part], mask, |lane| (longs[lane] >> 32) as u32);
                }
                self.mark(register, lanes, [known[0]; 2]);
                self.mark(register + 1, lanes, [known[1]; 2]);
            }
            To::Half(register, half, clears) => {
                // Of a narrow result the low half counts.
                let is_narrow = vector.kind.is_narrow();
                let all = if is_narrow { known[0] } else { known[0] & known[1] };
                self.put_half(usize::from(register), (half, clears), &computed.words, lanes, all);
            }
            To::Byte(register, byte, unused) => {
                self.put_byte(usize::from(register), (byte, unused), &computed.words, lanes, known[0]);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn merge(&mut self, register: usize, values: &[Words; 2], lanes: Mask) {
        for (part, (place, values)) in self.vectors[register].iter_mut().zip(values).enumerate().take(self.parts) {
            choose(place, part_of(lanes, part), |lane| values[lane]);
        }
    }

    #[inline(always)]
    pub(super) fn mark(&mut self, register: usize, lanes: Mask, known: [Mask; 2]) {
        let place = &mut self.known[register];
        *place = [place[0] & !lanes | known[0] & lanes, place[1] & !lanes | known[1] & lanes];
    }

    /// Writes a half of a register; the other one is preserved, or cleared.
    pub(super) fn put_half(
        &mut self,
        register: usize,
        (half, clears): (Half, bool),
        values: &[Words; 2],
        lanes: Mask,
        known: Mask,
    ) {
        let (shift, place) = if half == Half::High { (16, 1) } else { (0, 0) };
        let kept = if clears { 0 } else { 0xffff_0000u32 >> shift };
        for lane in crate::lanes::lanes_of(lanes) {
            let to = &mut self.vectors[register][lane / PART][lane % PART];
            *to = *to & kept | (values[lane / PART][lane % PART] & 0xffff) << shift;
        }
        let mut all = self.known[register];
        all[place] = known;
        if clears {
            all[1 - place] = Mask::MAX;
        }
        self.mark(register, lanes, all);
    }

    fn put_byte(
        &mut self,
        register: usize,
        (byte, unused): (u8, super::super::decode::Unused),
        values: &[Words; 2],
        lanes: Mask,
        known: Mask,
    ) {
        use super::super::decode::Unused;
        let shift = 8 * byte;
        for lane in crate::lanes::lanes_of(lanes) {
            let to = &mut self.vectors[register][lane / PART][lane % PART];
            let value = values[lane / PART][lane % PART] & 0xff;
            let others = match unused {
                Unused::Kept => *to & !(0xff << shift),
                Unused::Zero => 0,
                Unused::Sign => ((i32::from(value as i8) as u32) << shift) & !(0xff << shift),
            };
            *to = others | value << shift;
        }
        let before = self.known[register];
        let all = match unused {
            Unused::Kept => before.map(|before| before & known),
            _ => [known; 2],
        };
        self.mark(register, lanes, all);
    }
}

/// Looks each bit up in the truth table.
fn looked_up(table: u8, a: u32, b: u32, c: u32) -> u32 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |bits, row| {
        let as_in_row = |word: u32, bit: u32| if row >> bit & 1 == 1 { word } else { !word };
        bits | as_in_row(a, 2) & as_in_row(b, 1) & as_in_row(c, 0)
    })
}

fn each(words: &mut Words, of: impl Fn(u32) -> u32) {
    for bits in words {
        *bits = of(*bits);
    }
}

/// Between 0 and 1; nan becomes 0.
fn clamp(kind: Kind, computed: &mut Computed) {
    let single = |bits: u32| {
        let value = f32::from_bits(bits);
        if value > 0.0 { value.min(1.0).to_bits() } else { 0 }
    };
    let half = |bits: u32| {
        use super::super::arithmetic::widen;
        let value = widen(bits & 0xffff);
        if value > 1.0 {
            0x3c00
        } else if value > 0.0 {
            bits & 0xffff
        } else {
            0
        }
    };
    let double = |bits: u64| {
        let value = f64::from_bits(bits);
        if value > 0.0 { value.min(1.0).to_bits() } else { 0 }
    };
    match kind {
        Kind::PairF32 => {
            computed.words.iter_mut().chain(&mut computed.above).flatten().for_each(|bits| *bits = single(*bits));
        }
        Kind::F64 => computed.longs.iter_mut().flatten().for_each(|bits| *bits = double(*bits)),
        Kind::F16 => computed.words.iter_mut().flatten().for_each(|bits| *bits = half(*bits)),
        Kind::PairF16 => computed.words.iter_mut().flatten().for_each(|bits| {
            *bits = half(*bits) | half(*bits >> 16) << 16;
        }),
        _ => computed.words.iter_mut().flatten().for_each(|bits| *bits = single(*bits)),
    }
}
