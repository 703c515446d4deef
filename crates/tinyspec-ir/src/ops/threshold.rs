//! Activations by pieces, and gates.

use super::arithmetic::{mul, where_};
use super::elementwise::{abs, clip, scale, scale_given, shift_given};
use super::hyperbolic::is_positive;
use super::movement::split_sizes;
use super::{axis_of, given, in_wide, inverse, like, shape_of, to_float};
use crate::dim::show;
use crate::{Builder, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Gelu by its definition, `x/2 (1 + erf(x / √2))`.
pub fn gelu_erf(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        // The lower half keeps its digits as x/2 erfc(-x / √2).
        let share = inverse::twice_the_share(b, x)?;
        let (zero, bound) = (like(b, x, 0.0), like(b, x, -1e4));
        let beyond = b.alu(Op::CmpLt, &[x, bound])?;
        let bounded = b.alu(Op::Where, &[beyond, zero, x])?;
        let half = scale(b, bounded, 0.5)?;
        b.alu(Op::Mul, &[half, share])
    })
}

/// `x` within `min` and `max`, -1 and 1 as it is usual.
pub fn hardtanh(b: &mut dyn Builder, x: NodeId, min: f64, max: f64) -> Result<NodeId> {
    ordered("hardtanh", min, max)?;
    clip(b, x, min, max)
}

fn ordered(op: &str, min: f64, max: f64) -> Result<()> {
    if min <= max {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Value, op, format!("there is nothing from {min} to {max}")).help("the lower bound first"))
}

/// `x` where it is greater than `bound`, `value` elsewhere.
pub fn threshold(b: &mut dyn Builder, x: NodeId, bound: f64, value: f64) -> Result<NodeId> {
    let (bound, value) = (given(b, x, bound), super::given_element(b, "threshold", x, value)?);
    let below = super::arithmetic::le(b, x, bound)?;
    b.alu(Op::Where, &[below, value, x])
}

/// 0 where `|x| <= lambda`, `x` elsewhere.
pub fn hardshrink(b: &mut dyn Builder, x: NodeId, lambda: f64) -> Result<NodeId> {
    let magnitude = abs(b, x)?;
    let (bound, zero) = (given(b, x, lambda), like(b, x, 0.0));
    let small = super::arithmetic::le(b, magnitude, bound)?;
    b.alu(Op::Where, &[small, zero, x])
}

/// `x` moved by `lambda` toward 0, and not beyond.
pub fn softshrink(b: &mut dyn Builder, x: NodeId, lambda: f64) -> Result<NodeId> {
    ordered("softshrink", 0.0, lambda)?;
    let x = to_float(b, x)?;
    let inner = clip(b, x, -lambda, lambda)?;
    super::arithmetic::sub(b, x, inner)
}

/// `x - tanh(x)`.
pub fn tanhshrink(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let tanh = super::hyperbolic::tanh(b, x)?;
        super::arithmetic::sub(b, x, tanh)
    })
}

/// `x` above 0, `weight * x` below, with a weight for each channel (axis 1) or one for all (He et al., 2015).
pub fn prelu(b: &mut dyn Builder, x: NodeId, weight: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let (shape, weights) = (shape_of(b, x), shape_of(b, weight));
    let weight = match (&weights[..], &shape[..]) {
        ([], _) => weight,
        ([count], _) if count.is(1) => weight,
        ([count], [_, channels, rest @ ..]) if count == channels => {
            let along: Shape =
                [count.clone()].into_iter().chain(std::iter::repeat_n(Dim::from(1), rest.len())).collect();
            super::movement::reshape(b, weight, &along)?
        }
        _ => {
            let message = format!("weights of {} for {}", show(&weights), show(&shape));
            return Err(Error::new(ErrorKind::Shape, "prelu", message).help("one, or one for each channel, axis 1"));
        }
    };
    let positive = is_positive(b, x)?;
    let scaled = mul(b, x, weight).map_err(|error| error.in_op("prelu"))?;
    where_(b, positive, x, scaled)
}

/// The first half of an axis times the sigmoid of the second (Dauphin et al., 2017).
pub fn glu(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let dim = &shape[axis_of("glu", axis, &shape)?];
    let Some(half) = dim.as_const().filter(|length| length % 2 == 0).map(|length| length / 2) else {
        return Err(Error::new(ErrorKind::Shape, "glu", format!("axis {axis} of {} has no halves", show(&shape)))
            .help("an axis of an even length: values, then their gates"));
    };
    let parts = split_sizes(b, x, &[half, half], axis)?;
    let [value, gate] = parts[..] else { unreachable!("two sizes give two parts") };
    let gate = super::activation::sigmoid(b, gate)?;
    mul(b, value, gate)
}

/// 1 above 0, `value` at 0, 0 elsewhere, of nan too.
pub fn heaviside(b: &mut dyn Builder, x: NodeId, value: NodeId) -> Result<NodeId> {
    let (zero, one) = (like(b, x, 0.0), like(b, x, 1.0));
    let above = b.alu(Op::CmpLt, &[zero, x])?;
    let nonzero = b.alu(Op::CmpNe, &[x, zero])?;
    let outside = b.alu(Op::Where, &[above, one, zero])?;
    where_(b, nonzero, outside, value).map_err(|error| error.in_op("heaviside"))
}

/// nan as `nan`, +∞ as `posinf`, -∞ as `neginf`.
pub fn nan_to_num(b: &mut dyn Builder, x: NodeId, nan: f64, posinf: f64, neginf: f64) -> Result<NodeId> {
    if !super::dtype_of(b, x).is_float() {
        return Ok(x);
    }
    let mut x = x;
    for (infinite, value) in [(f64::INFINITY, posinf), (f64::NEG_INFINITY, neginf)] {
        let (infinite, value) = (like(b, x, infinite), given(b, x, value));
        let hit = super::arithmetic::eq(b, x, infinite)?;
        x = b.alu(Op::Where, &[hit, value, x])?;
    }
    let (is_nan, value) = (super::elementwise::isnan(b, x)?, given(b, x, nan));
    b.alu(Op::Where, &[is_nan, value, x])
}

/// `|x - y| <= atol + rtol |y|`; equal infinities are close, nan is to nothing.
pub fn isclose(b: &mut dyn Builder, x: NodeId, y: NodeId, rtol: f64, atol: f64) -> Result<NodeId> {
    let (x, y) = super::promote(b, "isclose", x, y)?;
    let (x, y) = (to_float(b, x)?, to_float(b, y)?);
    let wide = super::dtype_of(b, x).accumulator();
    let (x, y) = (super::cast(b, x, wide)?, super::cast(b, y, wide)?);
    let equal = super::arithmetic::eq(b, x, y).map_err(|error| error.in_op("isclose"))?;
    let difference = super::arithmetic::sub(b, x, y)?;
    let (distance, magnitude) = (abs(b, difference)?, abs(b, y)?);
    let scaled = scale_given(b, magnitude, rtol)?;
    let bound = shift_given(b, scaled, atol)?;
    let near = super::arithmetic::le(b, distance, bound)?;
    let finite = super::elementwise::isfinite(b, y)?;
    let near = b.alu(Op::And, &[near, finite])?;
    b.alu(Op::Or, &[equal, near])
}

/// Are all elements close ([`isclose`]).
pub fn allclose(b: &mut dyn Builder, x: NodeId, y: NodeId, rtol: f64, atol: f64) -> Result<NodeId> {
    let close = isclose(b, x, y, rtol, atol).map_err(|error| error.in_op("allclose"))?;
    super::reduce::all(b, close, None, false)
}
