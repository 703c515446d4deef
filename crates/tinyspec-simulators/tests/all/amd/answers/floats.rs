//! Floats of 32 and 64 bits.

use super::{LEAST, NAN, QUIET, QUIETED, SIGNALLING, check, check_on, d, f};

#[test]
fn sums_and_products() {
    let inf = f(f32::INFINITY);
    check(
        "v_add_f32_e32 $d, $a, $b",
        32,
        &[32, 32],
        &[
            (&[f(1.5), f(-0.25)], f(1.25)),
            (&[f(0.0), f(-0.0)], f(0.0)),
            (&[f(-0.0), f(-0.0)], f(-0.0)),
            (&[LEAST, LEAST], 2),
            (&[inf, f(f32::NEG_INFINITY)], NAN),
            (&[QUIET, f(1.0)], QUIET),
            (&[f(1.0), SIGNALLING], QUIETED),
            (&[f(1.0), f(f32::EPSILON / 2.0)], f(1.0)),
            (&[f(f32::MAX), f(f32::MAX)], inf),
        ],
    );
    check("v_sub_f32_e32 $d, $a, $b", 32, &[32, 32], &[(&[f(1.0), f(1.0)], f(0.0)), (&[f(0.0), f(3.0)], f(-3.0))]);
    check("v_subrev_f32_e32 $d, $a, $b", 32, &[32, 32], &[(&[f(1.0), f(3.0)], f(2.0))]);
    check(
        "v_mul_f32_e32 $d, $a, $b",
        32,
        &[32, 32],
        &[
            (&[f(-0.0), f(3.0)], f(-0.0)),
            (&[f(0.0), inf], NAN),
            (&[f(f32::MIN_POSITIVE), f(0.5)], 0x0040_0000),
            (&[LEAST, f(0.5)], 0),
        ],
    );
    check(
        "v_fma_f32 $d, $a, $b, $c",
        32,
        &[32, 32, 32],
        &[
            (
                &[f(1.0 + f32::EPSILON), f(1.0 - f32::EPSILON / 2.0), f(-1.0)],
                f((1.0f32 + f32::EPSILON).mul_add(1.0 - f32::EPSILON / 2.0, -1.0)),
            ),
            (&[f(2.0), f(3.0), f(-6.0)], f(0.0)),
            (&[inf, f(0.0), f(1.0)], NAN),
            (&[f(1.0), f(1.0), QUIET], QUIET),
        ],
    );
    check("v_fma_f32 $d, -$a, |$b|, $c", 32, &[32, 32, 32], &[(&[f(2.0), f(-3.0), f(1.0)], f(-5.0))]);
    check("v_fmac_f32_e32 $a, $a, $b\nv_mov_b32_e32 $d, $a", 32, &[32, 32], &[(&[f(2.0), f(3.0)], f(8.0))]);
    check(
        "v_add_f32_e64 $d, $a, $b clamp",
        32,
        &[32, 32],
        &[
            (&[f(1.0), f(1.0)], f(1.0)),
            (&[f(-1.0), f(0.5)], f(0.0)),
            (&[QUIET, f(0.0)], f(0.0)),
            (&[f(0.25), f(0.5)], f(0.75)),
        ],
    );
}

#[test]
fn the_greater_and_the_less() {
    let rows = |nan: u64| -> Vec<(Vec<u64>, u64)> {
        vec![
            (vec![f(1.0), f(2.0)], f(2.0)),
            (vec![f(-0.0), f(0.0)], f(0.0)),
            (vec![f(0.0), f(-0.0)], f(0.0)),
            (vec![QUIET, f(-1.0)], f(-1.0)),
            (vec![f(-1.0), QUIET], f(-1.0)),
            (vec![SIGNALLING, f(1.0)], nan),
            (vec![f(f32::NEG_INFINITY), f(f32::MIN)], f(f32::MIN)),
        ]
    };
    let given = |rows: &[(Vec<u64>, u64)], chip: &str, text: &str| {
        let rows: Vec<(&[u64], u64)> = rows.iter().map(|(values, want)| (values.as_slice(), *want)).collect();
        check_on(chip, text, 32, &[32, 32], &rows);
    };
    // A signalling nan wins where the mode is IEEE's, which gfx12 does not have.
    given(&rows(QUIETED), "gfx942", "v_max_f32_e32 $d, $a, $b");
    given(&rows(QUIETED), "gfx1100", "v_max_f32_e32 $d, $a, $b");
    given(&rows(f(1.0)), "gfx1201", "v_max_num_f32_e32 $d, $a, $b");
    check_on(
        "gfx942",
        "v_min_f32_e32 $d, $a, $b",
        32,
        &[32, 32],
        &[(&[f(0.0), f(-0.0)], f(-0.0)), (&[f(1.0), QUIET], f(1.0)), (&[QUIET, QUIET], QUIET)],
    );
    check_on(
        "gfx1201",
        "v_maximum_f32 $d, $a, $b",
        32,
        &[32, 32],
        &[(&[f(1.0), QUIET], QUIET), (&[f(-0.0), f(0.0)], f(0.0)), (&[f(3.0), f(4.0)], f(4.0))],
    );
    check_on(
        "gfx942",
        "v_med3_f32 $d, $a, $b, $c",
        32,
        &[32, 32, 32],
        &[(&[f(3.0), f(1.0), f(2.0)], f(2.0)), (&[f(1.0), QUIET, f(2.0)], f(1.0))],
    );
}

#[test]
fn functions_of_one() {
    let inf = f32::INFINITY;
    check(
        "v_rcp_f32_e32 $d, $a",
        32,
        &[32],
        &[(&[f(2.0)], f(0.5)), (&[f(-0.0)], f(-inf)), (&[f(-inf)], f(-0.0)), (&[QUIET], QUIET)],
    );
    check("v_sqrt_f32_e32 $d, $a", 32, &[32], &[(&[f(9.0)], f(3.0)), (&[f(-0.0)], f(-0.0)), (&[f(-1.0)], NAN)]);
    check("v_rsq_f32_e32 $d, $a", 32, &[32], &[(&[f(4.0)], f(0.5)), (&[f(0.0)], f(inf)), (&[f(-1.0)], NAN)]);
    check(
        "v_exp_f32_e32 $d, $a",
        32,
        &[32],
        &[(&[f(3.0)], f(8.0)), (&[f(-inf)], 0), (&[f(200.0)], f(inf)), (&[QUIET], QUIET)],
    );
    check(
        "v_log_f32_e32 $d, $a",
        32,
        &[32],
        &[(&[f(8.0)], f(3.0)), (&[f(0.0)], f(-inf)), (&[f(-1.0)], NAN), (&[f(1.0)], f(0.0))],
    );
    check("v_floor_f32_e32 $d, $a", 32, &[32], &[(&[f(-1.5)], f(-2.0)), (&[f(-0.0)], f(-0.0)), (&[f(inf)], f(inf))]);
    check("v_ceil_f32_e32 $d, $a", 32, &[32], &[(&[f(-0.5)], f(-0.0)), (&[f(1.25)], f(2.0))]);
    check("v_trunc_f32_e32 $d, $a", 32, &[32], &[(&[f(-1.75)], f(-1.0)), (&[QUIET], QUIET)]);
    check("v_rndne_f32_e32 $d, $a", 32, &[32], &[(&[f(2.5)], f(2.0)), (&[f(3.5)], f(4.0)), (&[f(-0.5)], f(-0.0))]);
    check(
        "v_fract_f32_e32 $d, $a",
        32,
        &[32],
        &[(&[f(1.75)], f(0.75)), (&[f(-0.25)], f(0.75)), (&[f(-1e-30)], 0x3f7f_ffff)],
    );
    check("v_frexp_mant_f32_e32 $d, $a", 32, &[32], &[(&[f(12.0)], f(0.75)), (&[LEAST], f(0.5)), (&[f(inf)], f(inf))]);
    check(
        "v_frexp_exp_i32_f32_e32 $d, $a",
        32,
        &[32],
        &[(&[f(12.0)], 4), (&[LEAST], (-148i32) as u32 as u64), (&[f(inf)], 0)],
    );
    check(
        "v_ldexp_f32 $d, $a, $b",
        32,
        &[32, 32],
        &[
            (&[f(3.0), 4], f(48.0)),
            (&[f(1.0), (-149i32) as u32 as u64], LEAST),
            (&[f(1.5), (-149i32) as u32 as u64], 2),
            (&[f(1.0), 128], f(inf)),
            (&[f(0.0), i32::MAX as u64], 0),
        ],
    );
    check("v_sin_f32_e32 $d, $a", 32, &[32], &[(&[f(0.25)], f(1.0)), (&[f(1000.0)], f(0.0)), (&[f(inf)], NAN)]);
}

/// What division is made of: scales, a multiply-add that scales back, and the special cases at the end.
#[test]
fn steps_of_a_division() {
    for chip in super::CHIPS {
        let vcc = if chip == "gfx942" { "vcc" } else { "vcc_lo" };
        // What is scaled, the denominator, the numerator.
        check_on(
            chip,
            &format!("v_div_scale_f32 $d, {vcc}, $a, $b, $c"),
            32,
            &[32, 32, 32],
            &[
                (&[f(3.0), f(3.0), f(7.0)], f(3.0)),
                (&[LEAST, LEAST, f(1.0)], f(f32::from_bits(1) * 18_446_744_073_709_551_616.0)),
                (&[f(1e30), f(1e30), f(1.0)], f(1e30)),
                (&[f(0.0), f(0.0), f(1.0)], NAN),
                (&[f(1e-30), f(1e-30), f(1e5)], f(1e-30 * 18_446_744_073_709_551_616.0)),
            ],
        );
        let set = |bit: &str| {
            if chip == "gfx942" { format!("s_mov_b64 vcc, {bit}") } else { format!("s_mov_b32 vcc_lo, {bit}") }
        };
        check_on(
            chip,
            &format!("{}\nv_div_fmas_f32 $d, $a, $b, $c", set("0")),
            32,
            &[32, 32, 32],
            &[(&[f(2.0), f(3.0), f(1.0)], f(7.0))],
        );
        check_on(
            chip,
            &format!("{}\nv_div_fmas_f32 $d, $a, $b, $c", set("-1")),
            32,
            &[32, 32, 32],
            &[
                (&[f(2.0), f(3.0), f(4.0)], f(10.0 * 18_446_744_073_709_551_616.0)),
                (&[f(2.0), f(3.0), f(0.5)], f(6.5 / 18_446_744_073_709_551_616.0)),
            ],
        );
    }
    check(
        "v_div_fixup_f32 $d, $a, $b, $c",
        32,
        &[32, 32, 32],
        &[
            (&[f(2.5), f(2.0), f(5.0)], f(2.5)),
            (&[f(2.5), f(-2.0), f(5.0)], f(-2.5)),
            (&[f(1.0), f(0.0), f(1.0)], f(f32::INFINITY)),
            (&[f(1.0), f(-0.0), f(1.0)], f(f32::NEG_INFINITY)),
            (&[f(1.0), f(0.0), f(0.0)], 0xffc0_0000),
            (&[f(1.0), f(f32::INFINITY), f(-1.0)], f(-0.0)),
            (&[f(1.0), f(1.0), QUIET], QUIET),
        ],
    );
}

#[test]
fn doubles() {
    let (inf, nan) = (f64::INFINITY, 0x7ff8_0000_0000_0000u64);
    let (add, max) = ("v_add_f64 $d, $a, $b", "v_max_f64 $d, $a, $b");
    for chip in ["gfx942", "gfx1100"] {
        check_on(
            chip,
            add,
            64,
            &[64, 64],
            &[(&[d(0.1), d(0.2)], d(0.1 + 0.2)), (&[d(inf), d(-inf)], nan), (&[1, 1], 2)],
        );
        check_on(chip, max, 64, &[64, 64], &[(&[d(-0.0), d(0.0)], d(0.0)), (&[nan | 5, d(1.0)], d(1.0))]);
    }
    check_on("gfx1201", "v_add_f64_e32 $d, $a, $b", 64, &[64, 64], &[(&[d(0.1), d(0.2)], d(0.1 + 0.2))]);
    check(
        "v_fma_f64 $d, $a, $b, -$c",
        64,
        &[64, 64, 64],
        &[
            (
                &[d(1.0 + f64::EPSILON), d(1.0 + f64::EPSILON), d(1.0)],
                d((1.0 + f64::EPSILON).mul_add(1.0 + f64::EPSILON, -1.0)),
            ),
            (&[d(inf), d(0.0), d(0.0)], nan),
        ],
    );
    check("v_rcp_f64_e32 $d, $a", 64, &[64], &[(&[d(4.0)], d(0.25)), (&[d(-0.0)], d(-inf))]);
    check(
        "v_ldexp_f64 $d, $a, $b",
        64,
        &[64, 32],
        &[
            (&[d(3.0), 1], d(6.0)),
            (&[d(1.0), (-1074i32) as u32 as u64], 1),
            (&[d(1.5), (-1075i32) as u32 as u64], 1),
            (&[d(1.0), (-1075i32) as u32 as u64], 0),
            (&[1, 1074], d(1.0)),
            (&[d(1.0), 1024], d(inf)),
        ],
    );
    check("v_frexp_mant_f64_e32 $d, $a", 64, &[64], &[(&[d(12.0)], d(0.75)), (&[1], d(0.5))]);
    check(
        "v_div_fixup_f64 $d, $a, $b, $c",
        64,
        &[64, 64, 64],
        &[
            (&[d(2.5), d(-2.0), d(5.0)], d(-2.5)),
            (&[d(1.0), d(0.0), d(-1.0)], d(-inf)),
            (&[d(1.0), d(0.0), d(0.0)], 0xfff8 << 48),
        ],
    );
}

#[test]
fn pairs_of_floats() {
    let pair = |low: f32, high: f32| f(low) | f(high) << 32;
    let rows: &[(&[u64], u64)] = &[(&[pair(1.0, 2.0), pair(10.0, 20.0)], pair(11.0, 22.0))];
    check_on("gfx942", "v_pk_add_f32 $d, $a, $b", 64, &[64, 64], rows);
    check_on(
        "gfx942",
        "v_pk_mul_f32 $d, $a, $b op_sel:[0,1] op_sel_hi:[0,0]",
        64,
        &[64, 64],
        &[(&[pair(1.0, 2.0), pair(10.0, 20.0)], pair(20.0, 10.0))],
    );
    check_on(
        "gfx942",
        "v_pk_fma_f32 $d, $a, $b, $c neg_lo:[1,0,0]",
        64,
        &[64, 64, 64],
        &[(&[pair(1.0, 2.0), pair(10.0, 20.0), pair(100.0, 200.0)], pair(90.0, 240.0))],
    );
}

/// Both halves of a dual instruction read before one of them writes.
#[test]
fn halves_of_a_dual_instruction() {
    for chip in ["gfx1100", "gfx1201"] {
        // v6 and v9 change places, in banks that differ.
        check_on(
            chip,
            "v_mov_b32_e32 v9, $b\nv_dual_mov_b32 v6, v9 :: v_dual_mov_b32 v9, v6\nv_sub_f32_e32 $d, v6, v9",
            32,
            &[32, 32],
            &[(&[f(1.0), f(5.0)], f(4.0))],
        );
        check_on(
            chip,
            "v_mov_b32_e32 v9, $b\nv_dual_mul_f32 v4, v6, v9 :: v_dual_add_f32 v7, v9, v6\nv_add_f32_e32 $d, v4, v7",
            32,
            &[32, 32],
            &[(&[f(3.0), f(5.0)], f(23.0))],
        );
    }
}

/// Old chips have one that rounds twice, and has no subnormal numbers.
#[test]
fn multiply_adds_that_round_twice() {
    let x = f32::from_bits(0x3f80_0001);
    check_on(
        "gfx90a",
        "v_mad_f32 $d, $a, $b, $c",
        32,
        &[32, 32, 32],
        &[
            (&[f(x), f(x), f(-1.0)], f(x * x - 1.0)),
            (&[LEAST, f(1e30), f(2.0)], f(2.0)),
            (&[f(f32::MIN_POSITIVE), f(0.5), f(0.0)], f(0.0)),
            (&[f(1.0), f(1.0), QUIET], QUIET),
        ],
    );
}
