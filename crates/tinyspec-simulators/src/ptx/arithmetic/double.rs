//! f64, rounded to nearest. What a nan holds is the host's.

use super::{Long, Shape, WARP};

macro_rules! doubles {
    (|$a:ident| $value:expr) => {
        Shape::LL(|x: &Long, out: &mut Long| {
            for lane in 0..WARP {
                let $a = f64::from_bits(x[lane]);
                out[lane] = f64::to_bits($value);
            }
        })
    };
    (|$a:ident, $b:ident| $value:expr) => {
        Shape::LLL(|x: &Long, y: &Long, out: &mut Long| {
            for lane in 0..WARP {
                let ($a, $b) = (f64::from_bits(x[lane]), f64::from_bits(y[lane]));
                out[lane] = f64::to_bits($value);
            }
        })
    };
}

/// Instructions of two operands.
pub(in super::super) fn two(name: &str) -> Option<Shape> {
    Some(match name {
        "add" => doubles!(|a, b| a + b),
        "sub" => doubles!(|a, b| a - b),
        "mul" => doubles!(|a, b| a * b),
        "div" => doubles!(|a, b| a / b),
        "min" => doubles!(|a, b| if a.is_nan() {
            b
        } else if b.is_nan() || lies_below(a, b) {
            a
        } else {
            b
        }),
        "max" => doubles!(|a, b| if a.is_nan() {
            b
        } else if b.is_nan() || lies_below(b, a) {
            a
        } else {
            b
        }),
        "copysign" => doubles!(|a, b| b.copysign(a)),
        _ => return None,
    })
}

fn lies_below(a: f64, b: f64) -> bool {
    a < b || (a == b && a.is_sign_negative())
}

/// Instructions of one operand.
pub(in super::super) fn one(name: &str) -> Option<Shape> {
    Some(match name {
        "sqrt" => doubles!(|a| a.sqrt()),
        "rcp" => doubles!(|a| 1.0 / a),
        "abs" => doubles!(|a| a.abs()),
        "neg" => doubles!(|a| -a),
        _ => return None,
    })
}

#[inline(always)]
fn fused_lanes(a: &Long, b: &Long, c: &Long, out: &mut Long) {
    for lane in 0..WARP {
        let [a, b, c] = [a[lane], b[lane], c[lane]].map(f64::from_bits);
        out[lane] = a.mul_add(b, c).to_bits();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fused_by_hardware(a: &Long, b: &Long, c: &Long, out: &mut Long) {
    fused_lanes(a, b, c, out);
}

/// fma of f64.
pub(in super::super) fn multiply_add() -> Shape {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has both.
        return Shape::LLLL(|a, b, c, out| unsafe { fused_by_hardware(a, b, c, out) });
    }
    Shape::LLLL(fused_lanes)
}
