//! How many kernels well-known programs become.

use super::*;
use tinyspec_ir::gradient::{gradient, ones_like};
use tinyspec_ir::ops::{activation, arithmetic, creation, einsum, loss, matmul, norm, reduce as reductions};

fn input(graph: &mut Graph, slot: u32, shape: &[i64]) -> NodeId {
    param(graph, slot, DType::F32, shape)
}

/// Number of kernels; small graphs are run as well.
fn kernels(graph: &Graph, outputs: &[NodeId]) -> usize {
    check(graph, outputs, &Costs::of(&target())).calls.len()
}

fn scheduled(graph: &Graph, outputs: &[NodeId]) -> Schedule {
    rangeify_with(graph, outputs, &Costs::of(&target()), &target()).unwrap()
}

#[test]
fn row_softmax_is_one_kernel() {
    for shape in [[6, 5], [4096, 1024]] {
        let mut graph = Graph::new();
        let x = input(&mut graph, 0, &shape);
        let y = reductions::softmax(&mut graph, x, -1).unwrap();
        assert_eq!(scheduled(&graph, &[y]).calls.len(), 1, "{shape:?}");
        if shape[0] < 10 {
            kernels(&graph, &[y]);
        }
    }
}

#[test]
fn layer_norm_is_one_kernel() {
    for shape in [[6, 5], [4096, 768]] {
        let mut graph = Graph::new();
        let x = input(&mut graph, 0, &shape);
        let (weight, bias) = (input(&mut graph, 1, &shape[1..]), input(&mut graph, 2, &shape[1..]));
        let y = norm::layer_norm(&mut graph, x, weight, bias, 1, 1e-5).unwrap();
        assert_eq!(scheduled(&graph, &[y]).calls.len(), 1, "{shape:?}");
        if shape[0] < 10 {
            kernels(&graph, &[y]);
        }
    }
}

/// x, w1, b1, w2, b2 and the logits of two layers.
fn network(graph: &mut Graph, [batch, inputs, hidden, classes]: [i64; 4]) -> (Vec<NodeId>, NodeId) {
    let shapes: [&[i64]; 5] = [&[batch, inputs], &[inputs, hidden], &[hidden], &[hidden, classes], &[classes]];
    let leaves: Vec<NodeId> = shapes.iter().enumerate().map(|(slot, shape)| input(graph, slot as u32, shape)).collect();
    let product = matmul::matmul(graph, leaves[0], leaves[1]).unwrap();
    let biased = arithmetic::add(graph, product, leaves[2]).unwrap();
    let active = activation::relu(graph, biased).unwrap();
    let product = matmul::matmul(graph, active, leaves[3]).unwrap();
    let logits = arithmetic::add(graph, product, leaves[4]).unwrap();
    (leaves, logits)
}

#[test]
fn two_layers_are_two_kernels() {
    for size in [[6, 5, 7, 3], [32, 64, 128, 10]] {
        let mut graph = Graph::new();
        let (_, logits) = network(&mut graph, size);
        assert_eq!(scheduled(&graph, &[logits]).calls.len(), 2, "{size:?}");
        if size[0] < 10 {
            kernels(&graph, &[logits]);
        }
    }
}

#[test]
fn a_training_step_is_few_kernels() {
    for size in [[6, 5, 7, 3], [32, 64, 128, 10], [512, 784, 1024, 10]] {
        let mut graph = Graph::new();
        let (leaves, logits) = network(&mut graph, size);
        let target = param(&mut graph, 5, DType::I32, &size[..1]);
        let loss = loss::cross_entropy(&mut graph, logits, target, "mean", 0.0, -100).unwrap();
        let one = ones_like(&mut graph, loss).unwrap();
        let gradients = gradient(&mut graph, &[(loss, one)], &leaves[1..]).unwrap();
        let mut outputs = vec![loss];
        let rate = graph.constant(Const::float(DType::F32, 0.125));
        for (&leaf, gradient) in leaves[1..].iter().zip(gradients) {
            let step = arithmetic::mul(&mut graph, gradient, rate).unwrap();
            outputs.push(arithmetic::sub(&mut graph, leaf, step).unwrap());
        }
        let schedule = scheduled(&graph, &outputs);

        assert!(schedule.calls.len() <= 11, "{size:?}: {} kernels\n{}", schedule.calls.len(), schedule.explain(&graph));
        if size[0] < 10 {
            kernels(&graph, &outputs);
        }
    }
}

#[test]
fn a_ramp_has_no_loop_of_its_own() {
    let mut graph = Graph::new();
    let ramp = creation::arange(&mut graph, 0.0, 9.0, 1.0, DType::I32).unwrap();
    let schedule = check(&graph, &[ramp], &Costs::of(&target()));
    let text = text::print(&schedule.graph, &[schedule.root]);
    assert!(!text.contains("reduce["), "{text}");
}

#[test]
fn an_update_with_state_is_one_kernel() {
    let mut graph = Graph::new();
    let leaves: Vec<NodeId> = (0..4).map(|slot| input(&mut graph, slot, &[1000])).collect();
    let decay = graph.constant(Const::float(DType::F32, 0.5));
    let mut averages = Vec::new();
    let squared = arithmetic::mul(&mut graph, leaves[3], leaves[3]).unwrap();
    for (state, new) in [(leaves[1], leaves[3]), (leaves[2], squared)] {
        let kept = arithmetic::mul(&mut graph, state, decay).unwrap();
        averages.push(arithmetic::add(&mut graph, kept, new).unwrap());
    }
    let quotient = arithmetic::div(&mut graph, averages[0], averages[1]).unwrap();
    let updated = arithmetic::sub(&mut graph, leaves[0], quotient).unwrap();
    assert_eq!(scheduled(&graph, &[updated, averages[0], averages[1]]).calls.len(), 1);
}

#[test]
fn statistics_of_one_tensor_share_a_loop() {
    let mut graph = Graph::new();
    let x = input(&mut graph, 0, &[64, 300]);
    let sum = reduce(&mut graph, Op::Add, x, &[1]);
    let squared = graph.alu(Op::Mul, &[x, x]).unwrap();
    let squares = reduce(&mut graph, Op::Add, squared, &[1]);
    let schedule = scheduled(&graph, &[sum, squares]);
    assert_eq!(schedule.calls.len(), 1);
    let text = text::print(&schedule.graph, &[schedule.calls[0].kernel]);
    assert_eq!(text.matches("= range[").count(), 2, "{text}");
}

#[test]
fn long_chains_are_cut() {
    let mut graph = Graph::new();
    let x = input(&mut graph, 0, &[8]);
    let mut y = x;
    for _ in 0..100_000 {
        y = graph.alu(Op::Add, &[y, x]).unwrap();
    }
    let kernels = scheduled(&graph, &[y]).calls.len();
    assert!((20..200).contains(&kernels), "{kernels} kernels");
}

/// Each kernel of the way back reads steps of the way there; which kernels may be one is asked of many, and of few others.
#[test]
fn kernels_of_a_long_chain_and_its_gradient_grow_with_it() {
    let kernels = |steps: usize| {
        let mut graph = Graph::new();
        let x = input(&mut graph, 0, &[8]);
        let y = (0..steps).fold(x, |value, _| graph.add(Op::Sin, &[value], Arg::None).unwrap());
        let cotangent = ones_like(&mut graph, y).unwrap();
        let slopes = gradient(&mut graph, &[(y, cotangent)], &[x]).unwrap();
        scheduled(&graph, &slopes).calls.len()
    };
    let (short, long) = (kernels(2000), kernels(12_000));
    assert!((6 * short - 60..=6 * short + 60).contains(&long), "{short} and {long} kernels");
}

#[test]
fn empty_tensors_need_no_kernel() {
    let mut graph = Graph::new();
    let x = input(&mut graph, 0, &[0, 3]);
    let y = graph.alu(Op::Add, &[x, x]).unwrap();
    let sum = reduce(&mut graph, Op::Max, x, &[0]);
    assert_eq!(kernels(&graph, &[y]), 0);
    assert_eq!(kernels(&graph, &[x, sum]), 1);
}

#[test]
fn a_kernel_is_cut_by_what_its_ops_become() {
    let chain = |step: fn(&mut Graph, NodeId) -> NodeId, length: usize| {
        let mut graph = Graph::new();
        let x = input(&mut graph, 0, &[300]);
        let y = (0..length).fold(x, |value, _| step(&mut graph, value));
        scheduled(&graph, &[y]).calls.len()
    };
    let sine = |graph: &mut Graph, value| graph.add(Op::Sin, &[value], Arg::None).unwrap();
    let square = |graph: &mut Graph, value| arithmetic::mul(graph, value, value).unwrap();
    assert_eq!(chain(square, 400), 1);
    assert_eq!(chain(sine, 4), 1);
    let kernels = chain(sine, 400);
    assert!((10..=200).contains(&kernels), "{kernels} kernels of 400 sines");
    // Twice as many for a chain twice as long.
    assert!((2 * kernels - 1..=2 * kernels + 1).contains(&chain(sine, 800)));
    // Wide, not deep.
    let mut graph = Graph::new();
    let mut total = input(&mut graph, 0, &[300]);
    for slot in 1..500 {
        let value = input(&mut graph, slot, &[300]);
        let value = graph.add(Op::Sin, &[value], Arg::None).unwrap();
        total = arithmetic::add(&mut graph, total, value).unwrap();
    }
    let kernels = scheduled(&graph, &[total]).calls.len();
    assert!((10..=250).contains(&kernels), "{kernels} kernels of 500 sines");
}

#[test]
fn a_large_sum_is_shared_in_parts() {
    let sums = |shape: &[i64], axes: Option<&[i64]>| {
        let mut graph = Graph::new();
        let x = input(&mut graph, 0, shape);
        let y = reductions::sum(&mut graph, x, axes, false).unwrap();
        scheduled(&graph, &[y]).calls.len()
    };
    assert_eq!(sums(&[1 << 22], None), 2);
    assert_eq!(sums(&[(1 << 22) + 1], None), 2);
    assert_eq!(sums(&[2048, 2048], None), 2);
    // Enough results to share, or nothing to gain.
    assert_eq!(sums(&[2048, 2048], Some(&[1])), 1);
    assert_eq!(sums(&[4096], None), 1);
}

#[test]
fn an_equation_of_many_matrices_is_a_chain_of_products() {
    for (equation, shapes) in [
        ("ij,jk,kl,lm->im", &[[4, 5], [5, 6], [6, 7], [7, 3]][..]),
        // No two of them in the order of their products.
        ("jk,ki,ij->i", &[[9, 8], [8, 2], [2, 9]][..]),
    ] {
        let mut graph = Graph::new();
        let inputs: Vec<NodeId> = (0..).zip(shapes).map(|(slot, shape)| input(&mut graph, slot, shape)).collect();
        let result = einsum::einsum(&mut graph, equation, &inputs).unwrap();
        let schedule = check(&graph, &[result], &Costs::of(&target()));
        assert_eq!(schedule.calls.len(), shapes.len() - 1, "{}", schedule.explain(&graph));
        let kernels = text::print(&schedule.graph, &[schedule.root]);
        for reduce in kernels.lines().filter(|line| line.contains("= reduce[")) {
            let operands = reduce.split(';').next().unwrap_or_default();
            assert_eq!(operands.matches('%').count(), 3, "one range of one value: {reduce}");
        }
    }
}
