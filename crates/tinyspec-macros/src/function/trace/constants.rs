//! Constants: those of `std`, whose values are known, and those of the scope around the function, which Rust computes with.

use super::inference::{Float, Kind};
use super::{Tracer, Value};
use crate::diagnostics::source_text;
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::{BinOp, Expr, UnOp};
use tinyspec_ir::ops::LiteralKind;
use tinyspec_ir::{DType, Dim};

/// Constants of `std` that a body may name: `f32::consts::PI`.
pub(super) fn known_constant(segments: &[String]) -> Option<Float> {
    macro_rules! constants {
        ($($module:ident $make:ident;)*) => {
            match segments {
                $([.., module, consts, name] if module == stringify!($module) && consts == "consts" => {
                    use std::$module::consts;
                    Some(Float::$make(match name.as_str() {
                        "PI" => consts::PI,
                        "E" => consts::E,
                        "TAU" => consts::TAU,
                        "LN_2" => consts::LN_2,
                        "LN_10" => consts::LN_10,
                        "SQRT_2" => consts::SQRT_2,
                        "FRAC_PI_2" => consts::FRAC_PI_2,
                        "FRAC_1_SQRT_2" => consts::FRAC_1_SQRT_2,
                        _ => return None,
                    }))
                })*
                $([.., module, name] if module == stringify!($module) => Some(Float::$make(match name.as_str() {
                    "INFINITY" => $module::INFINITY,
                    "NEG_INFINITY" => $module::NEG_INFINITY,
                    "NAN" => $module::NAN,
                    "MAX" => $module::MAX,
                    "MIN" => $module::MIN,
                    "MIN_POSITIVE" => $module::MIN_POSITIVE,
                    "EPSILON" => $module::EPSILON,
                    _ => return None,
                })),)*
                _ => None,
            }
        };
    }
    constants! { f32 narrow; f64 wide; }
}

/// A size made of two.
pub(super) fn fold_dims(op: BinOp, a: &Dim, b: &Dim) -> Option<Dim> {
    Some(match op {
        BinOp::Add(_) => a + b,
        BinOp::Sub(_) => a - b,
        BinOp::Mul(_) => a * b,
        BinOp::Div(_) => a.idiv(b),
        BinOp::Rem(_) => a.modulo(b),
        _ => return None,
    })
}

impl Tracer<'_> {
    /// Arithmetic with an outer constant: Rust does it, by the rules of its type. As a size it is a sum of products.
    pub(super) fn fold_constants(&mut self, op: BinOp, left: &Value, right: &Value) -> Option<Value> {
        if !matches!(left, Value::Constant { .. }) && !matches!(right, Value::Constant { .. }) {
            return None;
        }
        let is_arithmetic = matches!(
            op,
            BinOp::Add(_)
                | BinOp::Sub(_)
                | BinOp::Mul(_)
                | BinOp::Div(_)
                | BinOp::Rem(_)
                | BinOp::BitAnd(_)
                | BinOp::BitOr(_)
                | BinOp::BitXor(_)
                | BinOp::Shl(_)
                | BinOp::Shr(_)
        );
        let ((a_text, a, a_kind), (b_text, b, b_kind)) = (in_rust(left)?, in_rust(right)?);
        if !is_arithmetic {
            return None;
        }
        let kind = a_kind.or(b_kind);
        let size = match kind {
            Some(LiteralKind::Float) => None,
            _ => self.as_dim(left).zip(self.as_dim(right)).and_then(|(a, b)| fold_dims(op, &a, &b)),
        };
        let text = format!("{a_text} {} {b_text}", source_text(&op));
        Some(Value::Constant { text, path: quote!((#a #op #b)), kind, size })
    }

    /// `-C` and `!C`.
    pub(super) fn negated_constant(&mut self, op: UnOp, value: &Value) -> Value {
        let Some((text, path, kind)) = in_rust(value) else { return Value::Unknown };
        let size = match (op, kind) {
            (UnOp::Neg(_), None | Some(LiteralKind::Int)) => self.as_dim(value).map(|size| Dim::from(0) - size),
            _ => None,
        };
        Value::Constant { text: format!("{}{text}", source_text(&op)), path: quote!((#op #path)), kind, size }
    }

    /// A constant beside a tensor of whole numbers.
    pub(super) fn refuse_unknown_kind(&mut self, text: &str, like: DType, expression: &Expr) -> Value {
        let text = if text.contains(' ') { format!("({text})") } else { text.to_string() };
        let whole = if like.is_int() && like != DType::Bool { like } else { DType::I32 };
        let message =
            format!("no macro sees whether `{text}` is a whole number: write `{text} as {whole}` or `{text} as f32`");
        self.refuse(expression, message)
    }
}

/// A number as users and as Rust write it, and what is known of its type.
fn in_rust(value: &Value) -> Option<(String, TokenStream, Option<LiteralKind>)> {
    Some(match value {
        Value::Constant { text, path, kind, .. } => {
            let text = if text.contains(' ') { format!("({text})") } else { text.clone() };
            (text, path.clone(), *kind)
        }
        Value::Int(number, kind) => {
            let literal = match kind {
                Kind::Known(ty) => {
                    let suffixed = format!("{}{}", number.unsigned_abs(), ty.name());
                    suffixed.parse::<Literal>().ok()?
                }
                Kind::Open(_) => Literal::u128_unsuffixed(number.unsigned_abs()),
            };
            let minus = (*number < 0).then(|| quote!(-));
            (number.to_string(), quote!((#minus #literal)), Some(LiteralKind::Int))
        }
        Value::Float(Float { wide, narrow, kind }) => {
            let literal = match kind {
                Kind::Known(ty) if ty.bits() == 32 => Literal::f32_suffixed(finite(narrow.abs().into())? as f32),
                Kind::Known(_) => Literal::f64_suffixed(finite(wide.abs())?),
                Kind::Open(_) => Literal::f64_unsuffixed(finite(wide.abs())?),
            };
            let minus = wide.is_sign_negative().then(|| quote!(-));
            (format!("{wide:?}"), quote!((#minus #literal)), Some(LiteralKind::Float))
        }
        _ => return None,
    })
}

/// Infinities have no literal.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}
