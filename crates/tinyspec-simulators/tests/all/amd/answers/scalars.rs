//! Scalar instructions: each is made to give a value that all lanes store.

use super::super::{CHIPS, SHAPE, prologue, renamed, try_run};
use tinyspec_simulators::Launch;

/// What a body leaves in `s20` and `s21`, and SCC.
fn run(chip: &str, body: &str) -> [u32; 3] {
    let text = format!(
        "{}{body}\ns_cselect_b32 s22, 1, 0\nv_mov_b32_e32 v2, s20\nv_mov_b32_e32 v3, s21\nv_mov_b32_e32 v4, s22\n\
         global_store_dwordx3 v1, v[2:4], s[4:5]\ns_endpgm\n",
        prologue(chip, 1)
    );
    let out = try_run(chip, SHAPE, &renamed(chip, &text), Launch::threads(1, 1), &[vec![0; 12]]);
    let out = out.unwrap_or_else(|error| panic!("{chip}: {body}: {error}"));
    let words: Vec<u32> =
        out[0].chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    [words[0], words[1], words[2]]
}

/// Sets `s[10:11]` and `s[12:13]`, and SCC.
fn given(a: u64, b: u64, condition: bool) -> String {
    let words = [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32];
    let mut text: String =
        words.iter().enumerate().map(|(n, word)| format!("s_mov_b32 s{}, {word:#x}\n", 10 + n)).collect();
    text += &format!("s_mov_b32 s20, 0\ns_mov_b32 s21, 0\ns_cmp_eq_u32 s30, {}\n", u32::from(!condition));
    text
}

fn check(text: &str, a: u64, b: u64, condition: bool, want: u64, condition_after: bool) {
    for chip in CHIPS {
        check_on(chip, text, (a, b, condition), want, condition_after);
    }
}

fn check_on(chip: &str, text: &str, (a, b, condition): (u64, u64, bool), want: u64, condition_after: bool) {
    let [low, high, scc] = run(chip, &format!("{}{text}", given(a, b, condition)));
    let got = u64::from(low) | u64::from(high) << 32;
    assert_eq!((got, scc == 1), (want, condition_after), "{chip}: {text} of {a:#x}, {b:#x}, SCC {condition}: {got:#x}");
}

#[test]
fn sums_carry_through_scc() {
    for (chip, add, addc, sub, subb) in [
        ("gfx942", "s_add_u32", "s_addc_u32", "s_sub_u32", "s_subb_u32"),
        ("gfx1100", "s_add_u32", "s_addc_u32", "s_sub_u32", "s_subb_u32"),
        ("gfx1201", "s_add_co_u32", "s_add_co_ci_u32", "s_sub_co_u32", "s_sub_co_ci_u32"),
    ] {
        check_on(chip, &format!("{add} s20, s10, s12"), (0xffff_ffff, 1, false), 0, true);
        check_on(chip, &format!("{addc} s20, s10, s12"), (1, 2, true), 4, false);
        check_on(chip, &format!("{sub} s20, s10, s12"), (1, 2, false), 0xffff_ffff, true);
        check_on(chip, &format!("{subb} s20, s10, s12"), (5, 2, true), 2, false);
        let signed = if chip == "gfx1201" { "s_add_co_i32" } else { "s_add_i32" };
        check_on(chip, &format!("{signed} s20, s10, s12"), (0x7fff_ffff, 1, false), 0x8000_0000, true);
    }
    check("s_mul_i32 s20, s10, s12", 0x1_0001, 0x1_0001, true, 0x2_0001, true);
    check("s_mul_hi_u32 s20, s10, s12", 0xffff_ffff, 0xffff_ffff, false, 0xffff_fffe, false);
}

#[test]
fn bits_and_shifts() {
    check("s_and_b64 s[20:21], s[10:11], s[12:13]", 0xff << 40, 0x0f << 40, false, 0x0f << 40, true);
    check("s_and_b32 s20, s10, s12", 1, 2, true, 0, false);
    check("s_lshl_b64 s[20:21], s[10:11], s12", 3, 65, false, 6, true);
    check("s_ashr_i32 s20, s10, s12", 0x8000_0000, 31, false, 0xffff_ffff, true);
    check("s_bfe_u32 s20, s10, 0x80004", 0x1234, 0, false, 0x23, true);
    check("s_bfe_i32 s20, s10, 0x40004", 0xf0, 0, false, 0xffff_ffff, true);
    check("s_pack_ll_b32_b16 s20, s10, s12", 0x1111_2222, 0x3333_4444, true, 0x4444_2222, true);
    check("s_sext_i32_i16 s20, s10", 0x8000, 0, false, 0xffff_8000, false);
    check("s_bcnt1_i32_b64 s20, s[10:11]", 0xf << 30, 0, false, 4, true);
    check("s_brev_b32 s20, s10", 1, 0, false, 0x8000_0000, false);
    check("s_movk_i32 s20, 0x8000", 0, 0, false, 0xffff_8000, false);
    check("s_mov_b64 s[20:21], 0xffffffff", 0, 0, false, 0xffff_ffff, false);
    check("s_mov_b64 s[20:21], -1", 0, 0, false, u64::MAX, false);
}

#[test]
fn conditions() {
    check("s_cselect_b32 s20, s10, s12", 1, 2, true, 1, true);
    check("s_cselect_b64 s[20:21], s[10:11], s[12:13]", 1, 2 << 32, false, 2 << 32, false);
    check("s_cmp_lt_i32 s10, s12", 0xffff_ffff, 0, false, 0, true);
    check("s_cmp_lt_u32 s10, s12", 0xffff_ffff, 0, true, 0, false);
    check("s_cmp_eq_u64 s[10:11], s[12:13]", 1 << 40, 1 << 40, false, 0, true);
    check("s_bitcmp1_b32 s10, s12", 4, 2, false, 0, true);
    check("s_min_i32 s20, s10, s12", 0xffff_ffff, 3, false, 0xffff_ffff, true);
    check("s_max_u32 s20, s10, s12", 1, 3, true, 3, false);
}

/// Branches: a loop that adds up, on each condition.
#[test]
fn branches() {
    for chip in CHIPS {
        let add = if chip == "gfx1201" { "s_add_co_i32" } else { "s_add_i32" };
        let text = format!(
            "s_mov_b32 s20, 0\ns_mov_b32 s21, 5\nAGAIN:\n{add} s20, s20, s21\n{add} s21, s21, -1\ns_cmp_lg_u32 s21, 0\n\
             s_cbranch_scc1 AGAIN\ns_cmp_eq_u32 s21, 0\ns_cbranch_scc0 AGAIN"
        );
        assert_eq!(run(chip, &text), [15, 0, 1], "{chip}");
    }
}

#[test]
fn either_half_is_converted() {
    let halves = (0x4000_3c00, 0, false);
    check_on("gfx1201", "s_cvt_f32_f16 s20, s10", halves, 0x3f80_0000, false);
    check_on("gfx1201", "s_cvt_hi_f32_f16 s20, s10", halves, 0x4000_0000, false);
}
