//! Text and binary forms: both ways, and what damaged input gives.

use tinyspec_ir::{
    AddrSpace, Arg, AxisType, Builder, Const, DType, Device, Graph, NodeId, Op, dim::shape, encode, text,
};

/// A graph with every kind of argument.
fn sample() -> (Graph, Vec<NodeId>) {
    let mut graph = Graph::new();
    let dims = graph.shape(&shape(&[2, 3])).unwrap();
    let cpu = Some(Device::new("cpu"));
    let x = Arg::Param { slot: 0, dtype: DType::F32, device: cpu.clone(), addrspace: Some(AddrSpace::Global) };
    let x = graph.add(Op::Param, &[dims], x).unwrap();
    let y = Arg::Buffer { slot: 1, dtype: DType::F32, device: cpu.clone(), addrspace: AddrSpace::Global };
    let y = graph.add(Op::Buffer, &[dims], y).unwrap();
    let permuted = graph.add(Op::Permute, &[x], Arg::Axes([1, 0].into_iter().collect())).unwrap();
    let flipped = graph.add(Op::Flip, &[permuted], Arg::Flags([true, false].into_iter().collect())).unwrap();
    let sum = Arg::Reduce { op: Op::Add, axes: [0].into_iter().collect() };
    let sum = graph.add(Op::Reduce, &[flipped], sum).unwrap();
    let mut values = vec![sum];
    for float in [1.5, -0.0, f64::INFINITY, f64::NAN, 1e-40] {
        let value = graph.constant(Const::float(DType::F32, float));
        values.push(graph.alu(Op::Mul, &[sum, value]).unwrap());
    }
    let half = graph.add(Op::Cast, &[sum], Arg::DType(DType::F16)).unwrap();
    let moved = graph.add(Op::Load, &[half], Arg::Load { device: cpu, addrspace: AddrSpace::Global }).unwrap();
    let big = graph.constant(Const::int(DType::U64, u64::MAX as i128));
    let bound = graph.index(7);
    let range = graph.range(bound, 3, AxisType::GroupReduce).unwrap();
    let stored = graph.add(Op::Store, &[y, x], Arg::Nontemporal).unwrap();
    let plain = graph.add(Op::Store, &[y, x], Arg::None).unwrap();
    let special = graph.add(Op::Special, &[bound], Arg::Text(" gid \"0\"\n\u{7f}ü\\ ".into())).unwrap();
    let bytes = graph.add(Op::Binary, &[], Arg::Bytes([0u8, 255, 16].as_slice().into())).unwrap();
    let many = Device::Many(["gpu:0".into(), "gpu (1)".into()].into());
    let many = Arg::Buffer { slot: 2, dtype: DType::I64, device: Some(many), addrspace: AddrSpace::Global };
    let many = graph.add(Op::Buffer, &[dims], many).unwrap();
    let tuple = graph.add(Op::Tuple, &values, Arg::None).unwrap();
    let element = graph.add(Op::GetTuple, &[tuple], Arg::Number(2)).unwrap();
    (graph, vec![element, moved, big, range, stored, plain, special, bytes, many, element])
}

#[test]
fn text_parses_back_to_the_identical_graph() {
    let (graph, roots) = sample();
    let printed = text::print(&graph, &roots);
    let (parsed, parsed_roots) = text::parse(&printed).unwrap();
    assert_eq!(printed, text::print(&parsed, &parsed_roots));
    assert_eq!(graph.content_hash(&roots), parsed.content_hash(&parsed_roots));
}

#[test]
fn bytes_decode_to_the_identical_graph() {
    let (graph, roots) = sample();
    let bytes = encode::encode(&graph, &roots);
    let (decoded, decoded_roots) = encode::decode(&bytes).unwrap();
    assert_eq!(text::print(&graph, &roots), text::print(&decoded, &decoded_roots));
    assert_eq!(graph.content_hash(&roots), decoded.content_hash(&decoded_roots));
}

#[test]
fn damaged_bytes_are_an_error_at_every_position() {
    let (graph, roots) = sample();
    let bytes = encode::encode(&graph, &roots);
    for length in 0..bytes.len() {
        assert!(encode::decode(&bytes[..length]).is_err());
    }
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x55;
        assert!(encode::decode(&damaged).is_err(), "a flip at {position} went unnoticed");
    }
}

#[test]
fn wrong_text_names_its_line() {
    let cases = [
        ("%0 = const[f32 1.0]\n%1 = nonsense(%0)\nreturn %1", "line 2: no op is called `nonsense`"),
        ("%0 = const[f32 one]\nreturn %0", "line 1: expected a number, found `one`"),
        ("%0 = add(%1, %2)\nreturn %0", "line 1: %1 is not defined above"),
        ("%0 = const[i32 1]\n%1 = const[f32 1.0]\n%2 = add(%0, %1)\nreturn %2", "line 3: add: mixes i32 and f32"),
        ("%0 = const[i32 1] nonsense\nreturn %0", "line 1: `nonsense` is not expected here"),
        ("%0 = const[i32 1]\n", "the last line must be `return"),
    ];
    for (text, expected) in cases {
        let error = text::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} does not say {expected:?}");
    }
}

#[test]
fn a_chain_of_100_000_nodes_goes_through_every_form() {
    let mut graph = Graph::new();
    let mut node = graph.constant(Const::int(DType::I64, 1));
    let first = node;
    for _ in 0..100_000 {
        node = graph.alu(Op::Add, &[node, first]).unwrap();
    }
    let (parsed, roots) = text::parse(&text::print(&graph, &[node])).unwrap();
    let (decoded, decoded_roots) = encode::decode(&encode::encode(&graph, &[node])).unwrap();
    assert_eq!(parsed.content_hash(&roots), graph.content_hash(&[node]));
    assert_eq!(decoded.content_hash(&decoded_roots), graph.content_hash(&[node]));
}
