//! Scalar instructions, and those that move data between lanes and scalar registers.

use super::super::decode::{ScalarFrom, ScalarStep, SourcePlace};
use super::super::lanes::PART;
use super::super::table::{Condition, Follows};
use super::super::text::Flag;
use super::super::wave::{Wave, known_of, unknown_in};
use super::{Outcome, unwritten};
use crate::lanes::Mask;
use crate::lanes::registers::FILLS;

impl Wave {
    fn flag(&self, flag: Flag) -> (u64, u64) {
        let holds = match flag {
            Flag::Scc => return (self.condition.into(), if self.condition_known { 0 } else { u64::MAX }),
            Flag::Execz => self.active == 0,
            Flag::Vccz => self.scalar(super::register::VCC, self.parts as u16) == 0,
        };
        (holds.into(), 0)
    }

    /// A scalar operand, and its unwritten bits.
    #[inline]
    pub(super) fn scalar_from(&self, from: ScalarFrom) -> (u64, u64) {
        match from {
            ScalarFrom::Register { first, count } => (self.scalar(first, count), self.unknown_bits(first, count)),
            ScalarFrom::Value(value) => (value, 0),
            ScalarFrom::Flag(flag) => self.flag(flag),
        }
    }

    pub(super) fn scalar_step(&mut self, step: &ScalarStep) -> Outcome<()> {
        let row = &step.row;
        let (mut from, mut unknown) = ([0; 3], [0; 3]);
        for (number, &operand) in step.from.iter().enumerate() {
            (from[number], unknown[number]) = self.scalar_from(operand);
        }
        let (value, condition) = (row.compute)(from, self.condition);
        let reads_condition = matches!(row.condition, Condition::Read | Condition::Both);
        let is_known = unknown == [0; 3] && (!reads_condition || self.condition_known);
        let (mut lost, mut condition_known) = (0, true);
        if !is_known {
            (lost, condition_known) = self.lost(step, from, unknown, value);
        }
        let saved = row.saves_active.then(|| self.scalar_from(step.from[1]));
        if let Some((register, count)) = step.to {
            match saved {
                // The old EXEC first, then the new one.
                Some((bits, unknown)) => {
                    self.put_scalar(register, bits, count, unknown)?;
                    self.put_scalar(super::register::EXEC, value, count, lost)?;
                }
                None => self.put_scalar(register, value, count, lost)?,
            }
        }
        if matches!(row.condition, Condition::Written | Condition::Both) {
            (self.condition, self.condition_known) = (condition, condition_known);
        }
        Ok(())
    }

    /// The bits of the result that depend on unwritten bits, and whether SCC is known all the same.
    #[cold]
    fn lost(&self, step: &ScalarStep, from: [u64; 3], unknown: [u64; 3], value: u64) -> (u64, bool) {
        let row = &step.row;
        let reads_condition = matches!(row.condition, Condition::Read | Condition::Both);
        if reads_condition && !self.condition_known {
            return (u64::MAX, false);
        }
        match row.follows {
            Follows::All => return (u64::MAX, false),
            Follows::Upward => {
                let lowest = unknown.iter().fold(0, |all, bits| all | bits).trailing_zeros();
                return (u64::MAX.checked_shl(lowest).unwrap_or(0), false);
            }
            Follows::Bits => {}
        }
        // Bits that change when the unwritten ones do.
        let mut lost = 0;
        for fill in FILLS {
            let filled = std::array::from_fn(|number| from[number] & !unknown[number] | fill & unknown[number]);
            lost |= (row.compute)(filled, self.condition).0 ^ value;
        }
        // SCC says whether the result is 0: one known bit is enough.
        (lost, lost == 0 || value & !lost != 0)
    }

    /// The value of an operand in one lane, and its unwritten bits.
    fn lane_of(&self, from: SourcePlace, lane: usize) -> (u32, u32) {
        match from {
            SourcePlace::Vector(register) => {
                let register = usize::from(register);
                (self.vectors[register][lane / PART][lane % PART], unknown_in(&self.known[register], lane))
            }
            SourcePlace::Scalar(register) => (self.scalar(register, 1) as u32, self.unknown_bits(register, 1) as u32),
            SourcePlace::Value(value) => (value as u32, 0),
            SourcePlace::Flag(flag) => {
                let (value, unknown) = self.flag(flag);
                (value as u32, unknown as u32)
            }
        }
    }

    pub(super) fn read_lane(&mut self, to: u16, from: SourcePlace, lane: Option<ScalarFrom>) -> Outcome<()> {
        let lane = match lane {
            // The first active lane, or lane 0 if none is.
            None => (self.active.trailing_zeros() as usize) % 64,
            Some(lane) => self.named_lane(lane)?,
        };
        let (value, unknown) = self.lane_of(from, lane);
        self.put_scalar(to, value.into(), 1, unknown.into())
    }

    fn named_lane(&self, lane: ScalarFrom) -> Outcome<usize> {
        let (number, unknown) = self.scalar_from(lane);
        match unknown {
            0 => Ok(number as usize % (PART * self.parts)),
            _ => Err(unwritten(self.active, "the number of a lane")),
        }
    }

    pub(super) fn write_lane(&mut self, to: u16, value: ScalarFrom, lane: ScalarFrom) -> Outcome<()> {
        let lane = self.named_lane(lane)?;
        let (value, unknown) = self.scalar_from(value);
        let to = usize::from(to);
        self.vectors[to][lane / PART][lane % PART] = value as u32;
        self.mark(to, 1 << lane, known_of(unknown as u32));
        Ok(())
    }

    /// How many bits of a mask are below the lane's own, plus a number.
    pub(super) fn count_below(&mut self, to: u16, mask: SourcePlace, add: SourcePlace, upper: bool) -> Outcome<()> {
        let to = usize::from(to);
        for lane in crate::lanes::lanes_of(self.active) {
            let ((mask, mask_unknown), (add, add_unknown)) = (self.lane_of(mask, lane), self.lane_of(add, lane));
            let below = match (upper, lane < PART) {
                (false, true) => (1u32 << lane) - 1,
                (false, false) => u32::MAX,
                (true, true) => 0,
                (true, false) => (1u32 << (lane - PART)) - 1,
            };
            self.vectors[to][lane / PART][lane % PART] = (mask & below).count_ones().wrapping_add(add);
            let is_known = mask_unknown | add_unknown == 0;
            self.mark(to, 1 << lane, [if is_known { Mask::MAX } else { 0 }; 4]);
        }
        Ok(())
    }
}
