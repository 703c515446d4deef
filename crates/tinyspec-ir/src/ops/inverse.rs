//! Inverse trigonometric and hyperbolic functions, and the error function: a polynomial where the argument is small,
//! an identity elsewhere. Small floats are computed in f32 and rounded once.
//!
//! The coefficients interpolate the functions at Chebyshev's points, in 80 digits; highest power first.

use super::arithmetic::sub;
use super::elementwise::{abs, exp, log, polynomial, scale, shift, sqrt, square};
use super::{Bounded, cast, dtype_of, in_wide, like, to_float};
use crate::{Builder, DType, NodeId, Op, Result};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, FRAC_PI_2, LN_2};

/// Coefficients for f32 and narrower, and for f64.
type Coefficients<'c> = [&'c [f64]; 2];

/// `atan(√u) / √u` for u in 0..1.
const ATAN: Coefficients<'static> = [
    &[
        0.002766283501762026,
        -0.01573124912218365,
        0.04213762358919304,
        -0.07456854826004547,
        0.10618370636953849,
        -0.14197797794085124,
        0.19991872029109073,
        -0.33333036709286273,
        0.9999999817886557,
    ],
    &[
        1.2631178430477426e-05,
        -0.00014617088163625013,
        0.0008033604181626027,
        -0.0028047655531701315,
        0.007038646202989813,
        -0.013674139288399478,
        0.021740213830758134,
        -0.02970071773623423,
        0.03651081352721035,
        -0.042125723963855326,
        0.04719723992321112,
        -0.052527255573225747,
        0.05880342002401543,
        -0.06666371187721098,
        0.0769227555520563,
        -0.09090906605656898,
        0.11111110982087126,
        -0.14285714281592693,
        0.19999999999929946,
        -0.3333333333333286,
        1.0,
    ],
];

/// `asin(√u) / √u` for u in 0..1/4.
const ASIN: Coefficients<'static> = [
    &[
        0.04241737375979984,
        0.02399399965364759,
        0.045520635631714566,
        0.07494696687423973,
        0.16666782005775338,
        0.999999995983738,
    ],
    &[
        0.03187962140081284,
        -0.016187392271599134,
        0.019513468251252167,
        0.0065293020047365695,
        0.012170138592391726,
        0.01388484282640208,
        0.01735977964134998,
        0.022371749733164054,
        0.03038195969768514,
        0.044642856805998936,
        0.07500000000385201,
        0.16666666666664942,
        1.0,
    ],
];

/// `asinh(√u) / √u` for u in 0..1/4.
const ASINH: Coefficients<'static> = [
    &[
        -0.013074415236259126,
        0.02806019724161958,
        -0.04435832065381361,
        0.07498380894210888,
        -0.16666632458534492,
        0.9999999988154764,
    ],
    &[
        -0.0021645995498866606,
        0.005766357220813826,
        -0.008891787699318211,
        0.011358946619800086,
        -0.013935825648041482,
        0.017349806102795153,
        -0.02237195860704631,
        0.030381935774005903,
        -0.04464285692054213,
        0.07499999999704385,
        -0.16666666666665123,
        1.0,
    ],
];

/// `atanh(√u) / √u` for u in 0..1/4.
const ATANH: Coefficients<'static> = [
    &[
        0.18307324762033797,
        0.0814723401320376,
        0.14694692594107475,
        0.19975236234844357,
        0.3333387247925229,
        0.9999999812224146,
    ],
    &[
        0.2113466728500407,
        -0.11607286571460644,
        0.12342317349394255,
        0.030552784701105364,
        0.06305373925151087,
        0.06611875378546901,
        0.07697116199755842,
        0.09090628331896689,
        0.11111121577224739,
        0.14285714054503637,
        0.20000000002644475,
        0.33333333333321485,
        1.0,
    ],
];

/// `sinh(√u) / √u` for u in 0..1/4.
const SINH: Coefficients<'static> = [
    &[0.00019979487837063834, 0.008333117159188563, 0.16666667747951538, 0.9999999999155186],
    &[
        7.675327167946646e-13,
        1.6058929357729538e-10,
        2.5052108627675815e-08,
        2.755731922370198e-06,
        0.00019841269841270023,
        0.008333333333333333,
        0.16666666666666666,
        1.0,
    ],
];

/// `erf(√u) / √u` for u in 0..1.
const ERF: Coefficients<'static> = [
    &[
        7.875875062685488e-05,
        -0.000801686428716587,
        0.005189087423433974,
        -0.026854212010626412,
        0.11283594715160218,
        -0.37612626666720334,
        1.1283791658483509,
    ],
    &[
        5.957176147748911e-11,
        -1.1372848856791674e-09,
        1.4659775274047436e-08,
        -1.6350312701054695e-07,
        1.6461000484121368e-06,
        -1.4925595266831182e-05,
        0.0001205533111164271,
        -0.000854832698083379,
        0.0052239776248180145,
        -0.026866170645076792,
        0.11283791670954879,
        -0.3761263890318375,
        FRAC_2_SQRT_PI,
    ],
];

/// `erfc(x) e^(x²) / t` at x = 2/t - 2, for x from 1 on, to where erfc is 0.
const ERFCX: Coefficients<'static> = [
    &[
        0.09430970077527098,
        -0.2286956096182855,
        0.08547563853318978,
        0.05898886471158256,
        0.17956169542513586,
        0.24678844797521618,
        0.28206061772362895,
        0.2820973704336436,
    ],
    &[
        -0.19289546932849835,
        1.505889857442616,
        -5.38139304936204,
        11.579412996277135,
        -16.590193564747867,
        16.54636736301824,
        -11.769414429727147,
        6.195051197054357,
        -2.6244931688840825,
        0.9141630828696311,
        -0.1751233411610742,
        0.04294517525221085,
        -0.06114292099509819,
        -0.05575389450106375,
        -0.004507215136782797,
        0.08375438730583987,
        0.17630883467448544,
        0.2468329581256735,
        0.28209479142562366,
        0.282094791777498,
    ],
];

fn series(b: &mut dyn Builder, x: NodeId, coefficients: Coefficients) -> Result<NodeId> {
    let [short, long] = coefficients;
    let coefficients = if dtype_of(b, x) == DType::F64 { long } else { short };
    polynomial(b, x, coefficients)
}

/// `x · P(x²)`.
fn odd_series(b: &mut dyn Builder, x: NodeId, coefficients: Coefficients) -> Result<NodeId> {
    let squared = square(b, x)?;
    let series = series(b, squared, coefficients)?;
    b.alu(Op::Mul, &[x, series])
}

/// `factor sinh x` for `|x| < 1/2`.
pub(super) fn small_sinh(b: &mut dyn Builder, x: NodeId, factor: f64) -> Result<NodeId> {
    let [short, long] = SINH.map(|coefficients| coefficients.iter().map(|c| c * factor).collect::<Vec<_>>());
    odd_series(b, x, [&short, &long])
}

/// `atanh x` for `|x| < 1/2`.
pub(super) fn small_atanh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    odd_series(b, x, ATANH)
}

/// `x` where that is below `bound`, else `other`: what one branch does with the other's arguments must stay finite,
/// in the gradient too.
struct Branches {
    is_near: NodeId,
    near: NodeId,
    far: NodeId,
}

fn branches(b: &mut dyn Builder, magnitude: NodeId, bound: f64) -> Result<Branches> {
    let limit = like(b, magnitude, bound);
    let is_near = b.alu(Op::CmpLt, &[magnitude, limit])?;
    let near = b.alu(Op::Where, &[is_near, magnitude, limit])?;
    let far = b.alu(Op::Where, &[is_near, limit, magnitude])?;
    Ok(Branches { is_near, near, far })
}

/// An odd function by its values at `|x|`, in at least f32.
fn odd(
    b: &mut dyn Builder,
    x: NodeId,
    function: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let wide = cast(b, x, dtype.accumulator())?;
    let zero = like(b, wide, 0.0);
    let negative = b.alu(Op::CmpLt, &[wide, zero])?;
    // Not abs: its slope at 0 is 0.
    let minus = scale(b, wide, -1.0)?;
    let magnitude = b.alu(Op::Where, &[negative, minus, wide])?;
    let value = function(b, magnitude)?;
    let minus = scale(b, value, -1.0)?;
    let value = b.alu(Op::Where, &[negative, minus, value])?;
    cast(b, value, dtype)
}

/// `√((1 - x) / 2)`.
fn half_angle(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let halved = scale(b, x, -0.5)?;
    let rest = shift(b, halved, 0.5)?;
    sqrt(b, rest)
}

/// Inverse sine; nan outside of -1..1.
pub fn asin(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    odd(b, x, |b, x| {
        let Branches { is_near, near, far } = branches(b, x, 0.5)?;
        let near = odd_series(b, near, ASIN)?;
        // π/2 - 2 asin √((1 - x) / 2)
        let angle = half_angle(b, far)?;
        let angle = odd_series(b, angle, ASIN)?;
        let doubled = scale(b, angle, -2.0)?;
        let far = shift(b, doubled, FRAC_PI_2)?;
        b.alu(Op::Where, &[is_near, near, far])
    })
}

/// Inverse cosine; nan outside of -1..1.
pub fn acos(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let wide = cast(b, x, dtype.accumulator())?;
    let magnitude = abs(b, wide)?;
    let zero = like(b, wide, 0.0);
    let half = like(b, wide, 0.5);
    let near = b.alu(Op::CmpLt, &[magnitude, half])?;
    let negative = b.alu(Op::CmpLt, &[wide, zero])?;
    let inner = b.alu(Op::Where, &[near, wide, half])?;
    let minus = odd_series(b, inner, ASIN)?;
    let minus = scale(b, minus, -1.0)?;
    let middle = shift(b, minus, FRAC_PI_2)?;
    // Near 1 the difference from π/2 would cancel: 2 asin √((1 - |x|) / 2), and its mirror image near -1.
    let outer = b.alu(Op::Where, &[near, half, wide])?;
    let flipped = scale(b, outer, -1.0)?;
    let outer = b.alu(Op::Where, &[negative, flipped, outer])?;
    let outer = b.alu(Op::Where, &[near, half, outer])?;
    let angle = half_angle(b, outer)?;
    let angle = odd_series(b, angle, ASIN)?;
    let end = scale(b, angle, 2.0)?;
    let minus = scale(b, end, -1.0)?;
    let other_end = shift(b, minus, 2.0 * FRAC_PI_2)?;
    let far = b.alu(Op::Where, &[negative, other_end, end])?;
    let value = b.alu(Op::Where, &[near, middle, far])?;
    cast(b, value, dtype)
}

/// Inverse tangent.
pub fn atan(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    odd(b, x, |b, x| {
        let Branches { is_near, near, far } = branches(b, x, 1.0)?;
        let near = odd_series(b, near, ATAN)?;
        // π/2 - atan(1 / x)
        let inverse = b.alu(Op::Recip, &[far])?;
        let angle = odd_series(b, inverse, ATAN)?;
        let minus = scale(b, angle, -1.0)?;
        let far = shift(b, minus, FRAC_PI_2)?;
        b.alu(Op::Where, &[is_near, near, far])
    })
}

/// `asinh` of nonnegative numbers.
pub(super) fn asinh_of_magnitude(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let Branches { is_near, near, far } = branches(b, x, 0.5)?;
    let near = odd_series(b, near, ASINH)?;
    // log(x + √(x² + 1)), with x taken out so that its square does not overflow.
    let inverse = b.alu(Op::Recip, &[far])?;
    let squared = square(b, inverse)?;
    let sum = shift(b, squared, 1.0)?;
    let root = sqrt(b, sum)?;
    let factor = shift(b, root, 1.0)?;
    let (log_far, log_factor) = (log(b, far)?, log(b, factor)?);
    let far = b.alu(Op::Add, &[log_far, log_factor])?;
    b.alu(Op::Where, &[is_near, near, far])
}

/// Inverse hyperbolic sine.
pub fn asinh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    odd(b, x, asinh_of_magnitude)
}

/// Inverse hyperbolic cosine: `2 asinh √((x - 1) / 2)`; nan below 1.
pub fn acosh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let wide = cast(b, x, dtype.accumulator())?;
    let halved = scale(b, wide, 0.5)?;
    let rest = shift(b, halved, -0.5)?;
    let root = sqrt(b, rest)?;
    let value = asinh_of_magnitude(b, root)?;
    let value = scale(b, value, 2.0)?;
    cast(b, value, dtype)
}

/// Inverse hyperbolic tangent; nan outside of -1..1.
pub fn atanh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    odd(b, x, |b, x| {
        let Branches { is_near, near, far } = branches(b, x, 0.5)?;
        let near = odd_series(b, near, ATANH)?;
        let (half, one) = (like(b, x, 0.5), like(b, x, 1.0));
        let bounded = Bounded::below(b, far, one)?;
        let far = b.alu(Op::Where, &[bounded.inside, far, half])?;
        let minus = scale(b, far, -1.0)?;
        let (above, below) = (shift(b, far, 1.0)?, shift(b, minus, 1.0)?);
        let ratio = b.alu(Op::Div, &[above, below])?;
        let doubled = super::elementwise::log2(b, ratio)?;
        let far = scale(b, doubled, LN_2 / 2.0)?;
        let far = bounded.finish(b, far, x)?;
        b.alu(Op::Where, &[is_near, near, far])
    })
}

/// `1 - erf(x)` from 1 on: `power`, which is `e^-x²`, times a series in `1 / (1 + x/2)`.
fn erfc_far(b: &mut dyn Builder, x: NodeId, power: NodeId) -> Result<NodeId> {
    let halved = scale(b, x, 0.5)?;
    let sum = shift(b, halved, 1.0)?;
    let t = b.alu(Op::Recip, &[sum])?;
    let scaled = series(b, t, ERFCX)?;
    let scaled = b.alu(Op::Mul, &[scaled, t])?;
    b.alu(Op::Mul, &[power, scaled])
}

/// `e^(-factor x²)` for a power of two as factor. The square is rounded, which the power would show as often as it is long:
/// a fused step gives what was lost.
fn bell(b: &mut dyn Builder, x: NodeId, factor: f64) -> Result<NodeId> {
    let squared = square(b, x)?;
    let minus = scale(b, squared, -1.0)?;
    let lost = b.alu(Op::Mulacc, &[x, x, minus])?;
    let exponent = scale(b, squared, -factor)?;
    let power = exp(b, exponent)?;
    let correction = scale(b, lost, -factor)?;
    b.alu(Op::Mulacc, &[correction, power, power])
}

/// The error function.
pub fn erf(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    odd(b, x, |b, x| {
        let Branches { is_near, near, far } = branches(b, x, 1.0)?;
        let near = odd_series(b, near, ERF)?;
        // Beyond the bound erf rounds to 1; the clamp avoids subnormal powers, which are slow.
        let bound = if dtype_of(b, far) == DType::F64 { 26.0 } else { 9.0 };
        let bound = like(b, far, bound);
        let beyond = b.alu(Op::CmpLt, &[bound, far])?;
        let far = b.alu(Op::Where, &[beyond, bound, far])?;
        let squared = square(b, far)?;
        let minus = scale(b, squared, -1.0)?;
        let power = exp(b, minus)?;
        let rest = erfc_far(b, far, power)?;
        let minus = scale(b, rest, -1.0)?;
        let far = shift(b, minus, 1.0)?;
        b.alu(Op::Where, &[is_near, near, far])
    })
}

/// `erf(x) - share`, which equals `rest - erfc(x)`, for x >= 0 and `rest = 1 - share`. Uses the series of erf for small x and that of erfc
/// elsewhere, to avoid cancellation.
pub(super) fn beyond_share(b: &mut dyn Builder, x: NodeId, [share, rest]: [NodeId; 2]) -> Result<NodeId> {
    let Branches { is_near, near, far } = branches(b, x, 1.0)?;
    let near = odd_series(b, near, ERF)?;
    let near = sub(b, near, share)?;
    let power = bell(b, far, 1.0)?;
    let far = erfc_far(b, far, power)?;
    let far = sub(b, rest, far)?;
    b.alu(Op::Where, &[is_near, near, far])
}

/// `1 - erf(x)`, which keeps its digits where `erf(x)` is nearly 1.
pub fn erfc(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| rest(b, x, 1.0, 1.0))
}

/// `1 - erf(-x/√2)`: twice the share of normal numbers below `x`.
pub(super) fn twice_the_share(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let minus = scale(b, x, -1.0)?;
    rest(b, minus, FRAC_1_SQRT_2, 0.5)
}

/// `1 - erf(factor x)`, where `squared` is the square of the factor: `factor x` is rounded, its square need not be.
pub(super) fn rest(b: &mut dyn Builder, x: NodeId, factor: f64, squared: f64) -> Result<NodeId> {
    let (zero, bound) = (like(b, x, 0.0), like(b, x, 60.0));
    let negative = b.alu(Op::CmpLt, &[x, zero])?;
    let minus = scale(b, x, -1.0)?;
    let magnitude = b.alu(Op::Where, &[negative, minus, x])?;
    // Beyond the bound it is 0, and the square might be infinite.
    let beyond = b.alu(Op::CmpLt, &[bound, magnitude])?;
    let magnitude = b.alu(Op::Where, &[beyond, bound, magnitude])?;
    let Branches { is_near, near, far } = branches(b, magnitude, 1.0 / factor)?;
    let scaled = |b: &mut dyn Builder, x| if factor == 1.0 { Ok(x) } else { scale(b, x, factor) };
    let near = scaled(b, near)?;
    let middle = odd_series(b, near, ERF)?;
    let minus = scale(b, middle, -1.0)?;
    let near = shift(b, minus, 1.0)?;
    let (power, far) = (bell(b, far, squared)?, scaled(b, far)?);
    let far = erfc_far(b, far, power)?;
    let above = b.alu(Op::Where, &[is_near, near, far])?;
    // Below 0 it is 2 - erfc(-x).
    let minus = scale(b, above, -1.0)?;
    let below = shift(b, minus, 2.0)?;
    b.alu(Op::Where, &[negative, below, above])
}
