//! The plainest reading of tensor graphs and of range-form kernels: what both mean, element by element.

use std::collections::HashMap;
use tinyspec_core::lower::rangeify::Schedule;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::eval::eval_op;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op};

type Inputs<'a> = &'a dyn Fn(u32, DType, usize) -> Vec<Const>;

fn shape(graph: &Graph, node: NodeId) -> Vec<usize> {
    static_shape(&graph.props(node).shape).unwrap().iter().map(|&dim| dim as usize).collect()
}

fn unflatten(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = flat % shape[axis];
        flat /= shape[axis];
    }
    index
}

fn flatten(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |flat, (&index, &dim)| flat * dim + index)
}

fn identity(op: Op, dtype: DType) -> Const {
    match op {
        Op::Add => Const::int(dtype, 0),
        Op::Mul => Const::int(dtype, 1),
        _ if dtype.is_float() => Const::float(dtype, f64::NEG_INFINITY),
        _ => Const::int(dtype, dtype.int_range().unwrap().0),
    }
}

/// The elements of the outputs of a tensor graph.
pub fn tensors(graph: &Graph, outputs: &[NodeId], inputs: Inputs) -> Vec<Vec<Const>> {
    let mut values: HashMap<NodeId, Vec<Const>> = HashMap::new();
    for node in graph.reachable(outputs) {
        let size = shape(graph, node);
        let count: usize = size.iter().product();
        let dtype = graph.dtype(node);
        let sources = graph.sources(node);
        let from = |source: usize| shape(graph, sources[source]);
        let offset = || -> Vec<usize> {
            let value = graph.props(sources[1]).value.clone().unwrap();
            static_shape(&value).unwrap().iter().map(|&dim| dim as usize).collect()
        };
        let at = |source: usize, index: &[usize]| values[&sources[source]][flatten(index, &from(source))];
        let element = |flat: usize| -> Const {
            let index = unflatten(flat, &size);
            match (graph.op(node), graph.arg(node)) {
                (Op::Const, Arg::Const(value)) => *value,
                (Op::Permute, Arg::Axes(order)) => {
                    let mut inner = vec![0; index.len()];
                    order.iter().zip(&index).for_each(|(&axis, &position)| inner[axis as usize] = position);
                    at(0, &inner)
                }
                (Op::Flip, Arg::Flags(flags)) => {
                    let flip = |axis: usize| if flags[axis] { size[axis] - 1 - index[axis] } else { index[axis] };
                    at(0, &(0..size.len()).map(flip).collect::<Vec<_>>())
                }
                (Op::Reshape, _) => values[&sources[0]][flat],
                (Op::Shrink, _) => at(0, &index.iter().zip(offset()).map(|(a, b)| a + b).collect::<Vec<_>>()),
                (Op::Pad, _) => {
                    let inner: Vec<usize> = index.iter().zip(offset()).map(|(a, b)| a.wrapping_sub(b)).collect();
                    let inside = inner.iter().zip(from(0)).all(|(&index, dim)| index < dim);
                    if inside { at(0, &inner) } else { Const::int(dtype, 0) }
                }
                (Op::Index, _) => {
                    let (mut inner, mut rest) = (Vec::new(), &index[..]);
                    for source in 1..sources.len() {
                        let (own, others) = rest.split_at(from(source).len());
                        rest = others;
                        inner.push(at(source, own).as_int().unwrap() as usize);
                    }
                    inner.extend_from_slice(rest);
                    let inside = inner.iter().zip(from(0)).all(|(&index, dim)| index < dim);
                    if inside { at(0, &inner) } else { Const::int(dtype, 0) }
                }
                (Op::Stack, _) => at(index[0], &index[1..]),
                (Op::Reduce, Arg::Reduce { op, axes }) => {
                    let inner = from(0);
                    let extents: Vec<usize> = axes.iter().map(|&axis| inner[axis as usize]).collect();
                    let wide = dtype.accumulator();
                    let mut total = identity(*op, wide);
                    for step in 0..extents.iter().product() {
                        let mut index = index.clone();
                        let steps = unflatten(step, &extents);
                        axes.iter().zip(steps).for_each(|(&axis, step)| index[axis as usize] = step);
                        let value = eval_op(Op::Cast, wide, &[at(0, &index)]).unwrap();
                        total = eval_op(*op, wide, &[total, value]).unwrap();
                    }
                    eval_op(Op::Cast, dtype, &[total]).unwrap()
                }
                (Op::Bitcast, _) if dtype.size() != graph.dtype(sources[0]).size() => {
                    let bytes: Vec<u8> = values[&sources[0]].iter().flat_map(|value| bytes(*value)).collect();
                    number(dtype, &bytes[flat * dtype.size()..])
                }
                (Op::Contiguous | Op::Detach | Op::Load, _) => values[&sources[0]][flat],
                (op, _) => {
                    let operands: Vec<Const> = (0..sources.len())
                        .map(|source| {
                            let inner = from(source);
                            let lead = index.len() - inner.len();
                            let pick = |axis: usize| if inner[axis] == 1 { 0 } else { index[axis + lead] };
                            at(source, &(0..inner.len()).map(pick).collect::<Vec<_>>())
                        })
                        .collect();
                    if op == Op::Expand { operands[0] } else { eval_op(op, dtype, &operands).unwrap() }
                }
            }
        };
        let elements = match graph.arg(node) {
            Arg::Param { slot, dtype, .. } => inputs(*slot, *dtype, count),
            _ if graph.op(node) == Op::Expand => {
                let inner = from(0);
                let lead = size.len() - inner.len();
                let pick = |flat: usize| {
                    let index = unflatten(flat, &size);
                    let axis = |axis: usize| if inner[axis] == 1 { 0 } else { index[axis + lead] };
                    at(0, &(0..inner.len()).map(axis).collect::<Vec<_>>())
                };
                (0..count).map(pick).collect()
            }
            _ => (0..count).map(element).collect(),
        };
        values.insert(node, elements);
    }
    outputs.iter().map(|output| values[output].clone()).collect()
}

fn bytes(value: Const) -> Vec<u8> {
    let bits = match value.as_float() {
        Some(float) => tinyspec_ir::float::to_bits(value.dtype, float),
        None => value.bits,
    };
    bits.to_le_bytes()[..value.dtype.size()].to_vec()
}

fn number(dtype: DType, bytes: &[u8]) -> Const {
    let bits = bytes[..dtype.size()].iter().rev().fold(0u64, |bits, &byte| bits << 8 | byte as u64);
    match dtype.is_float() {
        true => Const { dtype, bits: tinyspec_ir::float::from_bits(dtype, bits).to_bits() },
        false => Const::int(dtype, bits as i64 as i128),
    }
}

/// The elements of the outputs of a schedule.
pub fn schedule(schedule: &Schedule, inputs: Inputs) -> Vec<Vec<Const>> {
    let graph = &schedule.graph;
    let mut memory: HashMap<NodeId, Vec<Const>> = HashMap::new();
    for call in &schedule.calls {
        let buffers: Vec<NodeId> = graph.sources(call.node)[1..].iter().map(|&place| buffer(graph, place)).collect();
        for (position, &place) in graph.sources(call.node)[1..].iter().enumerate() {
            let count = shape(graph, place)[0];
            let node = buffers[position];
            match graph.arg(node) {
                Arg::Param { slot, dtype, .. } => {
                    memory.entry(node).or_insert_with(|| inputs(*slot, *dtype, count));
                }
                Arg::Buffer { dtype, .. } if position < call.outputs => {
                    // What a kernel forgets to write shows.
                    memory.insert(node, vec![Const::int(*dtype, 77); count]);
                }
                _ => assert!(memory.contains_key(&node), "read before it is written"),
            }
        }
        let mut arguments: Vec<Vec<Const>> = buffers.iter().map(|node| memory[node].clone()).collect();
        let mut machine = Machine { graph, arguments: &mut arguments, ranges: HashMap::new() };
        machine.run(graph.source(call.kernel, 0));
        buffers.into_iter().zip(arguments).for_each(|(node, values)| {
            memory.insert(node, values);
        });
    }
    schedule.outputs.iter().map(|&output| memory.get(&buffer(graph, output)).cloned().unwrap_or_default()).collect()
}

fn buffer(graph: &Graph, place: NodeId) -> NodeId {
    if graph.op(place) == Op::After { graph.source(place, 0) } else { place }
}

/// Runs one kernel in range form.
struct Machine<'a> {
    graph: &'a Graph,
    arguments: &'a mut Vec<Vec<Const>>,
    ranges: HashMap<NodeId, i64>,
}

impl Machine<'_> {
    fn run(&mut self, node: NodeId) {
        let graph = self.graph;
        match graph.op(node) {
            Op::End => {
                let range = graph.source(node, 1);
                for step in 0..graph.as_int(graph.source(range, 0)).unwrap() {
                    self.ranges.insert(range, step as i64);
                    self.run(graph.source(node, 0));
                }
                self.ranges.remove(&range);
            }
            Op::Group => graph.sources(node).iter().for_each(|&source| self.run(source)),
            Op::Store => {
                let mut seen = HashMap::new();
                let value = self.value(graph.source(node, 1), &mut seen);
                let (slot, position) = self.address(graph.source(node, 0), &mut seen);
                self.arguments[slot][position as usize] = value;
            }
            op => panic!("{op} runs in no kernel"),
        }
    }

    fn address(&mut self, node: NodeId, seen: &mut HashMap<NodeId, Const>) -> (usize, i64) {
        let Arg::Param { slot, .. } = self.graph.arg(self.graph.source(node, 0)) else { panic!("no Param") };
        (*slot as usize, self.value(self.graph.source(node, 1), seen).as_int().unwrap() as i64)
    }

    fn value(&mut self, node: NodeId, seen: &mut HashMap<NodeId, Const>) -> Const {
        if let Some(value) = seen.get(&node) {
            return *value;
        }
        let graph = self.graph;
        let sources = graph.sources(node);
        let value = match (graph.op(node), graph.arg(node)) {
            (Op::Const, Arg::Const(value)) => *value,
            (Op::Range, _) => Const::int(DType::Index, self.ranges[&node] as i128),
            (Op::Load, _) => {
                let open = sources.get(2).is_none_or(|&gate| self.value(gate, seen).bits != 0);
                if open {
                    let (slot, position) = self.address(sources[0], seen);
                    self.arguments[slot][position as usize]
                } else {
                    self.value(sources[1], seen)
                }
            }
            (Op::Reduce, Arg::Reduce { op, .. }) => {
                let extents: Vec<usize> =
                    sources[1..].iter().map(|&range| graph.as_int(graph.source(range, 0)).unwrap() as usize).collect();
                let dtype = graph.dtype(node);
                let mut total = identity(*op, dtype);
                for step in 0..extents.iter().product() {
                    for (&range, step) in sources[1..].iter().zip(unflatten(step, &extents)) {
                        self.ranges.insert(range, step as i64);
                    }
                    let value = self.value(sources[0], &mut HashMap::new());
                    total = eval_op(*op, dtype, &[total, value]).unwrap();
                }
                sources[1..].iter().for_each(|range| {
                    self.ranges.remove(range);
                });
                total
            }
            (op, _) => {
                let operands: Vec<Const> = sources.iter().map(|&source| self.value(source, seen)).collect();
                eval_op(op, graph.dtype(node), &operands).unwrap()
            }
        };
        seen.insert(node, value);
        value
    }
}
