//! `atom` and `red`: lanes change memory one after the other, in random order.

use super::super::decode::{Atomic, AtomicOperator, Register};
use super::Shared;
use super::step::{Outcome, reduced, truncated, unwritten};
use super::warp::Warp;
use crate::lanes::lanes_of;
use crate::lanes::memory::{Access, Space};
use smallvec::SmallVec;

impl Warp {
    #[inline(never)]
    pub(super) fn atomic(&mut self, atomic: &Atomic, active: u32, number: usize, shared: &mut Shared) -> Outcome<()> {
        let addresses = self.addresses(atomic.base, atomic.offset, active)?;
        self.values(&atomic.from, atomic.size, active)?;
        if let Some(second) = atomic.second {
            self.values(&[Some(second), None, None, None, None, None, None, None], atomic.size, active)?;
        }
        let mut order: SmallVec<[usize; 32]> = lanes_of(active.into()).collect();
        shared.schedule.shuffle(&mut order);
        let now = shared.clocks.now(shared.group + 1, number).private(atomic.space == Space::Local);
        let access = Access {
            now: &now,
            space: atomic.space,
            mask: active.into(),
            addresses: &addresses,
            count: atomic.count,
            origins: atomic.origins,
            is_strong: true,
            is_constant: false,
        };
        let mut old = [[0u64; 32]; 8];
        let change = |element: usize, lane: usize, bits: u64| {
            old[element][lane] = bits;
            let (operand, second) = (self.lane(atomic.from[element], lane), self.lane(atomic.second, lane));
            changed(&atomic.operator, bits, operand, second, atomic.size)
        };
        let memory = &mut shared.memory;
        let known = match atomic.size {
            2 => memory.change::<2>(&access, &order, change),
            4 => memory.change::<4>(&access, &order, change),
            _ => memory.change::<8>(&access, &order, change),
        }?;
        let unknown = active & !(known as u32);
        if unknown != 0 {
            return Err(unwritten(unknown, "what is changed atomically"));
        }
        for (register, old) in atomic.to.iter().zip(&old) {
            match *register {
                Some(Register::Word(register, width)) => {
                    let values = old.map(|bits| truncated(bits, width));
                    self.words.merge(register, &values, active, u32::MAX);
                }
                Some(Register::Long(register)) => self.longs.merge(register, old, active, u32::MAX),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The value stored in place of `old`.
fn changed(operator: &AtomicOperator, old: u64, operand: u64, second: u64, size: usize) -> u64 {
    match operator {
        AtomicOperator::Reduce(reduction) => reduced(*reduction, old, operand, size),
        AtomicOperator::AddSingle { flush } => {
            let flushed = |bits: u32| if *flush && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits };
            let [a, b] = [old, operand].map(|bits| f32::from_bits(flushed(bits as u32)));
            let sum = a + b;
            u64::from(if sum.is_nan() { 0x7fff_ffff } else { flushed(sum.to_bits()) })
        }
        AtomicOperator::AddDouble => (f64::from_bits(old) + f64::from_bits(operand)).to_bits(),
        AtomicOperator::Exact(exact) => (exact.of)([old as u32, operand as u32, 0]).into(),
        AtomicOperator::Exchange => operand,
        AtomicOperator::CompareAndSwap => {
            if old == operand {
                second
            } else {
                old
            }
        }
        AtomicOperator::Increment => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        AtomicOperator::Decrement => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
    }
}
