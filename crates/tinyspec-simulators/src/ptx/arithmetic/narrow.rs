//! f16, bf16, pairs of them, and f32 in other modes than to nearest: exact in f64, rounded once.

use super::super::types::Type;
use super::{Mode, Shape, WARP};
use crate::float::{BF16, F16, F32, Format, Rounding, add_odd, divide_odd, multiply_add_odd, root_odd};
use std::sync::Arc;

/// The format of a type, and whether a register holds two.
pub(in super::super) fn format(kind: Type) -> Option<(Format, bool)> {
    Some(match kind {
        Type::F16 => (F16, false),
        Type::F16x2 => (F16, true),
        Type::BF16 => (BF16, false),
        Type::BF16x2 => (BF16, true),
        Type::F32 => (F32, false),
        _ => return None,
    })
}

/// A value of a format before and after an instruction.
#[derive(Clone, Copy)]
struct Scalar {
    format: Format,
    mode: Mode,
}

impl Scalar {
    fn operand(self, bits: u64) -> f64 {
        self.format.decode(if self.mode.flush { self.format.flush(bits) } else { bits })
    }

    fn result(self, value: f64) -> u64 {
        let (mode, format) = (self.mode, self.format);
        if mode.saturate {
            let value = if value > 0.0 { value.min(1.0) } else { 0.0 };
            return self.flushed(format.encode(value, mode.rounding.unwrap_or(Rounding::Even)));
        }
        if mode.relu && value < 0.0 {
            return 0;
        }
        self.flushed(format.encode(value, mode.rounding.unwrap_or(Rounding::Even)))
    }

    fn flushed(self, bits: u64) -> u64 {
        if self.mode.flush { self.format.flush(bits) } else { bits }
    }
}

/// On both halves of a register, or on all of it.
fn halves(is_pair: bool, of: impl Fn([u64; 3]) -> u64, operands: [u32; 3]) -> u32 {
    let operands = operands.map(u64::from);
    match is_pair {
        false => of(operands) as u32,
        true => {
            let (low, high) = (of(operands.map(|bits| bits & 0xffff)), of(operands.map(|bits| bits >> 16)));
            (low | high << 16) as u32
        }
    }
}

/// A sum that is exact where a zero comes of it: then its sign is that of the mode.
fn sum(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = add_odd(a, b);
    match sum == 0.0 && rounding == Rounding::Down && a.is_sign_negative() != b.is_sign_negative() {
        true => -0.0,
        false => sum,
    }
}

/// The function of an instruction with at most three operands; missing ones are 0.
#[derive(Clone)]
pub(crate) struct Exact {
    pub of: Arc<dyn Fn([u32; 3]) -> u32 + Send + Sync>,
}

/// The function of a lane.
pub(in super::super) fn exact(name: &str, kind: Type, mode: Mode) -> Option<Exact> {
    let (format, is_pair) = format(kind)?;
    let scalar = Scalar { format, mode };
    let rounding = mode.rounding.unwrap_or(Rounding::Even);
    let function: fn(f64, f64, f64, Rounding) -> f64 = match name {
        "add" => |a, b, _, rounding| sum(a, b, rounding),
        "sub" => |a, b, _, rounding| sum(a, -b, rounding),
        "mul" => |a, b, _, _| a * b,
        "fma" => |a, b, c, rounding| match a.is_finite() && b.is_finite() {
            true => sum(a * b, c, rounding),
            false => multiply_add_odd(a, b, c),
        },
        "div" => |a, b, _, _| divide_odd(a, b),
        "rcp" => |a, _, _, _| divide_odd(1.0, a),
        "sqrt" => |a, _, _, _| root_odd(a),
        "ex2" => |a, _, _, _| a.exp2(),
        "tanh" => |a, _, _, _| a.tanh(),
        "min" => |a, b, _, _| {
            if a.is_nan() {
                b
            } else if b.is_nan() || lies_below(a, b) {
                a
            } else {
                b
            }
        },
        "max" => |a, b, _, _| {
            if a.is_nan() {
                b
            } else if b.is_nan() || lies_below(b, a) {
                a
            } else {
                b
            }
        },
        "abs" | "neg" => {
            let (is_neg, sign) = (name == "neg", 1u64 << (format.exponent + format.mantissa));
            let of = move |[a, _, _]: [u64; 3]| {
                let a = scalar.flushed(a);
                if is_neg { a ^ sign } else { a & !sign }
            };
            return Some(Exact { of: Arc::new(move |operands| halves(is_pair, of, operands)) });
        }
        _ => return None,
    };
    let takes_nan = mode.nan;
    let of = move |operands: [u64; 3]| {
        let [a, b, c] = operands.map(|bits| scalar.operand(bits));
        if takes_nan && (a.is_nan() || b.is_nan()) {
            return format.nan;
        }
        scalar.result(function(a, b, c, rounding))
    };
    Some(Exact { of: Arc::new(move |operands| halves(is_pair, of, operands)) })
}

/// An instruction with an f32 result whose operands, all but the last, are narrower.
pub(in super::super) fn mixed(name: &str, narrow: Type, mode: Mode) -> Option<Exact> {
    let (format, _) = format(narrow)?;
    let Exact { of } = exact(name, Type::F32, mode)?;
    let wide = move |bits: u32| (format.decode(bits.into()) as f32).to_bits();
    let is_product = name == "fma";
    Some(Exact { of: Arc::new(move |[a, b, c]| of([wide(a), if is_product { wide(b) } else { b }, c])) })
}

fn lies_below(a: f64, b: f64) -> bool {
    a < b || (a == b && a.is_sign_negative())
}

macro_rules! fast {
    ($decode:expr, $encode:expr; $($name:literal => |$a:ident, $b:ident| $value:expr;)*) => {
        |name: &str| -> Option<Shape> {
            match name {
                $($name => Some(Shape::WWW(|x, y, out| {
                    for lane in 0..WARP {
                        let ($a, $b) = ($decode(x[lane]), $decode(y[lane]));
                        out[lane] = $encode($value);
                    }
                })),)*
                _ => None,
            }
        }
    };
}

/// bf16 to nearest: products and sums of two in f32 have a neighbour to round to that the sticky bit of f64 decides.
pub(in super::super) fn brain(name: &str) -> Option<Shape> {
    let of = fast! { |bits: u32| f64::from(f32::from_bits(bits << 16)), |value: f64| BF16.encode(value, Rounding::Even) as u32;
        "add" => |a, b| add_odd(a, b);
        "sub" => |a, b| add_odd(a, -b);
        "mul" => |a, b| a * b;
    };
    of(name)
}
