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
