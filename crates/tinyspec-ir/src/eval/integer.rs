//! Integers: everything wraps, and every op has a value for every input.

use super::{binary, ternary, threefry, unary};
use crate::{DType, Op};

/// A machine integer, and its lane: sign- or zero-extended to 64 bits.
trait Integer: Copy + Ord {
    const ZERO: Self;
    fn from_lane(lane: u64) -> Self;
    fn lane(self) -> u64;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Floored, for a divisor that is not zero.
    fn floor_div(self, other: Self) -> Self;
    fn floor_mod(self, other: Self) -> Self;
    fn shift_left(self, count: u64) -> Self;
    /// Arithmetic for signed types.
    fn shift_right(self, count: u64) -> Self;
}

macro_rules! integer {
    ($type:ty, $extended:ty, $floors:expr) => {
        impl Integer for $type {
            const ZERO: $type = 0;
            fn from_lane(lane: u64) -> $type {
                lane as $type
            }
            fn lane(self) -> u64 {
                self as $extended as u64
            }
            fn add(self, other: $type) -> $type {
                self.wrapping_add(other)
            }
            fn mul(self, other: $type) -> $type {
                self.wrapping_mul(other)
            }
            fn floor_div(self, other: $type) -> $type {
                let quotient = self.wrapping_div(other);
                let floors: fn($type, $type) -> bool = $floors;
                if floors(self, other) { quotient.wrapping_sub(1) } else { quotient }
            }
            fn floor_mod(self, other: $type) -> $type {
                let floors: fn($type, $type) -> bool = $floors;
                let remainder = self.wrapping_rem(other);
                if floors(self, other) { remainder.wrapping_add(other) } else { remainder }
            }
            // The count has the same type, so a negative one is a huge lane, beyond the width as well.
            fn shift_left(self, count: u64) -> $type {
                if count < <$type>::BITS as u64 { self << count } else { 0 }
            }
            fn shift_right(self, count: u64) -> $type {
                self >> count.min(<$type>::BITS as u64 - 1)
                    & if count >= <$type>::BITS as u64 && <$type>::MIN == 0 { 0 } else { !0 }
            }
        }
    };
    (signed $($type:ty)*) => { $(integer!($type, i64, |a, b| a.wrapping_rem(b) != 0 && (a < 0) != (b < 0));)* };
    (unsigned $($type:ty)*) => { $(integer!($type, u64, |_, _| false);)* };
}

integer!(signed i8 i16 i32 i64);
integer!(unsigned u8 u16 u32 u64);

pub(super) fn lanes(op: Op, dtype: DType, sources: &[&[u64]], result: &mut [u64]) -> bool {
    match dtype {
        DType::I8 => typed::<i8>(op, sources, result),
        DType::I16 => typed::<i16>(op, sources, result),
        DType::I32 => typed::<i32>(op, sources, result),
        DType::I64 | DType::Index => typed::<i64>(op, sources, result),
        DType::U8 => typed::<u8>(op, sources, result),
        DType::U16 => typed::<u16>(op, sources, result),
        DType::U32 => typed::<u32>(op, sources, result),
        DType::U64 if op == Op::Threefry => binary(sources, result, threefry),
        DType::U64 => typed::<u64>(op, sources, result),
        _ => false,
    }
}

fn typed<T: Integer>(op: Op, sources: &[&[u64]], result: &mut [u64]) -> bool {
    let of = T::from_lane;
    match op {
        Op::Add => binary(sources, result, |a, b| of(a).add(of(b)).lane()),
        Op::Mul => binary(sources, result, |a, b| of(a).mul(of(b)).lane()),
        Op::Mulacc => ternary(sources, result, |a, b, c| of(a).mul(of(b)).add(of(c)).lane()),
        Op::Max => binary(sources, result, |a, b| of(a).max(of(b)).lane()),
        Op::Idiv => binary(sources, result, |a, b| if of(b) == T::ZERO { 0 } else { of(a).floor_div(of(b)).lane() }),
        Op::Mod => binary(sources, result, |a, b| if of(b) == T::ZERO { a } else { of(a).floor_mod(of(b)).lane() }),
        Op::CmpLt => binary(sources, result, |a, b| (of(a) < of(b)) as u64),
        Op::CmpNe => binary(sources, result, |a, b| (of(a) != of(b)) as u64),
        // Bitwise ops preserve the extension.
        Op::Xor => binary(sources, result, |a, b| a ^ b),
        Op::Or => binary(sources, result, |a, b| a | b),
        Op::And => binary(sources, result, |a, b| a & b),
        Op::Shl => binary(sources, result, |a, b| of(a).shift_left(b).lane()),
        Op::Shr => binary(sources, result, |a, b| of(a).shift_right(b).lane()),
        Op::Trunc => unary(sources, result, |a| a),
        _ => false,
    }
}
