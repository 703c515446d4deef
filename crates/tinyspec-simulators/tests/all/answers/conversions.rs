use super::{NAN, as_words, check, d, f, try_run, words};
use tinyspec_simulators::Launch;

const W: &str = "b32";
const L: &str = "b64";
const H: &str = "b16";
const ONES: u64 = 0xffff_ffff;

#[test]
fn integers() {
    check("cvt.s32.s8 $d, $a;", W, &[W], &[(&[0x1ff], ONES), (&[0x7f], 0x7f)]);
    check("cvt.u32.u8 $d, $a;", W, &[W], &[(&[0x1ff], 0xff)]);
    check("cvt.s16.s8 $d, $a;", H, &[H], &[(&[0x80], 0xff80)]);
    check("cvt.u16.u32 $d, $a;", H, &[W], &[(&[0x1_2345], 0x2345)]);
    check("cvt.s64.s32 $d, $a;", L, &[W], &[(&[ONES], u64::MAX)]);
    check("cvt.u64.u32 $d, $a;", L, &[W], &[(&[ONES], ONES)]);
    check("cvt.u64.u16 $d, $a;", L, &[H], &[(&[0xffff], 0xffff)]);
    check("cvt.s64.s16 $d, $a;", L, &[H], &[(&[0x8000], 0xffff_ffff_ffff_8000)]);
    check("cvt.u32.u64 $d, $a;", W, &[L], &[(&[0x1_0000_0005], 5)]);
    check("cvt.s8.s32 $d, $a;", W, &[W], &[(&[0x80], 0xffff_ff80)]);
    check("cvt.sat.u8.s32 $d, $a;", W, &[W], &[(&[300], 255), (&[ONES], 0), (&[7], 7)]);
    check("cvt.sat.s8.s32 $d, $a;", W, &[W], &[(&[300], 127), (&[0xffff_ff00], 0xffff_ff80)]);
    check("cvt.sat.s32.u64 $d, $a;", W, &[L], &[(&[u64::MAX], 0x7fff_ffff)]);
}

#[test]
fn floats_to_integers() {
    check(
        "cvt.rzi.s32.f32 $d, $a;",
        W,
        &[W],
        &[
            (&[f(-1.9)], ONES),
            (&[f(3e9)], 0x7fff_ffff),
            (&[f(-3e9)], 0x8000_0000),
            (&[NAN], 0),
            (&[f(f32::INFINITY)], 0x7fff_ffff),
            (&[f(-0.5)], 0),
        ],
    );
    check(
        "cvt.rni.s32.f32 $d, $a;",
        W,
        &[W],
        &[(&[f(0.5)], 0), (&[f(1.5)], 2), (&[f(2.5)], 2), (&[f(-2.5)], 0xffff_fffe)],
    );
    check("cvt.rmi.s32.f32 $d, $a;", W, &[W], &[(&[f(-0.5)], ONES), (&[f(0.5)], 0)]);
    check("cvt.rpi.s32.f32 $d, $a;", W, &[W], &[(&[f(-0.5)], 0), (&[f(0.5)], 1)]);
    check("cvt.rzi.u32.f32 $d, $a;", W, &[W], &[(&[f(-5.0)], 0), (&[f(5e9)], ONES), (&[NAN], 0)]);
    check(
        "cvt.rzi.s64.f32 $d, $a;",
        L,
        &[W],
        &[(&[f(-1.5)], u64::MAX), (&[NAN], 1 << 63), (&[f(1e30)], (1 << 63) - 1)],
    );
    check(
        "cvt.rzi.u64.f64 $d, $a;",
        L,
        &[L],
        &[(&[d(1.8e19)], 18_000_000_000_000_000_000), (&[d(-1.0)], 0), (&[d(1e30)], u64::MAX)],
    );
    check("cvt.rzi.s32.f64 $d, $a;", W, &[L], &[(&[d(-2.9)], 0xffff_fffe), (&[d(f64::NAN)], 0x8000_0000)]);
    check("cvt.rzi.s16.f32 $d, $a;", H, &[W], &[(&[f(1e6)], 0x7fff), (&[f(-1e6)], 0x8000)]);
    check("cvt.rzi.u8.f32 $d, $a;", W, &[W], &[(&[f(300.0)], 255)]);
    check("cvt.rzi.s32.f16 $d, $a;", W, &[H], &[(&[0xc100], 0xffff_fffe)]);
    check("cvt.rzi.ftz.s32.f32 $d, $a;", W, &[W], &[(&[1], 0)]);
}

#[test]
fn integers_to_floats() {
    check(
        "cvt.rn.f32.s32 $d, $a;",
        W,
        &[W],
        &[(&[ONES], f(-1.0)), (&[16_777_217], f(16_777_216.0)), (&[16_777_219], f(16_777_220.0))],
    );
    check("cvt.rz.f32.s32 $d, $a;", W, &[W], &[(&[16_777_219], f(16_777_218.0))]);
    check("cvt.rp.f32.u32 $d, $a;", W, &[W], &[(&[16_777_217], f(16_777_218.0)), (&[ONES], f(4_294_967_296.0))]);
    check(
        "cvt.rm.f32.s64 $d, $a;",
        W,
        &[L],
        &[(&[u64::MAX], f(-1.0)), (&[0u64.wrapping_sub(16_777_217)], f(-16_777_218.0))],
    );
    check("cvt.rn.f32.u32 $d, $a;", W, &[W], &[(&[ONES], f(4_294_967_296.0))]);
    check(
        "cvt.rn.f32.u64 $d, $a;",
        W,
        &[L],
        &[(&[u64::MAX], f(18_446_744_073_709_551_616.0)), (&[(1 << 40) + (1 << 16) + 1], f((1u64 << 40) as f32) + 1)],
    );
    check(
        "cvt.rn.f64.u64 $d, $a;",
        L,
        &[L],
        &[(&[u64::MAX], d(18_446_744_073_709_551_616.0)), (&[(1 << 53) + 1], d(9_007_199_254_740_992.0))],
    );
    check("cvt.rn.f64.s32 $d, $a;", L, &[W], &[(&[ONES], d(-1.0))]);
    check("cvt.rn.f32.s16 $d, $a;", W, &[H], &[(&[0xffff], f(-1.0))]);
    check("cvt.rn.f32.u8 $d, $a;", W, &[H], &[(&[0xff], f(255.0))]);
    check("cvt.rn.f16.s32 $d, $a;", H, &[W], &[(&[2049], 0x6800), (&[2051], 0x6802), (&[70_000], 0x7c00)]);
    check("cvt.rn.bf16.s32 $d, $a;", H, &[W], &[(&[257], 0x4380)]);
}

#[test]
fn floats() {
    check("cvt.f64.f32 $d, $a;", L, &[W], &[(&[f(0.1)], d(f64::from(0.1f32))), (&[1], d(f64::powi(2.0, -149)))]);
    check(
        "cvt.rn.f32.f64 $d, $a;",
        W,
        &[L],
        &[(&[d(0.1)], f(0.1)), (&[d(1e300)], f(f32::INFINITY)), (&[d(f64::NAN)], NAN), (&[d(1e-46)], 0)],
    );
    check("cvt.rz.f32.f64 $d, $a;", W, &[L], &[(&[d(0.1)], f(0.1) - 1), (&[d(1e300)], f(f32::MAX))]);
    check("cvt.rp.f32.f64 $d, $a;", W, &[L], &[(&[d(1e-300)], 1), (&[d(-1e300)], f(-f32::MAX))]);
    check("cvt.rm.f32.f64 $d, $a;", W, &[L], &[(&[d(-1e-300)], 0x8000_0001)]);
    check(
        "cvt.rzi.f32.f32 $d, $a;",
        W,
        &[W],
        &[(&[f(-0.5)], f(-0.0)), (&[f(2.9)], f(2.0)), (&[f(1e20)], f(1e20)), (&[NAN], NAN)],
    );
    check("cvt.rni.f64.f64 $d, $a;", L, &[L], &[(&[d(2.5)], d(2.0)), (&[d(-3.5)], d(-4.0))]);
    check("cvt.rmi.f32.f32 $d, $a;", W, &[W], &[(&[f(-0.5)], f(-1.0))]);
    check("cvt.rpi.f32.f32 $d, $a;", W, &[W], &[(&[f(-0.5)], f(-0.0))]);
    check("cvt.sat.f32.f32 $d, $a;", W, &[W], &[(&[f(2.0)], f(1.0)), (&[f(-2.0)], 0), (&[NAN], 0)]);
    check("cvt.ftz.f32.f32 $d, $a;", W, &[W], &[(&[0x8000_0001], 0x8000_0000)]);
    check("cvt.f64.f16 $d, $a;", L, &[H], &[(&[0x3555], d(0.333_251_953_125))]);
    check(
        "cvt.rn.f16.f64 $d, $a;",
        H,
        &[L],
        &[(&[d(1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40))], 0x3c01), (&[d(1.0 + f64::powi(2.0, -11))], 0x3c00)],
    );
}

/// A register that is wider than the type gives its low bits.
#[test]
fn wide_registers() {
    let body = "ld.param.u64 %d1, [p0]; ld.global.s8 %r1, [%d1]; st.global.u32 [%d1+4], %r1; ld.global.s16 %d2, [%d1];\n\
        st.global.u32 [%d1+8], %d2; st.global.u8 [%d1+12], %r1; ld.global.u8 %h1, [%d1+1]; st.global.b8 [%d1+13], %h1; ret;";
    let out = try_run(body, "", Launch::threads(1, 1), &[words(&[0x80ff, 0, 0, 0])]).expect("it runs");
    assert_eq!(as_words(&out[0]), [0x80ff, 0xffff_ffff, 0xffff_80ff, 0x80ff]);
}
