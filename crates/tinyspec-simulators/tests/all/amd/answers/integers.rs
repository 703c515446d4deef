//! Integers, bits, comparisons and what masks choose.

use super::{NAN, QUIET, check, check_on, d, f};

fn word(value: i32) -> u64 {
    u64::from(value as u32)
}

#[test]
fn sums_and_products() {
    let name = |chip: &str, old: &str, new: &str| if chip == "gfx942" { old.to_string() } else { new.to_string() };
    for chip in super::super::CHIPS {
        check_on(
            chip,
            &name(chip, "v_add_u32_e32 $d, $a, $b", "v_add_nc_u32_e32 $d, $a, $b"),
            32,
            &[32, 32],
            &[(&[0xffff_ffff, 2], 1)],
        );
        check_on(
            chip,
            &name(chip, "v_sub_u32_e32 $d, $a, $b", "v_sub_nc_u32_e32 $d, $a, $b"),
            32,
            &[32, 32],
            &[(&[1, 3], word(-2))],
        );
        check_on(
            chip,
            &name(chip, "v_subrev_u32_e32 $d, $a, $b", "v_subrev_nc_u32_e32 $d, $a, $b"),
            32,
            &[32, 32],
            &[(&[1, 3], 2)],
        );
        let (mask, zero) =
            if chip == "gfx942" { ("vcc", "s_mov_b64 vcc, -1") } else { ("vcc_lo", "s_mov_b32 vcc_lo, -1") };
        // With the carry of the lower half, and without one.
        let add = name(chip, "v_addc_co_u32_e32", "v_add_co_ci_u32_e32");
        check_on(
            chip,
            &format!("{zero}\n{add} $d, {mask}, $a, $b, {mask}"),
            32,
            &[32, 32],
            &[(&[3, 4], 8), (&[0xffff_ffff, 0], 0)],
        );
        check_on(
            chip,
            &format!(
                "{}\nv_cndmask_b32_e64 $d, 0, 1, {mask}",
                format_args!("{zero}\n{add} v12, {mask}, $a, $b, {mask}")
            ),
            32,
            &[32, 32],
            &[(&[3, 4], 0), (&[0xffff_ffff, 0], 1)],
        );
    }
    check("v_add3_u32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[1, 2, 0xffff_ffff], 2)]);
    check("v_lshl_add_u32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[3, 33, 1], 7)]);
    check("v_add_lshl_u32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[3, 1, 4], 64)]);
    check("v_mul_lo_u32 $d, $a, $b", 32, &[32, 32], &[(&[0x1_0001, 0x1_0001], 0x2_0001)]);
    check("v_mul_hi_u32 $d, $a, $b", 32, &[32, 32], &[(&[0xffff_ffff, 0xffff_ffff], 0xffff_fffe)]);
    check("v_mul_hi_i32 $d, $a, $b", 32, &[32, 32], &[(&[word(-1), word(-1)], 0), (&[word(i32::MIN), 2], word(-1))]);
    check("v_mul_u32_u24_e32 $d, $a, $b", 32, &[32, 32], &[(&[0xff00_0003, 5], 15)]);
    check("v_mul_i32_i24_e32 $d, $a, $b", 32, &[32, 32], &[(&[0x00ff_ffff, 5], word(-5))]);
    check("v_mad_u32_u24 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[3, 5, 7], 22)]);
    check_on(
        "gfx942",
        "v_mad_u64_u32 $d, vcc, $a, $b, $c",
        64,
        &[32, 32, 64],
        &[(&[0xffff_ffff, 0xffff_ffff, 1], 0xffff_fffe_0000_0002)],
    );
    check_on("gfx942", "v_lshl_add_u64 $d, $a, 2, $b", 64, &[64, 64], &[(&[0x4000_0000_0000_0001, 3], 7)]);
}

#[test]
fn order_and_counts() {
    check("v_max_i32_e32 $d, $a, $b", 32, &[32, 32], &[(&[word(-1), 0], 0)]);
    check("v_max_u32_e32 $d, $a, $b", 32, &[32, 32], &[(&[word(-1), 0], word(-1))]);
    check("v_min3_i32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[3, word(-4), 5], word(-4))]);
    check("v_med3_u32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[9, 1, 5], 5)]);
    let names = [("gfx942", "v_ffbh_u32_e32", "v_ffbl_b32_e32"), ("gfx1100", "v_clz_i32_u32_e32", "v_ctz_i32_b32_e32")];
    for (chip, above, below) in names {
        check_on(chip, &format!("{above} $d, $a"), 32, &[32], &[(&[0], 0xffff_ffff), (&[1], 31), (&[0x8000_0000], 0)]);
        check_on(chip, &format!("{below} $d, $a"), 32, &[32], &[(&[0], 0xffff_ffff), (&[0x8000_0000], 31)]);
    }
    check("v_bcnt_u32_b32 $d, $a, $b", 32, &[32, 32], &[(&[0xf0f0, 10], 18)]);
    check("v_bfrev_b32_e32 $d, $a", 32, &[32], &[(&[1], 0x8000_0000)]);
}

#[test]
fn bits() {
    check("v_not_b32_e32 $d, $a", 32, &[32], &[(&[0x0f0f_0f0f], 0xf0f0_f0f0)]);
    check("v_and_or_b32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[0xff, 0x0f0f, 0x1000], 0x100f)]);
    check("v_bfi_b32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[0x00ff_00ff, 0x1111_1111, 0x2222_2222], 0x2211_2211)]);
    check("v_bfe_u32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[0x1234_5678, 8, 12], 0x456), (&[0xffff_ffff, 4, 0], 0)]);
    check(
        "v_bfe_i32 $d, $a, $b, $c",
        32,
        &[32, 32, 32],
        &[(&[0x0000_0f00, 8, 4], word(-1)), (&[0x8000_0000, 28, 8], word(-8))],
    );
    check("v_alignbit_b32 $d, $a, $b, $c", 32, &[32, 32, 16], &[(&[0x1, 0x8000_0000, 31], 3)]);
    check(
        "v_perm_b32 $d, $a, $b, $c",
        32,
        &[32, 32, 32],
        &[
            (&[0x7766_5544, 0x3322_1100, 0x0700_0d0c], 0x7700_ff00),
            (&[0x8000_0000, 0x0000_8000, 0x0b08_0401], 0xffff_0080),
        ],
    );
    check("v_lshl_or_b32 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[1, 4, 3], 0x13)]);
    check("v_lshrrev_b32_e32 $d, $a, $b", 32, &[32, 32], &[(&[36, 0x80], 8)]);
    check("v_ashrrev_i32_e32 $d, $a, $b", 32, &[32, 32], &[(&[4, word(-16)], word(-1))]);
    check("v_lshrrev_b64 $d, $a, $b", 64, &[32, 64], &[(&[4, 1 << 40], 1 << 36), (&[64, 5], 5)]);
    check("v_ashrrev_i64 $d, $a, $b", 64, &[32, 64], &[(&[63, 1 << 63], u64::MAX)]);
}

#[test]
fn comparisons() {
    let floats: &[(&[u64], [u64; 6])] = &[
        (&[f(1.0), f(2.0)], [1, 0, 1, 0, 1, 1]),
        (&[f(-0.0), f(0.0)], [0, 1, 0, 0, 0, 1]),
        (&[NAN, f(1.0)], [0, 0, 0, 1, 1, 0]),
        (&[QUIET, QUIET], [0, 0, 0, 1, 1, 0]),
    ];
    for (number, name) in ["lt", "eq", "lg", "u", "neq", "o"].into_iter().enumerate() {
        let rows: Vec<(&[u64], u64)> = floats.iter().map(|(values, wants)| (*values, wants[number])).collect();
        check(&format!("v_cmp_{name}_f32_e64 $d, $a, $b"), 1, &[32, 32], &rows);
    }
    check(
        "v_cmp_nle_f32_e64 $d, $a, $b",
        1,
        &[32, 32],
        &[(&[NAN, f(1.0)], 1), (&[f(2.0), f(1.0)], 1), (&[f(1.0), f(1.0)], 0)],
    );
    check("v_cmp_gt_i32_e64 $d, $a, $b", 1, &[32, 32], &[(&[word(-1), 0], 0), (&[1, 0], 1)]);
    check("v_cmp_gt_u32_e64 $d, $a, $b", 1, &[32, 32], &[(&[word(-1), 0], 1)]);
    check("v_cmp_lt_i64_e64 $d, $a, $b", 1, &[64, 64], &[(&[u64::MAX, 0], 1)]);
    check("v_cmp_lt_u64_e64 $d, $a, $b", 1, &[64, 64], &[(&[u64::MAX, 0], 0)]);
    check("v_cmp_ge_f64_e64 $d, $a, $b", 1, &[64, 64], &[(&[d(1.0), d(1.0)], 1), (&[d(f64::NAN), d(1.0)], 0)]);
    // A signalling nan, -infinity, a subnormal number, a zero.
    check(
        "v_cmp_class_f32_e64 $d, $a, $b",
        1,
        &[32, 32],
        &[
            (&[0x7f80_0001, 1], 1),
            (&[NAN, 1], 0),
            (&[f(f32::NEG_INFINITY), 4], 1),
            (&[1, 0x80], 1),
            (&[f(-0.0), 0x20], 1),
            (&[f(0.0), 0x20], 0),
            (&[f(1.0), 0x100], 1),
        ],
    );
}

#[test]
fn what_masks_choose() {
    check("v_cndmask_b32_e64 $d, $a, $b, $c", 32, &[32, 32, 1], &[(&[1, 2, 0], 1), (&[1, 2, 1], 2)]);
    check("v_cndmask_b32_e64 $d, -$a, $b, $c", 32, &[32, 32, 1], &[(&[f(1.0), 2, 0], f(-1.0))]);
}

/// Of gfx950: any function of three bits.
#[test]
fn tables_of_bits() {
    let rows: [(u32, u64); 4] = [(0xf0, 0xf0), (0xcc, 0xcc), (0xaa, 0xaa), (0x96, 0xf0 ^ 0xcc ^ 0xaa)];
    for (table, want) in rows {
        let text = format!("v_bitop3_b32 $d, $a, $b, $c bitop3:{table:#x}");
        check_on("gfx950", &text, 32, &[32, 32, 32], &[(&[0xf0, 0xcc, 0xaa], want)]);
    }
}

/// With `clamp` a sum or a difference stops at the least and the greatest number.
#[test]
fn clamped_sums() {
    let (most, least) = (0x7fff_ffff, 0x8000_0000);
    for chip in super::super::CHIPS {
        let nc = if chip == "gfx942" { "" } else { "_nc" };
        let word = |op: &str, of: &str, rows: &[(&[u64], u64)]| {
            check_on(chip, &format!("v_{op}{nc}_{of}_e64 $d, $a, $b clamp"), 32, &[32, 32], rows);
        };
        word("add", "u32", &[(&[0xffff_fffe, 1], 0xffff_ffff), (&[0xffff_fffe, 3], 0xffff_ffff), (&[1, 2], 3)]);
        word("sub", "u32", &[(&[1, 2], 0), (&[5, 2], 3)]);
        word("subrev", "u32", &[(&[2, 1], 0), (&[2, 5], 3)]);
        let signed = |op: &str, of: &str, bits: u32, rows: &[(&[u64], u64)]| {
            check_on(chip, &format!("v_{op}{nc}_{of} $d, $a, $b clamp"), bits, &[bits, bits], rows);
        };
        signed("add", "i32", 32, &[(&[most, 1], most), (&[least, 0xffff_ffff], least), (&[1, 0xffff_ffff], 0)]);
        signed("sub", "i32", 32, &[(&[most, 0xffff_ffff], most), (&[least, 1], least), (&[1, 2], 0xffff_ffff)]);
        signed("add", "i16", 16, &[(&[0x7fff, 1], 0x7fff), (&[0x8000, 0xffff], 0x8000), (&[1, 0xffff], 0)]);
        signed("sub", "i16", 16, &[(&[0x7fff, 0xffff], 0x7fff), (&[0x8000, 1], 0x8000), (&[1, 2], 0xffff)]);
        let narrow = if chip == "gfx942" { "_e64" } else { "" };
        let unsigned = |op: &str, rows: &[(&[u64], u64)]| {
            check_on(chip, &format!("v_{op}{nc}_u16{narrow} $d, $a, $b clamp"), 16, &[16, 16], rows);
        };
        unsigned("add", &[(&[0xfffe, 3], 0xffff), (&[1, 2], 3)]);
        unsigned("sub", &[(&[1, 2], 0), (&[5, 2], 3)]);
    }
    check("v_pk_add_u16 $d, $a, $b clamp", 32, &[32, 32], &[(&[0xfffe_0001, 0x0003_0002], 0xffff_0003)]);
    check("v_pk_sub_u16 $d, $a, $b clamp", 32, &[32, 32], &[(&[0x0001_0005, 0x0002_0002], 0x0000_0003)]);
    check("v_pk_add_i16 $d, $a, $b clamp", 32, &[32, 32], &[(&[0x7fff_8000, 0x0001_ffff], 0x7fff_8000)]);
    check("v_pk_sub_i16 $d, $a, $b clamp", 32, &[32, 32], &[(&[0x7fff_8000, 0xffff_0001], 0x7fff_8000)]);
}

/// The high word comes from the second operand, of which `op_sel` chooses one.
#[test]
fn pairs_are_moved() {
    let (a, b) = (0x2222_2222_1111_1111, 0x4444_4444_3333_3333);
    for (selected, want) in [("[1,0]", 0x3333_3333_2222_2222), ("[0,1]", 0x4444_4444_1111_1111)] {
        let text = format!("v_pk_mov_b32 $d, $a, $b op_sel:{selected}");
        check_on("gfx942", &text, 64, &[64, 64], &[(&[a, b], want)]);
    }
}
