//! The arena: which nodes are one, and which only equal.

use tinyspec_ir::{AddrSpace, Arg, Builder, Const, ContentHash, DType, Graph, NodeId, Op, text};

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
    [one, graph.add_unmerged(Op::Const, &[], graph.arg(one).clone()).unwrap(), other]
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

/// `(a + b) * max(b, c)` of three numbers, which are made in this order.
fn product_of(order: [usize; 3], values: [i64; 3]) -> ContentHash {
    let mut graph = Graph::new();
    let mut numbers = [None; 3];
    for number in order {
        numbers[number] = Some(graph.constant(Const::int(DType::I32, values[number].into())));
    }
    let [a, b, c] = numbers.map(Option::unwrap);
    let steps =
        if order[0] == 0 { [(Op::Add, [a, b]), (Op::Max, [b, c])] } else { [(Op::Max, [b, c]), (Op::Add, [a, b])] };
    let made = steps.map(|(op, sources)| (op, graph.alu(op, &sources).unwrap()));
    let [sum, greatest] = [Op::Add, Op::Max].map(|wanted| made.iter().find(|(op, _)| *op == wanted).unwrap().1);
    let root = graph.alu(Op::Mul, &[sum, greatest]).unwrap();
    graph.structural_hash(root)
}

#[test]
fn structural_hashes_do_not_depend_on_the_numbers_of_nodes() {
    let first = product_of([0, 1, 2], [5, 6, 7]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(product_of(order, [5, 6, 7]), first, "{order:?}");
    }
    for others in [[6, 5, 7], [5, 6, 8], [5, 6, 6], [5, 5, 7]] {
        assert_ne!(product_of([0, 1, 2], others), first, "{others:?}");
    }
}

#[test]
fn structural_hashes_tell_equal_nodes_apart() {
    let mut graph = Graph::new();
    let [one, same, _] = ends(&mut graph);
    let [twice, apart] = [one, same].map(|second| graph.alu(Op::Add, &[one, second]).unwrap());
    assert_ne!(graph.structural_hash(twice), graph.structural_hash(apart));
    assert_eq!(graph.content_hash(&[twice]), graph.content_hash(&[apart]));
}

/// The order of operands depends on which node was there first.
#[test]
fn operands_of_a_sum_may_be_in_either_order() {
    let mut graph = Graph::new();
    let [one, other] = [1, 2].map(|value| graph.constant(Const::int(DType::I32, value)));
    let [one, other] = [one, other].map(|end| graph.add(Op::Cast, &[end], Arg::DType(DType::F32)).unwrap());
    let root = graph.alu(Op::Sqrt, &[one]).unwrap();
    let mut of = |op: Op, sources: [NodeId; 2]| graph.add_unmerged(op, &sources, Arg::None).unwrap();
    let [sum, turned] = [[root, other], [other, root]].map(|sources| of(Op::Add, sources));
    let [quotient, inverse] = [[root, other], [other, root]].map(|sources| of(Op::Div, sources));
    let [twice, mixed] = [[root, root], [root, other]].map(|sources| of(Op::Add, sources));
    assert!(graph.is_equal(sum, turned));
    assert!(!graph.is_equal(quotient, inverse));
    assert!(!graph.is_equal(twice, mixed) && !graph.is_equal(sum, twice));
}

#[test]
fn a_load_of_a_tensor_is_where_its_argument_says() {
    let space = |lines: &str| {
        let (graph, roots) = text::parse(&format!("%0 = const[index 4]\n%1 = stack(%0)\n{lines}")).unwrap();
        graph.props(roots[0]).addrspace
    };
    for place in AddrSpace::ALL {
        let load = format!("%2 = param[0 f32 @\"cpu\" global](%1)\n%3 = load[{}](%2)\nreturn %3\n", place.name());
        assert_eq!(space(&load), Some(place));
        assert_eq!(space(&load.replace("@\"cpu\" global", "@\"cpu\"")), Some(place));
    }
    // What an instruction loads is a value.
    assert_eq!(space("%2 = param[0 f32 global](%1)\n%3 = index(%2, %0)\n%4 = load[reg](%3)\nreturn %4\n"), None);
    assert_eq!(space("%2 = buffer[0 f32 reg](%1)\n%3 = load[reg](%2)\nreturn %3\n"), None);
}
