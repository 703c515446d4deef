//! Vector instructions: operands are fetched and their modifiers applied, the function of the lanes is called, and the results
//! of active lanes are written.

use super::super::decode::{Dpp, MaskOut, Select, Source, SourcePlace, To, Vector};
use super::super::kind::Kind;
use super::super::lanes::{Function, Longs, PART, Words};
use super::super::text::{Half, register};
use super::super::wave::{KnownBytes, Wave, known_of, unknown_in};
use super::Outcome;
use crate::lanes::Mask;
use crate::lanes::registers::FILLS;

/// The results of an instruction, before they are written.
pub(super) struct Computed {
    words: [Words; 2],
    /// The second registers of pairs, where the function takes each register by itself.
    above: [Words; 2],
    /// Results of functions of 64 bits.
    longs: [Longs; 2],
    /// Lanes that are written.
    lanes: Mask,
    /// Which bytes of the result are known, by register.
    known: [KnownBytes; 2],
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
            known: [[0; 4]; 2],
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
            let all = self.known_lanes(vector);
            let mut known = [all; 4];
            if vector.follows && lanes & !all != 0 {
                [known, _] = self.followed(vector, 0);
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
                Function::Words(_) | Function::Select | Function::Table => {
                    of_words(vector, &self.words(vector, part, words), part_of(mask_in, part), &mut out.words[part])
                }
                Function::TestWords(of) => mask |= Mask::from(of(&self.words(vector, part, words))) << place,
                Function::CarryWords(of) => {
                    let from = self.words(vector, part, words);
                    mask |= Mask::from(of(&from, part_of(mask_in, part), &mut out.words[part])) << place;
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
        let all = match vector.function {
            Function::Select => {
                !mask_in & self.known_operand(vector, 0, u8::MAX) | mask_in & self.known_operand(vector, 1, u8::MAX)
            }
            _ => self.known_lanes(vector),
        };
        let all = all & mask_in_known;
        let mut known = [[all; 4]; 2];
        if lanes & !all != 0 {
            if vector.follows {
                known = self.followed(vector, mask_in).map(|bytes| bytes.map(|known| known & mask_in_known));
            } else if matches!(vector.kind, Kind::U64 | Kind::I64) {
                known[0] = [mask_in_known & self.known_low(vector); 4];
            }
        }
        (out.lanes, out.known, out.mask, out.mask_known) = (lanes, known, mask, all);
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
    fn known_low(&self, vector: &Vector) -> Mask {
        (0..vector.count).fold(Mask::MAX, |all, number| all & self.known_operand(vector, number, 0b1111))
    }

    /// Lanes in which everything that is read is known.
    #[inline(always)]
    fn known_lanes(&self, vector: &Vector) -> Mask {
        (0..vector.count).fold(Mask::MAX, |all, number| all & self.known_operand(vector, number, u8::MAX))
    }

    /// Lanes in which these bytes of an operand are known or not read.
    #[inline(always)]
    fn known_operand(&self, vector: &Vector, number: usize, bytes: u8) -> Mask {
        let source = &vector.from[number];
        let needs = source.needs & bytes;
        let known = match source.place {
            SourcePlace::Vector(register) => {
                let low = self.known_lanes_of(usize::from(register), needs);
                match source.kind.count() {
                    2 => low & self.known_lanes_of(usize::from(register) + 1, needs >> 4),
                    _ => low,
                }
            }
            SourcePlace::Scalar(register) => {
                let unknown = self.unknown_bits(register, source.kind.count());
                let is_lost = |byte: usize| needs >> byte & 1 == 1 && unknown >> (8 * byte) & 0xff != 0;
                return if unknown != 0 && (0..8).any(is_lost) { 0 } else { Mask::MAX };
            }
            SourcePlace::Value(_) => return Mask::MAX,
            SourcePlace::Flag(_) => return if self.condition_known { Mask::MAX } else { 0 },
        };
        match &vector.lanes {
            Some(dpp) if number == 0 => (0..64).fold(0, |all, lane| {
                let is_known = self.source_lane(dpp, lane).is_none_or(|from| known >> from & 1 == 1);
                all | Mask::from(is_known) << lane
            }),
            _ => known,
        }
    }

    /// Lanes in which these bytes of a register are known.
    #[inline(always)]
    pub(super) fn known_lanes_of(&self, register: usize, bytes: u8) -> Mask {
        let known = self.known[register].iter().enumerate();
        known.fold(Mask::MAX, |all, (byte, known)| all & (known | Mask::from(bytes >> byte & 1).wrapping_sub(1)))
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
        self.fetch(vector, number, part, out);
        modify(&vector.from[number], out);
    }

    /// Fetches a register, or what stands for one.
    #[inline(always)]
    fn fetch(&self, vector: &Vector, number: usize, part: usize, out: &mut Words) {
        match vector.from[number].place {
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
            self.fetch_long(vector, number, part, out);
            modify_long(&vector.from[number], out);
        }
    }

    /// Fetches a register pair; a single register is zero-extended.
    #[inline(always)]
    fn fetch_long(&self, vector: &Vector, number: usize, part: usize, out: &mut Longs) {
        if vector.from[number].kind.count() == 1 {
            let mut words = [0; PART];
            self.fetch(vector, number, part, &mut words);
            *out = words.map(u64::from);
            return;
        }
        match vector.from[number].place {
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
    }

    /// Of operands that are unknown in part: which bytes of the result do not depend on that.
    #[cold]
    fn followed(&self, vector: &Vector, mask_in: Mask) -> [KnownBytes; 2] {
        let mut known = [[0; 4]; 2];
        for part in 0..self.parts {
            let (mut values, mut unknown) = ([[0; PART]; 3], [[0; PART]; 3]);
            for number in 0..vector.count {
                self.fetch_long(vector, number, part, &mut values[number]);
                unknown[number] = std::array::from_fn(|lane| self.unknown_in_lane(vector, number, PART * part + lane));
            }
            let results: [Longs; FILLS.len()] = std::array::from_fn(|turn| {
                let mut filled = values;
                for number in 0..vector.count {
                    // Two operands get different values: their difference is as unknown as they are.
                    let fill = FILLS[(turn + number) % FILLS.len()];
                    for (bits, unknown) in filled[number].iter_mut().zip(&unknown[number]) {
                        *bits = *bits & !unknown | fill & unknown;
                    }
                    modify_long(&vector.from[number], &mut filled[number]);
                }
                result(vector, &filled, part_of(mask_in, part))
            });
            for lane in 0..PART {
                let lost = results.iter().fold(0, |lost, result| lost | result[lane] ^ results[0][lane]);
                let of_registers = [lost as u32, (lost >> 32) as u32].map(known_of);
                for (known, of_lane) in known.as_flattened_mut().iter_mut().zip(of_registers.as_flattened()) {
                    *known |= of_lane & 1 << (PART * part + lane);
                }
            }
        }
        known
    }

    /// The unwritten bits of the register, or of the pair of registers, that a lane's operand is in.
    fn unknown_in_lane(&self, vector: &Vector, number: usize, lane: usize) -> u64 {
        let source = &vector.from[number];
        match source.place {
            SourcePlace::Vector(register) => {
                let from = match &vector.lanes {
                    Some(dpp) if number == 0 => self.source_lane(dpp, lane),
                    _ => Some(lane),
                };
                let registers = usize::from(register)..usize::from(register + source.kind.count());
                from.map_or(0, |from| {
                    registers
                        .rev()
                        .fold(0, |bits, register| bits << 32 | u64::from(unknown_in(&self.known[register], from)))
                })
            }
            SourcePlace::Scalar(register) => self.unknown_bits(register, source.kind.count()),
            SourcePlace::Value(_) => 0,
            SourcePlace::Flag(_) => (!self.condition_known).into(),
        }
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
                self.mark(usize::from(register), lanes, known[0]);
            }
            To::Long(register) if matches!(vector.function, Function::Pairs(_)) => {
                for (register, values, known) in
                    [(register, &computed.words, known[0]), (register + 1, &computed.above, known[1])]
                {
                    self.merge(usize::from(register), values, lanes);
                    self.mark(usize::from(register), lanes, known);
                }
            }
            To::Long(register) => {
                let register = usize::from(register);
                for part in 0..self.parts {
                    let (mask, longs) = (part_of(lanes, part), &computed.longs[part]);
                    choose(&mut self.vectors[register][part], mask, |lane| longs[lane] as u32);
                    choose(&mut self.vectors[register + 1][part], mask, |lane| (longs[lane] >> 32) as u32);
                }
                self.mark(register, lanes, known[0]);
                self.mark(register + 1, lanes, known[1]);
            }
            To::Half(register, half, clears) => {
                let [[first, second, ..], _] = known;
                self.put_half(usize::from(register), (half, clears), &computed.words, lanes, [first, second]);
            }
            To::Byte(register, byte, unused) => {
                self.put_byte(usize::from(register), (byte, unused), &computed.words, lanes, known[0][0]);
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
    pub(super) fn mark(&mut self, register: usize, lanes: Mask, known: KnownBytes) {
        for (place, known) in self.known[register].iter_mut().zip(known) {
            *place = *place & !lanes | known & lanes;
        }
    }

    /// Marks a half of a register.
    pub(super) fn mark_half(&mut self, register: usize, half: Half, lanes: Mask, known: [Mask; 2]) {
        let mut all = self.known[register];
        let first = if half == Half::High { 2 } else { 0 };
        all[first..][..2].copy_from_slice(&known);
        self.mark(register, lanes, all);
    }

    /// Writes a half of a register; the other one is preserved, or cleared.
    pub(super) fn put_half(
        &mut self,
        register: usize,
        (half, clears): (Half, bool),
        values: &[Words; 2],
        lanes: Mask,
        known: [Mask; 2],
    ) {
        let shift = if half == Half::High { 16 } else { 0 };
        let kept = if clears { 0 } else { 0xffff_0000u32 >> shift };
        for lane in crate::lanes::lanes_of(lanes) {
            let to = &mut self.vectors[register][lane / PART][lane % PART];
            *to = *to & kept | (values[lane / PART][lane % PART] & 0xffff) << shift;
        }
        if clears {
            self.mark(register, lanes, [Mask::MAX; 4]);
        }
        self.mark_half(register, half, lanes, known);
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
        let mut all = match unused {
            Unused::Kept => self.known[register],
            _ => [Mask::MAX; 4],
        };
        let end = if unused == Unused::Sign { 4 } else { usize::from(byte) + 1 };
        all[usize::from(byte)..end].fill(known);
        self.mark(register, lanes, all);
    }
}

/// Computes words of words and a mask.
#[inline(always)]
fn of_words(vector: &Vector, from: &[&Words; 3], mask: u32, out: &mut Words) {
    match vector.function {
        Function::Words(of) => of(from, out),
        Function::Select => {
            for lane in 0..PART {
                let takes = (mask >> lane & 1).wrapping_neg();
                out[lane] = from[0][lane] & !takes | from[1][lane] & takes;
            }
        }
        Function::Table => {
            for lane in 0..PART {
                out[lane] = looked_up(vector.table, from[0][lane], from[1][lane], from[2][lane]);
            }
        }
        _ => {}
    }
}

/// Selects the part of a register that an operand is, and applies its modifiers.
#[inline(always)]
fn modify(source: &Source, out: &mut Words) {
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

/// As [`modify`].
#[inline(always)]
fn modify_long(source: &Source, out: &mut Longs) {
    if source.kind.count() == 1 {
        let mut words = out.map(|bits| bits as u32);
        modify(source, &mut words);
        *out = words.map(u64::from);
        return;
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

/// The result of a function that [`Wave::followed`] may try, of operands whose modifiers have been applied.
fn result(vector: &Vector, operands: &[Longs; 3], mask: u32) -> Longs {
    if let Function::Longs(of) = vector.function {
        let mut out = [0; PART];
        of(&operands.each_ref(), &mut out);
        return out;
    }
    let (words, mut out) = (operands.map(|operand| operand.map(|bits| bits as u32)), [0; PART]);
    of_words(vector, &words.each_ref(), mask, &mut out);
    out.map(u64::from)
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
