//! The gradient rule of every op against differences of the function itself, on the tensor interpreter in f64.

use std::collections::BTreeSet;
use tinyspec_backends::interpreter::{array::Array, tensor::evaluate};
use tinyspec_ir::gradient::{gradient, gradient_or_none, ones_like};
use tinyspec_ir::{AddrSpace, Arg, Axes, Builder, Const, DType, Dim, ErrorKind, Graph, NodeId, Op, Result, Shape};

/// Numbers between 0.3 and 2.3, no two of them close.
fn numbers(slot: usize, count: usize) -> Vec<f64> {
    (0..count).map(|i| 0.3 + ((i * 7 + slot * 3) % 19) as f64 / 9.7 + i as f64 * 1e-3).collect()
}

fn shape(dims: &[usize]) -> Shape {
    dims.iter().map(|&dim| Dim::from(dim as i64)).collect()
}

fn param(graph: &mut Graph, slot: u32, dtype: DType, dims: &[usize]) -> NodeId {
    let dims = graph.shape(&shape(dims)).unwrap();
    graph.add(Op::Param, &[dims], Arg::Param { slot, dtype, device: None, addrspace: None }).unwrap()
}

fn floats(graph: &Graph, root: NodeId, inputs: &[Array]) -> Vec<f64> {
    evaluate(graph, &[root], inputs).unwrap()[0].to_floats()
}

/// The gradients by the rules are those by differences; an input that nothing depends on has none.
fn check(name: &str, shapes: &[&[usize]], build: impl Fn(&mut Graph, &[NodeId]) -> Result<NodeId>) -> BTreeSet<Op> {
    let mut graph = Graph::new();
    let params: Vec<NodeId> =
        (0u32..).zip(shapes).map(|(slot, dims)| param(&mut graph, slot, DType::F64, dims)).collect();
    let output = build(&mut graph, &params).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut inputs: Vec<Array> = shapes
        .iter()
        .enumerate()
        .map(|(slot, dims)| Array::from_floats(DType::F64, dims, &numbers(slot, dims.iter().product())).unwrap())
        .collect();
    // Every element of the output counts differently.
    let weights = {
        let output = &evaluate(&graph, &[output], &inputs).unwrap()[0];
        let numbers = numbers(shapes.len() + 5, output.lanes().len());
        Array::from_floats(DType::F64, output.shape(), &numbers).unwrap()
    };
    let cotangent = param(&mut graph, shapes.len() as u32, DType::F64, weights.shape());
    inputs.push(weights.clone());
    let used: BTreeSet<Op> = graph.reachable(&[output]).into_iter().map(|node| graph.op(node)).collect();
    let gradients = gradient_or_none(&mut graph, &[(output, cotangent)], &params).unwrap();
    let loss = |inputs: &[Array]| -> f64 {
        floats(&graph, output, inputs).iter().zip(weights.to_floats()).map(|(value, weight)| value * weight).sum()
    };
    for (slot, dims) in shapes.iter().enumerate() {
        let start = inputs[slot].to_floats();
        let found = match gradients[slot] {
            Some(gradient) => floats(&graph, gradient, &inputs),
            None => vec![0.0; start.len()],
        };
        assert_eq!(found.len(), start.len(), "{name}: shape of gradient {slot}");
        for (position, &found) in found.iter().enumerate() {
            const STEP: f64 = 1e-5;
            let moved = |step: f64| {
                let (mut values, mut inputs) = (start.clone(), inputs.clone());
                values[position] += step;
                inputs[slot] = Array::from_floats(DType::F64, dims, &values).unwrap();
                loss(&inputs)
            };
            let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let close = (found - expected).abs() <= 1e-6 * (1.0 + expected.abs());
            assert!(close, "{name}, input {slot}, element {position}: {found}, by differences {expected}");
        }
    }
    used
}

fn reduce(graph: &mut Graph, op: Op, x: NodeId, axes: &[u32]) -> Result<NodeId> {
    graph.add(Op::Reduce, &[x], Arg::Reduce { op, axes: Axes::from_slice(axes) })
}

/// Movement to or from a larger shape: `(op, x, offset, shape)`.
fn window(graph: &mut Graph, op: Op, x: NodeId, offset: &[usize], dims: &[usize]) -> Result<NodeId> {
    let (offset, dims) = (graph.shape(&shape(offset))?, graph.shape(&shape(dims))?);
    graph.alu(op, &[x, offset, dims])
}

fn resized(graph: &mut Graph, op: Op, x: NodeId, dims: &[usize]) -> Result<NodeId> {
    let dims = graph.shape(&shape(dims))?;
    graph.alu(op, &[x, dims])
}

#[test]
fn gradients_are_the_slopes_of_their_ops() {
    let mut covered = BTreeSet::new();
    let two: &[&[usize]] = &[&[2, 3], &[2, 3]];
    let one: &[&[usize]] = &[&[2, 3]];
    for op in [Op::Add, Op::Mul, Op::Max, Op::Div, Op::Pow, Op::Mod, Op::Idiv] {
        covered.extend(check(op.name(), two, |g, x| g.alu(op, x)));
        // Broadcast along one axis, and along one that is not there.
        covered.extend(check(op.name(), &[&[2, 1], &[4, 1, 3]], |g, x| g.alu(op, x)));
        covered.extend(check(op.name(), &[&[4, 1, 3], &[]], |g, x| g.alu(op, x)));
    }
    for op in [Op::Recip, Op::Sqrt, Op::Exp2, Op::Log2, Op::Sin, Op::Trunc, Op::Contiguous, Op::ContiguousBackward] {
        covered.extend(check(op.name(), one, |g, x| g.alu(op, x)));
    }
    covered.extend(check("square", one, |g, x| g.alu(Op::Mul, &[x[0], x[0]])));
    covered.extend(check("mulacc", &[&[2, 3], &[3], &[2, 1]], |g, x| g.alu(Op::Mulacc, x)));
    covered.extend(check("where", &[&[2, 3], &[2, 3], &[2, 3], &[3]], |g, x| {
        let condition = g.alu(Op::CmpLt, &[x[0], x[1]])?;
        g.alu(Op::Where, &[condition, x[2], x[3]])
    }));
    covered.extend(check("reshape", one, |g, x| resized(g, Op::Reshape, x[0], &[3, 2])));
    covered.extend(check("expand", &[&[2, 1]], |g, x| resized(g, Op::Expand, x[0], &[2, 4])));
    covered.extend(check("permute", &[&[2, 3, 4]], |g, x| {
        g.add(Op::Permute, &[x[0]], Arg::Axes(Axes::from_slice(&[2, 0, 1])))
    }));
    covered
        .extend(check("flip", one, |g, x| g.add(Op::Flip, &[x[0]], Arg::Flags([true, false].into_iter().collect()))));
    covered.extend(check("pad", one, |g, x| window(g, Op::Pad, x[0], &[1, 0], &[4, 5])));
    covered.extend(check("shrink", &[&[4, 5]], |g, x| window(g, Op::Shrink, x[0], &[1, 2], &[2, 3])));
    covered.extend(check("stack", &[&[3], &[3]], |g, x| g.alu(Op::Stack, &[x[0], x[1], x[0]])));
    covered.extend(check("index", &[&[4, 2]], |g, x| {
        // A row twice, and one that does not exist.
        let rows: Vec<NodeId> = [2, 0, 2, 9].map(|row| g.constant(Const::int(DType::I32, row))).into();
        let rows = g.alu(Op::Stack, &rows)?;
        g.alu(Op::Index, &[x[0], rows])
    }));
    for op in [Op::Add, Op::Max, Op::Mul] {
        covered.extend(check("reduce", &[&[2, 3, 2]], |g, x| reduce(g, op, x[0], &[1])));
        covered.extend(check("reduce", &[&[2, 3, 2]], |g, x| reduce(g, op, x[0], &[0, 2])));
    }
    covered.extend(check("detach", one, |g, x| {
        // Only the other factor has a slope here.
        let still = g.alu(Op::Detach, &[x[0]])?;
        let still = g.alu(Op::Trunc, &[still])?;
        g.alu(Op::Mul, &[x[0], still])
    }));
    covered.extend(check("tuple", two, |g, x| {
        let pair = g.alu(Op::Tuple, &[x[0], x[1]])?;
        g.add(Op::GetTuple, &[pair], Arg::Number(1))
    }));
    covered.extend(check("load", one, |g, x| {
        g.add(Op::Load, x, Arg::Load { device: None, addrspace: AddrSpace::Global })
    }));
    let differentiable = [
        Op::Add,
        Op::Mul,
        Op::Mulacc,
        Op::Max,
        Op::Where,
        Op::Div,
        Op::Recip,
        Op::Sqrt,
        Op::Exp2,
        Op::Log2,
        Op::Sin,
        Op::Pow,
        Op::Mod,
        Op::Idiv,
        Op::Trunc,
        Op::Contiguous,
        Op::ContiguousBackward,
        Op::Load,
        Op::Reshape,
        Op::Expand,
        Op::Permute,
        Op::Flip,
        Op::Pad,
        Op::Shrink,
        Op::Stack,
        Op::Index,
        Op::Reduce,
        Op::GetTuple,
        Op::Detach,
    ];
    assert!(differentiable.iter().all(|op| covered.contains(op)), "{covered:?}");
}

#[test]
fn a_cast_passes_the_gradient_on_in_the_dtype_of_its_source() {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F64, &[2]);
    let narrow = graph.add(Op::Cast, &[x], Arg::DType(DType::F32)).unwrap();
    let square = graph.alu(Op::Mul, &[narrow, narrow]).unwrap();
    let ones = ones_like(&mut graph, square).unwrap();
    let found = gradient(&mut graph, &[(square, ones)], &[x]).unwrap()[0];
    assert_eq!(graph.dtype(found), DType::F64);
    assert_eq!(floats(&graph, found, &[Array::from_floats(DType::F64, &[2], &[1.5, -3.0]).unwrap()]), [3.0, -6.0]);
}

/// The gradient of the sum of `output` for the one Param.
fn slopes(values: &[f64], build: impl Fn(&mut Graph, NodeId) -> NodeId) -> Vec<f64> {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F32, &[values.len()]);
    let output = build(&mut graph, x);
    let ones = ones_like(&mut graph, output).unwrap();
    let found = gradient(&mut graph, &[(output, ones)], &[x]).unwrap()[0];
    floats(&graph, found, &[Array::from_floats(DType::F32, &[values.len()], values).unwrap()])
}

#[test]
fn ties_share_the_gradient_equally() {
    assert_eq!(slopes(&[1.0, 3.0, 3.0, 2.0], |g, x| reduce(g, Op::Max, x, &[0]).unwrap()), [0.0, 0.5, 0.5, 0.0]);
    assert_eq!(slopes(&[1.0, 1.0, 1.0, 1.0], |g, x| reduce(g, Op::Max, x, &[0]).unwrap()), [0.25; 4]);
    let with_zero = |g: &mut Graph, x| {
        let zero = g.constant(Const::float(DType::F32, 0.0));
        g.alu(Op::Max, &[x, zero]).unwrap()
    };
    assert_eq!(slopes(&[-1.0, 0.0, 2.0], with_zero), [0.0, 0.5, 1.0]);
}

/// Recomputed terms may differ in their last bits from those in memory, of which the maximum was taken.
#[test]
fn a_maximum_is_compared_with_the_terms_that_it_is_of() {
    let mut graph = Graph::new();
    let x = param(&mut graph, 0, DType::F32, &[3]);
    let doubled = graph.alu(Op::Add, &[x, x]).unwrap();
    let limit = graph.constant(Const::float(DType::F32, 5.0));
    let is_small = graph.alu(Op::CmpLt, &[x, limit]).unwrap();
    let nothing = graph.constant(Const::float(DType::F32, f64::NEG_INFINITY));
    let terms = graph.alu(Op::Where, &[is_small, doubled, nothing]).unwrap();
    let greatest = reduce(&mut graph, Op::Max, terms, &[0]).unwrap();
    let ones = ones_like(&mut graph, greatest).unwrap();
    let found = gradient(&mut graph, &[(greatest, ones)], &[x]).unwrap()[0];
    let mut reading = Graph::new();
    let in_memory = |graph: &mut Graph, node| Ok((node == terms).then(|| param(graph, 1, DType::F32, &[3])));
    let found = reading.import(&graph, &[found], in_memory).unwrap()[0];
    let array = |values: &[f64]| Array::from_floats(DType::F32, &[3], values).unwrap();
    let inputs = [array(&[1.0, 3.0, 9.0]), array(&[2.0, 6.000001, f64::NEG_INFINITY])];
    assert_eq!(floats(&reading, found, &inputs), [0.0, 2.0, 0.0]);
}

#[test]
fn slopes_at_the_edges_of_powers_and_products() {
    let power = |exponent: f64| {
        move |g: &mut Graph, x| {
            let exponent = g.constant(Const::float(DType::F32, exponent));
            g.alu(Op::Pow, &[x, exponent]).unwrap()
        }
    };
    assert_eq!(slopes(&[0.0, -3.0, 2.0], power(2.0)), [0.0, -6.0, 4.0]);
    assert_eq!(slopes(&[0.0, -3.0, 2.0], power(0.0)), [0.0; 3]);
    // A product with one 0 still has a slope there, with two it has none.
    let product = |g: &mut Graph, x| reduce(g, Op::Mul, x, &[0]).unwrap();
    assert_eq!(slopes(&[2.0, 0.0, 3.0], product), [0.0, 6.0, 0.0]);
    assert_eq!(slopes(&[2.0, 0.0, 0.0], product), [0.0; 3]);
}

#[test]
fn what_has_no_gradient_says_so() {
    let mut graph = Graph::new();
    let (x, y) = (param(&mut graph, 0, DType::F32, &[2]), param(&mut graph, 1, DType::F32, &[3]));
    let number = param(&mut graph, 2, DType::I32, &[2]);
    let ones = ones_like(&mut graph, x).unwrap();
    let refused = |graph: &mut Graph, outputs: &[(NodeId, NodeId)], wanted: &[NodeId], kind: ErrorKind, word: &str| {
        let error = gradient(graph, outputs, wanted).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(word), "{error}");
    };
    refused(&mut graph, &[(x, ones)], &[number], ErrorKind::Gradient, "i32");
    refused(&mut graph, &[(x, ones)], &[x, y], ErrorKind::Gradient, "number 1");
    refused(&mut graph, &[(y, ones)], &[y], ErrorKind::Shape, "cotangent");
    let still = graph.alu(Op::Detach, &[x]).unwrap();
    refused(&mut graph, &[(still, ones)], &[x], ErrorKind::Gradient, "does not depend");
    let bits = graph.add(Op::Bitcast, &[x], Arg::DType(DType::F16)).unwrap();
    let halves = ones_like(&mut graph, bits).unwrap();
    refused(&mut graph, &[(bits, halves)], &[x], ErrorKind::Gradient, "detach");
    assert_eq!(ones_like(&mut graph, number).unwrap_err().kind(), ErrorKind::Gradient);
    // An integer on the way stops the gradient, as a Detach does.
    let rounded = graph.add(Op::Cast, &[x], Arg::DType(DType::I32)).unwrap();
    let back = graph.add(Op::Cast, &[rounded], Arg::DType(DType::F32)).unwrap();
    assert_eq!(gradient_or_none(&mut graph, &[(back, ones)], &[x]).unwrap(), [None]);
}
