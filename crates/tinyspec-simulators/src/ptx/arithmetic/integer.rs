//! Integers: modulo 2^n, shifts that clamp, counts of bits, fields of bits.

use super::super::types::Type;
use super::{Shape, WARP};

macro_rules! binary {
    ($kind:expr, |$a:ident, $b:ident| $value:expr) => {
        match $kind {
            Type::U16 | Type::B16 => Some(Shape::WWW(|x, y, out| {
                for lane in 0..WARP {
                    let ($a, $b) = (x[lane] as u16, y[lane] as u16);
                    out[lane] = u32::from($value);
                }
            })),
            Type::S16 => Some(Shape::WWW(|x, y, out| {
                for lane in 0..WARP {
                    let ($a, $b) = (x[lane] as i16, y[lane] as i16);
                    out[lane] = u32::from($value as u16);
                }
            })),
            Type::U32 | Type::B32 => Some(Shape::WWW(|x, y, out| {
                for lane in 0..WARP {
                    let ($a, $b) = (x[lane], y[lane]);
                    out[lane] = $value;
                }
            })),
            Type::S32 => Some(Shape::WWW(|x, y, out| {
                for lane in 0..WARP {
                    let ($a, $b) = (x[lane] as i32, y[lane] as i32);
                    out[lane] = $value as u32;
                }
            })),
            Type::U64 | Type::B64 => Some(Shape::LLL(|x, y, out| {
                for lane in 0..WARP {
                    let ($a, $b) = (x[lane], y[lane]);
                    out[lane] = $value;
                }
            })),
            Type::S64 => Some(Shape::LLL(|x, y, out| {
                for lane in 0..WARP {
                    let ($a, $b) = (x[lane] as i64, y[lane] as i64);
                    out[lane] = $value as u64;
                }
            })),
            _ => None,
        }
    };
}

macro_rules! unary {
    ($kind:expr, |$a:ident| $value:expr) => {
        match $kind {
            Type::U16 | Type::B16 | Type::S16 => Some(Shape::WW(|x, out| {
                for lane in 0..WARP {
                    let $a = x[lane] as i16;
                    out[lane] = u32::from($value as u16);
                }
            })),
            Type::U32 | Type::B32 | Type::S32 => Some(Shape::WW(|x, out| {
                for lane in 0..WARP {
                    let $a = x[lane] as i32;
                    out[lane] = $value as u32;
                }
            })),
            Type::U64 | Type::B64 | Type::S64 => Some(Shape::LL(|x, out| {
                for lane in 0..WARP {
                    let $a = x[lane] as i64;
                    out[lane] = $value as u64;
                }
            })),
            _ => None,
        }
    };
}

macro_rules! words {
    (|$a:ident| $value:expr) => {
        Some(Shape::WW(|x, out| {
            for lane in 0..WARP {
                let $a = x[lane];
                out[lane] = $value;
            }
        }))
    };
    (|$a:ident, $b:ident| $value:expr) => {
        Some(Shape::WWW(|x, y, out| {
            for lane in 0..WARP {
                let ($a, $b) = (x[lane], y[lane]);
                out[lane] = $value;
            }
        }))
    };
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {
        Some(Shape::WWWW(|x, y, z, out| {
            for lane in 0..WARP {
                let ($a, $b, $c) = (x[lane], y[lane], z[lane]);
                out[lane] = $value;
            }
        }))
    };
}

macro_rules! longs {
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {
        Some(Shape::LLLL(|x, y, z, out| {
            for lane in 0..WARP {
                let ($a, $b, $c) = (x[lane], y[lane], z[lane]);
                out[lane] = $value;
            }
        }))
    };
}

/// Instructions of two operands of their type.
pub(in super::super) fn two(name: &str, kind: Type) -> Option<Shape> {
    match name {
        "add" if kind.is_integer() => binary!(kind, |a, b| a.wrapping_add(b)),
        "sub" if kind.is_integer() => binary!(kind, |a, b| a.wrapping_sub(b)),
        "mul.lo" if kind.is_integer() => binary!(kind, |a, b| a.wrapping_mul(b)),
        "min" if kind.is_integer() => binary!(kind, |a, b| a.min(b)),
        "max" if kind.is_integer() => binary!(kind, |a, b| a.max(b)),
        "and" if kind.is_bits() => binary!(kind, |a, b| a & b),
        "or" if kind.is_bits() => binary!(kind, |a, b| a | b),
        "xor" if kind.is_bits() => binary!(kind, |a, b| a ^ b),
        "mul.hi" => high(kind),
        "div" => quotient(kind),
        "rem" => remainder(kind),
        _ => None,
    }
}

/// Minimum and maximum of two numbers, raised to 0 if negative (`.relu`).
pub(in super::super) fn not_negative(name: &str, kind: Type) -> Option<Shape> {
    match (name, kind) {
        ("min", Type::S32) => words!(|a, b| (a as i32).min(b as i32).max(0) as u32),
        ("max", Type::S32) => words!(|a, b| (a as i32).max(b as i32).max(0) as u32),
        ("min", Type::S16x2) => words!(|a, b| halves(a, b, |a, b| (a as i16).min(b as i16).max(0) as u16)),
        ("max", Type::S16x2) => words!(|a, b| halves(a, b, |a, b| (a as i16).max(b as i16).max(0) as u16)),
        _ => None,
    }
}

/// Sums and differences clamped to the range of the type.
pub(in super::super) fn saturating(name: &str, kind: Type) -> Option<Shape> {
    match (name, kind) {
        ("add", Type::S32) => words!(|a, b| (a as i32).saturating_add(b as i32) as u32),
        ("sub", Type::S32) => words!(|a, b| (a as i32).saturating_sub(b as i32) as u32),
        _ => None,
    }
}

/// Two halves at once.
pub(in super::super) fn packed(name: &str, kind: Type) -> Option<Shape> {
    match (name, kind) {
        ("add", Type::U16x2 | Type::S16x2) => words!(|a, b| halves(a, b, u16::wrapping_add)),
        ("min", Type::U16x2) => words!(|a, b| halves(a, b, Ord::min)),
        ("max", Type::U16x2) => words!(|a, b| halves(a, b, Ord::max)),
        ("min", Type::S16x2) => words!(|a, b| halves(a, b, |a, b| (a as i16).min(b as i16) as u16)),
        ("max", Type::S16x2) => words!(|a, b| halves(a, b, |a, b| (a as i16).max(b as i16) as u16)),
        _ => None,
    }
}

fn halves(a: u32, b: u32, of: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(of(a as u16, b as u16)) | u32::from(of((a >> 16) as u16, (b >> 16) as u16)) << 16
}

fn high(kind: Type) -> Option<Shape> {
    match kind {
        Type::U16 => words!(|a, b| (a * b) >> 16),
        Type::S16 => words!(|a, b| ((i32::from(a as i16) * i32::from(b as i16)) >> 16) as u32 & 0xffff),
        Type::U32 => words!(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        Type::S32 => words!(|a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
        Type::U64 => Some(Shape::LLL(|x, y, out| {
            for lane in 0..WARP {
                out[lane] = high_unsigned(x[lane], y[lane]);
            }
        })),
        Type::S64 => Some(Shape::LLL(|x, y, out| {
            for lane in 0..WARP {
                out[lane] = high_signed(x[lane], y[lane]);
            }
        })),
        _ => None,
    }
}

fn high_unsigned(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

fn high_signed(a: u64, b: u64) -> u64 {
    ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
}

fn quotient(kind: Type) -> Option<Shape> {
    Some(match kind {
        Type::U16 | Type::U32 => Shape::DivideW(|a, b| a.checked_div(b)),
        Type::S16 => Shape::DivideW(|a, b| {
            let (a, b) = (a as i16, b as i16);
            (b != 0).then(|| u32::from(a.wrapping_div(b) as u16))
        }),
        Type::S32 => Shape::DivideW(|a, b| (b != 0).then(|| (a as i32).wrapping_div(b as i32) as u32)),
        Type::U64 => Shape::DivideL(|a, b| a.checked_div(b)),
        Type::S64 => Shape::DivideL(|a, b| (b != 0).then(|| (a as i64).wrapping_div(b as i64) as u64)),
        _ => return None,
    })
}

fn remainder(kind: Type) -> Option<Shape> {
    Some(match kind {
        Type::U16 | Type::U32 => Shape::DivideW(|a, b| a.checked_rem(b)),
        Type::S16 => Shape::DivideW(|a, b| {
            let (a, b) = (a as i16, b as i16);
            (b != 0).then(|| u32::from(a.wrapping_rem(b) as u16))
        }),
        Type::S32 => Shape::DivideW(|a, b| (b != 0).then(|| (a as i32).wrapping_rem(b as i32) as u32)),
        Type::U64 => Shape::DivideL(|a, b| a.checked_rem(b)),
        Type::S64 => Shape::DivideL(|a, b| (b != 0).then(|| (a as i64).wrapping_rem(b as i64) as u64)),
        _ => return None,
    })
}

/// Products of twice the width.
pub(in super::super) fn wide(kind: Type) -> Option<Shape> {
    match kind {
        Type::U16 => words!(|a, b| a * b),
        Type::S16 => words!(|a, b| (i32::from(a as i16) * i32::from(b as i16)) as u32),
        Type::U32 => Some(Shape::LWW(|x, y, out| {
            for lane in 0..WARP {
                out[lane] = u64::from(x[lane]) * u64::from(y[lane]);
            }
        })),
        Type::S32 => Some(Shape::LWW(|x, y, out| {
            for lane in 0..WARP {
                out[lane] = (i64::from(x[lane] as i32) * i64::from(y[lane] as i32)) as u64;
            }
        })),
        _ => None,
    }
}

/// Products and a sum: `mad.lo`, `mad.hi`, `mad.wide`.
pub(in super::super) fn multiply_add(part: &str, kind: Type) -> Option<Shape> {
    match (part, kind) {
        ("lo", Type::U16 | Type::S16) => words!(|a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
        ("lo", Type::U32 | Type::S32) => words!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("lo", Type::U64 | Type::S64) => longs!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("hi", Type::U32) => words!(|a, b, c| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c)),
        ("hi", Type::S32) => {
            words!(|a, b, c| (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32).wrapping_add(c))
        }
        ("hi", Type::U64) => longs!(|a, b, c| high_unsigned(a, b).wrapping_add(c)),
        ("hi", Type::S64) => longs!(|a, b, c| high_signed(a, b).wrapping_add(c)),
        ("wide", Type::U16) => words!(|a, b, c| (a * b).wrapping_add(c)),
        ("wide", Type::S16) => {
            words!(|a, b, c| ((i32::from(a as i16) * i32::from(b as i16)) as u32).wrapping_add(c))
        }
        ("wide", Type::U32) => Some(Shape::LWWL(|x, y, z, out| {
            for lane in 0..WARP {
                out[lane] = (u64::from(x[lane]) * u64::from(y[lane])).wrapping_add(z[lane]);
            }
        })),
        ("wide", Type::S32) => Some(Shape::LWWL(|x, y, z, out| {
            for lane in 0..WARP {
                let product = i64::from(x[lane] as i32) * i64::from(y[lane] as i32);
                out[lane] = (product as u64).wrapping_add(z[lane]);
            }
        })),
        _ => None,
    }
}

/// Instructions of one operand.
pub(in super::super) fn one(name: &str, kind: Type) -> Option<Shape> {
    match (name, kind) {
        ("neg", Type::S16 | Type::S32 | Type::S64) => unary!(kind, |a| a.wrapping_neg()),
        ("abs", Type::S16 | Type::S32 | Type::S64) => unary!(kind, |a| a.wrapping_abs()),
        ("not", Type::B16 | Type::B32 | Type::B64) => unary!(kind, |a| !a),
        ("cnot", Type::B16 | Type::B32 | Type::B64) => unary!(kind, |a| (a == 0) as u8),
        ("mov", Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::BF16) => words!(|a| a & 0xffff),
        ("mov", Type::B32 | Type::U32 | Type::S32 | Type::F32) => words!(|a| a),
        ("mov", Type::B64 | Type::U64 | Type::S64 | Type::F64) => unary!(Type::B64, |a| a),
        ("popc", Type::B32) => words!(|a| a.count_ones()),
        ("clz", Type::B32) => words!(|a| a.leading_zeros()),
        ("brev", Type::B32) => words!(|a| a.reverse_bits()),
        ("brev", Type::B64) => unary!(kind, |a| a.reverse_bits()),
        ("popc", Type::B64) => of_long(|a| a.count_ones()),
        ("clz", Type::B64) => of_long(|a| a.leading_zeros()),
        ("bfind", Type::U32) => words!(|a| 31u32.wrapping_sub(a.leading_zeros())),
        ("bfind", Type::S32) => words!(|a| {
            let magnitude = if (a as i32) < 0 { !a } else { a };
            31u32.wrapping_sub(magnitude.leading_zeros())
        }),
        ("bfind", Type::U64) => of_long(|a| 63u32.wrapping_sub(a.leading_zeros())),
        ("bfind", Type::S64) => of_long(|a| {
            let magnitude = if (a as i64) < 0 { !a } else { a };
            63u32.wrapping_sub(magnitude.leading_zeros())
        }),
        _ => None,
    }
}

fn of_long(of: fn(u64) -> u32) -> Option<Shape> {
    Some(Shape::Each(std::sync::Arc::new(move |a, _| of(a).into()), false, true))
}

/// Shifts; by the width or more, they give what shifting bit by bit does.
pub(in super::super) fn shift(name: &str, kind: Type) -> Option<Shape> {
    let left = |width: u32| match width {
        16 => words!(|a, by| if by > 15 { 0 } else { (a << by) & 0xffff }),
        _ => words!(|a, by| if by > 31 { 0 } else { a << by }),
    };
    match (name, kind) {
        ("shl", Type::B16) => left(16),
        ("shl", Type::B32) => left(32),
        ("shl", Type::B64) => Some(Shape::LLW(|x, by, out| {
            for lane in 0..WARP {
                out[lane] = if by[lane] > 63 { 0 } else { x[lane] << by[lane] };
            }
        })),
        ("shr", Type::B16 | Type::U16 | Type::B32 | Type::U32) => words!(|a, by| if by > 31 { 0 } else { a >> by }),
        ("shr", Type::S16) => words!(|a, by| u32::from((a as i16 >> by.min(15)) as u16)),
        ("shr", Type::S32) => words!(|a, by| (a as i32 >> by.min(31)) as u32),
        ("shr", Type::B64 | Type::U64) => Some(Shape::LLW(|x, by, out| {
            for lane in 0..WARP {
                out[lane] = if by[lane] > 63 { 0 } else { x[lane] >> by[lane] };
            }
        })),
        ("shr", Type::S64) => Some(Shape::LLW(|x, by, out| {
            for lane in 0..WARP {
                out[lane] = (x[lane] as i64 >> by[lane].min(63)) as u64;
            }
        })),
        _ => None,
    }
}

/// `shf`: a funnel shift of two registers, the low half first; amounts above 32 wrap or are clamped.
pub(in super::super) fn funnel(direction: &str, mode: &str) -> Option<Shape> {
    match (direction, mode) {
        ("l", "wrap") => words!(|low, high, by| (joined(low, high) << (by & 31) >> 32) as u32),
        ("l", "clamp") => words!(|low, high, by| (joined(low, high) << by.min(32) >> 32) as u32),
        ("r", "wrap") => words!(|low, high, by| (joined(low, high) >> (by & 31)) as u32),
        ("r", "clamp") => words!(|low, high, by| (joined(low, high) >> by.min(32)) as u32),
        _ => None,
    }
}

fn joined(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Any function of three bits, by its table.
pub(in super::super) fn lookup() -> Option<Shape> {
    Some(Shape::WWWWW(|x, y, z, table, out| {
        for lane in 0..WARP {
            let (a, b, c, table) = (x[lane], y[lane], z[lane], table[lane]);
            let mut bits = 0;
            for row in 0..8 {
                let of = |value: u32, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
                if table >> row & 1 == 1 {
                    bits |= of(a, 2) & of(b, 1) & of(c, 0);
                }
            }
            out[lane] = bits;
        }
    }))
}

/// `bfe`: a field of bits, of its sign or of zeros beyond the highest one.
pub(in super::super) fn extract(kind: Type) -> Option<Shape> {
    match kind {
        Type::U32 => words!(|a, from, length| field(a.into(), from, length, 32, false) as u32),
        Type::S32 => words!(|a, from, length| field((a as i32 as i64) as u64, from, length, 32, true) as u32),
        Type::U64 => Some(Shape::LLWW(|x, from, length, out| {
            for lane in 0..WARP {
                out[lane] = field(x[lane], from[lane], length[lane], 64, false);
            }
        })),
        Type::S64 => Some(Shape::LLWW(|x, from, length, out| {
            for lane in 0..WARP {
                out[lane] = field(x[lane], from[lane], length[lane], 64, true);
            }
        })),
        _ => None,
    }
}

fn field(a: u64, from: u32, length: u32, width: u32, is_signed: bool) -> u64 {
    let (from, length) = (from & 0xff, length & 0xff);
    if length == 0 {
        return 0;
    }
    let bit = |place: u32| if place < 64 { a >> place & 1 } else { 0 };
    let sign = if is_signed { bit((from + length - 1).min(width - 1)) } else { 0 };
    let mut bits = if from < width { a >> from } else { 0 };
    // Beyond the operand there are signs.
    let taken = length.min(width.saturating_sub(from));
    if taken < 64 {
        bits &= (1 << taken) - 1;
        if sign == 1 {
            bits |= u64::MAX << taken;
        }
    }
    if width == 32 { bits & 0xffff_ffff } else { bits }
}

/// `bfi`: a field of bits of `a` in `b`.
pub(in super::super) fn insert(kind: Type) -> Option<Shape> {
    match kind {
        Type::B32 => Some(Shape::WWWWW(|a, b, from, length, out| {
            for lane in 0..WARP {
                out[lane] = inserted(a[lane].into(), b[lane].into(), from[lane], length[lane], 32) as u32;
            }
        })),
        Type::B64 => Some(Shape::LLLWW(|a, b, from, length, out| {
            for lane in 0..WARP {
                out[lane] = inserted(a[lane], b[lane], from[lane], length[lane], 64);
            }
        })),
        _ => None,
    }
}

fn inserted(a: u64, b: u64, from: u32, length: u32, width: u32) -> u64 {
    let (from, length) = (from & 0xff, length & 0xff);
    if from >= width || length == 0 {
        return b;
    }
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let mask = ones << from;
    (b & !mask) | (a << from & mask)
}

/// `prmt`: four bytes of eight.
pub(in super::super) fn permute(mode: Option<&str>) -> Option<Shape> {
    match mode {
        None => words!(|a, b, selector| picked(a, b, [0, 4, 8, 12].map(|shift| selector >> shift & 15))),
        Some("f4e") => words!(|a, b, s| picked(a, b, [0, 1, 2, 3].map(|byte| (byte + (s & 3)) & 7))),
        Some("b4e") => words!(|a, b, s| picked(a, b, [0u32, 7, 6, 5].map(|byte| (byte + (s & 3)) & 7))),
        Some("rc8") => words!(|a, b, s| picked(a, b, [s & 3; 4])),
        Some("ecl") => words!(|a, b, s| picked(a, b, [0, 1, 2, 3].map(|byte| byte.max(s & 3)))),
        Some("ecr") => words!(|a, b, s| picked(a, b, [0, 1, 2, 3].map(|byte| byte.min(s & 3)))),
        Some("rc16") => words!(|a, b, s| picked(a, b, [0, 1, 2, 3].map(|byte| (byte & 1) + 2 * (s & 1)))),
        _ => None,
    }
}

/// Bytes by number; with bit 3 set, a byte of its sign.
fn picked(a: u32, b: u32, selectors: [u32; 4]) -> u32 {
    let both = joined(a, b);
    let mut bits = 0;
    for (place, selector) in selectors.into_iter().enumerate() {
        let byte = (both >> (8 * (selector & 7))) as u8;
        let byte = if selector & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        bits |= u32::from(byte) << (8 * place);
    }
    bits
}

/// `dp4a`: the dot product of four bytes of `a` and of `b`, of these types, plus `c`.
pub(in super::super) fn dot_of_bytes(a: Type, b: Type) -> Option<Shape> {
    match (a.is_signed(), b.is_signed()) {
        (true, true) => words!(|a, b, c| dot(a, b, c, true, true)),
        (true, false) => words!(|a, b, c| dot(a, b, c, true, false)),
        (false, true) => words!(|a, b, c| dot(a, b, c, false, true)),
        (false, false) => words!(|a, b, c| dot(a, b, c, false, false)),
    }
}

fn dot(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let value = |byte: u8, is_signed: bool| if is_signed { i32::from(byte as i8) } else { i32::from(byte) };
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.fold(c, |sum, (a, b)| sum.wrapping_add((value(a, a_signed) * value(b, b_signed)) as u32))
}
