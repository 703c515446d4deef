//! Integers and raw bits, 32 and 64 wide.

use super::super::kind::Kind::{B16, B32, B64, I32, I64, PairB32, U64};
use super::super::lanes::{Function, PART, carry, longs, words};
use super::{Masks, Row, Vectors};

fn extract(a: u32, offset: u32, width: u32) -> u32 {
    let (offset, width) = (offset & 31, width & 31);
    a >> offset & ((1u32 << width) - 1)
}

fn extract_signed(a: u32, offset: u32, width: u32) -> u32 {
    let (offset, width) = (offset & 31, width & 31);
    if width == 0 {
        return 0;
    }
    let field = (a as i32 >> offset) as u32;
    // Bits above 31 are copies of the sign.
    ((field << (32 - width)) as i32 >> (32 - width)) as u32
}

fn low_24(a: u32) -> i32 {
    (a << 8) as i32 >> 8
}

/// Selects four bytes from `b` (0 to 3) and `a` (4 to 7).
fn permute(a: u32, b: u32, selectors: u32) -> u32 {
    let bytes = u64::from(a) << 32 | u64::from(b);
    let sign = |bit: u32| if bytes >> bit & 1 == 1 { 0xff } else { 0 };
    let byte = |selector: u32| match selector {
        0..=7 => (bytes >> (8 * selector)) as u32 & 0xff,
        8..=11 => sign(16 * (selector - 8) + 15),
        12 => 0,
        _ => 0xff,
    };
    (0..4).fold(0, |word, place| word | byte(selectors >> (8 * place) & 0xff) << (8 * place))
}

/// The number of leading zeros; all ones where no bit is set.
pub(super) fn first_above(a: u32) -> u32 {
    if a == 0 { u32::MAX } else { a.leading_zeros() }
}

/// The number of leading bits that equal the sign; all ones where all do.
pub(super) fn first_other(a: u32) -> u32 {
    let other = if (a as i32) < 0 { !a } else { a };
    first_above(other)
}

pub(super) fn first_below(a: u32) -> u32 {
    if a == 0 { u32::MAX } else { a.trailing_zeros() }
}

fn middle<T: Ord>(a: T, b: T, c: T) -> T {
    let [_, middle, _] = {
        let mut all = [a, b, c];
        all.sort();
        all
    };
    middle
}

fn add(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

fn subtract(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
    (difference as u32, difference < 0)
}

/// A sum of products of bytes.
fn dot(a: u32, b: u32, c: u32, is_signed: [bool; 2]) -> u32 {
    let byte = |word: u32, place: u32, is_signed: bool| {
        let byte = (word >> (8 * place)) as u8;
        if is_signed { i32::from(byte as i8) } else { i32::from(byte) }
    };
    let sum = (0..4).map(|place| byte(a, place, is_signed[0]) * byte(b, place, is_signed[1])).sum::<i32>();
    c.wrapping_add(sum as u32)
}

pub(super) fn rows() -> Vectors {
    let two = &[I32, I32];
    let three = &[I32, I32, I32];
    let bits = &[B32, B32];
    let bits_three = &[B32, B32, B32];
    vec![
        ("v_mov_b32", Row::new(B32, &[B32], words!(|a| a))),
        ("v_accvgpr_read_b32", Row::new(B32, &[B32], words!(|a| a))),
        ("v_accvgpr_write_b32", Row::new(B32, &[B32], words!(|a| a))),
        ("v_accvgpr_mov_b32", Row::new(B32, &[B32], words!(|a| a))),
        ("v_not_b32", Row::new(B32, &[B32], words!(|a| !a))),
        ("v_bfrev_b32", Row::new(B32, &[B32], words!(|a| a.reverse_bits()))),
        ("v_mov_b64", Row::new(B64, &[B64], longs!(|a| a))),
        ("v_pk_mov_b32", Row::new(PairB32, &[PairB32, PairB32], longs!(|a, b| a & 0xffff_ffff | b << 32))),
        ("v_and_b32", Row::new(B32, bits, words!(|a, b| a & b))),
        ("v_or_b32", Row::new(B32, bits, words!(|a, b| a | b))),
        ("v_xor_b32", Row::new(B32, bits, words!(|a, b| a ^ b))),
        ("v_xnor_b32", Row::new(B32, bits, words!(|a, b| !(a ^ b)))),
        ("v_lshlrev_b32", Row::new(B32, bits, words!(|a, b| b << (a & 31)))),
        ("v_lshrrev_b32", Row::new(B32, bits, words!(|a, b| b >> (a & 31)))),
        ("v_ashrrev_i32", Row::new(B32, bits, words!(|a, b| (b as i32 >> (a & 31)) as u32))),
        ("v_and_or_b32", Row::new(B32, bits_three, words!(|a, b, c| a & b | c))),
        ("v_or3_b32", Row::new(B32, bits_three, words!(|a, b, c| a | b | c))),
        ("v_xor3_b32", Row::new(B32, bits_three, words!(|a, b, c| a ^ b ^ c))),
        ("v_lshl_or_b32", Row::new(B32, bits_three, words!(|a, b, c| a << (b & 31) | c))),
        ("v_bitop3_b32", Row::new(B32, bits_three, Function::Table)),
        ("v_bfi_b32", Row::new(B32, bits_three, words!(|a, b, c| a & b | !a & c))),
        ("v_bfe_u32", Row::new(B32, bits_three, words!(|a, b, c| extract(a, b, c)))),
        ("v_bfe_i32", Row::new(B32, bits_three, words!(|a, b, c| extract_signed(a, b, c)))),
        ("v_bfm_b32", Row::new(I32, two, words!(|a, b| ((1u32 << (a & 31)) - 1) << (b & 31)))),
        (
            "v_alignbit_b32",
            Row::new(B32, &[B32, B32, B16], words!(|a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32)),
        ),
        (
            "v_alignbyte_b32",
            Row::new(
                B32,
                &[B32, B32, B16],
                words!(|a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c & 3))) as u32),
            ),
        ),
        ("v_perm_b32", Row::new(B32, bits_three, words!(|a, b, c| permute(a, b, c)))),
        (
            "v_add_u32|v_add_nc_u32",
            Row::new(I32, two, words!(|a, b| a.wrapping_add(b)))
                .follows()
                .saturating(words!(|a, b| a.saturating_add(b))),
        ),
        (
            "v_sub_u32|v_sub_nc_u32",
            Row::new(I32, two, words!(|a, b| a.wrapping_sub(b)))
                .follows()
                .saturating(words!(|a, b| a.saturating_sub(b))),
        ),
        (
            "v_subrev_u32|v_subrev_nc_u32",
            Row::new(I32, two, words!(|a, b| b.wrapping_sub(a)))
                .follows()
                .saturating(words!(|a, b| b.saturating_sub(a))),
        ),
        (
            "v_add_i32|v_add_nc_i32",
            Row::new(I32, two, words!(|a, b| a.wrapping_add(b)))
                .saturating(words!(|a, b| (a as i32).saturating_add(b as i32) as u32)),
        ),
        (
            "v_sub_i32|v_sub_nc_i32",
            Row::new(I32, two, words!(|a, b| a.wrapping_sub(b)))
                .saturating(words!(|a, b| (a as i32).saturating_sub(b as i32) as u32)),
        ),
        ("v_add3_u32", Row::new(I32, three, words!(|a, b, c| a.wrapping_add(b).wrapping_add(c))).follows()),
        ("v_lshl_add_u32", Row::new(I32, three, words!(|a, b, c| (a << (b & 31)).wrapping_add(c))).follows()),
        ("v_add_lshl_u32", Row::new(I32, three, words!(|a, b, c| a.wrapping_add(b) << (c & 31))).follows()),
        ("v_xad_u32", Row::new(I32, three, words!(|a, b, c| (a ^ b).wrapping_add(c))).follows()),
        ("v_add_co_u32", Row::new(I32, two, carry!(CarryWords | a, b, _c, _in | add(a, b, false))).masks(Masks::Out)),
        (
            "v_sub_co_u32",
            Row::new(I32, two, carry!(CarryWords | a, b, _c, _in | subtract(a, b, false))).masks(Masks::Out),
        ),
        (
            "v_subrev_co_u32",
            Row::new(I32, two, carry!(CarryWords | a, b, _c, _in | subtract(b, a, false))).masks(Masks::Out),
        ),
        (
            "v_addc_co_u32|v_add_co_ci_u32",
            Row::new(I32, two, carry!(CarryWords | a, b, _c, carry | add(a, b, carry))).masks(Masks::OutIn),
        ),
        (
            "v_subb_co_u32|v_sub_co_ci_u32",
            Row::new(I32, two, carry!(CarryWords | a, b, _c, borrow | subtract(a, b, borrow))).masks(Masks::OutIn),
        ),
        (
            "v_subbrev_co_u32|v_subrev_co_ci_u32",
            Row::new(I32, two, carry!(CarryWords | a, b, _c, borrow | subtract(b, a, borrow))).masks(Masks::OutIn),
        ),
        ("v_cndmask_b32", Row::new(B32, bits, Function::Select).masks(Masks::In)),
        ("v_mul_lo_u32", Row::new(I32, two, words!(|a, b| a.wrapping_mul(b))).follows()),
        ("v_mul_hi_u32", Row::new(I32, two, words!(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32))),
        ("v_mul_hi_i32", Row::new(I32, two, words!(|a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32))),
        ("v_mul_u32_u24", Row::new(I32, two, words!(|a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff))).follows()),
        ("v_mul_i32_i24", Row::new(I32, two, words!(|a, b| low_24(a).wrapping_mul(low_24(b)) as u32)).follows()),
        (
            "v_mul_hi_u32_u24",
            Row::new(I32, two, words!(|a, b| ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 32) as u32)),
        ),
        (
            "v_mul_hi_i32_i24",
            Row::new(I32, two, words!(|a, b| ((i64::from(low_24(a)) * i64::from(low_24(b))) >> 32) as u32)),
        ),
        (
            "v_mad_u32_u24",
            Row::new(I32, three, words!(|a, b, c| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)))
                .follows(),
        ),
        (
            "v_mad_i32_i24",
            Row::new(I32, three, words!(|a, b, c| (low_24(a).wrapping_mul(low_24(b)) as u32).wrapping_add(c)))
                .follows(),
        ),
        ("v_min_u32", Row::new(I32, two, words!(|a, b| a.min(b)))),
        ("v_max_u32", Row::new(I32, two, words!(|a, b| a.max(b)))),
        ("v_min_i32", Row::new(I32, two, words!(|a, b| (a as i32).min(b as i32) as u32))),
        ("v_max_i32", Row::new(I32, two, words!(|a, b| (a as i32).max(b as i32) as u32))),
        ("v_min3_u32", Row::new(I32, three, words!(|a, b, c| a.min(b).min(c)))),
        ("v_max3_u32", Row::new(I32, three, words!(|a, b, c| a.max(b).max(c)))),
        ("v_min3_i32", Row::new(I32, three, words!(|a, b, c| (a as i32).min(b as i32).min(c as i32) as u32))),
        ("v_max3_i32", Row::new(I32, three, words!(|a, b, c| (a as i32).max(b as i32).max(c as i32) as u32))),
        ("v_maxmin_u32", Row::new(I32, three, words!(|a, b, c| a.max(b).min(c)))),
        ("v_minmax_u32", Row::new(I32, three, words!(|a, b, c| a.min(b).max(c)))),
        ("v_maxmin_i32", Row::new(I32, three, words!(|a, b, c| (a as i32).max(b as i32).min(c as i32) as u32))),
        ("v_minmax_i32", Row::new(I32, three, words!(|a, b, c| (a as i32).min(b as i32).max(c as i32) as u32))),
        ("v_med3_u32", Row::new(I32, three, words!(|a, b, c| middle(a, b, c)))),
        ("v_med3_i32", Row::new(I32, three, words!(|a, b, c| middle(a as i32, b as i32, c as i32) as u32))),
        ("v_ffbh_u32|v_clz_i32_u32", Row::new(I32, &[I32], words!(|a| first_above(a)))),
        ("v_ffbh_i32|v_cls_i32", Row::new(I32, &[I32], words!(|a| first_other(a)))),
        ("v_ffbl_b32|v_ctz_i32_b32", Row::new(I32, &[I32], words!(|a| first_below(a)))),
        ("v_bcnt_u32_b32", Row::new(I32, two, words!(|a, b| a.count_ones().wrapping_add(b)))),
        ("v_sad_u32", Row::new(I32, three, words!(|a, b, c| a.abs_diff(b).wrapping_add(c)))),
        ("v_dot4_i32_i8", Row::new(I32, three, words!(|a, b, c| dot(a, b, c, [true; 2])))),
        ("v_dot4c_i32_i8", Row::new(I32, three, words!(|a, b, c| dot(a, b, c, [true; 2]))).accumulates()),
        ("v_dot4_u32_u8", Row::new(I32, three, words!(|a, b, c| dot(a, b, c, [false; 2])))),
        // 64 bits.
        ("v_lshlrev_b64", Row::new(B64, &[B32, B64], longs!(|a, b| b << (a & 63)))),
        ("v_lshrrev_b64", Row::new(B64, &[B32, B64], longs!(|a, b| b >> (a & 63)))),
        ("v_ashrrev_i64", Row::new(B64, &[B32, B64], longs!(|a, b| (b as i64 >> (a & 63)) as u64))),
        ("v_lshl_add_u64", Row::new(U64, &[U64, I32, U64], longs!(|a, b, c| (a << (b & 7)).wrapping_add(c)))),
        (
            "v_mad_u64_u32|v_mad_co_u64_u32",
            Row::new(
                U64,
                &[I32, I32, U64],
                carry!(CarryLongs | a, b, c, _in | { c.overflowing_add(u64::from(a as u32) * u64::from(b as u32)) }),
            )
            .masks(Masks::Out),
        ),
        (
            "v_mad_i64_i32|v_mad_co_i64_i32",
            Row::new(
                I64,
                &[I32, I32, I64],
                carry!(
                    CarryLongs | a,
                    b,
                    c,
                    _in | {
                        let (sum, overflows) = (c as i64).overflowing_add(i64::from(a as i32) * i64::from(b as i32));
                        (sum as u64, overflows)
                    }
                ),
            )
            .masks(Masks::Out),
        ),
    ]
}
