//! From one kind of number to another.

use super::{LEAST, NAN, QUIET, SIGNALLING, check, check_on, d, f};

#[test]
fn integers_of_floats() {
    let inf = f32::INFINITY;
    check(
        "v_cvt_i32_f32_e32 $d, $a",
        32,
        &[32],
        &[(&[f(-1.9)], -1i32 as u32 as u64), (&[f(3e9)], i32::MAX as u64), (&[f(-inf)], 0x8000_0000), (&[QUIET], 0)],
    );
    check(
        "v_cvt_u32_f32_e32 $d, $a",
        32,
        &[32],
        &[(&[f(-1.0)], 0), (&[f(3e9)], 3_000_000_000), (&[f(1e10)], 0xffff_ffff), (&[NAN], 0)],
    );
    check("v_cvt_i32_f64_e32 $d, $a", 32, &[64], &[(&[d(-2.5)], -2i32 as u32 as u64), (&[d(1e300)], i32::MAX as u64)]);
    check("v_cvt_u32_f64_e32 $d, $a", 32, &[64], &[(&[d(4e9)], 4_000_000_000), (&[d(-1.0)], 0)]);
}

#[test]
fn floats_of_integers() {
    check(
        "v_cvt_f32_i32_e32 $d, $a",
        32,
        &[32],
        &[(&[-3i32 as u32 as u64], f(-3.0)), (&[0x0100_0001], f(16_777_216.0)), (&[0x0100_0003], f(16_777_220.0))],
    );
    check("v_cvt_f32_u32_e32 $d, $a", 32, &[32], &[(&[0xffff_ffff], f(4_294_967_296.0)), (&[7], f(7.0))]);
    check("v_cvt_f64_i32_e32 $d, $a", 64, &[32], &[(&[-3i32 as u32 as u64], d(-3.0))]);
    check("v_cvt_f64_u32_e32 $d, $a", 64, &[32], &[(&[0xffff_ffff], d(4_294_967_295.0))]);
    for byte in 0..4 {
        check(
            &format!("v_cvt_f32_ubyte{byte}_e32 $d, $a"),
            32,
            &[32],
            &[(&[0x4433_2211], f(17.0 * (byte + 1) as f32))],
        );
    }
}

#[test]
fn floats_of_other_floats() {
    check(
        "v_cvt_f64_f32_e32 $d, $a",
        64,
        &[32],
        &[(&[f(0.1)], d(0.1f32.into())), (&[1], d(f32::from_bits(1).into())), (&[QUIET], 0x7ff8_0246_8000_0000)],
    );
    check(
        "v_cvt_f32_f64_e32 $d, $a",
        32,
        &[64],
        &[(&[d(0.1)], f(0.1)), (&[d(1e300)], f(f32::INFINITY)), (&[d(1e-45)], 1), (&[0x7ff8 << 48], NAN)],
    );
    check(
        "v_cvt_f32_f16_e32 $d, $a",
        32,
        &[16],
        &[
            (&[0x3c00], f(1.0)),
            (&[0x0001], f(5.960_464_5e-8)),
            (&[0x83ff], f(-6.097_555_e-5)),
            (&[0x7c00], f(f32::INFINITY)),
            (&[0x7e01], 0x7fc0_2000),
        ],
    );
    check(
        "v_cvt_f16_f32_e32 $d, $a",
        16,
        &[32],
        &[
            (&[f(1.0 + 1.0 / 2048.0)], 0x3c00),
            (&[f(1.0 + 3.0 / 2048.0)], 0x3c02),
            (&[f(65_519.0)], 0x7bff),
            (&[f(65_520.0)], 0x7c00),
            (&[f(2.980_232_2e-8)], 0),
            (&[f(2.980_233e-8)], 1),
            (&[f(-6.1e-5)], 0x83ff),
            (&[QUIET], 0x7e00),
        ],
    );
}

/// Every f16, there and back.
#[test]
fn all_numbers_of_16_bits() {
    for chip in super::super::CHIPS {
        for start in (0..0x10000u64).step_by(1024) {
            if chip != "gfx942" && start % 8192 != 0 {
                continue;
            }
            all_from(chip, start);
        }
    }
}

fn all_from(chip: &str, start: u64) {
    use super::super::{SHAPE, prologue, renamed, try_run};
    use tinyspec_simulators::Launch;
    let half = if chip == "gfx1100" { ".l" } else { "" };
    let body = format!(
        "{}global_load_dword v2, v1, s[4:5]\ns_wait\nv_cvt_f32_f16_e32 v3, v2{half}\nv_cvt_f16_f32_e32 v4{half}, v3\n\
         v_and_b32_e32 v4, 0xffff, v4\nglobal_store_dword v1, v4, s[6:7]\ns_endpgm\n",
        prologue(chip, 2)
    );
    let input: Vec<u8> = (start..start + 1024).flat_map(|bits| (bits as u32).to_le_bytes()).collect();
    let out = try_run(chip, SHAPE, &renamed(chip, &body), Launch::threads(1, 1024), &[input, vec![0; 4096]]);
    let out = out.unwrap_or_else(|error| panic!("{chip}: {error}"));
    for (number, word) in out[1].chunks_exact(4).enumerate() {
        let (bits, got) = (start as u32 + number as u32, u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let want = if bits & 0x7fff > 0x7c00 { bits | 0x200 } else { bits };
        assert_eq!(got, want, "{chip}: {bits:#x}");
    }
}

#[test]
fn two_at_once() {
    check_on(
        "gfx942",
        "v_cvt_pkrtz_f16_f32 $d, $a, $b",
        32,
        &[32, 32],
        &[(&[f(1.0 + 1.0 / 1025.0), f(-65_530.0)], 0xfbff_3c00)],
    );
    check_on("gfx1100", "v_cvt_pk_rtz_f16_f32_e32 $d, $a, $b", 32, &[32, 32], &[(&[f(2.0), f(1e-8)], 0x0000_4000)]);
    for chip in ["gfx1100", "gfx1201"] {
        let rows: &[(&[u64], u64)] = &[
            (&[f(-1.75), f(2.5)], 0x0002_ffff),
            (&[f(1e9), f(-1e9)], 0x8000_7fff),
            (&[NAN, f(f32::INFINITY)], 0x7fff_0000),
        ];
        check_on(chip, "v_cvt_pk_i16_f32 $d, $a, $b", 32, &[32, 32], rows);
        let rows: &[(&[u64], u64)] =
            &[(&[f(65_535.0), f(2.5)], 0x0002_ffff), (&[f(1e9), f(-1.0)], 0x0000_ffff), (&[LEAST, SIGNALLING], 0)];
        check_on(chip, "v_cvt_pk_u16_f32 $d, $a, $b", 32, &[32, 32], rows);
    }
}
