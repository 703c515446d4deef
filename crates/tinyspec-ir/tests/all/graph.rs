//! The arena: which nodes are one, and which only equal.

use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op};

/// Two chains over the ends `first` and `second`, alike but for those: `step` makes the next node.
fn chains(
    graph: &mut Graph,
    [first, second]: [NodeId; 2],
    length: usize,
    step: impl Fn(&mut Graph, NodeId) -> NodeId,
) -> [NodeId; 2] {
    [first, second].map(|mut end| {
        for _ in 0..length {
            end = step(graph, end);
        }
        end
    })
}

/// Ends that are equal, and one that is not.
fn ends(graph: &mut Graph) -> [NodeId; 3] {
    let [one, other] = [1, 2].map(|value| graph.constant(Const::int(DType::I32, value)));
    [one, graph.add_apart(Op::Const, &[], graph.arg(one).clone()).unwrap(), other]
}

#[test]
fn deep_graphs_are_compared_without_a_stack() {
    let mut graph = Graph::new();
    let [one, same, other] = ends(&mut graph);
    let step = |graph: &mut Graph, x| graph.alu(Op::Sqrt, &[x]).unwrap();
    let cast = |graph: &mut Graph, x| graph.add(Op::Cast, &[x], Arg::DType(DType::F32)).unwrap();
    let [one, same, other] = [one, same, other].map(|end| cast(&mut graph, end));
    for (second, is_equal) in [(same, true), (other, false)] {
        let [a, b] = chains(&mut graph, [one, second], 100_000, step);
        assert_eq!((a == b, graph.is_equal(a, b)), (false, is_equal));
    }
}

#[test]
fn shared_graphs_are_compared_node_by_node() {
    let mut graph = Graph::new();
    let [one, same, other] = ends(&mut graph);
    for (second, is_equal) in [(same, true), (other, false)] {
        let double = |graph: &mut Graph, x| graph.alu(Op::Add, &[x, x]).unwrap();
        let [a, b] = chains(&mut graph, [one, second], 100, double);
        assert_eq!((a == b, graph.is_equal(a, b)), (false, is_equal));
        assert!(!graph.is_equal(a, graph.source(b, 0)));
    }
}
