use super::check;

const W: &str = "b32";
const L: &str = "b64";
const H: &str = "b16";
const ONES: u64 = 0xffff_ffff;

#[test]
fn logic() {
    check("and.b32 $d, $a, $b;", W, &[W, W], &[(&[0xff00_ff00, 0x0ff0_0ff0], 0x0f00_0f00)]);
    check("or.b16 $d, $a, $b;", H, &[H, H], &[(&[0xff00, 0x0ff0], 0xfff0)]);
    check("xor.b64 $d, $a, $b;", L, &[L, L], &[(&[u64::MAX, 1], u64::MAX - 1)]);
    check("not.b32 $d, $a;", W, &[W], &[(&[0], ONES)]);
    check("not.b16 $d, $a;", H, &[H], &[(&[1], 0xfffe)]);
    check("not.b64 $d, $a;", L, &[L], &[(&[1], u64::MAX - 1)]);
    check("cnot.b32 $d, $a;", W, &[W], &[(&[0], 1), (&[9], 0)]);
    // 0x96 is the sum of three bits, 0xe8 their majority.
    check("lop3.b32 $d, $a, $b, $c, 0x96;", W, &[W; 3], &[(&[0xf0, 0xcc, 0xaa], 0x96)]);
    check("lop3.b32 $d, $a, $b, $c, 0xe8;", W, &[W; 3], &[(&[0xf0, 0xcc, 0xaa], 0xe8)]);
}

#[test]
fn shifts_clamp() {
    check("shl.b32 $d, $a, $b;", W, &[W, W], &[(&[1, 31], 1 << 31), (&[1, 32], 0), (&[1, ONES], 0), (&[3, 0], 3)]);
    check("shl.b16 $d, $a, $b;", H, &[H, W], &[(&[1, 15], 0x8000), (&[1, 16], 0), (&[0xffff, 4], 0xfff0)]);
    check("shl.b64 $d, $a, $b;", L, &[L, W], &[(&[1, 63], 1 << 63), (&[1, 64], 0)]);
    check("shr.u32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 31], 1), (&[ONES, 32], 0)]);
    check("shr.s32 $d, $a, $b;", W, &[W, W], &[(&[1 << 31, 31], ONES), (&[1 << 31, 99], ONES), (&[64, 99], 0)]);
    check("shr.b32 $d, $a, $b;", W, &[W, W], &[(&[ONES, 4], 0x0fff_ffff)]);
    check("shr.u16 $d, $a, $b;", H, &[H, W], &[(&[0xffff, 15], 1), (&[0xffff, 16], 0)]);
    check("shr.s16 $d, $a, $b;", H, &[H, W], &[(&[0x8000, 15], 0xffff), (&[0x8000, 40], 0xffff)]);
    check("shr.u64 $d, $a, $b;", L, &[L, W], &[(&[u64::MAX, 63], 1), (&[u64::MAX, 64], 0)]);
    check("shr.s64 $d, $a, $b;", L, &[L, W], &[(&[1 << 63, 64], u64::MAX)]);
    check("shf.l.wrap.b32 $d, $a, $b, $c;", W, &[W; 3], &[(&[0x8000_0000, 1, 1], 3), (&[5, 7, 32], 7)]);
    check(
        "shf.l.clamp.b32 $d, $a, $b, $c;",
        W,
        &[W; 3],
        &[(&[0x8000_0000, 1, 1], 3), (&[5, 7, 32], 5), (&[5, 7, 99], 5)],
    );
    check("shf.r.wrap.b32 $d, $a, $b, $c;", W, &[W; 3], &[(&[4, 1, 2], 0x4000_0001), (&[5, 7, 32], 5)]);
    check("shf.r.clamp.b32 $d, $a, $b, $c;", W, &[W; 3], &[(&[5, 7, 32], 7)]);
}

#[test]
fn counts() {
    check("popc.b32 $d, $a;", W, &[W], &[(&[ONES], 32), (&[0], 0), (&[0x8001], 2)]);
    check("popc.b64 $d, $a;", W, &[L], &[(&[u64::MAX], 64)]);
    check("clz.b32 $d, $a;", W, &[W], &[(&[0], 32), (&[1], 31)]);
    check("clz.b64 $d, $a;", W, &[L], &[(&[0], 64), (&[1], 63)]);
    check("brev.b32 $d, $a;", W, &[W], &[(&[1], 1 << 31), (&[0xf], 0xf000_0000)]);
    check("brev.b64 $d, $a;", L, &[L], &[(&[1], 1 << 63)]);
    check("bfind.u32 $d, $a;", W, &[W], &[(&[0], ONES), (&[0x100], 8)]);
    check("bfind.s32 $d, $a;", W, &[W], &[(&[ONES], ONES), (&[0xffff_fffe], 0), (&[0x100], 8)]);
    check("bfind.u64 $d, $a;", W, &[L], &[(&[0], ONES), (&[1 << 40], 40)]);
}

#[test]
fn fields() {
    check(
        "bfe.u32 $d, $a, $b, $c;",
        W,
        &[W; 3],
        &[
            (&[0xabcd, 4, 8], 0xbc),
            (&[ONES, 28, 8], 0xf),
            (&[ONES, 4, 0], 0),
            (&[ONES, 40, 4], 0),
            (&[ONES, 0, 32], ONES),
        ],
    );
    check(
        "bfe.s32 $d, $a, $b, $c;",
        W,
        &[W; 3],
        &[
            (&[0xabcd, 4, 8], 0xffff_ffbc),
            (&[0x0fff, 8, 8], 0xf),
            (&[1 << 31, 40, 4], ONES),
            (&[1 << 31, 28, 8], 0xffff_fff8),
        ],
    );
    check("bfe.u64 $d, $a, $b, $c;", L, &[L, W, W], &[(&[0xabcd << 32, 36, 8], 0xbc), (&[u64::MAX, 0, 64], u64::MAX)]);
    check("bfe.s64 $d, $a, $b, $c;", L, &[L, W, W], &[(&[0xabcd << 32, 36, 8], 0u64.wrapping_sub(0x44))]);
    check(
        "bfi.b32 $d, $a, $b, $c, $e;",
        W,
        &[W; 4],
        &[
            (&[0xff, 0, 4, 8], 0xff0),
            (&[0, ONES, 4, 8], 0xffff_f00f),
            (&[ONES, 0, 28, 8], 0xf000_0000),
            (&[5, 6, 40, 4], 6),
            (&[5, 6, 0, 0], 6),
        ],
    );
    check("bfi.b64 $d, $a, $b, $c, $e;", L, &[L, L, W, W], &[(&[0xff, 0, 36, 8], 0xff << 36)]);
}

#[test]
fn bytes() {
    let pair = [0x3322_1100, 0x7766_5544];
    let row = |selector: u64| [pair[0], pair[1], selector];
    check(
        "prmt.b32 $d, $a, $b, $c;",
        W,
        &[W; 3],
        &[(&row(0x3210), 0x3322_1100), (&row(0x7654), 0x7766_5544), (&row(0x0426), 0x0044_2266)],
    );
    check("prmt.b32 $d, $a, $b, $c;", W, &[W; 3], &[(&[0x80, 0, 0x8888], ONES), (&[0x7f, 0, 0x0008], 0x7f7f_7f00)]);
    check("prmt.b32.f4e $d, $a, $b, $c;", W, &[W; 3], &[(&row(1), 0x4433_2211)]);
    check("prmt.b32.b4e $d, $a, $b, $c;", W, &[W; 3], &[(&row(0), 0x5566_7700)]);
    check("prmt.b32.rc8 $d, $a, $b, $c;", W, &[W; 3], &[(&row(2), 0x2222_2222)]);
    check("prmt.b32.ecl $d, $a, $b, $c;", W, &[W; 3], &[(&row(1), 0x3322_1111)]);
    check("prmt.b32.ecr $d, $a, $b, $c;", W, &[W; 3], &[(&row(2), 0x2222_1100)]);
    check("prmt.b32.rc16 $d, $a, $b, $c;", W, &[W; 3], &[(&row(1), 0x3322_3322)]);
}

#[test]
fn moves() {
    check("mov.b32 $d, $a;", W, &[W], &[(&[7], 7)]);
    check("mov.u16 $d, $a;", H, &[H], &[(&[0xffff], 0xffff)]);
    check("mov.f64 $d, $a;", L, &[L], &[(&[1 << 63], 1 << 63)]);
    check("mov.b32 $d, {$a, $b};", W, &[H, H], &[(&[0x1111, 0x2222], 0x2222_1111)]);
    check("mov.b64 $d, {$a, $b};", L, &[W, W], &[(&[0x1111, 0x2222], 0x2222_0000_1111)]);
    check("mov.b64 $d, {$a, $b, $c, $e};", L, &[H; 4], &[(&[1, 2, 3, 4], 0x0004_0003_0002_0001)]);
    check("mov.b32 {_, $d}, $a;", H, &[W], &[(&[0x2222_1111], 0x2222)]);
    check("mov.b64 {$d, _}, $a;", W, &[L], &[(&[0x2222_0000_1111], 0x1111)]);
    check("mov.b64 {_, _, _, $d}, $a;", H, &[L], &[(&[0x0004_0003_0002_0001], 4)]);
}
