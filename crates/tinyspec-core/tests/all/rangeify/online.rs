//! How many kernels attention becomes.

use super::*;
use tinyspec_ir::ops::norm;

/// Queries, keys and values of some heads, and attention.
fn attention(graph: &mut Graph, [heads, queries, keys, width]: [i64; 4], causal: bool) -> ([NodeId; 3], NodeId) {
    let mut input = |slot, length| param(graph, slot, DType::F32, &[heads, length, width]);
    let [q, k, v] = [input(0, queries), input(1, keys), input(2, keys)];
    let out = norm::sdpa(graph, q, k, v, causal).unwrap();
    ([q, k, v], out)
}

fn scheduled(graph: &Graph, outputs: &[NodeId]) -> Schedule {
    rangeify_with(graph, outputs, &Costs::of(&target()), &target()).unwrap()
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
        }
    }
}
