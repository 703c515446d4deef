//! Composed functions whose slope is shorter than what follows from their composition. They are recognised by comparing with the
//! composition itself.
//!
//! Slopes are functions of the argument, and are differentiated in turn: second derivatives need no more of the composition than
//! first ones.

use super::arithmetic::{mul, sub};
use super::elementwise::{exp, scale, shift, sqrt, square};
use super::{activation, hyperbolic, inverse, like, logarithm, trigonometry};
use crate::{Builder, Const, Graph, NodeId, Op, Result};
use rustc_hash::FxHashSet;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, FRAC_PI_2, LN_2, LOG2_E};

type Function = fn(&mut dyn Builder, NodeId) -> Result<NodeId>;

/// A composed function with a closed-form slope.
struct Known {
    /// The argument that a node would have if it were this function. A cheap filter: the comparison builds the composition.
    argument: fn(&Graph, NodeId) -> Option<NodeId>,
    function: Function,
    slope: Function,
}

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    Known { argument: of_odd,        function: inverse::asin,               slope: asin_slope },
    Known { argument: of_acos,       function: inverse::acos,               slope: acos_slope },
    Known { argument: of_odd,        function: inverse::atan,               slope: atan_slope },
    Known { argument: of_odd,        function: inverse::asinh,              slope: asinh_slope },
    Known { argument: of_odd,        function: inverse::atanh,              slope: atanh_slope },
    Known { argument: of_odd,        function: inverse::erf,                slope: |b, x| bell_slope(b, x, 1.0, 1.0) },
    Known { argument: of_odd,        function: inverse::erfc,               slope: |b, x| bell_slope(b, x, -1.0, 1.0) },
    Known { argument: of_odd,        function: erfc_of_share,               slope: |b, x| bell_slope(b, x, -FRAC_1_SQRT_2, 0.5) },
    Known { argument: of_mirrored,   function: hyperbolic::tanh,            slope: hyperbolic::tanh_slope },
    Known { argument: of_mirrored,   function: activation::softsign,        slope: softsign_slope },
    Known { argument: of_bounded,    function: hyperbolic::tanh_slope,      slope: second_slope_of_tanh },
    Known { argument: of_squared,    function: hyperbolic::expm1_of_double, slope: expm1_slope },
    Known { argument: of_squared,    function: hyperbolic::sinh,            slope: hyperbolic::cosh },
    Known { argument: of_cosh,       function: hyperbolic::cosh,            slope: hyperbolic::sinh },
    Known { argument: of_near,       function: inverse::asinh_of_magnitude, slope: asinh_slope },
    Known { argument: of_magnitude,  function: logarithm::log1p,            slope: log1p_slope },
    Known { argument: of_log1p_exp,  function: hyperbolic::log1p_exp,       slope: |b, x| share_of_power(b, x, LOG2_E) },
    Known { argument: of_sigmoid,    function: activation::sigmoid,         slope: sigmoid_slope },
    Known { argument: of_share,      function: |b, x| share(b, x),          slope: share_slope },
    Known { argument: of_tan,        function: trigonometry::tan,           slope: tan_slope },
];

/// Recognises `node` as one of the functions above: its argument, and the slope there. None where a gradient is wanted of
/// something between the two.
pub(crate) fn slope_of(graph: &mut Graph, node: NodeId, wanted: &[NodeId]) -> Option<(NodeId, NodeId)> {
    KNOWN.iter().find_map(|known| {
        let x = (known.argument)(graph, node)?;
        let again = (known.function)(graph, x).ok()?;
        if !graph.is_equal(again, node) || is_between(graph, node, x, wanted) {
            return None;
        }
        Some((x, (known.slope)(graph, x).ok()?))
    })
}

/// Whether one of the `wanted` nodes is part of the composition that computes `node` from `x`.
fn is_between(graph: &Graph, node: NodeId, x: NodeId, wanted: &[NodeId]) -> bool {
    let mut met = FxHashSet::from_iter([x]);
    let mut open = graph.sources(node).to_vec();
    while let Some(inner) = open.pop() {
        if met.insert(inner) {
            if wanted.contains(&inner) {
                return true;
            }
            open.extend(graph.sources(inner));
        }
    }
    false
}

fn sources<const N: usize>(graph: &Graph, node: NodeId, op: Op) -> Option<[NodeId; N]> {
    if graph.op(node) == op { graph.sources(node).try_into().ok() } else { None }
}

fn is_number(graph: &Graph, node: NodeId, number: f64) -> bool {
    graph.as_const(node) == Some(Const::float(graph.dtype(node), number))
}

/// `x op number`.
fn with_number(graph: &Graph, node: NodeId, op: Op, number: f64) -> Option<NodeId> {
    let [x, other] = sources(graph, node, op)?;
    is_number(graph, other, number).then_some(x)
}

/// Whether `reflected` is `-value`, or that plus a number. The magnitude of the argument itself, `Where(…, -x, x)`, does not count.
fn is_reflected(graph: &Graph, reflected: NodeId, value: NodeId, x: NodeId) -> bool {
    let minus = if graph.op(reflected) == Op::Add { graph.source(reflected, 0) } else { reflected };
    value != x && graph.op(minus) == Op::Mul && graph.sources(minus).contains(&value)
}

/// `Where(x < 0, -value, value)`.
fn of_odd(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [negative, reflected, value] = sources(graph, node, Op::Where)?;
    let x = with_number(graph, negative, Op::CmpLt, 0.0)?;
    is_reflected(graph, reflected, value, x).then_some(x)
}

/// `Where(0 < x, -value, value)`.
fn of_mirrored(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [positive, reflected, value] = sources(graph, node, Op::Where)?;
    let [zero, x] = sources(graph, positive, Op::CmpLt)?;
    (is_number(graph, zero, 0.0) && is_reflected(graph, reflected, value, x)).then_some(x)
}

/// `-|x|` as `Where(0 < x, -x, x)`.
fn of_minus_magnitude(graph: &Graph, minus: NodeId) -> Option<NodeId> {
    let [_, _, x] = sources(graph, minus, Op::Where)?;
    Some(x)
}

/// `Where(-|x| < bound, 0, value²)`.
fn of_bounded(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [is_beyond, zero, value] = sources(graph, node, Op::Where)?;
    let [minus, _] = sources(graph, is_beyond, Op::CmpLt)?;
    let is_square = graph.op(value) == Op::Mul && graph.source(value, 0) == graph.source(value, 1);
    if is_square && is_number(graph, zero, 0.0) { of_minus_magnitude(graph, minus) } else { None }
}

/// `Where(x² < bound, …, …)`.
fn of_squared(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [holds, ..]: [NodeId; 3] = sources(graph, node, Op::Where)?;
    let squared = with_number(graph, holds, Op::CmpLt, 0.25)?;
    let [x, again] = sources(graph, squared, Op::Mul)?;
    (x == again).then_some(x)
}

/// `Where(x < 1/2, …, log … + log …)`.
fn of_near(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [is_near, _, far] = sources(graph, node, Op::Where)?;
    let [log, other] = sources(graph, far, Op::Add)?;
    let is_log = |log| with_number(graph, log, Op::Mul, LN_2).is_some();
    let x = with_number(graph, is_near, Op::CmpLt, 0.5)?;
    (is_log(log) && is_log(other)).then_some(x)
}

/// `Where(max(x, -x) < 1/2, …, log …)`.
fn of_magnitude(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [is_near, _, far] = sources(graph, node, Op::Where)?;
    let magnitude = with_number(graph, is_near, Op::CmpLt, 0.5)?;
    with_number(graph, far, Op::Mul, LN_2)?;
    let [x, _] = sources(graph, magnitude, Op::Max)?;
    Some(x)
}

/// `Where(max(x, -x) < 1/2, … + π/2, …)`.
fn of_acos(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [is_near, near, _] = sources(graph, node, Op::Where)?;
    let magnitude = with_number(graph, is_near, Op::CmpLt, 0.5)?;
    with_number(graph, near, Op::Add, FRAC_PI_2)?;
    let [x, _] = sources(graph, magnitude, Op::Max)?;
    Some(x)
}

/// `2^scaled / 2 * 2^scaled + …`, with `scaled = x/2 log2 e`.
fn of_cosh(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [up, _] = sources(graph, node, Op::Add)?;
    let [half, root] = sources(graph, up, Op::Mul)?;
    let [scaled] = sources(graph, root, Op::Exp2)?;
    with_number(graph, half, Op::Mul, 0.5)?;
    with_number(graph, scaled, Op::Mul, 0.5 * LOG2_E)
}

/// `2 ratio P(ratio²)`, with `2^(x log2 e)` as the numerator of the ratio.
fn of_log1p_exp(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let half = with_number(graph, node, Op::Mul, 2.0)?;
    let [ratio, _] = sources(graph, half, Op::Mul)?;
    let [power, _] = sources(graph, ratio, Op::Div)?;
    let [scaled] = sources(graph, power, Op::Exp2)?;
    with_number(graph, scaled, Op::Mul, LOG2_E)
}

/// `Where(0 < x, 1, power) / (power + 1)`, with `2^(-|x| log2 e)` as the power.
fn of_sigmoid(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [numerator, sum] = sources(graph, node, Op::Div)?;
    let [_, one, power] = sources(graph, numerator, Op::Where)?;
    let [scaled] = sources(graph, power, Op::Exp2)?;
    let minus = with_number(graph, scaled, Op::Mul, LOG2_E)?;
    let is_share = is_number(graph, one, 1.0) && with_number(graph, sum, Op::Add, 1.0) == Some(power);
    if is_share { of_minus_magnitude(graph, minus) } else { None }
}

/// `2^x / (2^x + 1)`.
fn of_share(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [power, sum] = sources(graph, node, Op::Div)?;
    let [x] = sources(graph, power, Op::Exp2)?;
    (with_number(graph, sum, Op::Add, 1.0) == Some(power)).then_some(x)
}

/// `sin x / cos x`.
fn of_tan(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let [sine, cosine] = sources(graph, node, Op::Div)?;
    let [x] = sources(graph, sine, Op::Sin)?;
    (graph.op(cosine) == Op::Where).then_some(x)
}

fn erfc_of_share(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    inverse::rest(b, x, FRAC_1_SQRT_2, 0.5)
}

/// `1 - x²` as a product, which does not cancel near the ends.
fn complement(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let one = like(b, x, 1.0);
    let (below, above) = (sub(b, one, x)?, shift(b, x, 1.0)?);
    mul(b, below, above)
}

/// `1 / √(1 - x²)`.
fn asin_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let complement = complement(b, x)?;
    let root = sqrt(b, complement)?;
    b.alu(Op::Recip, &[root])
}

fn acos_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let slope = asin_slope(b, x)?;
    scale(b, slope, -1.0)
}

/// `1 + x²`.
fn sum_with_square(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let squared = square(b, x)?;
    shift(b, squared, 1.0)
}

/// `1 / (1 + x²)`.
fn atan_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let sum = sum_with_square(b, x)?;
    b.alu(Op::Recip, &[sum])
}

/// `1 / √(1 + x²)`.
fn asinh_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let sum = sum_with_square(b, x)?;
    let root = sqrt(b, sum)?;
    b.alu(Op::Recip, &[root])
}

/// `1 / (1 - x²)`, nan outside of -1..1.
fn atanh_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let complement = complement(b, x)?;
    let (zero, one, nan) = (like(b, x, 0.0), like(b, x, 1.0), like(b, x, f64::NAN));
    let is_outside = b.alu(Op::CmpLt, &[complement, zero])?;
    // A factor, so that further slopes are nan as well.
    let factor = b.alu(Op::Where, &[is_outside, nan, one])?;
    let complement = mul(b, complement, factor)?;
    b.alu(Op::Recip, &[complement])
}

/// `2 factor/√π e^(-(factor x)²)`, given the exact square of the factor.
fn bell_slope(b: &mut dyn Builder, x: NodeId, factor: f64, factor_squared: f64) -> Result<NodeId> {
    let squared = square(b, x)?;
    let exponent = scale(b, squared, -factor_squared)?;
    let power = exp(b, exponent)?;
    scale(b, power, factor * FRAC_2_SQRT_PI)
}

/// `-2 tanh x / cosh² x`.
fn second_slope_of_tanh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let (tangent, slope) = (hyperbolic::tanh(b, x)?, hyperbolic::tanh_slope(b, x)?);
    let product = mul(b, tangent, slope)?;
    scale(b, product, -2.0)
}

/// `1 / (1 + |x|)²`.
fn softsign_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let positive = hyperbolic::is_positive(b, x)?;
    let minus = hyperbolic::minus_magnitude(b, x, positive)?;
    let magnitude = scale(b, minus, -1.0)?;
    let sum = shift(b, magnitude, 1.0)?;
    let share = b.alu(Op::Recip, &[sum])?;
    square(b, share)
}

/// `2 e^2x`, by the power of the composition.
fn expm1_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let scaled = scale(b, x, LOG2_E)?;
    let root = b.alu(Op::Exp2, &[scaled])?;
    let power = square(b, root)?;
    scale(b, power, 2.0)
}

/// `1 / (1 + x)`.
fn log1p_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let sum = shift(b, x, 1.0)?;
    b.alu(Op::Recip, &[sum])
}

/// `2^x / (2^x + 1)`, where the power does not overflow.
fn share(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let power = b.alu(Op::Exp2, &[x])?;
    let sum = shift(b, power, 1.0)?;
    b.alu(Op::Div, &[power, sum])
}

/// [`share`] of `factor x`.
fn share_of_power(b: &mut dyn Builder, x: NodeId, factor: f64) -> Result<NodeId> {
    let scaled = scale(b, x, factor)?;
    share(b, scaled)
}

/// `share (1 - share)`.
fn variance(b: &mut dyn Builder, share: NodeId) -> Result<NodeId> {
    let one = like(b, share, 1.0);
    let rest = sub(b, one, share)?;
    mul(b, share, rest)
}

fn share_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let share = share(b, x)?;
    let variance = variance(b, share)?;
    scale(b, variance, LN_2)
}

/// The slope is even, so the share may be that of `-|x|`, from whose complement it does not cancel.
fn sigmoid_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let positive = hyperbolic::is_positive(b, x)?;
    let minus = hyperbolic::minus_magnitude(b, x, positive)?;
    let share = share_of_power(b, minus, LOG2_E)?;
    variance(b, share)
}

/// `1 + tan²`.
fn tan_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let tangent = trigonometry::tan(b, x)?;
    sum_with_square(b, tangent)
}
