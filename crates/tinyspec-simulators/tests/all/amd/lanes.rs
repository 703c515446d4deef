//! Lanes that read each other: DPP, `readlane`, the permutations of LOCAL memory; lanes that are left out.

use super::{CHIPS, SHAPE, fault, prologue, renamed, try_run, wave};
use tinyspec_simulators::Launch;

/// What each lane of a wave leaves in `v2`; `v1` is four times its number.
fn lanes(chip: &str, body: &str) -> Vec<u32> {
    let lanes = wave(chip);
    let text = format!("{}{body}\nglobal_store_dword v1, v2, s[4:5]\ns_endpgm\n", prologue(chip, 1));
    let out = try_run(chip, SHAPE, &renamed(chip, &text), Launch::threads(1, lanes), &[vec![0; 4 * lanes as usize]]);
    let out = out.unwrap_or_else(|error| panic!("{chip}: {body}: {error}"));
    out[0].chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn check(chip: &str, body: &str, want: impl Fn(u32) -> u32) {
    let want: Vec<u32> = (0..wave(chip)).map(want).collect();
    assert_eq!(lanes(chip, body), want, "{chip}: {body}");
}

#[test]
fn dpp_reads_other_lanes_of_a_row() {
    for chip in CHIPS {
        let dpp = |how: &str| format!("v_mov_b32_e32 v2, 0x64\nv_mov_b32_dpp v2, v0 {how}");
        check(chip, &dpp("quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"), |lane| lane ^ 1);
        check(chip, &dpp("row_mirror row_mask:0xf bank_mask:0xf"), |lane| lane ^ 15);
        check(chip, &dpp("row_half_mirror row_mask:0xf bank_mask:0xf"), |lane| lane ^ 7);
        check(chip, &dpp("row_ror:4 row_mask:0xf bank_mask:0xf"), |lane| lane & !15 | (lane + 12) & 15);
        // A lane without a source lane is disabled, or reads 0 with `bound_ctrl`.
        check(chip, &dpp("row_shr:1 row_mask:0xf bank_mask:0xf"), |lane| if lane % 16 == 0 { 100 } else { lane - 1 });
        check(chip, &dpp("row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1"), |lane| {
            if lane % 16 == 15 { 0 } else { lane + 1 }
        });
        check(chip, &dpp("row_mirror row_mask:0x1 bank_mask:0xf"), |lane| if lane < 16 { lane ^ 15 } else { 100 });
        check(
            chip,
            &dpp("row_mirror row_mask:0xf bank_mask:0x2"),
            |lane| if lane / 4 % 4 == 1 { lane ^ 15 } else { 100 },
        );
        // In place: the old values are read.
        check(chip, "v_mov_b32_e32 v2, v0\nv_mov_b32_dpp v2, v2 row_mirror row_mask:0xf bank_mask:0xf", |lane| {
            lane ^ 15
        });
    }
    check("gfx942", "v_mov_b32_e32 v2, v0\nv_mov_b32_dpp v2, v0 row_bcast:15 row_mask:0xa bank_mask:0xf", |lane| {
        match lane {
            16..32 => 15,
            48..64 => 47,
            _ => lane,
        }
    });
    check("gfx942", "v_mov_b32_e32 v2, v0\nv_mov_b32_dpp v2, v0 row_bcast:31 row_mask:0xc bank_mask:0xf", |lane| {
        if lane >= 32 { 31 } else { lane }
    });
    for chip in ["gfx1100", "gfx1201"] {
        check(chip, "v_mov_b32_dpp v2, v0 row_xmask:5 row_mask:0xf bank_mask:0xf", |lane| lane ^ 5);
        check(chip, "v_mov_b32_dpp v2, v0 row_share:3 row_mask:0xf bank_mask:0xf", |lane| lane & !15 | 3);
        check(chip, "v_mov_b32_dpp v2, v0 dpp8:[7,6,5,4,3,2,1,0]", |lane| lane ^ 7);
    }
}

/// A lane that does not execute is no source, unless it is asked for.
#[test]
fn dpp_reads_no_lane_that_does_not_execute() {
    for chip in CHIPS {
        let (save, restore) = match wave(chip) {
            64 => ("s_mov_b64 s[20:21], exec\ns_mov_b64 exec, 0xf0f0", "s_mov_b64 exec, s[20:21]"),
            _ => ("s_mov_b32 s20, exec_lo\ns_mov_b32 exec_lo, 0xf0f0", "s_mov_b32 exec_lo, s20"),
        };
        let body = format!(
            "v_mov_b32_e32 v2, 0x64\n{save}\nv_mov_b32_dpp v2, v0 row_shr:4 row_mask:0xf bank_mask:0xf bound_ctrl:1\n{restore}"
        );
        check(chip, &body, |lane| if matches!(lane, 4..8 | 12..16) { 0 } else { 100 });
        let body = format!(
            "v_mov_b32_e32 v2, 0x64\n{save}\nv_mov_b32_dpp v2, v0 row_mirror row_mask:0xf bank_mask:0xf\n{restore}"
        );
        check(chip, &body, |_| 100);
    }
}

#[test]
fn scalars_of_lanes() {
    for chip in CHIPS {
        check(chip, "v_readlane_b32 s20, v1, 5\nv_mov_b32_e32 v2, s20", |_| 20);
        check(chip, "s_mov_b32 s21, 7\nv_readlane_b32 s20, v1, s21\nv_mov_b32_e32 v2, s20", |_| 28);
        check(chip, "v_readfirstlane_b32 s20, v1\nv_mov_b32_e32 v2, s20", |_| 0);
        check(chip, "v_mov_b32_e32 v2, v0\ns_movk_i32 s20, 0x55\nv_writelane_b32 v2, s20, 3", |lane| {
            if lane == 3 { 0x55 } else { lane }
        });
        let (save, restore) = match wave(chip) {
            64 => ("s_mov_b64 s[22:23], exec\ns_mov_b64 exec, 0x30", "s_mov_b64 exec, s[22:23]"),
            _ => ("s_mov_b32 s22, exec_lo\ns_mov_b32 exec_lo, 0x30", "s_mov_b32 exec_lo, s22"),
        };
        check(chip, &format!("{save}\nv_readfirstlane_b32 s20, v1\n{restore}\nv_mov_b32_e32 v2, s20"), |_| 16);
        check(chip, "v_mbcnt_lo_u32_b32 v2, -1, 0", |lane| lane.min(32));
    }
    check("gfx942", "v_mbcnt_lo_u32_b32 v2, -1, 0\nv_mbcnt_hi_u32_b32 v2, -1, v2", |lane| lane);
}

#[test]
fn permutations_through_local_memory() {
    for chip in CHIPS {
        let lanes = wave(chip);
        check(chip, "v_xor_b32_e32 v3, 12, v1\nds_bpermute_b32 v2, v3, v0\ns_wait", |lane| lane ^ 3);
        check(chip, "v_lshlrev_b32_e32 v3, 2, v0\nds_bpermute_b32 v2, v3, v0 offset:4\ns_wait", move |lane| {
            (lane + 1) % lanes
        });
        check(chip, "v_xor_b32_e32 v3, 20, v1\nds_permute_b32 v2, v3, v0\ns_wait", |lane| lane ^ 5);
        check(chip, "ds_swizzle_b32 v2, v0 offset:swizzle(SWAP,16)\ns_wait", |lane| lane ^ 16);
        check(chip, "ds_swizzle_b32 v2, v0 offset:swizzle(BITMASK_PERM,\"01pip\")\ns_wait", |lane| {
            (lane & !31) | 8 | (lane & 7) ^ 2
        });
        check(chip, "ds_swizzle_b32 v2, v0 offset:swizzle(QUAD_PERM,3,2,1,0)\ns_wait", |lane| lane ^ 3);
    }
}

/// `v_cmpx_` leaves lanes out.
#[test]
fn comparisons_that_leave_lanes_out() {
    for chip in CHIPS {
        let (start, restore) = match wave(chip) {
            64 => ("s_mov_b64 s[20:21], exec\nv_cmpx_gt_u32_e32 vcc, 10, v0", "s_mov_b64 exec, s[20:21]"),
            _ => ("s_mov_b32 s20, exec_lo\nv_cmpx_gt_u32_e32 10, v0", "s_mov_b32 exec_lo, s20"),
        };
        check(chip, &format!("v_mov_b32_e32 v2, 1\n{start}\nv_mov_b32_e32 v2, 2\n{restore}"), |lane| {
            if lane < 10 { 2 } else { 1 }
        });
    }
}

/// Of a pair of registers `op_sel` may take one twice; then nobody needs to have written the other.
#[test]
fn one_register_of_a_pair_may_be_unwritten() {
    let sum = |select: &str| {
        let add = format!("v_pk_add_f32 v[4:5], v[2:3], s[20:21] op_sel_hi:[1,{select}]");
        let text = "v_mov_b32_e32 v2, 1.0\nv_mov_b32_e32 v3, 2.0\ns_mov_b32 s20, 0.5\n".to_string() + &add;
        let text = format!(
            "{}{text}\nv_add_f32_e32 v2, v4, v5\nglobal_store_dword v1, v2, s[4:5]\ns_endpgm\n",
            prologue("gfx942", 1)
        );
        try_run("gfx942", SHAPE, &renamed("gfx942", &text), Launch::threads(1, 1), &[vec![0; 4]])
    };
    let out = sum("0").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(out[0], 4.0f32.to_le_bytes());
    let says = sum("1").expect_err("half of what is added was never written").to_string();
    assert!(says.contains("nobody has written"), "{says}");
}

/// Low halves of sums and products come from low halves alone; high halves that nobody has written may be in scalars too.
#[test]
fn halves_that_nobody_has_written_go_through_scalars() {
    for chip in CHIPS {
        let load = if chip == "gfx942" { "global_load_short_d16" } else { "global_load_d16_b16" };
        let add = if chip == "gfx1201" { "s_add_co_u32" } else { "s_add_u32" };
        let start = format!(
            "{load} v2, v1, s[4:5]\ns_wait\nv_readfirstlane_b32 s20, v2\ns_mul_i32 s21, s20, s20\n{add} s21, s21, s20\n\
             s_lshl1_add_u32 s21, s21, s20\n"
        );
        let run = |rest: &str| {
            let text = format!("{}{start}{rest}\ns_endpgm\n", prologue(chip, 2));
            try_run(chip, SHAPE, &renamed(chip, &text), Launch::threads(1, 1), &[vec![9, 0, 1, 2], vec![0; 4]])
        };
        let store = |size: &str| format!("v_mov_b32_e32 v3, s21\nglobal_store_{size} v1, v3, s[6:7]");
        let word = |out: Result<Vec<Vec<u8>>, _>| match out {
            Ok(out) => u32::from_le_bytes([out[1][0], out[1][1], out[1][2], out[1][3]]),
            Err(error) => panic!("{chip}: {error}"),
        };
        assert_eq!(word(run(&format!("s_sext_i32_i16 s21, s21\n{}", store("dword")))), 2 * 90 + 9);
        assert_eq!(word(run(&store("short"))), 2 * 90 + 9);
        let select = "s_cselect_b32 s21, 1, 2\n";
        for wrong in [
            store("dword"),
            format!("s_mul_hi_u32 s21, s20, s20\n{}", store("short")),
            select.to_string() + &store("short"),
        ] {
            let says = run(&wrong).map(drop).map_err(|error| error.to_string());
            assert!(says.as_ref().is_err_and(|says| says.contains("nobody has written")), "{chip}: {wrong}: {says:?}");
        }
    }
}

#[test]
fn one_of_two_numbers_in_a_register_may_be_unwritten() {
    // Nobody writes `v9`.
    let halves = "v_lshl_or_b32 v3, v9, 16, v0\n";
    for chip in CHIPS {
        for pair in
            ["v_pk_add_u16 v4, v3, v3", "v_pk_lshlrev_b16 v4, 1, v3 op_sel_hi:[0,1]", "v_lshlrev_b32_e32 v4, 1, v3"]
        {
            check(chip, &format!("{halves}{pair}\nv_and_b32_e32 v2, 0xffff, v4"), |lane| 2 * lane);
            let text = format!("{}{halves}{pair}\nglobal_store_dword v1, v4, s[4:5]\ns_endpgm\n", prologue(chip, 1));
            let (_, said) = fault(chip, SHAPE, &renamed(chip, &text), Launch::threads(1, 32), &[vec![0; 128]]);
            assert!(said.contains("nobody has written"), "{said}");
        }
        // Of a shift's distance the lowest bits count.
        let one = "v_mov_b32_e32 v4, 1\nv_mov_b32_e32 v5, 0\n";
        check(chip, &format!("{halves}{one}v_lshlrev_b64 v[6:7], v3, v[4:5]\nv_mov_b32_e32 v2, v6"), |lane| {
            1u32.checked_shl(lane).unwrap_or(0)
        });
        // The high half is that of another number.
        check(chip, &format!("{halves}v_pk_add_u16 v2, v3, v3 op_sel_hi:[0,0]"), |lane| 0x2_0002 * lane);
    }
}
