//! 2^x and log2 x, for f32 and f64.

use super::emit::Emit;
use super::signs::Sides;
use smallvec::SmallVec;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::ops::elementwise::Exponent;
use tinyspec_ir::{DType, NodeId, Result};

/// The constants of a float format.
struct Format {
    float: DType,
    int: DType,
    mantissa_bits: i128,
    bias: i128,
    /// 1.5 · 2^mantissa_bits: adding it rounds to an integer, which is then in the low bits.
    rounder: f64,
    /// Below the first, 2^x is 0; from the second on, it is infinite.
    exponents: (f64, f64),
    /// The relative error allowed in a step: over the whole range of exponents it adds up to a few units in the last
    /// place.
    negligible: f64,
    /// The minimax polynomial of 2^r for |r| ≤ 1/2, in relative error, among those that begin with 1 and ln 2.
    exp2: &'static [f64],
}

const SINGLE: Format = Format {
    float: DType::F32,
    int: DType::I32,
    mantissa_bits: 23,
    bias: 127,
    rounder: 12_582_912.0,
    exponents: (-152.0, 128.0),
    // 2^-28: less than 4 units in the last place for the greatest power, half a unit up to e^16.
    negligible: 3.725290298461914e-9,
    // 2^-28
    exp2: &[
        1.0,
        std::f64::consts::LN_2,
        0.24022647540352507,
        0.055503621557627045,
        0.009618527094736241,
        0.0013390217940461029,
        0.0001532107354314697,
    ],
};

const DOUBLE: Format = Format {
    float: DType::F64,
    int: DType::I64,
    mantissa_bits: 52,
    bias: 1023,
    rounder: 6_755_399_441_055_744.0,
    exponents: (-1077.0, 1024.0),
    negligible: 0.0,
    // 2^-58
    exp2: &[
        1.0,
        std::f64::consts::LN_2,
        0.24022650695910155,
        0.055504108664819925,
        0.009618129107588346,
        0.0013333558146789778,
        0.00015403530462501698,
        1.5252733490108938e-05,
        1.3215433095891532e-06,
        1.0178197976954745e-07,
        7.074104573753809e-09,
        4.4352888650675365e-10,
    ],
};

pub(super) fn exp2_f32(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    exp2(emit, &SINGLE, sources[0], None)
}

/// 2^x = 2^r · 2^n with n the integer nearest to x. No x is a special case: if x is infinite, r is nan, which scaling
/// by an infinity overrides; and the scale instruction handles underflow and overflow.
pub(super) fn exp2_by_scale(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let x = sources[0];
    let n = emit.instruction(Instruction::Nearest, &[x])?;
    let r = emit.sub(x, n)?;
    let power = emit.polynomial(r, SINGLE.exp2)?;
    emit.instruction(Instruction::Scale, &[power, n])
}

pub(super) fn exp2_f64(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    exp2(emit, &DOUBLE, sources[0], None)
}

/// 2^(x + rest), where `rest` is far below the last place of x.
pub(super) fn exp2_of_sum(emit: &mut Emit, x: NodeId, rest: NodeId) -> Result<NodeId> {
    exp2(emit, &DOUBLE, x, Some(rest))
}

/// With x = n + r, 2^r as a polynomial times 2^n.
fn exp2(emit: &mut Emit, format: &Format, x: NodeId, rest: Option<NodeId>) -> Result<NodeId> {
    let (least, greatest) = format.exponents;
    let scale = Scale::of(Sides::of(emit.graph, x).below);
    let clamped = clamp(emit, x, Some(least), scale.bound(greatest))?;
    let (rounder, back) = scale.rounder(emit, format);
    let rounded = emit.add(clamped, rounder)?;
    let n = emit.add(rounded, back)?;
    let mut r = emit.sub(clamped, n)?;
    if let Some(rest) = rest {
        r = emit.add(r, rest)?;
    }
    scale.power(emit, format, (r, format.exp2), rounded)
}

/// 2^(c·x) without rounding the product: x = n/c + r, where n/c is n steps, and 2^(c·r) is a polynomial in r.
///
/// If 2^n is 0 or infinite, the remainder can be anything that does not make the power infinite.
pub(super) fn exp_by_scale(emit: &mut Emit, exponent: Exponent) -> Result<NodeId> {
    let Steps { x, factor, step, series } = Steps::new(emit, &SINGLE, exponent)?;
    let high = emit.number(x, factor);
    let product = emit.mul(x, high)?;
    let n = emit.instruction(Instruction::Nearest, &[product])?;
    let r = remainder(emit, x, n, step)?;
    let greatest = emit.number(x, step[0].abs());
    let r = emit.instruction(Instruction::Nearer, &[r, greatest])?;
    let power = emit.polynomial(r, &series)?;
    emit.instruction(Instruction::Scale, &[power, n])
}

pub(super) fn exp_f32(emit: &mut Emit, exponent: Exponent) -> Result<NodeId> {
    exp(emit, &SINGLE, exponent)
}

pub(super) fn exp_f64(emit: &mut Emit, exponent: Exponent) -> Result<NodeId> {
    exp(emit, &DOUBLE, exponent)
}

/// As [`exp_by_scale`], but x is clamped instead of the remainder.
fn exp(emit: &mut Emit, format: &Format, exponent: Exponent) -> Result<NodeId> {
    let Steps { x, factor, step, series } = Steps::new(emit, format, exponent)?;
    let sides = Sides::of(emit.graph, x);
    let scale = Scale::of(if factor > 0.0 { sides.below } else { sides.above });
    // A quarter beyond the last exponent, so that rounding of the bound does not matter.
    let (least, greatest) = (format.exponents.0 / factor, scale.bound((format.exponents.1 + 0.25) / factor));
    let clamped =
        if factor > 0.0 { clamp(emit, x, Some(least), greatest)? } else { clamp(emit, x, greatest, Some(least))? };
    let (rounder, back) = scale.rounder(emit, format);
    let high = emit.number(x, factor);
    let rounded = emit.fma(clamped, high, rounder)?;
    let n = emit.add(rounded, back)?;
    let r = remainder(emit, clamped, n, step)?;
    scale.power(emit, format, (r, &series), rounded)
}

/// 2^(c·x), by steps of 1/c.
struct Steps {
    x: NodeId,
    /// c, rounded.
    factor: f64,
    /// 1/c, in two parts.
    step: [f64; 2],
    /// 2^(c·r), within half a step.
    series: SmallVec<[f64; 12]>,
}

impl Steps {
    /// The largest factor whose powers stay far from overflow and underflow; others are scaled down, exactly, together
    /// with x.
    const MODERATE: f64 = 8.0;

    fn new(emit: &mut Emit, format: &Format, Exponent { mut x, mut high, mut low }: Exponent) -> Result<Steps> {
        let power = high.abs().log2().floor();
        if power.abs() > Self::MODERATE {
            let scale = emit.number(x, power.exp2());
            x = emit.mul(x, scale)?;
            (high, low) = (high / power.exp2(), low / power.exp2());
        }
        let factor = high + low;
        let rounded = |value: f64| match format.float {
            DType::F32 => f64::from(value as f32),
            _ => value,
        };
        let step = rounded(1.0 / factor);
        let rest = ((-step).mul_add(high, 1.0) - step * low) / high;
        let rest = if rest.abs() <= format.negligible * step.abs() { 0.0 } else { rest };
        let mut unit = 1.0;
        let mut series = SmallVec::new();
        for coefficient in format.exp2 {
            series.push(coefficient * unit);
            unit *= factor;
        }
        Ok(Steps { x, factor: high, step: [step, rest], series })
    }
}

/// x less n steps.
fn remainder(emit: &mut Emit, x: NodeId, n: NodeId, [step, rest]: [f64; 2]) -> Result<NodeId> {
    let minus = emit.number(x, -step);
    let r = emit.fma(n, minus, x)?;
    if rest == 0.0 {
        return Ok(r);
    }
    let minus = emit.number(x, -rest);
    emit.fma(n, minus, r)
}

/// Clamps x; nan is preserved.
fn clamp(emit: &mut Emit, mut x: NodeId, least: Option<f64>, greatest: Option<f64>) -> Result<NodeId> {
    if let Some(least) = least {
        let least = emit.number(x, least);
        let below = emit.less(x, least)?;
        x = emit.select(below, least, x)?;
    }
    if let Some(greatest) = greatest {
        let greatest = emit.number(x, greatest);
        let above = emit.less(greatest, x)?;
        x = emit.select(above, greatest, x)?;
    }
    Ok(x)
}

/// How a power is multiplied by 2^n, where n is in the low bits of a sum. nan propagates through the power.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// By two factors, whose exponents are the halves of n. Both are normal numbers even where the product overflows or
    /// is subnormal, and only the last product rounds.
    Halves,
    /// By one factor, for n ≤ 0: it is 2^k too large, and the series 2^k too small, so that it is a normal number where
    /// the product is subnormal.
    Once,
}

impl Scale {
    fn of(never_positive: bool) -> Scale {
        if never_positive { Scale::Once } else { Scale::Halves }
    }

    /// The bound of an exponent, if it needs one.
    fn bound(self, greatest: f64) -> Option<f64> {
        (self == Scale::Halves).then_some(greatest)
    }

    /// The exponent k of the excess.
    fn excess(self, format: &Format) -> i128 {
        if self == Scale::Once { format.bias / 2 } else { 0 }
    }

    /// The number that rounds an exponent to an integer n when added, and the one to subtract: n is in the low bits of
    /// the sum, plus one bias per factor.
    fn rounder(self, emit: &mut Emit, format: &Format) -> (NodeId, NodeId) {
        let biases = if self == Scale::Once { 1 } else { 2 } * format.bias + self.excess(format);
        let rounder = format.rounder + biases as f64;
        (emit.float(format.float, rounder), emit.float(format.float, -rounder))
    }

    /// Σ series[i] · r^i · 2^n: the factors are built by shifting n, or its halves, into the exponent field.
    fn power(self, emit: &mut Emit, format: &Format, (r, series): (NodeId, &[f64]), rounded: NodeId) -> Result<NodeId> {
        let small = (-(self.excess(format) as f64)).exp2();
        let series: SmallVec<[f64; 12]> = series.iter().map(|coefficient| coefficient * small).collect();
        let mut power = emit.polynomial(r, &series)?;
        let bits = emit.bitcast(rounded, format.int)?;
        let mut exponents: SmallVec<[NodeId; 2]> = SmallVec::from_elem(bits, 1);
        if self == Scale::Halves {
            let half = emit.shift_right(bits, 1)?;
            exponents = SmallVec::from_buf([half, emit.sub(bits, half)?]);
        }
        for exponent in exponents {
            let exponent = emit.shift_left(exponent, format.mantissa_bits)?;
            let factor = emit.bitcast(exponent, format.float)?;
            power = emit.mul(power, factor)?;
        }
        Ok(power)
    }
}

/// x = 2^exponent · (1 + fraction) with 1 + fraction in [√½, √2), for positive finite x.
fn split(emit: &mut Emit, format: &Format, x: NodeId) -> Result<(NodeId, NodeId)> {
    let least = emit.number(x, (1.0 - format.bias as f64).exp2());
    let subnormal = emit.less(x, least)?;
    let scale = emit.number(x, (format.mantissa_bits as f64).exp2());
    let scaled = emit.mul(x, scale)?;
    let x = emit.select(subnormal, scaled, x)?;
    let bits = emit.bitcast(x, format.int)?;
    let root = match format.float {
        DType::F32 => std::f32::consts::FRAC_1_SQRT_2.to_bits() as i128,
        _ => std::f64::consts::FRAC_1_SQRT_2.to_bits() as i128,
    };
    let minus_root = emit.int(format.int, -root);
    let above = emit.add(bits, minus_root)?;
    let exponent = emit.shift_right(above, format.mantissa_bits)?;
    let mantissa = emit.mask(above, (1 << format.mantissa_bits) - 1)?;
    let root = emit.int(format.int, root);
    let mantissa = emit.add(mantissa, root)?;
    let mantissa = emit.bitcast(mantissa, format.float)?;
    let minus_one = emit.number(x, -1.0);
    let fraction = emit.add(mantissa, minus_one)?;
    let exponent = emit.cast(exponent, format.float)?;
    let (shift, zero) = (emit.number(x, -(format.mantissa_bits as f64)), emit.number(x, 0.0));
    let shift = emit.select(subnormal, shift, zero)?;
    Ok((emit.add(exponent, shift)?, fraction))
}

/// The values of log2 at 0, infinity, nan and below 0.
fn with_specials(emit: &mut Emit, x: NodeId, value: NodeId, greatest: f64) -> Result<NodeId> {
    let (zero, greatest) = (emit.number(x, 0.0), emit.number(x, greatest));
    let (nan, lowest) = (emit.number(x, f64::NAN), emit.number(x, f64::NEG_INFINITY));
    let infinite = emit.less(greatest, x)?;
    let value = emit.select(infinite, x, value)?;
    let nonzero = emit.differs(x, zero)?;
    let otherwise = emit.select(nonzero, nan, lowest)?;
    let positive = emit.less(zero, x)?;
    emit.select(positive, value, otherwise)
}

/// (log2(1 + f) - f·log2 e) / f² on [√½ - 1, √2 - 1]; the error of f² times it is 2^-27 of f.
const LOG2_F32: &[f64] = &[
    -0.7213473270910145,
    0.4808982860992772,
    -0.36069919043576226,
    0.2885630439610512,
    -0.23954615015926956,
    0.20469083432772367,
    -0.19181982862322997,
    0.1856675454740417,
    -0.10715937347486475,
];

pub(super) fn log2_f32(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let x = sources[0];
    let (exponent, f) = split(emit, &SINGLE, x)?;
    // log2 e in two parts: near 1, f·log2 e is the result.
    let (high, low) = (emit.number(x, 1.442_695_021_629_333_5), emit.number(x, 1.925_962_991_126_617_5e-8));
    let tail = emit.polynomial(f, LOG2_F32)?;
    let tail = emit.fma(tail, f, low)?;
    let tail = emit.mul(tail, f)?;
    let log = emit.fma(f, high, tail)?;
    let log = emit.add(exponent, log)?;
    with_specials(emit, x, log, f32::MAX as f64)
}

/// (log(1 + f) - 2s) / s³ over s², with s = f / (2 + f); its error is 2^-58 of s².
const LOG_F64: &[f64] = &[
    0.6666666666666734,
    0.3999999999941429,
    0.2857142874248051,
    0.22222198563086792,
    0.18183564880700814,
    0.15314035601715936,
    0.1479610683994856,
];

pub(super) fn log2_f64(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let (high, low) = log2_in_two_parts(emit, sources[0])?;
    let log = emit.add(high, low)?;
    with_specials(emit, sources[0], log, f64::MAX)
}

/// log2 x of a positive finite f64 as an unevaluated sum, the second part of which is far below the last place of the
/// first.
pub(super) fn log2_in_two_parts(emit: &mut Emit, x: NodeId) -> Result<(NodeId, NodeId)> {
    let (exponent, f) = split(emit, &DOUBLE, x)?;
    let (two, half) = (emit.number(x, 2.0), emit.number(x, 0.5));
    let denominator = emit.add(two, f)?;
    let s = emit.op(tinyspec_ir::Op::Div, f, denominator)?;
    let z = emit.mul(s, s)?;
    let tail = emit.polynomial(z, LOG_F64)?;
    let tail = emit.mul(tail, z)?;
    // log(1 + f) = f - (f²/2 - s·(f²/2 + tail)): the first difference is split at the middle of the mantissa.
    let square = emit.mul(f, f)?;
    let square = emit.mul(square, half)?;
    let inner = emit.add(square, tail)?;
    let inner = emit.mul(s, inner)?;
    let high = emit.sub(f, square)?;
    let bits = emit.bitcast(high, DType::I64)?;
    let bits = emit.mask(bits, !0xffff_ffff)?;
    let high = emit.bitcast(bits, DType::F64)?;
    let low = emit.sub(f, high)?;
    let low = emit.sub(low, square)?;
    let low = emit.add(low, inner)?;
    // log2 e in two parts, of which the first times `high` is exact.
    let (factor, rest) = (emit.number(x, LOG2_E_HIGH), emit.number(x, LOG2_E_LOW));
    let main = emit.mul(high, factor)?;
    let both = emit.add(low, high)?;
    let correction = emit.mul(both, rest)?;
    let correction = emit.fma(low, factor, correction)?;
    let sum = emit.add(exponent, main)?;
    let lost = emit.sub(exponent, sum)?;
    let lost = emit.add(lost, main)?;
    Ok((sum, emit.add(lost, correction)?))
}

/// log2 e, rounded to 21 bits.
const LOG2_E_HIGH: f64 = 1.442_695_617_675_781_2;
/// log2 e minus the above; the last number is the rounding error of the library's constant.
const LOG2_E_LOW: f64 = std::f64::consts::LOG2_E - LOG2_E_HIGH + 2.035_527_374_093_103_3e-17;
