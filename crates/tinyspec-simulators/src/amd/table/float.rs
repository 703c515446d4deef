//! f32 and f64, and conversions between types.

use super::super::arithmetic::{
    brain, choose_long, d, division_fix, division_fix_long, division_multiply_add, division_multiply_add_long,
    division_scale, division_scale_long, double, f, maximum, maximum_ieee, maximum_or_nan, middle, minimum,
    minimum_ieee, minimum_or_nan, narrow, scale, scale_long, single, split_long, widen,
};
use super::super::kind::Kind::{B32, F16, F32, F64, I16, I32, Mixed, PairF32};
use super::super::lanes::{Function, Longs, PART, Words, carry, longs, words};
use super::super::text::Half;
use super::{Masks, Row, Vectors};

/// An f32 operation that the host computes in one instruction.
macro_rules! hot {
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {{
        #[inline(always)]
        fn lanes(from: &[&Words; 3], out: &mut Words) {
            for lane in 0..PART {
                let ($a, $b, $c) = (from[0][lane], from[1][lane], from[2][lane]);
                out[lane] = $value;
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn by_hardware(from: &[&Words; 3], out: &mut Words) {
            lanes(from, out);
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has both.
        let fast: Option<fn(&[&Words; 3], &mut Words)> =
            is_fast().then_some(|from, out| unsafe { by_hardware(from, out) });
        #[cfg(not(target_arch = "x86_64"))]
        let fast: Option<fn(&[&Words; 3], &mut Words)> = None;
        Function::Words(fast.unwrap_or(lanes))
    }};
}

macro_rules! hot_long {
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {{
        #[inline(always)]
        fn lanes(from: &[&Longs; 3], out: &mut Longs) {
            for lane in 0..PART {
                let ($a, $b, $c) = (from[0][lane], from[1][lane], from[2][lane]);
                out[lane] = $value;
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn by_hardware(from: &[&Longs; 3], out: &mut Longs) {
            lanes(from, out);
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has both.
        let fast: Option<fn(&[&Longs; 3], &mut Longs)> =
            is_fast().then_some(|from, out| unsafe { by_hardware(from, out) });
        #[cfg(not(target_arch = "x86_64"))]
        let fast: Option<fn(&[&Longs; 3], &mut Longs)> = None;
        Function::Longs(fast.unwrap_or(lanes))
    }};
}

#[cfg(target_arch = "x86_64")]
fn is_fast() -> bool {
    std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("avx2")
}

#[inline(always)]
fn fused(a: u32, b: u32, c: u32) -> u32 {
    single(f(a).mul_add(f(b), f(c)), [a, b, c])
}

/// A product and a sum, each rounded, with subnormals flushed to 0.
fn apart(a: u32, b: u32, c: u32) -> u32 {
    let flushed = |bits: u32| if f(bits).is_subnormal() { bits & 0x8000_0000 } else { bits };
    let [x, y, z] = [a, b, c].map(flushed);
    let product = flushed((f(x) * f(y)).to_bits());
    flushed(single(f(product) + f(z), [a, b, c]))
}

#[inline(always)]
fn fused_long(a: u64, b: u64, c: u64) -> u64 {
    double(d(a).mul_add(d(b), d(c)), [a, b, c])
}

/// The same function on both registers of a pair.
fn pairs(function: Function) -> Function {
    match function {
        Function::Words(of) => Function::Pairs(of),
        function => function,
    }
}

/// Computed in f64, and rounded.
fn through(a: u32, of: fn(f64) -> f64) -> u32 {
    single(of(f(a).into()) as f32, [a])
}

fn one(of: impl Fn(f32) -> f32, a: u32) -> u32 {
    single(of(f(a)), [a])
}

fn one_long(of: impl Fn(f64) -> f64, a: u64) -> u64 {
    double(of(d(a)), [a])
}

/// The fraction, kept below 1 where it would round to 1.
fn fraction(a: u32) -> u32 {
    one(|a| if a.is_infinite() { f32::NAN } else { (a - a.floor()).min(f(0x3f7f_ffff)) }, a)
}

fn fraction_long(a: u64) -> u64 {
    one_long(|a| if a.is_infinite() { f64::NAN } else { (a - a.floor()).min(d(0x3fef_ffff_ffff_ffff)) }, a)
}

fn mantissa(a: u32) -> u32 {
    single(split_long(f(a).into()).0 as f32, [a])
}

/// The exponent to a mantissa in [1/2, 1); 0 for zeros, infinities and nans.
fn exponent(value: f64) -> u32 {
    split_long(value).1 as u32
}

/// Sine or cosine of an argument in turns; beyond 256 turns the argument counts as 0.
fn turn(a: u32, of: fn(f64) -> f64) -> u32 {
    let value = f64::from(f(a));
    if value.is_infinite() {
        return single(f32::NAN, [a]);
    }
    if value.abs() > 256.0 {
        return (of(0.0) as f32).to_bits();
    }
    single(of(value.fract() * std::f64::consts::TAU) as f32, [a])
}

fn pack_to_zero(a: u32, b: u32) -> u32 {
    super::super::arithmetic::narrow_to_zero(f(a)) | super::super::arithmetic::narrow_to_zero(f(b)) << 16
}

/// A 16-bit normalised integer: the range -1 to 1, or 0 to 1, scaled to the whole range of the integer.
fn normalised(a: u32, least: f64, most: f64) -> u32 {
    let value = f64::from(f(a));
    if value.is_nan() { 0 } else { ((value.clamp(least, 1.0) * most).round_ties_even() as i32 as u32) & 0xffff }
}

pub(super) fn rows() -> Vectors {
    let two = &[F32, F32];
    let three = &[F32, F32, F32];
    let (two_long, three_long) = (&[F64, F64], &[F64, F64, F64]);
    let pair = &[PairF32, PairF32];
    vec![
        ("v_add_f32", Row::new(F32, two, hot!(|a, b, _c| single(f(a) + f(b), [a, b])))),
        ("v_sub_f32", Row::new(F32, two, hot!(|a, b, _c| single(f(a) - f(b), [a, b])))),
        ("v_subrev_f32", Row::new(F32, two, hot!(|a, b, _c| single(f(b) - f(a), [a, b])))),
        ("v_mul_f32", Row::new(F32, two, hot!(|a, b, _c| single(f(a) * f(b), [a, b])))),
        (
            "v_mul_legacy_f32|v_mul_dx9_zero_f32",
            Row::new(F32, two, words!(|a, b| if f(a) == 0.0 || f(b) == 0.0 { 0 } else { single(f(a) * f(b), [a, b]) })),
        ),
        ("v_fma_f32|v_fmaak_f32|v_fmamk_f32", Row::new(F32, three, hot!(|a, b, c| fused(a, b, c)))),
        ("v_fmac_f32", Row::new(F32, three, hot!(|a, b, c| fused(a, b, c))).accumulates()),
        // Rounded twice, subnormals flushed.
        ("v_mad_f32|v_madak_f32|v_madmk_f32", Row::new(F32, three, words!(|a, b, c| apart(a, b, c)))),
        ("v_mac_f32", Row::new(F32, three, words!(|a, b, c| apart(a, b, c))).accumulates()),
        ("v_max_f32", Row::new(F32, two, hot!(|a, b, _c| maximum_ieee(a, b)))),
        ("v_min_f32", Row::new(F32, two, hot!(|a, b, _c| minimum_ieee(a, b)))),
        ("v_max_num_f32", Row::new(F32, two, hot!(|a, b, _c| maximum(a, b)))),
        ("v_min_num_f32", Row::new(F32, two, hot!(|a, b, _c| minimum(a, b)))),
        ("v_maximum_f32", Row::new(F32, two, words!(|a, b| maximum_or_nan(a, b)))),
        ("v_minimum_f32", Row::new(F32, two, words!(|a, b| minimum_or_nan(a, b)))),
        ("v_max3_f32", Row::new(F32, three, words!(|a, b, c| maximum_ieee(maximum_ieee(a, b), c)))),
        ("v_min3_f32", Row::new(F32, three, words!(|a, b, c| minimum_ieee(minimum_ieee(a, b), c)))),
        ("v_max3_num_f32", Row::new(F32, three, words!(|a, b, c| maximum(maximum(a, b), c)))),
        ("v_min3_num_f32", Row::new(F32, three, words!(|a, b, c| minimum(minimum(a, b), c)))),
        ("v_maximum3_f32", Row::new(F32, three, words!(|a, b, c| maximum_or_nan(maximum_or_nan(a, b), c)))),
        ("v_minimum3_f32", Row::new(F32, three, words!(|a, b, c| minimum_or_nan(minimum_or_nan(a, b), c)))),
        ("v_maxmin_f32", Row::new(F32, three, words!(|a, b, c| minimum_ieee(maximum_ieee(a, b), c)))),
        ("v_minmax_f32", Row::new(F32, three, words!(|a, b, c| maximum_ieee(minimum_ieee(a, b), c)))),
        ("v_maxmin_num_f32", Row::new(F32, three, words!(|a, b, c| minimum(maximum(a, b), c)))),
        ("v_minmax_num_f32", Row::new(F32, three, words!(|a, b, c| maximum(minimum(a, b), c)))),
        ("v_maximumminimum_f32", Row::new(F32, three, words!(|a, b, c| minimum_or_nan(maximum_or_nan(a, b), c)))),
        ("v_minimummaximum_f32", Row::new(F32, three, words!(|a, b, c| maximum_or_nan(minimum_or_nan(a, b), c)))),
        ("v_med3_f32|v_med3_num_f32", Row::new(F32, three, words!(|a, b, c| middle(a, b, c)))),
        ("v_rcp_f32|v_rcp_iflag_f32", Row::new(F32, &[F32], words!(|a| one(|a| 1.0 / a, a)))),
        ("v_rsq_f32", Row::new(F32, &[F32], words!(|a| through(a, |a| 1.0 / a.sqrt())))),
        ("v_sqrt_f32", Row::new(F32, &[F32], words!(|a| one(f32::sqrt, a)))),
        ("v_exp_f32", Row::new(F32, &[F32], words!(|a| through(a, f64::exp2)))),
        ("v_log_f32", Row::new(F32, &[F32], words!(|a| through(a, f64::log2)))),
        ("v_sin_f32", Row::new(F32, &[F32], words!(|a| turn(a, f64::sin)))),
        ("v_cos_f32", Row::new(F32, &[F32], words!(|a| turn(a, f64::cos)))),
        ("v_floor_f32", Row::new(F32, &[F32], words!(|a| one(f32::floor, a)))),
        ("v_ceil_f32", Row::new(F32, &[F32], words!(|a| one(f32::ceil, a)))),
        ("v_trunc_f32", Row::new(F32, &[F32], words!(|a| one(f32::trunc, a)))),
        ("v_rndne_f32", Row::new(F32, &[F32], words!(|a| one(f32::round_ties_even, a)))),
        ("v_fract_f32", Row::new(F32, &[F32], words!(|a| fraction(a)))),
        ("v_ldexp_f32", Row::new(F32, &[F32, I32], words!(|a, b| single(scale(f(a), b as i32), [a])))),
        ("v_frexp_mant_f32", Row::new(F32, &[F32], words!(|a| mantissa(a)))),
        ("v_frexp_exp_i32_f32", Row::new(I32, &[F32], words!(|a| exponent(f(a).into())))),
        (
            "v_div_scale_f32",
            Row::new(F32, three, carry!(CarryWords | a, b, c, _carry | division_scale(a, b, c))).masks(Masks::Out),
        ),
        (
            "v_div_fmas_f32",
            Row::new(F32, three, carry!(CarryWords | a, b, c, carry | (division_multiply_add(a, b, c, carry), false)))
                .masks(Masks::InCarry),
        ),
        ("v_div_fixup_f32", Row::new(F32, three, words!(|a, b, c| division_fix(a, b, c)))),
        // Pairs.
        ("v_pk_add_f32", Row::new(PairF32, pair, pairs(hot!(|a, b, _c| single(f(a) + f(b), [a, b]))))),
        ("v_pk_mul_f32", Row::new(PairF32, pair, pairs(hot!(|a, b, _c| single(f(a) * f(b), [a, b]))))),
        ("v_pk_fma_f32", Row::new(PairF32, &[PairF32, PairF32, PairF32], pairs(hot!(|a, b, c| fused(a, b, c))))),
        // 64 bits.
        ("v_add_f64", Row::new(F64, two_long, hot_long!(|a, b, _c| double(d(a) + d(b), [a, b])))),
        ("v_mul_f64", Row::new(F64, two_long, hot_long!(|a, b, _c| double(d(a) * d(b), [a, b])))),
        ("v_fma_f64", Row::new(F64, three_long, hot_long!(|a, b, c| fused_long(a, b, c)))),
        ("v_fmac_f64", Row::new(F64, three_long, hot_long!(|a, b, c| fused_long(a, b, c))).accumulates()),
        ("v_max_f64", Row::new(F64, two_long, longs!(|a, b| choose_long(a, b, true, true, false)))),
        ("v_min_f64", Row::new(F64, two_long, longs!(|a, b| choose_long(a, b, false, true, false)))),
        ("v_max_num_f64", Row::new(F64, two_long, longs!(|a, b| choose_long(a, b, true, false, false)))),
        ("v_min_num_f64", Row::new(F64, two_long, longs!(|a, b| choose_long(a, b, false, false, false)))),
        ("v_maximum_f64", Row::new(F64, two_long, longs!(|a, b| choose_long(a, b, true, false, true)))),
        ("v_minimum_f64", Row::new(F64, two_long, longs!(|a, b| choose_long(a, b, false, false, true)))),
        ("v_rcp_f64", Row::new(F64, &[F64], longs!(|a| one_long(|a| 1.0 / a, a)))),
        ("v_rsq_f64", Row::new(F64, &[F64], longs!(|a| one_long(|a| 1.0 / a.sqrt(), a)))),
        ("v_sqrt_f64", Row::new(F64, &[F64], longs!(|a| one_long(f64::sqrt, a)))),
        ("v_floor_f64", Row::new(F64, &[F64], longs!(|a| one_long(f64::floor, a)))),
        ("v_ceil_f64", Row::new(F64, &[F64], longs!(|a| one_long(f64::ceil, a)))),
        ("v_trunc_f64", Row::new(F64, &[F64], longs!(|a| one_long(f64::trunc, a)))),
        ("v_rndne_f64", Row::new(F64, &[F64], longs!(|a| one_long(f64::round_ties_even, a)))),
        ("v_fract_f64", Row::new(F64, &[F64], longs!(|a| fraction_long(a)))),
        ("v_ldexp_f64", Row::new(F64, &[F64, I32], longs!(|a, b| double(scale_long(d(a), b as i32), [a])))),
        ("v_frexp_mant_f64", Row::new(F64, &[F64], longs!(|a| double(split_long(d(a)).0, [a])))),
        ("v_frexp_exp_i32_f64", Row::new(I32, &[F64], longs!(|a| exponent(d(a)).into()))),
        (
            "v_div_scale_f64",
            Row::new(F64, three_long, carry!(CarryLongs | a, b, c, _carry | division_scale_long(a, b, c)))
                .masks(Masks::Out),
        ),
        (
            "v_div_fmas_f64",
            Row::new(
                F64,
                three_long,
                carry!(CarryLongs | a, b, c, carry | (division_multiply_add_long(a, b, c, carry), false)),
            )
            .masks(Masks::InCarry),
        ),
        ("v_div_fixup_f64", Row::new(F64, three_long, longs!(|a, b, c| division_fix_long(a, b, c)))),
        // Conversions.
        ("v_cvt_f32_i32", Row::new(F32, &[I32], words!(|a| (a as i32 as f32).to_bits()))),
        ("v_cvt_f32_u32", Row::new(F32, &[I32], words!(|a| (a as f32).to_bits()))),
        ("v_cvt_i32_f32", Row::new(I32, &[F32], words!(|a| f(a) as i32 as u32))),
        ("v_cvt_u32_f32", Row::new(I32, &[F32], words!(|a| f(a) as u32))),
        (
            "v_cvt_rpi_i32_f32|v_cvt_nearest_i32_f32",
            Row::new(I32, &[F32], words!(|a| (f64::from(f(a)) + 0.5).floor() as i32 as u32)),
        ),
        ("v_cvt_flr_i32_f32|v_cvt_floor_i32_f32", Row::new(I32, &[F32], words!(|a| f(a).floor() as i32 as u32))),
        ("v_cvt_f32_ubyte0", Row::new(F32, &[B32], words!(|a| ((a & 0xff) as f32).to_bits())).follows()),
        ("v_cvt_f32_ubyte1", Row::new(F32, &[B32], words!(|a| ((a >> 8 & 0xff) as f32).to_bits())).follows()),
        ("v_cvt_f32_ubyte2", Row::new(F32, &[B32], words!(|a| ((a >> 16 & 0xff) as f32).to_bits())).follows()),
        ("v_cvt_f32_ubyte3", Row::new(F32, &[B32], words!(|a| ((a >> 24) as f32).to_bits())).follows()),
        ("v_cvt_f32_f64", Row::new(F32, &[F64], longs!(|a| u64::from(to_single(a))))),
        ("v_cvt_f64_f32", Row::new(F64, &[F32], longs!(|a| from_single(a as u32)))),
        ("v_cvt_f64_i32", Row::new(F64, &[I32], longs!(|a| f64::from(a as i32).to_bits()))),
        ("v_cvt_f64_u32", Row::new(F64, &[I32], longs!(|a| f64::from(a as u32).to_bits()))),
        ("v_cvt_i32_f64", Row::new(I32, &[F64], longs!(|a| u64::from(d(a) as i32 as u32)))),
        ("v_cvt_u32_f64", Row::new(I32, &[F64], longs!(|a| u64::from(d(a) as u32)))),
        ("v_cvt_f16_f32", Row::new(F16, &[F32], words!(|a| narrow(f(a))))),
        ("v_cvt_f32_f16", Row::new(F32, &[F16], words!(|a| single(widen(a & 0xffff), [widen(a & 0xffff).to_bits()])))),
        ("v_cvt_pkrtz_f16_f32|v_cvt_pk_rtz_f16_f32", Row::new(I32, two, words!(|a, b| pack_to_zero(a, b))).follows()),
        (
            "v_cvt_pk_i16_f32",
            Row::new(I32, two, words!(|a, b| u32::from(f(a) as i16 as u16) | u32::from(f(b) as i16 as u16) << 16))
                .follows(),
        ),
        (
            "v_cvt_pk_u16_f32",
            Row::new(I32, two, words!(|a, b| u32::from(f(a) as u16) | u32::from(f(b) as u16) << 16)).follows(),
        ),
        (
            "v_cvt_pknorm_i16_f32|v_cvt_pk_norm_i16_f32",
            Row::new(I32, two, words!(|a, b| normalised(a, -1.0, 32767.0) | normalised(b, -1.0, 32767.0) << 16)),
        ),
        (
            "v_cvt_pknorm_u16_f32|v_cvt_pk_norm_u16_f32",
            Row::new(I32, two, words!(|a, b| normalised(a, 0.0, 65535.0) | normalised(b, 0.0, 65535.0) << 16)),
        ),
        ("v_cvt_pk_bf16_f32", Row::new(I32, two, words!(|a, b| brain(f(a)) | brain(f(b)) << 16)).follows()),
        // Mixed widths.
        ("v_fma_mix_f32|v_mad_mix_f32", Row::new(F32, &[Mixed, Mixed, Mixed], hot!(|a, b, c| fused(a, b, c)))),
        (
            "v_fma_mixlo_f16",
            Row::new(F16, &[Mixed, Mixed, Mixed], words!(|a, b, c| narrow(f(fused(a, b, c))))).half(Half::Low),
        ),
        (
            "v_fma_mixhi_f16",
            Row::new(F16, &[Mixed, Mixed, Mixed], words!(|a, b, c| narrow(f(fused(a, b, c))))).half(Half::High),
        ),
        ("v_cvt_f16_u16", Row::new(F16, &[I16], words!(|a| narrow((a & 0xffff) as f32)))),
        ("v_cvt_f16_i16", Row::new(F16, &[I16], words!(|a| narrow(f32::from(a as i16))))),
        ("v_cvt_u16_f16", Row::new(I16, &[F16], words!(|a| u32::from(widen(a & 0xffff) as u16)))),
        ("v_cvt_i16_f16", Row::new(I16, &[F16], words!(|a| u32::from(widen(a & 0xffff) as i16 as u16)))),
    ]
}

fn to_single(a: u64) -> u32 {
    match d(a).is_nan() {
        // The sign, and as much of the nan payload as fits.
        true => ((a >> 32) as u32 & 0x8000_0000) | 0x7fc0_0000 | (a >> 29) as u32 & 0x003f_ffff,
        false => (d(a) as f32).to_bits(),
    }
}

fn from_single(a: u32) -> u64 {
    match f(a).is_nan() {
        true => u64::from(a & 0x8000_0000) << 32 | 0x7ff8 << 48 | u64::from(a & 0x007f_ffff) << 29,
        false => f64::from(f(a)).to_bits(),
    }
}
