//! Predicates: comparisons, and what kind of number a float is.

use super::super::types::Type;
use super::{Long, Test, WARP, Word};
use crate::float::F16;

macro_rules! words {
    (|$a:ident, $b:ident| $holds:expr) => {
        Some(Test::WW(|x: &Word, y: &Word| {
            let mut mask = 0;
            for lane in 0..WARP {
                let ($a, $b) = (x[lane], y[lane]);
                mask |= u32::from($holds) << lane;
            }
            mask
        }))
    };
}

macro_rules! longs {
    (|$a:ident, $b:ident| $holds:expr) => {
        Some(Test::LL(|x: &Long, y: &Long| {
            let mut mask = 0;
            for lane in 0..WARP {
                let ($a, $b) = (x[lane], y[lane]);
                mask |= u32::from($holds) << lane;
            }
            mask
        }))
    };
}

macro_rules! ordered {
    ($macro:ident, $comparison:expr, $view:expr) => {
        match $comparison {
            "eq" => $macro!(|a, b| $view(a) == $view(b)),
            "ne" => $macro!(|a, b| $view(a) != $view(b)),
            "lt" | "lo" => $macro!(|a, b| $view(a) < $view(b)),
            "le" | "ls" => $macro!(|a, b| $view(a) <= $view(b)),
            "gt" | "hi" => $macro!(|a, b| $view(a) > $view(b)),
            "ge" | "hs" => $macro!(|a, b| $view(a) >= $view(b)),
            _ => None,
        }
    };
}

macro_rules! floats {
    ($macro:ident, $comparison:expr, $view:expr) => {
        match $comparison {
            // Where one is nan, `ne` is false and `neu` true.
            "ne" => $macro!(|a, b| $view(a) < $view(b) || $view(a) > $view(b)),
            "equ" => $macro!(|a, b| !($view(a) < $view(b) || $view(a) > $view(b))),
            "neu" => $macro!(|a, b| $view(a) != $view(b)),
            "ltu" => $macro!(|a, b| !($view(a) >= $view(b))),
            "leu" => $macro!(|a, b| !($view(a) > $view(b))),
            "gtu" => $macro!(|a, b| !($view(a) <= $view(b))),
            "geu" => $macro!(|a, b| !($view(a) < $view(b))),
            "num" => $macro!(|a, b| !$view(a).is_nan() && !$view(b).is_nan()),
            "nan" => $macro!(|a, b| $view(a).is_nan() || $view(b).is_nan()),
            "lo" | "ls" | "hi" | "hs" => None,
            name => ordered!($macro, name, $view),
        }
    };
}

/// The comparison of a type.
#[allow(clippy::neg_cmp_op_on_partial_ord, clippy::nonminimal_bool, reason = "what is not ordered counts")]
pub(in super::super) fn compare(comparison: &str, kind: Type, flush: bool) -> Option<Test> {
    match kind {
        Type::B16 | Type::B32 if matches!(comparison, "eq" | "ne") => ordered!(words, comparison, |a: u32| a),
        Type::B64 if matches!(comparison, "eq" | "ne") => ordered!(longs, comparison, |a: u64| a),
        Type::U16 | Type::U32 => ordered!(words, comparison, |a: u32| a),
        Type::S16 if !is_unsigned(comparison) => ordered!(words, comparison, |a: u32| a as i16),
        Type::S32 if !is_unsigned(comparison) => ordered!(words, comparison, |a: u32| a as i32),
        Type::U64 => ordered!(longs, comparison, |a: u64| a),
        Type::S64 if !is_unsigned(comparison) => ordered!(longs, comparison, |a: u64| a as i64),
        Type::F32 if flush => floats!(words, comparison, flushed),
        Type::F32 => floats!(words, comparison, f32::from_bits),
        Type::F64 => floats!(longs, comparison, f64::from_bits),
        Type::F16 if flush => floats!(words, comparison, |bits: u32| F16.decode(F16.flush(bits.into()))),
        Type::F16 => floats!(words, comparison, |bits: u32| F16.decode(bits.into())),
        Type::BF16 => floats!(words, comparison, |bits: u32| f32::from_bits(bits << 16)),
        _ => None,
    }
}

fn is_unsigned(comparison: &str) -> bool {
    matches!(comparison, "lo" | "ls" | "hi" | "hs")
}

fn flushed(bits: u32) -> f32 {
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

macro_rules! kinds {
    ($test:ident, $from:path, $name:expr) => {{
        macro_rules! of {
            (|$a:ident| $holds:expr) => {
                Some(Test::$test(|x| {
                    let mut mask = 0;
                    for lane in 0..WARP {
                        let $a = $from(x[lane]);
                        mask |= u32::from($holds) << lane;
                    }
                    mask
                }))
            };
        }
        match $name {
            "finite" => of!(|a| a.is_finite()),
            "infinite" => of!(|a| a.is_infinite()),
            "number" => of!(|a| !a.is_nan()),
            "notanumber" => of!(|a| a.is_nan()),
            "normal" => of!(|a| a.is_normal()),
            "subnormal" => of!(|a| a.is_subnormal()),
            _ => None,
        }
    }};
}

/// `testp`
pub(in super::super) fn property(name: &str, kind: Type) -> Option<Test> {
    match kind {
        Type::F32 => kinds!(W, f32::from_bits, name),
        Type::F64 => kinds!(L, f64::from_bits, name),
        _ => None,
    }
}
