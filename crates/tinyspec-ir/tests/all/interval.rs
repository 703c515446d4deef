//! min_max of floats: no value leaves its bounds, nan is announced, and the bounds of Add, Mul, Max, Cast and Where are
//! reached.

use tinyspec_ir::eval::{eval_op, maximum};
use tinyspec_ir::{Arg, Builder, Const, DType, Floats, Graph, Interval, NodeId, Op};

const DTYPES: [DType; 6] = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];

/// Values of a dtype in order, -0 before +0.
fn values(dtype: DType) -> Vec<f64> {
    let positive = [0.0, f64::MIN_POSITIVE, 1e-40, 6e-8, 0.1, 0.5, 1.0, 1.5, 3.0, 448.0, 65504.0, 3e38, f64::INFINITY];
    let numbers = positive.iter().flat_map(|&value| [value, -value]);
    let mut values: Vec<f64> = numbers.filter_map(|value| Const::float(dtype, value).as_float()).collect();
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    values.dedup_by(|a, b| a.to_bits() == b.to_bits());
    values
}

fn variable(graph: &mut Graph, slot: u32, dtype: DType) -> NodeId {
    let scalar = graph.shape(&[]).unwrap();
    graph.add(Op::Param, &[scalar], Arg::Param { slot, dtype, device: None, addrspace: None }).unwrap()
}

/// A node with the bounds `low` and `high`.
fn between(graph: &mut Graph, slot: u32, dtype: DType, low: f64, high: f64) -> NodeId {
    let condition = variable(graph, slot, DType::Bool);
    let [low, high] = [low, high].map(|end| graph.constant(Const::float(dtype, end)));
    graph.alu(Op::Where, &[condition, low, high]).unwrap()
}

fn floats(graph: &Graph, node: NodeId) -> Floats {
    graph.props(node).interval.float().unwrap()
}

/// The least bounds around some values.
fn around(values: impl Iterator<Item = f64>) -> Floats {
    values.fold(Floats { nan: false, ..Floats::NAN }, |found, value| match value.is_nan() {
        true => Floats { nan: true, ..found },
        false => Floats { low: -maximum(-found.low, -value), high: maximum(found.high, value), ..found },
    })
}

fn bits(floats: Floats) -> (u64, u64, bool) {
    (floats.low.to_bits(), floats.high.to_bits(), floats.nan)
}

#[test]
fn bounds_of_sums_products_and_maxima_are_reached() {
    // Without infinities, the greatest value depends on where exactly a sum overflows.
    for dtype in DTYPES.into_iter().filter(|&dtype| dtype != DType::F8E4M3) {
        let all = values(dtype);
        let ends: Vec<(usize, usize)> =
            (0..all.len()).flat_map(|low| (low..all.len()).step_by(3).map(move |high| (low, high))).collect();
        for op in [Op::Add, Op::Mul, Op::Max] {
            for &(a, b) in &ends {
                for &(c, d) in ends.iter().step_by(5) {
                    let mut graph = Graph::new();
                    let x = between(&mut graph, 0, dtype, all[a], all[b]);
                    let y = between(&mut graph, 1, dtype, all[d], all[c]);
                    assert_eq!(bits(floats(&graph, x)), bits(Floats { low: all[a], high: all[b], nan: false }));
                    let node = graph.alu(op, &[x, y]).unwrap();
                    let value = |x: f64, y: f64| {
                        let operands = [Const::float(dtype, x), Const::float(dtype, y)];
                        eval_op(op, dtype, &operands).unwrap().as_float().unwrap()
                    };
                    let pairs = all[a..=b].iter().flat_map(|&x| all[c..=d].iter().map(move |&y| value(x, y)));
                    let (found, expected) = (floats(&graph, node), around(pairs));
                    let intervals = ([all[a], all[b]], [all[c], all[d]]);
                    assert_eq!(
                        bits(found),
                        bits(expected),
                        "{op} of {intervals:?} as {dtype}: {found:?}, {expected:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn bounds_of_casts_are_reached() {
    let mut graph = Graph::new();
    let targets = [DType::Bool, DType::I8, DType::U8, DType::I32, DType::U64, DType::I64];
    for from in DTYPES {
        let all = values(from);
        for (a, b) in (0..all.len()).flat_map(|low| (low..all.len()).map(move |high| (low, high))) {
            let x = between(&mut graph, 0, from, all[a], all[b]);
            for to in DTYPES.into_iter().filter(|&to| to != DType::F8E4M3) {
                let cast = |value: f64| eval_op(Op::Cast, to, &[Const::float(from, value)]).unwrap();
                let node = graph.add(Op::Cast, &[x], Arg::DType(to)).unwrap();
                let expected = around(all[a..=b].iter().map(|&value| cast(value).as_float().unwrap()));
                assert_eq!(bits(floats(&graph, node)), bits(expected), "{:?} as {to}", [all[a], all[b]]);
            }
            for to in targets {
                let cast = |value: f64| eval_op(Op::Cast, to, &[Const::float(from, value)]).unwrap().as_int().unwrap();
                let node = graph.add(Op::Cast, &[x], Arg::DType(to)).unwrap();
                let found = all[a..=b].iter().map(|&value| cast(value));
                let expected = Interval::Int(found.clone().min().unwrap(), found.max().unwrap());
                assert_eq!(graph.props(node).interval, expected, "{:?} as {to}", [all[a], all[b]]);
            }
        }
    }
    // nan becomes 0 as an integer, and true as a bool.
    let (nan, two) = (Const::float(DType::F32, f64::NAN), Const::float(DType::F32, 2.0));
    let [nan, two] = [nan, two].map(|value| graph.constant(value));
    let condition = variable(&mut graph, 0, DType::Bool);
    let either = graph.alu(Op::Where, &[condition, nan, two]).unwrap();
    assert_eq!(floats(&graph, either), Floats { low: 2.0, high: 2.0, nan: true });
    for (to, expected) in [(DType::I32, Interval::Int(0, 2)), (DType::Bool, Interval::Int(1, 1))] {
        let cast = graph.add(Op::Cast, &[either], Arg::DType(to)).unwrap();
        assert_eq!(graph.props(cast).interval, expected);
    }
}

#[test]
fn comparisons_are_decided_but_for_nan() {
    let mut graph = Graph::new();
    let one = graph.constant(Const::float(DType::F32, 1.0));
    let [zero, minus_zero] = [0.0, -0.0].map(|value| graph.constant(Const::float(DType::F32, value)));
    let x = variable(&mut graph, 0, DType::F32);
    let above = graph.alu(Op::Max, &[x, one]).unwrap();
    let byte = variable(&mut graph, 1, DType::U8);
    let number = graph.add(Op::Cast, &[byte], Arg::DType(DType::F32)).unwrap();
    let minus_one = graph.constant(Const::float(DType::F32, -1.0));
    for (op, a, b, expected) in [
        // `max(x, 1) < 0` fails even for nan, `0 < max(x, 1)` holds but for nan.
        (Op::CmpLt, above, zero, (0, 0)),
        (Op::CmpLt, zero, above, (0, 1)),
        (Op::CmpNe, zero, above, (1, 1)),
        (Op::CmpLt, minus_one, number, (1, 1)),
        (Op::CmpNe, x, x, (0, 1)),
        // Zeros are equal, whatever their signs.
        (Op::CmpNe, zero, minus_zero, (0, 0)),
        (Op::CmpLt, minus_zero, zero, (0, 0)),
    ] {
        let node = graph.alu(op, &[a, b]).unwrap();
        assert_eq!(graph.props(node).interval, Interval::Int(expected.0, expected.1), "{op}");
    }
}

/// Random expressions: the value of every node is within its bounds.
#[test]
fn no_value_leaves_its_bounds() {
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..20_000 {
        let mut graph = Graph::new();
        let dtype = DTYPES[round % DTYPES.len()];
        let all = values(dtype);
        let number = |random: &mut fastrand::Rng| match random.u8(0..20) {
            0 => f64::NAN,
            _ => all[random.usize(0..all.len())],
        };
        // Nodes, and the value of each at random arguments.
        let mut known: Vec<(NodeId, Const)> = Vec::new();
        for slot in 0..3 {
            known.push((variable(&mut graph, slot, dtype), Const::float(dtype, number(&mut random))));
            let byte = Const::int(DType::I16, random.i16(..).into());
            known.push((variable(&mut graph, 3 + slot, DType::I16), byte));
            known.push((variable(&mut graph, 6 + slot, DType::Bool), Const::int(DType::Bool, random.bool().into())));
            let constant = Const::float(dtype, number(&mut random));
            known.push((graph.constant(constant), constant));
        }
        for _ in 0..25 {
            let mut pick = |wanted: DType| loop {
                let found = known[random.usize(0..known.len())];
                if graph.dtype(found.0) == wanted {
                    return found;
                }
            };
            let (a, b, c) = (pick(dtype), pick(dtype), pick(DType::Bool));
            let whole = pick(DType::I16);
            let (op, arg, sources) = match random.u8(0..12) {
                0..=1 => (Op::Add, Arg::None, vec![a, b]),
                2..=3 => (Op::Mul, Arg::None, vec![a, b]),
                4 => (Op::Max, Arg::None, vec![a, b]),
                5 => (Op::CmpLt, Arg::None, vec![a, b]),
                6 => (Op::CmpNe, Arg::None, vec![a, b]),
                7..=8 => (Op::Where, Arg::None, vec![c, a, b]),
                9 => (Op::Cast, Arg::DType(dtype), vec![if random.bool() { c } else { whole }]),
                10 => (Op::Cast, Arg::DType([DType::I16, DType::Bool][random.usize(0..2)]), vec![a]),
                _ => (Op::Trunc, Arg::None, vec![a]),
            };
            let (nodes, operands): (Vec<NodeId>, Vec<Const>) = sources.into_iter().unzip();
            let node = graph.add(op, &nodes, arg).unwrap();
            let value = eval_op(op, graph.dtype(node), &operands).unwrap();
            let is_within = match (graph.props(node).interval, value.as_int(), value.as_float()) {
                (Interval::Int(low, high), Some(value), _) => low <= value && value <= high,
                (Interval::Float(floats), _, Some(value)) if value.is_nan() => floats.nan,
                (Interval::Float(floats), _, Some(value)) => {
                    floats.low.total_cmp(&value).is_le() && value.total_cmp(&floats.high).is_le()
                }
                _ => false,
            };
            assert!(is_within, "{op} of {operands:?} is {value:?}, not in {:?}", graph.props(node).interval);
            known.push((node, value));
        }
    }
}
