//! Scratch memory, which each lane has to itself: registers that do not fit are spilled to it.

use super::super::decode::Access;
use super::super::lanes::PART;
use super::super::table::TransferKind;
use super::super::text::Half;
use super::super::wave::Wave;
use super::Outcome;
use super::access::Addresses;
use crate::FaultKind;
use crate::lanes::memory::MOST_LANES;
use crate::lanes::{Mask, Trouble, lanes_of};

impl Wave {
    pub(super) fn scratch_access(&mut self, access: &Access) -> Outcome<()> {
        if self.active == 0 {
            return Ok(());
        }
        let mut addresses = [0; MOST_LANES];
        self.addresses(access, access.offsets[0], &mut addresses)?;
        let is_load = matches!(access.kind, TransferKind::Load);
        self.stays_in_scratch(access, &addresses, if is_load { "reads" } else { "writes" })?;
        for element in 0..access.count {
            let at = |lane: usize| addresses[lane] as usize + element * access.bytes;
            if is_load {
                let register = usize::from(access.to.unwrap_or_default()) + element;
                self.load_scratch(access, register, at);
            } else {
                let register = usize::from(access.data[0].unwrap_or_default()) + element;
                self.store_scratch(access, register, at);
            }
        }
        Ok(())
    }

    fn stays_in_scratch(&self, access: &Access, addresses: &Addresses, verb: &str) -> Outcome<()> {
        let (bytes, most) = (access.bytes * access.count, self.scratch.len());
        for lane in lanes_of(self.active) {
            let address = addresses[lane];
            if address as usize + bytes > most {
                let reason = format!("{verb} {bytes} bytes at byte {address} of its scratch memory, which has {most}");
                return Err(Trouble::new(FaultKind::OutOfBounds, 1 << lane, reason));
            }
        }
        Ok(())
    }

    /// Loads an element.
    fn load_scratch(&mut self, access: &Access, register: usize, at: impl Fn(usize) -> usize) {
        let active = self.active;
        let mut values = [0; MOST_LANES];
        let mut known = [0; 4];
        for lane in lanes_of(active) {
            for (byte, known) in known.iter_mut().enumerate().take(access.bytes) {
                values[lane] |= u64::from(self.scratch[at(lane) + byte][lane]) << (8 * byte);
                *known |= self.scratch_known[at(lane) + byte] & 1 << lane;
            }
        }
        self.receive(access, register, &values, active);
        self.mark_received(access, register, &known, active);
    }

    /// Stores an element. Not all of a register that is spilled need have been written.
    fn store_scratch(&mut self, access: &Access, register: usize, at: impl Fn(usize) -> usize) {
        let first = if access.half == Some(Half::High) { 2 } else { 0 };
        for lane in lanes_of(self.active) {
            let word = self.vectors[register][lane / PART][lane % PART].to_le_bytes();
            for byte in 0..access.bytes {
                let bit: Mask = 1 << lane;
                let from = first + byte;
                self.scratch[at(lane) + byte][lane] = word[from];
                let known = &mut self.scratch_known[at(lane) + byte];
                *known = *known & !bit | self.known[register][from] & bit;
            }
        }
    }
}
