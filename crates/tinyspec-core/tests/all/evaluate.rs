//! What a kernel computes, before and after lowering: two small evaluators over `eval_op`.

use std::collections::HashMap;
use tinyspec_backends::LinearKernel;
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, DType, Graph, NodeId, Op, eval::eval_op};

/// Contents of the Params, by slot.
pub type Memory = Vec<Vec<Const>>;

fn identity(op: Op, dtype: DType) -> Const {
    match (op, dtype.int_range()) {
        (Op::Mul, _) => Const::int(dtype, 1),
        (Op::Max, Some((least, _))) => Const::int(dtype, least),
        (Op::Max, None) => Const::float(dtype, f64::NEG_INFINITY),
        _ => Const::int(dtype, 0),
    }
}

fn slot(graph: &Graph, node: NodeId) -> usize {
    match graph.arg(node) {
        Arg::Param { slot, .. } => *slot as usize,
        other => panic!("{other:?} is no Param"),
    }
}

/// Runs a kernel in range form.
pub fn ranges(graph: &Graph, sink: NodeId, memory: &mut Memory) {
    for &effect in graph.sources(sink) {
        Ranges { graph, values: HashMap::new() }.effect(effect, memory);
    }
}

struct Ranges<'g> {
    graph: &'g Graph,
    values: HashMap<NodeId, Const>,
}

impl Ranges<'_> {
    fn effect(&mut self, node: NodeId, memory: &mut Memory) {
        // End(End(body, inner), outer): the outer loop comes first.
        let sources = self.graph.sources(node);
        match self.graph.op(node) {
            Op::End => {
                let trips = self.graph.as_int(self.graph.source(sources[1], 0)).unwrap();
                for trip in 0..trips {
                    let mut inner = Ranges { graph: self.graph, values: self.only_ranges() };
                    inner.values.insert(sources[1], Const::int(DType::Index, trip));
                    inner.effect(sources[0], memory);
                }
            }
            Op::Group => sources.iter().for_each(|&source| self.effect(source, memory)),
            Op::Store => {
                let open = sources.get(2).is_none_or(|&gate| self.value(gate, memory).bits != 0);
                if open {
                    let value = self.value(sources[1], memory);
                    let (buffer, index) = (self.graph.source(sources[0], 0), self.graph.source(sources[0], 1));
                    let index = self.value(index, memory).as_int().unwrap();
                    memory[slot(self.graph, buffer)][index as usize] = value;
                }
            }
            other => panic!("{other} is no effect"),
        }
    }

    fn only_ranges(&self) -> HashMap<NodeId, Const> {
        let ranges = self.values.iter().filter(|(node, _)| self.graph.op(**node) == Op::Range);
        ranges.map(|(node, value)| (*node, *value)).collect()
    }

    fn value(&mut self, node: NodeId, memory: &Memory) -> Const {
        if let Some(value) = self.values.get(&node) {
            return *value;
        }
        let sources = self.graph.sources(node);
        let value = match self.graph.op(node) {
            Op::Const => self.graph.as_const(node).unwrap(),
            Op::Load => {
                let open = sources.get(2).is_none_or(|&gate| self.value(gate, memory).bits != 0);
                if open {
                    let (buffer, index) = (self.graph.source(sources[0], 0), self.graph.source(sources[0], 1));
                    let index = self.value(index, memory).as_int().unwrap();
                    memory[slot(self.graph, buffer)][index as usize]
                } else {
                    self.value(sources[1], memory)
                }
            }
            Op::Reduce => {
                let Arg::Reduce { op, .. } = *self.graph.arg(node) else { panic!() };
                let dtype = self.graph.dtype(node);
                let trips: Vec<i128> =
                    sources[1..].iter().map(|&range| self.graph.as_int(self.graph.source(range, 0)).unwrap()).collect();
                let mut total = identity(op, dtype);
                for mut flat in 0..trips.iter().product::<i128>() {
                    let mut inner = Ranges { graph: self.graph, values: self.only_ranges() };
                    for (&range, trips) in sources[1..].iter().zip(&trips).rev() {
                        inner.values.insert(range, Const::int(DType::Index, flat % trips));
                        flat /= trips;
                    }
                    let value = inner.value(sources[0], memory);
                    total = eval_op(op, dtype, &[total, value]).unwrap();
                }
                total
            }
            op => {
                let operands: Vec<Const> = sources.iter().map(|&source| self.value(source, memory)).collect();
                eval_op(op, self.graph.dtype(node), &operands).unwrap()
            }
        };
        self.values.insert(node, value);
        value
    }
}

#[derive(Clone, Debug)]
enum Value {
    Lanes(Vec<Const>),
    /// A buffer and the elements that an address means.
    Place(NodeId, Vec<i128>),
}

/// Runs a linear kernel as one call with the whole GLOBAL range.
pub fn linear(kernel: &LinearKernel, memory: &mut Memory) {
    let mut machine = Machine { graph: &kernel.graph, values: HashMap::new(), buffers: HashMap::new() };
    let list = kernel.graph.sources(kernel.linear);
    let mut opened: Vec<(usize, i128)> = Vec::new();
    let mut at = 0;
    while at < list.len() {
        let node = list[at];
        match kernel.graph.op(node) {
            Op::Range => {
                opened.push((at, 0));
                machine.values.insert(node, Value::Lanes(vec![Const::int(DType::Index, 0)]));
            }
            Op::End => {
                let (start, trip) = opened.pop().expect("an End without Range");
                let range = list[start];
                assert_eq!(range, kernel.graph.source(node, 1), "loops must nest");
                let trips = kernel.graph.as_int(kernel.graph.source(range, 0)).unwrap();
                if trip + 1 < trips {
                    opened.push((start, trip + 1));
                    machine.values.insert(range, Value::Lanes(vec![Const::int(DType::Index, trip + 1)]));
                    at = start;
                }
            }
            _ => machine.run(node, memory),
        }
        at += 1;
    }
}

struct Machine<'g> {
    graph: &'g Graph,
    values: HashMap<NodeId, Value>,
    buffers: HashMap<NodeId, Vec<Const>>,
}

impl Machine<'_> {
    fn buffer(&self, node: NodeId) -> NodeId {
        let mut node = node;
        while self.graph.op(node) == Op::After {
            node = self.graph.source(node, 0);
        }
        node
    }

    fn lanes(&self, node: NodeId) -> Vec<Const> {
        if let Some(Value::Lanes(lanes)) = self.values.get(&node) {
            return lanes.clone();
        }
        match self.graph.op(node) {
            Op::Const => vec![self.graph.as_const(node).unwrap()],
            Op::Stack => self.graph.sources(node).iter().flat_map(|&source| self.lanes(source)).collect(),
            op => panic!("{op} {node:?} is used before it is made"),
        }
    }

    fn place(&self, node: NodeId) -> (NodeId, Vec<i128>) {
        match self.values.get(&node) {
            Some(Value::Place(buffer, places)) => (*buffer, places.clone()),
            _ => {
                let buffer = self.buffer(node);
                assert_eq!(self.graph.op(buffer), Op::Buffer, "no address");
                let count = self.width(buffer);
                (buffer, (0..count as i128).collect())
            }
        }
    }

    fn width(&self, node: NodeId) -> usize {
        self.graph.props(node).element_count().as_const().unwrap() as usize
    }

    fn cell<'m>(&'m mut self, buffer: NodeId, memory: &'m mut Memory) -> &'m mut Vec<Const> {
        if self.graph.op(buffer) == Op::Param {
            return &mut memory[slot(self.graph, buffer)];
        }
        let (count, dtype) = (self.width(buffer), self.graph.dtype(buffer));
        // Not 0, so that a read of what was never written shows.
        self.buffers.entry(buffer).or_insert_with(|| vec![Const::int(dtype, 77); count])
    }

    fn run(&mut self, node: NodeId, memory: &mut Memory) {
        let graph = self.graph;
        let sources = graph.sources(node);
        let width = self.width(node);
        assert!(graph.props(node).rank() <= 1 || graph.op(node) == Op::Buffer);
        let is_place = |node: NodeId| matches!(graph.props(node).addrspace, Some(AddrSpace::Global | AddrSpace::Local));
        let value = match graph.op(node) {
            Op::Param | Op::Buffer | Op::After | Op::Group | Op::Sink => return,
            Op::Index if is_place(sources[0]) => {
                let places = self.lanes(sources[1]).iter().map(|index| index.as_int().unwrap()).collect();
                Value::Place(self.buffer(sources[0]), places)
            }
            Op::Index => {
                let lane = self.lanes(sources[1])[0].as_int().unwrap();
                Value::Lanes(vec![self.lanes(sources[0])[lane as usize]])
            }
            Op::Shrink => {
                let start = self.lanes(sources[1])[0].as_int().unwrap();
                Value::Place(self.buffer(sources[0]), (0..width as i128).map(|lane| start + lane).collect())
            }
            Op::Stack => Value::Lanes(sources.iter().flat_map(|&source| self.lanes(source)).collect()),
            Op::Expand => Value::Lanes(vec![self.lanes(sources[0])[0]; width]),
            Op::Load => {
                let (buffer, places) = self.place(sources[0]);
                let gates = sources.get(2).map(|&gate| self.lanes(gate));
                let alt = sources.get(1).map(|&alt| self.lanes(alt));
                let cells = self.cell(buffer, memory);
                let lanes = places.iter().enumerate().map(|(lane, &place)| {
                    let open = gates.as_ref().is_none_or(|gates| gates[lane.min(gates.len() - 1)].bits != 0);
                    match &alt {
                        Some(alt) if !open => alt[lane.min(alt.len() - 1)],
                        _ => cells[place as usize],
                    }
                });
                Value::Lanes(lanes.collect())
            }
            Op::Store => {
                let (buffer, places) = self.place(sources[0]);
                let gates = sources.get(2).map(|&gate| self.lanes(gate));
                let values = self.lanes(sources[1]);
                assert_eq!(values.len(), places.len(), "a store of the wrong width");
                let cells = self.cell(buffer, memory);
                for (lane, (&place, value)) in places.iter().zip(values).enumerate() {
                    if gates.as_ref().is_none_or(|gates| gates[lane.min(gates.len() - 1)].bits != 0) {
                        cells[place as usize] = value;
                    }
                }
                return;
            }
            Op::Reduce => {
                let Arg::Reduce { op, .. } = *graph.arg(node) else { panic!() };
                let lanes = self.lanes(sources[0]);
                let total = lanes[1..]
                    .iter()
                    .fold(lanes[0], |total, lane| eval_op(op, graph.dtype(node), &[total, *lane]).unwrap());
                Value::Lanes(vec![total])
            }
            op => {
                let operands: Vec<Vec<Const>> = sources.iter().map(|&source| self.lanes(source)).collect();
                let lanes = (0..width).map(|lane| {
                    let operands: Vec<Const> = operands
                        .iter()
                        .map(|operand| {
                            assert_eq!(operand.len(), width, "{op}: operands of several widths");
                            operand[lane]
                        })
                        .collect();
                    assert!(graph.dtype(node) != DType::Index, "{op} of dtype index");
                    eval_op(op, graph.dtype(node), &operands).unwrap()
                });
                Value::Lanes(lanes.collect())
            }
        };
        self.values.insert(node, value);
    }
}
