//! How many kernels well-known programs become.

use super::*;
use tinyspec_ir::ops;

fn input(graph: &mut Graph, slot: u32, shape: &[i64]) -> NodeId {
    param(graph, slot, DType::F32, shape)
}

fn kernels(graph: &Graph, outputs: &[NodeId]) -> usize {
    check(graph, outputs, &Costs::of(&target())).calls.len()
}

#[test]
fn row_softmax_is_one_kernel() {
    let mut graph = Graph::new();
    let x = input(&mut graph, 0, &[6, 5]);
    let y = ops::reduce::softmax(&mut graph, x, -1).unwrap();
    assert_eq!(kernels(&graph, &[y]), 1);
}
