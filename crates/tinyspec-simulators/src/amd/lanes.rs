//! The semantics of instructions: functions of all lanes of half a wave, independent of registers, masks and modifiers.

/// Lanes that are computed at once: a wave, or half of one.
pub(super) const PART: usize = 32;
/// A register of 32 bits, for the lanes of a part.
pub(super) type Words = [u32; PART];
/// A pair of registers as 64 bits, or a single one zero-extended.
pub(super) type Longs = [u64; PART];

/// A function of registers. Operands beyond those that the instruction has are ignored. Narrow values are in the low bits: in
/// operands the bits above them are arbitrary, in results they are zero.
#[derive(Clone, Copy)]
pub(super) enum Function {
    Words(fn(&[&Words; 3], &mut Words)),
    Longs(fn(&[&Longs; 3], &mut Longs)),
    /// Of each register of pairs.
    Pairs(fn(&[&Words; 3], &mut Words)),
    /// A bit for each lane.
    TestWords(fn(&[&Words; 3]) -> u32),
    TestLongs(fn(&[&Longs; 3]) -> u32),
    /// Takes a carry bit for each lane, and gives another.
    CarryWords(fn(&[&Words; 3], u32, &mut Words) -> u32),
    CarryLongs(fn(&[&Longs; 3], u32, &mut Longs) -> u32),
    /// The first operand where the lane's bit of the mask is 0, the second where it is 1.
    Select,
    /// Any function of three bits, applied to each bit: the instruction has its truth table of eight entries, indexed by the
    /// bits of the first operand (the highest) to the third.
    Table,
}

impl Function {
    /// Whether only its operands and a mask decide a result that is no mask.
    pub fn can_be_tried(self) -> bool {
        matches!(self, Function::Words(_) | Function::Longs(_) | Function::Select | Function::Table)
    }
}

macro_rules! words {
    (|$a:ident| $value:expr) => {
        Function::Words(|from, out| {
            for lane in 0..PART {
                let $a = from[0][lane];
                out[lane] = $value;
            }
        })
    };
    (|$a:ident, $b:ident| $value:expr) => {
        Function::Words(|from, out| {
            for lane in 0..PART {
                let ($a, $b) = (from[0][lane], from[1][lane]);
                out[lane] = $value;
            }
        })
    };
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {
        Function::Words(|from, out| {
            for lane in 0..PART {
                let ($a, $b, $c) = (from[0][lane], from[1][lane], from[2][lane]);
                out[lane] = $value;
            }
        })
    };
}

macro_rules! longs {
    (|$a:ident| $value:expr) => {
        Function::Longs(|from, out| {
            for lane in 0..PART {
                let $a = from[0][lane];
                out[lane] = $value;
            }
        })
    };
    (|$a:ident, $b:ident| $value:expr) => {
        Function::Longs(|from, out| {
            for lane in 0..PART {
                let ($a, $b) = (from[0][lane], from[1][lane]);
                out[lane] = $value;
            }
        })
    };
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {
        Function::Longs(|from, out| {
            for lane in 0..PART {
                let ($a, $b, $c) = (from[0][lane], from[1][lane], from[2][lane]);
                out[lane] = $value;
            }
        })
    };
}

macro_rules! test {
    ($kind:ident |$a:ident, $b:ident| $value:expr) => {
        Function::$kind(|from| {
            let mut mask = 0;
            for lane in 0..PART {
                let ($a, $b) = (from[0][lane], from[1][lane]);
                mask |= u32::from($value) << lane;
            }
            mask
        })
    };
}

/// `$in` is the lane's carry; gives the result and the new carry.
macro_rules! carry {
    ($kind:ident |$a:ident, $b:ident, $c:ident, $in:ident| $value:expr) => {
        Function::$kind(|from, mask, out| {
            let mut carried = 0;
            for lane in 0..PART {
                let ($a, $b, $c, $in) = (from[0][lane], from[1][lane], from[2][lane], mask >> lane & 1 == 1);
                let (value, bit) = $value;
                out[lane] = value;
                carried |= u32::from(bit) << lane;
            }
            carried
        })
    };
}

pub(super) use {carry, longs, test, words};
