//! Loads and stores of a strand.

use super::super::arithmetic::WARP;
use super::super::decode::{Address, Register, Transfer};
use super::Shared;
use super::step::{Outcome, extended, truncated, unwritten};
use super::warp::Warp;
use crate::lanes::memory::{Access, MOST_BYTES, MOST_ELEMENTS, MOST_LANES, Space};
use crate::lanes::{Mask, lanes_of};

impl Warp {
    /// The addresses of the lanes.
    pub(super) fn addresses(&self, base: Address, offset: i64, active: u32) -> Outcome<[u64; MOST_LANES]> {
        let mut addresses = [0; MOST_LANES];
        let known = match base {
            Address::Long(register) => {
                let values = &self.longs.values[register as usize];
                for lane in 0..WARP {
                    addresses[lane] = values[lane].wrapping_add(offset as u64);
                }
                self.longs.known[register as usize]
            }
            Address::Word(register) => {
                let values = &self.words.values[register as usize];
                for lane in 0..WARP {
                    addresses[lane] = u64::from(values[lane].wrapping_add(offset as u32));
                }
                self.words.known[register as usize]
            }
        };
        match active & !known {
            0 => Ok(addresses),
            unknown => Err(unwritten(unknown, "an address")),
        }
    }

    #[inline(never)]
    pub(super) fn load(&mut self, transfer: &Transfer, active: u32, number: usize, shared: &mut Shared) -> Outcome<()> {
        let addresses = self.addresses(transfer.base, transfer.offset, active)?;
        let now = shared.clocks.now(shared.group + 1, number).private(transfer.space == Space::Local);
        let access = Access {
            now: &now,
            space: transfer.space,
            mask: active.into(),
            addresses: &addresses,
            count: transfer.count,
            origins: transfer.origins,
            is_strong: transfer.is_strong,
            is_constant: transfer.is_constant,
        };
        let (words, longs) = (&mut self.words, &mut self.longs);
        let extend = |bits: u64| match transfer.is_signed {
            true => extended(bits, transfer.size, true),
            false => bits,
        };
        let put = |element: usize, values: &[u64; MOST_LANES]| match transfer.registers[element] {
            Some(Register::Word(register, width)) => {
                let values = std::array::from_fn(|lane| truncated(extend(values[lane]), width));
                words.write(register, &values, active);
            }
            Some(Register::Long(register)) => {
                let values = std::array::from_fn(|lane| extend(values[lane]));
                longs.write(register, &values, active);
            }
            _ => {}
        };
        let memory = &mut shared.memory;
        let known = match transfer.size {
            1 => memory.load::<1>(&access, put),
            2 => memory.load::<2>(&access, put),
            4 => memory.load::<4>(&access, put),
            _ => memory.load::<8>(&access, put),
        }?;
        let known = known.as_deref().unwrap_or(&[Mask::MAX; MOST_BYTES]);
        for (register, known) in transfer.registers.iter().zip(known.chunks_exact(transfer.size)) {
            let all = known.iter().fold(Mask::MAX, |all, known| all & known) as u32;
            match *register {
                Some(Register::Word(register, _)) => self.words.mark(register, active, all),
                Some(Register::Long(register)) => self.longs.mark(register, active, all),
                _ => continue,
            }
            if let Some(register) = register.filter(|_| active & !all != 0) {
                let unknown = |lane: usize| {
                    let byte = |known: Mask| if known >> lane & 1 == 1 { 0 } else { 0xff };
                    let bits = extend(known.iter().rev().fold(0, |bits, &known| bits << 8 | byte(known)));
                    if let Register::Word(_, width) = register { truncated(bits, width).into() } else { bits }
                };
                let unknown = std::array::from_fn(unknown);
                self.mark_bits(register.bits() == 64, register.number(), active, &unknown);
            }
        }
        Ok(())
    }

    /// Of some registers so many bytes must hold something, in all lanes.
    pub(super) fn values(
        &self,
        registers: &[Option<Register>; MOST_ELEMENTS],
        size: usize,
        active: u32,
    ) -> Outcome<()> {
        for register in registers.iter().flatten() {
            let known = match *register {
                Register::Word(register, _) => self.words.known[register as usize],
                Register::Long(register) => self.longs.known[register as usize],
                Register::Predicate(register) => self.predicates_known[register as usize],
            };
            if active & !known != 0 {
                let unknown = self.unknown(register.bits() == 64, register.number());
                let is_lost = |lane: &usize| unknown[*lane] << (64 - 8 * size) != 0;
                let lost = lanes_of((active & !known).into()).filter(is_lost).fold(0, |mask, lane| mask | 1 << lane);
                if lost != 0 {
                    return Err(unwritten(lost, "a value that is stored"));
                }
            }
        }
        Ok(())
    }

    /// The lane of a register.
    pub(super) fn lane(&self, register: Option<Register>, lane: usize) -> u64 {
        match register {
            Some(Register::Word(register, _)) => self.words.values[register as usize][lane].into(),
            Some(Register::Long(register)) => self.longs.values[register as usize][lane],
            _ => 0,
        }
    }

    #[inline(never)]
    pub(super) fn store(
        &mut self,
        transfer: &Transfer,
        active: u32,
        number: usize,
        shared: &mut Shared,
    ) -> Outcome<()> {
        let addresses = self.addresses(transfer.base, transfer.offset, active)?;
        self.values(&transfer.registers, transfer.size, active)?;
        let now = shared.clocks.now(shared.group + 1, number).private(transfer.space == Space::Local);
        let access = Access {
            now: &now,
            space: transfer.space,
            mask: Mask::from(active),
            addresses: &addresses,
            count: transfer.count,
            origins: transfer.origins,
            is_strong: transfer.is_strong,
            is_constant: transfer.is_constant,
        };
        let take = |element: usize, lane: usize| self.lane(transfer.registers[element], lane);
        let memory = &mut shared.memory;
        match transfer.size {
            1 => memory.store::<1>(&access, take),
            2 => memory.store::<2>(&access, take),
            4 => memory.store::<4>(&access, take),
            _ => memory.store::<8>(&access, take),
        }
    }
}
