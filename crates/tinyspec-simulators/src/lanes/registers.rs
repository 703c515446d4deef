//! Registers of a wave: a value for each lane, and for each lane whether it has one.

/// Lanes of a wave of this width.
pub(crate) type Lanes<T, const WIDTH: usize> = [T; WIDTH];

/// Registers of one size. A value that nobody has written, or that comes from such a one, is unknown.
pub(crate) struct File<T, const WIDTH: usize> {
    pub values: Vec<Lanes<T, WIDTH>>,
    /// Lanes with a known value.
    pub known: Vec<u32>,
}

impl<T: Copy + Default, const WIDTH: usize> File<T, WIDTH> {
    pub fn new(registers: usize) -> Self {
        File { values: vec![[T::default(); WIDTH]; registers], known: vec![0; registers] }
    }

    /// Nothing is known.
    pub fn reset(&mut self) {
        self.known.fill(0);
    }

    /// Marks what was written by some lanes.
    #[inline]
    pub fn mark(&mut self, register: u32, mask: u32, known: u32) {
        let place = &mut self.known[register as usize];
        *place = (*place & !mask) | (known & mask);
    }
}

impl<const WIDTH: usize> File<u32, WIDTH> {
    /// Writes the lanes of a mask.
    #[inline]
    pub fn merge(&mut self, register: u32, values: &Lanes<u32, WIDTH>, mask: u32, known: u32) {
        let place = &mut self.values[register as usize];
        if mask == u32::MAX {
            *place = *values;
        } else {
            for lane in 0..WIDTH {
                let takes = (mask >> lane & 1).wrapping_neg();
                place[lane] = (place[lane] & !takes) | (values[lane] & takes);
            }
        }
        self.mark(register, mask, known);
    }
}

impl<const WIDTH: usize> File<u64, WIDTH> {
    /// Writes the lanes of a mask.
    #[inline]
    pub fn merge(&mut self, register: u32, values: &Lanes<u64, WIDTH>, mask: u32, known: u32) {
        let place = &mut self.values[register as usize];
        if mask == u32::MAX {
            *place = *values;
        } else {
            for lane in 0..WIDTH {
                let takes = u64::from(mask >> lane & 1).wrapping_neg();
                place[lane] = (place[lane] & !takes) | (values[lane] & takes);
            }
        }
        self.mark(register, mask, known);
    }
}
