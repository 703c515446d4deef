//! What every op means, line by line.

use tinyspec_ir::{Const, DType, Op, eval::eval_op};

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
