//! Attention computes the same under every schedule of its ranges, and in blocks of any size.

use crate::evaluate::{self, Memory};
use crate::lowering::{any_schedule, axis, fitting, targets};
use proptest::prelude::*;
use tinyspec_core::lower::kernel::finish;
use tinyspec_core::lower::optimize::transforms::{Block, OptOp, Split};
use tinyspec_core::lower::optimize::{Blocking, Scheduler};
use tinyspec_core::lower::rangeify::rangeify;
use tinyspec_ir::ops::attention;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Const, DType, Device, Dim, Graph, NodeId, Op};

/// Queries, keys, width and width of the values; fewer scores would be stored.
type Size = [i64; 4];

const HEADS: i64 = 2;

/// What input `slot` holds at a place.
fn number(slot: u32, at: i64) -> f64 {
    f64::from((((at * 7919 + i64::from(slot) * 104_729) % 1009) as f32) / 336.0 - 1.5)
}

/// The kernel of attention in range form, and its memory: the result first.
fn attention([queries, keys, width, values]: Size, causal: bool) -> (Graph, NodeId, Memory) {
    let mut graph = Graph::new();
    let shapes = [[1, HEADS, queries, width], [1, HEADS, keys, width], [1, HEADS, keys, values]];
    let inputs: Vec<NodeId> = (0..)
        .zip(&shapes)
        .map(|(slot, shape)| {
            let shape = graph.shape(&shape.map(Dim::from)).unwrap();
            let (device, addrspace) = (Some(Device::new("cpu")), Some(AddrSpace::Global));
            graph.add(Op::Param, &[shape], Arg::Param { slot, dtype: DType::F32, device, addrspace }).unwrap()
        })
        .collect();
    let out = attention::sdpa(&mut graph, inputs[0], inputs[1], inputs[2], causal).unwrap();
    let schedule = rangeify(&graph, &[out], &targets()[0]).unwrap();
    let [call] = &schedule.calls[..] else { panic!("attention is {} kernels", schedule.calls.len()) };
    let mut kernel = Graph::new();
    let sink = kernel.import(&schedule.graph, &[call.kernel], |_, _| Ok(None)).unwrap()[0];
    let contents = schedule.graph.sources(call.node)[1..].iter().map(|&buffer| {
        let count = schedule.graph.props(buffer).element_count().as_const().unwrap();
        let value = |at| match schedule.graph.arg(buffer) {
            Arg::Param { slot, .. } => number(*slot, at),
            _ => 0.0,
        };
        (0..count).map(|at| Const::float(DType::F32, value(at))).collect()
    });
    (kernel, sink, contents.collect())
}

/// By the definition, in f64.
fn expected([queries, keys, width, values]: Size, causal: bool) -> Vec<f64> {
    let mut out = Vec::new();
    for (head, i) in (0..HEADS).flat_map(|head| (0..queries).map(move |i| (head, i))) {
        let shown = if causal { keys.min(i + 1) } else { keys };
        let score = |j: i64| -> f64 {
            let term = |h| number(0, (head * queries + i) * width + h) * number(1, (head * keys + j) * width + h);
            (0..width).map(term).sum::<f64>() / (width as f64).sqrt()
        };
        let scores: Vec<f64> = (0..shown).map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let total: f64 = powers.iter().sum();
        for c in 0..values {
            let term = |(j, power): (i64, &f64)| power * number(2, (head * keys + j) * values + c);
            out.push((0..).zip(&powers).map(term).sum::<f64>() / total);
        }
    }
    out
}

fn assert_near(size: Size, causal: bool, found: &Memory, how: &dyn std::fmt::Debug) {
    for (at, (expected, found)) in expected(size, causal).iter().zip(&found[0]).enumerate() {
        let found = found.as_float().unwrap();
        let near = (expected - found).abs() <= 1e-5 * (1.0 + expected.abs());
        assert!(near, "{size:?} {how:?}: {found} rather than {expected} at {at}");
    }
}

/// Those of the ops that fit.
fn check_schedule(size: Size, causal: bool, schedule: &[OptOp], target: usize) -> Vec<OptOp> {
    let (graph, sink, mut memory) = attention(size, causal);
    let target = &targets()[target];
    let scheduler = Scheduler::new(graph, sink, target).unwrap();
    let (space, fitting) = fitting(&scheduler, schedule);
    let (graph, sink) = scheduler.build(&space).unwrap();
    evaluate::linear(&finish(graph, sink, "scheduled", target).unwrap(), &mut memory);
    assert_near(size, causal, &memory, &fitting);
    fitting
}

/// Blocks are what the heuristics choose, and of no use to workgroups and to kernels that begin otherwise.
#[test]
fn blocks_are_a_schedule_of_their_own() {
    let block = OptOp::from(Block(Blocking::default()));
    for target in &targets() {
        let (graph, sink, _) = attention([32, 64, 2, 2], false);
        let scheduler = Scheduler::new(graph, sink, target).unwrap();
        let are_blocks = target.vector_bytes > 0 && target.workgroups.is_none();
        assert_eq!(scheduler.heuristics() == [block.clone()], are_blocks);
        assert_eq!(scheduler.space(std::slice::from_ref(&block)).is_ok(), are_blocks);
        let split = OptOp::from(Split { axis: axis("b"), factor: 4, target: AxisType::Upcast, top: false });
        for refused in [[split.clone(), block.clone()], [block.clone(), split], [block.clone(), block.clone()]] {
            let error = scheduler.space(&refused).unwrap_err().to_string();
            assert!(error.contains("block"), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_of_attention_computes_the_same(
        schedule in any_schedule(),
        target in 0..4usize,
        causal in any::<bool>(),
    ) {
        check_schedule([32, 64, 2, 2], causal, &schedule, target);
    }

    #[test]
    fn attention_in_any_blocks_computes_the_same(
        queries in 20..60i64,
        keys in 110..150i64,
        width in 2..9i64,
        values in 2..9i64,
        (vectors, rows, tiles) in (1..5i64, 1..10i64, 1..20i64),
        target in 0..3usize,
        causal in any::<bool>(),
    ) {
        let blocks = [Block(Blocking { vectors, rows, tiles }).into()];
        let fitting = check_schedule([queries, keys, width, values], causal, &blocks, target);
        assert_eq!(fitting, blocks);
    }
}
