//! Single ops, against `eval_op`, on samples at the edges of their dtypes.

use super::{bits, elementwise, floats, processors, run, run_part, value_of};
use crate::kernel::{Kernel, REG, float_bytes};
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_backends::{Processor, Target};
use tinyspec_ir::DType::{self, *};
use tinyspec_ir::eval::eval_op;
use tinyspec_ir::{Arg, AxisType, Const, Op};

const INTEGERS: [DType; 8] = [I8, I16, I32, I64, U8, U16, U32, U64];
const FLOATS: [DType; 4] = [F16, BF16, F32, F64];

fn bytes_of(value: Const) -> Vec<u8> {
    let raw = bits(value);
    raw.to_le_bytes()[..value.dtype.size()].to_vec()
}

/// Values at the edges of a dtype, and between them.
fn samples(dtype: DType) -> Vec<Const> {
    if let (Some((low, high)), true) = (dtype.int_range(), dtype != DType::Bool) {
        let numbers = [low, low + 1, -7, -2, -1, 0, 1, 2, 3, 5, 7, 8, 31, 33, 63, 64, high / 2, high - 1, high];
        let inside = |number: &&i128| (low..=high).contains(*number);
        return numbers.iter().filter(inside).map(|number| Const::int(dtype, *number)).collect();
    }
    if dtype == DType::Bool {
        return vec![Const::int(dtype, 0), Const::int(dtype, 1)];
    }
    let numbers = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -1.5,
        2.5,
        3.25,
        -7.75,
        1e-40,
        1e-8,
        255.6,
        256.0,
        -129.0,
        32768.0,
        65519.0,
        65520.0,
        1e9,
        2147483647.0,
        2147483648.0,
        -2147483649.0,
        4294967296.0,
        9.3e18,
        -9.3e18,
        1e30,
        3e38,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1.0 + 1.0 / 256.0,
        1.0 + 3.0 / 256.0 + 1e-12,
        1.0 + 1.0 / 256.0 + 1e-12,
    ];
    numbers.iter().map(|number| Const::float(dtype, *number)).collect()
}

/// Every combination of samples.
fn combinations(dtypes: &[DType]) -> Vec<Vec<Const>> {
    dtypes.iter().fold(vec![vec![]], |rows, dtype| {
        let extended = |row: Vec<Const>| {
            samples(*dtype).into_iter().map(move |value| [row.clone(), vec![value]].concat()).collect::<Vec<_>>()
        };
        rows.into_iter().flat_map(extended).collect()
    })
}

fn check(op: Op, operands: &[DType], result: DType) {
    let mut rows = combinations(operands);
    while !rows.len().is_multiple_of(16) {
        rows.push(rows[0].clone());
    }
    let mut buffers = vec![vec![0; rows.len() * result.size()]];
    for operand in 0..operands.len() {
        buffers.push(rows.iter().flat_map(|row| bytes_of(row[operand])).collect());
    }
    for processor in processors() {
        for lanes in [1, 8, 16] {
            let kernel = elementwise(op, operands, result, lanes, rows.len() as i64);
            let compiler = LlvmCompiler::new().expect("libLLVM");
            let results = run_part(&compiler, &processor.target(1), &kernel, &buffers, (0, 1));
            for (row, data) in rows.iter().zip(results[0].chunks(result.size())) {
                let (expected, found) = (eval_op(op, result, row).expect("total"), value_of(result, data));
                let nan = |value: Const| value.as_float().is_some_and(f64::is_nan);
                assert!(
                    expected == found || nan(expected) && nan(found),
                    "{op} of {row:?} as {result}, {lanes} lanes, {}: {found:?}, not {expected:?}",
                    processor.name
                );
            }
        }
    }
}

#[test]
fn integer_ops_are_those_of_eval_op() {
    for dtype in INTEGERS {
        for op in [Op::Add, Op::Mul, Op::Max, Op::Idiv, Op::Mod, Op::Shl, Op::Shr, Op::Xor, Op::Or, Op::And] {
            check(op, &[dtype, dtype], dtype);
        }
        for op in [Op::CmpLt, Op::CmpNe] {
            check(op, &[dtype, dtype], Bool);
        }
        check(Op::Where, &[Bool, dtype, dtype], dtype);
    }
    check(Op::Mulacc, &[I32, I32, I32], I32);
}

#[test]
fn bool_ops_are_those_of_eval_op() {
    for op in [Op::Add, Op::Mul, Op::Max, Op::Xor, Op::Or, Op::And, Op::CmpLt, Op::CmpNe] {
        check(op, &[Bool, Bool], Bool);
    }
    check(Op::Where, &[Bool, Bool, Bool], Bool);
}

#[test]
fn float_ops_are_those_of_eval_op() {
    for dtype in FLOATS {
        for op in [Op::Add, Op::Mul, Op::Max, Op::Div] {
            check(op, &[dtype, dtype], dtype);
        }
        for op in [Op::CmpLt, Op::CmpNe] {
            check(op, &[dtype, dtype], Bool);
        }
        for op in [Op::Recip, Op::Trunc, Op::Sqrt] {
            check(op, &[dtype], dtype);
        }
        check(Op::Where, &[Bool, dtype, dtype], dtype);
    }
    for dtype in [F32, F64] {
        check(Op::Idiv, &[dtype, dtype], dtype);
        check(Op::Mod, &[dtype, dtype], dtype);
    }
    if Target::native().fused_multiply_add {
        check(Op::Mulacc, &[F32, F32, F32], F32);
    }
}

#[test]
fn casts_are_those_of_eval_op() {
    let all: Vec<DType> = INTEGERS.into_iter().chain(FLOATS).chain([Bool]).collect();
    for from in &all {
        for to in &all {
            check(Op::Cast, &[*from], *to);
        }
    }
}

#[test]
fn bitcasts_keep_bits() {
    for (from, to) in [(F32, I32), (U32, F32), (F64, U64), (I64, F64), (BF16, U16), (I16, F16), (I8, U8)] {
        check(Op::Bitcast, &[from], to);
    }
}

/// What a kernel with constant operands computes.
fn with_constant(op: Op, constant: f64, swap: bool) -> Vec<f32> {
    let x: Vec<f32> = samples(F32).iter().map(|value| value.as_float().unwrap_or(0.0) as f32).collect();
    let mut kernel = Kernel::default();
    let (out, input) = (kernel.param(F32, x.len() as i64), kernel.param(F32, x.len() as i64));
    let (range, i) = kernel.range(x.len() as i64, 0, AxisType::Loop);
    let from = kernel.alu(Op::Index, &[input, i]);
    let value = kernel.add(Op::Load, &[from], REG);
    let constant = kernel.float(constant);
    let result = kernel.alu(op, &if swap { [constant, value] } else { [value, constant] });
    let to = kernel.alu(Op::Index, &[out, i]);
    let store = kernel.alu(Op::Store, &[to, result]);
    kernel.alu(Op::End, &[store, range]);
    let kernel = kernel.finish();
    floats(&run(&kernel, &[vec![0; x.len() * 4], float_bytes(&x)])[0])
}

#[test]
fn maximum_and_negation_with_constants_keep_zeros_and_nan() {
    for constant in [0.0, -0.0, 1.0, -3.5] {
        for swap in [false, true] {
            for (x, y) in samples(F32).iter().zip(with_constant(Op::Max, constant, swap)) {
                let expected = tinyspec_ir::eval::maximum(x.as_float().unwrap_or(0.0), constant) as f32;
                assert!(
                    expected.to_bits() == y.to_bits() || expected.is_nan() && y.is_nan(),
                    "max({x:?}, {constant}): {y}"
                );
            }
        }
    }
    for (x, y) in samples(F32).iter().zip(with_constant(Op::Mul, -1.0, false)) {
        let expected = -(x.as_float().unwrap_or(0.0) as f32);
        assert!(expected.to_bits() == y.to_bits() || expected.is_nan() && y.is_nan(), "-{x:?}: {y}");
    }
}

#[test]
fn products_of_words_are_those_of_eval_op() {
    // The host may have what it has no use for.
    let native = Processor::native();
    let able = Processor::named("znver4").ok().filter(|processor| processor.isa.missing_on_host().is_none());
    let target = able.unwrap_or(native).target(1);
    let compiler = LlvmCompiler::new().expect("libLLVM");
    for (word, numbers, result) in [(U32, I16, I32), (U32, BF16, F32), (I32, U8, I32)] {
        if !target.has_tensor_core(numbers) {
            println!("skipped: no instruction multiplies words of {numbers} here");
            continue;
        }
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        let row = |_| {
            let sum = match result {
                F32 => Const::float(F32, f32::from_bits(next()) as f64),
                _ => Const::int(I32, next() as i32 as i128),
            };
            let mut factor = || match word {
                U32 => Const::int(U32, next() as i128),
                _ => Const::int(word, next() as i32 as i128),
            };
            [factor(), factor(), sum]
        };
        let rows: Vec<[Const; 3]> = (0..4096).map(row).collect();
        let mut buffers = vec![vec![0; rows.len() * 4]];
        buffers.extend((0..3).map(|operand| rows.iter().flat_map(|row| bytes_of(row[operand])).collect()));
        for lanes in [1, 2, 4, 8, 16, 32] {
            let kernel = elementwise(Op::Wmma, &[word, word, result], result, lanes, rows.len() as i64);
            let found = &run_part(&compiler, &target, &kernel, &buffers, (0, 1))[0];
            for (row, data) in rows.iter().zip(found.chunks(4)) {
                let (expected, found) = (eval_op(Op::Wmma, result, row).expect("total"), value_of(result, data));
                let nan = |value: Const| value.as_float().is_some_and(f64::is_nan);
                assert!(
                    expected == found || nan(expected) && nan(found),
                    "{row:?}, {lanes} lanes: {found:?}, not {expected:?}"
                );
            }
        }
    }
}

#[test]
fn instructions_are_those_of_their_definition() {
    let host = Target::native();
    for instruction in host.instructions.into_iter().filter(|instruction| !instruction.is_hint()) {
        let mut rows = combinations(&vec![F32; instruction.arity()]);
        rows.extend(
            (0..600).map(|n| [n as f64 * 0.75 - 151.0, 101.5 - n as f64].map(|x| Const::float(F32, x)).to_vec()),
        );
        while !rows.len().is_multiple_of(32) {
            rows.push(rows[0].clone());
        }
        let operands: Vec<Vec<f32>> = (0..instruction.arity())
            .map(|operand| rows.iter().map(|row| row[operand].as_float().unwrap_or(0.0) as f32).collect())
            .collect();
        for lanes in [1, 2, 4, 8, 16, 32] {
            let mut kernel = Kernel::default();
            let count = rows.len() as i64;
            let out = kernel.param(F32, count);
            let inputs: Vec<_> = operands.iter().map(|_| kernel.param(F32, count)).collect();
            let (range, i) = kernel.range(count / lanes, 0, AxisType::Loop);
            let step = kernel.int(lanes);
            let offset = kernel.alu(Op::Mul, &[i, step]);
            let place = |kernel: &mut Kernel, buffer| match lanes {
                1 => kernel.alu(Op::Index, &[buffer, offset]),
                _ => kernel.run(buffer, offset, lanes),
            };
            let mut sources = Vec::new();
            for input in inputs {
                let from = place(&mut kernel, input);
                sources.push(kernel.add(Op::Load, &[from], REG));
            }
            let value = kernel.add(Op::Ins, &sources, Arg::Text(instruction.name().into()));
            let to = place(&mut kernel, out);
            let store = kernel.alu(Op::Store, &[to, value]);
            kernel.alu(Op::End, &[store, range]);
            let kernel = kernel.finish();
            let mut buffers = vec![vec![0; rows.len() * 4]];
            buffers.extend(operands.iter().map(|operand| float_bytes(operand)));
            for (row, found) in floats(&run(&kernel, &buffers)[0]).into_iter().enumerate() {
                let sources: Vec<f32> = operands.iter().map(|operand| operand[row]).collect();
                let expected = instruction.eval(&sources).expect("as many sources as it takes");
                let same = expected.to_bits() == found.to_bits() || expected.is_nan() && found.is_nan();
                assert!(same, "{instruction:?} of {sources:?}, {lanes} lanes: {found:e}, not {expected:e}");
            }
        }
    }
}
