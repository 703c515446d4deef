//! Values of 16 bits, alone and in pairs.

use super::{check, check_on, f};

#[test]
fn floats() {
    check(
        "v_add_f16_e32 $d, $a, $b",
        16,
        &[16, 16],
        &[
            (&[0x3c00, 0x1000], 0x3c00),
            (&[0x3c00, 0x1401], 0x3c01),
            (&[0x7bff, 0x7bff], 0x7c00),
            (&[0x0001, 0x0001], 0x0002),
            (&[0x7c00, 0xfc00], 0x7e00),
            (&[0x7e12, 0x3c00], 0x7e12),
            (&[0x8000, 0x8000], 0x8000),
        ],
    );
    check(
        "v_mul_f16_e32 $d, $a, $b",
        16,
        &[16, 16],
        &[(&[0x4000, 0x4200], 0x4600), (&[0x0001, 0x3800], 0x0000), (&[0x0003, 0x3800], 0x0002)],
    );
    check("v_rcp_f16_e32 $d, $a", 16, &[16], &[(&[0x4000], 0x3800), (&[0x8000], 0xfc00)]);
    check("v_floor_f16_e32 $d, $a", 16, &[16], &[(&[0xbe00], 0xc000)]);
    for chip in ["gfx942", "gfx1100", "gfx1201"] {
        check_on(
            chip,
            "v_fma_f16 $d, $a, $b, $c",
            16,
            &[16, 16, 16],
            &[
                // A product that is between two numbers, and a sum that decides.
                (&[0x3c01, 0x3c01, 0x0000], 0x3c02),
                (&[0x3c01, 0x3c01, 0x8001], 0x3c02),
                (&[0x3c00, 0x3c00, 0x0c00], 0x3c00),
                (&[0x7c00, 0x0000, 0x3c00], 0x7e00),
            ],
        );
    }
}

/// Of old, a result of 16 bits clears the upper half; later it stays.
#[test]
fn what_becomes_of_the_other_half() {
    let start = "v_mov_b32_e32 v12, 0x12345678\n";
    check_on(
        "gfx942",
        &format!("{start}v_add_f16_e32 v12, $a, $b\nv_mov_b32_e32 $d, v12"),
        32,
        &[16, 16],
        &[(&[0x3c00, 0x3c00], 0x4000)],
    );
    check_on(
        "gfx942",
        &format!("{start}v_fma_mixlo_f16 v12, $a, $b, $c\nv_mov_b32_e32 $d, v12"),
        32,
        &[32, 32, 32],
        &[(&[f(2.0), f(3.0), f(1.0)], 0x1234_4700)],
    );
    check_on(
        "gfx942",
        &format!("{start}v_fma_mixhi_f16 v12, $a, $b, $c\nv_mov_b32_e32 $d, v12"),
        32,
        &[32, 32, 32],
        &[(&[f(2.0), f(3.0), f(1.0)], 0x4700_5678)],
    );
    let text = |half: &str| format!("{start}v_add_f16_e32 v12{half}, $a, $b\nv_mov_b32_e32 $d, v12");
    for (chip, half, want) in
        [("gfx1100", ".l", 0x1234_4000), ("gfx1100", ".h", 0x4000_5678), ("gfx1201", "", 0x1234_4000)]
    {
        check_on(chip, &text(half), 32, &[16, 16], &[(&[0x3c00, 0x3c00], want)]);
    }
}

/// Operands of an f32 instruction that are f16s, in either half.
#[test]
fn mixed_widths() {
    check(
        "v_fma_mix_f32 $d, $a, $b, $c op_sel:[1,0,0] op_sel_hi:[1,1,0]",
        32,
        &[32, 32, 32],
        &[(&[0x4000_3c00, 0x4200, f(0.5)], f(6.5))],
    );
    check(
        "v_fma_mix_f32 $d, -$a, |$b|, $c op_sel_hi:[1,0,0]",
        32,
        &[32, 32, 32],
        &[(&[0x4000, f(-3.0), f(1.0)], f(-5.0))],
    );
}

/// SDWA: bytes and halves of registers.
#[test]
fn parts_of_registers() {
    check_on(
        "gfx942",
        "v_add_u32_sdwa $d, $a, $b dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:WORD_1",
        32,
        &[32, 32],
        &[(&[0x0012_3456, 0x0100_0000], 0x112)],
    );
    check_on(
        "gfx942",
        "v_mov_b32_sdwa $d, sext($a) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1",
        32,
        &[32],
        &[(&[0x0000_8000], 0xffff_ff80)],
    );
    let start = "v_mov_b32_e32 v12, 0x12345678\n";
    for (unused, want) in [("UNUSED_PRESERVE", 0x12ab_5678u64), ("UNUSED_PAD", 0x00ab_0000)] {
        let text = format!(
            "{start}v_or_b32_sdwa v12, $a, $b dst_sel:BYTE_2 dst_unused:{unused} src0_sel:DWORD src1_sel:DWORD\nv_mov_b32_e32 $d, v12"
        );
        check_on("gfx942", &text, 32, &[32, 32], &[(&[0xa0, 0x0b], want)]);
    }
}

#[test]
fn integers() {
    for (chip, add, sub) in [("gfx942", "v_add_u16_e32", "v_sub_u16_e32"), ("gfx1100", "v_add_nc_u16", "v_sub_nc_u16")]
    {
        check_on(chip, &format!("{add} $d, $a, $b"), 16, &[16, 16], &[(&[0xffff, 2], 1)]);
        check_on(chip, &format!("{sub} $d, $a, $b"), 16, &[16, 16], &[(&[1, 2], 0xffff)]);
    }
    let mul = |chip: &str| if chip == "gfx942" { "v_mul_lo_u16_e32 $d, $a, $b" } else { "v_mul_lo_u16 $d, $a, $b" };
    for chip in super::super::CHIPS {
        check_on(chip, mul(chip), 16, &[16, 16], &[(&[0x101, 0x101], 0x0201)]);
        let e32 = if chip == "gfx942" { "_e32" } else { "" };
        check_on(chip, &format!("v_lshlrev_b16{e32} $d, $a, $b"), 16, &[16, 16], &[(&[17, 0x8001], 2)]);
        check_on(chip, &format!("v_ashrrev_i16{e32} $d, $a, $b"), 16, &[16, 16], &[(&[4, 0x8000], 0xf800)]);
        check_on(chip, &format!("v_max_i16{e32} $d, $a, $b"), 16, &[16, 16], &[(&[0x8000, 0xffff], 0xffff)]);
        check_on(chip, &format!("v_min_u16{e32} $d, $a, $b"), 16, &[16, 16], &[(&[0x8000, 0xffff], 0x8000)]);
    }
}

#[test]
fn pairs() {
    check("v_pk_add_f16 $d, $a, $b", 32, &[32, 32], &[(&[0x4000_3c00, 0x3c00_3c00], 0x4200_4000)]);
    check(
        "v_pk_mul_f16 $d, $a, $b op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[1,0]",
        32,
        &[32, 32],
        &[(&[0x4000_3c00, 0x4200_4400], 0x4200_c800)],
    );
    check("v_pk_fma_f16 $d, $a, $b, $c", 32, &[32, 32, 32], &[(&[0x4000_3c00, 0x4000_3c00, 0x3c00_3c00], 0x4500_4000)]);
    check("v_pk_add_u16 $d, $a, $b", 32, &[32, 32], &[(&[0xffff_ffff, 0x0001_0002], 0x0000_0001)]);
    check("v_pk_lshlrev_b16 $d, $a, $b", 32, &[32, 32], &[(&[0x0004_0001, 0x0001_8001], 0x0010_0002)]);
    check("v_pack_b32_f16 $d, $a, $b", 32, &[16, 16], &[(&[0x1234, 0x5678], 0x5678_1234)]);
}
