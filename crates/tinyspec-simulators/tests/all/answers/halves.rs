use super::{NAN, check, f};

const W: &str = "b32";
const H: &str = "b16";
const L: &str = "b64";

#[test]
fn f16() {
    check(
        "add.rn.f16 $d, $a, $b;",
        H,
        &[H, H],
        &[
            (&[0x3c00, 0x4000], 0x4200),
            (&[0x7bff, 0x7bff], 0x7c00),
            (&[0x7c00, 0xfc00], 0x7fff),
            (&[0x0001, 0x0001], 0x0002),
            (&[0x6800, 0x3c00], 0x6800),
            (&[0x6801, 0x3c00], 0x6802),
        ],
    );
    check("add.rn.ftz.f16 $d, $a, $b;", H, &[H, H], &[(&[0x0001, 0x0001], 0)]);
    check(
        "add.rn.sat.f16 $d, $a, $b;",
        H,
        &[H, H],
        &[(&[0x3c00, 0x4000], 0x3c00), (&[0xbc00, 0], 0), (&[0x7e00, 0], 0)],
    );
    check("sub.rn.f16 $d, $a, $b;", H, &[H, H], &[(&[0x3c00, 0x4000], 0xbc00)]);
    check(
        "mul.rn.f16 $d, $a, $b;",
        H,
        &[H, H],
        &[(&[0x3c01, 0x3c01], 0x3c02), (&[0x0001, 0x3800], 0), (&[0x0003, 0x3800], 2), (&[0x7c00, 0], 0x7fff)],
    );
    // 1 + 2^-10 squared, less 1 + 2^-9, is 2^-20.
    check(
        "fma.rn.f16 $d, $a, $b, $c;",
        H,
        &[H; 3],
        &[(&[0x3c01, 0x3c01, 0xbc02], 0x0010), (&[0x7bff, 0x4000, 0xfbff], 0x7bff)],
    );
    check("fma.rn.relu.f16 $d, $a, $b, $c;", H, &[H; 3], &[(&[0x3c00, 0xbc00, 0], 0), (&[0x3c00, 0x3c00, 0], 0x3c00)]);
    check("min.f16 $d, $a, $b;", H, &[H, H], &[(&[0x7e00, 0x3c00], 0x3c00), (&[0, 0x8000], 0x8000)]);
    check("max.NaN.f16 $d, $a, $b;", H, &[H, H], &[(&[0x7e00, 0x3c00], 0x7fff), (&[0x4000, 0x3c00], 0x4000)]);
    check("neg.f16 $d, $a;", H, &[H], &[(&[0], 0x8000)]);
    check("abs.f16 $d, $a;", H, &[H], &[(&[0xbc00], 0x3c00)]);
    check("ex2.approx.f16 $d, $a;", H, &[H], &[(&[0x4200], 0x4800)]);
    check("tanh.approx.f16 $d, $a;", H, &[H], &[(&[0x7c00], 0x3c00)]);
    check("add.rn.f16x2 $d, $a, $b;", W, &[W, W], &[(&[0x3c00_0001, 0x4000_0001], 0x4200_0002)]);
    check("fma.rn.f16x2 $d, $a, $b, $c;", W, &[W; 3], &[(&[0x3c00_4000, 0x3c00_4000, 0x3c00_0000], 0x4000_4400)]);
    check("max.f16x2 $d, $a, $b;", W, &[W, W], &[(&[0x3c00_7e00, 0x4000_0001], 0x4000_0001)]);
    check("neg.f16x2 $d, $a;", W, &[W], &[(&[0x3c00_8000], 0xbc00_0000)]);
}

#[test]
fn bf16() {
    check(
        "add.rn.bf16 $d, $a, $b;",
        H,
        &[H, H],
        &[
            (&[0x3f80, 0x4000], 0x4040),
            (&[0x7f7f, 0x7f7f], 0x7f80),
            (&[0x4380, 0x3f80], 0x4380),
            (&[0x4381, 0x3f80], 0x4382),
            (&[0x7f80, 0xff80], 0x7fff),
            (&[0x3f80, 0x0001], 0x3f80),
        ],
    );
    check("sub.rn.bf16 $d, $a, $b;", H, &[H, H], &[(&[0x3f80, 0x4000], 0xbf80)]);
    check(
        "mul.rn.bf16 $d, $a, $b;",
        H,
        &[H, H],
        &[(&[0x3f81, 0x3f81], 0x3f82), (&[0x0001, 0x3f00], 0), (&[0x0003, 0x3f00], 2)],
    );
    check(
        "fma.rn.bf16 $d, $a, $b, $c;",
        H,
        &[H; 3],
        &[(&[0x3f81, 0x3f81, 0xbf82], 0x3880), (&[0x3f80, 0x3f80, 0x0001], 0x3f80)],
    );
    check("fma.rn.bf16x2 $d, $a, $b, $c;", W, &[W; 3], &[(&[0x3f80_4000, 0x3f80_4000, 0x3f80_0000], 0x4000_4080)]);
    check("max.bf16 $d, $a, $b;", H, &[H, H], &[(&[0x7fc0, 0x3f80], 0x3f80)]);
    check("min.NaN.bf16x2 $d, $a, $b;", W, &[W, W], &[(&[0x7fc0_3f80, 0x3f80_4000], 0x7fff_3f80)]);
    check("abs.bf16x2 $d, $a;", W, &[W], &[(&[0xbf80_8000], 0x3f80_0000)]);
}

#[test]
fn ties_overflow_subnormals_and_nan() {
    // Ties to even: 1 + 2^-11 lies between 1 and 1 + 2^-10.
    let tie = f(1.0 + f32::powi(2.0, -11));
    check(
        "cvt.rn.f16.f32 $d, $a;",
        H,
        &[W],
        &[
            (&[tie], 0x3c00),
            (&[tie + 1], 0x3c01),
            (&[f(1.0 + 3.0 * f32::powi(2.0, -11))], 0x3c02),
            (&[f(65519.0)], 0x7bff),
            (&[f(65520.0)], 0x7c00),
            (&[f(f32::powi(2.0, -25))], 0),
            (&[f(f32::powi(2.0, -25)) + 1], 1),
            (&[f(-1e-10)], 0x8000),
            (&[NAN], 0x7fff),
        ],
    );
    check("cvt.rz.f16.f32 $d, $a;", H, &[W], &[(&[f(65535.0)], 0x7bff), (&[tie + 1], 0x3c00)]);
    check(
        "cvt.rn.bf16.f32 $d, $a;",
        H,
        &[W],
        &[
            (&[0x3f80_8000], 0x3f80),
            (&[0x3f80_8001], 0x3f81),
            (&[0x3f81_8000], 0x3f82),
            (&[0x7f7f_ffff], 0x7f80),
            (&[0x0000_8000], 0),
            (&[0x0000_8001], 1),
            (&[0xffc0_0000], 0x7fff),
        ],
    );
    check(
        "cvt.f32.f16 $d, $a;",
        W,
        &[H],
        &[
            (&[1], f(f32::powi(2.0, -24))),
            (&[0x7c00], f(f32::INFINITY)),
            (&[0xfc00], f(f32::NEG_INFINITY)),
            (&[0x7c01], NAN),
            (&[0x8000], 1 << 31),
            (&[0x7bff], f(65504.0)),
            (&[0x03ff], f(1023.0 * f32::powi(2.0, -24))),
        ],
    );
    check("cvt.f32.bf16 $d, $a;", W, &[H], &[(&[0x3f80], f(1.0)), (&[1], 0x0001_0000), (&[0x7f81], NAN)]);
    check("cvt.rn.f16x2.f32 $d, $a, $b;", W, &[W, W], &[(&[f(1.0), f(2.0)], 0x3c00_4000)]);
    check("cvt.rn.bf16x2.f32 $d, $a, $b;", W, &[W, W], &[(&[f(1.0), f(2.0)], 0x3f80_4000)]);
    check("cvt.rn.relu.f16.f32 $d, $a;", H, &[W], &[(&[f(-1.0)], 0), (&[f(1.0)], 0x3c00)]);
    check(
        "cvt.rn.satfinite.e4m3x2.f32 $d, $a, $b;",
        H,
        &[W, W],
        &[
            (&[f(1.0), f(448.0)], 0x387e),
            (&[f(1e9), f(-1e9)], 0x7efe),
            (&[NAN, f(0.0)], 0x7f00),
            (&[f(f32::INFINITY), f(f32::powi(2.0, -9))], 0x7e01),
            (&[f(17.0), f(19.0)], 0x585a),
        ],
    );
    check(
        "cvt.rn.satfinite.e5m2x2.f32 $d, $a, $b;",
        H,
        &[W, W],
        &[(&[f(1.0), f(57344.0)], 0x3c7b), (&[f(1e9), f(f32::powi(2.0, -16))], 0x7b01)],
    );
    check("cvt.rn.f16x2.e4m3x2 $d, $a;", W, &[H], &[(&[0x387e], 0x3c00_5f00), (&[0x7f01], 0x7fff_1800)]);
    check("cvt.rn.f16x2.e5m2x2 $d, $a;", W, &[H], &[(&[0x3c7c], 0x3c00_7c00)]);
    check("cvt.rna.tf32.f32 $d, $a;", W, &[W], &[(&[0x3f80_1000], 0x3f80_2000), (&[0x3f80_0fff], 0x3f80_0000)]);
}

/// Every 16-bit float goes to f32 and back unchanged.
#[test]
fn every_half_survives() {
    for (up, down, exponent, nan) in
        [("cvt.f32.f16", "cvt.rn.f16.f32", 0x7c00u64, 0x7fffu64), ("cvt.f32.bf16", "cvt.rn.bf16.f32", 0x7f80, 0x7fff)]
    {
        let body = format!(
            "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.s32 %r2, %r1, 1024, %r0; cvt.u16.u32 %h1, %r2;\n\
             {up} %r3, %h1; {down} %h2, %r3; ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r2, 2, %d1; st.global.b16 [%d2], %h2; ret;"
        );
        let out = super::try_run(&body, "", super::Launch::threads(64, 1024), &[vec![0; 1 << 17]]).expect("it runs");
        for (bits, got) in out[0].chunks_exact(2).enumerate() {
            let is_nan = bits as u64 & 0x7fff > exponent;
            let want = if is_nan { nan } else { bits as u64 };
            assert_eq!(u64::from(u16::from_le_bytes([got[0], got[1]])), want, "{up} of {bits:#x}");
        }
    }
}

/// f32 results of narrower operands, rounded once.
#[test]
fn mixed() {
    // 1 + 2^-24 rounds to 1; 1 + 2^-23 is the next f32.
    check("add.rn.f32.f16 $d, $a, $b;", W, &[H, W], &[(&[0x3c00, 0x3380_0000], 0x3f80_0000)]);
    check("add.rn.f32.f16 $d, $a, $b;", W, &[H, W], &[(&[0x3c00, 0x3400_0000], 0x3f80_0001)]);
    check("sub.rn.f32.f16 $d, $a, $b;", W, &[H, W], &[(&[0x4000, 0x3f80_0000], 0x3f80_0000)]);
    check("add.rn.f32.bf16 $d, $a, $b;", W, &[H, W], &[(&[0x3f80, 0x4000_0000], 0x4040_0000)]);
    // 1.5 · -2 + 0.25
    check("fma.rn.f32.f16 $d, $a, $b, $c;", W, &[H, H, W], &[(&[0x3e00, 0xc000, 0x3e80_0000], 0xc030_0000)]);
    // The least subnormal of f16 is a normal f32.
    check("add.rn.f32.f16 $d, $a, $b;", W, &[H, W], &[(&[0x0001, 0], 0x3380_0000)]);
}

/// Two f32 in a register.
#[test]
fn pairs_of_words() {
    let (one, two, three) = (0x3f80_0000u64, 0x4000_0000, 0x4040_0000);
    let pair = |low: u64, high: u64| low | high << 32;
    check("add.rn.f32x2 $d, $a, $b;", L, &[L, L], &[(&[pair(one, two), pair(two, one)], pair(three, three))]);
    check("sub.rn.f32x2 $d, $a, $b;", L, &[L, L], &[(&[pair(three, two), pair(two, two)], pair(one, 0))]);
    check("mul.rn.f32x2 $d, $a, $b;", L, &[L, L], &[(&[pair(one, two), pair(three, one)], pair(three, two))]);
    let expected = pair(three, 0x4080_0000);
    check(
        "fma.rn.f32x2 $d, $a, $b, $c;",
        L,
        &[L; 3],
        &[(&[pair(one, one), pair(two, three), pair(one, one)], expected)],
    );
}
