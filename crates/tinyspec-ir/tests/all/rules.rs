//! Every rule fires, and keeps the value: integers that wrap, floats with nan, infinities and -0, negative operands.

use std::collections::BTreeSet;
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Graph, NodeId, Op, eval::eval_op, rules, text};

/// A variable: the Param of this slot.
fn variable(graph: &mut Graph, slot: u32, dtype: DType) -> NodeId {
    let scalar = graph.shape(&[]).unwrap();
    graph.add(Op::Param, &[scalar], Arg::Param { slot, dtype, device: None, addrspace: None }).unwrap()
}

/// The value of `root` where variable k is `values[k]`.
fn evaluate(graph: &Graph, root: NodeId, values: &[Const]) -> Const {
    let mut known: Vec<Option<Const>> = vec![None; graph.len()];
    for node in graph.reachable(&[root]) {
        known[node.index()] = match (graph.op(node), graph.arg(node)) {
            (Op::Param, Arg::Param { slot, .. }) => Some(values[*slot as usize]),
            (Op::Range, _) => Some(Const::int(DType::Index, 0)),
            (Op::Stack, _) => None,
            (Op::Const, _) => graph.as_const(node),
            (op, _) => {
                let operands: Vec<Const> =
                    graph.sources(node).iter().map(|source| known[source.index()].unwrap()).collect();
                Some(eval_op(op, graph.dtype(node), &operands).unwrap())
            }
        };
    }
    known[root.index()].unwrap()
}

const INTEGERS: [i128; 14] = [0, 1, -1, 2, 3, 4, -3, -8, 12, 7, 31, 33, i32::MAX as i128, i32::MIN as i128];
const FLOATS: [f64; 12] =
    [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -16.0, 3.0, 1e-40, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

fn constant(random: &mut fastrand::Rng, dtype: DType) -> Const {
    match dtype {
        DType::Bool => Const::int(dtype, random.bool() as i128),
        dtype if dtype.is_float() => Const::float(dtype, FLOATS[random.usize(0..FLOATS.len())]),
        DType::Index => Const::int(dtype, INTEGERS[random.usize(0..11)]),
        _ => Const::int(dtype, INTEGERS[random.usize(0..INTEGERS.len())]),
    }
}

fn expression(graph: &mut Graph, random: &mut fastrand::Rng, dtype: DType, kinds: &[DType], depth: usize) -> NodeId {
    if depth == 0 || random.u8(0..7) == 0 {
        let slot = random.usize(0..kinds.len());
        return match kinds[slot] == dtype && random.u8(0..3) > 0 {
            true => variable(graph, slot as u32, dtype),
            false => {
                let value = constant(random, dtype);
                graph.constant(value)
            }
        };
    }
    let mut operand = |graph: &mut Graph, dtype| expression(graph, random, dtype, kinds, depth - 1);
    let a = operand(graph, dtype);
    // Operands that are equal are what many rules look for.
    let same = operand(graph, dtype);
    let b = if random.u8(0..4) == 0 { a } else { same };
    let pick = |random: &mut fastrand::Rng, ops: &[Op]| ops[random.usize(0..ops.len())];
    if random.u8(0..6) == 0 {
        let condition = expression(graph, random, DType::Bool, kinds, depth - 1);
        return graph.alu(Op::Where, &[condition, a, b]).unwrap();
    }
    let op = match dtype {
        DType::Bool if random.bool() => {
            let kind = kinds[random.usize(0..kinds.len())];
            let c = expression(graph, random, kind, kinds, depth - 1);
            let d = if random.u8(0..5) == 0 { c } else { expression(graph, random, kind, kinds, depth - 1) };
            let op = pick(random, &[Op::CmpLt, Op::CmpNe]);
            let op = if kind == DType::Bool { Op::CmpNe } else { op };
            return graph.alu(op, &[c, d]).unwrap();
        }
        DType::Bool => pick(random, &[Op::And, Op::Or, Op::Xor, Op::CmpNe, Op::Add, Op::Mul, Op::Max]),
        dtype if dtype.is_float() => match random.u8(0..8) {
            0 => return graph.alu(pick(random, &[Op::Sqrt, Op::Recip]), &[a]).unwrap(),
            1 => return graph.add(Op::Cast, &[a], Arg::DType(dtype)).unwrap(),
            _ => pick(random, &[Op::Add, Op::Mul, Op::Max, Op::Div]),
        },
        DType::Index => pick(random, &[Op::Add, Op::Add, Op::Mul, Op::Idiv, Op::Mod, Op::Max]),
        _ if random.u8(0..8) == 0 => return graph.add(Op::Cast, &[a], Arg::DType(dtype)).unwrap(),
        _ => {
            let all =
                [Op::Add, Op::Add, Op::Mul, Op::Idiv, Op::Mod, Op::Max, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr];
            pick(random, &all)
        }
    };
    graph.alu(op, &[a, b]).unwrap()
}

/// Simplifies a random expression and compares it with what was written.
fn check(rewriter: &mut Rewriter, graph: &mut Graph, root: NodeId, random: &mut fastrand::Rng, kinds: &[DType]) {
    let simple = rewriter.rewrite(graph, &[root]).unwrap()[0];
    for _ in 0..8 {
        let values: Vec<Const> = kinds.iter().map(|&dtype| constant(random, dtype)).collect();
        let (want, found) = (evaluate(graph, root, &values), evaluate(graph, simple, &values));
        let both_nan = want.as_float().is_some_and(f64::is_nan) && found.as_float().is_some_and(f64::is_nan);
        assert!(
            want == found || both_nan,
            "{want:?} became {found:?} at {values:?}:\n{}\n{}",
            text::print(graph, &[root]),
            text::print(graph, &[simple])
        );
    }
}

fn random_expressions(rewriter: &mut Rewriter) {
    let mut random = fastrand::Rng::with_seed(11);
    for (dtype, rounds) in
        [(DType::I32, 6_000), (DType::U8, 3_000), (DType::F32, 6_000), (DType::Bool, 6_000), (DType::Index, 3_000)]
    {
        for _ in 0..rounds {
            let mut graph = Graph::new();
            let kinds = [dtype, dtype, DType::Bool];
            let root = expression(&mut graph, &mut random, dtype, &kinds, 4);
            check(rewriter, &mut graph, root, &mut random, &kinds);
        }
    }
}

/// Shapes that random expressions seldom have, with random numbers in them.
fn written_expressions(rewriter: &mut Rewriter) {
    let mut random = fastrand::Rng::with_seed(13);
    for round in 0..400 {
        let mut graph = Graph::new();
        let kinds = [DType::Index, DType::Index, DType::Bool];
        let (x, w) = (variable(&mut graph, 0, DType::Index), variable(&mut graph, 1, DType::Index));
        let [a, b] = [random.i64(2..9), random.i64(2..9)].map(|number| graph.index(number));
        let mut alu = |op, a, b| graph.alu(op, &[a, b]).unwrap();
        let root = match round % 8 {
            0 => {
                let quotient = alu(Op::Idiv, x, a);
                let whole = alu(Op::Mul, quotient, a);
                let rest = alu(Op::Mod, x, a);
                alu(Op::Add, whole, rest)
            }
            1 => {
                let rest = alu(Op::Mod, x, a);
                let quotient = alu(Op::Idiv, x, a);
                let whole = alu(Op::Mul, quotient, a);
                alu(Op::Add, rest, whole)
            }
            2 => {
                let (first, second) = (alu(Op::Mul, x, a), alu(Op::Mul, x, b));
                let sum = alu(Op::Add, w, first);
                alu(Op::Add, sum, second)
            }
            3 => {
                let (sum, product) = (alu(Op::Add, w, x), alu(Op::Mul, x, b));
                let squares = alu(Op::Mul, w, w);
                let sum = alu(Op::Add, sum, squares);
                alu(Op::Add, sum, product)
            }
            4 => {
                let product = alu(Op::Mul, a, b);
                let rest = alu(Op::Mod, x, product);
                alu(Op::Idiv, rest, b)
            }
            5 => {
                let product = alu(Op::Mul, a, b);
                let rest = alu(Op::Mod, x, product);
                alu(Op::Mod, rest, b)
            }
            6 => {
                let (product, scaled) = (alu(Op::Mul, a, b), alu(Op::Mul, x, a));
                alu(if round % 16 == 6 { Op::Idiv } else { Op::Mod }, scaled, product)
            }
            _ => {
                let sum = alu(Op::Add, x, a);
                let condition = if round % 16 == 7 { alu(Op::CmpLt, sum, b) } else { alu(Op::CmpLt, b, sum) };
                let inner = graph.alu(Op::Where, &[condition, x, w]).unwrap();
                let sources = if round % 32 < 16 { [condition, inner, b] } else { [condition, a, inner] };
                graph.alu(Op::Where, &sources).unwrap()
            }
        };
        check(rewriter, &mut graph, root, &mut random, &kinds);
    }
    // A product by a divisor that no value makes 0: `w mod 7 + 1` or `max(w, 1)`, on either side.
    for round in 0..40 {
        let mut graph = Graph::new();
        let kinds = [DType::Index, DType::Index];
        let mut variables = [variable(&mut graph, 0, DType::Index), variable(&mut graph, 1, DType::Index)];
        variables.rotate_left(round % 2);
        let [x, w] = variables;
        let (seven, one) = (graph.index(7), graph.index(1));
        let mut alu = |op, a, b| graph.alu(op, &[a, b]).unwrap();
        let rest = alu(Op::Mod, w, seven);
        let divisor = if round < 20 { alu(Op::Add, rest, one) } else { alu(Op::Max, w, one) };
        let square = alu(Op::Mul, x, x);
        let factor = [x, square][round / 2 % 2];
        let product = if round % 8 < 4 { alu(Op::Mul, divisor, factor) } else { alu(Op::Mul, factor, divisor) };
        let root = alu([Op::Idiv, Op::Mod][round / 8 % 2], product, divisor);
        check(rewriter, &mut graph, root, &mut random, &kinds);
    }
    products_with_masks(rewriter, &mut random);
    comparisons_of_differences(rewriter, &mut random);
    comparisons_of_choices(rewriter, &mut random);
    arithmetic_of_choices(rewriter, &mut random);
    choices_in_choices(rewriter, &mut random);
    comparisons_of_numbers(rewriter, &mut random);
    powers_of_whole_numbers(rewriter, &mut random);
    constant_exponents(rewriter, &mut random);
    // A comparison of a bool that went through a number.
    let mut graph = Graph::new();
    let gate = variable(&mut graph, 0, DType::Bool);
    let number = graph.add(Op::Cast, &[gate], Arg::DType(DType::I32)).unwrap();
    let zero = graph.constant(Const::int(DType::I32, 0));
    let back = graph.alu(Op::CmpNe, &[number, zero]).unwrap();
    assert_eq!(rewriter.rewrite(&mut graph, &[back]).unwrap(), [gate]);
    // One, in every element.
    let (scalar, dims) = (graph.shape(&[]).unwrap(), graph.shape(&[4.into(), 3.into()]).unwrap());
    let param = |shape| (shape, Arg::Param { slot: 1, dtype: DType::F32, device: None, addrspace: None });
    let [x, small] = [dims, scalar].map(|shape| graph.add(Op::Param, &[param(shape).0], param(shape).1).unwrap());
    let one = graph.constant(Const::float(DType::F32, 1.0));
    let ones = graph.add(Op::Expand, &[one, dims], Arg::None).unwrap();
    let product = graph.alu(Op::Mul, &[ones, x]).unwrap();
    assert_eq!(rewriter.rewrite(&mut graph, &[product]).unwrap(), [x]);
    // It still broadcasts what has fewer.
    let product = graph.alu(Op::Mul, &[ones, small]).unwrap();
    let found = rewriter.rewrite(&mut graph, &[product]).unwrap()[0];
    assert_eq!(graph.props(found).shape, graph.props(product).shape);
    // A loop that runs once.
    let one = graph.index(1);
    let range = graph.range(one, 0, AxisType::Loop).unwrap();
    // A loop still names its Range, but what is computed from one trip is a number.
    let four = graph.index(4);
    let shifted = graph.alu(Op::Add, &[range, four]).unwrap();
    assert_eq!(rewriter.rewrite(&mut graph, &[shifted]).unwrap(), [four]);
}

/// `x - y == c`, and `x <= y` with `x >= y`.
fn comparisons_of_differences(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for dtype in [DType::I8, DType::I32, DType::I64] {
        for round in 0..40 {
            let mut graph = Graph::new();
            let [x, y] = [0, 1].map(|slot| variable(&mut graph, slot, dtype));
            let [minus, one, zero, number] =
                [-1, 1, 0, round - 20].map(|number| graph.constant(Const::int(dtype, number)));
            let truth = graph.constant(Const::int(DType::Bool, 1));
            let mut alu = |op, a, b| graph.alu(op, &[a, b]).unwrap();
            let (x, y) = if round % 4 == 0 { (alu(Op::Max, x, one), y) } else { (x, y) };
            let negative = alu(Op::Mul, y, minus);
            let difference = alu(Op::Add, x, negative);
            let shifted = alu(Op::Add, x, number);
            let (below, above) = (alu(Op::CmpLt, x, y), alu(Op::CmpLt, y, x));
            let (below, above) = (alu(Op::Xor, below, truth), alu(Op::Xor, above, truth));
            let roots = [
                alu(Op::CmpNe, difference, number),
                alu(Op::CmpNe, difference, zero),
                alu(Op::CmpNe, shifted, one),
                alu(Op::And, below, above),
            ];
            for root in roots {
                check(rewriter, &mut graph, root, random, &[dtype, dtype]);
            }
        }
    }
}

/// Choices of constants that are compared with a third.
fn comparisons_of_choices(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for (dtype, round) in
        [DType::I32, DType::F32, DType::U8].into_iter().flat_map(|dtype| (0..27).map(move |k| (dtype, k)))
    {
        let mut graph = Graph::new();
        let condition = variable(&mut graph, 0, DType::Bool);
        let [yes, no, other] =
            [round % 3, round / 3 % 3, round / 9].map(|number| graph.constant(Const::int(dtype, number)));
        let choice = graph.alu(Op::Where, &[condition, yes, no]).unwrap();
        for (op, a, b) in [(Op::CmpNe, choice, other), (Op::CmpLt, choice, other), (Op::CmpLt, other, choice)] {
            let root = graph.alu(op, &[a, b]).unwrap();
            check(rewriter, &mut graph, root, random, &[DType::Bool]);
        }
    }
}

/// Bools and choices as numbers, with constants added, multiplied and compared.
fn arithmetic_of_choices(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for dtype in [DType::I32, DType::U8, DType::I64, DType::F32, DType::F16, DType::F64] {
        for round in 0..60 {
            let mut graph = Graph::new();
            let gate = variable(&mut graph, 0, DType::Bool);
            let mut any = |graph: &mut Graph| {
                let number = constant(random, dtype);
                graph.constant(number)
            };
            let mut root = match round % 2 {
                0 => graph.add(Op::Cast, &[gate], Arg::DType(dtype)).unwrap(),
                _ => {
                    let sources = [gate, any(&mut graph), any(&mut graph)];
                    graph.alu(Op::Where, &sources).unwrap()
                }
            };
            for op in [Op::Mul, Op::Add].into_iter().cycle().take(1 + round % 4) {
                let number = any(&mut graph);
                let sources = if round % 3 == 0 { [number, root] } else { [root, number] };
                root = graph.alu(op, &sources).unwrap();
            }
            if round % 5 == 0 {
                let number = any(&mut graph);
                root = graph.alu([Op::CmpNe, Op::CmpLt][round / 5 % 2], &[root, number]).unwrap();
            }
            check(rewriter, &mut graph, root, random, &[DType::Bool]);
            let simple = rewriter.rewrite(&mut graph, &[root]).unwrap()[0];
            assert!(!matches!(graph.op(simple), Op::Add | Op::Mul), "{}", text::print(&graph, &[simple]));
        }
    }
}

/// Choices of something and a third, one in the other, on either side.
fn choices_in_choices(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for (dtype, round) in [DType::I32, DType::F32].into_iter().flat_map(|dtype| (0..16).map(move |k| (dtype, k))) {
        let mut graph = Graph::new();
        let kinds = [DType::Bool, DType::Bool, dtype, dtype];
        let mut variables = (0..4).map(|slot| variable(&mut graph, slot, kinds[slot as usize])).collect::<Vec<_>>();
        if round >= 8 {
            let number = constant(random, dtype);
            variables[3] = graph.constant(number);
        }
        let &[outer, inner, x, z] = &variables[..] else { return };
        let inside = if round % 2 == 0 { [inner, x, z] } else { [inner, z, x] };
        let inside = graph.alu(Op::Where, &inside).unwrap();
        let sources = if round / 2 % 2 == 0 { [outer, inside, z] } else { [outer, z, inside] };
        let root = graph.alu(Op::Where, &sources).unwrap();
        check(rewriter, &mut graph, root, random, &kinds);
        let simple = rewriter.rewrite(&mut graph, &[root]).unwrap()[0];
        assert_eq!((graph.op(simple), graph.source(simple, 1)), (Op::Where, x));
    }
}

/// `a < b or a == b` of floats that were integers, and of others, among them nan.
fn comparisons_of_numbers(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for (from, dtype) in
        [(DType::I32, DType::F32), (DType::I32, DType::F16), (DType::U8, DType::F64), (DType::F32, DType::F32)]
    {
        for round in 0..8 {
            let mut graph = Graph::new();
            let [a, b] = [0, 1].map(|slot| {
                let number = variable(&mut graph, slot, from);
                graph.add(Op::Cast, &[number], Arg::DType(dtype)).unwrap()
            });
            let mut alu = |op, a, b| graph.alu(op, &[a, b]).unwrap();
            let less = alu(Op::CmpLt, a, b);
            let differ = if round % 2 == 0 { alu(Op::CmpNe, a, b) } else { alu(Op::CmpNe, b, a) };
            let truth = graph.constant(Const::int(DType::Bool, 1));
            let equal = graph.alu(Op::Xor, &[differ, truth]).unwrap();
            let root = graph.alu(Op::Or, &[less, equal]).unwrap();
            check(rewriter, &mut graph, root, random, &[from, from]);
            let simple = rewriter.rewrite(&mut graph, &[root]).unwrap()[0];
            assert_eq!(graph.op(simple) == Op::Or, from.is_float(), "{from} as {dtype}");
        }
    }
}

/// Powers that one operation rounds as well.
fn constant_exponents(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for dtype in [DType::F16, DType::F32, DType::F64] {
        for exponent in [0.0, 1.0, 2.0, -1.0, 3.0] {
            let mut graph = Graph::new();
            let (x, exponent) = (variable(&mut graph, 0, dtype), graph.constant(Const::float(dtype, exponent)));
            let power = graph.alu(Op::Pow, &[x, exponent]).unwrap();
            check(rewriter, &mut graph, power, random, &[dtype]);
        }
    }
}

fn powers_of_whole_numbers(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for (number, is_whole) in [(0.0, true), (-3.0, true), (10.0, true), (0.5, false), (f64::NAN, false)] {
        let mut graph = Graph::new();
        let number = graph.constant(Const::float(DType::F32, number));
        let root = graph.alu(Op::Exp2, &[number]).unwrap();
        check(rewriter, &mut graph, root, random, &[]);
        let simple = rewriter.rewrite(&mut graph, &[root]).unwrap()[0];
        assert_eq!(graph.as_const(simple).is_some(), is_whole);
    }
}

/// A mask as a number, on either side of an integer, and of a float that was one.
fn products_with_masks(rewriter: &mut Rewriter, random: &mut fastrand::Rng) {
    for (from, dtype) in
        [(DType::I32, DType::I32), (DType::U8, DType::U8), (DType::U8, DType::F32), (DType::I32, DType::F32)]
    {
        for is_left in [false, true] {
            let mut graph = Graph::new();
            // Factors stand in the order in which they were made.
            let kinds = if is_left { [(1, DType::Bool), (0, from)] } else { [(0, from), (1, DType::Bool)] };
            let factors = kinds.map(|(slot, kind)| {
                let factor = variable(&mut graph, slot, kind);
                graph.add(Op::Cast, &[factor], Arg::DType(dtype)).unwrap()
            });
            let root = graph.alu(Op::Mul, &factors).unwrap();
            check(rewriter, &mut graph, root, random, &[from, DType::Bool]);
            // Below 0 a float would lose the sign of its zero.
            let simple = rewriter.rewrite(&mut graph, &[root]).unwrap()[0];
            assert_eq!(graph.op(simple) == Op::Where, from == DType::U8 || dtype == DType::I32);
        }
    }
}

#[test]
fn numbers_that_are_one_or_zero_are_masks() {
    let masks = [
        ("%5 = cast[i32](%4)", true),
        ("%5 = where(%4, %1, %0)", true),
        ("%5 = where(%4, %0, %1)", true),
        ("%6 = cast[u8](%4)\n%7 = cast[f32](%6)\n%5 = cast[i32](%7)", true),
        ("%5 = where(%4, %1, %2)", false),
        ("%5 = cast[i32](%3)", false),
    ];
    for (mask, is_one) in masks {
        let program = format!(
            "%0 = const[i32 0]\n%1 = const[i32 1]\n%2 = const[i32 2]\n%10 = stack()\n%3 = param[0 i64](%10)
%11 = const[i64 5]\n%4 = cmplt(%3, %11)\n{mask}\n%12 = param[1 i32](%10)\n%13 = mul(%12, %5)\nreturn %13\n"
        );
        let (mut graph, roots) = text::parse(&program).unwrap();
        let simple = Rewriter::new(rules::EXACT).rewrite(&mut graph, &roots).unwrap()[0];
        assert_eq!(graph.op(simple) == Op::Where, is_one, "{mask}");
        let mut random = fastrand::Rng::with_seed(7);
        check(&mut Rewriter::new(rules::EXACT), &mut graph, roots[0], &mut random, &[DType::I64, DType::I32]);
    }
}

/// What an integer is compared with may lie beyond the numbers that it had before it was made wider.
fn widened_comparisons(rewriter: &mut Rewriter) {
    let mut random = fastrand::Rng::with_seed(17);
    for (narrow, wide) in [(DType::I8, DType::I64), (DType::U8, DType::I16), (DType::I32, DType::U32)] {
        for number in [-129, -128, -100, -1, 0, 7, 127, 128, 255, 256] {
            for op in [Op::CmpNe, Op::CmpLt] {
                let mut graph = Graph::new();
                let x = variable(&mut graph, 0, narrow);
                let cast = graph.add(Op::Cast, &[x], Arg::DType(wide)).unwrap();
                let constant = graph.constant(Const::int(wide, number));
                for sources in [[cast, constant], [constant, cast]] {
                    let root = graph.alu(op, &sources).unwrap();
                    check(rewriter, &mut graph, root, &mut random, &[narrow]);
                }
            }
        }
    }
}

/// Reads and writes whose gate is `gate`.
fn gated(gate: &str) -> String {
    format!(
        "%0 = const[index 8]\n%1 = stack(%0)\n%2 = param[0 f32 global](%1)\n%3 = param[1 f32 global](%1)
%4 = range[0 loop](%0)\n%5 = index(%3, %4)\n%6 = const[f32 0.0]\n%7 = const[index 3]\n%8 = {gate}
%9 = load[reg](%5, %6, %8)\n%10 = where(%8, %9, %6)\n%11 = index(%2, %4)\n%12 = store(%11, %10, %8)
%13 = end(%12, %4)\n%14 = sink(%13)\nreturn %14\n"
    )
}

fn needless_gates(rewriter: &mut Rewriter) {
    let mut simplified = |gate: &str| {
        let (mut graph, roots) = text::parse(&gated(gate)).unwrap();
        let roots = rewriter.rewrite(&mut graph, &roots).unwrap();
        text::print(&graph, &roots)
    };
    // Every index below the bound: no gate is left.
    let open = simplified("cmplt(%4, %0)");
    assert!(!open.contains("cmplt") && !open.contains("f32 0.0"), "{open}");
    // No index is below 0: nothing is read.
    let shut = simplified("cmplt(%0, %4)");
    assert!(!shut.contains("load"), "{shut}");
    // A gate that decides something stays, and does so once.
    let half = simplified("cmplt(%4, %7)");
    assert!(half.contains("cmplt") && half.contains("load") && !half.contains("where"), "{half}");
}

/// The state of a tensor after two gated stores.
const STATE: &str = "
%0 = const[index 8]
%1 = stack(%0)
%2 = param[0 f32](%1)
%3 = param[1 bool](%1)
%4 = param[2 bool](%1)
%5 = const[f32 1.0]
%6 = const[f32 2.0]
%7 = store(%2, %5, %3)
%8 = store(%2, %6, %4)
%9 = after(%2, %7, %8)
return %9
";

fn gated_states(rewriter: &mut Rewriter) {
    let (mut graph, roots) = text::parse(STATE).unwrap();
    let roots = rewriter.rewrite(&mut graph, &roots).unwrap();
    let found = text::print(&graph, &roots);
    let lines: Vec<&str> = found.lines().filter_map(|line| line.split("  ;").next()).collect();
    let ops: Vec<&str> = lines.iter().filter_map(|line| line.split_once("= ")?.1.split(['(', '[']).next()).collect();
    assert_eq!(ops.iter().filter(|op| **op == "where").count(), 2, "{found}");
    assert_eq!(ops.iter().filter(|op| **op == "store").count(), 1, "{found}");
}

#[test]
fn every_rule_fires_and_keeps_the_value() {
    let mut rewriter = Rewriter::new(rules::EXACT);
    random_expressions(&mut rewriter);
    written_expressions(&mut rewriter);
    widened_comparisons(&mut rewriter);
    needless_gates(&mut rewriter);
    gated_states(&mut rewriter);
    let fired = rewriter.fired();
    let all = rules::EXACT.iter().flat_map(|set| set.rules);
    let silent: BTreeSet<&str> = all.map(|rule| rule.name).filter(|name| !fired.contains_key(name)).collect();
    assert!(silent.is_empty(), "rules that nothing reached: {silent:?}");
}

#[test]
fn bounds_of_an_integer_cast_to_a_narrow_float_round_with_it() {
    let mut graph = Graph::new();
    for (number, dtype) in [(70_000, DType::F16), (16_777_217, DType::F32), (-70_000, DType::F16)] {
        let number = graph.constant(Const::int(DType::I32, number));
        let cast = graph.add(Op::Cast, &[number], Arg::DType(dtype)).unwrap();
        let value = evaluate(&graph, cast, &[]).as_float().unwrap();
        assert_eq!(graph.props(cast).interval, tinyspec_ir::Interval::Float(tinyspec_ir::Floats::only(value)));
    }
}
