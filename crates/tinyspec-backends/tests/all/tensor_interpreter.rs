//! Tensor graphs on arrays.

use tinyspec_backends::interpreter::array::Array;
use tinyspec_backends::interpreter::tensor::evaluate;
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, DType, Dim, Graph, NodeId, Op};

fn shape(graph: &mut Graph, dims: &[i64]) -> NodeId {
    let dims: Vec<Dim> = dims.iter().map(|&dim| dim.into()).collect();
    graph.shape(&dims).unwrap()
}

fn param(graph: &mut Graph, slot: u32, dtype: DType, dims: &[i64]) -> NodeId {
    let shape = shape(graph, dims);
    graph.add(Op::Param, &[shape], Arg::Param { slot, dtype, device: None, addrspace: None }).unwrap()
}

fn reduce(op: Op, axes: &[u32]) -> Arg {
    Arg::Reduce { op, axes: axes.into() }
}

fn counted(dims: &[usize]) -> Array {
    let values: Vec<f64> = (0..dims.iter().product()).map(|value: usize| value as f64).collect();
    Array::from_floats(DType::F32, dims, &values).unwrap()
}

/// The values of one node over `x` = 0, 1, 2, … of shape (2, 3).
fn on_matrix(build: impl FnOnce(&mut Graph, NodeId) -> NodeId) -> (Vec<usize>, Vec<f64>) {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F32, &[2, 3]);
    let node = build(&mut graph, x);
    let value = evaluate(&graph, &[node], &[counted(&[2, 3])]).unwrap().remove(0);
    (value.shape().to_vec(), value.to_floats())
}

#[test]
fn movement() {
    let permuted = on_matrix(|g, x| g.add(Op::Permute, &[x], Arg::Axes([1, 0].as_slice().into())).unwrap());
    assert_eq!(permuted, (vec![3, 2], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    let flipped = on_matrix(|g, x| g.add(Op::Flip, &[x], Arg::Flags([false, true].as_slice().into())).unwrap());
    assert_eq!(flipped.1, [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    let padded = on_matrix(|g, x| {
        let (offset, target) = (shape(g, &[1, 0]), shape(g, &[3, 4]));
        g.add(Op::Pad, &[x, offset, target], Arg::None).unwrap()
    });
    assert_eq!(padded.1, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 5.0, 0.0]);
    let shrunk = on_matrix(|g, x| {
        let (offset, target) = (shape(g, &[1, 1]), shape(g, &[1, 2]));
        g.add(Op::Shrink, &[x, offset, target], Arg::None).unwrap()
    });
    assert_eq!(shrunk, (vec![1, 2], vec![4.0, 5.0]));
    let stacked = on_matrix(|g, x| g.add(Op::Stack, &[x, x], Arg::None).unwrap());
    assert_eq!(stacked.0, [2, 2, 3]);
    let empty = on_matrix(|g, x| {
        let (offset, target) = (shape(g, &[0, 0]), shape(g, &[0, 3]));
        let none = g.add(Op::Shrink, &[x, offset, target], Arg::None).unwrap();
        g.add(Op::Reduce, &[none], reduce(Op::Max, &[0])).unwrap()
    });
    assert_eq!(empty, (vec![1, 3], vec![f64::NEG_INFINITY; 3]));
}

#[test]
fn indices_replace_dims_and_read_zero_outside() {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F32, &[2, 3]);
    let rows = param(&mut graph, 1, DType::I32, &[3]);
    let column = graph.index(1);
    let picked = graph.add(Op::Index, &[x, rows], Arg::None).unwrap();
    let both = graph.add(Op::Index, &[x, rows, rows], Arg::None).unwrap();
    let single = graph.add(Op::Index, &[x, rows, column], Arg::None).unwrap();
    let params = [counted(&[2, 3]), Array::from_ints(DType::I32, &[3], &[1, -1, 2]).unwrap()];
    let values = evaluate(&graph, &[picked, both, single], &params).unwrap();
    assert_eq!(values[0].to_floats(), [3.0, 4.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!((values[1].shape(), values[1].to_floats()[0]), ([3, 3].as_slice(), 4.0));
    assert_eq!(values[2].to_floats(), [4.0, 0.0, 0.0]);
}

#[test]
fn a_matrix_product_broadcasts_and_reduces() {
    let mut graph = Graph::new();
    let (a, b) = (param(&mut graph, 0, DType::F32, &[2, 3]), param(&mut graph, 1, DType::F32, &[3, 2]));
    let (left, right) = (shape(&mut graph, &[2, 3, 1]), shape(&mut graph, &[1, 3, 2]));
    let left = graph.add(Op::Reshape, &[a, left], Arg::None).unwrap();
    let right = graph.add(Op::Reshape, &[b, right], Arg::None).unwrap();
    let product = graph.alu(Op::Mul, &[left, right]).unwrap();
    let sum = graph.add(Op::Reduce, &[product], reduce(Op::Add, &[1])).unwrap();
    let values = evaluate(&graph, &[sum], &[counted(&[2, 3]), counted(&[3, 2])]).unwrap();
    assert_eq!((values[0].shape(), values[0].to_floats()), ([2, 1, 2].as_slice(), vec![10.0, 13.0, 28.0, 40.0]));
}

#[test]
fn small_floats_accumulate_in_single_precision() {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F16, &[4096]);
    let sum = graph.add(Op::Reduce, &[x], reduce(Op::Add, &[0])).unwrap();
    let ones = Array::filled(&[4096], Const::float(DType::F16, 1.0)).unwrap();
    // In f16 itself the sum would stick at 2048.
    assert_eq!(evaluate(&graph, &[sum], &[ones]).unwrap()[0].to_floats(), [4096.0]);
}

#[test]
fn bits_change_their_type_and_count() {
    let words = on_matrix(|g, x| {
        let bytes = g.add(Op::Bitcast, &[x], Arg::DType(DType::U8)).unwrap();
        g.add(Op::Bitcast, &[bytes], Arg::DType(DType::I32)).unwrap()
    });
    assert_eq!((words.0, words.1[1]), (vec![2, 3], f64::from(1.0f32.to_bits())));
}

#[test]
fn functions_nest_deeply() {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::I64, &[]);
    let one = graph.constant(Const::int(DType::I64, 1));
    let mut value = graph.alu(Op::Add, &[x, one]).unwrap();
    // Each function calls the one before twice: on its argument, and on the result.
    for _ in 0..8 {
        let body = graph.add(Op::Tuple, &[value], Arg::None).unwrap();
        let first = graph.add(Op::Function, &[body, x], Arg::None).unwrap();
        let first = graph.add(Op::GetTuple, &[first], Arg::Number(0)).unwrap();
        let second = graph.add(Op::Function, &[body, first], Arg::None).unwrap();
        value = graph.add(Op::GetTuple, &[second], Arg::Number(0)).unwrap();
    }
    let start = Array::scalar(Const::int(DType::I64, 5));
    assert_eq!(evaluate(&graph, &[value], std::slice::from_ref(&start)).unwrap()[0].to_floats(), [261.0]);
    let mut chain = x;
    for _ in 0..100_000 {
        chain = graph.alu(Op::Add, &[chain, one]).unwrap();
    }
    assert_eq!(evaluate(&graph, &[chain], &[start]).unwrap()[0].to_floats(), [100_005.0]);
}

#[test]
fn assignment_gives_a_new_state_and_leaves_the_old() {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F32, &[2, 3]);
    let (offset, row) = (shape(&mut graph, &[1, 0]), shape(&mut graph, &[1, 3]));
    let view = graph.add(Op::Shrink, &[x, offset, row], Arg::None).unwrap();
    let value = graph.constant(Const::float(DType::F32, 9.0));
    let value = graph.add(Op::Expand, &[value, row], Arg::None).unwrap();
    let store = graph.add(Op::Store, &[view, value], Arg::None).unwrap();
    let (whole, part) = (
        graph.add(Op::After, &[x, store], Arg::None).unwrap(),
        graph.add(Op::After, &[view, store], Arg::None).unwrap(),
    );
    let values = evaluate(&graph, &[whole, part, x], &[counted(&[2, 3])]).unwrap();
    assert_eq!(values[0].to_floats(), [0.0, 1.0, 2.0, 9.0, 9.0, 9.0]);
    assert_eq!(values[1].to_floats(), [9.0; 3]);
    assert_eq!(values[2], counted(&[2, 3]));
}

#[test]
fn named_dims_are_bound_by_their_arguments() {
    let mut graph = Graph::new();
    let n = Dim::named(0, 1, 100);
    let dims = graph.shape(&[n.clone(), Dim::from(2)]).unwrap();
    let x = graph
        .add(Op::Param, &[dims], Arg::Param { slot: 1, dtype: DType::F32, device: None, addrspace: None })
        .unwrap();
    let flat = graph.shape(&[n * Dim::from(2)]).unwrap();
    let flat = graph.add(Op::Reshape, &[x, flat], Arg::None).unwrap();
    let bound = Array::scalar(Const::int(DType::Index, 3));
    let values = evaluate(&graph, &[flat], &[bound.clone(), counted(&[3, 2])]).unwrap();
    assert_eq!(values[0].shape(), [6]);
    let error = evaluate(&graph, &[flat], &[bound, counted(&[4, 2])]).unwrap_err();
    assert!(error.message().contains("[4, 2]"), "{error}");
}

#[test]
fn what_is_no_tensor_is_refused() {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F32, &[2]);
    let bound = graph.index(3);
    let range = graph.range(bound, 0, tinyspec_ir::AxisType::Loop).unwrap();
    assert!(evaluate(&graph, &[range], &[]).is_err());
    assert!(evaluate(&graph, &[x], &[]).unwrap_err().message().contains("slot 0"));
    assert!(evaluate(&graph, &[x], &[counted(&[3])]).is_err());
    let load = Arg::Load { device: None, addrspace: AddrSpace::Global };
    let load = graph.add(Op::Load, &[x], load).unwrap();
    assert_eq!(evaluate(&graph, &[load], &[counted(&[2])]).unwrap()[0], counted(&[2]));
}
