//! Windows are index arithmetic: convolutions and pools are one kernel that reads its input in place.

use super::{Costs, check, param, target};
use tinyspec_ir::ops::options::{AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d, default};
use tinyspec_ir::ops::{conv, pool};
use tinyspec_ir::{DType, Graph, NodeId, Op, Result};

/// The schedule is one kernel.
fn fuses(build: impl FnOnce(&mut Graph, NodeId, NodeId) -> Result<NodeId>) -> String {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F32, &[2, 4, 8, 9]);
    let weight = param(&mut graph, 1, DType::F32, &[4, 4, 3, 3]);
    let out = build(&mut graph, x, weight).unwrap();
    let schedule = check(&graph, &[out], &Costs::of(&target()));
    assert_eq!(schedule.calls.len(), 1, "{}", schedule.explain(&graph));
    tinyspec_ir::text::print(&schedule.graph, &[schedule.root])
}

#[test]
fn a_convolution_reads_its_input_by_affine_indices() {
    for options in
        [default(), Conv2d { stride: [2, 2], ..default() }, Conv2d { stride: [3, 1], dilation: [2, 3], ..default() }]
    {
        let text = fuses(|graph, x, weight| conv::conv(graph, x, weight, None, options));
        for op in [Op::Mod, Op::Idiv, Op::CmpLt, Op::Where] {
            assert!(!text.contains(&format!("= {}", op.name())), "{options:?}: {text}");
        }
    }
}

#[test]
fn padding_is_a_gate_and_no_tensor() {
    fuses(|graph, x, weight| conv::conv(graph, x, weight, None, Conv2d { padding: [1, 1], ..default() }));
    fuses(|graph, x, weight| {
        conv::conv_transpose(graph, x, weight, None, ConvTranspose2d { padding: [1, 1], ..default() })
    });
    fuses(|graph, x, _| {
        pool::max_pool(graph, x, &[3], MaxPool2d { stride: Some([2, 2]), padding: [1, 1], ..default() })
    });
    fuses(|graph, x, _| pool::avg_pool(graph, x, &[2], AvgPool2d { ceil_mode: true, ..default() }));
}
