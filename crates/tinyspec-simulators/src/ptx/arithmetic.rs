//! The semantics of instructions, for all lanes at once: functions from registers to a register, chosen when a kernel is decoded.

pub(super) mod compare;
pub(super) mod convert;
pub(super) mod double;
pub(super) mod integer;
pub(super) mod narrow;
pub(super) mod single;

use std::sync::Arc;

/// Lanes of a warp.
pub(super) const WARP: usize = 32;
/// A register of up to 32 bits, for all lanes; narrower values are zero-extended.
pub(crate) type Word = [u32; WARP];
/// A register of 64 bits.
pub(crate) type Long = [u64; WARP];

/// A function of registers: first the result, W for a [`Word`] and L for a [`Long`], then the operands.
#[derive(Clone)]
#[expect(clippy::upper_case_acronyms, reason = "a letter an operand")]
pub(crate) enum Shape {
    WW(fn(&Word, &mut Word)),
    WWW(fn(&Word, &Word, &mut Word)),
    WWWW(fn(&Word, &Word, &Word, &mut Word)),
    WWWWW(fn(&Word, &Word, &Word, &Word, &mut Word)),
    LL(fn(&Long, &mut Long)),
    LLL(fn(&Long, &Long, &mut Long)),
    LLLL(fn(&Long, &Long, &Long, &mut Long)),
    WL(fn(&Long, &mut Word)),
    LW(fn(&Word, &mut Long)),
    LWW(fn(&Word, &Word, &mut Long)),
    LWWL(fn(&Word, &Word, &Long, &mut Long)),
    LLW(fn(&Long, &Word, &mut Long)),
    LLWW(fn(&Long, &Word, &Word, &mut Long)),
    LLLWW(fn(&Long, &Long, &Word, &Word, &mut Long)),
    /// Any function of one value or two, lane by lane; whether the result and the operands are Longs.
    Each(Each, bool, bool),
    /// Quotients and remainders: of 0 they have no value.
    DivideW(fn(u32, u32) -> Option<u32>),
    DivideL(fn(u64, u64) -> Option<u64>),
}

impl Shape {
    /// The sizes of the result and of each operand.
    pub fn sizes(&self) -> (u8, &'static str) {
        match self {
            Shape::WW(_) => (b'W', "W"),
            Shape::WWW(_) | Shape::DivideW(_) => (b'W', "WW"),
            Shape::WWWW(_) => (b'W', "WWW"),
            Shape::WWWWW(_) => (b'W', "WWWW"),
            Shape::LL(_) => (b'L', "L"),
            Shape::LLL(_) | Shape::DivideL(_) => (b'L', "LL"),
            Shape::LLLL(_) => (b'L', "LLL"),
            Shape::WL(_) => (b'W', "L"),
            Shape::LW(_) => (b'L', "W"),
            Shape::LWW(_) => (b'L', "WW"),
            Shape::LWWL(_) => (b'L', "WWL"),
            Shape::LLW(_) => (b'L', "LW"),
            Shape::LLWW(_) => (b'L', "LWW"),
            Shape::LLLWW(_) => (b'L', "LLWW"),
            Shape::Each(_, to_long, from_long) => {
                (if *to_long { b'L' } else { b'W' }, if *from_long { "LL" } else { "WW" })
            }
        }
    }
}

/// A function of one value, or of two.
pub(crate) type Each = Arc<dyn Fn(u64, u64) -> u64 + Send + Sync>;

/// A predicate of registers.
#[derive(Clone, Copy)]
pub(crate) enum Test {
    W(fn(&Word) -> u32),
    L(fn(&Long) -> u32),
    WW(fn(&Word, &Word) -> u32),
    LL(fn(&Long, &Long) -> u32),
}

/// Rounding, flushing of subnormals, clamping to [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mode {
    pub rounding: Option<crate::float::Rounding>,
    pub flush: bool,
    pub saturate: bool,
    pub approximate: bool,
    /// `div.full`
    pub full: bool,
    /// min and max give nan where one of the operands is.
    pub nan: bool,
    pub relu: bool,
}
