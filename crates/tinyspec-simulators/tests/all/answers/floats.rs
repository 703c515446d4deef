use super::{NAN, check, d, f};

const W: &str = "b32";
const L: &str = "b64";
const INF: f32 = f32::INFINITY;
/// The smallest subnormal f32.
const TINY: u64 = 1;

#[test]
fn sums_and_products_of_f32() {
    check(
        "add.rn.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[
            (&[f(1.0), f(2.0)], f(3.0)),
            (&[f(16_777_216.0), f(1.0)], f(16_777_216.0)),
            (&[f(16_777_218.0), f(1.0)], f(16_777_220.0)),
            (&[f(INF), f(-INF)], NAN),
            (&[f(0.0), f(-0.0)], f(0.0)),
            (&[f(-0.0), f(-0.0)], f(-0.0)),
            (&[TINY, TINY], 2),
            (&[f(f32::MAX), f(f32::MAX)], f(INF)),
            (&[0x7f80_0001, f(1.0)], NAN),
        ],
    );
    check("add.rn.ftz.f32 $d, $a, $b;", W, &[W, W], &[(&[TINY, TINY], 0), (&[0x8000_0001, 0x8000_0000], 0x8000_0000)]);
    check(
        "add.rn.sat.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[(&[f(1.0), f(2.0)], f(1.0)), (&[f(-1.0), f(0.5)], 0), (&[NAN, f(1.0)], 0)],
    );
    let above = f(16_777_216.0) + 1;
    check(
        "add.rz.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[
            (&[f(16_777_216.0), f(1.0)], f(16_777_216.0)),
            (&[f(-16_777_216.0), f(-1.0)], f(-16_777_216.0)),
            (&[f(f32::MAX), f(f32::MAX)], f(f32::MAX)),
        ],
    );
    check("add.rp.f32 $d, $a, $b;", W, &[W, W], &[(&[f(16_777_216.0), f(1.0)], above), (&[f(1.0), TINY], f(1.0) + 1)]);
    check(
        "add.rm.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[
            (&[f(-16_777_216.0), f(-1.0)], above | 1 << 31),
            (&[f(1.0), f(-1.0)], f(-0.0)),
            (&[f(1.0), 0x8000_0001], f(1.0) - 1),
        ],
    );
    check(
        "sub.rn.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[(&[f(1.0), f(2.0)], f(-1.0)), (&[f(INF), f(INF)], NAN), (&[f(-0.0), f(0.0)], f(-0.0))],
    );
    check(
        "mul.rn.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[
            (&[f(3.0), f(-0.0)], f(-0.0)),
            (&[f(INF), f(0.0)], NAN),
            (&[f(1e-30), f(1e-30)], 0),
            (&[TINY, f(0.5)], 0),
            (&[3, f(0.5)], 2),
        ],
    );
    check("mul.rn.ftz.f32 $d, $a, $b;", W, &[W, W], &[(&[3, f(1e10)], 0), (&[0x0080_0000, f(0.5)], 0)]);
    check("mul.rp.f32 $d, $a, $b;", W, &[W, W], &[(&[TINY, f(0.5)], 1), (&[f(1e-30), f(1e-30)], 1)]);
    check("mul.rz.f32 $d, $a, $b;", W, &[W, W], &[(&[f(1.0) + 1, f(1.0) + 1], f(1.0) + 2)]);
}

#[test]
fn fused_products() {
    let e = f(1.0) + 1;
    // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46
    check(
        "fma.rn.f32 $d, $a, $b, $c;",
        W,
        &[W; 3],
        &[
            (&[e, e, f(-1.0) + 2], f(f32::powi(2.0, -46))),
            (&[f(INF), f(0.0), f(1.0)], NAN),
            (&[f(1e30), f(1e30), f(-INF)], f(-INF)),
            (&[f(-1.0), f(0.0), f(-0.0)], f(-0.0)),
        ],
    );
    check(
        "fma.rz.f32 $d, $a, $b, $c;",
        W,
        &[W; 3],
        &[(&[e, e, f(0.0)], f(1.0) + 2), (&[f(1.0), f(1.0), 0x8000_0001], f(1.0) - 1)],
    );
    check(
        "fma.rp.f32 $d, $a, $b, $c;",
        W,
        &[W; 3],
        &[(&[e, e, f(0.0)], f(1.0) + 3), (&[f(1.0), f(1.0), TINY], f(1.0) + 1)],
    );
    check("fma.rn.ftz.f32 $d, $a, $b, $c;", W, &[W; 3], &[(&[f(1.0), TINY, f(0.0)], 0)]);
    check("fma.rn.sat.f32 $d, $a, $b, $c;", W, &[W; 3], &[(&[f(2.0), f(2.0), f(0.0)], f(1.0))]);
    check("mad.rn.f32 $d, $a, $b, $c;", W, &[W; 3], &[(&[f(2.0), f(3.0), f(4.0)], f(10.0))]);
    let e = d(1.0) + 1;
    check("fma.rn.f64 $d, $a, $b, $c;", L, &[L; 3], &[(&[e, e, d(-1.0) + 2], d(f64::powi(2.0, -104)))]);
}

#[test]
fn quotients_and_roots_of_f32() {
    check(
        "div.rn.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[
            (&[f(1.0), f(3.0)], 0x3eaa_aaab),
            (&[f(1.0), f(0.0)], f(INF)),
            (&[f(-1.0), f(0.0)], f(-INF)),
            (&[f(0.0), f(0.0)], NAN),
            (&[TINY, f(2.0)], 0),
            (&[3, f(2.0)], 2),
        ],
    );
    check("div.rz.f32 $d, $a, $b;", W, &[W, W], &[(&[f(1.0), f(3.0)], 0x3eaa_aaaa), (&[f(2.0), f(3.0)], 0x3f2a_aaaa)]);
    check("div.rp.f32 $d, $a, $b;", W, &[W, W], &[(&[f(-1.0), f(3.0)], 0xbeaa_aaaa), (&[TINY, f(2.0)], 1)]);
    check("div.rm.f32 $d, $a, $b;", W, &[W, W], &[(&[f(-1.0), f(3.0)], 0xbeaa_aaab)]);
    check(
        "div.approx.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[(&[f(6.0), f(3.0)], f(2.0)), (&[f(1.0), f(f32::MAX)], 0), (&[f(INF), f(f32::MAX)], NAN)],
    );
    check("div.full.f32 $d, $a, $b;", W, &[W, W], &[(&[f(6.0), f(3.0)], f(2.0))]);
    check(
        "rcp.rn.f32 $d, $a;",
        W,
        &[W],
        &[(&[f(3.0)], 0x3eaa_aaab), (&[f(-0.0)], f(-INF)), (&[f(INF)], 0), (&[NAN], NAN)],
    );
    check("rcp.rz.f32 $d, $a;", W, &[W], &[(&[f(3.0)], 0x3eaa_aaaa)]);
    check("rcp.approx.ftz.f32 $d, $a;", W, &[W], &[(&[f(4.0)], f(0.25)), (&[TINY], f(INF)), (&[f(f32::MAX)], 0)]);
    check(
        "sqrt.rn.f32 $d, $a;",
        W,
        &[W],
        &[
            (&[f(2.0)], 0x3fb5_04f3),
            (&[f(-1.0)], NAN),
            (&[f(-0.0)], f(-0.0)),
            (&[f(INF)], f(INF)),
            (&[TINY], 0x1a35_04f3),
        ],
    );
    check("sqrt.rz.f32 $d, $a;", W, &[W], &[(&[f(2.0)], 0x3fb5_04f3), (&[f(3.0)], 0x3fdd_b3d7)]);
    check("sqrt.rp.f32 $d, $a;", W, &[W], &[(&[f(2.0)], 0x3fb5_04f4), (&[f(4.0)], f(2.0))]);
    check("sqrt.approx.f32 $d, $a;", W, &[W], &[(&[f(9.0)], f(3.0))]);
    check(
        "rsqrt.approx.f32 $d, $a;",
        W,
        &[W],
        &[(&[f(4.0)], f(0.5)), (&[f(0.0)], f(INF)), (&[f(-0.0)], f(-INF)), (&[f(-1.0)], NAN), (&[f(INF)], 0)],
    );
}

#[test]
fn approximate_functions() {
    check(
        "ex2.approx.f32 $d, $a;",
        W,
        &[W],
        &[
            (&[f(3.0)], f(8.0)),
            (&[f(-INF)], 0),
            (&[f(INF)], f(INF)),
            (&[NAN], NAN),
            (&[f(-0.0)], f(1.0)),
            (&[f(-149.0)], 1),
        ],
    );
    check("ex2.approx.ftz.f32 $d, $a;", W, &[W], &[(&[f(-149.0)], 0)]);
    check(
        "lg2.approx.f32 $d, $a;",
        W,
        &[W],
        &[(&[f(8.0)], f(3.0)), (&[f(0.0)], f(-INF)), (&[f(-1.0)], NAN), (&[f(INF)], f(INF))],
    );
    check("lg2.approx.ftz.f32 $d, $a;", W, &[W], &[(&[TINY], f(-INF))]);
    check("sin.approx.f32 $d, $a;", W, &[W], &[(&[f(-0.0)], f(-0.0)), (&[f(INF)], NAN)]);
    check("cos.approx.f32 $d, $a;", W, &[W], &[(&[f(0.0)], f(1.0)), (&[f(INF)], NAN)]);
    check("tanh.approx.f32 $d, $a;", W, &[W], &[(&[f(-0.0)], f(-0.0)), (&[f(INF)], f(1.0)), (&[f(-INF)], f(-1.0))]);
}

#[test]
fn minima_and_maxima() {
    check(
        "min.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[
            (&[NAN, f(1.0)], f(1.0)),
            (&[f(1.0), NAN], f(1.0)),
            (&[NAN, NAN], NAN),
            (&[f(0.0), f(-0.0)], f(-0.0)),
            (&[f(-0.0), f(0.0)], f(-0.0)),
            (&[f(2.0), f(1.0)], f(1.0)),
        ],
    );
    check(
        "max.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[
            (&[NAN, f(1.0)], f(1.0)),
            (&[f(0.0), f(-0.0)], f(0.0)),
            (&[f(-0.0), f(0.0)], f(0.0)),
            (&[f(-INF), f(1.0)], f(1.0)),
        ],
    );
    check(
        "min.NaN.f32 $d, $a, $b;",
        W,
        &[W, W],
        &[(&[NAN, f(1.0)], NAN), (&[f(1.0), 0xffc0_0000], NAN), (&[f(1.0), f(2.0)], f(1.0))],
    );
    check("max.NaN.f32 $d, $a, $b;", W, &[W, W], &[(&[NAN, f(1.0)], NAN), (&[f(-0.0), f(0.0)], f(0.0))]);
    check("max.ftz.f32 $d, $a, $b;", W, &[W, W], &[(&[TINY, f(0.0)], 0)]);
    check("min.f64 $d, $a, $b;", L, &[L, L], &[(&[d(f64::NAN), d(1.0)], d(1.0)), (&[d(0.0), d(-0.0)], d(-0.0))]);
    check("max.f64 $d, $a, $b;", L, &[L, L], &[(&[d(1.0), d(f64::NAN)], d(1.0)), (&[d(-0.0), d(0.0)], d(0.0))]);
}

#[test]
fn signs() {
    check("abs.f32 $d, $a;", W, &[W], &[(&[f(-0.0)], 0), (&[f(-INF)], f(INF)), (&[0x8000_0001], 1)]);
    check("abs.ftz.f32 $d, $a;", W, &[W], &[(&[0x8000_0001], 0)]);
    check("neg.f32 $d, $a;", W, &[W], &[(&[f(0.0)], f(-0.0)), (&[f(INF)], f(-INF))]);
    check("abs.f64 $d, $a;", L, &[L], &[(&[d(-2.5)], d(2.5))]);
    check("neg.f64 $d, $a;", L, &[L], &[(&[d(0.0)], d(-0.0))]);
    check("copysign.f32 $d, $a, $b;", W, &[W, W], &[(&[f(-1.0), f(5.0)], f(-5.0)), (&[f(1.0), f(-5.0)], f(5.0))]);
    check("copysign.f64 $d, $a, $b;", L, &[L, L], &[(&[d(-0.0), d(5.0)], d(-5.0))]);
}

#[test]
fn f64_arithmetic() {
    check(
        "add.rn.f64 $d, $a, $b;",
        L,
        &[L, L],
        &[(&[d(1.0), d(f64::EPSILON / 2.0)], d(1.0)), (&[d(0.1), d(0.2)], d(0.1 + 0.2)), (&[1, 1], 2)],
    );
    check("sub.rn.f64 $d, $a, $b;", L, &[L, L], &[(&[d(1.0), d(3.0)], d(-2.0))]);
    check(
        "mul.rn.f64 $d, $a, $b;",
        L,
        &[L, L],
        &[(&[d(1e200), d(1e200)], d(f64::INFINITY)), (&[d(3.0), d(-0.0)], d(-0.0))],
    );
    check(
        "div.rn.f64 $d, $a, $b;",
        L,
        &[L, L],
        &[(&[d(1.0), d(3.0)], 0x3fd5_5555_5555_5555), (&[d(1.0), d(-0.0)], d(f64::NEG_INFINITY))],
    );
    check("sqrt.rn.f64 $d, $a;", L, &[L], &[(&[d(2.0)], 0x3ff6_a09e_667f_3bcd)]);
    check("rcp.rn.f64 $d, $a;", L, &[L], &[(&[d(3.0)], 0x3fd5_5555_5555_5555)]);
}

#[test]
fn comparisons_of_floats() {
    let rows = [
        ("eq", [1, 0, 0, 0]),
        ("ne", [0, 1, 1, 0]),
        ("lt", [0, 1, 0, 0]),
        ("le", [1, 1, 0, 0]),
        ("gt", [0, 0, 1, 0]),
        ("ge", [1, 0, 1, 0]),
        ("equ", [1, 0, 0, 1]),
        ("neu", [0, 1, 1, 1]),
        ("ltu", [0, 1, 0, 1]),
        ("leu", [1, 1, 0, 1]),
        ("gtu", [0, 0, 1, 1]),
        ("geu", [1, 0, 1, 1]),
        ("num", [1, 1, 1, 0]),
        ("nan", [0, 0, 0, 1]),
    ];
    for (comparison, [equal, less, greater, unordered]) in rows {
        let (a, b) = (f(1.0), f(2.0));
        check(
            &format!("setp.{comparison}.f32 $d, $a, $b;"),
            "pred",
            &[W, W],
            &[
                (&[f(0.0), f(-0.0)], equal),
                (&[a, b], less),
                (&[b, a], greater),
                (&[NAN, a], unordered),
                (&[a, NAN], unordered),
            ],
        );
        let (a, b) = (d(1.0), d(2.0));
        check(
            &format!("setp.{comparison}.f64 $d, $a, $b;"),
            "pred",
            &[L, L],
            &[(&[a, a], equal), (&[a, b], less), (&[b, a], greater), (&[d(f64::NAN), a], unordered)],
        );
        let (a, b, nan) = (0x3c00, 0x4000, 0x7e00);
        check(
            &format!("setp.{comparison}.f16 $d, $a, $b;"),
            "pred",
            &["b16", "b16"],
            &[(&[0, 0x8000], equal), (&[a, b], less), (&[b, a], greater), (&[nan, a], unordered)],
        );
        // Two at once: the predicate of the low ones, and that of the high ones.
        let pair = |low: u64, high: u64| high << 16 | low;
        let both = [pair(a, nan), pair(b, a)];
        check(&format!("setp.{comparison}.f16x2 $d|%p8, $a, $b;"), "pred", &[W, W], &[(&both, less)]);
        check(&format!("setp.{comparison}.f16x2 %p8|$d, $a, $b;"), "pred", &[W, W], &[(&both, unordered)]);
        let (a, b, nan) = (0x3f80, 0x4000, 0x7fc0);
        check(
            &format!("setp.{comparison}.bf16 $d, $a, $b;"),
            "pred",
            &["b16", "b16"],
            &[(&[0, 0x8000], equal), (&[a, b], less), (&[b, a], greater), (&[nan, a], unordered)],
        );
    }
    check("setp.gt.ftz.f32 $d, $a, $b;", "pred", &[W, W], &[(&[1, 0], 0)]);
    let both = [0x4000_3f80, 0x3f80_4000];
    check("setp.lt.or.bf16x2 $d|%p8, $a, $b, %p9;", "pred", &[W, W], &[(&both, 1)]);
}

#[test]
fn properties() {
    let rows: [(&str, [u64; 5]); 6] = [
        ("finite", [1, 1, 0, 0, 1]),
        ("infinite", [0, 0, 1, 0, 0]),
        ("number", [1, 1, 1, 0, 1]),
        ("notanumber", [0, 0, 0, 1, 0]),
        ("normal", [1, 0, 0, 0, 0]),
        ("subnormal", [0, 0, 0, 0, 1]),
    ];
    for (property, want) in rows {
        let values = [f(1.0), f(-0.0), f(-INF), NAN, TINY];
        let operands: Vec<[u64; 1]> = values.iter().map(|&value| [value]).collect();
        let table: Vec<(&[u64], u64)> = operands.iter().zip(want).map(|(value, want)| (&value[..], want)).collect();
        check(&format!("testp.{property}.f32 $d, $a;"), "pred", &[W], &table);
    }
    check("testp.infinite.f64 $d, $a;", "pred", &[L], &[(&[d(f64::INFINITY)], 1), (&[d(1.0)], 0)]);
}
