//! The method table by name: whatever the arguments are, the answer is a graph or a typed error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use tinyspec_ir::ops::{METHODS, Method, MethodArg, ParamKind, call, nearest};
use tinyspec_ir::{Arg, Builder, DType, Dim, ErrorKind, Graph, NodeId, Op, Shape};

fn tensor(graph: &mut Graph, slot: u32, dtype: DType, shape: &[i64]) -> NodeId {
    let dims: Shape = shape.iter().map(|&dim| Dim::from(dim)).collect();
    let dims = graph.shape(&dims).unwrap();
    graph.add(Op::Param, &[dims], Arg::Param { slot, dtype, device: None, addrspace: None }).unwrap()
}

/// One argument of every kind.
fn samples(graph: &mut Graph) -> Vec<MethodArg> {
    let x = tensor(graph, 0, DType::F32, &[2, 3]);
    vec![
        MethodArg::Tensor(x),
        MethodArg::Tensors(vec![x, x]),
        MethodArg::Int(1),
        MethodArg::Ints(vec![1]),
        MethodArg::Float(0.5),
        MethodArg::Flag(true),
        MethodArg::DType(DType::F32),
        MethodArg::Shape([Dim::from(2), Dim::from(3)].into_iter().collect()),
        MethodArg::AllAxes,
        MethodArg::Text("mean".into()),
        MethodArg::Nothing,
        MethodArg::Options(vec![]),
    ]
}

fn fits(kind: ParamKind, argument: &MethodArg) -> bool {
    use MethodArg as A;
    match kind {
        ParamKind::tensor => matches!(argument, A::Tensor(_)),
        ParamKind::tensors => matches!(argument, A::Tensors(_)),
        ParamKind::optional => matches!(argument, A::Tensor(_) | A::Nothing),
        ParamKind::int => matches!(argument, A::Int(_)),
        ParamKind::ints => matches!(argument, A::Ints(_) | A::Int(_)),
        ParamKind::float => matches!(argument, A::Float(_) | A::Int(_)),
        ParamKind::flag => matches!(argument, A::Flag(_)),
        ParamKind::dtype => matches!(argument, A::DType(_)),
        ParamKind::shape => matches!(argument, A::Shape(_) | A::Ints(_)),
        ParamKind::size => matches!(argument, A::Int(_)),
        ParamKind::axes => matches!(argument, A::AllAxes | A::Ints(_) | A::Int(_)),
        ParamKind::text => matches!(argument, A::Text(_)),
        options => options.fields().is_some() && matches!(argument, A::Options(_)),
    }
}

/// Calls a method; a panic names the call.
fn called(method: &Method, graph: &mut Graph, arguments: &[MethodArg]) -> Result<Vec<NodeId>, tinyspec_ir::Error> {
    let result = catch_unwind(AssertUnwindSafe(|| call(method.name, graph, arguments)));
    result.unwrap_or_else(|_| panic!("{} panics on {arguments:?}", method.name))
}

fn fitting(method: &Method, all: &[MethodArg]) -> Vec<MethodArg> {
    let of = |kind: ParamKind| all.iter().find(|argument| fits(kind, argument)).cloned().unwrap();
    method.params.iter().map(|&(_, kind)| of(kind)).collect()
}

#[test]
fn an_argument_of_the_wrong_kind_is_named() {
    for method in METHODS {
        let mut graph = Graph::new();
        let all = samples(&mut graph);
        let right = fitting(method, &all);
        for (position, &(name, kind)) in method.params.iter().enumerate() {
            for wrong in all.iter().filter(|argument| !fits(kind, argument)) {
                let mut arguments = right.clone();
                arguments[position] = wrong.clone();
                let error = called(method, &mut graph, &arguments).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Arity, "{}: {error}", method.name);
                assert_eq!(error.op(), method.name);
                assert!(error.message().contains(&format!("`{name}`")), "{error}");
            }
        }
    }
}

#[test]
fn too_few_and_too_many_arguments_are_refused() {
    for method in METHODS {
        let mut graph = Graph::new();
        let all = samples(&mut graph);
        let mut arguments = fitting(method, &all);
        arguments.push(MethodArg::Flag(false));
        assert_eq!(called(method, &mut graph, &arguments).unwrap_err().kind(), ErrorKind::Arity, "{}", method.name);
        arguments.pop();
        while arguments.pop().is_some() {
            let error = called(method, &mut graph, &arguments).unwrap_err();
            assert_eq!((error.kind(), error.op()), (ErrorKind::Arity, method.name), "{error}");
        }
    }
}

/// Arguments of the right kinds with values that few methods expect.
#[test]
fn no_value_of_the_right_kind_panics() {
    let mut random = fastrand::Rng::with_seed(5);
    let shapes: [&[i64]; 9] = [&[], &[0], &[1], &[3], &[2, 3], &[3, 3], &[0, 2], &[1, 2, 4, 4], &[2, 1, 3]];
    let ints = [0, 1, -1, 2, 3, -3, 7, 1 << 40];
    let words = ["mean", "sum", "none", "linear", "reflect", "tanh", "", "ij,jk->ik", "->", "i"];
    let (mut accepted, mut helpless) = (std::collections::BTreeSet::new(), std::collections::BTreeMap::new());
    for method in METHODS {
        for _ in 0..200 {
            let mut graph = Graph::new();
            let mut slot = 0;
            let mut any_tensor = |random: &mut fastrand::Rng, graph: &mut Graph| {
                slot += 1;
                let dtype = match random.u8(0..3) {
                    0 => DType::ALL[random.usize(0..DType::ALL.len())],
                    1 => DType::I32,
                    _ => DType::F32,
                };
                let dtype = if matches!(dtype, DType::Void | DType::Index) { DType::F32 } else { dtype };
                tensor(graph, slot - 1, dtype, shapes[random.usize(0..shapes.len())])
            };
            let int = |random: &mut fastrand::Rng| ints[random.usize(0..ints.len())];
            let some = |random: &mut fastrand::Rng| -> Vec<i64> {
                (0..random.usize(0..4)).map(|_| ints[random.usize(0..ints.len())]).collect()
            };
            let arguments: Vec<MethodArg> = method
                .params
                .iter()
                .map(|&(_, kind)| match kind {
                    ParamKind::tensor => MethodArg::Tensor(any_tensor(&mut random, &mut graph)),
                    ParamKind::tensors => {
                        let count = random.usize(0..3);
                        MethodArg::Tensors((0..count).map(|_| any_tensor(&mut random, &mut graph)).collect())
                    }
                    ParamKind::optional if random.bool() => MethodArg::Nothing,
                    ParamKind::optional => MethodArg::Tensor(any_tensor(&mut random, &mut graph)),
                    ParamKind::int | ParamKind::size => MethodArg::Int(int(&mut random)),
                    ParamKind::ints => MethodArg::Ints(some(&mut random)),
                    ParamKind::float => {
                        let floats = [0.0, 0.5, -1.0, 1e30, f64::NAN, f64::INFINITY];
                        MethodArg::Float(floats[random.usize(0..floats.len())])
                    }
                    ParamKind::flag => MethodArg::Flag(random.bool()),
                    ParamKind::dtype => MethodArg::DType(DType::ALL[random.usize(0..DType::ALL.len())]),
                    ParamKind::shape => MethodArg::Ints(some(&mut random)),
                    ParamKind::axes if random.bool() => MethodArg::AllAxes,
                    ParamKind::axes => MethodArg::Ints(some(&mut random)),
                    ParamKind::text => MethodArg::Text(words[random.usize(0..words.len())].into()),
                    options => {
                        let fields = options.fields().unwrap_or_default();
                        let field = fields.get(random.usize(0..fields.len() + 1));
                        let given = field.map(|field| (field.to_string(), MethodArg::Ints(some(&mut random))));
                        MethodArg::Options(given.into_iter().collect())
                    }
                })
                .collect();
            match called(method, &mut graph, &arguments) {
                Ok(results) => {
                    accepted.insert(method.name);
                    assert!(method.is_list || results.len() == 1, "{}", method.name);
                }
                Err(error) => {
                    assert!(!error.message().is_empty() && !error.op().is_empty(), "{}: {error}", method.name);
                    // An argument of another kind is told what it should be.
                    if error.kind() != ErrorKind::Arity && error.suggestion().is_none_or(str::is_empty) {
                        helpless.insert(without_numbers(error.message()), error.to_string());
                    }
                }
            }
        }
    }
    // The values are not so wild that nothing is ever right.
    assert!(accepted.len() * 10 > METHODS.len() * 8, "{} of {}", accepted.len(), METHODS.len());
    // Every refusal tells the user what to write instead.
    assert!(helpless.is_empty(), "{} kinds of refusals have no help: {helpless:#?}", helpless.len());
}

/// Messages of one kind are equal without their numbers.
fn without_numbers(message: &str) -> String {
    message.chars().filter(|c| !c.is_ascii_digit() && !",[]- ".contains(*c)).collect()
}

#[test]
fn a_name_that_is_nearly_right_is_corrected() {
    let error = call("sofmax", &mut Graph::new(), &[]).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Unsupported, "sofmax"));
    assert_eq!(error.suggestion(), Some("did you mean `softmax`?"));
    for (wrong, right) in [("rleu", "relu"), ("maen", "mean"), ("tahn", "tanh"), ("epx", "exp"), ("snh", "sinh")] {
        assert_eq!(tinyspec_ir::ops::nearest(wrong), Some(right));
    }
    assert_eq!(call("xyzzy_plugh", &mut Graph::new(), &[]).unwrap_err().suggestion(), None);
    for method in METHODS {
        assert_eq!(nearest(method.name), Some(method.name));
        assert!(!method.doc.is_empty(), "{} has no documentation", method.name);
    }
}
