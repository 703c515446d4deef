//! Partly written registers, such as a vector of which only one element was set: tracks which bits of a result depend on unwritten
//! bits.

use super::super::arithmetic::{Shape, WARP};
use super::super::decode::Follows;
use super::warp::Warp;
use crate::lanes::lanes_of;
use crate::lanes::registers::FILLS;
use smallvec::SmallVec;

/// One mask of bits per lane.
pub(super) type Bits = [u64; WARP];

/// An operand's register, with its values and their unwritten bits.
struct Operand {
    is_long: bool,
    register: u32,
    values: Bits,
    unknown: Bits,
}

impl Warp {
    /// Computes with operands that are at least partly unwritten.
    #[cold]
    pub(super) fn compute_in_part(&mut self, shape: &Shape, follows: Follows, to: u32, from: &[u32; 4], active: u32) {
        let (result, sizes) = shape.sizes();
        let is_long = result == b'L';
        let operand = |(size, &register): (u8, &u32)| {
            let is_long = size == b'L';
            let (values, unknown) = (self.bits(is_long, register), self.unknown(is_long, register));
            Operand { is_long, register, values, unknown }
        };
        let operands: SmallVec<[Operand; 4]> = sizes.bytes().zip(from).map(operand).collect();
        let unknown = match follows {
            Follows::Bits => self.tried(shape, is_long, from, active, &operands),
            _ => spread(follows, operands.iter().map(|operand| &operand.unknown)),
        };
        self.compute(shape, Follows::All, to, from, active);
        self.mark_bits(is_long, to, active, &unknown);
    }

    /// The result bits that depend on unwritten operand bits, found by computing with several values for those.
    fn tried(&mut self, shape: &Shape, is_long: bool, from: &[u32; 4], active: u32, operands: &[Operand]) -> Bits {
        let trial = if is_long { self.longs.values.len() } else { self.words.values.len() } as u32 - 1;
        let (mut first, mut differ) = (None, [0; WARP]);
        for fill in FILLS {
            for operand in operands {
                let filled = |lane: usize| operand.values[lane] & !operand.unknown[lane] | fill & operand.unknown[lane];
                self.put_bits(operand.is_long, operand.register, &std::array::from_fn(filled));
            }
            self.compute(shape, Follows::All, trial, from, active);
            let results = self.bits(is_long, trial);
            let first = first.get_or_insert(results);
            for lane in lanes_of(active.into()) {
                differ[lane] |= results[lane] ^ first[lane];
            }
        }
        for operand in operands {
            self.put_bits(operand.is_long, operand.register, &operand.values);
        }
        differ
    }

    /// The unwritten bits of the result of an operation on words, given only those of its operands.
    #[cold]
    pub(super) fn unknown_of(&self, follows: Follows, from: &[u32]) -> Bits {
        let operands: SmallVec<[Bits; 4]> = from.iter().map(|&register| self.words.unknown_bits(register)).collect();
        spread(follows, operands.iter())
    }

    /// The unwritten bits of a select between two registers: those of the first in the lanes `chosen`. In lanes whose choice is
    /// unknown, all bits are.
    #[cold]
    pub(super) fn unknown_of_chosen(&self, is_long: bool, [a, b]: [u32; 2], chosen: u32, chosen_known: u32) -> Bits {
        let both = [self.unknown(is_long, a), self.unknown(is_long, b)];
        std::array::from_fn(|lane| match chosen_known >> lane & 1 {
            1 => both[1 - (chosen >> lane & 1) as usize][lane],
            _ => u64::MAX,
        })
    }

    pub(super) fn unknown(&self, is_long: bool, register: u32) -> Bits {
        if is_long { self.longs.unknown_bits(register) } else { self.words.unknown_bits(register) }
    }

    pub(super) fn mark_bits(&mut self, is_long: bool, register: u32, active: u32, unknown: &Bits) {
        match is_long {
            true => self.longs.mark_bits(register, active, unknown),
            false => self.words.mark_bits(register, active, unknown),
        }
    }

    fn bits(&self, is_long: bool, register: u32) -> Bits {
        match is_long {
            true => self.longs.values[register as usize],
            false => self.words.values[register as usize].map(u64::from),
        }
    }

    fn put_bits(&mut self, is_long: bool, register: u32, bits: &Bits) {
        match is_long {
            true => self.longs.values[register as usize] = *bits,
            false => self.words.values[register as usize] = bits.map(|bits| bits as u32),
        }
    }
}

/// The unwritten bits of a result, given those of its operands.
fn spread<'b>(follows: Follows, operands: impl Iterator<Item = &'b Bits> + Clone) -> Bits {
    std::array::from_fn(|lane| spread_in_lane(follows, operands.clone().fold(0, |all, unknown| all | unknown[lane])))
}

fn spread_in_lane(follows: Follows, bits: u64) -> u64 {
    match follows {
        _ if bits == 0 => 0,
        Follows::Upward => u64::MAX << bits.trailing_zeros(),
        Follows::Parts(width) => {
            let part = u64::MAX >> (64 - width);
            let parts = (0..64).step_by(width as usize).map(|place| part << place);
            parts.filter(|part| bits & part != 0).fold(0, |all, part| all | part)
        }
        Follows::All | Follows::Bits => u64::MAX,
    }
}
