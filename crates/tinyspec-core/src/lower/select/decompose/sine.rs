//! sin x and cos x for every x. Small arguments are reduced modulo π/2 by the Cody-Waite method, large ones by the Payne-Hanek method:
//! integer arithmetic on as many bits of 2/π as needed, with selects in place of a table.

use super::emit::Emit;
use smallvec::SmallVec;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
use tinyspec_ir::{DType, NodeId, Op, Result};

/// 2/π in words of 32 bits, the most significant first.
const TWO_OVER_PI: [u32; 38] = [
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a,
    0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41,
    0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf,
    0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08,
    0x56033046, 0xfc7b6bab,
];
/// π/2 as an unevaluated sum of three f64s.
const HALF_PI: [f64; 3] = [FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
/// π/2 as an unevaluated sum of three f32s.
const HALF_PI_F32: [f64; 3] = [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_510_005_881_9e-15];
/// (sin r - r) / r³ over r², |r| ≤ π/4, to 2^-58.
const SINE: &[f64] = &[
    -0.16666666666666632,
    0.00833333333332241,
    -0.00019841269829804905,
    2.7557313691076646e-06,
    -2.505075800087769e-08,
    1.5896789740648786e-10,
];
/// (cos r - 1 + r²/2) / r⁴ over r², to 2^-64.
const COSINE: &[f64] = &[
    0.0416666666666666,
    -0.0013888888888874127,
    2.480158728948359e-05,
    -2.755731435271645e-07,
    2.0875723322818636e-09,
    -1.1359650256029635e-11,
];
/// As above, for f64 rounded to f32: to 2^-37 and 2^-43.
const SINE_ROUNDED: &[f64] =
    &[-0.16666666641601655, 0.008333329383213427, -0.00019839334005241108, 2.7183036991478397e-06];
const COSINE_ROUNDED: &[f64] =
    &[0.0416666666227928, -0.0013888883750332287, 2.479951918628414e-05, -2.721016898230905e-07];
/// As above, for f32 and |r| ≤ 1.05 π/4: both to 2^-28.
const SINE_F32: &[f64] = &[-0.1666666716337204, 0.008333330973982811, -0.0001983983238460496, 2.7218607101531234e-06];
const COSINE_F32: &[f64] = &[0.0416666641831398, -0.0013888176763430238, 2.4522094463473873e-05];

/// The Cody-Waite reduction in one dtype.
struct Reduction {
    /// The integers of the same width.
    integer: DType,
    /// π/2 as an unevaluated sum.
    half_pi: [f64; 3],
    /// Adding this to a float rounds it to the nearest integer, which the lowest bits of the sum hold.
    to_integer: f64,
    /// The least argument that needs the Payne-Hanek reduction.
    large: f64,
    sine: &'static [f64],
    cosine: &'static [f64],
}

/// For larger arguments the rounding error of 2/π would choose a multiple of π/2 that isn't the nearest.
const F32: Reduction = Reduction {
    integer: DType::U32,
    half_pi: HALF_PI_F32,
    to_integer: 1.5 * (1u64 << 23) as f64,
    large: (1 << 20) as f64,
    sine: SINE_F32,
    cosine: COSINE_F32,
};
const F64: Reduction = Reduction {
    integer: DType::U64,
    half_pi: HALF_PI,
    to_integer: 1.5 * (1u64 << 52) as f64,
    large: (1 << 30) as f64,
    sine: SINE,
    cosine: COSINE,
};

/// `count` words of 2/π from word `position` on, after `leading` zero words; `greatest` bounds the position.
fn window(
    emit: &mut Emit,
    position: NodeId,
    leading: usize,
    count: usize,
    greatest: usize,
) -> Result<SmallVec<[NodeId; 8]>> {
    let word = |index: usize| index.checked_sub(leading).and_then(|index| TWO_OVER_PI.get(index)).copied().unwrap_or(0);
    let bits = usize::BITS - greatest.leading_zeros();
    let mut words: SmallVec<[NodeId; 48]> = (0..count + (1 << bits) - 1)
        .map(|index| emit.int(DType::U64, if index <= greatest + count { word(index) as i128 } else { 0 }))
        .collect();
    // One select a word and bit of the position, the highest bit first.
    for bit in (0..bits).rev() {
        let set = emit.mask(position, 1 << bit)?;
        let zero = emit.integer(position, 0);
        let set = emit.differs(set, zero)?;
        let step = 1 << bit;
        for index in 0..count + step - 1 {
            if words[index] != words[index + step] {
                words[index] = emit.select(set, words[index + step], words[index])?;
            }
        }
    }
    Ok(words[..count].into())
}

/// Words of the window shifted left by `shift` bits: one less of them.
fn shifted(emit: &mut Emit, words: &[NodeId], shift: NodeId) -> Result<SmallVec<[NodeId; 8]>> {
    let width = emit.int(DType::U64, 32);
    let rest = emit.sub(width, shift)?;
    let mut result = SmallVec::new();
    for pair in words.windows(2) {
        let left = emit.op(Op::Shl, pair[0], shift)?;
        let right = emit.op(Op::Shr, pair[1], rest)?;
        let both = emit.op(Op::Or, left, right)?;
        result.push(emit.mask(both, 0xffff_ffff)?);
    }
    Ok(result)
}

pub(super) fn sin_f32(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    in_f32(emit, sources[0], Function::Sine)
}

pub(super) fn sin_f64(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    in_f64(emit, sources[0], Function::Sine)
}

pub(super) fn cos_f32(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    in_f32(emit, sources[0], Function::Cosine)
}

pub(super) fn cos_f64(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    in_f64(emit, sources[0], Function::Cosine)
}

/// Which of the two functions, which differ by a quarter of a turn.
#[derive(Clone, Copy, PartialEq)]
enum Function {
    Sine,
    Cosine,
}

impl Function {
    /// The quadrant of the value at `|x|`.
    fn quadrant(self, emit: &mut Emit, quadrant: NodeId) -> Result<NodeId> {
        if self == Function::Sine {
            return Ok(quadrant);
        }
        let one = emit.integer(quadrant, 1);
        emit.add(quadrant, one)
    }

    /// From the value at `|x|` to that at `x`: the sine is odd, the cosine even.
    fn signed(self, emit: &mut Emit, value: NodeId, bits: NodeId, sign: i128) -> Result<NodeId> {
        if self == Function::Cosine {
            return Ok(value);
        }
        let (integer, float) = (emit.graph.dtype(bits), emit.graph.dtype(value));
        let value_bits = emit.bitcast(value, integer)?;
        let sign = emit.mask(bits, sign)?;
        let signed = emit.op(Op::Xor, value_bits, sign)?;
        emit.bitcast(signed, float)
    }
}

fn in_f32(emit: &mut Emit, x: NodeId, function: Function) -> Result<NodeId> {
    whole(emit, x, function, &F32, |emit, absolute_bits, absolute| {
        let (quadrant, reduced) = all_bits_f32(emit, absolute_bits, absolute)?;
        rounded_f32(emit, quadrant, reduced, function)
    })
}

fn in_f64(emit: &mut Emit, x: NodeId, function: Function) -> Result<NodeId> {
    whole(emit, x, function, &F64, |emit, absolute_bits, absolute| {
        let (quadrant, reduced, error) = all_bits_f64(emit, absolute_bits, absolute)?;
        of_reduced(emit, quadrant, reduced, error, function, &F64)
    })
}

/// The function at any argument: by `all_bits` of a large one, else, if the target has fused multiply-add, by the shorter reduction.
fn whole(
    emit: &mut Emit,
    x: NodeId,
    function: Function,
    by: &Reduction,
    all_bits: impl FnOnce(&mut Emit, NodeId, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    let bits = emit.bitcast(x, by.integer)?;
    let sign = 1 << (8 * by.integer.size() - 1);
    let absolute_bits = emit.mask(bits, sign - 1)?;
    let absolute = emit.bitcast(absolute_bits, emit.graph.dtype(x))?;
    let value = all_bits(emit, absolute_bits, absolute)?;
    let value = finite_or_nan(emit, absolute, value)?;
    let value = function.signed(emit, value, bits, sign)?;
    if !emit.fused {
        return Ok(value);
    }
    let (quadrant, reduced, error) = minus_multiples(emit, absolute, by)?;
    let shorter = of_reduced(emit, quadrant, reduced, error, function, by)?;
    let shorter = function.signed(emit, shorter, bits, sign)?;
    let large = emit.number(absolute, by.large);
    let is_small = emit.less(absolute, large)?;
    emit.select(is_small, shorter, value)
}

/// Subtracts the nearest multiple of π/2: the lowest bits of how often, the rest, and its rounding error.
fn minus_multiples(emit: &mut Emit, absolute: NodeId, by: &Reduction) -> Result<(NodeId, NodeId, NodeId)> {
    let (two_over_pi, to_integer) = (emit.number(absolute, FRAC_2_PI), emit.number(absolute, by.to_integer));
    let sum = emit.fma(absolute, two_over_pi, to_integer)?;
    let count = emit.sub(sum, to_integer)?;
    let [first, second, third] = by.half_pi.map(|part| emit.number(absolute, -part));
    // The first difference is exact; the rounding errors of the second are carried along. Its minuend has no bits below the
    // subtrahend's, so two_sum is exact although the minuend may be smaller.
    let minuend = emit.fma(count, first, absolute)?;
    let product = emit.mul(count, second)?;
    let minus = emit.number(absolute, -1.0);
    let minus_product = emit.mul(product, minus)?;
    let lost_product = emit.fma(count, second, minus_product)?;
    let (reduced, lost) = two_sum(emit, minuend, product)?;
    let lost = emit.add(lost, lost_product)?;
    let error = emit.fma(count, third, lost)?;
    Ok((emit.bitcast(sum, by.integer)?, reduced, error))
}

/// Evaluates the sine or cosine of a reduced argument in f64 and rounds the result to f32.
fn rounded_f32(emit: &mut Emit, quadrant: NodeId, reduced: NodeId, function: Function) -> Result<NodeId> {
    let z = emit.mul(reduced, reduced)?;
    let sine = emit.polynomial(z, SINE_ROUNDED)?;
    let cube = emit.mul(reduced, z)?;
    let sine = emit.fma(sine, cube, reduced)?;
    let cosine = cosine(emit, z, COSINE_ROUNDED)?;
    let quadrant = function.quadrant(emit, quadrant)?;
    let value = by_quadrant(emit, quadrant, sine, cosine)?;
    emit.cast(value, DType::F32)
}

/// Reduces any `|x|`: the quadrant, and the reduced argument in f64.
fn all_bits_f32(emit: &mut Emit, absolute_bits: NodeId, absolute: NodeId) -> Result<(NodeId, NodeId)> {
    let wide = emit.cast(absolute_bits, DType::U64)?;
    // |x| = mantissa · 2^(exponent - 150); 64 zero bits in front serve exponents down to 2^-12.
    let exponent = emit.shift_right(wide, 23)?;
    let least = emit.int(DType::U64, 115);
    let small = emit.less(exponent, least)?;
    let exponent = emit.select(small, least, exponent)?;
    let mantissa = emit.mask(wide, 0x7f_ffff)?;
    let hidden = emit.int(DType::U64, 0x80_0000);
    let mantissa = emit.op(Op::Or, mantissa, hidden)?;
    // The window starts at the bit of 2/π that contributes 2 to the product: what is above are multiples of 4.
    let offset = emit.int(DType::U64, 64 - 2 - 150);
    let start = emit.add(exponent, offset)?;
    let position = emit.shift_right(start, 5)?;
    let shift = emit.mask(start, 31)?;
    let words = window(emit, position, 2, 4, (255 - 150 - 2 + 64) >> 5)?;
    let words = shifted(emit, &words, shift)?;
    // The product modulo 4 as a fixed-point number with two bits in front of the point.
    let top = emit.mul(mantissa, words[0])?;
    let top = emit.shift_left(top, 32)?;
    let middle = emit.mul(mantissa, words[1])?;
    let bottom = emit.mul(mantissa, words[2])?;
    let bottom = emit.shift_right(bottom, 32)?;
    let fixed = emit.add(top, middle)?;
    let fixed = emit.add(fixed, bottom)?;
    let (quadrant, rest) = nearest_quadrant(emit, fixed)?;
    let rest = emit.cast(rest, DType::F64)?;
    let unit = emit.float(DType::F64, HALF_PI[0] * (-62f64).exp2());
    let reduced = emit.mul(rest, unit)?;
    let as_it_is = emit.cast(absolute, DType::F64)?;
    let reduced = emit.select(small, as_it_is, reduced)?;
    let zero = emit.int(DType::U64, 0);
    Ok((emit.select(small, zero, quadrant)?, reduced))
}

/// 1 - r²/2 + r⁴·C(r²).
fn cosine(emit: &mut Emit, z: NodeId, coefficients: &[f64]) -> Result<NodeId> {
    let tail = emit.polynomial(z, coefficients)?;
    let minus_half = emit.number(z, -0.5);
    let tail = emit.fma(tail, z, minus_half)?;
    let one = emit.number(z, 1.0);
    emit.fma(tail, z, one)
}

/// Splits a fixed-point number of two integer bits into the nearest integer and the signed rest.
fn nearest_quadrant(emit: &mut Emit, fixed: NodeId) -> Result<(NodeId, NodeId)> {
    let half = emit.int(DType::U64, 1 << 61);
    let rounded = emit.add(fixed, half)?;
    let quadrant = emit.shift_right(rounded, 62)?;
    let whole = emit.shift_left(quadrant, 62)?;
    let rest = emit.sub(fixed, whole)?;
    Ok((quadrant, emit.cast(rest, DType::I64)?))
}

/// sin, cos, -sin or -cos of the rest.
fn by_quadrant(emit: &mut Emit, quadrant: NodeId, sine: NodeId, cosine: NodeId) -> Result<NodeId> {
    let (integer, float) = (emit.graph.dtype(quadrant), emit.graph.dtype(sine));
    let bits = 8 * integer.size() as i128;
    let zero = emit.int(integer, 0);
    let odd = emit.mask(quadrant, 1)?;
    let odd = emit.differs(odd, zero)?;
    let value = emit.select(odd, cosine, sine)?;
    let value = emit.bitcast(value, integer)?;
    let sign = emit.shift_left(quadrant, bits - 2)?;
    let sign = emit.mask(sign, 1 << (bits - 1))?;
    let value = emit.op(Op::Xor, value, sign)?;
    emit.bitcast(value, float)
}

fn finite_or_nan(emit: &mut Emit, absolute: NodeId, value: NodeId) -> Result<NodeId> {
    let (infinity, nan) = (emit.number(absolute, f64::INFINITY), emit.number(absolute, f64::NAN));
    let finite = emit.less(absolute, infinity)?;
    emit.select(finite, value, nan)
}

/// Reduces any `|x|`: the quadrant, the reduced argument, and its rounding error.
fn all_bits_f64(emit: &mut Emit, absolute_bits: NodeId, absolute: NodeId) -> Result<(NodeId, NodeId, NodeId)> {
    let x = absolute;
    // |x| = mantissa · 2^(exponent - 1075); 96 zero bits in front serve exponents down to 2^-27.
    let exponent = emit.shift_right(absolute_bits, 52)?;
    let least = emit.int(DType::U64, 996);
    let small = emit.less(exponent, least)?;
    let exponent = emit.select(small, least, exponent)?;
    let mantissa = emit.mask(absolute_bits, (1 << 52) - 1)?;
    let low = emit.mask(mantissa, 0xffff_ffff)?;
    let hidden = emit.int(DType::U64, 1 << 52);
    let high = emit.op(Op::Or, mantissa, hidden)?;
    let high = emit.shift_right(high, 32)?;
    let offset = emit.int(DType::U64, 96 - 2 - 1075);
    let start = emit.add(exponent, offset)?;
    let position = emit.shift_right(start, 5)?;
    let shift = emit.mask(start, 31)?;
    let words = window(emit, position, 3, 7, (2047 - 1075 - 2 + 96) >> 5)?;
    let words = shifted(emit, &words, shift)?;

    // The product modulo 2^192 in limbs of 32 bits, the least significant first; the lower two only carry.
    let zero = emit.int(DType::U64, 0);
    let mut limbs: SmallVec<[NodeId; 6]> = SmallVec::new();
    let (mut carry, mut above) = (zero, [zero; 2]);
    for (index, &word) in words.iter().rev().enumerate() {
        // Products of 32 bits by 32, one limb apart: their halves go to this limb and the next.
        let first = emit.mul(low, word)?;
        let mut sum = emit.mask(first, 0xffff_ffff)?;
        sum = emit.add(sum, carry)?;
        sum = emit.add(sum, above[0])?;
        let mut next = emit.shift_right(first, 32)?;
        if index > 0 {
            let second = emit.mul(high, words[words.len() - index])?;
            let lower = emit.mask(second, 0xffff_ffff)?;
            sum = emit.add(sum, lower)?;
            let upper = emit.shift_right(second, 32)?;
            next = emit.add(next, upper)?;
        }
        limbs.push(emit.mask(sum, 0xffff_ffff)?);
        carry = emit.shift_right(sum, 32)?;
        above = [next, zero];
    }
    let join = |emit: &mut Emit, high: NodeId, low: NodeId| {
        let high = emit.shift_left(high, 32)?;
        emit.op(Op::Or, high, low)
    };
    let upper = join(emit, limbs[5], limbs[4])?;
    let lower = join(emit, limbs[3], limbs[2])?;
    let (quadrant, rest) = nearest_quadrant(emit, upper)?;

    // The rest as a sum of two f64, in units of 2^-62.
    let rest_high = emit.shift_right(rest, 32)?;
    let rest_low = emit.mask(rest, 0xffff_ffff)?;
    let (rest_high, rest_low) = (emit.cast(rest_high, DType::F64)?, emit.cast(rest_low, DType::F64)?);
    let lower = emit.cast(lower, DType::F64)?;
    let (two_32, two_64) = (emit.number(x, 32f64.exp2()), emit.number(x, (-64f64).exp2()));
    let rest_high = emit.mul(rest_high, two_32)?;
    let lower = emit.mul(lower, two_64)?;
    let (sum, lost) = two_sum(emit, rest_high, rest_low)?;
    let lost = emit.add(lost, lower)?;
    let (sum, lost) = two_sum(emit, sum, lost)?;
    // Times π/2.
    let unit = emit.number(x, (-62f64).exp2());
    let (sum, lost) = (emit.mul(sum, unit)?, emit.mul(lost, unit)?);
    let (half_pi, half_pi_low) = (emit.number(x, HALF_PI[0]), emit.number(x, HALF_PI[1]));
    let product = emit.mul(sum, half_pi)?;
    let minus = emit.number(x, -1.0);
    let minus_product = emit.mul(product, minus)?;
    let error = emit.fma(sum, half_pi, minus_product)?;
    let error = emit.fma(sum, half_pi_low, error)?;
    let error = emit.fma(lost, half_pi, error)?;
    let (reduced, error) = two_sum(emit, product, error)?;
    let zero_float = emit.number(x, 0.0);
    let reduced = emit.select(small, absolute, reduced)?;
    let error = emit.select(small, zero_float, error)?;
    Ok((emit.select(small, zero, quadrant)?, reduced, error))
}

/// Evaluates the sine or cosine of the reduced argument `reduced + error`.
fn of_reduced(
    emit: &mut Emit,
    quadrant: NodeId,
    reduced: NodeId,
    error: NodeId,
    function: Function,
    by: &Reduction,
) -> Result<NodeId> {
    let x = reduced;
    // sin(r + e) = sin r + e·cos r, cos(r + e) = cos r - e·sin r, to first order.
    let z = emit.mul(reduced, reduced)?;
    let tail = emit.polynomial(z, by.sine)?;
    let cube = emit.mul(reduced, z)?;
    let minus_half = emit.number(x, -0.5);
    let error_part = emit.mul(z, minus_half)?;
    let error_part = emit.fma(error_part, error, error)?;
    let tail = emit.fma(tail, cube, error_part)?;
    let sine = emit.add(reduced, tail)?;
    // 1 - z/2 in two parts, as z/2 may be near 1/3.
    let (one, half) = (emit.number(x, 1.0), emit.number(x, 0.5));
    let halved = emit.mul(z, half)?;
    let near = emit.sub(one, halved)?;
    let lost = emit.sub(one, near)?;
    let lost = emit.sub(lost, halved)?;
    let tail = emit.polynomial(z, by.cosine)?;
    let fourth = emit.mul(z, z)?;
    let tail = emit.fma(tail, fourth, lost)?;
    let crossed = emit.mul(reduced, error)?;
    let tail = emit.sub(tail, crossed)?;
    let cosine = emit.add(near, tail)?;
    let quadrant = function.quadrant(emit, quadrant)?;
    by_quadrant(emit, quadrant, sine, cosine)
}

/// The sum, and what its rounding lost; |a| ≥ |b| or a = 0.
fn two_sum(emit: &mut Emit, a: NodeId, b: NodeId) -> Result<(NodeId, NodeId)> {
    let sum = emit.add(a, b)?;
    let rest = emit.sub(a, sum)?;
    Ok((sum, emit.add(rest, b)?))
}
