//! Functions of statistics and physics: inverses of the error function, gamma, Bessel. Small floats are computed in f32
//! and rounded once.
//!
//! The coefficients interpolate the functions at Chebyshev's points, in 50 digits; highest power first.

use super::arithmetic::{add, div, eq, mul, sub};
use super::elementwise::{abs, exp, log, polynomial, round, scale, shift, sqrt, square};
use super::{Bounded, cast, dtype_of, in_wide, in_wide_of, inverse, like, to_float};
use crate::{Builder, DType, NodeId, Op, Result};
use std::f64::consts::{LN_2, PI, SQRT_2};

/// `erf⁻¹(y) / y` at `w - 2.5` for `w = -log(1 - y²)` below 5.
const INNER: &[f64] = &[
    2.2605977741170975e-08,
    3.4222470899345687e-07,
    -3.454779514269784e-06,
    -4.38034671412375e-06,
    0.00021831297984101024,
    -0.001253758884835318,
    -0.004177346517287056,
    0.2466407662672499,
    1.501409351110792,
];

/// `erf⁻¹(y)` at `√w - 4` for w from 5 to 49.
const MIDDLE: &[f64] = &[
    9.497355245600501e-08,
    -2.1557380511089e-06,
    1.820575496047092e-05,
    -8.75069850876425e-05,
    0.00030517831653982346,
    -0.0008559823107154959,
    0.0012466019115287181,
    1.0094971780637587,
    3.8397842649315965,
];

/// `erf⁻¹(y)` at `√w - 17` for w from 49 on.
const OUTER: &[f64] = &[
    1.4450000259334717e-12,
    -1.2034330539589247e-11,
    -4.737754670377232e-10,
    1.1596953685680787e-08,
    -2.2516540323692859e-07,
    5.276592401700457e-06,
    -0.00012449591208215722,
    1.0029758298499407,
    16.920122190293487,
];

/// Taylor coefficients of `sin(πx) / x` in x², highest power first: accurate to 2^-59 for |x| up to 1/2.
const SINE_OF_HALF_TURNS: &[f64] = &[
    -1.0518471716932065e-11,
    5.392664662608129e-10,
    -2.2948428997269873e-08,
    7.952054001475513e-07,
    -2.1915353447830217e-05,
    0.00046630280576761255,
    -0.0073704309457143504,
    0.08214588661112823,
    -0.5992645293207921,
    2.5501640398773455,
    -5.16771278004997,
    PI,
];

/// `sin(πx)` for |x| up to 1/2.
fn sine_of_half_turns(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let squared = square(b, x)?;
    let series = polynomial(b, squared, SINE_OF_HALF_TURNS)?;
    mul(b, x, series)
}

/// The x from 0 on with `erfc(x) = rest`, and `shown = 1 - rest`: a rational guess, and Newton's steps from there. What is
/// not between 0 and 1 is counted as 1/2.
fn of_rest(b: &mut dyn Builder, rest: NodeId, shown: NodeId) -> Result<NodeId> {
    let sum = shift(b, shown, 1.0)?;
    let product = mul(b, rest, sum)?;
    let logarithm = log(b, product)?;
    let w = scale(b, logarithm, -1.0)?;
    let (five, far) = (like(b, w, 5.0), like(b, w, 49.0));
    let (is_inner, is_middle) = (b.alu(Op::CmpLt, &[w, five])?, b.alu(Op::CmpLt, &[w, far])?);
    let inner = b.alu(Op::Where, &[is_inner, w, five])?;
    let inner = shift(b, inner, -2.5)?;
    let inner = polynomial(b, inner, INNER)?;
    let inner = mul(b, inner, shown)?;
    // No branch sees the others' arguments: the root has a slope.
    let outer = b.alu(Op::Where, &[is_inner, five, w])?;
    let root = sqrt(b, outer)?;
    let middle = shift(b, root, -4.0)?;
    let middle = polynomial(b, middle, MIDDLE)?;
    let outer = shift(b, root, -17.0)?;
    let outer = polynomial(b, outer, OUTER)?;
    let outer = b.alu(Op::Where, &[is_middle, middle, outer])?;
    let mut x = b.alu(Op::Where, &[is_inner, inner, outer])?;
    let steps = if dtype_of(b, x) == DType::F64 { 2 } else { 1 };
    for _ in 0..steps {
        let error = inverse::beyond_share(b, x, [shown, rest])?;
        let squared = square(b, x)?;
        // Below the normal numbers the guess stays: the growth would overflow.
        let bound = like(b, squared, if steps == 1 { 87.0 } else { 700.0 });
        let is_far = b.alu(Op::CmpLt, &[bound, squared])?;
        let zero = like(b, squared, 0.0);
        let (squared, error) = (b.alu(Op::Where, &[is_far, zero, squared])?, b.alu(Op::Where, &[is_far, zero, error])?);
        let growth = exp(b, squared)?;
        let step = mul(b, error, growth)?;
        let step = scale(b, step, PI.sqrt() / 2.0)?;
        x = sub(b, x, step)?;
    }
    Ok(x)
}

/// The inverse of the error function; infinite at -1 and 1, nan outside.
pub fn erfinv(b: &mut dyn Builder, y: NodeId) -> Result<NodeId> {
    in_wide(b, y, |b, y| {
        let (zero, one) = (like(b, y, 0.0), like(b, y, 1.0));
        let negative = b.alu(Op::CmpLt, &[y, zero])?;
        let minus = scale(b, y, -1.0)?;
        let magnitude = b.alu(Op::Where, &[negative, minus, y])?;
        let bounded = Bounded::below(b, magnitude, one)?;
        let half = like(b, y, 0.5);
        let shown = b.alu(Op::Where, &[bounded.inside, magnitude, half])?;
        let rest = sub(b, one, shown)?;
        let x = of_rest(b, rest, shown)?;
        let x = bounded.finish(b, x, magnitude)?;
        let minus = scale(b, x, -1.0)?;
        b.alu(Op::Where, &[negative, minus, x])
    })
}

/// The share of normal numbers below `x`.
pub fn ndtr(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let share = inverse::twice_the_share(b, x)?;
        scale(b, share, 0.5)
    })
}

/// The number that a share `p` of normal numbers is below.
pub fn ndtri(b: &mut dyn Builder, p: NodeId) -> Result<NodeId> {
    in_wide(b, p, |b, p| {
        let (zero, half, one) = (like(b, p, 0.0), like(b, p, 0.5), like(b, p, 1.0));
        let negative = b.alu(Op::CmpLt, &[p, half])?;
        let mirrored = sub(b, one, p)?;
        let lesser = b.alu(Op::Where, &[negative, p, mirrored])?;
        let doubled = scale(b, lesser, 2.0)?;
        let bounded = Bounded::below(b, zero, doubled)?;
        let rest = b.alu(Op::Where, &[bounded.inside, doubled, half])?;
        let shown = sub(b, one, rest)?;
        let x = of_rest(b, rest, shown)?;
        let x = scale(b, x, SQRT_2)?;
        let share = sub(b, one, doubled)?;
        let x = bounded.finish(b, x, share)?;
        let minus = scale(b, x, -1.0)?;
        b.alu(Op::Where, &[negative, minus, x])
    })
}

/// Bernoulli's numbers over `2k (2k - 1)`: the rest of Stirling's series at `1/x²`, highest power first.
const STIRLING: &[f64] = &[
    -0.029550653594771242,
    0.00641025641025641,
    -0.0019175269175269176,
    0.0008417508417508417,
    -0.0005952380952380953,
    0.0007936507936507937,
    -0.002777777777777778,
    0.08333333333333333,
];

/// Bernoulli's numbers over `2k`: the same of the derivative.
const STIRLING_SLOPE: &[f64] = &[
    -0.4432598039215686,
    0.08333333333333333,
    -0.021092796092796094,
    0.007575757575757576,
    -0.004166666666666667,
    0.003968253968253968,
    -0.008333333333333333,
    0.08333333333333333,
];

/// From here on the series are exact.
const LARGE: i32 = 9;

/// The function that `positive` computes, extended by its mirror image. Computed in f64: sums near the zeros cancel.
fn by_halves(
    b: &mut dyn Builder,
    x: NodeId,
    positive: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
    mirrored: impl FnOnce(&mut dyn Builder, NodeId, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let dtype = dtype_of(b, x);
        let x = cast(b, x, DType::F64)?;
        let (half, one) = (like(b, x, 0.5), like(b, x, 1.0));
        let is_left = b.alu(Op::CmpLt, &[x, half])?;
        let other = sub(b, one, x)?;
        let right = b.alu(Op::Where, &[is_left, other, x])?;
        let value = positive(b, right)?;
        // How far it is to the nearest whole number: what the sines of the mirror image need.
        let whole = round(b, x)?;
        let rest = sub(b, x, whole)?;
        let quarter = like(b, x, 0.25);
        let rest = b.alu(Op::Where, &[is_left, rest, quarter])?;
        let left = mirrored(b, rest, value)?;
        let value = b.alu(Op::Where, &[is_left, left, value])?;
        cast(b, value, dtype)
    })
}

/// `x` and the `LARGE - 1` numbers above it, where it is less than `LARGE`; and a number that is not less than that.
fn raised(b: &mut dyn Builder, x: NodeId) -> Result<(NodeId, NodeId)> {
    let bound = like(b, x, f64::from(LARGE));
    let is_small = b.alu(Op::CmpLt, &[x, bound])?;
    let higher = shift(b, x, f64::from(LARGE))?;
    Ok((is_small, b.alu(Op::Where, &[is_small, higher, x])?))
}

/// `log |Γ(x)|`; infinite at 0, -1, -2, … and at the infinities.
pub fn lgamma(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let value = inner_lgamma(b, x)?;
    // At its roots the value is a rounding error, which is subtracted; the slope stays.
    let (one, two, zero) = (like(b, x, 1.0), like(b, x, 2.0), like(b, x, 0.0));
    let (is_one, is_two) = (eq(b, x, one)?, eq(b, x, two)?);
    let is_root = b.alu(Op::Or, &[is_one, is_two])?;
    let rest = b.alu(Op::Where, &[is_root, value, zero])?;
    let rest = b.alu(Op::Detach, &[rest])?;
    let value = sub(b, value, rest)?;
    let (least, infinity) = (like(b, x, f64::NEG_INFINITY), like(b, x, f64::INFINITY));
    let is_least = eq(b, x, least)?;
    b.alu(Op::Where, &[is_least, infinity, value])
}

fn inner_lgamma(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    by_halves(
        b,
        x,
        |b, x| {
            let (is_small, large) = raised(b, x)?;
            let logarithm = log(b, large)?;
            // (x - 1/2) log x - x + 1/2, which is infinite where x is.
            let (factor, logarithm) = (shift(b, large, -0.5)?, shift(b, logarithm, -1.0)?);
            let main = mul(b, factor, logarithm)?;
            let inverse = b.alu(Op::Recip, &[large])?;
            let squared = square(b, inverse)?;
            let series = polynomial(b, squared, STIRLING)?;
            let series = mul(b, series, inverse)?;
            let sum = add(b, main, series)?;
            let value = shift(b, sum, (2.0 * PI).ln() / 2.0 - 0.5)?;
            // Γ(x) = Γ(x + n) / (x (x + 1) … (x + n - 1))
            let one = like(b, x, 1.0);
            let base = b.alu(Op::Where, &[is_small, x, one])?;
            let mut product = base;
            for step in 1..LARGE {
                let factor = shift(b, base, f64::from(step))?;
                product = mul(b, product, factor)?;
            }
            let taken = log(b, product)?;
            let less = sub(b, value, taken)?;
            b.alu(Op::Where, &[is_small, less, value])
        },
        |b, rest, value| {
            // Γ(x) Γ(1 - x) = π / sin πx
            let sine = sine_of_half_turns(b, rest)?;
            let sine = abs(b, sine)?;
            let logarithm = log(b, sine)?;
            let sum = add(b, logarithm, value)?;
            let minus = scale(b, sum, -1.0)?;
            let value_here = shift(b, minus, PI.ln())?;
            // So far to the left are whole numbers only, and there is no sine at -infinity.
            let infinity = like(b, value, f64::INFINITY);
            let is_beyond = eq(b, value, infinity)?;
            b.alu(Op::Where, &[is_beyond, infinity, value_here])
        },
    )
}

/// The derivative of [`lgamma`]; infinite at 0, with the other sign, nan at -1, -2, …
pub fn digamma(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let value = inner_digamma(b, x)?;
    let (zero, lowest, highest) = (like(b, x, 0.0), like(b, x, f64::NEG_INFINITY), like(b, x, f64::INFINITY));
    let is_zero = eq(b, x, zero)?;
    let negative = super::arithmetic::is_negative(b, x)?;
    let pole = b.alu(Op::Where, &[negative, highest, lowest])?;
    b.alu(Op::Where, &[is_zero, pole, value])
}

fn inner_digamma(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    by_halves(
        b,
        x,
        |b, x| {
            let (is_small, large) = raised(b, x)?;
            let inverse = b.alu(Op::Recip, &[large])?;
            let squared = square(b, inverse)?;
            let series = polynomial(b, squared, STIRLING_SLOPE)?;
            let series = mul(b, series, squared)?;
            let half = scale(b, inverse, 0.5)?;
            let logarithm = log(b, large)?;
            let value = sub(b, logarithm, half)?;
            let value = sub(b, value, series)?;
            // ψ(x) = ψ(x + n) - 1/x - … - 1/(x + n - 1)
            let one = like(b, x, 1.0);
            let base = b.alu(Op::Where, &[is_small, x, one])?;
            // The reciprocals are summed over a common denominator: one division.
            let (mut above, mut below) = (one, base);
            for step in 1..LARGE {
                let factor = shift(b, base, f64::from(step))?;
                let product = mul(b, above, factor)?;
                (above, below) = (add(b, product, below)?, mul(b, below, factor)?);
            }
            let reciprocals = div(b, above, below)?;
            let less = sub(b, value, reciprocals)?;
            b.alu(Op::Where, &[is_small, less, value])
        },
        |b, rest, value| {
            // ψ(1 - x) - ψ(x) = π / tan πx
            // cos πx = sin(π (1/2 - |x|))
            let magnitude = abs(b, rest)?;
            let minus = scale(b, magnitude, -1.0)?;
            let complement = shift(b, minus, 0.5)?;
            let (sine, cosine) = (sine_of_half_turns(b, rest)?, sine_of_half_turns(b, complement)?);
            let ratio = div(b, cosine, sine)?;
            let zero = like(b, sine, 0.0);
            let is_pole = eq(b, sine, zero)?;
            let nan = like(b, sine, f64::NAN);
            let ratio = b.alu(Op::Where, &[is_pole, nan, ratio])?;
            let taken = scale(b, ratio, PI)?;
            sub(b, value, taken)
        },
    )
}

/// `-x log x`; 0 at 0, -infinity below.
pub fn entr(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let zero = like(b, x, 0.0);
        let product = super::logarithm::xlogy(b, x, x)?;
        let minus = sub(b, zero, product)?;
        let (below, least) = (b.alu(Op::CmpLt, &[x, zero])?, like(b, x, f64::NEG_INFINITY));
        b.alu(Op::Where, &[below, least, minus])
    })
}

/// `x log(1 + y)`, which is 0 where `x` is 0.
pub fn xlog1py(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    in_wide_of(b, "xlog1py", [x, y], |b, [x, y]| {
        let zero = like(b, x, 0.0);
        let (none, number) = (eq(b, x, zero)?, eq(b, y, y)?);
        let none = b.alu(Op::And, &[none, number])?;
        let y = b.alu(Op::Where, &[none, zero, y])?;
        let logarithm = super::logarithm::log1p(b, y)?;
        b.alu(Op::Mul, &[x, logarithm])
    })
    .map_err(|error| error.in_op("xlog1py"))
}

/// `log2(2^x + 2^y)` without overflow.
pub fn logaddexp2(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    in_wide_of(b, "logaddexp2", [x, y], |b, [x, y]| {
        let (x, y) = (scale(b, x, LN_2)?, scale(b, y, LN_2)?);
        let sum = super::arithmetic::logaddexp(b, x, y).map_err(|error| error.in_op("logaddexp2"))?;
        scale(b, sum, 1.0 / LN_2)
    })
}
