//! Kernels in range form, in tiles and of threads, and schedules of them.

use tinyspec_backends::interpreter::array::Array;
use tinyspec_backends::interpreter::ranges::{run_kernel, run_schedule};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Const, DType, Device, Dim, Graph, NodeId, Op};

const REG: Arg = Arg::Load { device: None, addrspace: AddrSpace::Reg };

fn shape(graph: &mut Graph, dims: &[i64]) -> NodeId {
    let dims: Vec<Dim> = dims.iter().map(|&dim| dim.into()).collect();
    graph.shape(&dims).unwrap()
}

fn param(graph: &mut Graph, slot: u32, length: i64) -> NodeId {
    let shape = shape(graph, &[length]);
    let arg = Arg::Param { slot, dtype: DType::F32, device: None, addrspace: Some(AddrSpace::Global) };
    graph.add(Op::Param, &[shape], arg).unwrap()
}

fn range(graph: &mut Graph, bound: i64, id: u32, axis: AxisType) -> NodeId {
    let bound = graph.index(bound);
    graph.range(bound, id, axis).unwrap()
}

fn add(graph: &mut Graph, op: Op, sources: &[NodeId]) -> NodeId {
    graph.add(op, sources, Arg::None).unwrap()
}

/// `row * width + column`.
fn flat(graph: &mut Graph, row: NodeId, width: i64, column: NodeId) -> NodeId {
    let width = graph.index(width);
    let start = add(graph, Op::Mul, &[row, width]);
    add(graph, Op::Add, &[start, column])
}

fn load(graph: &mut Graph, buffer: NodeId, index: NodeId) -> NodeId {
    let place = add(graph, Op::Index, &[buffer, index]);
    graph.add(Op::Load, &[place], REG).unwrap()
}

fn store(graph: &mut Graph, buffer: NodeId, index: NodeId, value: NodeId) -> NodeId {
    let place = add(graph, Op::Index, &[buffer, index]);
    add(graph, Op::Store, &[place, value])
}

fn ends(graph: &mut Graph, body: NodeId, ranges: &[NodeId]) -> NodeId {
    let end = ranges.iter().fold(body, |body, &range| add(graph, Op::End, &[body, range]));
    add(graph, Op::Sink, &[end])
}

fn sum(graph: &mut Graph, value: NodeId, ranges: &[NodeId], axes: &[u32]) -> NodeId {
    let sources: Vec<NodeId> = std::iter::once(value).chain(ranges.iter().copied()).collect();
    graph.add(Op::Reduce, &sources, Arg::Reduce { op: Op::Add, axes: axes.into() }).unwrap()
}

fn array(values: &[f64]) -> Array {
    Array::from_floats(DType::F32, &[values.len()], values).unwrap()
}

fn counted(length: usize) -> Array {
    array(&(0..length).map(|value| value as f64).collect::<Vec<_>>())
}

/// c (2×4) = a (2×3) · b (3×4).
const PRODUCT: [f64; 8] = [20.0, 23.0, 26.0, 29.0, 56.0, 68.0, 80.0, 92.0];

#[test]
fn a_matrix_product() {
    let mut g = Graph::new();
    let (c, a, b) = (param(&mut g, 0, 8), param(&mut g, 1, 6), param(&mut g, 2, 12));
    let (i, j) = (range(&mut g, 2, 0, AxisType::Thread), range(&mut g, 4, 1, AxisType::Loop));
    let k = range(&mut g, 3, 2, AxisType::Reduce);
    let (at_a, at_b, at_c) = (flat(&mut g, i, 3, k), flat(&mut g, k, 4, j), flat(&mut g, i, 4, j));
    let (x, y) = (load(&mut g, a, at_a), load(&mut g, b, at_b));
    let product = add(&mut g, Op::Mul, &[x, y]);
    let total = sum(&mut g, product, &[k], &[]);
    let write = store(&mut g, c, at_c, total);
    let kernel = ends(&mut g, write, &[j, i]);
    let mut buffers = [counted(8), counted(6), counted(12)];
    assert_eq!(run_kernel(&g, kernel, &mut buffers).unwrap(), [0]);
    assert_eq!(buffers[0].to_floats(), PRODUCT);
}

#[test]
fn a_matrix_product_in_tiles_with_a_staged_row() {
    // j is a tile axis of 4; the row of a is copied to LOCAL inside of i; k is unrolled by 3 into a tile axis.
    let mut g = Graph::new();
    let (c, a, b) = (param(&mut g, 0, 8), param(&mut g, 1, 6), param(&mut g, 2, 12));
    let i = range(&mut g, 2, 0, AxisType::Loop);
    let row = shape(&mut g, &[3]);
    let arg = Arg::Buffer { slot: 0, dtype: DType::F32, device: None, addrspace: AddrSpace::Local };
    let staged = g.add(Op::Buffer, &[row], arg).unwrap();
    let m = range(&mut g, 3, 1, AxisType::Loop);
    let at_a = flat(&mut g, i, 3, m);
    let value = load(&mut g, a, at_a);
    let copy = store(&mut g, staged, m, value);
    let copied = add(&mut g, Op::End, &[copy, m]);
    let staged = add(&mut g, Op::After, &[staged, copied]);
    let tile = |g: &mut Graph, count: i64, dims: &[i64]| {
        let numbers: Vec<NodeId> = (0..count).map(|number| g.index(number)).collect();
        let (stack, dims) = (add(g, Op::Stack, &numbers), shape(g, dims));
        add(g, Op::Reshape, &[stack, dims])
    };
    let (j, k) = (tile(&mut g, 4, &[1, 4]), tile(&mut g, 3, &[3, 1]));
    let (at_b, at_c) = (flat(&mut g, k, 4, j), flat(&mut g, i, 4, j));
    let (x, y) = (load(&mut g, staged, k), load(&mut g, b, at_b));
    let product = add(&mut g, Op::Mul, &[x, y]);
    let total = sum(&mut g, product, &[], &[0]);
    let write = store(&mut g, c, at_c, total);
    let kernel = ends(&mut g, write, &[i]);
    let mut buffers = [counted(8), counted(6), counted(12)];
    run_kernel(&g, kernel, &mut buffers).unwrap();
    assert_eq!(buffers[0].to_floats(), PRODUCT);
}

/// `y[i] = x[i - 1]` over 4, gated where `i - 1` is outside if asked for.
fn shifted(gated: bool) -> (Graph, NodeId) {
    let mut g = Graph::new();
    let (y, x) = (param(&mut g, 0, 4), param(&mut g, 1, 3));
    let i = range(&mut g, 4, 0, AxisType::Loop);
    let minus = g.index(-1);
    let from = add(&mut g, Op::Add, &[i, minus]);
    let place = add(&mut g, Op::Index, &[x, from]);
    let value = if gated {
        let gate = add(&mut g, Op::CmpLt, &[minus, from]);
        let zero = g.constant(Const::float(DType::F32, 0.0));
        g.add(Op::Load, &[place, zero, gate], REG).unwrap()
    } else {
        g.add(Op::Load, &[place], REG).unwrap()
    };
    let write = store(&mut g, y, i, value);
    let kernel = ends(&mut g, write, &[i]);
    (g, kernel)
}

#[test]
fn gates_guard_and_their_lack_is_an_error() {
    let (graph, kernel) = shifted(true);
    let mut buffers = [counted(4), array(&[7.0, 8.0, 9.0])];
    run_kernel(&graph, kernel, &mut buffers).unwrap();
    assert_eq!(buffers[0].to_floats(), [0.0, 7.0, 8.0, 9.0]);
    let (graph, kernel) = shifted(false);
    let error = run_kernel(&graph, kernel, &mut buffers).unwrap_err();
    assert!(error.message().contains("buffer of 3 f32"), "{error}");
    assert!(run_kernel(&graph, kernel, &mut buffers[..1]).is_err());
}

#[test]
fn a_range_outside_its_loop_is_refused() {
    let mut g = Graph::new();
    let y = param(&mut g, 0, 4);
    let (i, j) = (range(&mut g, 4, 0, AxisType::Loop), range(&mut g, 4, 1, AxisType::Loop));
    let one = g.constant(Const::float(DType::F32, 1.0));
    let write = store(&mut g, y, j, one);
    let kernel = ends(&mut g, write, &[i]);
    assert!(run_kernel(&g, kernel, &mut [counted(4)]).unwrap_err().message().contains("outside its End"));
}

#[test]
fn an_empty_reduction_is_the_identity_and_reads_nothing() {
    let mut g = Graph::new();
    let (y, x) = (param(&mut g, 0, 1), param(&mut g, 1, 0));
    let (zero, r) = (g.index(0), range(&mut g, 0, 0, AxisType::Reduce));
    let value = load(&mut g, x, zero);
    let total = sum(&mut g, value, &[r], &[]);
    let write = store(&mut g, y, zero, total);
    let kernel = ends(&mut g, write, &[]);
    let mut buffers = [array(&[5.0]), array(&[])];
    run_kernel(&g, kernel, &mut buffers).unwrap();
    assert_eq!(buffers[0].to_floats(), [0.0]);
}

#[test]
fn long_expressions_do_not_recurse() {
    let mut g = Graph::new();
    let y = param(&mut g, 0, 1);
    let zero = g.index(0);
    let one = g.constant(Const::float(DType::F32, 1.0));
    let mut value = load(&mut g, y, zero);
    for _ in 0..100_000 {
        value = add(&mut g, Op::Add, &[value, one]);
    }
    let write = store(&mut g, y, zero, value);
    let kernel = ends(&mut g, write, &[]);
    let mut buffers = [array(&[2.0])];
    run_kernel(&g, kernel, &mut buffers).unwrap();
    assert_eq!(buffers[0].to_floats(), [100_002.0]);
}

#[test]
fn a_schedule_passes_states_from_call_to_call() {
    // t = 2 x; u = 2 t: one kernel, called twice.
    let mut g = Graph::new();
    let (y, x) = (param(&mut g, 0, 4), param(&mut g, 1, 4));
    let i = range(&mut g, 4, 0, AxisType::Loop);
    let (value, two) = (load(&mut g, x, i), g.constant(Const::float(DType::F32, 2.0)));
    let doubled = add(&mut g, Op::Mul, &[value, two]);
    let write = store(&mut g, y, i, doubled);
    let kernel = ends(&mut g, write, &[i]);
    let flat = shape(&mut g, &[4]);
    let device = Some(Device::new("cpu"));
    let input = Arg::Param { slot: 0, dtype: DType::F32, device: device.clone(), addrspace: Some(AddrSpace::Global) };
    let input = g.add(Op::Param, &[flat], input).unwrap();
    let buffer = |g: &mut Graph, slot| {
        let arg = Arg::Buffer { slot, dtype: DType::F32, device: device.clone(), addrspace: AddrSpace::Global };
        g.add(Op::Buffer, &[flat], arg).unwrap()
    };
    let (t, u) = (buffer(&mut g, 0), buffer(&mut g, 1));
    let first = add(&mut g, Op::Call, &[kernel, t, input]);
    let t = add(&mut g, Op::After, &[t, first]);
    let second = add(&mut g, Op::Call, &[kernel, u, t]);
    let u = add(&mut g, Op::After, &[u, second]);
    let sink = add(&mut g, Op::Sink, &[u, t]);
    let values = run_schedule(&g, sink, &[array(&[1.0, 2.0, 3.0, 4.0])]).unwrap();
    assert_eq!(values[0].to_floats(), [4.0, 8.0, 12.0, 16.0]);
    assert_eq!(values[1].to_floats(), [2.0, 4.0, 6.0, 8.0]);
    assert!(run_schedule(&g, sink, &[array(&[1.0])]).is_err());
}

/// A thread's or workgroup's place.
fn special(graph: &mut Graph, bound: i64, name: &str) -> NodeId {
    let bound = graph.index(bound);
    graph.add(Op::Special, &[bound], Arg::Text(name.into())).unwrap()
}

#[test]
fn threads_hand_over_what_they_copied() {
    // y[4g + t] = x'[3 - t], where x' is the LOCAL copy that the threads of workgroup g make of x[4g…].
    let mut g = Graph::new();
    let (y, x) = (param(&mut g, 0, 8), param(&mut g, 1, 8));
    let (group, thread) = (special(&mut g, 2, "gidx0"), special(&mut g, 4, "lidx0"));
    let dims = shape(&mut g, &[4]);
    let arg = Arg::Buffer { slot: 0, dtype: DType::F32, device: None, addrspace: AddrSpace::Local };
    let local = g.add(Op::Buffer, &[dims], arg).unwrap();
    let at = flat(&mut g, group, 4, thread);
    let value = load(&mut g, x, at);
    let copy = store(&mut g, local, thread, value);
    let barrier = add(&mut g, Op::Barrier, &[copy]);
    let local = add(&mut g, Op::After, &[local, barrier]);
    let (three, minus) = (g.index(3), g.index(-1));
    let back = add(&mut g, Op::Mul, &[thread, minus]);
    let back = add(&mut g, Op::Add, &[three, back]);
    let value = load(&mut g, local, back);
    let write = store(&mut g, y, at, value);
    let kernel = add(&mut g, Op::Sink, &[write]);
    let mut buffers = [array(&[-1.0; 8]), counted(8)];
    run_kernel(&g, kernel, &mut buffers).unwrap();
    assert_eq!(buffers[0].to_floats(), [3.0, 2.0, 1.0, 0.0, 7.0, 6.0, 5.0, 4.0]);
}

#[test]
fn each_thread_makes_its_own_number_of_trips() {
    // y[t] = x[0] + … + x[t], in a register of each thread.
    let mut g = Graph::new();
    let (y, x) = (param(&mut g, 0, 4), param(&mut g, 1, 4));
    let thread = special(&mut g, 4, "lidx0");
    let dims = shape(&mut g, &[]);
    let arg = Arg::Buffer { slot: 0, dtype: DType::F32, device: None, addrspace: AddrSpace::Reg };
    let register = g.add(Op::Buffer, &[dims], arg).unwrap();
    let nothing = g.constant(Const::float(DType::F32, 0.0));
    let begun = add(&mut g, Op::Store, &[register, nothing]);
    let one = g.index(1);
    let bound = add(&mut g, Op::Add, &[thread, one]);
    let i = g.range(bound, 0, AxisType::Reduce).unwrap();
    let inside = add(&mut g, Op::After, &[register, begun, i]);
    let (value, before) = (load(&mut g, x, i), g.add(Op::Load, &[inside], REG).unwrap());
    let sum = add(&mut g, Op::Add, &[before, value]);
    let update = add(&mut g, Op::Store, &[inside, sum]);
    let end = add(&mut g, Op::End, &[update, i]);
    let register = add(&mut g, Op::After, &[register, end]);
    let total = g.add(Op::Load, &[register], REG).unwrap();
    let write = store(&mut g, y, thread, total);
    let kernel = add(&mut g, Op::Sink, &[write]);
    let mut buffers = [array(&[-1.0; 4]), array(&[1.0, 10.0, 100.0, 1000.0])];
    run_kernel(&g, kernel, &mut buffers).unwrap();
    assert_eq!(buffers[0].to_floats(), [1.0, 11.0, 111.0, 1111.0]);
}
