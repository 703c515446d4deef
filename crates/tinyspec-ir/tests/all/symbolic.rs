//! The simplifier: the corpus of integer expressions, and random ones. Values are kept, intervals are sound.

use serde_json::Value;
use std::collections::BTreeSet;
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Graph, NodeId, Op, eval::eval_op, rules, text};

/// A variable is a Range shifted by its least value, so that its interval is what the case says.
fn variable(graph: &mut Graph, number: usize, (min, max): (i64, i64)) -> NodeId {
    let bound = graph.index(max - min + 1);
    let range = graph.range(bound, number as u32, AxisType::Loop).unwrap();
    let min = graph.index(min);
    graph.alu(Op::Add, &[range, min]).unwrap()
}

/// The value of `root` where Range k stands at `positions[k]`.
fn evaluate(graph: &Graph, root: NodeId, positions: &[i64]) -> i128 {
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

fn build(graph: &mut Graph, tree: &Value, variables: &[(String, NodeId)]) -> NodeId {
    let items = tree.as_array().unwrap();
    let name = items[0].as_str().unwrap();
    match name {
        "const" => return graph.index(items[1].as_i64().unwrap()),
        "var" => {
            let name = items[1].as_str().unwrap();
            return variables.iter().find(|(other, _)| other == name).unwrap().1;
        }
        _ => {}
    }
    let operands: Vec<NodeId> = items[1..].iter().map(|item| build(graph, item, variables)).collect();
    let minus = graph.index(-1);
    let as_index = |graph: &mut Graph, node: NodeId| match graph.dtype(node) {
        DType::Bool => graph.add(Op::Cast, &[node], Arg::DType(DType::Index)).unwrap(),
        _ => node,
    };
    let (a, b) = (operands[0], operands[1]);
    let op = match name {
        "where" => {
            let (b, c) = (as_index(graph, operands[1]), as_index(graph, operands[2]));
            let condition = match graph.dtype(a) {
                DType::Bool => a,
                _ => {
                    let zero = graph.index(0);
                    graph.alu(Op::CmpNe, &[a, zero]).unwrap()
                }
            };
            return graph.alu(Op::Where, &[condition, b, c]).unwrap();
        }
        "sub" | "min" => {
            let (a, b) = (as_index(graph, a), as_index(graph, b));
            let negative_b = graph.alu(Op::Mul, &[b, minus]).unwrap();
            if name == "sub" {
                return graph.alu(Op::Add, &[a, negative_b]).unwrap();
            }
            let negative_a = graph.alu(Op::Mul, &[a, minus]).unwrap();
            let max = graph.alu(Op::Max, &[negative_a, negative_b]).unwrap();
            return graph.alu(Op::Mul, &[max, minus]).unwrap();
        }
        "add" => Op::Add,
        "mul" => Op::Mul,
        "max" => Op::Max,
        "floordiv" => Op::Idiv,
        "floormod" => Op::Mod,
        "lt" => Op::CmpLt,
        "ne" => Op::CmpNe,
        other => panic!("the corpus has an op `{other}`"),
    };
    let (a, b) = (as_index(graph, a), as_index(graph, b));
    graph.alu(op, &[a, b]).unwrap()
}

#[test]
fn the_symbolic_corpus_keeps_its_values_and_bounds() {
    let folder = match std::env::var("TINYSPEC_CORPUS") {
        Ok(folder) => folder.into(),
        Err(_) => std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
    };
    let Ok(lines) = std::fs::read_to_string(folder.join("symbolic.jsonl")) else {
        println!("skipped: no symbolic.jsonl in {}", folder.display());
        return;
    };
    let (mut cases, mut tight) = (0, 0);
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut graph = Graph::new();
        let variables: Vec<(String, NodeId, i64)> = case["vars"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
            .map(|(number, var)| {
                let (min, max) = (var["min"].as_i64().unwrap(), var["max"].as_i64().unwrap());
                (var["name"].as_str().unwrap().to_string(), variable(&mut graph, number, (min, max)), min)
            })
            .collect();
        let names: Vec<(String, NodeId)> = variables.iter().map(|(name, node, _)| (name.clone(), *node)).collect();
        let root = build(&mut graph, &case["expr"], &names);
        let simple = rules::simplify(&mut graph, &[root]).unwrap()[0];
        let shown = text::print(&graph, &[simple]);
        for sample in case["samples"].as_array().unwrap() {
            let positions: Vec<i64> = sample[0]
                .as_array()
                .unwrap()
                .iter()
                .zip(&variables)
                .map(|(value, (_, _, min))| value.as_i64().unwrap() - min)
                .collect();
            let want = sample[1].as_i64().unwrap_or_else(|| sample[1].as_bool().unwrap() as i64);
            assert_eq!(evaluate(&graph, root, &positions), want as i128, "{} as written", case["id"]);
            assert_eq!(evaluate(&graph, simple, &positions), want as i128, "{} simplified to\n{shown}", case["id"]);
        }
        let exact = (case["min"].as_i64().unwrap() as i128, case["max"].as_i64().unwrap() as i128);
        for node in [root, simple] {
            let (low, high) = graph.props(node).interval.int().unwrap();
            assert!(low <= exact.0 && exact.1 <= high, "{}: [{low}, {high}] does not hold {exact:?}", case["id"]);
        }
        cases += 1;
        tight += (graph.props(simple).interval.int() == Some(exact)) as usize;
    }
    println!("{cases} symbolic cases, {tight} with exact bounds");
    assert!(cases > 0);
}

/// A random expression over three Ranges, built of the ops that the rules look at.
fn random(graph: &mut Graph, random_source: &mut fastrand::Rng, bounds: &[i64; 3], depth: usize) -> NodeId {
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
