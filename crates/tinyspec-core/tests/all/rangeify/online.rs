//! How many kernels attention and its gradients become, and that none of them stores the scores.

use super::*;
use tinyspec_core::lower::kernel::lower_kernel;
use tinyspec_ir::gradient::gradient;
use tinyspec_ir::ops::attention;

/// Queries, keys and values of some heads, and attention.
fn attention(graph: &mut Graph, [heads, queries, keys, width]: [i64; 4], causal: bool) -> ([NodeId; 3], NodeId) {
    let mut input = |slot, length| param(graph, slot, DType::F32, &[heads, length, width]);
    let [q, k, v] = [input(0, queries), input(1, keys), input(2, keys)];
    let out = attention::sdpa(graph, q, k, v, causal).unwrap();
    ([q, k, v], out)
}

fn scheduled(graph: &Graph, outputs: &[NodeId]) -> Schedule {
    rangeify_with(graph, outputs, &Costs::of(&target()), &target()).unwrap()
}

/// Elements of the largest buffer that a Call writes.
fn largest(schedule: &Schedule) -> i64 {
    let elements = |&buffer: &NodeId| schedule.graph.props(buffer).element_count().as_const().unwrap();
    schedule.buffers.iter().map(elements).max().unwrap()
}

fn graph_elements(graph: &Graph, node: NodeId) -> i64 {
    graph.props(node).element_count().as_const().unwrap()
}

const SIZES: [[i64; 4]; 5] =
    [[8, 512, 512, 64], [1, 4096, 4096, 64], [4, 777, 513, 128], [2, 1024, 1000, 16], [12, 300, 1000, 48]];

#[test]
fn attention_is_one_kernel() {
    for size in SIZES.into_iter().chain([[1, 64, 64, 16], [2, 70, 100, 33]]) {
        for causal in [false, true] {
            let mut graph = Graph::new();
            let (_, out) = attention(&mut graph, size, causal);
            let schedule = scheduled(&graph, &[out]);
            assert_eq!(schedule.calls.len(), 1, "{size:?}\n{}", schedule.explain(&graph));
            let kernel = schedule.calls[0].kernel;
            let kernel = lower_kernel(&mut schedule.graph.clone(), kernel, "attention", &target()).unwrap();
            // What the scores would take.
            let scores = 4 * size[0] * size[1] * size[2];
            assert!(size[2] < 4096 || kernel.scratch_bytes as i64 * 100 < scores, "{size:?}: {}", kernel.scratch_bytes);
        }
    }
}

#[test]
fn groups_of_heads_scales_and_masks_are_one_kernel_too() {
    use tinyspec_ir::ops::options::Attention;
    for (causal, masked) in [(false, false), (true, false), (false, true)] {
        let mut graph = Graph::new();
        let q = param(&mut graph, 0, DType::F32, &[1, 8, 512, 64]);
        let [k, v] = [1, 2].map(|slot| param(&mut graph, slot, DType::F32, &[1, 2, 600, 64]));
        let mask = masked.then(|| param(&mut graph, 3, DType::Bool, &[512, 600]));
        let options = Attention { causal, scale: Some(0.2), grouped: true, ..Attention::default() };
        let out = attention::sdpa_with(&mut graph, q, k, v, mask, None, options).unwrap();
        let schedule = scheduled(&graph, &[out]);
        assert_eq!(schedule.calls.len(), 1, "{causal} {masked}\n{}", schedule.explain(&graph));
        assert_eq!(largest(&schedule), 8 * 512 * 64);
    }
}

#[test]
fn its_gradients_are_five_kernels() {
    for size in SIZES {
        for causal in [false, true] {
            let mut graph = Graph::new();
            let (inputs, out) = attention(&mut graph, size, causal);
            let [heads, queries, keys, width] = size;
            let seed = param(&mut graph, 3, DType::F32, &[heads, queries, width]);
            let gradients = gradient(&mut graph, &[(out, seed)], &inputs).unwrap();
            let schedule = scheduled(&graph, &gradients);
            assert!(schedule.calls.len() <= 5, "{size:?}: {}\n{}", schedule.calls.len(), schedule.explain(&graph));
            assert_eq!(largest(&schedule), heads * queries.max(keys) * width, "{size:?}");
            for (input, &gradient) in gradients.iter().enumerate() {
                let schedule = scheduled(&graph, &[gradient]);
                assert_eq!(largest(&schedule), graph_elements(&graph, gradient), "{size:?}, input {input}");
            }
        }
    }
}
