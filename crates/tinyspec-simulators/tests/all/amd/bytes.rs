//! Unwritten bytes next to written bytes of the same register or word.

use super::{CHIPS, SHAPE, Shape, prologue, renamed, try_run, wave};
use tinyspec_simulators::Launch;

/// Each lane writes its number to the first byte of its word in LOCAL memory and loads the word to `v3`.
const BYTE: &str = "ds_write_b8 v1, v0\ns_wait\nds_read_b32 v3, v1\ns_wait\n";

/// Runs `body` after [`BYTE`] and returns `v2` of each lane, or the fault.
fn run(chip: &str, body: &str) -> Result<Vec<u32>, String> {
    let lanes = wave(chip);
    let text = format!("{}{BYTE}{body}\nglobal_store_dword v1, v2, s[4:5]\ns_endpgm\n", prologue(chip, 1));
    let text = match chip {
        "gfx942" => text,
        _ => text.replace("ds_write_b8", "ds_store_b8").replace("ds_write_b16", "ds_store_b16"),
    };
    let shape = Shape { local_bytes: 4 * lanes as usize, ..SHAPE };
    let buffers = [vec![0; 4 * lanes as usize]];
    let out = try_run(chip, shape, &renamed(chip, &text), Launch::threads(1, lanes), &buffers);
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    out.map(|out| out[0].chunks_exact(4).map(word).collect()).map_err(|error| error.to_string())
}

fn check(chip: &str, body: &str, want: impl Fn(u32) -> u32) {
    let out = run(chip, body).unwrap_or_else(|error| panic!("{chip}: {body}: {error}"));
    assert_eq!(out, (0..wave(chip)).map(want).collect::<Vec<_>>(), "{chip}: {body}");
}

fn check_fault(chip: &str, body: &str) {
    let out = run(chip, body);
    assert!(out.as_ref().is_err_and(|says| says.contains("nobody has written")), "{chip}: {body}: {out:?}");
}

/// A byte is moved to another place and back.
#[test]
fn other_bytes_may_be_shifted_away() {
    for chip in CHIPS {
        for body in [
            "v_lshlrev_b32_e32 v4, 8, v3\nv_lshrrev_b32_e32 v4, 8, v4\nv_bfe_u32 v2, v4, 0, 8",
            "v_lshlrev_b32_e32 v4, 24, v3\nv_lshrrev_b32_e32 v2, 24, v4",
            "v_and_b32_e32 v2, 0xff, v3",
            "s_mov_b32 s20, 0xc0c0c04\nv_perm_b32 v2, v3, v9, s20",
            "s_mov_b32 s20, 0x3020104\nv_perm_b32 v4, v3, v9, s20\nv_bfe_u32 v2, v4, 0, 8",
            "v_alignbit_b32 v4, v3, v9, 24\nv_bfe_u32 v2, v4, 8, 8",
            "v_mov_b32_e32 v4, v3\nv_lshlrev_b64 v[6:7], 40, v[4:5]\nv_bfe_u32 v2, v7, 8, 8",
        ] {
            check(chip, body, |lane| lane);
        }
        check(chip, "v_lshl_or_b32 v4, v3, 8, v0\nv_and_b32_e32 v2, 0xffff, v4", |lane| lane << 8 | lane);
        let product = "v_mul_lo_u32 v4, v3, v3\nv_add_u32_e32 v4, v4, v3\nv_and_b32_e32 v2, 0xff, v4";
        check(chip, product, |lane| (lane * (lane + 1)) & 0xff);
        for body in [
            "v_mov_b32_e32 v2, v3",
            "v_bfe_u32 v2, v3, 1, 8",
            "v_lshrrev_b32_e32 v2, 8, v3",
            "v_lshlrev_b32_e32 v2, 16, v3",
            "v_add_u32_e32 v4, v3, v3\nv_bfe_u32 v2, v4, 8, 8",
            "v_lshl_or_b32 v4, v3, 8, v0\nv_and_b32_e32 v2, 0xffffff, v4",
            "v_xor_b32_e32 v2, v3, v9",
            "v_sub_u32_e32 v2, v8, v9",
        ] {
            check_fault(chip, body);
        }
    }
}

/// Code of i8 shifts in halves of registers whose other half nobody has written.
#[test]
fn halves_are_shifted_beside_unwritten_halves() {
    for (chip, shift, down) in [
        ("gfx1100", "v_lshlrev_b16 v4.l, 8, v3.l", "v_ashrrev_i16 v4.l, 8, v4.l"),
        ("gfx1201", "v_lshlrev_b16 v4, 8, v3", "v_ashrrev_i16 v4, 8, v4"),
    ] {
        check(chip, &format!("{shift}\nv_lshrrev_b32_e32 v4, 8, v4\nv_bfe_i32 v2, v4, 0, 8"), |lane| lane);
        check(chip, &format!("{shift}\n{down}\nv_and_b32_e32 v2, 0xffff, v4"), |lane| lane);
        check_fault(chip, &format!("{shift}\nv_mov_b32_e32 v2, v4"));
        check_fault(chip, &format!("{shift}\nv_lshrrev_b32_e32 v2, 8, v4"));
    }
    let product = "v_mul_lo_u16_e32 v4, v3, v3\nv_bfe_u32 v2, v4, ";
    check("gfx942", &format!("{product}0, 8"), |lane| (lane * lane) & 0xff);
    check_fault("gfx942", &format!("{product}8, 8"));
}

#[test]
fn bytes_go_to_other_lanes() {
    for chip in CHIPS {
        let byte = "v_and_b32_e32 v2, 0xff, v4";
        let swapped = |body: &str| {
            check(chip, &format!("{body}\n{byte}"), |lane| lane ^ 1);
            check_fault(chip, &format!("{body}\nv_mov_b32_e32 v2, v4"));
        };
        swapped("v_mov_b32_dpp v4, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf");
        swapped("v_xor_b32_e32 v4, 4, v1\nds_bpermute_b32 v4, v4, v3\ns_wait");
        swapped("ds_swizzle_b32 v4, v3 offset:swizzle(QUAD_PERM,1,0,3,2)\ns_wait");
        let mask = if wave(chip) == 64 { "s[20:21]" } else { "s20" };
        let select = format!("v_cmp_gt_u32_e64 {mask}, 8, v0\nv_cndmask_b32_e64 v4, 7, v3, {mask}\n");
        check(chip, &(select.clone() + byte), |lane| if lane < 8 { lane } else { 7 });
        check_fault(chip, &(select + "v_mov_b32_e32 v2, v4"));
        let lane = "v_readlane_b32 s22, v3, 5\nv_mov_b32_e32 v4, 9\nv_writelane_b32 v4, s22, 3\n";
        check(chip, &format!("{lane}{byte}"), |lane| if lane == 3 { 5 } else { 9 });
        check_fault(chip, &format!("{lane}v_mov_b32_e32 v2, v4"));
    }
}

/// SDWA reads and writes single bytes.
#[test]
fn single_bytes_are_read_and_written() {
    let parts = |to: &str, unused: &str, from: &str| {
        format!("v_mov_b32_sdwa v4, {from} dst_sel:{to} dst_unused:{unused} src0_sel:BYTE_0\n")
    };
    let third = |name: &str, from: &str| parts("BYTE_2", name, from);
    check("gfx942", &format!("{}v_mov_b32_e32 v2, v4", third("UNUSED_PAD", "v3")), |lane| lane << 16);
    check("gfx942", &format!("{}v_mov_b32_e32 v2, v4", third("UNUSED_SEXT", "v3")), |lane| lane << 16);
    check("gfx942", &format!("{}v_bfe_u32 v2, v4, 16, 8", third("UNUSED_PRESERVE", "v3")), |lane| lane);
    check_fault("gfx942", &format!("{}v_bfe_u32 v2, v4, 16, 16", third("UNUSED_PRESERVE", "v3")));
    check("gfx942", &format!("{}v_mov_b32_e32 v2, v4", parts("DWORD", "UNUSED_PAD", "sext(v3)")), |lane| lane);
    check_fault("gfx942", &format!("{}v_bfe_u32 v2, v4, 0, 8", parts("DWORD", "UNUSED_PAD", "v9")));
    check("gfx942", &format!("{}v_lshrrev_b32_e32 v2, 8, v4", parts("DWORD", "UNUSED_PAD", "v9")), |_| 0);
}

/// Loads of a word, of halves and of bytes.
#[test]
fn bytes_are_loaded_and_stored() {
    for chip in CHIPS {
        for load in ["ds_read_u16 v4, v1", "ds_read_u16_d16 v4, v1", "ds_read_u8_d16 v4, v1", "ds_read_i8_d16 v4, v1"] {
            check(chip, &format!("{load}\ns_wait\nv_and_b32_e32 v2, 0xff, v4"), |lane| lane);
        }
        check(chip, "v_mov_b32_e32 v2, 0\nds_read_u8_d16_hi v2, v1\ns_wait", |lane| lane << 16);
        check(chip, "ds_read_u16_d16_hi v4, v1\ns_wait\nv_bfe_u32 v2, v4, 16, 8", |lane| lane);
        check(chip, "ds_write_b8 v1, v3 offset:1\ns_wait\nds_read_u16 v2, v1\ns_wait", |lane| lane << 8 | lane);
        check_fault(chip, "ds_read_u16 v2, v1\ns_wait");
        check_fault(chip, "v_mov_b32_e32 v2, 0\nds_read_u16_d16_hi v2, v1\ns_wait");
        check_fault(chip, "ds_read_i8 v2, v1 offset:1\ns_wait\nv_lshrrev_b32_e32 v2, 8, v2");
        check_fault(chip, "v_mov_b32_e32 v2, 0\nds_write_b16 v1, v3");
        // The load zero-extends the unwritten byte.
        check(chip, "ds_read_u8 v2, v1 offset:1\ns_wait\nv_lshrrev_b32_e32 v2, 8, v2", |_| 0);
    }
}
