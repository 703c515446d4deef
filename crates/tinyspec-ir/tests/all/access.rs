//! What can be shown of the accesses of a kernel: inside of their buffers, and apart from each other.

use tinyspec_ir::verify::access::{Problem, ProblemKind, problems};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, DType, Graph, NodeId, Op};

/// A graph with the dims `N` and `M`, at least 1.
struct Kernel {
    graph: Graph,
    n: NodeId,
    m: NodeId,
    ranges: u32,
}

impl Kernel {
    fn new() -> Kernel {
        let mut graph = Graph::new();
        let mut dim = |slot: u32| {
            let (shape, min, max) = (graph.shape(&[]).unwrap(), graph.index(1), graph.index(1 << 31));
            let arg = Arg::Param { slot, dtype: DType::Index, device: None, addrspace: None };
            graph.add(Op::Param, &[shape, min, max], arg).unwrap()
        };
        let (n, m) = (dim(100), dim(101));
        Kernel { graph, n, m, ranges: 0 }
    }

    fn number(&mut self, number: i64) -> NodeId {
        self.graph.index(number)
    }

    fn op(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        self.graph.alu(op, &[a, b]).unwrap()
    }

    fn offset(&mut self, a: NodeId, number: i64) -> NodeId {
        let number = self.number(number);
        self.op(Op::Add, a, number)
    }

    fn times(&mut self, a: NodeId, number: i64) -> NodeId {
        let number = self.number(number);
        self.op(Op::Mul, a, number)
    }

    fn range(&mut self, bound: NodeId, axis: AxisType) -> NodeId {
        self.ranges += 1;
        self.graph.range(bound, self.ranges, axis).unwrap()
    }

    fn buffer(&mut self, slot: u32, dims: &[NodeId]) -> NodeId {
        let shape = self.graph.add(Op::Stack, dims, Arg::None).unwrap();
        let arg = Arg::Param { slot, dtype: DType::F32, device: None, addrspace: Some(AddrSpace::Global) };
        self.graph.add(Op::Param, &[shape], arg).unwrap()
    }

    fn load(&mut self, buffer: NodeId, indices: &[NodeId]) -> NodeId {
        let place = self.place(buffer, indices);
        self.graph.add(Op::Load, &[place], Arg::Load { device: None, addrspace: AddrSpace::Reg }).unwrap()
    }

    fn place(&mut self, buffer: NodeId, indices: &[NodeId]) -> NodeId {
        let sources: Vec<NodeId> = std::iter::once(buffer).chain(indices.iter().copied()).collect();
        self.graph.add(Op::Index, &sources, Arg::None).unwrap()
    }

    /// Problems of storing `value` (or 0) at the indices, within the loops, outer ones first.
    fn store(
        &mut self,
        buffer: NodeId,
        indices: &[NodeId],
        value: Option<NodeId>,
        gate: Option<NodeId>,
        loops: &[NodeId],
    ) -> Vec<Problem> {
        let value = value.unwrap_or_else(|| self.graph.constant(tinyspec_ir::Const::float(DType::F32, 0.0)));
        let after: Vec<NodeId> = std::iter::once(buffer).chain(loops.iter().copied()).collect();
        let buffer = self.graph.add(Op::After, &after, Arg::None).unwrap();
        let mut sources = vec![self.place(buffer, indices), value];
        sources.extend(gate);
        let mut effect = self.graph.add(Op::Store, &sources, Arg::None).unwrap();
        for &range in loops.iter().rev() {
            effect = self.graph.add(Op::End, &[effect, range], Arg::None).unwrap();
        }
        let sink = self.graph.add(Op::Sink, &[effect], Arg::None).unwrap();
        problems(&self.graph, sink, &|_| None, &|_| false)
    }
}

fn is_race(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::Meets { .. })
}

#[test]
fn a_loop_over_an_axis_is_inside_and_one_further_is_not() {
    let mut kernel = Kernel::new();
    let n = kernel.n;
    let (y, i) = (kernel.buffer(0, &[n]), kernel.range(n, AxisType::Global));
    assert_eq!(kernel.store(y, &[i], None, None, &[i]), []);
    let next = kernel.offset(i, 1);
    let found = kernel.store(y, &[next], None, None, &[i]);
    assert!(matches!(found[..], [Problem { kind: ProblemKind::BeyondEnd { axis: 0, .. }, .. }]), "{found:?}");
    let before = kernel.offset(i, -1);
    let found = kernel.store(y, &[before], None, None, &[i]);
    assert!(matches!(found[..], [Problem { kind: ProblemKind::BelowZero { axis: 0, .. }, .. }]), "{found:?}");
}

#[test]
fn whole_blocks_are_inside_and_apart() {
    let mut kernel = Kernel::new();
    let (n, size) = (kernel.n, kernel.number(32));
    let blocks = kernel.op(Op::Idiv, n, size);
    let (y, block, i) =
        (kernel.buffer(0, &[n]), kernel.range(blocks, AxisType::Global), kernel.range(size, AxisType::Local));
    let start = kernel.times(block, 32);
    let at = kernel.op(Op::Add, start, i);
    assert_eq!(kernel.store(y, &[at], None, None, &[block, i]), []);
    // One block more is not, unless a gate says so.
    let more = kernel.offset(n, 31);
    let blocks = kernel.op(Op::Idiv, more, size);
    let block = kernel.range(blocks, AxisType::Global);
    let start = kernel.times(block, 32);
    let at = kernel.op(Op::Add, start, i);
    assert_eq!(kernel.store(y, &[at], None, None, &[block, i]).len(), 1);
    let gate = kernel.op(Op::CmpLt, at, n);
    assert_eq!(kernel.store(y, &[at], None, Some(gate), &[block, i]), []);
}

#[test]
fn products_of_dims_and_overlapping_rows() {
    let mut kernel = Kernel::new();
    let (n, m) = (kernel.n, kernel.m);
    let size = kernel.op(Op::Mul, n, m);
    let (y, i, j) = (kernel.buffer(0, &[size]), kernel.range(m, AxisType::Global), kernel.range(n, AxisType::Global));
    let row = kernel.op(Op::Mul, i, n);
    let at = kernel.op(Op::Add, row, j);
    assert_eq!(kernel.store(y, &[at], None, None, &[i, j]), []);
    // Rows that begin after m elements overlap where n is larger.
    let row = kernel.op(Op::Mul, i, m);
    let at = kernel.op(Op::Add, row, j);
    let gate = kernel.op(Op::CmpLt, at, size);
    assert!(kernel.store(y, &[at], None, Some(gate), &[i, j]).iter().all(is_race));
    assert_eq!(kernel.store(y, &[at], None, Some(gate), &[i, j]).len(), 1);
}

#[test]
fn quotients_lose_iterations_and_remainders_find_them() {
    let mut kernel = Kernel::new();
    let (n, two) = (kernel.n, kernel.number(2));
    let y = kernel.buffer(0, &[n, two]);
    let i = kernel.range(n, AxisType::Global);
    let (quotient, rest) = (kernel.op(Op::Idiv, i, two), kernel.op(Op::Mod, i, two));
    assert_eq!(kernel.store(y, &[quotient, rest], None, None, &[i]), []);
    let zero = kernel.number(0);
    let found = kernel.store(y, &[quotient, zero], None, None, &[i]);
    assert!(found.len() == 1 && is_race(&found[0]), "{found:?}");
}

#[test]
fn a_gate_leaves_one_iteration() {
    let mut kernel = Kernel::new();
    let (n, one, zero) = (kernel.n, kernel.number(1), kernel.number(0));
    let (y, i) = (kernel.buffer(0, &[one]), kernel.range(n, AxisType::Global));
    assert_eq!(kernel.store(y, &[zero], None, None, &[i]).len(), 1);
    let gate = kernel.op(Op::CmpLt, i, one);
    assert_eq!(kernel.store(y, &[zero], None, Some(gate), &[i]), []);
}

#[test]
fn a_read_of_what_others_store_is_found() {
    let mut kernel = Kernel::new();
    let n = kernel.n;
    let inner = kernel.offset(n, -1);
    let (y, i) = (kernel.buffer(0, &[n]), kernel.range(inner, AxisType::Global));
    let next = kernel.offset(i, 1);
    let value = kernel.load(y, &[next]);
    let found = kernel.store(y, &[i], Some(value), None, &[i]);
    assert!(found.len() == 1 && is_race(&found[0]) && found[0].node == value, "{found:?}");
    // One after the other they may.
    let i = kernel.range(inner, AxisType::Loop);
    let next = kernel.offset(i, 1);
    let value = kernel.load(y, &[next]);
    assert_eq!(kernel.store(y, &[i], Some(value), None, &[i]), []);
}

/// A random index over the loop variables and dims.
fn random_index(kernel: &mut Kernel, leaves: &[NodeId], depth: u32, next: &mut impl FnMut(u32) -> u32) -> NodeId {
    if depth == 0 || next(4) == 0 {
        let number = next(4) as i64 - 1;
        return match next(5) {
            0 => kernel.number(number),
            _ => leaves[next(leaves.len() as u32) as usize],
        };
    }
    let a = random_index(kernel, leaves, depth - 1, next);
    match next(9) {
        0..=2 => {
            let b = random_index(kernel, leaves, depth - 1, next);
            kernel.op(Op::Add, a, b)
        }
        3 => kernel.times(a, -1),
        4 => kernel.times(a, 2),
        5 => {
            let b = leaves[next(leaves.len() as u32) as usize];
            kernel.op(Op::Mul, a, b)
        }
        6 => {
            let by = kernel.number(1 + next(3) as i64);
            kernel.op(Op::Idiv, a, by)
        }
        7 => {
            let by = kernel.number(1 + next(3) as i64);
            kernel.op(Op::Mod, a, by)
        }
        _ => {
            let b = random_index(kernel, leaves, depth - 1, next);
            kernel.op(Op::Max, a, b)
        }
    }
}

/// The value of an index or condition.
fn value(graph: &Graph, node: NodeId, of: &dyn Fn(NodeId) -> Option<i64>) -> i64 {
    if let Some(value) = of(node) {
        return value;
    }
    let source = |position: usize| value(graph, graph.source(node, position), of);
    match graph.op(node) {
        Op::Const => graph.as_int(node).unwrap() as i64,
        Op::Add => source(0) + source(1),
        Op::Mul => source(0) * source(1),
        Op::Idiv => tinyspec_ir::dim::floor_div(source(0), source(1)),
        Op::Mod => tinyspec_ir::dim::floor_mod(source(0), source(1)),
        Op::Max => source(0).max(source(1)),
        Op::CmpLt => (source(0) < source(1)) as i64,
        op => panic!("{op} is not an index"),
    }
}

/// Whatever passes is right for all small dims, by trying them.
#[test]
fn what_is_shown_is_true() {
    let mut state = 7u64;
    let mut next = move |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as u32) % below
    };
    let (mut passed, mut tried) = (0, 0);
    while passed < 200 && tried < 20_000 {
        tried += 1;
        let mut kernel = Kernel::new();
        let (n, m) = (kernel.n, kernel.m);
        let bounds = [n, m, kernel.number(3), kernel.op(Op::Mul, n, m), kernel.offset(n, -1)];
        let bound = |next: &mut dyn FnMut(u32) -> u32| bounds[next(bounds.len() as u32) as usize];
        let (first, second, inner) = (bound(&mut next), bound(&mut next), bound(&mut next));
        let i = kernel.range(first, AxisType::Global);
        let j = kernel.range(second, AxisType::Global);
        let k = kernel.range(inner, AxisType::Loop);
        let loops = match next(3) {
            0 => vec![i],
            1 => vec![i, j],
            _ => vec![i, k],
        };
        let mut leaves = loops.clone();
        leaves.extend([n, m]);
        leaves.extend(&loops);
        let rank = 1 + next(2) as usize;
        let dims: Vec<NodeId> =
            (0..rank).map(|_| bound(&mut next)).map(|dim| if dim == bounds[4] { n } else { dim }).collect();
        let y = kernel.buffer(0, &dims);
        let indices: Vec<NodeId> = (0..rank).map(|_| random_index(&mut kernel, &leaves, 2, &mut next)).collect();
        let gate = (next(2) == 0).then(|| {
            let a = random_index(&mut kernel, &leaves, 1, &mut next);
            let b = random_index(&mut kernel, &leaves, 1, &mut next);
            kernel.op(Op::CmpLt, a, b)
        });
        if !kernel.store(y, &indices, None, gate, &loops).is_empty() {
            continue;
        }
        passed += 1;
        for (size_n, size_m) in [(1, 1), (1, 4), (2, 3), (3, 2), (4, 5), (5, 1), (6, 3)] {
            let dim = |node: NodeId| match node {
                _ if node == n => Some(size_n),
                _ if node == m => Some(size_m),
                _ => None,
            };
            let trips: Vec<i64> =
                loops.iter().map(|&range| value(&kernel.graph, kernel.graph.source(range, 0), &dim)).collect();
            let mut stores: std::collections::HashMap<Vec<i64>, Vec<i64>> = Default::default();
            for position in 0..trips.iter().map(|trips| (*trips).max(0)).product::<i64>() {
                let at: Vec<i64> = match trips.as_slice() {
                    [_] => vec![position],
                    [_, inner] => vec![position / inner, position % inner],
                    _ => vec![],
                };
                let of = |node: NodeId| dim(node).or_else(|| Some(at[loops.iter().position(|&range| range == node)?]));
                if gate.is_some_and(|gate| value(&kernel.graph, gate, &of) == 0) {
                    continue;
                }
                let element: Vec<i64> = indices.iter().map(|&index| value(&kernel.graph, index, &of)).collect();
                let describe = || tinyspec_ir::text::print(&kernel.graph, &indices);
                for (index, &size) in element.iter().zip(&dims) {
                    let size = value(&kernel.graph, size, &dim);
                    assert!(
                        (0..size).contains(index),
                        "{index} of {size} at {at:?}, {size_n} {size_m}\n{}",
                        describe()
                    );
                }
                // The loops that run in parallel: a serial one may store again.
                let parallel: Vec<i64> = if loops.contains(&k) { vec![at[0]] } else { at };
                let other = stores.entry(element).or_insert_with(|| parallel.clone());
                assert_eq!(*other, parallel, "meet, {size_n} {size_m}\n{}", describe());
            }
        }
    }
    assert!(passed >= 50, "{passed} of {tried} passed");
}
