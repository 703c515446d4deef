//! Tensor graphs become kernels that compute the same.

mod kernels;
mod online;
mod random;
mod tiles;
mod windows;

use crate::evaluate;
use tinyspec_backends::{Rates, Target};
use tinyspec_core::lower::rangeify::{Costs, Schedule, rangeify_with};
use tinyspec_ir::{AddrSpace, Arg, Axes, Builder, Const, DType, Device, Dim, Graph, NodeId, Op, text};

/// A machine with vectors of 8 floats.
fn target() -> Target {
    Target {
        name: "cpu".into(),
        fingerprint: "test".into(),
        isa: None,
        vector_bytes: 32,
        vector_registers: 16,
        masked_access: false,
        fused_multiply_add: true,
        accumulators: 8,
        watches_races: false,
        tensor_cores: Vec::new(),
        threads: 2,
        cache_bytes: [32 << 10, 1 << 20, 32 << 20],
        rates: Rates::TYPICAL,
        native: vec![],
        instructions: vec![],
        workgroups: None,
        arithmetic: vec![DType::F32, DType::I32],
    }
}

fn dims(numbers: &[i64]) -> Vec<Dim> {
    numbers.iter().map(|&number| Dim::from(number)).collect()
}

/// An input tensor.
fn param(graph: &mut Graph, slot: u32, dtype: DType, shape: &[i64]) -> NodeId {
    let shape = graph.shape(&dims(shape)).unwrap();
    let arg = Arg::Param { slot, dtype, device: Some(Device::new("cpu")), addrspace: Some(AddrSpace::Global) };
    graph.add(Op::Param, &[shape], arg).unwrap()
}

fn reduce(graph: &mut Graph, op: Op, value: NodeId, axes: &[u32]) -> NodeId {
    graph.add(Op::Reduce, &[value], Arg::Reduce { op, axes: Axes::from_slice(axes) }).unwrap()
}

/// Small integers, different for each slot.
fn data(dtype: DType, slot: u32, count: usize) -> Vec<Const> {
    (0..count as i128).map(|i| Const::int(dtype, (i * 7 + slot as i128 * 3) % 11 - 4)).collect()
}

/// The schedule computes what the tensor graph means.
fn check(graph: &Graph, outputs: &[NodeId], costs: &Costs) -> Schedule {
    let schedule = rangeify_with(graph, outputs, costs, &target()).unwrap();
    let inputs = |slot: u32, dtype: DType, count: usize| data(dtype, slot, count);
    let expected = evaluate::tensors(graph, outputs, &inputs);
    let found = evaluate::schedule(&schedule, &inputs);
    for (position, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let close = expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| near(*a, *b));
        assert!(
            close,
            "output {position}:\nexpected {expected:?}\nfound    {found:?}\n{}\n{}\n{}",
            text::print(graph, outputs),
            text::print(&schedule.graph, &[schedule.root]),
            schedule.explain(graph)
        );
    }
    schedule
}

/// Equal, or floats whose sums were made in another order.
fn near(a: Const, b: Const) -> bool {
    match (a.as_float(), b.as_float()) {
        (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-4 * (1.0 + a.abs()),
        _ => a == b,
    }
}
