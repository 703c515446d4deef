use super::check;

const W: &str = "b32";
const L: &str = "b64";
const H: &str = "b16";
const MIN: u64 = 0x8000_0000;
const MAX: u64 = 0x7fff_ffff;
const ONES: u64 = 0xffff_ffff;
const MIN64: u64 = 1 << 63;

#[test]
fn sums_and_differences() {
    check("add.s32 $d, $a, $b;", W, &[W, W], &[(&[1, 2], 3), (&[MAX, 1], MIN), (&[ONES, 1], 0)]);
    check("add.u32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 2], 1)]);
    check("add.s16 $d, $a, $b;", H, &[H, H], &[(&[0x7fff, 1], 0x8000), (&[0xffff, 1], 0)]);
    check("add.u16 $d, $a, $b;", H, &[H, H], &[(&[0xffff, 3], 2)]);
    check("add.s64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, 1], 0), (&[ONES, 1], 1 << 32)]);
    check("add.u64 $d, $a, $b;", L, &[L, L], &[(&[MIN64, MIN64], 0)]);
    check("sub.s32 $d, $a, $b;", W, &[W, W], &[(&[0, 1], ONES), (&[MIN, 1], MAX)]);
    check("sub.u16 $d, $a, $b;", H, &[H, H], &[(&[0, 1], 0xffff)]);
    check("sub.s64 $d, $a, $b;", L, &[L, L], &[(&[0, 1], u64::MAX)]);
    check("add.sat.s32 $d, $a, $b;", W, &[W, W], &[(&[MAX, 1], MAX), (&[MIN, ONES], MIN), (&[5, 6], 11)]);
    check("sub.sat.s32 $d, $a, $b;", W, &[W, W], &[(&[MIN, 1], MIN), (&[MAX, ONES], MAX)]);
    check("neg.s32 $d, $a;", W, &[W], &[(&[1], ONES), (&[MIN], MIN)]);
    check("neg.s16 $d, $a;", H, &[H], &[(&[1], 0xffff), (&[0x8000], 0x8000)]);
    check("neg.s64 $d, $a;", L, &[L], &[(&[1], u64::MAX), (&[MIN64], MIN64)]);
    check("abs.s32 $d, $a;", W, &[W], &[(&[ONES], 1), (&[MIN], MIN), (&[7], 7)]);
    check("abs.s16 $d, $a;", H, &[H], &[(&[0xfffe], 2)]);
    check("abs.s64 $d, $a;", L, &[L], &[(&[u64::MAX - 4], 5)]);
    check("add.u16x2 $d, $a, $b;", W, &[W, W], &[(&[0xffff_ffff, 0x0001_0002], 0x0000_0001)]);
}

#[test]
fn products() {
    check("mul.lo.s32 $d, $a, $b;", W, &[W, W], &[(&[0x1_0000, 0x1_0000], 0), (&[ONES, ONES], 1), (&[7, 6], 42)]);
    check("mul.lo.u16 $d, $a, $b;", H, &[H, H], &[(&[0x101, 0x101], 0x201), (&[0xffff, 0xffff], 1)]);
    check("mul.lo.s64 $d, $a, $b;", L, &[L, L], &[(&[ONES, ONES], 0xffff_fffe_0000_0001)]);
    check("mul.hi.u32 $d, $a, $b;", W, &[W, W], &[(&[ONES, ONES], 0xffff_fffe), (&[MIN, 2], 1)]);
    check("mul.hi.s32 $d, $a, $b;", W, &[W, W], &[(&[ONES, ONES], 0), (&[MIN, 2], ONES), (&[MIN, MIN], 0x4000_0000)]);
    check("mul.hi.u16 $d, $a, $b;", H, &[H, H], &[(&[0xffff, 0xffff], 0xfffe)]);
    check("mul.hi.s16 $d, $a, $b;", H, &[H, H], &[(&[0xffff, 0xffff], 0), (&[0x8000, 2], 0xffff)]);
    check("mul.hi.u64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, u64::MAX], u64::MAX - 1)]);
    check("mul.hi.s64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, u64::MAX], 0), (&[MIN64, 2], u64::MAX)]);
    check("mul.wide.u32 $d, $a, $b;", L, &[W, W], &[(&[ONES, ONES], 0xffff_fffe_0000_0001)]);
    check("mul.wide.s32 $d, $a, $b;", L, &[W, W], &[(&[ONES, 2], u64::MAX - 1), (&[MIN, MIN], 1 << 62)]);
    check("mul.wide.u16 $d, $a, $b;", W, &[H, H], &[(&[0xffff, 0xffff], 0xfffe_0001)]);
    check("mul.wide.s16 $d, $a, $b;", W, &[H, H], &[(&[0xffff, 2], 0xffff_fffe)]);
    check("mad.lo.s32 $d, $a, $b, $c;", W, &[W; 3], &[(&[3, 4, 5], 17), (&[MIN, 2, 1], 1)]);
    check("mad.lo.u16 $d, $a, $b, $c;", H, &[H; 3], &[(&[0x100, 0x100, 9], 9)]);
    check("mad.lo.s64 $d, $a, $b, $c;", L, &[L; 3], &[(&[u64::MAX, 2, 5], 3)]);
    check("mad.hi.u32 $d, $a, $b, $c;", W, &[W; 3], &[(&[ONES, ONES, 3], 1)]);
    check("mad.hi.s32 $d, $a, $b, $c;", W, &[W; 3], &[(&[ONES, ONES, 3], 3)]);
    check("mad.hi.u64 $d, $a, $b, $c;", L, &[L; 3], &[(&[MIN64, 4, 3], 5)]);
    check("mad.wide.u32 $d, $a, $b, $c;", L, &[W, W, L], &[(&[ONES, 2, 1], 0x1_ffff_ffff)]);
    check("mad.wide.s32 $d, $a, $b, $c;", L, &[W, W, L], &[(&[ONES, 2, 1], u64::MAX)]);
    check("mad.wide.s16 $d, $a, $b, $c;", W, &[H, H, W], &[(&[0xffff, 3, 1], 0xffff_fffe)]);
    check("dp4a.s32.s32 $d, $a, $b, $c;", W, &[W; 3], &[(&[0xff01_02fe, 0x0101_0101, 10], 10)]);
    check("dp4a.u32.u32 $d, $a, $b, $c;", W, &[W; 3], &[(&[0xff01_02fe, 0x0101_0101, 10], 10 + 255 + 1 + 2 + 254)]);
}

#[test]
fn quotients_truncate() {
    let minus = |value: u64| value.wrapping_neg() & ONES;
    let rows: &[(&[u64], u64)] =
        &[(&[7, 2], 3), (&[minus(7), 2], minus(3)), (&[7, minus(2)], minus(3)), (&[MIN, ONES], MIN)];
    check("div.s32 $d, $a, $b;", W, &[W, W], rows);
    let rows: &[(&[u64], u64)] = &[(&[7, 2], 1), (&[minus(7), 2], ONES), (&[7, minus(2)], 1), (&[MIN, ONES], 0)];
    check("rem.s32 $d, $a, $b;", W, &[W, W], rows);
    check("div.u32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 2], MAX)]);
    check("rem.u32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 10], 5)]);
    check("div.u16 $d, $a, $b;", H, &[H, H], &[(&[0xffff, 2], 0x7fff)]);
    check("div.s16 $d, $a, $b;", H, &[H, H], &[(&[0xfff9, 2], 0xfffd), (&[0x8000, 0xffff], 0x8000)]);
    check("rem.s16 $d, $a, $b;", H, &[H, H], &[(&[0xfff9, 2], 0xffff)]);
    check("rem.u16 $d, $a, $b;", H, &[H, H], &[(&[0xfff9, 10], 9)]);
    check("div.u64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, 2], MIN64 - 1)]);
    check(
        "div.s64 $d, $a, $b;",
        L,
        &[L, L],
        &[(&[u64::MAX - 6, 2], 0u64.wrapping_sub(3)), (&[MIN64, u64::MAX], MIN64)],
    );
    check("rem.s64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX - 6, 2], u64::MAX)]);
    check("rem.u64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, 16], 15)]);
}

#[test]
fn minima_and_maxima() {
    check("min.s32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 1], ONES), (&[2, 1], 1)]);
    check("min.u32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 1], 1)]);
    check("max.s32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 1], 1)]);
    check("max.u32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 1], ONES)]);
    check("min.s16 $d, $a, $b;", H, &[H, H], &[(&[0xffff, 1], 0xffff)]);
    check("max.u16 $d, $a, $b;", H, &[H, H], &[(&[0xffff, 1], 0xffff)]);
    check("max.s64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, 1], 1)]);
    check("min.u64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, 1], 1)]);
    check("max.s16x2 $d, $a, $b;", W, &[W, W], &[(&[0xffff_0002, 0x0001_0001], 0x0001_0002)]);
    check("min.u16x2 $d, $a, $b;", W, &[W, W], &[(&[0xffff_0002, 0x0001_0001], 0x0001_0001)]);
    check("max.relu.s32 $d, $a, $b;", W, &[W, W], &[(&[ONES, MIN], 0), (&[ONES, 2], 2)]);
    check("min.relu.s32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 2], 0), (&[3, 2], 2)]);
    check("max.relu.s16x2 $d, $a, $b;", W, &[W, W], &[(&[0xffff_0002, 0xfffe_0001], 0x0000_0002)]);
    check("min.relu.s16x2 $d, $a, $b;", W, &[W, W], &[(&[0xffff_0002, 0x0001_0001], 0x0000_0001)]);
}

#[test]
fn comparisons() {
    check("setp.lt.s32 $d, $a, $b;", "pred", &[W, W], &[(&[ONES, 1], 1), (&[1, 1], 0), (&[1, ONES], 0)]);
    check("setp.lt.u32 $d, $a, $b;", "pred", &[W, W], &[(&[ONES, 1], 0), (&[1, ONES], 1)]);
    check("setp.lo.u32 $d, $a, $b;", "pred", &[W, W], &[(&[ONES, 1], 0)]);
    check("setp.hs.u64 $d, $a, $b;", "pred", &[L, L], &[(&[u64::MAX, 1], 1)]);
    check("setp.ge.s64 $d, $a, $b;", "pred", &[L, L], &[(&[u64::MAX, 1], 0), (&[1, 1], 1)]);
    check("setp.gt.s16 $d, $a, $b;", "pred", &[H, H], &[(&[0xffff, 1], 0), (&[1, 0xffff], 1)]);
    check("setp.le.u16 $d, $a, $b;", "pred", &[H, H], &[(&[0xffff, 1], 0), (&[1, 1], 1)]);
    check("setp.eq.b16 $d, $a, $b;", "pred", &[H, H], &[(&[0xffff, 0xffff], 1)]);
    check("setp.ne.b64 $d, $a, $b;", "pred", &[L, L], &[(&[1 << 40, 0], 1), (&[3, 3], 0)]);
    check("setp.lt.and.s32 $d, $a, $b, $c;", "pred", &[W, W, "pred"], &[(&[1, 2, 1], 1), (&[1, 2, 0], 0)]);
    check("setp.lt.or.s32 $d, $a, $b, !$c;", "pred", &[W, W, "pred"], &[(&[2, 1, 1], 0), (&[2, 1, 0], 1)]);
    check("setp.lt.xor.s32 $d, $a, $b, $c;", "pred", &[W, W, "pred"], &[(&[1, 2, 1], 0), (&[2, 1, 1], 1)]);
    check("set.lt.u32.s32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 1], ONES), (&[1, 1], 0)]);
    check("set.lt.f32.s32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 1], 0x3f80_0000), (&[1, 1], 0)]);
    check("slct.b32.s32 $d, $a, $b, $c;", W, &[W; 3], &[(&[5, 6, 0], 5), (&[5, 6, ONES], 6)]);
    check(
        "slct.u64.f32 $d, $a, $b, $c;",
        L,
        &[L, L, W],
        &[(&[5, 6, 0x8000_0000], 5), (&[5, 6, 0x7fc0_0000], 6), (&[5, 6, 0xbf80_0000], 6)],
    );
    check("selp.b32 $d, $a, $b, $c;", W, &[W, W, "pred"], &[(&[5, 6, 1], 5), (&[5, 6, 0], 6)]);
    check("selp.b16 $d, $a, $b, $c;", H, &[H, H, "pred"], &[(&[5, 6, 1], 5)]);
    check("selp.f64 $d, $a, $b, $c;", L, &[L, L, "pred"], &[(&[5, 6, 0], 6)]);
}

#[test]
fn predicates() {
    let p = "pred";
    check("and.pred $d, $a, $b;", p, &[p, p], &[(&[1, 1], 1), (&[1, 0], 0), (&[0, 0], 0)]);
    check("or.pred $d, $a, $b;", p, &[p, p], &[(&[1, 1], 1), (&[1, 0], 1), (&[0, 0], 0)]);
    check("xor.pred $d, $a, $b;", p, &[p, p], &[(&[1, 1], 0), (&[1, 0], 1)]);
    check("not.pred $d, $a;", p, &[p], &[(&[1], 0), (&[0], 1)]);
    check("mov.pred $d, $a;", p, &[p], &[(&[1], 1), (&[0], 0)]);
}
