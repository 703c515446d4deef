//! The simplifier on random integer expressions: values are kept, intervals are sound.

use std::collections::BTreeSet;
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Dim, Graph, NodeId, Op, eval::eval_op, rules, text};

/// The value of `root` where Range k stands at `positions[k]`.
pub(super) fn evaluate(graph: &Graph, root: NodeId, positions: &[i64]) -> i128 {
    let mut values: Vec<Option<Const>> = vec![None; graph.len()];
    for node in graph.reachable(&[root]) {
        values[node.index()] = match (graph.op(node), graph.arg(node)) {
            (Op::Range, Arg::Range { id, .. }) => Some(Const::int(DType::Index, positions[*id as usize] as i128)),
            (Op::Const, _) => graph.as_const(node),
            (op, _) => {
                let operands: Vec<Const> =
                    graph.sources(node).iter().map(|source| values[source.index()].unwrap()).collect();
                Some(eval_op(op, graph.dtype(node), &operands).unwrap())
            }
        };
    }
    values[root.index()].unwrap().as_int().unwrap()
}

/// A random expression over three Ranges, built of the ops that the rules look at.
pub(super) fn random(graph: &mut Graph, random_source: &mut fastrand::Rng, bounds: &[i64; 3], depth: usize) -> NodeId {
    if depth == 0 || random_source.u8(0..6) == 0 {
        return if random_source.bool() {
            graph.index(random_source.i64(-9..10))
        } else {
            let number = random_source.usize(0..3);
            let bound = graph.index(bounds[number]);
            graph.range(bound, number as u32, AxisType::Loop).unwrap()
        };
    }
    let a = random(graph, random_source, bounds, depth - 1);
    let small = [1, 2, 3, 4, 6, 8, 12, -1, -3, 0];
    let b = if random_source.u8(0..2) == 0 {
        graph.index(small[random_source.usize(0..small.len())])
    } else {
        random(graph, random_source, bounds, depth - 1)
    };
    let op = [Op::Add, Op::Add, Op::Mul, Op::Idiv, Op::Mod, Op::Max, Op::Where][random_source.usize(0..7)];
    if op == Op::Where {
        let compare = [Op::CmpLt, Op::CmpNe][random_source.usize(0..2)];
        let limit = graph.index(random_source.i64(-9..10));
        let mut condition = graph.alu(compare, &[a, limit]).unwrap();
        if random_source.bool() {
            let other = graph.alu(Op::CmpLt, &[b, limit]).unwrap();
            let join = [Op::And, Op::Or, Op::Xor][random_source.usize(0..3)];
            condition = graph.alu(join, &[condition, other]).unwrap();
        }
        return graph.alu(Op::Where, &[condition, a, b]).unwrap();
    }
    graph.alu(op, &[a, b]).unwrap()
}

#[test]
fn random_expressions_keep_their_values_under_every_rule() {
    let mut random_source = fastrand::Rng::with_seed(7);
    let mut rewriter = Rewriter::new(rules::EXACT);
    for round in 0..20_000 {
        let mut graph = Graph::new();
        let bounds = [0; 3].map(|_| random_source.i64(1..14));
        let root = random(&mut graph, &mut random_source, &bounds, 5);
        let simple = rewriter.rewrite(&mut graph, &[root]).unwrap()[0];
        for _ in 0..12 {
            let positions: Vec<i64> = bounds.iter().map(|&bound| random_source.i64(0..bound)).collect();
            let want = evaluate(&graph, root, &positions);
            let (low, high) = graph.props(simple).interval.int().unwrap();
            assert!(low <= want && want <= high, "round {round}: {want} outside [{low}, {high}]");
            assert_eq!(
                evaluate(&graph, simple, &positions),
                want,
                "round {round} at {positions:?}:\n{}\n{}",
                text::print(&graph, &[root]),
                text::print(&graph, &[simple])
            );
        }
    }
    let fired = rewriter.fired();
    let all = [&rules::INTEGER, &rules::DIVISION].into_iter().flat_map(|set| set.rules);
    let silent: BTreeSet<&str> = all.map(|rule| rule.name).filter(|name| !fired.contains_key(name)).collect();
    println!("rules that no random expression reached: {silent:?}");
}

#[test]
fn a_chain_of_100_000_nodes_is_simplified() {
    let mut graph = Graph::new();
    let bound = graph.index(10);
    let range = graph.range(bound, 0, AxisType::Loop).unwrap();
    let one = graph.index(1);
    let mut node = range;
    for _ in 0..100_000 {
        node = graph.alu(Op::Add, &[node, one]).unwrap();
    }
    let simple = rules::simplify(&mut graph, &[node]).unwrap()[0];
    let sum = graph.index(100_000);
    assert_eq!(simple, graph.alu(Op::Add, &[range, sum]).unwrap());
}

/// An index is exact: constants do not fold by wrapping, neither alone, nor as the factors of an expression or of a dim.
#[test]
fn constants_of_an_index_never_wrap() {
    let mut graph = Graph::new();
    let (most, two, large) = (graph.index(i64::MAX), graph.index(2), graph.index(1 << 40));
    for (op, a, b) in [(Op::Add, most, two), (Op::Mul, most, two), (Op::Mul, large, large)] {
        let error = graph.alu(op, &[a, b]).expect_err("beyond 64 bits").to_string();
        assert!(error.contains("is more than an index of 64 bits holds"), "{error}");
    }
    let bound = graph.index(9);
    let range = graph.range(bound, 0, AxisType::Loop).unwrap();
    let once = graph.alu(Op::Mul, &[range, large]).unwrap();
    let twice = graph.alu(Op::Mul, &[once, large]).unwrap();
    let simple = rules::simplify(&mut graph, &[twice]).unwrap()[0];
    assert_eq!(simple, twice);
    let large = Dim::from(1i64 << 40);
    let size = Dim::named(0, 1, 9) * large.clone() * large;
    assert!(size.bounds().0 > 1 << 60, "{size}");
    assert_eq!(Dim::from(i64::MAX) + Dim::from(1), Dim::from(i64::MAX));
}
