//! Every kernel computes the same after lowering, for every target and every schedule.

use crate::evaluate::{self, Memory};
use crate::kernels::{self, Case, Window};
use crate::native::Devices;
use proptest::prelude::*;
use tinyspec_backends::interpreter::simt;
use tinyspec_backends::{LinearKernel, Rates, Target, Workgroups};
use tinyspec_core::lower::kernel::{finish, lower_kernel};
use tinyspec_core::lower::optimize::transforms::{
    Copier, Nolocals, Nontemporal, OptOp, Padto, Partition, Pipeline, Split, Stage, Swap, Tc,
};
use tinyspec_core::lower::optimize::{AxisName, Refusal, Scheduled, Scheduler, Space};
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Const, DType, Graph, NodeId, Op, text};

/// Targets that differ in what decides the lowering.
pub fn targets() -> Vec<Target> {
    let target = |vector_bytes, vector_registers, masked_access| Target {
        name: "cpu".into(),
        fingerprint: String::new(),
        isa: None,
        vector_bytes,
        vector_registers,
        masked_access,
        fused_multiply_add: true,
        accumulators: 8,
        watches_races: false,
        tensor_cores: if masked_access { vec![DType::I16, DType::BF16] } else { Vec::new() },
        threads: 2,
        cache_bytes: [32 << 10, 512 << 10, 32 << 20],
        rates: Rates::TYPICAL,
        native: vec![Op::Add, Op::Mul, Op::Max, Op::Div, Op::Recip, Op::Sqrt, Op::Trunc, Op::Mulacc, Op::Mod, Op::Idiv],
        workgroups: None,
        arithmetic: DType::ALL.to_vec(),
        instructions: if masked_access { Instruction::ALL.to_vec() } else { Instruction::HINTS.to_vec() },
    };
    // Small kernels are more than its caches hold.
    let crowded = Target { cache_bytes: [1 << 9, 1 << 10, 1 << 12], ..target(32, 16, false) };
    vec![target(64, 32, true), target(32, 16, false), target(16, 16, false), target(0, 16, false), gpu(), crowded]
}

/// Small limits, so that small kernels reach them.
fn gpu() -> Target {
    let limits = Workgroups {
        counts: [1000, 7, 5],
        threads: [64, 16, 8],
        size: 64,
        warp: 4,
        local_bytes: 48 << 10,
        processors: 4,
        resident: 128,
    };
    Target { workgroups: Some(limits), ..simt::target() }
}

/// Small integers, so that sums are exact.
fn memory(params: &[(DType, i64)]) -> Memory {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as i128 % 7 - 2
    };
    params.iter().map(|&(dtype, length)| (0..length).map(|_| Const::int(dtype, next())).collect()).collect()
}

thread_local! {
    static DEVICES: Devices = Devices::new();
}

fn check(name: &str, case: impl Fn() -> Case) {
    let (kernel, sink, outputs) = case();
    let mut expected = memory(&kernel.params);
    evaluate::ranges(&kernel.graph, sink, &mut expected);
    for target in targets() {
        let mut graph = kernel.graph.clone();
        let lowered = lower_kernel(&mut graph, sink, name, &target).unwrap();
        let mut found = memory(&kernel.params);
        evaluate::linear(&lowered, &mut found);
        for slot in 0..outputs {
            assert_eq!(
                expected[slot],
                found[slot],
                "{name}, vectors of {} bytes\n{}",
                target.vector_bytes,
                text::print(&lowered.graph, &[lowered.linear])
            );
        }
    }
    DEVICES.with(|devices| {
        for (target, run) in devices.iter() {
            let mut graph = kernel.graph.clone();
            let lowered = lower_kernel(&mut graph, sink, name, target).unwrap();
            let mut found = memory(&kernel.params);
            run(&lowered, &mut found);
            for slot in 0..outputs {
                assert_eq!(expected[slot], found[slot], "{name} on {}", target.name);
            }
        }
    });
}

#[test]
fn elementwise_of_any_size() {
    for (rows, columns) in [(1, 1), (1, 7), (3, 5), (4, 16), (8, 64), (9, 31), (2, 129)] {
        check("elementwise", || kernels::elementwise(rows, columns));
        check("broadcast", || kernels::broadcast(rows, columns));
        check("transpose", || kernels::transpose(rows, columns));
        check("bounded", || kernels::bounded(rows, columns));
    }
    check("optimiser", || kernels::optimiser(150));
    check("counting", || kernels::counting(100));
}

#[test]
fn reductions_along_either_axis() {
    for (rows, columns) in [(1, 5), (4, 10), (3, 64), (9, 20), (2, 100)] {
        for axis in [0, 1] {
            check("sum", || kernels::reduction(Op::Add, DType::F32, rows, columns, axis));
            check("max", || kernels::reduction(Op::Max, DType::F32, rows, columns, axis));
            check("product", || kernels::reduction(Op::Mul, DType::I64, rows, columns, axis));
            check("double", || kernels::reduction(Op::Add, DType::F64, rows, columns, axis));
        }
        check("normalise", || kernels::normalise(rows, columns, false));
        check("normalise_shared", || kernels::normalise(rows, columns, true));
        check("argmax", || kernels::argmax(rows, columns));
    }
    for count in [1, 15, 64, 100, 1000] {
        check("total", || kernels::total(count));
    }
    for (rows, columns) in [(3, 3), (8, 8), (10, 40)] {
        check("convolution", || kernels::convolution(rows, columns));
    }
}

#[test]
fn convolutions_of_padded_images_in_steps() {
    for (channels, outputs) in [(1, 3), (3, 16), (2, 33)] {
        for steps in [[1, 1], [2, 2], [1, 3]] {
            for size in [[5, 8], [9, 30]] {
                check("convolution", || kernels::padded_convolution([channels, outputs], size, steps));
            }
        }
    }
}

#[test]
fn empty_reductions_give_the_identity() {
    check("sum", || kernels::reduction(Op::Add, DType::F32, 0, 5, 0));
    check("nothing", || kernels::reduction(Op::Add, DType::F32, 0, 5, 1));
}

#[test]
fn matrix_products_of_any_size_and_layout() {
    for (m, n, k) in [(1, 1, 1), (3, 5, 7), (8, 32, 16), (32, 10, 64), (16, 48, 5), (70, 40, 9), (33, 2, 4)] {
        for transposed in [(false, false), (true, false), (false, true), (true, true)] {
            check("matmul", || kernels::matmul(m, n, k, transposed, false));
        }
        check("matmul_bias", || kernels::matmul(m, n, k, (false, false), true));
    }
}

#[test]
fn matrix_products_of_narrow_types() {
    for dtype in [DType::F16, DType::BF16, DType::I8, DType::U8] {
        for (m, n, k) in [(1, 1, 2), (3, 5, 7), (16, 48, 5), (70, 40, 9), (33, 20, 4)] {
            for transposed in [(false, false), (true, false), (false, true), (true, true)] {
                check("narrow_matmul", || kernels::narrow_matmul(dtype, m, n, k, transposed));
            }
        }
    }
}

#[test]
fn reads_with_gates_and_from_data() {
    for count in [5, 16, 100] {
        check("shifted", || kernels::shifted(count, 3));
    }
    check("embedding", || kernels::embedding(7, 20, 4));
    check("embedding", || kernels::embedding(7, 3, 4));
}

#[test]
fn windows_that_follow_the_output_are_carried() {
    let windows = [
        Window::UpTo(1),
        Window::UpTo(0),
        Window::UpTo(-2),
        Window::UpTo(3),
        Window::From(-1),
        Window::From(0),
        Window::From(2),
        Window::From(-4),
        Window::Sliding,
        Window::Back,
    ];
    for window in windows {
        for (rows, columns) in [(1, 1), (64, 1), (37, 2), (7, 20)] {
            for outer in [false, true] {
                check(&format!("{window:?}"), || kernels::running(Op::Add, window, rows, columns, outer));
            }
        }
        check(&format!("{window:?}"), || kernels::running(Op::Max, window, 70, 3, false));
        check(&format!("{window:?}"), || kernels::running(Op::Mul, window, 20, 3, true));
    }
}

#[test]
fn equations_of_a_range_leave_one_trip() {
    for (rows, columns, entries) in [(7, 20, 4), (7, 3, 9), (33, 1, 5), (3, 64, 3)] {
        check("one_hot", || kernels::one_hot(rows, columns, entries));
    }
}

#[test]
fn places_that_data_name_are_added_to_one_by_one() {
    for op in [Op::Add, Op::Max] {
        for (places, columns, terms) in [(32, 1, 9), (40, 8, 5), (33, 150, 20), (5, 3, 7)] {
            for own in [false, true] {
                check("scatter", || kernels::scatter(op, places, columns, terms, own));
            }
        }
    }
}

/// An axis by its name.
pub fn axis(name: &str) -> AxisName {
    name.parse().unwrap()
}

/// Schedules made of any ops, whether or not they make sense; those that do not fit are left out.
pub fn any_schedule() -> impl Strategy<Value = Vec<OptOp>> {
    let factor = prop::sample::select(vec![1i64, 2, 3, 4, 8, 16]);
    use AxisType::{Global, GroupReduce, Local, Loop, Reduce, Thread, Unroll, Upcast, Warp};
    let kind =
        prop::sample::select(vec![Loop, Upcast, Reduce, Unroll, Global, Local, Warp, Thread, Thread, GroupReduce]);
    let part = prop_oneof![3 => Just(0), 2 => 1..3u16];
    let axis = (0..4u16, part).prop_map(|(range, part)| AxisName::new(range, part));
    let split = (axis.clone(), factor, kind, any::<bool>())
        .prop_map(|(axis, factor, target, top)| OptOp::from(Split { axis, factor, target, top }));
    let swap = (axis.clone(), axis.clone()).prop_map(|(a, b)| Swap(a, b).into());
    let pad = (axis.clone(), 2..9i64).prop_map(|(axis, multiple)| Padto { axis, multiple }.into());
    let copier = prop::sample::select(vec![Copier::Loops, Copier::First, Copier::Kernel]);
    let stage = (0..3u32, prop::option::of(axis.clone()), copier)
        .prop_map(|(slot, at, by)| Stage::Param { slot, at, by }.into());
    let words = axis.clone().prop_map(|axis| Tc { axis }.into());
    let alone = prop_oneof![Just(Nolocals.into()), Just(Nontemporal.into())];
    let value = prop_oneof![Just(Stage::Sums.into()), (0..2usize).prop_map(|value| Stage::Value(value).into())];
    let others = prop_oneof![16 => split, 4 => swap, 8 => pad.clone(), 4 => stage, 2 => alone];
    let others = prop::collection::vec(others, 0..7);
    // Only whole ranges become words, and nothing follows on rows in stages.
    let last = prop_oneof![
        axis.clone().prop_map(|axis| OptOp::from(Pipeline { axis })),
        axis.prop_map(|axis| OptOp::from(Partition { axis })),
    ];
    let last = prop::option::of(last);
    let values = prop::collection::vec(value, 0..3);
    (prop::collection::vec(prop_oneof![1 => pad, 2 => words], 0..3), others, last, values)
        .prop_map(|(first, others, last, values)| [first, others, Vec::from_iter(last), values].concat())
}

#[test]
fn without_locals_a_schedule_has_no_workgroups() {
    let target = targets().into_iter().find(|target| target.workgroups.is_some()).unwrap();
    let (kernel, sink, _) = kernels::matmul(32, 32, 32, (false, false), false);
    let scheduler = Scheduler::new(kernel.graph, sink, &target).unwrap();
    let split = |factor, target| OptOp::from(Split { axis: axis("a"), factor, target, top: false });
    let [local, upcast] = [split(8, AxisType::Local), split(4, AxisType::Upcast)];
    assert!(scheduler.space(&[local.clone(), upcast.clone()]).is_ok());
    assert!(scheduler.space(&[Nolocals.into(), upcast]).is_ok());
    for refused in [
        [Nolocals.into(), local.clone()],
        [local, Nolocals.into()],
        [Nolocals.into(), Stage::Param { slot: 1, at: None, by: Copier::Loops }.into()],
        [Stage::Param { slot: 1, at: None, by: Copier::Loops }.into(), Nolocals.into()],
    ] {
        let error = scheduler.space(&refused).unwrap_err();
        assert!(error.to_string().contains("workgroup"), "{error}");
    }
    assert_eq!("nolocals()".parse::<OptOp>().unwrap(), Nolocals.into());
    assert_eq!(OptOp::from(Nolocals).to_string(), "nolocals()");
}

#[test]
fn a_workgroup_has_no_more_local_memory_than_there_is() {
    let (kernel, sink, _) = kernels::matmul(4, 128, 128, (false, false), false);
    let target = gpu();
    let scheduler = Scheduler::new(kernel.graph, sink, &target).unwrap();
    let space = scheduler.space(&["stage(%2, at root)".parse().unwrap()]).unwrap();
    let (graph, sink) = scheduler.build(&space).unwrap();
    let error = finish(graph, sink, "product", &target).unwrap_err().to_string();
    assert!(error.contains("bytes of LOCAL memory, at most 49152"), "{error}");
}

#[test]
fn a_running_sum_is_estimated_by_its_terms() {
    let target = &targets()[0];
    let estimate = |rows: i64| {
        let (kernel, sink, _) = kernels::running(Op::Add, Window::UpTo(1), rows, 64, false);
        let mut graph = Graph::new();
        let sink = graph.import(&kernel.graph, &[sink], |_, _| Ok(None)).unwrap()[0];
        let scheduler = Scheduler::new(graph, sink, target).unwrap();
        let space = scheduler.space(&scheduler.heuristics()).unwrap();
        scheduler.estimate(&space).nanoseconds()
    };
    let (once, twice) = (estimate(2048), estimate(4096));
    assert!(twice > 1.5 * once && twice < 3.0 * once, "{once} ns, {twice} ns for twice as many");
}

fn check_schedule(case: Case, schedule: &[OptOp], target: usize) {
    let (kernel, sink, outputs) = case;
    let mut expected = memory(&kernel.params);
    evaluate::ranges(&kernel.graph, sink, &mut expected);
    let mut graph = Graph::new();
    let sink = graph.import(&kernel.graph, &[sink], |_, _| Ok(None)).unwrap()[0];
    let target = &targets()[target];
    let scheduler = Scheduler::new(graph, sink, target).unwrap();
    let (space, fitting) = fitting(&scheduler, schedule);
    let estimate = scheduler.estimate(&space).nanoseconds();
    assert!(estimate.is_finite() && estimate >= 0.0, "{fitting:?}: {estimate} ns");
    let kernels = lowered(scheduler, &space, target);
    let mut found = memory(&kernel.params);
    add_temporaries(&mut found, &kernels);
    kernels.iter().for_each(|kernel| evaluate::linear(kernel, &mut found));
    for slot in 0..outputs {
        assert_eq!(expected[slot], found[slot], "{fitting:?}");
    }
}

/// The kernels of a schedule, in the order in which they run.
fn lowered(scheduler: Scheduler, space: &Space, target: &Target) -> Vec<LinearKernel> {
    let Scheduled { graph, sink, copies } = scheduler.build_all(space).unwrap();
    let sinks = copies.iter().map(|copy| copy.sink).chain([sink]);
    sinks.map(|sink| finish(graph.clone(), sink, "scheduled", target).unwrap()).collect()
}

/// Zeros in the temporaries that kernels copy into, behind the Params.
fn add_temporaries(memory: &mut Memory, kernels: &[LinearKernel]) {
    for kernel in kernels {
        for node in kernel.graph.reachable(&[kernel.linear]) {
            if let Arg::Param { slot, dtype, .. } = *kernel.graph.arg(node)
                && slot as usize == memory.len()
            {
                let length = kernel.graph.props(node).element_count().as_const().unwrap();
                memory.push(vec![Const::int(dtype, 0); length as usize]);
            }
        }
    }
}

#[test]
fn a_copy_by_a_kernel_that_runs_before() {
    let stage = |at: Option<&str>, by| OptOp::from(Stage::Param { slot: 2, at: at.map(axis), by });
    let before = stage(None, Copier::Kernel);
    assert_eq!(before.to_string(), "stage(%2, at root global)");
    assert_eq!("stage(%2, at root, global)".parse::<OptOp>().unwrap(), before);
    let case = || kernels::matmul(12, 32, 20, (false, false), false);
    let split = |name, factor, target, top| OptOp::from(Split { axis: axis(name), factor, target, top });
    let schedule = [
        split("b", 4, AxisType::Upcast, false),
        split("a", 2, AxisType::Thread, true),
        before.clone(),
        stage(Some("a"), Copier::Kernel),
    ];
    for (number, target) in targets().iter().enumerate() {
        let (kernel, sink, _) = case();
        let scheduler = Scheduler::new(kernel.graph, sink, target).unwrap();
        let (space, _) = fitting(&scheduler, &schedule);
        let refused = scheduler.space(std::slice::from_ref(&before)).err().map(|refused| refused.to_string());
        if target.workgroups.is_some() {
            assert!(refused.unwrap().contains("only at root, without workgroups"));
            continue;
        }
        assert_eq!(refused, None);
        assert!(scheduler.space(&schedule[3..]).is_err(), "a copy for one trip is not a kernel");
        let is_local = |node: &Arg| matches!(node, Arg::Buffer { addrspace: AddrSpace::Local, .. });
        let locals = |graph: &Graph, sink| graph.reachable(&[sink]).iter().any(|&node| is_local(graph.arg(node)));
        let [copy, kernel] = &lowered(scheduler.clone(), &space, target)[..] else { panic!("two kernels") };
        assert!(copy.shared_trips > 1 && kernel.shared_trips == 2);
        assert!(!locals(&kernel.graph, kernel.linear));
        // As one kernel it makes the copy by itself.
        let (graph, sink) = scheduler.build(&space).unwrap();
        assert!(locals(&graph, sink));
        check_schedule(case(), &schedule, number);
    }
}

/// Rows in stages, of kernels that walk along each one to three times; with rests of columns.
#[test]
fn pipelined_rows_compute_the_same() {
    let along = |factor: i64, columns: usize, walks: usize| {
        let name = |range: usize| AxisName::new(range as u16, 0);
        let reduced = (0..walks).rev().map(|walk| (name(columns + 1 + walk), AxisType::Unroll));
        let split = |(axis, target)| OptOp::from(Split { axis, factor, target, top: false });
        let all = reduced.chain([(name(columns), AxisType::Upcast)]);
        all.flat_map(|(axis, target)| [Padto { axis, multiple: factor }.into(), split((axis, target))]).collect()
    };
    for (target, machine) in targets().iter().enumerate().filter(|(_, machine)| machine.workgroups.is_none()) {
        for (rows, columns, factor) in [(3, 8, 4), (4, 8, 2), (5, 12, 6), (9, 32, 4), (10, 21, 4), (2, 8, 4)] {
            let cases: [(usize, &dyn Fn() -> Case); 3] = [
                (2, &|| kernels::normalise(rows, columns, true)),
                (2, &|| kernels::softmax(rows, columns)),
                (1, &|| kernels::shares(rows, columns)),
            ];
            for (walks, case) in cases {
                let mut schedule: Vec<OptOp> = along(factor, 1, walks);
                // Kept values are kept for each of the rows in work.
                schedule.extend([Stage::Value(0).into(), Pipeline { axis: axis("a") }.into()]);
                check_schedule(case(), &schedule, target);
                let (kernel, sink, _) = case();
                let scheduler = Scheduler::new(kernel.graph, sink, machine).unwrap();
                let (space, fitting) = fitting(&scheduler, &schedule);
                assert_eq!(fitting.last(), schedule.last(), "{fitting:?}");
                let (graph, sink) = scheduler.build(&space).unwrap();
                let live = graph.reachable(&[sink]);
                let loops = live.iter().filter(|&&node| match graph.arg(node) {
                    Arg::Range { axis: AxisType::Loop, .. } => {
                        graph.as_int(graph.source(node, 0)) == Some((rows - walks as i64).into())
                    }
                    _ => false,
                });
                let is_pipelined = rows > walks as i64 + 1 && rows - walks as i64 != (columns + factor - 1) / factor;
                assert!(!is_pipelined || loops.count() == 1, "{rows} rows, {fitting:?}");
            }
        }
    }
}

/// Loops over terms around loops over results, all of these or some; with rests of columns, and of what is multiplied.
#[test]
fn sums_of_rows_compute_the_same() {
    let split = |name, factor, target, top| OptOp::from(Split { axis: axis(name), factor, target, top });
    let swap = |a, b| OptOp::from(Swap(axis(a), axis(b)));
    let whole = vec![split("a", 2, AxisType::Upcast, false), split("b", 3, AxisType::Unroll, true), swap("a", "b")];
    let blocks = vec![split("a", 4, AxisType::Loop, false), split("a1", 2, AxisType::Upcast, false), swap("a1", "b")];
    let padded = vec![
        Padto { axis: axis("a"), multiple: 5 }.into(),
        split("a", 5, AxisType::Upcast, false),
        Padto { axis: axis("b"), multiple: 5 }.into(),
        split("b", 5, AxisType::Unroll, true),
        swap("a", "b"),
    ];
    let products = vec![swap("b", "c"), split("c", 2, AxisType::Reduce, false)];
    type Scheduled = (&'static str, Vec<OptOp>, fn() -> Case);
    let cases: [Scheduled; 5] = [
        ("whole rows", whole.clone(), || kernels::reduction(Op::Add, DType::F32, 12, 8, 0)),
        ("greatest", whole, || kernels::reduction(Op::Max, DType::F32, 12, 8, 0)),
        ("blocks", blocks, || kernels::reduction(Op::Add, DType::I32, 5, 12, 0)),
        ("rests", padded, || kernels::reduction(Op::Mul, DType::I64, 12, 8, 0)),
        ("products", products, || kernels::matmul(6, 8, 4, (false, false), true)),
    ];
    for (target, machine) in targets().iter().enumerate() {
        for (name, schedule, case) in &cases {
            let (kernel, sink, _) = case();
            let scheduler = Scheduler::new(kernel.graph, sink, machine).unwrap();
            let (space, fitting) = fitting(&scheduler, schedule);
            assert_eq!(&fitting, schedule, "{name}");
            let (graph, sink) = scheduler.build(&space).unwrap();
            let is_local = |&node: &NodeId| matches!(graph.arg(node), Arg::Buffer { addrspace: AddrSpace::Local, .. });
            let keeps = graph.reachable(&[sink]).iter().any(is_local);
            assert_eq!(keeps, machine.workgroups.is_none(), "{name}");
            check_schedule(case(), schedule, target);
        }
    }
}

/// The ops that fit, and the axes they lead to.
pub fn fitting(scheduler: &Scheduler, schedule: &[OptOp]) -> (Space, Vec<OptOp>) {
    let mut space = scheduler.space(&[]).unwrap();
    let fitting = schedule
        .iter()
        .filter(|op| {
            // A register tile has its limits.
            let before = space.clone();
            let fits = space.apply(op).is_ok();
            let tiled = space.axes.iter().filter(|axis| matches!(axis.kind, AxisType::Upcast | AxisType::Unroll));
            let small = tiled.map(|axis| axis.trips.unwrap_or(1)).product::<i64>() <= 256;
            if fits && !small {
                space = before;
            }
            fits && small
        })
        .cloned()
        .collect();
    (space, fitting)
}

/// A thread reads every other element of a tile in LOCAL memory while it writes the first half of it.
#[test]
fn lanes_that_are_gathered_lie_apart_from_what_is_stored() {
    let split = |name, factor, target| OptOp::from(Split { axis: axis(name), factor, target, top: false });
    let schedule = [split("c", 2, AxisType::GroupReduce), split("b", 8, AxisType::Upcast)];
    check_schedule(kernels::matmul(6, 8, 4, (false, false), true), &schedule, 4);
}

/// What an op is refused for, after others on a product of 32×32 matrices, on a CPU and on a GPU.
#[test]
fn what_does_not_fit_is_refused() {
    let cases: [(&str, Option<Refusal>, Option<Refusal>); 26] = [
        ("split(a, 8 g top)", Some(Refusal::NoWorkgroups(AxisType::Global)), None),
        ("split(a, 8 g top); split(b, 4 g top)", Some(Refusal::NoWorkgroups(AxisType::Global)), None),
        ("split(a, 8 g)", Some(Refusal::NoWorkgroups(AxisType::Global)), None),
        ("split(a, 8 t top)", None, Some(Refusal::NoThreads)),
        ("split(a, 8 t top); split(b, 4 t top)", Some(Refusal::SecondThread), Some(Refusal::NoThreads)),
        ("split(a, 32 t top); split(b, 4 t top)", Some(Refusal::SecondThread), Some(Refusal::NoThreads)),
        ("split(a, 8 t)", Some(Refusal::ThreadInside), Some(Refusal::NoThreads)),
        ("split(b, 8 t top)", Some(Refusal::ThreadInside), Some(Refusal::NoThreads)),
        ("split(a, 32 t top); split(a1, 4 L top)", Some(Refusal::ThreadInside), Some(Refusal::NoThreads)),
        ("split(a, 32 t top); swap(a1, b)", Some(Refusal::ThreadInside), Some(Refusal::NoThreads)),
        ("split(b, 32 u); split(a, 32 t top); swap(a1, b1)", None, Some(Refusal::NoThreads)),
        ("split(a, 8 l)", Some(Refusal::NoWorkgroups(AxisType::Local)), None),
        ("split(a, 8 w)", Some(Refusal::NoWorkgroups(AxisType::Warp)), None),
        ("split(c, 8 G)", Some(Refusal::NoWorkgroups(AxisType::GroupReduce)), None),
        ("split(c, 8 t)", direction(AxisType::Reduce, AxisType::Thread), direction(AxisType::Reduce, AxisType::Thread)),
        ("split(c, 8 g)", direction(AxisType::Reduce, AxisType::Global), direction(AxisType::Reduce, AxisType::Global)),
        ("split(a, 8 r)", direction(AxisType::Loop, AxisType::Unroll), direction(AxisType::Loop, AxisType::Unroll)),
        ("swap(a, h)", no_axis(), no_axis()),
        ("split(a, 0 u)", indivisible(0), indivisible(0)),
        ("split(a, 5 u)", indivisible(5), indivisible(5)),
        ("padto(a, 4611686018427387904)", unpaddable(1 << 62), unpaddable(1 << 62)),
        ("padto(a, 0)", unpaddable(0), unpaddable(0)),
        ("padto(a, 16384); padto(b, 2048); split(a, 16384 u); split(b, 2048 u)", tile(), tile()),
        ("stage(%0, at root)", Some(Refusal::NotRead(0)), Some(Refusal::NotRead(0))),
        ("stage(%1, at root); stage(%1, at a)", Some(Refusal::StagedTwice(1)), Some(Refusal::StagedTwice(1))),
        ("nolocals(); swap(a, c)", Some(Refusal::NoLocals), Some(Refusal::NoLocals)),
    ];
    for (target, machine) in targets().into_iter().enumerate().filter(|(target, _)| matches!(target, 0 | 4)) {
        let (kernel, sink, _) = kernels::matmul(32, 32, 32, (false, false), false);
        let scheduler = Scheduler::new(kernel.graph, sink, &machine).unwrap();
        for (ops, on_cpu, on_gpu) in &cases {
            let expected = if target == 0 { on_cpu } else { on_gpu };
            let mut space = scheduler.space(&[]).unwrap();
            let mut refused = None;
            for op in ops.split("; ") {
                let before = space.clone();
                refused = space.apply(&op.parse().unwrap()).err().map(|refused| refused.reason);
                assert!(refused.is_none() || space == before, "{ops}");
                if refused.is_some() {
                    break;
                }
            }
            assert_eq!(&refused, expected, "{ops} on target {target}");
        }
    }
    let (kernel, sink, _) = kernels::counting(30);
    let machine = &targets()[0];
    let scheduler = Scheduler::new(kernel.graph, sink, machine).unwrap();
    assert_eq!(scheduler.space(&["nolocals()".parse().unwrap()]).map(|_| ()), Ok(()));
}

fn direction(from: AxisType, to: AxisType) -> Option<Refusal> {
    Some(Refusal::Direction { from, to })
}

fn no_axis() -> Option<Refusal> {
    Some(Refusal::NoAxis { axis: axis("h"), axes: "a, b, c".into() })
}

fn indivisible(factor: i64) -> Option<Refusal> {
    Some(Refusal::Indivisible { axis: axis("a"), factor, trips: Some(32) })
}

fn unpaddable(multiple: i64) -> Option<Refusal> {
    Some(Refusal::Unpaddable { axis: axis("a"), multiple, trips: Some(32) })
}

fn tile() -> Option<Refusal> {
    Some(Refusal::Tile { elements: 16384 * 2048, most: 16384 })
}

/// As machine code, by two threads, in launches that take uneven parts of the THREAD Range.
fn check_on_threads(case: Case, schedule: &[OptOp], share: f64) {
    let (kernel, sink, outputs) = case;
    let mut expected = memory(&kernel.params);
    evaluate::ranges(&kernel.graph, sink, &mut expected);
    DEVICES.with(|devices| {
        for (target, run) in devices.iter_in_parts(share) {
            let mut graph = Graph::new();
            let sink = graph.import(&kernel.graph, &[sink], |_, _| Ok(None)).unwrap()[0];
            let scheduler = Scheduler::new(graph, sink, target).unwrap();
            let (space, fitting) = fitting(&scheduler, schedule);
            let kernels = lowered(scheduler, &space, target);
            let mut found = memory(&kernel.params);
            add_temporaries(&mut found, &kernels);
            kernels.iter().for_each(|kernel| run(kernel, &mut found));
            for slot in 0..outputs {
                assert_eq!(expected[slot], found[slot], "{fitting:?} on {}", target.name);
            }
        }
    });
}

/// `TINYSPEC_RANDOM_SCHEDULES=10000` tries more.
fn schedules(usually: u32) -> ProptestConfig {
    let asked = std::env::var("TINYSPEC_RANDOM_SCHEDULES").ok().and_then(|count| count.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(usually), failure_persistence: None, ..ProptestConfig::default() }
}

/// Kernels for random schedules.
const SCHEDULED: [fn() -> Case; 28] = [
    || kernels::broadcast(6, 8),
    || kernels::transpose(4, 12),
    || kernels::bounded(4, 12),
    || kernels::reduction(Op::Max, DType::F32, 5, 12, 1),
    || kernels::reduction(Op::Mul, DType::I64, 12, 4, 0),
    || kernels::matmul(6, 8, 4, (false, false), true),
    || kernels::matmul(4, 6, 3, (true, true), false),
    || kernels::banded_matmul(8, 4, 12, [None, Some(0)]),
    || kernels::banded_matmul(6, 3, 8, [Some(1), None]),
    || kernels::banded_matmul(12, 2, 12, [Some(-2), Some(1)]),
    || kernels::narrow_matmul(DType::BF16, 6, 8, 4, (false, false)),
    || kernels::narrow_matmul(DType::I8, 4, 6, 3, (true, true)),
    || kernels::narrow_matmul(DType::I8, 6, 5, 8, (false, false)),
    || kernels::narrow_matmul(DType::U8, 3, 8, 6, (false, true)),
    || kernels::normalise(3, 8, true),
    || kernels::normalise(5, 8, false),
    || kernels::softmax(6, 8),
    || kernels::shares(4, 12),
    || kernels::shifted(24, 3),
    || kernels::embedding(4, 6, 4),
    || kernels::convolution(6, 8),
    || kernels::counting(30),
    || kernels::running(Op::Add, Window::UpTo(1), 24, 3, false),
    || kernels::running(Op::Max, Window::From(-1), 12, 4, true),
    || kernels::running(Op::Add, Window::Sliding, 30, 1, true),
    || kernels::one_hot(6, 8, 4),
    || kernels::padded_convolution([2, 4], [5, 6], [2, 1]),
    || kernels::scatter(Op::Add, 6, 4, 5, true),
];

proptest! {
    #![proptest_config(schedules(150))]

    #[test]
    fn any_schedule_runs_on_threads(
        mut schedule in any_schedule(),
        first in prop::option::of(prop::sample::select(vec![2i64, 3, 4, 6, 12])),
        case in 0..SCHEDULED.len(),
        share in 0.0..1.0f64,
    ) {
        // Most random schedules leave nothing to the threads.
        if let Some(factor) = first {
            let share = |name| Split { axis: axis(name), factor, target: AxisType::Thread, top: true }.into();
            schedule.splice(0..0, ["a", "b"].map(share));
        }
        check_on_threads(SCHEDULED[case](), &schedule, share);
    }
}

proptest! {
    #![proptest_config(schedules(200))]

    #[test]
    fn any_schedule_computes_the_same(schedule in any_schedule(), target in prop::sample::select(vec![0usize, 1, 2, 3, 4, 4])) {
        for case in SCHEDULED {
            check_schedule(case(), &schedule, target);
        }
    }
}

#[test]
fn an_axis_may_be_padded_twice_beside_one_that_is_partitioned() {
    let schedule = ["padto(c, 5)", "padto(a, 2)", "padto(a, 3)", "partition(c)"].map(|op| op.parse::<OptOp>().unwrap());
    for target in 0..targets().len() {
        SCHEDULED.iter().for_each(|case| check_schedule(case(), &schedule, target));
    }
}

#[test]
fn an_axis_may_be_padded_inside_of_one_of_a_single_trip() {
    let schedule = ["split(d, 1 r top)", "padto(d, 2)"].map(|op| op.parse::<OptOp>().unwrap());
    for target in 0..targets().len() {
        SCHEDULED.iter().for_each(|case| check_schedule(case(), &schedule, target));
    }
}

/// Both versions of a loop share the addresses of adjacent elements.
#[test]
fn stores_of_a_further_version_have_an_order() {
    let schedule = ["split(a, 2 u)", "swap(a, b)", "padto(a, 5)"].map(|op| op.parse::<OptOp>().unwrap());
    for target in 0..targets().len() {
        SCHEDULED.iter().for_each(|case| check_schedule(case(), &schedule, target));
    }
}
