//! Floats as the vector unit computes them: rounded to nearest, subnormals kept, a nan of an operand made quiet and passed on.

use crate::float::{F16, Rounding, add_odd};

/// The nan of an operation that has no value.
const NAN: u32 = 0x7fc0_0000;
const NAN_LONG: u64 = 0x7ff8_0000_0000_0000;
const NAN_NARROW: u32 = 0x7e00;

#[inline(always)]
pub(super) fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
pub(super) fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The result, or the first nan among the operands.
#[inline(always)]
pub(super) fn single<const COUNT: usize>(value: f32, operands: [u32; COUNT]) -> u32 {
    let mut nan = NAN;
    for &operand in operands.iter().rev() {
        nan = if f(operand).is_nan() { operand | 0x0040_0000 } else { nan };
    }
    if value.is_nan() { nan } else { value.to_bits() }
}

#[inline(always)]
pub(super) fn double<const COUNT: usize>(value: f64, operands: [u64; COUNT]) -> u64 {
    let mut nan = NAN_LONG;
    for &operand in operands.iter().rev() {
        nan = if d(operand).is_nan() { operand | 1 << 51 } else { nan };
    }
    if value.is_nan() { nan } else { value.to_bits() }
}

fn is_narrow_nan(bits: u32) -> bool {
    bits & 0x7fff > 0x7c00
}

/// An f32 of the value of an f16; nans keep what they hold.
#[inline(always)]
pub(super) fn widen(bits: u32) -> f32 {
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
    let value = match magnitude {
        0x7c00.. => 0x7f80_0000 | (magnitude & 0x3ff) << 13,
        // Of a subnormal the significand counts units of 2^-24.
        0..0x400 => (magnitude as f32 * f32::from_bits((127 - 24) << 23)).to_bits(),
        _ => (magnitude << 13) + ((127 - 15) << 23),
    };
    f(sign | value)
}

/// Rounded to f16, to nearest; nans keep what they can.
#[inline(always)]
pub(super) fn narrow(value: f32) -> u32 {
    let bits = value.to_bits();
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | (magnitude >> 13 & 0x3ff);
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Below the normal numbers; added to 0.5 the last bit of the sum is the unit 2^-24.
        let sum = f(magnitude) + 0.5;
        return sign | (sum.to_bits() - 0x3f00_0000);
    }
    let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    sign | ((rounded >> 13) - ((127 - 15) << 10))
}

/// An f32 result of f16s, rounded once more: f32 has 2p + 2 bits for the p of f16, so this equals rounding once.
#[inline(always)]
pub(super) fn half<const COUNT: usize>(value: f32, operands: [u32; COUNT]) -> u32 {
    let mut nan = NAN_NARROW;
    for &operand in operands.iter().rev() {
        nan = if is_narrow_nan(operand) { (operand | 0x200) & 0xffff } else { nan };
    }
    if value.is_nan() { nan } else { narrow(value) }
}

/// A product and a sum of f16s, rounded once.
pub(super) fn half_multiply_add(a: u32, b: u32, c: u32) -> u32 {
    let [x, y, z] = [a, b, c].map(|bits| f64::from(widen(bits & 0xffff)));
    let value = if x.is_finite() && y.is_finite() { add_odd(x * y, z) } else { x * y + z };
    match value.is_nan() {
        true => half(f32::NAN, [a, b, c]),
        false => F16.encode(value, Rounding::Even) as u32,
    }
}

/// An f16 towards zero.
pub(super) fn narrow_to_zero(value: f32) -> u32 {
    if value.is_nan() {
        return narrow(value);
    }
    F16.encode(value.into(), Rounding::Zero) as u32
}

/// bf16 to nearest.
pub(super) fn brain(value: f32) -> u32 {
    let bits = value.to_bits();
    if value.is_nan() {
        return bits >> 16 | 0x40;
    }
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

/// Bits whose order as integers is that of the floats, -0 below +0.
#[inline(always)]
fn order(bits: u32) -> i32 {
    let bits = bits as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// The greater number, or the only one.
#[inline(always)]
pub(super) fn maximum(a: u32, b: u32) -> u32 {
    let greater = if order(a) >= order(b) { a } else { b };
    if f(a).is_nan() {
        quiet_if_nan(b)
    } else if f(b).is_nan() {
        a
    } else {
        greater
    }
}

#[inline(always)]
pub(super) fn minimum(a: u32, b: u32) -> u32 {
    let less = if order(a) <= order(b) { a } else { b };
    if f(a).is_nan() {
        quiet_if_nan(b)
    } else if f(b).is_nan() {
        a
    } else {
        less
    }
}

fn quiet_if_nan(bits: u32) -> u32 {
    if f(bits).is_nan() { bits | 0x0040_0000 } else { bits }
}

fn is_signalling(bits: u32) -> bool {
    f(bits).is_nan() && bits & 0x0040_0000 == 0
}

/// As the mode IEEE has it: a signalling nan makes the result nan.
#[inline(always)]
pub(super) fn maximum_ieee(a: u32, b: u32) -> u32 {
    if is_signalling(a) {
        a | 0x0040_0000
    } else if is_signalling(b) {
        b | 0x0040_0000
    } else {
        maximum(a, b)
    }
}

#[inline(always)]
pub(super) fn minimum_ieee(a: u32, b: u32) -> u32 {
    if is_signalling(a) {
        a | 0x0040_0000
    } else if is_signalling(b) {
        b | 0x0040_0000
    } else {
        minimum(a, b)
    }
}

/// nan if one of them is.
#[inline(always)]
pub(super) fn maximum_or_nan(a: u32, b: u32) -> u32 {
    if f(a).is_nan() || f(b).is_nan() { single(f32::NAN, [a, b]) } else { maximum(a, b) }
}

#[inline(always)]
pub(super) fn minimum_or_nan(a: u32, b: u32) -> u32 {
    if f(a).is_nan() || f(b).is_nan() { single(f32::NAN, [a, b]) } else { minimum(a, b) }
}

/// A function of f32s on f16s, whose results are among the operands: their bits come back unchanged.
#[inline(always)]
pub(super) fn choose_half(of: fn(u32, u32) -> u32, a: u32, b: u32) -> u32 {
    narrow(f(of(widen(a & 0xffff).to_bits(), widen(b & 0xffff).to_bits())))
}

fn order_long(bits: u64) -> i64 {
    let bits = bits as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

fn is_signalling_long(bits: u64) -> bool {
    d(bits).is_nan() && bits >> 51 & 1 == 0
}

/// The greater number of two f64s, or the less.
pub(super) fn choose_long(a: u64, b: u64, is_maximum: bool, is_ieee: bool, takes_nan: bool) -> u64 {
    let nan = |bits: u64| if d(bits).is_nan() { bits | 1 << 51 } else { bits };
    if is_ieee && is_signalling_long(a) || takes_nan && d(a).is_nan() {
        return nan(a);
    }
    if is_ieee && is_signalling_long(b) || takes_nan && d(b).is_nan() {
        return nan(b);
    }
    match (d(a).is_nan(), d(b).is_nan()) {
        (true, _) => nan(b),
        (_, true) => a,
        _ if (order_long(a) >= order_long(b)) == is_maximum => a,
        _ => b,
    }
}

/// The middle of three; with a nan, the least of the others.
pub(super) fn middle(a: u32, b: u32, c: u32) -> u32 {
    if [a, b, c].iter().any(|&bits| f(bits).is_nan()) {
        return minimum_ieee(minimum_ieee(a, b), c);
    }
    maximum(minimum(a, b), minimum(maximum(a, b), c))
}

fn field(bits: u32) -> i32 {
    (bits >> 23 & 0xff) as i32
}

fn field_long(bits: u64) -> i32 {
    (bits >> 52 & 0x7ff) as i32
}

/// `value` · 2^`exponent`, rounded once.
pub(super) fn scale(value: f32, exponent: i32) -> f32 {
    // As f64 the product is exact.
    let exponent = exponent.clamp(-400, 400);
    (f64::from(value) * f64::from_bits(((exponent + 1023) as u64) << 52)) as f32
}

pub(super) fn scale_long(value: f64, exponent: i32) -> f64 {
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    // The least number times 2^2100 overflows; in steps that are exact but for the last.
    let mut exponent = exponent.clamp(-2200, 2200);
    let mut value = value;
    while exponent > 1000 {
        value *= power(1000);
        exponent -= 1000;
    }
    if exponent >= -1000 && value.abs() * power(exponent.min(0)) >= f64::MIN_POSITIVE {
        return value * power(exponent);
    }
    // It may become subnormal: made as large as can be, so that one product rounds.
    let (mantissa, own) = split_long(value);
    let total = (exponent + own).max(-1200);
    if total < -1020 {
        let raised = mantissa * power(-900);
        return raised * power(total + 900);
    }
    mantissa * power(total)
}

/// A number of [1/2, 1), and the power of two that it is to be multiplied by.
pub(super) fn split_long(value: f64) -> (f64, i32) {
    if !value.is_finite() || value == 0.0 {
        return (value, 0);
    }
    let (value, offset) = if value.is_subnormal() { (value * f64::from_bits(1077 << 52), -54) } else { (value, 0) };
    let bits = value.to_bits();
    let exponent = field_long(bits) - 1022 + offset;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent)
}

/// The steps of a correct division, first: an operand, scaled so that nothing overflows or is lost between; and whether the
/// quotient is to be scaled back.
pub(super) fn division_scale(a: u32, denominator: u32, numerator: u32) -> (u32, bool) {
    let scaled = |exponent: i32| single(scale(f(a), exponent), [a]);
    let if_denominator = |exponent: i32| if a == denominator { scaled(exponent) } else { a };
    let (below, above) = (f(denominator), f(numerator));
    let is_small = |value: f32| value.is_subnormal();
    if below == 0.0 || above == 0.0 {
        return (NAN, false);
    }
    if field(numerator) - field(denominator) >= 96 {
        return (if_denominator(64), true);
    }
    if below.is_subnormal() {
        return (scaled(64), false);
    }
    match (is_small(1.0 / below), is_small(above / below)) {
        // Published pseudo-code scales it up here, which would overflow: the divisor is near the greatest number.
        (true, true) => (if_denominator(-64), true),
        (true, false) => (scaled(-64), false),
        (false, true) => (if a == numerator { scaled(64) } else { a }, true),
        (false, false) if field(numerator) <= 23 => (scaled(64), false),
        (false, false) => (a, false),
    }
}

pub(super) fn division_scale_long(a: u64, denominator: u64, numerator: u64) -> (u64, bool) {
    let scaled = |exponent: i32| double(scale_long(d(a), exponent), [a]);
    let if_denominator = |exponent: i32| if a == denominator { scaled(exponent) } else { a };
    let (below, above) = (d(denominator), d(numerator));
    let is_small = |value: f64| value.is_subnormal();
    if below == 0.0 || above == 0.0 {
        return (NAN_LONG, false);
    }
    if field_long(numerator) - field_long(denominator) >= 768 {
        return (if_denominator(128), true);
    }
    if below.is_subnormal() {
        return (scaled(128), false);
    }
    match (is_small(1.0 / below), is_small(above / below)) {
        (true, true) => (if_denominator(-128), true),
        (true, false) => (scaled(-128), false),
        (false, true) => (if a == numerator { scaled(128) } else { a }, true),
        (false, false) if field_long(numerator) <= 53 => (scaled(128), false),
        (false, false) => (a, false),
    }
}

/// The last of them but one: a multiply-add whose result is scaled back, up or down as its size tells.
pub(super) fn division_multiply_add(a: u32, b: u32, c: u32, is_scaled: bool) -> u32 {
    let fused = f(a).mul_add(f(b), f(c));
    let value = match is_scaled {
        true => scale_sum(f(a), f(b), f(c), if field(c) > 127 { 64 } else { -64 }),
        false => fused,
    };
    single(value, [a, b, c])
}

/// A multiply-add times a power of two, rounded once.
fn scale_sum(a: f32, b: f32, c: f32, exponent: i32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    (add_odd(product, c.into()) * f64::from_bits(((exponent + 1023) as u64) << 52)) as f32
}

pub(super) fn division_multiply_add_long(a: u64, b: u64, c: u64, is_scaled: bool) -> u64 {
    let fused = d(a).mul_add(d(b), d(c));
    let value = match is_scaled {
        true => scale_long(fused, if field_long(c) > 1023 { 128 } else { -128 }),
        false => fused,
    };
    double(value, [a, b, c])
}

/// The last: the quotient, or what a quotient of such operands is.
pub(super) fn division_fix(quotient: u32, denominator: u32, numerator: u32) -> u32 {
    let sign = (denominator ^ numerator) & 0x8000_0000;
    let (below, above) = (f(denominator), f(numerator));
    if above.is_nan() || below.is_nan() {
        return single(f32::NAN, [numerator, denominator]);
    }
    if (below == 0.0 && above == 0.0) || (below.is_infinite() && above.is_infinite()) {
        return 0xffc0_0000;
    }
    if below == 0.0 || above.is_infinite() {
        return sign | 0x7f80_0000;
    }
    if below.is_infinite() || above == 0.0 || field(numerator) - field(denominator) < -150 {
        return sign;
    }
    // Published pseudo-code lets this pass; but a quotient of numbers is none only where the steps before it left all numbers.
    if f(quotient).is_nan() {
        return sign | 0x7f80_0000;
    }
    sign | (quotient & 0x7fff_ffff)
}

pub(super) fn division_fix_long(quotient: u64, denominator: u64, numerator: u64) -> u64 {
    let sign = (denominator ^ numerator) & 1 << 63;
    let (below, above) = (d(denominator), d(numerator));
    if above.is_nan() || below.is_nan() {
        return double(f64::NAN, [numerator, denominator]);
    }
    if (below == 0.0 && above == 0.0) || (below.is_infinite() && above.is_infinite()) {
        return 0xfff8 << 48;
    }
    if below == 0.0 || above.is_infinite() {
        return sign | 0x7ff0 << 48;
    }
    if below.is_infinite() || above == 0.0 || field_long(numerator) - field_long(denominator) < -1075 {
        return sign;
    }
    if d(quotient).is_nan() {
        return sign | 0x7ff0 << 48;
    }
    sign | (quotient & !(1 << 63))
}

pub(super) fn division_fix_half(quotient: u32, denominator: u32, numerator: u32) -> u32 {
    let [quotient, denominator, numerator] = [quotient, denominator, numerator].map(|bits| bits & 0xffff);
    let sign = (denominator ^ numerator) & 0x8000;
    let (below, above) = (widen(denominator), widen(numerator));
    if above.is_nan() || below.is_nan() {
        return half(f32::NAN, [numerator, denominator]);
    }
    if (below == 0.0 && above == 0.0) || (below.is_infinite() && above.is_infinite()) {
        return 0xfe00;
    }
    if below == 0.0 || above.is_infinite() {
        return sign | 0x7c00;
    }
    if below.is_infinite() || above == 0.0 {
        return sign;
    }
    sign | (quotient & 0x7fff)
}

/// Is a number of one of these classes? Bits: signalling nan, quiet nan, -infinity, -normal, -subnormal, -0, +0, +subnormal,
/// +normal, +infinity.
pub(super) fn is_of_class(value: f64, is_subnormal: bool, is_quiet: bool, classes: u32) -> bool {
    let is_negative = value.is_sign_negative();
    let class = if value.is_nan() {
        u32::from(is_quiet)
    } else {
        let size = match value.abs() {
            f64::INFINITY => 0,
            0.0 => 3,
            _ if is_subnormal => 2,
            _ => 1,
        };
        if is_negative { 2 + size } else { 9 - size }
    };
    classes >> class & 1 == 1
}

pub(super) fn class_single(a: u32, classes: u32) -> bool {
    is_of_class(f(a).into(), f(a).is_subnormal(), a >> 22 & 1 == 1, classes)
}

pub(super) fn class_double(a: u64, classes: u64) -> bool {
    is_of_class(d(a), d(a).is_subnormal(), a >> 51 & 1 == 1, classes as u32)
}

pub(super) fn class_half(a: u32, classes: u32) -> bool {
    is_of_class(widen(a & 0xffff).into(), a & 0x7c00 == 0, a >> 9 & 1 == 1, classes)
}
