//! What every op means, line by line.

use tinyspec_ir::eval::{eval_lanes, eval_op, threefry};
use tinyspec_ir::{Const, DType, Op};

fn ints(op: Op, dtype: DType, a: i128, b: i128) -> i128 {
    eval_op(op, dtype, &[Const::int(dtype, a), Const::int(dtype, b)]).unwrap().as_int().unwrap()
}

fn floats(op: Op, a: f64, b: f64) -> f64 {
    let operands = [Const::float(DType::F32, a), Const::float(DType::F32, b)];
    let value = eval_op(op, DType::F32, &operands).unwrap();
    value.as_float().or(value.as_int().map(|value| value as f64)).unwrap()
}

#[test]
fn integer_ops_are_total() {
    let minimum = i32::MIN as i128;
    for (op, a, b, expected) in [
        (Op::Idiv, 7, 0, 0),
        (Op::Mod, 7, 0, 7),
        (Op::Idiv, minimum, -1, minimum),
        (Op::Mod, minimum, -1, 0),
        (Op::Idiv, -7, 2, -4),
        (Op::Mod, -7, 2, 1),
        (Op::Idiv, 7, -2, -4),
        (Op::Mod, 7, -2, -1),
        (Op::Shl, 1, 32, 0),
        (Op::Shr, -8, 40, -1),
        (Op::Shr, 8, 40, 0),
        (Op::Shr, -8, 1, -4),
        (Op::Add, i32::MAX as i128, 1, minimum),
        (Op::Mul, minimum, -1, minimum),
    ] {
        assert_eq!(ints(op, DType::I32, a, b), expected, "{op}({a}, {b})");
    }
    assert_eq!(ints(Op::Shr, DType::U8, 200, 8), 0);
    assert_eq!(ints(Op::Add, DType::Bool, 1, 1), 1);
    assert_eq!(ints(Op::Idiv, DType::U64, u64::MAX as i128, 2), u64::MAX as i128 / 2);
}

#[test]
fn casts_saturate_or_wrap() {
    let cast = |value: Const, dtype| eval_op(Op::Cast, dtype, &[value]).unwrap();
    let float = |value| Const::float(DType::F32, value);
    for (value, dtype, expected) in [
        (f64::NAN, DType::I32, 0),
        (1e10, DType::I32, i32::MAX as i128),
        (-1e10, DType::I32, i32::MIN as i128),
        (-1.0, DType::U8, 0),
        (300.0, DType::U8, 255),
        (-2.9, DType::I8, -2),
        (f64::NAN, DType::Bool, 1),
        (f64::INFINITY, DType::I64, i64::MAX as i128),
    ] {
        assert_eq!(cast(float(value), dtype).as_int(), Some(expected), "{value} as {dtype}");
    }
    assert_eq!(cast(Const::int(DType::I32, 300), DType::I8).as_int(), Some(44));
    assert_eq!(cast(Const::int(DType::I32, -1), DType::U16).as_int(), Some(65535));
    assert_eq!(cast(float(65520.0), DType::F16).as_float(), Some(f64::INFINITY));
    assert_eq!(cast(float(65519.0), DType::F16).as_float(), Some(65504.0));
    assert!(cast(float(1000.0), DType::F8E4M3).as_float().unwrap().is_nan());
    assert_eq!(cast(float(1e-40), DType::BF16).as_float(), Some(f64::from(f32::from_bits(0x10000))));
}

#[test]
fn floats_follow_ieee() {
    assert!(floats(Op::Max, f64::NAN, 1.0).is_nan());
    assert!(floats(Op::Max, 1.0, f64::NAN).is_nan());
    assert!(floats(Op::Mul, f64::INFINITY, 0.0).is_nan());
    assert_eq!(floats(Op::CmpNe, f64::NAN, f64::NAN), 1.0);
    assert_eq!(floats(Op::CmpLt, f64::NAN, 1.0), 0.0);
    assert_eq!(floats(Op::Mod, -5.0, 3.0), 1.0);
    assert_eq!(floats(Op::Pow, -2.0, 3.0), -8.0);
    assert!(floats(Op::Add, -0.0, -0.0).is_sign_negative());
}

#[test]
fn bits_are_reinterpreted() {
    let one = Const::float(DType::F32, 1.0);
    let bits = eval_op(Op::Bitcast, DType::I32, &[one]).unwrap();
    assert_eq!(bits.as_int(), Some(0x3f80_0000));
    assert_eq!(eval_op(Op::Bitcast, DType::F32, &[bits]).unwrap(), one);
    assert!(eval_op(Op::Bitcast, DType::I64, &[one]).is_err());
}

/// A small generator, so that a failing case is the same on every run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    threefry(*state, 1)
}

#[test]
fn threefry_matches_the_published_vectors() {
    // Counter, key and result as words of 32 bits, the first lane lowest.
    for (counter, key, expected) in [
        ([0, 0], [0, 0], [0x6b20_0159, 0x99ba_4efe]),
        ([u32::MAX; 2], [u32::MAX; 2], [0x1cb9_96fc, 0xbb00_2be7]),
        ([0x243f_6a88, 0x85a3_08d3], [0x1319_8a2e, 0x0370_7344], [0xc492_3a9c, 0x483d_f7a0]),
    ] {
        let packed = |[low, high]: [u32; 2]| low as u64 | (high as u64) << 32;
        let operands = [packed(counter), packed(key)].map(|bits| Const { dtype: DType::U64, bits });
        assert_eq!(eval_op(Op::Threefry, DType::U64, &operands).unwrap().bits, packed(expected));
    }
}

#[test]
fn mulacc_is_fused() {
    let mut state = 7;
    for _ in 0..20_000 {
        let mut next = || {
            // Near exponents, so that the sum cancels or is inexact by a few bits.
            let bits = random(&mut state) as u32;
            f32::from_bits(bits & 0x807f_ffff | (100 + (bits >> 23) % 60) << 23)
        };
        let (a, b, c) = (next(), next(), next());
        let operands = [a, b, c].map(|value| Const::float(DType::F32, value as f64));
        let value = eval_op(Op::Mulacc, DType::F32, &operands).unwrap().as_float().unwrap();
        assert_eq!(value as f32, a.mul_add(b, c), "{a} * {b} + {c}");
    }
}

#[test]
fn words_hold_two_or_four_factors() {
    let word = |low: u16, high: u16| Const::int(DType::U32, (low as u32 | (high as u32) << 16) as i128);
    let (a, b) = (word(-3i16 as u16, 100), word(7, -1i16 as u16));
    let sum = Const::int(DType::I32, i32::MIN as i128);
    assert_eq!(eval_op(Op::Wmma, DType::I32, &[a, b, sum]), Ok(Const::int(DType::I32, i32::MAX as i128 - 120)));
    let bytes = |bytes: [u8; 4]| Const::int(DType::I32, i32::from_le_bytes(bytes) as i128);
    // Those of the first word have no sign.
    let (a, b) = (bytes([255, 2, 0, 128]), bytes([254, 3, 7, 128]));
    let expected = Const::int(DType::I32, 10 - 255 * 2 + 2 * 3 - 128 * 128);
    assert_eq!(eval_op(Op::Wmma, DType::I32, &[a, b, Const::int(DType::I32, 10)]), Ok(expected));
    let bits = |value: f32| (value.to_bits() >> 16) as u16;
    let dot = |a: [f32; 2], b: [f32; 2], sum: f32| {
        let operands =
            [word(bits(a[0]), bits(a[1])), word(bits(b[0]), bits(b[1])), Const::float(DType::F32, sum as f64)];
        eval_op(Op::Wmma, DType::F32, &operands).unwrap().as_float().unwrap() as f32
    };
    assert_eq!(dot([1.5, 2.0], [3.0, -0.25], 10.0), 14.0);
    // The upper product comes first, and is rounded together with the sum.
    assert_eq!(
        dot([1.0, 1.0 + 2.0f32.powi(-7)], [-1.0, 1.0 + 2.0f32.powi(-7)], 2.0f32.powi(-30)),
        2.0f32.powi(-6) + 2.0f32.powi(-14)
    );
    let small = f32::MIN_POSITIVE;
    assert_eq!(dot([small / 2.0, small], [1e30, 0.5], small / 4.0), 0.0);
}

#[test]
fn single_precision_rounds_once() {
    let mut state = 3;
    for _ in 0..20_000 {
        let (a, b) = (f32::from_bits(random(&mut state) as u32), f32::from_bits(random(&mut state) as u32));
        for (op, expected) in [(Op::Add, a + b), (Op::Mul, a * b), (Op::Div, a / b)] {
            let value = floats(op, a as f64, b as f64) as f32;
            assert!(value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(), "{op}({a}, {b})");
        }
        let root = eval_op(Op::Sqrt, DType::F32, &[Const::float(DType::F32, a as f64)]).unwrap();
        let root = root.as_float().unwrap() as f32;
        assert!(root.to_bits() == a.sqrt().to_bits() || root.is_nan() && a.sqrt().is_nan(), "sqrt({a})");
    }
}

#[test]
fn lanes_are_scalars_side_by_side() {
    let (a, b) = ([-7i64 as u64, 7, 5, i64::MIN as u64], [2u64, -2i64 as u64, 0, -1i64 as u64]);
    for op in [Op::Add, Op::Mul, Op::Max, Op::Idiv, Op::Mod, Op::CmpLt, Op::CmpNe, Op::Shl, Op::Shr, Op::Xor] {
        let mut lanes = [0; 4];
        eval_lanes(op, DType::I64, DType::I64, &[&a, &b], &mut lanes).unwrap();
        for lane in 0..4 {
            let operands = [a[lane], b[lane]].map(|bits| Const { dtype: DType::I64, bits });
            assert_eq!(eval_op(op, DType::I64, &operands).unwrap().bits, lanes[lane], "{op} in lane {lane}");
        }
    }
    assert!(eval_lanes(Op::Add, DType::I64, DType::I64, &[&a, &b[..2]], &mut [0; 4]).is_err());
    assert!(eval_lanes(Op::Load, DType::I64, DType::I64, &[&a], &mut [0; 4]).is_err());
}

#[test]
fn bools_are_a_semiring() {
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for (op, expected) in
            [(Op::Add, a | b), (Op::Max, a | b), (Op::Mul, a & b), (Op::CmpNe, a ^ b), (Op::CmpLt, (a < b) as i128)]
        {
            assert_eq!(ints(op, DType::Bool, a, b), expected, "{op}({a}, {b})");
        }
    }
}
