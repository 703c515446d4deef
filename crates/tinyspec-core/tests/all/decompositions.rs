//! Decomposed ops against their definition, over all kinds of operands.

use crate::evaluate;
use crate::kernels::Kernel;
use crate::lowering::targets;
use tinyspec_core::lower::kernel::lower_kernel;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::ops::{elementwise::exp, logarithm::exp10, trigonometry::cos};
use tinyspec_ir::{Builder, Const, DType, NodeId, Op, eval::eval_op};

/// Bits spread over the whole format, and values where something changes.
fn values(dtype: DType, count: usize) -> Vec<f64> {
    let mut values =
        vec![0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, 127.5, 128.0, -126.5, -149.0, -150.5];
    values.extend([
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-40,
        -1e-40,
        1e-310,
        5e-324,
        1e38,
        1e300,
        1e22,
        6381956970095103e200,
    ]);
    values.extend((1..40).map(|n| n as f64 * std::f64::consts::FRAC_PI_2));
    values.extend((-20..20).map(|n| 1.0 + n as f64 * 1e-6));
    let mut state = 7u64;
    for _ in 0..count {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = state ^ state >> 29;
        values.push(match dtype {
            DType::F32 => f32::from_bits(bits as u32) as f64,
            _ => f64::from_bits(bits),
        });
        // Moderate ones, which random bits seldom are.
        values.push((state >> 11) as f64 / (1u64 << 53) as f64 * 40.0 - 20.0);
    }
    values.into_iter().map(|value| Const::float(dtype, value).as_float().unwrap()).collect()
}

/// What the op's decomposition gives, on a target that has not the op.
fn decomposed(op: Op, dtype: DType, operands: &[Vec<Const>], machine: Machine) -> Vec<Const> {
    compiled(op, dtype, operands, machine, |k, sources| k.alu(op, sources))
}

/// What processors differ in.
#[derive(Clone, Copy, Debug)]
struct Machine {
    fused: bool,
    instructions: &'static [Instruction],
}

const MACHINES: [Machine; 3] = [
    Machine { fused: true, instructions: &Instruction::ALL },
    Machine { fused: true, instructions: &[] },
    Machine { fused: false, instructions: &[] },
];

/// The same of any composition of it.
fn compiled(
    op: Op,
    dtype: DType,
    operands: &[Vec<Const>],
    machine: Machine,
    build: impl FnOnce(&mut Kernel, &[NodeId]) -> NodeId,
) -> Vec<Const> {
    let mut k = Kernel::new();
    let count = operands[0].len() as i64;
    let y = k.param(dtype, count);
    let inputs: Vec<_> = operands.iter().map(|_| k.param(dtype, count)).collect();
    let i = k.output(count);
    let loaded: Vec<_> = inputs.iter().map(|&input| k.load(input, i)).collect();
    let value = build(&mut k, &loaded);
    let store = k.store(y, i, value);
    let sink = k.sink(&[store], &[i]);
    let mut target = targets().remove(0);
    target.fused_multiply_add = machine.fused;
    target.instructions = machine.instructions.to_vec();
    let kernel = lower_kernel(&mut k.graph, sink, "op", &target).unwrap();
    assert!(kernel.graph.sources(kernel.linear).iter().all(|&node| kernel.graph.op(node) != op));
    let mut memory = vec![vec![Const::int(dtype, 0); count as usize]];
    memory.extend(operands.iter().cloned());
    evaluate::linear(&kernel, &mut memory);
    memory.remove(0)
}

/// Distance in units of the last place of `expected`.
fn ulps(dtype: DType, expected: f64, found: Const) -> f64 {
    let found = found.as_float().unwrap();
    if expected.is_nan() || found.is_nan() {
        return if expected.is_nan() && found.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = Const::float(dtype, expected).as_float().unwrap();
    if rounded == found {
        // The signs of zeros count too.
        return if found == 0.0 && found.is_sign_negative() != rounded.is_sign_negative() {
            f64::INFINITY
        } else {
            0.0
        };
    }
    let (digits, least) = if dtype == DType::F32 { (23, -149) } else { (52, -1074) };
    let exponent = if expected == 0.0 { least } else { (expected.abs().log2().floor() as i32 - digits).max(least) };
    (found - expected).abs() / f64::from(exponent).exp2()
}

fn check_unary(op: Op, dtype: DType, definition: fn(f64) -> f64, bound: f64) {
    let inputs = values(dtype, 3000);
    let operand: Vec<Const> = inputs.iter().map(|&value| Const::float(dtype, value)).collect();
    for machine in MACHINES {
        let found = decomposed(op, dtype, std::slice::from_ref(&operand), machine);
        let mut worst = (0.0, 0.0);
        for (&input, found) in inputs.iter().zip(found) {
            let distance = ulps(dtype, definition(input), found);
            assert!(
                distance <= bound,
                "{op} of {input:e} {dtype}, {machine:?}: {:e} instead of {:e}, {distance} ulp",
                found.as_float().unwrap(),
                definition(input)
            );
            if distance > worst.0 {
                worst = (distance, input);
            }
        }
        println!("{op} {dtype} {machine:?}: at most {} ulp, at {:e}", worst.0, worst.1);
    }
}

#[test]
fn exponentials_and_logarithms() {
    check_unary(Op::Exp2, DType::F32, f64::exp2, 1.5);
    check_unary(Op::Log2, DType::F32, f64::log2, 1.5);
    check_unary(Op::Exp2, DType::F64, f64::exp2, 2.0);
    check_unary(Op::Log2, DType::F64, f64::log2, 2.0);
}

#[test]
fn sines_of_any_argument() {
    check_unary(Op::Sin, DType::F32, f64::sin, 1.5);
    check_unary(Op::Sin, DType::F64, f64::sin, 2.0);
}

/// A function that is composed of `op`, and recognised.
fn check_composition(
    op: Op,
    machines: &[Machine],
    compose: fn(&mut dyn Builder, NodeId) -> tinyspec_ir::Result<NodeId>,
    definition: fn(f64) -> f64,
    bounds: [f64; 2],
) {
    for (dtype, bound) in [DType::F32, DType::F64].into_iter().zip(bounds) {
        let mut inputs = values(dtype, 3000);
        inputs.extend([-3.4e38, 3.4e38, -1e30, 1e30, -88.0, 88.7, -103.9, -104.1, 709.7, -745.1]);
        let operand: Vec<Const> = inputs.iter().map(|&value| Const::float(dtype, value)).collect();
        for &machine in machines {
            let found = compiled(op, dtype, std::slice::from_ref(&operand), machine, |k, sources| {
                compose(&mut k.graph, sources[0]).unwrap()
            });
            for (&input, found) in operand.iter().zip(found) {
                let input = input.as_float().unwrap();
                let distance = ulps(dtype, definition(input), found);
                assert!(distance <= bound, "{input:e} {dtype} {machine:?}: {found:?}, {distance} ulp");
            }
        }
    }
}

#[test]
fn cosines_of_any_argument() {
    check_composition(Op::Sin, &MACHINES, cos, f64::cos, [1.5; 2]);
}

#[test]
fn exponentials_of_any_argument() {
    // Without a fused multiply-add the rounding of the product counts.
    check_composition(Op::Exp2, &MACHINES[..2], exp, f64::exp, [5.0, 1.5]);
    check_composition(Op::Exp2, &MACHINES[..2], exp10, |x| 10f64.powf(x), [2.0; 2]);
}

/// Such a power is never infinite; below the normal numbers it is rounded as others are.
#[test]
fn exponentials_of_what_is_never_positive() {
    fn minus_magnitude(b: &mut dyn Builder, x: NodeId) -> tinyspec_ir::Result<NodeId> {
        let dtype = b.props(x).dtype;
        let (zero, minus) = (b.constant(Const::float(dtype, 0.0)), b.constant(Const::float(dtype, -1.0)));
        let positive = b.alu(Op::CmpLt, &[zero, x])?;
        let minus = b.alu(Op::Mul, &[x, minus])?;
        b.alu(Op::Where, &[positive, minus, x])
    }
    fn power(b: &mut dyn Builder, x: NodeId) -> tinyspec_ir::Result<NodeId> {
        let minus = minus_magnitude(b, x)?;
        b.alu(Op::Exp2, &[minus])
    }
    fn exponential(b: &mut dyn Builder, x: NodeId) -> tinyspec_ir::Result<NodeId> {
        let minus = minus_magnitude(b, x)?;
        exp(b, minus)
    }
    check_composition(Op::Exp2, &MACHINES, power, |x| (-x.abs()).exp2(), [1.5, 2.0]);
    check_composition(Op::Exp2, &MACHINES[..2], exponential, |x| (-x.abs()).exp(), [5.0, 1.5]);
}

/// A power of two before the argument goes into the factor, however large or small it is.
#[test]
fn exponentials_of_scaled_arguments() {
    fn scaled<const POWER: i32>(b: &mut dyn Builder, x: NodeId) -> tinyspec_ir::Result<NodeId> {
        let dtype = b.props(x).dtype;
        let factor = b.constant(Const::float(dtype, std::f64::consts::LOG2_E * f64::from(POWER).exp2().copysign(-1.0)));
        let product = b.alu(Op::Mul, &[x, factor])?;
        b.alu(Op::Exp2, &[product])
    }
    fn check<const POWER: i32>() {
        let definition = |x: f64| (-x * f64::from(POWER).exp2()).exp();
        check_composition(Op::Exp2, &MACHINES[..2], scaled::<POWER>, definition, [5.0, 1.5]);
    }
    check::<0>();
    check::<-1>();
    check::<3>();
    check::<-20>();
    check::<40>();
    check::<-100>();
    check::<120>();
}

#[test]
fn powers_with_every_special_case() {
    let special =
        [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, -7.5, 1e10, -1e10, 1e-30, 31.0, 1e300, 1.1];
    let special = special.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.99999, 16777217.0, 101.0]);
    let special: Vec<f64> = special.collect();
    let more: Vec<(f64, f64)> = (1..400).map(|n| (n as f64 * 0.37, (n % 41) as f64 * 0.7 - 14.0)).collect();
    for dtype in [DType::F32, DType::F64] {
        let mut pairs: Vec<(f64, f64)> = special.iter().flat_map(|&x| special.iter().map(move |&y| (x, y))).collect();
        pairs.extend(&more);
        let operand = |values: Vec<f64>| values.into_iter().map(|value| Const::float(dtype, value)).collect::<Vec<_>>();
        let bases = operand(pairs.iter().map(|pair| pair.0).collect());
        let exponents = operand(pairs.iter().map(|pair| pair.1).collect());
        let found = decomposed(Op::Pow, dtype, &[bases.clone(), exponents.clone()], MACHINES[0]);
        for ((base, exponent), found) in bases.iter().zip(&exponents).zip(found) {
            let expected = base.as_float().unwrap().powf(exponent.as_float().unwrap());
            let distance = ulps(dtype, expected, found);
            assert!(
                distance <= 2.0,
                "{base:?}^{exponent:?} {dtype}: {found:?} instead of {expected:e}, {distance} ulp"
            );
        }
    }
}

#[test]
fn powers_of_constant_exponents() {
    let halves: Vec<f64> = (-65..=65).filter(|&halves| halves != 0).map(|halves| f64::from(halves) / 2.0).collect();
    for (dtype, exponents) in [(DType::F32, &halves[..]), (DType::F64, &[-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0])] {
        let bases: Vec<Const> = values(dtype, 200).into_iter().map(|value| Const::float(dtype, value)).collect();
        for (exponent, machine) in exponents.iter().flat_map(|&exponent| MACHINES.map(|machine| (exponent, machine))) {
            let found = compiled(Op::Pow, dtype, std::slice::from_ref(&bases), machine, |k, sources| {
                let exponent = k.graph.constant(Const::float(dtype, exponent));
                k.alu(Op::Pow, &[sources[0], exponent])
            });
            for (base, found) in bases.iter().zip(found) {
                let expected = base.as_float().unwrap().powf(Const::float(dtype, exponent).as_float().unwrap());
                let distance = ulps(dtype, expected, found);
                let bound = if dtype == DType::F32 { 1.5 } else { 2.0 };
                assert!(
                    distance <= bound,
                    "{base:?}^{exponent} {dtype}: {found:?} instead of {expected:e}, {distance} ulp, {machine:?}"
                );
            }
        }
    }
}

#[test]
fn random_bits_are_those_of_the_definition() {
    let numbers =
        |seed: u64| (0..100u64).map(move |n| Const::int(DType::U64, (n * n * seed) as i128)).collect::<Vec<_>>();
    let (counters, keys) = (numbers(0x9e37_79b9_7f4a), numbers(12345));
    let found = decomposed(Op::Threefry, DType::U64, &[counters.clone(), keys.clone()], MACHINES[0]);
    for ((&counter, &key), found) in counters.iter().zip(&keys).zip(found) {
        assert_eq!(eval_op(Op::Threefry, DType::U64, &[counter, key]).unwrap(), found);
    }
}

#[test]
fn small_floats_are_computed_in_f32() {
    let mut target = targets().remove(0);
    target.arithmetic.retain(|&dtype| dtype != DType::F16);
    let mut k = Kernel::new();
    let (y, a, b) = (k.param(DType::F16, 40), k.param(DType::F16, 40), k.param(DType::F16, 40));
    let i = k.output(40);
    let (a, b) = (k.load(a, i), k.load(b, i));
    let product = k.alu(Op::Mul, &[a, b]);
    let store = k.store(y, i, product);
    let sink = k.sink(&[store], &[i]);
    let kernel = lower_kernel(&mut k.graph, sink, "half", &target).unwrap();
    let half = |scale: f64| (0..40).map(|n| Const::float(DType::F16, n as f64 * scale)).collect::<Vec<_>>();
    let mut memory = vec![half(0.0), half(0.37), half(1.3)];
    evaluate::linear(&kernel, &mut memory);
    for ((&a, &b), &product) in memory[1].iter().zip(&memory[2]).zip(&memory[0]) {
        assert_eq!(eval_op(Op::Mul, DType::F16, &[a, b]).unwrap(), product);
    }
}
