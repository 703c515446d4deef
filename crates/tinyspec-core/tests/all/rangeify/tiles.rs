//! Kernels hold one sum of products at most, in loops that are all its own; and a boundary is one.

use super::*;
use tinyspec_ir::gradient::{gradient, ones_like};
use tinyspec_ir::ops::{
    activation, arithmetic, elementwise, matmul, movement, options, recurrent, reduce as reductions,
};

type Body = fn(&mut Graph, &[NodeId]) -> NodeId;

/// A program over inputs of these shapes.
struct Program {
    name: &'static str,
    inputs: Vec<Vec<i64>>,
    body: Body,
    /// Kernels of it.
    kernels: usize,
}

impl Program {
    fn graph(&self) -> (Graph, Vec<NodeId>, NodeId) {
        let mut graph = Graph::new();
        let inputs: Vec<NodeId> =
            (0u32..).zip(&self.inputs).map(|(slot, shape)| param(&mut graph, slot, DType::F32, shape)).collect();
        let value = (self.body)(&mut graph, &inputs);
        (graph, inputs, value)
    }
}

fn program(name: &'static str, inputs: &[&[i64]], body: Body, kernels: usize) -> Program {
    Program { name, inputs: inputs.iter().map(|shape| shape.to_vec()).collect(), body, kernels }
}

fn product(graph: &mut Graph, a: NodeId, b: NodeId) -> NodeId {
    matmul::matmul(graph, a, b).unwrap()
}

fn op(graph: &mut Graph, op: Op, a: NodeId, b: NodeId) -> NodeId {
    match op {
        Op::Add => arithmetic::add(graph, a, b).unwrap(),
        Op::Max => arithmetic::maximum(graph, a, b).unwrap(),
        _ => arithmetic::mul(graph, a, b).unwrap(),
    }
}

fn reshaped(graph: &mut Graph, x: NodeId, shape: &[i64]) -> NodeId {
    movement::reshape(graph, x, &dims(shape)).unwrap()
}

fn halves(graph: &mut Graph, x: NodeId) -> [NodeId; 2] {
    movement::chunk(graph, x, 2, -1).unwrap().try_into().unwrap()
}

fn conv(graph: &mut Graph, x: NodeId, weight: NodeId, stride: i64) -> NodeId {
    let options = options::Conv2d { stride: [stride; 2], ..options::default() };
    tinyspec_ir::ops::conv::conv(graph, x, weight, None, options).unwrap()
}

fn programs() -> Vec<Program> {
    let (a, b) = (&[96, 128][..], &[128, 160][..]);
    vec![
        program(
            "sum of two",
            &[a, b, a, b],
            |g, x| {
                let (first, second) = (product(g, x[0], x[1]), product(g, x[2], x[3]));
                op(g, Op::Add, first, second)
            },
            2,
        ),
        program(
            "sum of three",
            &[a, b, a, b, a, b],
            |g, x| {
                let (first, second, third) = (product(g, x[0], x[1]), product(g, x[2], x[3]), product(g, x[4], x[5]));
                let both = op(g, Op::Add, first, second);
                op(g, Op::Add, both, third)
            },
            3,
        ),
        program(
            "the greater of two",
            &[a, b, b],
            |g, x| {
                let (first, second) = (product(g, x[0], x[1]), product(g, x[0], x[2]));
                op(g, Op::Max, first, second)
            },
            2,
        ),
        program(
            "swiglu",
            &[a, b, b],
            |g, x| {
                let (gate, value) = (product(g, x[0], x[1]), product(g, x[0], x[2]));
                let gate = activation::silu(g, gate).unwrap();
                op(g, Op::Mul, gate, value)
            },
            2,
        ),
        program(
            "both halves of one",
            &[a, &[128, 320]],
            |g, x| {
                let whole = product(g, x[0], x[1]);
                let [value, gate] = halves(g, whole);
                let gate = elementwise::sqrt(g, gate).unwrap();
                op(g, Op::Mul, value, gate)
            },
            2,
        ),
        program(
            "gates of a recurrent step",
            &[a, a, a, &[128, 512], &[128, 512]],
            |g, x| recurrent::lstm_cell(g, x[0], x[1], x[2], x[3], x[4], None, None).unwrap()[0],
            3,
        ),
        program(
            "two strides",
            &[&[1, 32, 24, 24], &[64, 32, 1, 1], &[1, 32, 48, 48], &[64, 32, 1, 1]],
            |g, x| {
                let (first, second) = (conv(g, x[0], x[1], 1), conv(g, x[2], x[3], 2));
                op(g, Op::Add, first, second)
            },
            2,
        ),
        program(
            "a product over norms",
            &[a, &[160, 128]],
            |g, x| {
                let turned = movement::transpose(g, x[1], 0, 1).unwrap();
                let cosines = product(g, x[0], turned);
                let squares = op(g, Op::Mul, x[0], x[0]);
                let norms = reductions::sum(g, squares, Some(&[1]), true).unwrap();
                arithmetic::div(g, cosines, norms).unwrap()
            },
            2,
        ),
        program(
            "added to each pixel",
            &[&[4, 96, 16, 16], a, &[128, 96]],
            |g, x| {
                let rows = movement::narrow(g, x[1], 0, 0, 4).unwrap();
                let added = product(g, rows, x[2]);
                let added = reshaped(g, added, &[4, 96, 1, 1]);
                op(g, Op::Add, x[0], added)
            },
            2,
        ),
        program(
            "of one image added to each pixel",
            &[&[1, 96, 32, 32], &[1, 128], &[128, 96]],
            |g, x| {
                let added = product(g, x[1], x[2]);
                let added = reshaped(g, added, &[1, 96, 1, 1]);
                op(g, Op::Add, x[0], added)
            },
            2,
        ),
        program(
            "scale and shift",
            &[&[4, 64, 16, 16], a, &[128, 128]],
            |g, x| {
                let rows = movement::narrow(g, x[1], 0, 0, 4).unwrap();
                let both = product(g, rows, x[2]);
                let [scale, shift] = halves(g, both).map(|half| reshaped(g, half, &[4, 64, 1, 1]));
                let scaled = op(g, Op::Mul, x[0], scale);
                op(g, Op::Add, scaled, shift)
            },
            2,
        ),
    ]
}

/// The sums of products of a kernel, and whether each follows all of the kernel's loops.
fn sums(schedule: &Schedule, kernel: NodeId) -> Vec<bool> {
    let graph = &schedule.graph;
    let nodes = graph.reachable(&[kernel]);
    let loops = nodes.iter().filter(|&&node| graph.op(node) == Op::End).count();
    let sums = nodes
        .iter()
        .copied()
        .filter(|&node| graph.op(node) == Op::Reduce && graph.op(graph.source(node, 0)) == Op::Mul);
    sums.map(|sum| {
        let below = graph.reachable(&graph.sources(sum)[..1]);
        let ranges = below.iter().filter(|&&node| graph.op(node) == Op::Range).count();
        ranges >= loops + graph.sources(sum).len() - 1
    })
    .collect()
}

#[test]
fn no_kernel_has_two_sums_of_products_or_repeats_one() {
    for Program { name, kernels, .. } in &programs() {
        let found = programs().into_iter().find(|program| program.name == *name).unwrap();
        let (graph, _, value) = found.graph();
        let schedule = rangeify_with(&graph, &[value], &Costs::of(&target()), &target()).unwrap();
        assert_eq!(schedule.calls.len(), *kernels, "{name}\n{}", schedule.explain(&graph));
        for call in &schedule.calls {
            let sums = sums(&schedule, call.kernel);
            assert!(sums.len() <= 1 && sums.iter().all(|&all| all), "{name}\n{}", schedule.explain(&graph));
        }
    }
}

#[test]
fn nor_in_their_gradients() {
    for program in programs() {
        let (mut graph, inputs, value) = program.graph();
        let squared = op(&mut graph, Op::Mul, value, value);
        let loss = reductions::sum(&mut graph, squared, None, false).unwrap();
        let one = ones_like(&mut graph, loss).unwrap();
        let gradients = gradient(&mut graph, &[(loss, one)], &inputs).unwrap();
        let schedule = rangeify_with(&graph, &gradients, &Costs::of(&target()), &target()).unwrap();
        for call in &schedule.calls {
            let sums = sums(&schedule, call.kernel);
            assert!(sums.len() <= 1, "{}\n{}", program.name, schedule.explain(&graph));
        }
    }
}

/// Smaller ones are run.
#[test]
fn kernels_that_were_cut_give_the_same() {
    let (a, b) = (&[6, 40][..], &[40, 5][..]);
    let mut graph = Graph::new();
    let inputs: Vec<NodeId> =
        (0u32..).zip([a, b, a, b]).map(|(slot, shape)| param(&mut graph, slot, DType::F32, shape)).collect();
    let (first, second) = (product(&mut graph, inputs[0], inputs[1]), product(&mut graph, inputs[2], inputs[3]));
    let gate = activation::silu(&mut graph, first).unwrap();
    let gated = op(&mut graph, Op::Mul, gate, second);
    let kept = op(&mut graph, Op::Add, first, second);
    let costs = Costs { untiled: 1e3, ..Costs::of(&target()) };
    assert!(check(&graph, &[gated], &costs).calls.len() > 1);
    check(&graph, &[gated, kept, first], &costs);
}

/// What a row needs and is made of its own elements stays in the loop that walks along it.
#[test]
fn a_gate_of_each_row_is_made_in_its_loop() {
    let mut graph = Graph::new();
    let (x, weight) = (param(&mut graph, 0, DType::F32, &[1024, 512]), param(&mut graph, 1, DType::F32, &[512, 1]));
    let gate = product(&mut graph, x, weight);
    let gate = activation::sigmoid(&mut graph, gate).unwrap();
    let gated = op(&mut graph, Op::Mul, x, gate);
    let schedule = rangeify_with(&graph, &[gated], &Costs::of(&target()), &target()).unwrap();
    assert_eq!(schedule.calls.len(), 1, "{}", schedule.explain(&graph));
}

#[test]
fn nothing_behind_contiguous_is_in_the_kernels_before_it() {
    let shape = [64, 48];
    let made = |is_marked: bool, is_output: bool| {
        let mut graph = Graph::new();
        let x = param(&mut graph, 0, DType::F32, &shape);
        let root = elementwise::sqrt(&mut graph, x).unwrap();
        let value = if is_marked { elementwise::contiguous(&mut graph, root).unwrap() } else { root };
        let after = elementwise::exp(&mut graph, value).unwrap();
        let outputs = if is_output { vec![after, value] } else { vec![after] };
        check(&graph, &outputs, &Costs::of(&target()))
    };
    assert_eq!(made(false, false).calls.len(), 1);
    assert_eq!(made(false, true).calls.len(), 1);
    for is_output in [false, true] {
        let schedule = made(true, is_output);
        assert_eq!(schedule.calls.len(), 2);
        assert!(schedule.calls.iter().all(|call| call.outputs == 1));
        let has = |call: usize, op: Op| {
            let nodes = schedule.graph.reachable(&[schedule.calls[call].kernel]);
            nodes.iter().any(|&node| schedule.graph.op(node) == op)
        };
        assert!(has(0, Op::Sqrt) && !has(0, Op::Exp2) && has(1, Op::Exp2) && !has(1, Op::Sqrt));
    }
}
