//! Reads with an alternative: where the gate is false memory is not touched.

use crate::all;
use tinyspec::backends::interpreter::array::Array;
use tinyspec::backends::interpreter::tensor::evaluate;
use tinyspec::ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, text};
use tinyspec::prelude::*;
use tinyspec::{device, with_default_device};
use tinyspec_core::lower::kernel::lower_observed;
use tinyspec_core::lower::rangeify::rangeify;

uop! { <N>
    fn neighbours(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = x.get([i - 2], -1.0) + if i % 3 == 0 { x[i] } else { 0.0 };
        }
    }
}

/// A kernel of the program reads with an alternative and a gate.
fn has_gated_loads(specs: &[Spec], name: &str, program: impl Fn(&[Tensor]) -> Tensor) -> Result<bool> {
    let traced = Function::trace(specs, |inputs| vec![program(inputs)])?;
    let target = device(name)?.target().clone();
    let schedule = rangeify(traced.body().graph(), traced.body().outputs(), &target)?;
    let mut found = false;
    for call in &schedule.calls {
        let mut own = Graph::new();
        let sink = own.import(&schedule.graph, &[call.kernel], |_, _| Ok(None))?[0];
        let mut observe = |_: &'static str, graph: &Graph, root: NodeId| {
            let is_gated = |&node: &NodeId| graph.op(node) == Op::Load && graph.sources(node).len() == 3;
            found |= graph.reachable(&[root]).iter().any(is_gated);
        };
        lower_observed(own, sink, call.hand_written.as_ref(), &target, &mut observe)?;
    }
    Ok(found)
}

#[test]
fn reads_outside_and_under_conditions_are_gated_loads() -> Result<()> {
    let x = [1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let by_hand = [0.0f32, -1.0, 1.0, 10.0, 4.0, 8.0, 80.0];
    let padded = [0.0f32, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 0.0];
    let picked = [64.0f32, 0.0, 2.0, 0.0];
    for name in all() {
        with_default_device::<_, Error>(name, || {
            let x = Tensor::from_slice(&x, [7]);
            let spec = Spec::new(DType::F32, [7]);
            assert!(has_gated_loads(std::slice::from_ref(&spec), name, |x| neighbours(&x[0]))?, "{name}");
            assert_eq!(neighbours(&x).to_vec::<f32>()?, by_hand, "{name}");
            let pad = |x: &Tensor| x.pad([2], [10], 0.0);
            assert!(has_gated_loads(std::slice::from_ref(&spec), name, |x| pad(&x[0]))?, "{name}");
            assert_eq!(pad(&x).to_vec::<f32>()?, padded, "{name}");
            // A place from data may be outside.
            let places = Tensor::from_slice(&[6i32, 7, 1, 100], [4]);
            let specs = [spec, Spec::new(DType::I32, [4])];
            let pick = |x: &Tensor, places: &Tensor| x.index0(places);
            assert!(has_gated_loads(&specs, name, |x| pick(&x[0], &x[1]))?, "{name}");
            assert_eq!(pick(&x, &places).to_vec::<f32>()?, picked, "{name}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Two stores into one tensor, from text: the second one sees what the first has written.
const STORES: &str = "
%0 = const[index 4]
%1 = stack(%0)
%2 = param[0 f32](%1)
%3 = param[1 f32](%1)
%4 = param[2 bool](%1)
%5 = store(%2, %3, %4)
%6 = const[f32 7.0]
%7 = cmplt(%3, %6)
%8 = const[bool 1]
%9 = xor(%7, %8)
%10 = store(%2, %6, %9)
%11 = after(%2, %5, %10)
%12 = mul(%11, %11)
return %11, %12
";

#[test]
fn a_store_under_a_gate_leaves_the_rest() -> Result<()> {
    for name in all() {
        with_default_device(name, || -> Result<()> {
            let function: Function = STORES.parse()?;
            let again: Function = function.to_string().parse()?;
            let old = Tensor::from_slice(&[1f32, 2.0, f32::NAN, 4.0], [4]);
            let new = Tensor::from_slice(&[5f32, 6.0, 3.0, 8.0], [4]);
            let gate = Tensor::from_slice(&[true, false, false, false], [4]);
            for function in [function, again] {
                let results = function.call(&[&old, &new, &gate]);
                let state = results[0].to_vec::<f32>()?;
                assert_eq!((state[0], state[1], state[3]), (5.0, 2.0, 7.0), "{name}");
                assert!(state[2].is_nan(), "{name}");
                assert_eq!(results[1].to_vec::<f32>()?[3], 49.0, "{name}");
                // The argument is a value, which stays.
                assert_eq!(old.to_vec::<f32>()?[0], 1.0);
                // What is stored has the gradient where it is stored, the rest where it stays.
                let slopes = grad(&results[0].sum(.., false), &[&old, &new])?;
                assert_eq!(slopes[0].to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0], "{name}");
                assert_eq!(slopes[1].to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.0], "{name}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// A view of a tensor.
type View = fn(&mut Graph, NodeId) -> tinyspec::ir::Result<NodeId>;

fn shape(graph: &mut Graph, dims: &[i64]) -> tinyspec::ir::Result<NodeId> {
    graph.shape(&dims.iter().map(|&dim| dim.into()).collect::<Vec<_>>())
}

fn part(graph: &mut Graph, x: NodeId, offset: &[i64], size: &[i64]) -> tinyspec::ir::Result<NodeId> {
    let (offset, size) = (shape(graph, offset)?, shape(graph, size)?);
    graph.add(Op::Shrink, &[x, offset, size], Arg::None)
}

fn reshaped(graph: &mut Graph, x: NodeId, dims: &[i64]) -> tinyspec::ir::Result<NodeId> {
    let dims = shape(graph, dims)?;
    graph.add(Op::Reshape, &[x, dims], Arg::None)
}

/// Views of a matrix of 3×4 with six elements each.
const VIEWS: [(&str, View); 6] = [
    ("a part", |graph, x| part(graph, x, &[1, 1], &[2, 3])),
    ("a part of the transpose, reversed", |graph, x| {
        let x = graph.add(Op::Permute, &[x], Arg::Axes([1, 0].into_iter().collect()))?;
        let x = graph.add(Op::Flip, &[x], Arg::Flags([true, false].into_iter().collect()))?;
        part(graph, x, &[1, 0], &[3, 2])
    }),
    ("elements in a row", |graph, x| {
        let x = reshaped(graph, x, &[12])?;
        part(graph, x, &[4], &[6])
    }),
    ("every second element", |graph, x| {
        let x = reshaped(graph, x, &[6, 2])?;
        let x = part(graph, x, &[0, 1], &[6, 1])?;
        reshaped(graph, x, &[2, 3])
    }),
    ("columns and what is beside them", |graph, x| {
        let (offset, size) = (shape(graph, &[0, 1])?, shape(graph, &[3, 6])?);
        let x = graph.add(Op::Pad, &[x, offset, size], Arg::None)?;
        part(graph, x, &[0, 4], &[3, 2])
    }),
    ("an axis more", |graph, x| {
        let x = part(graph, x, &[0, 2], &[3, 2])?;
        let dims = shape(graph, &[1, 3, 2])?;
        graph.add(Op::Expand, &[x, dims], Arg::None)
    }),
];

/// The state of `x` after a store of `new` to a view, and after another one of 7 where `gate` holds; and the same view of it.
fn stored(view: View, is_gated: bool) -> tinyspec::ir::Result<(Graph, Vec<NodeId>)> {
    let mut graph = Graph::new();
    let param = |graph: &mut Graph, slot, dtype, dims: &[i64]| {
        let dims = shape(graph, dims)?;
        graph.add(Op::Param, &[dims], Arg::Param { slot, dtype, device: None, addrspace: None })
    };
    let x = param(&mut graph, 0, DType::F32, &[3, 4])?;
    let new = param(&mut graph, 1, DType::F32, &[6])?;
    let gate = param(&mut graph, 2, DType::Bool, &[6])?;
    let place = view(&mut graph, x)?;
    let dims = graph.props(place).shape.clone();
    let dims = graph.shape(&dims)?;
    let (new, gate) =
        (graph.add(Op::Reshape, &[new, dims], Arg::None)?, graph.add(Op::Reshape, &[gate, dims], Arg::None)?);
    let first = graph.add(Op::Store, &[place, new], Arg::None)?;
    let state = graph.add(Op::After, &[x, first], Arg::None)?;
    let seven = graph.constant(Const::float(DType::F32, 7.0));
    let place = view(&mut graph, state)?;
    let sources = if is_gated { vec![place, seven, gate] } else { vec![place, seven] };
    let second = graph.add(Op::Store, &sources, Arg::None)?;
    let state = graph.add(Op::After, &[state, second], Arg::None)?;
    // The gate is an argument in either case.
    let used = graph.add(Op::Cast, &[gate], Arg::DType(DType::F32))?;
    let seen = graph.add(Op::After, &[place, second], Arg::None)?;
    let seen = graph.alu(Op::Add, &[seen, used])?;
    Ok((graph, vec![state, seen]))
}

#[test]
fn a_store_to_a_view_writes_through() -> Result<()> {
    let old = [1f32, 2.0, f32::NAN, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    let new = [-1f32, -2.0, -3.0, f32::INFINITY, -5.0, -6.0];
    let gate = [true, false, false, true, true, false];
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    for (what, view) in VIEWS {
        for is_gated in [true, false] {
            let (graph, results) = stored(view, is_gated)?;
            let floats = |dims: &[usize], values: &[f32]| {
                Array::from_floats(DType::F32, dims, &values.iter().map(|&value| value.into()).collect::<Vec<f64>>())
            };
            let gates = Array::from_ints(DType::Bool, &[6], &gate.map(i64::from))?;
            let expected = evaluate(&graph, &results, &[floats(&[3, 4], &old)?, floats(&[6], &new)?, gates])?;
            let text = text::print(&graph, &results);
            for name in all() {
                with_default_device(name, || -> Result<()> {
                    let function: Function = text.parse()?;
                    let old = Tensor::from_slice(&old, [3, 4]);
                    let arguments = [old.clone(), Tensor::from_slice(&new, [6]), Tensor::from_slice(&gate, [6])];
                    let arguments: Vec<&Tensor> = arguments.iter().collect();
                    for (found, expected) in function.call(&arguments).iter().zip(&expected) {
                        let expected: Vec<f32> = expected.to_floats().iter().map(|&value| value as f32).collect();
                        assert_eq!(bits(&found.to_vec::<f32>()?), bits(&expected), "{what} on {name}");
                    }
                    // The argument is a value, which stays.
                    assert_eq!(old.to_vec::<f32>()?[0], 1.0);
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

/// Where a value is stored it has the gradient, and what it replaces has none.
#[test]
fn gradients_of_stores_to_views() -> Result<()> {
    for (what, view) in VIEWS {
        for is_gated in [true, false] {
            let (graph, results) = stored(view, is_gated)?;
            let function: Function = text::print(&graph, &results).parse()?;
            let old = Tensor::from_slice(&(1..=12).map(|value| value as f32).collect::<Vec<_>>(), [3, 4]);
            let new = Tensor::from_slice(&[-1f32, -2.0, -3.0, -4.0, -5.0, -6.0], [6]);
            let gate = Tensor::from_slice(&[true, false, false, true, true, false], [6]);
            let weights = Tensor::from_slice(&(1..=12).map(|value| value as f32 * 0.5).collect::<Vec<_>>(), [3, 4]);
            let loss = |old: &Tensor, new: &Tensor| {
                let results = function.call(&[old, new, &gate]);
                (&results[0] * &results[0] * &weights).sum(.., false) + results[1].sum(.., false)
            };
            let slopes = grad(&loss(&old, &new), &[&old, &new])?;
            for (number, (of, slopes)) in [&old, &new].into_iter().zip(&slopes).enumerate() {
                let (values, slopes) = (of.to_vec::<f32>()?, slopes.to_vec::<f32>()?);
                for position in 0..values.len() {
                    let at = |step: f32| -> Result<f32> {
                        let mut values = values.clone();
                        values[position] += step;
                        let moved = Tensor::from_slice(&values, of.sizes()?);
                        let loss = if number == 0 { loss(&moved, &new) } else { loss(&old, &moved) };
                        loss.to_vec::<f32>().map(|loss| loss[0])
                    };
                    let slope = at(0.5)? - at(-0.5)?;
                    let found = slopes[position];
                    assert!((slope - found).abs() <= 0.05, "{what}, {number}, {position}: {found} is not {slope}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_store_through_what_repeats_elements_is_refused() -> Result<()> {
    for (view, what) in [
        ("expand(%3, %2)", "which repeats elements: store to the tensor before it"),
        ("index(%3, %7)", "is no view that takes values"),
    ] {
        let text = format!(
            "
            %0 = const[index 3]
            %1 = const[index 4]
            %2 = stack(%0, %1)
            %5 = const[index 1]
            %6 = stack(%0, %5)
            %3 = param[0 f32](%6)
            %7 = param[1 i32](%2)
            %4 = {view}
            %8 = const[f32 1.0]
            %9 = store(%4, %8)
            %10 = after(%3, %9)
            return %10, %7
            "
        );
        let error = text.parse::<Function>().expect_err("several positions").to_string();
        assert!(error.contains("verify tensor: ") && error.contains(what), "{error}");
    }
    Ok(())
}
