//! Scalar ALU instructions.

/// The type of a scalar operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ScalarKind {
    /// Raw bits: unwritten ones are tracked individually.
    B32,
    B64,
    I32,
    I64,
    /// A 16-bit immediate.
    Immediate,
    F32,
    F16,
}

impl ScalarKind {
    pub fn count(self) -> u16 {
        if matches!(self, ScalarKind::B64 | ScalarKind::I64) { 2 } else { 1 }
    }

    pub const fn is_bits(self) -> bool {
        matches!(self, ScalarKind::B32 | ScalarKind::B64)
    }
}

/// How an instruction uses SCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Condition {
    /// Neither read nor written.
    Kept,
    Written,
    Read,
    Both,
}

/// Which bits of the result depend on unwritten bits of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Follows {
    /// All of them, if any bit of an operand is unwritten.
    All,
    /// Found by trying other values for them. SCC is whether the result is non-zero.
    Bits,
    /// Those from the lowest unwritten bit upwards, as in sums and products.
    Upward,
}

/// From operands and SCC to the result and the new SCC.
type Compute = fn([u64; 3], bool) -> (u64, bool);

/// A scalar instruction.
#[derive(Clone, Copy)]
pub(in super::super) struct Scalar {
    /// None where only SCC is written.
    pub to: Option<ScalarKind>,
    pub from: &'static [ScalarKind],
    pub condition: Condition,
    /// The destination is also the last operand.
    pub accumulates: bool,
    pub compute: Compute,
    pub follows: Follows,
    /// EXEC is the second operand and receives the result; its old value goes to the destination register.
    pub saves_active: bool,
}

impl Scalar {
    const fn new(to: ScalarKind, from: &'static [ScalarKind], condition: Condition, compute: Compute) -> Scalar {
        let follows = if to.is_bits() { Follows::Bits } else { Follows::All };
        Scalar { to: Some(to), from, condition, accumulates: false, compute, follows, saves_active: false }
    }

    const fn upward(self) -> Scalar {
        Scalar { follows: Follows::Upward, ..self }
    }

    const fn accumulates(self) -> Scalar {
        Scalar { accumulates: true, ..self }
    }

    const fn saves_active(self) -> Scalar {
        Scalar { saves_active: true, ..self }
    }
}

use super::super::arithmetic::{
    f, maximum, maximum_ieee, maximum_or_nan, minimum, minimum_ieee, minimum_or_nan, narrow, single, widen,
};
use super::integer::{first_above, first_below, first_other};
use Condition::{Both, Kept, Read, Written};
use ScalarKind::{B32, B64, F16, F32, I32, I64, Immediate};
use std::cmp::Ordering;

fn low(value: u64) -> u32 {
    value as u32
}

fn signed(value: u64) -> i32 {
    value as u32 as i32
}

/// A 32-bit result, and whether it is non-zero.
fn some(value: u32) -> (u64, bool) {
    (value.into(), value != 0)
}

fn some_long(value: u64) -> (u64, bool) {
    (value, value != 0)
}

/// A result that leaves SCC unchanged.
fn plain(value: u32) -> (u64, bool) {
    (value.into(), false)
}

fn test(holds: bool) -> (u64, bool) {
    (0, holds)
}

fn add(a: u32, b: u32, carry: bool) -> (u64, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

fn subtract(a: u32, b: u32, borrow: bool) -> (u64, bool) {
    let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
    (u64::from(difference as u32), difference < 0)
}

/// The offset and width of a bit field, from the second operand.
fn field(b: u64, bits: u32) -> (u32, u32) {
    (b as u32 & (bits - 1), b as u32 >> 16 & 0x7f)
}

fn extract(a: u64, b: u64) -> u64 {
    let (offset, width) = field(b, 64);
    let value = a >> offset;
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

fn extract_signed(a: u64, b: u64, bits: u32) -> u64 {
    let (offset, width) = field(b, bits);
    if width == 0 {
        return 0;
    }
    let value = (if bits == 32 { i64::from(a as u32 as i32) } else { a as i64 }) >> offset;
    let unused = 64 - width.min(64);
    (value << unused >> unused) as u64
}

fn shift_add(a: u64, b: u64, shift: u32) -> (u64, bool) {
    let sum = (u64::from(low(a)) << shift) + u64::from(low(b));
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

fn one(of: fn(f32) -> f32, a: u64) -> (u64, bool) {
    plain(single(of(f(low(a))), [low(a)]))
}

fn two(of: fn(f32, f32) -> f32, a: u64, b: u64) -> (u64, bool) {
    plain(single(of(f(low(a)), f(low(b))), [low(a), low(b)]))
}

fn fused(a: u64, b: u64, c: u64) -> (u64, bool) {
    let [a, b, c] = [a, b, c].map(low);
    plain(single(f(a).mul_add(f(b), f(c)), [a, b, c]))
}

fn compare(of: fn(f32, f32) -> bool, a: u64, b: u64) -> (u64, bool) {
    test(of(f(low(a)), f(low(b))))
}

fn compare_half(of: fn(f32, f32) -> bool, a: u64, b: u64) -> (u64, bool) {
    test(of(widen(low(a) & 0xffff), widen(low(b) & 0xffff)))
}

type Scalars = Vec<(&'static str, Scalar)>;

pub(super) fn rows() -> Scalars {
    let mut rows = bits();
    rows.extend(sums());
    rows.extend(integers());
    rows.extend(comparisons());
    rows.extend(floats());
    rows
}

fn bits() -> Scalars {
    let two = &[B32, B32];
    let two_long = &[B64, B64];
    vec![
        ("s_mov_b32", Scalar::new(B32, &[B32], Kept, |[a, ..], _| (a, false))),
        ("s_mov_b64", Scalar::new(B64, &[B64], Kept, |[a, ..], _| (a, false))),
        (
            "s_cmov_b32",
            Scalar::new(B32, &[B32, B32], Read, |[a, b, _], condition| (if condition { a } else { b }, false))
                .accumulates(),
        ),
        (
            "s_cmov_b64",
            Scalar::new(B64, &[B64, B64], Read, |[a, b, _], condition| (if condition { a } else { b }, false))
                .accumulates(),
        ),
        ("s_movk_i32", Scalar::new(I32, &[Immediate], Kept, |[a, ..], _| plain(low(a)))),
        ("s_not_b32", Scalar::new(B32, &[B32], Written, |[a, ..], _| some(!low(a)))),
        ("s_not_b64", Scalar::new(B64, &[B64], Written, |[a, ..], _| some_long(!a))),
        ("s_and_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some_long(a & b))),
        ("s_and_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a & b))),
        ("s_or_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some_long(a | b))),
        ("s_or_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a | b))),
        ("s_xor_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some_long(a ^ b))),
        ("s_xor_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a ^ b))),
        ("s_andn2_b32|s_and_not1_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(a & !b)))),
        ("s_andn2_b64|s_and_not1_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a & !b))),
        ("s_orn2_b32|s_or_not1_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(a | !b)))),
        ("s_orn2_b64|s_or_not1_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a | !b))),
        ("s_nand_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(!(a & b))))),
        ("s_nand_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(!(a & b)))),
        ("s_nor_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(!(a | b))))),
        ("s_nor_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(!(a | b)))),
        ("s_xnor_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(!(a ^ b))))),
        ("s_xnor_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(!(a ^ b)))),
        ("s_lshl_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(a) << (b & 31)))),
        ("s_lshl_b64", Scalar::new(B64, &[B64, B32], Written, |[a, b, _], _| some_long(a << (b & 63)))),
        ("s_lshr_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(a) >> (b & 31)))),
        ("s_lshr_b64", Scalar::new(B64, &[B64, B32], Written, |[a, b, _], _| some_long(a >> (b & 63)))),
        ("s_ashr_i32", Scalar::new(B32, two, Written, |[a, b, _], _| some((signed(a) >> (b & 31)) as u32))),
        ("s_ashr_i64", Scalar::new(B64, &[B64, B32], Written, |[a, b, _], _| some_long((a as i64 >> (b & 63)) as u64))),
        ("s_bfe_u32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(extract(a, b & !0x20))))),
        ("s_bfe_u64", Scalar::new(B64, &[B64, B32], Written, |[a, b, _], _| some_long(extract(a, b)))),
        ("s_bfe_i32", Scalar::new(B32, two, Written, |[a, b, _], _| some(low(extract_signed(a, b, 32))))),
        ("s_bfe_i64", Scalar::new(B64, &[B64, B32], Written, |[a, b, _], _| some_long(extract_signed(a, b, 64)))),
        ("s_bfm_b32", Scalar::new(I32, &[I32, I32], Kept, |[a, b, _], _| plain(((1u32 << (a & 31)) - 1) << (b & 31)))),
        (
            "s_bfm_b64",
            Scalar::new(I64, &[I32, I32], Kept, |[a, b, _], _| (((1u64 << (a & 63)) - 1) << (b & 63), false)),
        ),
        ("s_brev_b32", Scalar::new(B32, &[B32], Kept, |[a, ..], _| plain(low(a).reverse_bits()))),
        ("s_brev_b64", Scalar::new(B64, &[B64], Kept, |[a, ..], _| (a.reverse_bits(), false))),
        ("s_pack_ll_b32_b16", Scalar::new(B32, two, Kept, |[a, b, _], _| plain(low(a & 0xffff | b << 16)))),
        ("s_pack_lh_b32_b16", Scalar::new(B32, two, Kept, |[a, b, _], _| plain(low(a & 0xffff | b & 0xffff_0000)))),
        ("s_pack_hl_b32_b16", Scalar::new(B32, two, Kept, |[a, b, _], _| plain(low(a >> 16 | b << 16)))),
        ("s_pack_hh_b32_b16", Scalar::new(B32, two, Kept, |[a, b, _], _| plain(low(a >> 16 | b & 0xffff_0000)))),
        ("s_sext_i32_i8", Scalar::new(B32, &[B32], Kept, |[a, ..], _| plain(i32::from(a as i8) as u32))),
        ("s_sext_i32_i16", Scalar::new(B32, &[B32], Kept, |[a, ..], _| plain(i32::from(a as i16) as u32))),
        ("s_bitset0_b32", Scalar::new(B32, two, Kept, |[a, b, _], _| plain(low(b) & !(1 << (a & 31)))).accumulates()),
        ("s_bitset1_b32", Scalar::new(B32, two, Kept, |[a, b, _], _| plain(low(b) | 1 << (a & 31))).accumulates()),
        ("s_cselect_b32", Scalar::new(B32, two, Read, |[a, b, _], condition| (if condition { a } else { b }, false))),
        (
            "s_cselect_b64",
            Scalar::new(B64, two_long, Read, |[a, b, _], condition| (if condition { a } else { b }, false)),
        ),
        (
            "s_wqm_b32",
            Scalar::new(I32, &[I32], Written, |[a, ..], _| {
                some(
                    (0..8).fold(
                        0,
                        |mask, quad| if low(a) >> (4 * quad) & 15 != 0 { mask | 15 << (4 * quad) } else { mask },
                    ),
                )
            }),
        ),
        ("s_and_saveexec_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some_long(a & b)).saves_active()),
        ("s_and_saveexec_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a & b)).saves_active()),
        ("s_or_saveexec_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some_long(a | b)).saves_active()),
        ("s_or_saveexec_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a | b)).saves_active()),
        ("s_xor_saveexec_b32", Scalar::new(B32, two, Written, |[a, b, _], _| some_long(a ^ b)).saves_active()),
        ("s_xor_saveexec_b64", Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a ^ b)).saves_active()),
        (
            "s_andn2_saveexec_b32|s_and_not1_saveexec_b32",
            Scalar::new(B32, two, Written, |[a, b, _], _| some(low(a & !b))).saves_active(),
        ),
        (
            "s_andn2_saveexec_b64|s_and_not1_saveexec_b64",
            Scalar::new(B64, two_long, Written, |[a, b, _], _| some_long(a & !b)).saves_active(),
        ),
    ]
}

/// Sums, differences and products.
fn sums() -> Scalars {
    let two = &[I32, I32];
    let rows = vec![
        ("s_add_u32|s_add_co_u32", Scalar::new(I32, two, Written, |[a, b, _], _| add(low(a), low(b), false))),
        ("s_addc_u32|s_add_co_ci_u32", Scalar::new(I32, two, Both, |[a, b, _], carry| add(low(a), low(b), carry))),
        ("s_sub_u32|s_sub_co_u32", Scalar::new(I32, two, Written, |[a, b, _], _| subtract(low(a), low(b), false))),
        (
            "s_subb_u32|s_sub_co_ci_u32",
            Scalar::new(I32, two, Both, |[a, b, _], borrow| subtract(low(a), low(b), borrow)),
        ),
        (
            "s_add_i32|s_add_co_i32",
            Scalar::new(I32, two, Written, |[a, b, _], _| {
                let (sum, overflows) = signed(a).overflowing_add(signed(b));
                (u64::from(sum as u32), overflows)
            }),
        ),
        (
            "s_sub_i32|s_sub_co_i32",
            Scalar::new(I32, two, Written, |[a, b, _], _| {
                let (difference, overflows) = signed(a).overflowing_sub(signed(b));
                (u64::from(difference as u32), overflows)
            }),
        ),
        (
            "s_addk_i32|s_addk_co_i32",
            Scalar::new(I32, &[Immediate, I32], Written, |[a, b, _], _| {
                let (sum, overflows) = signed(a).overflowing_add(signed(b));
                (u64::from(sum as u32), overflows)
            })
            .accumulates(),
        ),
        (
            "s_mulk_i32",
            Scalar::new(I32, &[Immediate, I32], Kept, |[a, b, _], _| plain(low(a).wrapping_mul(low(b)))).accumulates(),
        ),
        ("s_mul_i32", Scalar::new(I32, two, Kept, |[a, b, _], _| plain(low(a).wrapping_mul(low(b))))),
        ("s_add_u64|s_add_nc_u64", Scalar::new(I64, &[I64, I64], Kept, |[a, b, _], _| (a.wrapping_add(b), false))),
        ("s_sub_u64|s_sub_nc_u64", Scalar::new(I64, &[I64, I64], Kept, |[a, b, _], _| (a.wrapping_sub(b), false))),
        ("s_mul_u64", Scalar::new(I64, &[I64, I64], Kept, |[a, b, _], _| (a.wrapping_mul(b), false))),
        ("s_lshl1_add_u32", Scalar::new(I32, two, Written, |[a, b, _], _| shift_add(a, b, 1))),
        ("s_lshl2_add_u32", Scalar::new(I32, two, Written, |[a, b, _], _| shift_add(a, b, 2))),
        ("s_lshl3_add_u32", Scalar::new(I32, two, Written, |[a, b, _], _| shift_add(a, b, 3))),
        ("s_lshl4_add_u32", Scalar::new(I32, two, Written, |[a, b, _], _| shift_add(a, b, 4))),
    ];
    rows.into_iter().map(|(names, row)| (names, row.upward())).collect()
}

fn integers() -> Scalars {
    let two = &[I32, I32];
    vec![
        (
            "s_mul_hi_u32",
            Scalar::new(I32, two, Kept, |[a, b, _], _| (((a & 0xffff_ffff) * (b & 0xffff_ffff)) >> 32, false)),
        ),
        (
            "s_mul_hi_i32",
            Scalar::new(I32, two, Kept, |[a, b, _], _| {
                plain(((i64::from(signed(a)) * i64::from(signed(b))) >> 32) as u32)
            }),
        ),
        (
            "s_min_i32",
            Scalar::new(I32, two, Written, |[a, b, _], _| {
                (u64::from(signed(a).min(signed(b)) as u32), signed(a) < signed(b))
            }),
        ),
        (
            "s_max_i32",
            Scalar::new(I32, two, Written, |[a, b, _], _| {
                (u64::from(signed(a).max(signed(b)) as u32), signed(a) >= signed(b))
            }),
        ),
        ("s_min_u32", Scalar::new(I32, two, Written, |[a, b, _], _| (u64::from(low(a).min(low(b))), low(a) < low(b)))),
        ("s_max_u32", Scalar::new(I32, two, Written, |[a, b, _], _| (u64::from(low(a).max(low(b))), low(a) >= low(b)))),
        ("s_abs_i32", Scalar::new(I32, &[I32], Written, |[a, ..], _| some(signed(a).unsigned_abs()))),
        (
            "s_absdiff_i32",
            Scalar::new(
                I32,
                two,
                Written,
                |[a, b, _], _| some(signed(a).wrapping_sub(signed(b)).wrapping_abs() as u32),
            ),
        ),
        ("s_ff0_i32_b32", Scalar::new(I32, &[I32], Kept, |[a, ..], _| plain(first_below(!low(a))))),
        ("s_ff1_i32_b32|s_ctz_i32_b32", Scalar::new(I32, &[I32], Kept, |[a, ..], _| plain(first_below(low(a))))),
        (
            "s_ff1_i32_b64|s_ctz_i32_b64",
            Scalar::new(I32, &[I64], Kept, |[a, ..], _| plain(if a == 0 { u32::MAX } else { a.trailing_zeros() })),
        ),
        ("s_flbit_i32_b32|s_clz_i32_u32", Scalar::new(I32, &[I32], Kept, |[a, ..], _| plain(first_above(low(a))))),
        (
            "s_flbit_i32_b64|s_clz_i32_u64",
            Scalar::new(I32, &[I64], Kept, |[a, ..], _| plain(if a == 0 { u32::MAX } else { a.leading_zeros() })),
        ),
        ("s_flbit_i32|s_cls_i32", Scalar::new(I32, &[I32], Kept, |[a, ..], _| plain(first_other(low(a))))),
        ("s_bcnt1_i32_b32", Scalar::new(I32, &[I32], Written, |[a, ..], _| some(low(a).count_ones()))),
        ("s_bcnt1_i32_b64", Scalar::new(I32, &[I64], Written, |[a, ..], _| some(a.count_ones()))),
        ("s_bcnt0_i32_b32", Scalar::new(I32, &[I32], Written, |[a, ..], _| some(low(a).count_zeros()))),
    ]
}

fn comparisons() -> Scalars {
    const TWO: &[ScalarKind] = &[I32, I32];
    const IMMEDIATE: &[ScalarKind] = &[I32, Immediate];
    let row = |from: &'static [ScalarKind], compute: Compute| Scalar {
        to: None,
        from,
        condition: Written,
        accumulates: false,
        compute,
        follows: Follows::All,
        saves_active: false,
    };
    vec![
        ("s_cmp_eq_i32|s_cmp_eq_u32", row(TWO, |[a, b, _], _| test(low(a) == low(b)))),
        ("s_cmp_lg_i32|s_cmp_lg_u32", row(TWO, |[a, b, _], _| test(low(a) != low(b)))),
        ("s_cmp_gt_i32", row(TWO, |[a, b, _], _| test(signed(a) > signed(b)))),
        ("s_cmp_ge_i32", row(TWO, |[a, b, _], _| test(signed(a) >= signed(b)))),
        ("s_cmp_lt_i32", row(TWO, |[a, b, _], _| test(signed(a) < signed(b)))),
        ("s_cmp_le_i32", row(TWO, |[a, b, _], _| test(signed(a) <= signed(b)))),
        ("s_cmp_gt_u32", row(TWO, |[a, b, _], _| test(low(a) > low(b)))),
        ("s_cmp_ge_u32", row(TWO, |[a, b, _], _| test(low(a) >= low(b)))),
        ("s_cmp_lt_u32", row(TWO, |[a, b, _], _| test(low(a) < low(b)))),
        ("s_cmp_le_u32", row(TWO, |[a, b, _], _| test(low(a) <= low(b)))),
        ("s_cmp_eq_u64", row(&[I64, I64], |[a, b, _], _| test(a == b))),
        ("s_cmp_lg_u64", row(&[I64, I64], |[a, b, _], _| test(a != b))),
        ("s_bitcmp0_b32", row(TWO, |[a, b, _], _| test(a >> (b & 31) & 1 == 0))),
        ("s_bitcmp1_b32", row(TWO, |[a, b, _], _| test(a >> (b & 31) & 1 == 1))),
        ("s_bitcmp0_b64", row(&[I64, I32], |[a, b, _], _| test(a >> (b & 63) & 1 == 0))),
        ("s_bitcmp1_b64", row(&[I64, I32], |[a, b, _], _| test(a >> (b & 63) & 1 == 1))),
        ("s_cmpk_eq_i32", row(IMMEDIATE, |[a, b, _], _| test(low(a) == low(b)))),
        ("s_cmpk_lg_i32", row(IMMEDIATE, |[a, b, _], _| test(low(a) != low(b)))),
        ("s_cmpk_gt_i32", row(IMMEDIATE, |[a, b, _], _| test(signed(a) > signed(b)))),
        ("s_cmpk_ge_i32", row(IMMEDIATE, |[a, b, _], _| test(signed(a) >= signed(b)))),
        ("s_cmpk_lt_i32", row(IMMEDIATE, |[a, b, _], _| test(signed(a) < signed(b)))),
        ("s_cmpk_le_i32", row(IMMEDIATE, |[a, b, _], _| test(signed(a) <= signed(b)))),
        ("s_cmpk_eq_u32", row(IMMEDIATE, |[a, b, _], _| test(low(a) == low(b & 0xffff)))),
        ("s_cmpk_lg_u32", row(IMMEDIATE, |[a, b, _], _| test(low(a) != low(b & 0xffff)))),
        ("s_cmpk_gt_u32", row(IMMEDIATE, |[a, b, _], _| test(low(a) > low(b & 0xffff)))),
        ("s_cmpk_ge_u32", row(IMMEDIATE, |[a, b, _], _| test(low(a) >= low(b & 0xffff)))),
        ("s_cmpk_lt_u32", row(IMMEDIATE, |[a, b, _], _| test(low(a) < low(b & 0xffff)))),
        ("s_cmpk_le_u32", row(IMMEDIATE, |[a, b, _], _| test(low(a) <= low(b & 0xffff)))),
        ("s_cmp_lt_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a < b, a, b))),
        ("s_cmp_eq_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a == b, a, b))),
        ("s_cmp_le_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a <= b, a, b))),
        ("s_cmp_gt_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a > b, a, b))),
        ("s_cmp_ge_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a >= b, a, b))),
        (
            "s_cmp_lg_f32",
            row(&[F32, F32], |[a, b, _], _| compare(|a, b| a.partial_cmp(&b).is_some_and(Ordering::is_ne), a, b)),
        ),
        ("s_cmp_o_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| !a.is_nan() && !b.is_nan(), a, b))),
        ("s_cmp_u_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a.is_nan() || b.is_nan(), a, b))),
        ("s_cmp_nge_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a.is_nan() || b.is_nan() || a < b, a, b))),
        ("s_cmp_ngt_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a.is_nan() || b.is_nan() || a <= b, a, b))),
        ("s_cmp_nle_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a.is_nan() || b.is_nan() || a > b, a, b))),
        ("s_cmp_nlt_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a.is_nan() || b.is_nan() || a >= b, a, b))),
        ("s_cmp_neq_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a != b, a, b))),
        ("s_cmp_nlg_f32", row(&[F32, F32], |[a, b, _], _| compare(|a, b| a.is_nan() || b.is_nan() || a == b, a, b))),
        ("s_cmp_lt_f16", row(&[F16, F16], |[a, b, _], _| compare_half(|a, b| a < b, a, b))),
        ("s_cmp_eq_f16", row(&[F16, F16], |[a, b, _], _| compare_half(|a, b| a == b, a, b))),
        ("s_cmp_le_f16", row(&[F16, F16], |[a, b, _], _| compare_half(|a, b| a <= b, a, b))),
        ("s_cmp_gt_f16", row(&[F16, F16], |[a, b, _], _| compare_half(|a, b| a > b, a, b))),
        ("s_cmp_ge_f16", row(&[F16, F16], |[a, b, _], _| compare_half(|a, b| a >= b, a, b))),
        ("s_cmp_neq_f16", row(&[F16, F16], |[a, b, _], _| compare_half(|a, b| a != b, a, b))),
    ]
}

/// Scalar float instructions of gfx1150 and gfx12.
fn floats() -> Scalars {
    let both = &[F32, F32];
    let three = &[F32, F32, F32];
    vec![
        ("s_add_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| two(|a, b| a + b, a, b))),
        ("s_sub_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| two(|a, b| a - b, a, b))),
        ("s_mul_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| two(|a, b| a * b, a, b))),
        ("s_fmac_f32", Scalar::new(F32, three, Kept, |[a, b, c], _| fused(a, b, c)).accumulates()),
        ("s_fmaak_f32|s_fmamk_f32", Scalar::new(F32, three, Kept, |[a, b, c], _| fused(a, b, c))),
        ("s_min_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| plain(minimum_ieee(low(a), low(b))))),
        ("s_max_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| plain(maximum_ieee(low(a), low(b))))),
        ("s_min_num_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| plain(minimum(low(a), low(b))))),
        ("s_max_num_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| plain(maximum(low(a), low(b))))),
        ("s_maximum_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| plain(maximum_or_nan(low(a), low(b))))),
        ("s_minimum_f32", Scalar::new(F32, both, Kept, |[a, b, _], _| plain(minimum_or_nan(low(a), low(b))))),
        // Executed by the vector unit on a scalar.
        ("v_s_rcp_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(|a| 1.0 / a, a))),
        ("v_s_sqrt_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(f32::sqrt, a))),
        ("v_s_rsq_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(|a| (1.0 / f64::from(a).sqrt()) as f32, a))),
        ("v_s_exp_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(|a| f64::from(a).exp2() as f32, a))),
        ("v_s_log_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(|a| f64::from(a).log2() as f32, a))),
        ("s_ceil_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(f32::ceil, a))),
        ("s_floor_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(f32::floor, a))),
        ("s_trunc_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(f32::trunc, a))),
        ("s_rndne_f32", Scalar::new(F32, &[F32], Kept, |[a, ..], _| one(f32::round_ties_even, a))),
        ("s_cvt_f32_i32", Scalar::new(F32, &[I32], Kept, |[a, ..], _| plain((signed(a) as f32).to_bits()))),
        ("s_cvt_f32_u32", Scalar::new(F32, &[I32], Kept, |[a, ..], _| plain((low(a) as f32).to_bits()))),
        ("s_cvt_i32_f32", Scalar::new(I32, &[F32], Kept, |[a, ..], _| plain(f(low(a)) as i32 as u32))),
        ("s_cvt_u32_f32", Scalar::new(I32, &[F32], Kept, |[a, ..], _| plain(f(low(a)) as u32))),
        ("s_cvt_f16_f32", Scalar::new(I32, &[F32], Kept, |[a, ..], _| plain(narrow(f(low(a)))))),
        (
            "s_cvt_f32_f16",
            Scalar::new(F32, &[F16], Kept, |[a, ..], _| {
                let value = widen(low(a) & 0xffff);
                plain(single(value, [value.to_bits()]))
            }),
        ),
        (
            "s_cvt_hi_f32_f16",
            Scalar::new(F32, &[I32], Kept, |[a, ..], _| {
                let value = widen(low(a) >> 16);
                plain(single(value, [value.to_bits()]))
            }),
        ),
    ]
}
