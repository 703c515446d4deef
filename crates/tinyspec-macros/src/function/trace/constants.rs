//! Constants: those of `std`, whose values are known, and those of the scope around the function, whose arithmetic is
//! left to Rust.

use super::inference::{Float, Kind};
use super::{Tracer, Value};
use crate::diagnostics::source_text;
use proc_macro2::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};
use quote::quote;
use syn::spanned::Spanned;
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

/// The same as a number and its dtype.
pub fn known_number(path: &syn::Path) -> Option<(f64, DType)> {
    let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let Float { wide, narrow, kind } = known_constant(&segments)?;
    Some(match kind {
        Kind::Known(ty) if ty.bits() == 32 => (narrow.into(), DType::F32),
        _ => (wide, DType::F64),
    })
}

/// Arithmetic on two sizes.
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
    /// Arithmetic with an outer constant is left to Rust, by the rules of its type. As a size it is a sum of products.
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
                | BinOp::And(_)
                | BinOp::Or(_)
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
        let path = quote!((#a #op #b));
        if matches!(op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_))
            && !self.is_open(&path)
            && !calls(path.clone())
        {
            // A computed number has no source location, so it gets the operator's.
            let at = op.span();
            let [a, b] = [(left, &a), (right, &b)].map(|(value, tokens)| match value {
                Value::Int(..) => spanned(tokens, at),
                _ => tokens.clone(),
            });
            self.computed.push(quote!(#a #op #b));
        }
        Some(Value::Constant { text, path, kind, size })
    }

    /// A comparison with a constant, which Rust evaluates.
    pub(super) fn compared_constants(&mut self, op: BinOp, left: &Value, right: &Value) -> Option<Value> {
        if !matches!(left, Value::Constant { .. }) && !matches!(right, Value::Constant { .. }) {
            return None;
        }
        let ((a_text, a, _), (b_text, b, _)) = (in_rust(left)?, in_rust(right)?);
        let text = format!("{a_text} {} {b_text}", source_text(&op));
        Some(Value::Constant { text, path: quote!((#a #op #b)), kind: None, size: None })
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

    /// `(D as f32).sqrt()`: a method of a number whose value only Rust knows.
    pub(super) fn constant_method(
        &mut self,
        method: &syn::Ident,
        receiver: &Value,
        arguments: &[Value],
    ) -> Option<Value> {
        let name = method.to_string();
        let is_of_floats = FLOAT_METHODS.contains(&name.as_str());
        if !is_of_floats && !NUMBER_METHODS.contains(&name.as_str()) {
            return None;
        }
        let (text, path, kind) = in_rust(receiver)?;
        let arguments = arguments.iter().map(in_rust).collect::<Option<Vec<_>>>()?;
        let (shown, given): (Vec<_>, Vec<_>) = arguments.into_iter().map(|(text, path, _)| (text, path)).unzip();
        let kind = if is_of_floats { Some(LiteralKind::Float) } else { kind };
        let text = format!("{text}.{name}({})", shown.join(", "));
        Some(Value::Constant { text, path: quote!(#path.#method(#(#given),*)), kind, size: None })
    }

    /// Refuses a constant of unknown type as an operand of a tensor of integers.
    pub(super) fn refuse_unknown_kind(&mut self, text: &str, like: DType, expression: &Expr) -> Value {
        let text = if text.contains(' ') { format!("({text})") } else { text.to_string() };
        let whole = if like.is_int() && like != DType::Bool { like } else { DType::I32 };
        let message =
            format!("macros cannot tell whether `{text}` is an integer: write `{text} as {whole}` or `{text} as f32`");
        self.refuse(expression, message)
    }
}

/// Methods that only floats have and that return a float.
pub(super) const FLOAT_METHODS: &[&str] = &[
    "sqrt",
    "exp",
    "exp2",
    "exp_m1",
    "ln",
    "ln_1p",
    "log",
    "log2",
    "log10",
    "recip",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sin",
    "cos",
    "tan",
    "tanh",
    "cbrt",
    "powf",
    "powi",
    "mul_add",
    "to_radians",
    "to_degrees",
];

/// Methods that return a number of the same type.
const NUMBER_METHODS: &[&str] = &[
    "abs",
    "signum",
    "min",
    "max",
    "clamp",
    "pow",
    "rem_euclid",
    "div_euclid",
    "div_ceil",
    "next_power_of_two",
    "isqrt",
];

/// A number as the user wrote it, as a Rust expression, and what is known about its type.
pub(super) fn in_rust(value: &Value) -> Option<(String, TokenStream, Option<LiteralKind>)> {
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
        Value::Bool(value) => (value.to_string(), quote!(#value), None),
        _ => return None,
    })
}

/// Gives generated tokens a span of the user's.
fn spanned(tokens: &TokenStream, span: Span) -> TokenStream {
    let at = |token| match token {
        TokenTree::Group(group) => {
            let mut group = Group::new(group.delimiter(), spanned(&group.stream(), span));
            group.set_span(span);
            group.into()
        }
        mut token => {
            token.set_span(span);
            token
        }
    };
    tokens.clone().into_iter().map(at).collect()
}

/// Whether the tokens call a function, which may not be a `const fn`.
fn calls(tokens: TokenStream) -> bool {
    let mut is_name = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => is_name && group.delimiter() == Delimiter::Parenthesis || calls(group.stream()),
        token => {
            is_name = matches!(token, TokenTree::Ident(_));
            false
        }
    })
}

/// Infinities have no literal.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}
