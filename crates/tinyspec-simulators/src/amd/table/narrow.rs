//! 16-bit values, single and packed.

use super::super::arithmetic::{
    choose_half, division_fix_half, half, half_multiply_add, maximum, maximum_ieee, maximum_or_nan, middle, minimum,
    minimum_ieee, minimum_or_nan, narrow, scale, widen,
};
use super::super::kind::Kind::{B16, B32, F16, I16, I32, PairB16, PairF16, PairI16};
use super::super::lanes::{Function, PART, words};
use super::super::text::Half;
use super::{Masks, Row, Vectors};

#[inline(always)]
fn w(bits: u32) -> f32 {
    widen(bits & 0xffff)
}

#[inline(always)]
fn one(of: impl Fn(f32) -> f32, a: u32) -> u32 {
    half(of(w(a)), [a])
}

/// Computed in f64 and rounded through f32, which is harmless: f32 has twice the precision of f16 plus two bits.
fn through(a: u32, of: fn(f64) -> f64) -> u32 {
    half(of(w(a).into()) as f32, [a])
}

/// A function on both halves.
#[inline(always)]
fn both(of: impl Fn(u32, u32, u32) -> u32, a: u32, b: u32, c: u32) -> u32 {
    let low = of(a & 0xffff, b & 0xffff, c & 0xffff) & 0xffff;
    low | of(a >> 16, b >> 16, c >> 16) << 16
}

#[inline(always)]
fn add(a: u32, b: u32, _: u32) -> u32 {
    half(w(a) + w(b), [a, b])
}

#[inline(always)]
fn multiply(a: u32, b: u32, _: u32) -> u32 {
    half(w(a) * w(b), [a, b])
}

fn greatest_ieee(a: u32, b: u32, _: u32) -> u32 {
    choose_half(maximum_ieee, a, b)
}

fn least_ieee(a: u32, b: u32, _: u32) -> u32 {
    choose_half(minimum_ieee, a, b)
}

fn greatest(a: u32, b: u32, _: u32) -> u32 {
    choose_half(maximum, a, b)
}

fn least(a: u32, b: u32, _: u32) -> u32 {
    choose_half(minimum, a, b)
}

fn greatest_or_nan(a: u32, b: u32, _: u32) -> u32 {
    choose_half(maximum_or_nan, a, b)
}

fn least_or_nan(a: u32, b: u32, _: u32) -> u32 {
    choose_half(minimum_or_nan, a, b)
}

fn signed(bits: u32) -> i16 {
    bits as i16
}

/// A saturating 16-bit sum; the others likewise.
fn add_up(a: u32, b: u32, _: u32) -> u32 {
    u32::from((a as u16).saturating_add(b as u16))
}

fn take_away(a: u32, b: u32, _: u32) -> u32 {
    u32::from((a as u16).saturating_sub(b as u16))
}

fn add_up_signed(a: u32, b: u32, _: u32) -> u32 {
    u32::from(signed(a).saturating_add(signed(b)) as u16)
}

fn take_away_signed(a: u32, b: u32, _: u32) -> u32 {
    u32::from(signed(a).saturating_sub(signed(b)) as u16)
}

/// A mantissa in [1/2, 1), and its exponent.
fn split(a: u32) -> (f32, i32) {
    let (mantissa, exponent) = super::super::arithmetic::split_long(w(a).into());
    (mantissa as f32, exponent)
}

fn fraction(a: u32) -> u32 {
    one(|a| if a.is_infinite() { f32::NAN } else { (a - a.floor()).min(w(0x3bff)) }, a)
}

pub(super) fn rows() -> Vectors {
    let two = &[F16, F16];
    let three = &[F16, F16, F16];
    let integers = &[I16, I16];
    let integers_three = &[I16, I16, I16];
    let pair = &[PairF16, PairF16];
    let pair_three = &[PairF16, PairF16, PairF16];
    let pair_integers = &[PairI16, PairI16];
    vec![
        ("v_add_f16", Row::new(F16, two, words!(|a, b| add(a, b, 0)))),
        ("v_sub_f16", Row::new(F16, two, words!(|a, b| half(w(a) - w(b), [a, b])))),
        ("v_subrev_f16", Row::new(F16, two, words!(|a, b| half(w(b) - w(a), [a, b])))),
        ("v_mul_f16", Row::new(F16, two, words!(|a, b| multiply(a, b, 0)))),
        ("v_fma_f16", Row::new(F16, three, words!(|a, b, c| half_multiply_add(a, b, c)))),
        ("v_fmaak_f16|v_fmamk_f16", Row::new(F16, three, words!(|a, b, c| half_multiply_add(a, b, c))).half(Half::Low)),
        (
            "v_fmac_f16",
            Row::new(F16, three, words!(|a, b, c| half_multiply_add(a, b, c))).accumulates().half(Half::Low),
        ),
        ("v_max_f16", Row::new(F16, two, words!(|a, b| greatest_ieee(a, b, 0)))),
        ("v_min_f16", Row::new(F16, two, words!(|a, b| least_ieee(a, b, 0)))),
        ("v_max_num_f16", Row::new(F16, two, words!(|a, b| greatest(a, b, 0)))),
        ("v_min_num_f16", Row::new(F16, two, words!(|a, b| least(a, b, 0)))),
        ("v_maximum_f16", Row::new(F16, two, words!(|a, b| greatest_or_nan(a, b, 0)))),
        ("v_minimum_f16", Row::new(F16, two, words!(|a, b| least_or_nan(a, b, 0)))),
        ("v_max3_f16", Row::new(F16, three, words!(|a, b, c| greatest_ieee(greatest_ieee(a, b, 0), c, 0)))),
        ("v_min3_f16", Row::new(F16, three, words!(|a, b, c| least_ieee(least_ieee(a, b, 0), c, 0)))),
        ("v_max3_num_f16", Row::new(F16, three, words!(|a, b, c| greatest(greatest(a, b, 0), c, 0)))),
        ("v_min3_num_f16", Row::new(F16, three, words!(|a, b, c| least(least(a, b, 0), c, 0)))),
        ("v_maxmin_f16", Row::new(F16, three, words!(|a, b, c| least_ieee(greatest_ieee(a, b, 0), c, 0)))),
        ("v_minmax_f16", Row::new(F16, three, words!(|a, b, c| greatest_ieee(least_ieee(a, b, 0), c, 0)))),
        ("v_maxmin_num_f16", Row::new(F16, three, words!(|a, b, c| least(greatest(a, b, 0), c, 0)))),
        ("v_minmax_num_f16", Row::new(F16, three, words!(|a, b, c| greatest(least(a, b, 0), c, 0)))),
        (
            "v_med3_f16|v_med3_num_f16",
            Row::new(
                F16,
                three,
                words!(|a, b, c| narrow(f32::from_bits(middle(w(a).to_bits(), w(b).to_bits(), w(c).to_bits())))),
            ),
        ),
        ("v_rcp_f16", Row::new(F16, &[F16], words!(|a| one(|a| 1.0 / a, a)))),
        ("v_sqrt_f16", Row::new(F16, &[F16], words!(|a| one(f32::sqrt, a)))),
        ("v_rsq_f16", Row::new(F16, &[F16], words!(|a| through(a, |a| 1.0 / a.sqrt())))),
        ("v_exp_f16", Row::new(F16, &[F16], words!(|a| through(a, f64::exp2)))),
        ("v_log_f16", Row::new(F16, &[F16], words!(|a| through(a, f64::log2)))),
        ("v_floor_f16", Row::new(F16, &[F16], words!(|a| one(f32::floor, a)))),
        ("v_ceil_f16", Row::new(F16, &[F16], words!(|a| one(f32::ceil, a)))),
        ("v_trunc_f16", Row::new(F16, &[F16], words!(|a| one(f32::trunc, a)))),
        ("v_rndne_f16", Row::new(F16, &[F16], words!(|a| one(f32::round_ties_even, a)))),
        ("v_fract_f16", Row::new(F16, &[F16], words!(|a| fraction(a)))),
        ("v_ldexp_f16", Row::new(F16, &[F16, I16], words!(|a, b| half(scale(w(a), signed(b).into()), [a])))),
        ("v_frexp_mant_f16", Row::new(F16, &[F16], words!(|a| half(split(a).0, [a])))),
        ("v_frexp_exp_i16_f16", Row::new(I16, &[F16], words!(|a| split(a).1 as u32 & 0xffff))),
        ("v_div_fixup_f16", Row::new(F16, three, words!(|a, b, c| division_fix_half(a, b, c)))),
        ("v_pack_b32_f16", Row::new(B32, two, words!(|a, b| a & 0xffff | b << 16))),
        ("v_mov_b16", Row::new(B16, &[B16], words!(|a| a & 0xffff))),
        ("v_cndmask_b16", Row::new(B16, &[B16, B16], Function::Select).masks(Masks::In)),
        ("v_not_b16", Row::new(B16, &[B16], words!(|a| !a & 0xffff))),
        ("v_and_b16", Row::new(B16, &[B16, B16], words!(|a, b| a & b & 0xffff))),
        ("v_or_b16", Row::new(B16, &[B16, B16], words!(|a, b| (a | b) & 0xffff))),
        ("v_xor_b16", Row::new(B16, &[B16, B16], words!(|a, b| (a ^ b) & 0xffff))),
        ("v_lshlrev_b16", Row::new(B16, &[B16, B16], words!(|a, b| b << (a & 15) & 0xffff))),
        ("v_lshrrev_b16", Row::new(B16, &[B16, B16], words!(|a, b| (b & 0xffff) >> (a & 15)))),
        ("v_ashrrev_i16", Row::new(B16, &[B16, B16], words!(|a, b| (signed(b) >> (a & 15)) as u16 as u32))),
        (
            "v_add_u16|v_add_nc_u16",
            Row::new(I16, integers, words!(|a, b| a.wrapping_add(b) & 0xffff))
                .saturating(words!(|a, b| add_up(a, b, 0))),
        ),
        (
            "v_sub_u16|v_sub_nc_u16",
            Row::new(I16, integers, words!(|a, b| a.wrapping_sub(b) & 0xffff))
                .saturating(words!(|a, b| take_away(a, b, 0))),
        ),
        (
            "v_subrev_u16",
            Row::new(I16, integers, words!(|a, b| b.wrapping_sub(a) & 0xffff))
                .saturating(words!(|a, b| take_away(b, a, 0))),
        ),
        (
            "v_add_i16|v_add_nc_i16",
            Row::new(I16, integers, words!(|a, b| a.wrapping_add(b) & 0xffff))
                .saturating(words!(|a, b| add_up_signed(a, b, 0))),
        ),
        (
            "v_sub_i16|v_sub_nc_i16",
            Row::new(I16, integers, words!(|a, b| a.wrapping_sub(b) & 0xffff))
                .saturating(words!(|a, b| take_away_signed(a, b, 0))),
        ),
        ("v_mul_lo_u16", Row::new(I16, integers, words!(|a, b| a.wrapping_mul(b) & 0xffff))),
        (
            "v_mad_u16|v_mad_i16|v_mad_legacy_u16|v_mad_legacy_i16",
            Row::new(I16, integers_three, words!(|a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff)),
        ),
        ("v_min_u16", Row::new(I16, integers, words!(|a, b| u32::from((a as u16).min(b as u16))))),
        ("v_max_u16", Row::new(I16, integers, words!(|a, b| u32::from((a as u16).max(b as u16))))),
        ("v_min_i16", Row::new(I16, integers, words!(|a, b| signed(a).min(signed(b)) as u16 as u32))),
        ("v_max_i16", Row::new(I16, integers, words!(|a, b| signed(a).max(signed(b)) as u16 as u32))),
        (
            "v_min3_u16",
            Row::new(I16, integers_three, words!(|a, b, c| u32::from((a as u16).min(b as u16).min(c as u16)))),
        ),
        (
            "v_max3_u16",
            Row::new(I16, integers_three, words!(|a, b, c| u32::from((a as u16).max(b as u16).max(c as u16)))),
        ),
        (
            "v_min3_i16",
            Row::new(I16, integers_three, words!(|a, b, c| signed(a).min(signed(b)).min(signed(c)) as u16 as u32)),
        ),
        (
            "v_max3_i16",
            Row::new(I16, integers_three, words!(|a, b, c| signed(a).max(signed(b)).max(signed(c)) as u16 as u32)),
        ),
        (
            "v_med3_i16",
            Row::new(
                I16,
                integers_three,
                words!(|a, b, c| {
                    let (a, b, c) = (signed(a), signed(b), signed(c));
                    a.min(b).max(a.max(b).min(c)) as u16 as u32
                }),
            ),
        ),
        (
            "v_med3_u16",
            Row::new(
                I16,
                integers_three,
                words!(|a, b, c| {
                    let (a, b, c) = (a as u16, b as u16, c as u16);
                    u32::from(a.min(b).max(a.max(b).min(c)))
                }),
            ),
        ),
        (
            "v_mad_u32_u16",
            Row::new(I32, &[I16, I16, I32], words!(|a, b, c| (a & 0xffff).wrapping_mul(b & 0xffff).wrapping_add(c)))
                .follows(),
        ),
        (
            "v_mad_i32_i16",
            Row::new(
                I32,
                &[I16, I16, I32],
                words!(|a, b, c| (i32::from(signed(a)) * i32::from(signed(b))).wrapping_add(c as i32) as u32),
            )
            .follows(),
        ),
        ("v_cvt_i32_i16", Row::new(I32, &[I16], words!(|a| i32::from(signed(a)) as u32)).follows()),
        ("v_cvt_u32_u16", Row::new(I32, &[I16], words!(|a| a & 0xffff)).follows()),
        // Pairs.
        ("v_pk_add_f16", Row::new(PairF16, pair, words!(|a, b| both(add, a, b, 0)))),
        ("v_pk_mul_f16", Row::new(PairF16, pair, words!(|a, b| both(multiply, a, b, 0)))),
        ("v_pk_fma_f16", Row::new(PairF16, pair_three, words!(|a, b, c| both(half_multiply_add, a, b, c)))),
        (
            "v_pk_fmac_f16",
            Row::new(PairF16, pair_three, words!(|a, b, c| both(half_multiply_add, a, b, c))).accumulates(),
        ),
        ("v_pk_max_f16", Row::new(PairF16, pair, words!(|a, b| both(greatest_ieee, a, b, 0)))),
        ("v_pk_min_f16", Row::new(PairF16, pair, words!(|a, b| both(least_ieee, a, b, 0)))),
        ("v_pk_max_num_f16", Row::new(PairF16, pair, words!(|a, b| both(greatest, a, b, 0)))),
        ("v_pk_min_num_f16", Row::new(PairF16, pair, words!(|a, b| both(least, a, b, 0)))),
        ("v_pk_maximum_f16", Row::new(PairF16, pair, words!(|a, b| both(greatest_or_nan, a, b, 0)))),
        ("v_pk_minimum_f16", Row::new(PairF16, pair, words!(|a, b| both(least_or_nan, a, b, 0)))),
        (
            "v_pk_add_u16",
            Row::new(PairI16, pair_integers, words!(|a, b| both(|a, b, _| a.wrapping_add(b), a, b, 0)))
                .saturating(words!(|a, b| both(add_up, a, b, 0))),
        ),
        (
            "v_pk_add_i16",
            Row::new(PairI16, pair_integers, words!(|a, b| both(|a, b, _| a.wrapping_add(b), a, b, 0)))
                .saturating(words!(|a, b| both(add_up_signed, a, b, 0))),
        ),
        (
            "v_pk_sub_u16",
            Row::new(PairI16, pair_integers, words!(|a, b| both(|a, b, _| a.wrapping_sub(b), a, b, 0)))
                .saturating(words!(|a, b| both(take_away, a, b, 0))),
        ),
        (
            "v_pk_sub_i16",
            Row::new(PairI16, pair_integers, words!(|a, b| both(|a, b, _| a.wrapping_sub(b), a, b, 0)))
                .saturating(words!(|a, b| both(take_away_signed, a, b, 0))),
        ),
        (
            "v_pk_mul_lo_u16",
            Row::new(PairI16, pair_integers, words!(|a, b| both(|a, b, _| a.wrapping_mul(b), a, b, 0))),
        ),
        (
            "v_pk_mad_u16|v_pk_mad_i16",
            Row::new(
                PairI16,
                &[PairI16, PairI16, PairI16],
                words!(|a, b, c| both(|a, b, c| a.wrapping_mul(b).wrapping_add(c), a, b, c)),
            ),
        ),
        ("v_pk_min_u16", Row::new(PairI16, pair_integers, words!(|a, b| both(|a, b, _| a.min(b), a, b, 0)))),
        ("v_pk_max_u16", Row::new(PairI16, pair_integers, words!(|a, b| both(|a, b, _| a.max(b), a, b, 0)))),
        (
            "v_pk_min_i16",
            Row::new(
                PairI16,
                pair_integers,
                words!(|a, b| both(|a, b, _| signed(a).min(signed(b)) as u16 as u32, a, b, 0)),
            ),
        ),
        (
            "v_pk_max_i16",
            Row::new(
                PairI16,
                pair_integers,
                words!(|a, b| both(|a, b, _| signed(a).max(signed(b)) as u16 as u32, a, b, 0)),
            ),
        ),
        (
            "v_pk_lshlrev_b16",
            Row::new(PairB16, &[PairB16, PairB16], words!(|a, b| both(|a, b, _| b << (a & 15), a, b, 0))),
        ),
        (
            "v_pk_lshrrev_b16",
            Row::new(PairB16, &[PairB16, PairB16], words!(|a, b| both(|a, b, _| b >> (a & 15), a, b, 0))),
        ),
        (
            "v_pk_ashrrev_i16",
            Row::new(
                PairB16,
                &[PairB16, PairB16],
                words!(|a, b| both(|a, b, _| (signed(b) >> (a & 15)) as u16 as u32, a, b, 0)),
            ),
        ),
    ]
}
