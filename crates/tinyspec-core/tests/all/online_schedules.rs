//! Attention computes the same under every schedule of its ranges, and in blocks of any size.

use crate::evaluate::{self, Memory};
use crate::lowering::{any_schedule, fitting, targets};
use proptest::prelude::*;
use tinyspec_core::lower::kernel::finish;
use tinyspec_core::lower::optimize::{Blocking, OptOp, Scheduler, loops_in_blocks};
use tinyspec_core::lower::rangeify::rangeify;
use tinyspec_ir::ops::norm;
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, DType, Device, Dim, Graph, NodeId, Op};

/// Queries, keys, width and width of the values; fewer scores would be stored.
type Size = [i64; 4];

/// The kernel of attention in range form, and its memory: the result first.
fn attention([queries, keys, width, values]: Size, causal: bool) -> (Graph, NodeId, Memory) {
    let mut graph = Graph::new();
    let shapes = [[1, 2, queries, width], [1, 2, keys, width], [1, 2, keys, values]];
    let inputs: Vec<NodeId> = (0..)
        .zip(&shapes)
        .map(|(slot, shape)| {
            let shape = graph.shape(&shape.map(Dim::from)).unwrap();
            let (device, addrspace) = (Some(Device::new("cpu")), Some(AddrSpace::Global));
            graph.add(Op::Param, &[shape], Arg::Param { slot, dtype: DType::F32, device, addrspace }).unwrap()
        })
        .collect();
    let out = norm::sdpa(&mut graph, inputs[0], inputs[1], inputs[2], causal).unwrap();
    let schedule = rangeify(&graph, &[out], &targets()[0]).unwrap();
    let [call] = &schedule.calls[..] else { panic!("attention is {} kernels", schedule.calls.len()) };
    let mut kernel = Graph::new();
    let sink = kernel.import(&schedule.graph, &[call.kernel], |_, _| Ok(None)).unwrap()[0];
    let number = |slot: usize, at: i64| ((at * 7919 + slot as i64 * 104_729) % 1009) as f64 / 336.0 - 1.5;
    let params = schedule.graph.sources(call.node)[1..].iter().enumerate().map(|(slot, &buffer)| {
        let count = schedule.graph.props(buffer).element_count().as_const().unwrap();
        (0..count).map(|at| Const::float(DType::F32, number(slot, at))).collect()
    });
    (kernel, sink, params.collect())
}

fn assert_near(expected: &Memory, found: &Memory, how: &dyn std::fmt::Debug) {
    for (at, (a, b)) in expected[0].iter().zip(&found[0]).enumerate() {
        let (a, b) = (a.as_float().unwrap(), b.as_float().unwrap());
        assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{how:?}: {b} rather than {a} at {at}");
    }
}

fn check_schedule(size: Size, causal: bool, schedule: &[OptOp], target: usize) {
    let (graph, sink, memory) = attention(size, causal);
    let (mut expected, mut found) = (memory.clone(), memory);
    evaluate::ranges(&graph, sink, &mut expected);
    let target = &targets()[target];
    let scheduler = Scheduler::new(graph, sink, target).unwrap();
    let (space, fitting) = fitting(&scheduler, schedule);
    let (graph, sink) = scheduler.build(&space).unwrap();
    evaluate::linear(&finish(graph, sink, "scheduled", target).unwrap(), &mut found);
    assert_near(&expected, &found, &fitting);
}

fn check_blocks(size: Size, causal: bool, blocking: Blocking, target: usize) {
    let (mut graph, sink, memory) = attention(size, causal);
    let (mut expected, mut found) = (memory.clone(), memory);
    evaluate::ranges(&graph, sink, &mut expected);
    let target = &targets()[target];
    let sink = loops_in_blocks(&mut graph, sink, target, blocking).unwrap().expect("attention streams its scores");
    evaluate::linear(&finish(graph, sink, "blocks", target).unwrap(), &mut found);
    assert_near(&expected, &found, &(size, causal, blocking));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_of_attention_computes_the_same(
        schedule in any_schedule(),
        target in 0..4usize,
        causal in any::<bool>(),
    ) {
        check_schedule([32, 64, 4, 3], causal, &schedule, target);
    }

    #[test]
    fn attention_in_any_blocks_computes_the_same(
        queries in 20..60i64,
        keys in 110..150i64,
        width in 1..9i64,
        values in 1..9i64,
        (vectors, rows, tiles) in (1..5i64, 1..10i64, 1..20i64),
        target in 0..3usize,
        causal in any::<bool>(),
    ) {
        check_blocks([queries, keys, width, values], causal, Blocking { vectors, rows, tiles }, target);
    }
}
