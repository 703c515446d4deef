//! Registers of a wave: a value for each lane, and for each lane whether it has one.

use super::lanes_of;
use rustc_hash::FxHashMap;

/// The values tried for unwritten bits, to find the result bits that depend on them.
pub(crate) const FILLS: [u64; 4] = [0, u64::MAX, 0xa5c3_96f0_5a3c_690f, !0xa5c3_96f0_5a3c_690f];

/// Lanes of a wave of this width.
pub(crate) type Lanes<T, const WIDTH: usize> = [T; WIDTH];

/// Registers of one size. A value that is unwritten, or derives from such a value, is unknown.
pub(crate) struct File<T, const WIDTH: usize> {
    pub values: Vec<Lanes<T, WIDTH>>,
    /// Lanes with a known value.
    pub known: Vec<u32>,
    /// The unknown bits of each lane, for the few registers that are partly known; lanes of other registers are known or unknown as a whole.
    unknown_bits: FxHashMap<u32, Lanes<u64, WIDTH>>,
}

impl<T: Copy + Default, const WIDTH: usize> File<T, WIDTH> {
    pub fn new(registers: usize) -> Self {
        File {
            values: vec![[T::default(); WIDTH]; registers],
            known: vec![0; registers],
            unknown_bits: FxHashMap::default(),
        }
    }

    /// Nothing is known.
    pub fn reset(&mut self) {
        self.known.fill(0);
        self.unknown_bits.clear();
    }

    /// Marks what some lanes wrote: either all bits of a lane are known or none is.
    #[inline]
    pub fn mark(&mut self, register: u32, mask: u32, known: u32) {
        let place = &mut self.known[register as usize];
        *place = (*place & !mask) | (known & mask);
        if mask & !known != 0 && !self.unknown_bits.is_empty() {
            self.forget(register, mask & !known);
        }
    }

    #[cold]
    fn forget(&mut self, register: u32, lanes: u32) {
        if let Some(bits) = self.unknown_bits.get_mut(&register) {
            lanes_of(lanes.into()).for_each(|lane| bits[lane] = u64::MAX);
        }
    }

    /// Marks what some lanes wrote, bit by bit.
    #[cold]
    pub fn mark_bits(&mut self, register: u32, mask: u32, unknown: &Lanes<u64, WIDTH>) {
        let bits = self.unknown_bits.entry(register).or_insert([u64::MAX; WIDTH]);
        let place = &mut self.known[register as usize];
        for lane in lanes_of(mask.into()) {
            bits[lane] = unknown[lane];
            *place = *place & !(1 << lane) | u32::from(unknown[lane] == 0) << lane;
        }
    }

    /// The unknown bits of each lane.
    #[cold]
    pub fn unknown_bits(&self, register: u32) -> Lanes<u64, WIDTH> {
        let mut bits = self.unknown_bits.get(&register).copied().unwrap_or([u64::MAX; WIDTH]);
        lanes_of(self.known[register as usize].into()).for_each(|lane| bits[lane] = 0);
        bits
    }
}

impl<const WIDTH: usize> File<u32, WIDTH> {
    /// Writes the lanes of a mask, and marks them.
    #[inline]
    pub fn merge(&mut self, register: u32, values: &Lanes<u32, WIDTH>, mask: u32, known: u32) {
        self.write(register, values, mask);
        self.mark(register, mask, known);
    }

    /// Writes the lanes of a mask.
    #[inline]
    pub fn write(&mut self, register: u32, values: &Lanes<u32, WIDTH>, mask: u32) {
        let place = &mut self.values[register as usize];
        if mask == u32::MAX {
            *place = *values;
        } else {
            for lane in 0..WIDTH {
                let takes = (mask >> lane & 1).wrapping_neg();
                place[lane] = (place[lane] & !takes) | (values[lane] & takes);
            }
        }
    }
}

impl<const WIDTH: usize> File<u64, WIDTH> {
    /// Writes the lanes of a mask, and marks them.
    #[inline]
    pub fn merge(&mut self, register: u32, values: &Lanes<u64, WIDTH>, mask: u32, known: u32) {
        self.write(register, values, mask);
        self.mark(register, mask, known);
    }

    /// Writes the lanes of a mask.
    #[inline]
    pub fn write(&mut self, register: u32, values: &Lanes<u64, WIDTH>, mask: u32) {
        let place = &mut self.values[register as usize];
        if mask == u32::MAX {
            *place = *values;
        } else {
            for lane in 0..WIDTH {
                let takes = u64::from(mask >> lane & 1).wrapping_neg();
                place[lane] = (place[lane] & !takes) | (values[lane] & takes);
            }
        }
    }
}
