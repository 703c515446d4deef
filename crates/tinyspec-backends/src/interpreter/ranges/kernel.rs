//! Runs one kernel: values are computed on demand, and kept until a Range that they depend on advances. Each thread of
//! a workgroup has its own values, and all threads compute a node together, so a Barrier needs no further waiting.

use super::{length, refuse, shape, unwritten};
use crate::Grid;
use crate::interpreter::array::{Array, apply, element_count, value_error};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tinyspec_ir::eval::identity;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::special::{DIMENSIONS, SpecialIndex};
use tinyspec_ir::{AddrSpace, Arg, Const, DType, Graph, NodeId, Op, Result};

/// Runs a kernel (its Sink) on the buffers of its Params; returns the slots that it wrote.
///
/// # Errors
/// When an access is out of bounds, a Range is used outside its End or Reduce, a buffer is missing or does not fit, or
/// the kernel is in none of the forms between Rangeify and Linearize.
pub fn run_kernel(graph: &Graph, kernel: NodeId, buffers: &mut [Array]) -> Result<Vec<usize>> {
    let mut run = Run::new(graph, kernel, buffers)?;
    for group in 0..run.grid.count() {
        run.begin(group);
        run.demand(kernel)?;
    }
    let mut written: Vec<usize> = run.written.into_iter().collect();
    written.sort_unstable();
    Ok(written)
}

/// The coordinates of a number along each dimension; the first varies fastest.
fn place(sizes: [usize; DIMENSIONS], mut number: usize) -> [usize; DIMENSIONS] {
    sizes.map(|size| {
        let at = number % size.max(1);
        number /= size.max(1);
        at
    })
}

#[derive(Clone)]
pub(super) enum Value {
    Array(Rc<Array>),
    /// A whole Param or Buffer.
    Buffer(NodeId),
    /// Elements of one: their positions, counted from 1; 0 is out of bounds.
    Address(NodeId, Rc<Array>),
    /// An effect that has happened.
    Done,
}

pub(super) struct Run<'a> {
    pub graph: &'a Graph,
    /// Of the Params, by slot.
    pub buffers: &'a mut [Array],
    /// LOCAL buffers, and REG buffers of each thread.
    pub locals: FxHashMap<(NodeId, usize), Array>,
    pub written: rustc_hash::FxHashSet<usize>,
    grid: Grid,
    group: [usize; DIMENSIONS],
    /// The current thread.
    thread: usize,
    /// The threads that are active in the enclosing loops, in order.
    active: Rc<[usize]>,
    /// By node and thread.
    values: Vec<Option<Value>>,
    /// The nodes that become stale when a Range advances.
    dependents: FxHashMap<NodeId, Vec<NodeId>>,
    /// By loop, the loops nested in its body that are invariant because they are over one of its own Ranges: they run
    /// before it.
    invariant: FxHashMap<NodeId, Vec<NodeId>>,
}

impl<'a> Run<'a> {
    fn new(graph: &'a Graph, kernel: NodeId, buffers: &'a mut [Array]) -> Result<Run<'a>> {
        let nodes = graph.reachable(&[kernel]);
        let grid = Grid::among(graph, &nodes);
        let ranges: Vec<NodeId> = nodes.iter().copied().filter(|&node| graph.op(node) == Op::Range).collect();
        if ranges.len() > 128 {
            return Err(refuse(graph, kernel, "has more than 128 Ranges"));
        }
        let bit = |range: NodeId| ranges.binary_search(&range).map_or(0, |position| 1u128 << position);
        let mut masks = vec![0u128; graph.len()];
        let mut dependents: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for &node in &nodes {
            let sources = graph.sources(node);
            let mut mask = sources.iter().fold(bit(node), |mask, source| mask | masks[source.index()]);
            // An End and a Reduce close their Ranges, but not what the bounds depend on.
            let closed = if matches!(graph.op(node), Op::End | Op::Reduce) { &sources[1..] } else { &[] };
            for &range in closed {
                mask &= !bit(range);
            }
            masks[node.index()] = mask;
            if graph.op(node) != Op::Range {
                let open = ranges.iter().enumerate().filter(|(position, _)| mask >> position & 1 == 1);
                open.for_each(|(_, &range)| dependents.entry(range).or_default().push(node));
            }
        }
        let closes = |node: &NodeId, range: &NodeId| {
            matches!(graph.op(*node), Op::End | Op::Reduce) && graph.sources(*node)[1..].contains(range)
        };
        let mut invariant: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for range in &ranges {
            let loops: Vec<NodeId> = nodes.iter().copied().filter(|node| closes(node, range)).collect();
            for &outer in loops.iter().filter(|_| loops.len() > 1) {
                let body = graph.reachable(&[graph.source(outer, 0)]);
                let inner = loops.iter().copied().filter(|inner| body.binary_search(inner).is_ok());
                invariant.entry(outer).or_default().extend(inner);
            }
        }
        Ok(Run {
            graph,
            buffers,
            locals: FxHashMap::default(),
            written: Default::default(),
            grid,
            group: [0; DIMENSIONS],
            thread: 0,
            active: Rc::from([]),
            values: Vec::new(),
            dependents,
            invariant,
        })
    }

    /// Prepares for another workgroup.
    fn begin(&mut self, group: usize) {
        self.group = place(self.grid.groups, group);
        self.active = (0..self.grid.size()).collect();
        self.locals.clear();
        self.values.clear();
        self.values.resize(self.graph.len() * self.grid.size(), None);
    }

    fn slot(&self, node: NodeId, thread: usize) -> usize {
        node.index() * self.grid.size() + thread
    }

    /// Whether all active threads have its value.
    fn is_known(&self, node: NodeId) -> bool {
        self.active.iter().all(|&thread| self.values[self.slot(node, thread)].is_some())
    }

    /// Makes sure that `root` has its value. Only loops recurse, so a long expression does not.
    fn demand(&mut self, root: NodeId) -> Result<()> {
        let graph = self.graph;
        let mut stack = vec![root];
        while let Some(&node) = stack.last() {
            if self.is_known(node) {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let sources = graph.sources(node);
            match graph.op(node) {
                Op::Range => return Err(value_error("range", "is used outside its End or Reduce")),
                // Bodies run within their loops; only the first bound and loop-invariant values are needed before.
                Op::End | Op::Reduce if sources.len() > 1 => {
                    stack.push(graph.source(sources[1], 0));
                    stack.extend(self.invariant.get(&node).into_iter().flatten());
                }
                _ => stack.extend(sources.iter().rev()),
            }
            let from = stack.split_off(before);
            stack.extend(from.into_iter().filter(|&source| !self.is_known(source)));
            if stack.len() > before {
                continue;
            }
            self.evaluate(node).map_err(|error| graph.located(node, error))?;
            stack.pop();
        }
        Ok(())
    }

    /// Computes a value for every active thread that has none.
    fn evaluate(&mut self, node: NodeId) -> Result<()> {
        let (graph, sources) = (self.graph, self.graph.sources(node));
        let active = self.active.clone();
        match (graph.op(node), graph.arg(node)) {
            (Op::End, _) => {
                self.iterate(&sources[1..], &mut |run| run.demand(sources[0]))?;
                active.iter().for_each(|&thread| self.set(node, thread, Value::Done));
            }
            (Op::Reduce, Arg::Reduce { op, .. }) if sources.len() > 1 => {
                let dtype = graph.dtype(node);
                let mut totals = vec![Array::filled(&shape(graph, node)?, identity(*op, dtype))?; self.grid.size()];
                self.iterate(&sources[1..], &mut |run| {
                    run.demand(sources[0])?;
                    for &thread in run.active.clone().iter() {
                        run.thread = thread;
                        totals[thread] = apply(*op, &Arg::None, dtype, &[&totals[thread], &*run.array(sources[0])?])?;
                    }
                    Ok(())
                })?;
                for &thread in active.iter() {
                    self.set(node, thread, Value::Array(Rc::new(totals[thread].clone())));
                }
            }
            _ => {
                for &thread in active.iter() {
                    if self.values[self.slot(node, thread)].is_none() {
                        self.thread = thread;
                        let value = self.of_thread(node)?;
                        self.set(node, thread, value);
                    }
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, node: NodeId, thread: usize, value: Value) {
        let slot = self.slot(node, thread);
        self.values[slot] = Some(value);
    }

    /// Evaluates a node for the current thread.
    fn of_thread(&mut self, node: NodeId) -> Result<Value> {
        let (graph, sources) = (self.graph, self.graph.sources(node));
        match (graph.op(node), graph.arg(node)) {
            (Op::Param, Arg::Param { slot, dtype, addrspace: Some(AddrSpace::Global), .. }) => {
                match self.buffers.get(*slot as usize) {
                    Some(array) if array.dtype() == *dtype && array.lanes().len() == length(graph, node)? => {
                        Ok(Value::Buffer(node))
                    }
                    _ => Err(value_error("param", format!("the buffer of slot {slot} is missing or does not fit"))),
                }
            }
            (Op::Buffer, _) => {
                let contents = unwritten(graph, node)?;
                self.locals.entry((node, self.owner(node))).or_insert(contents);
                Ok(Value::Buffer(node))
            }
            (Op::After, _) => self.value(sources[0]),
            (Op::Load, _) => self.load(node),
            (Op::Store | Op::AtomicAdd, _) => self.store(node),
            (Op::Group | Op::Sink | Op::Barrier, _) => Ok(Value::Done),
            (Op::Special, _) => {
                let at = match SpecialIndex::of(graph, node) {
                    Some(SpecialIndex::Group(dimension)) => self.group[dimension],
                    Some(SpecialIndex::Thread(dimension)) => place(self.grid.threads, self.thread)[dimension],
                    None => return Err(refuse(graph, node, "is not an index of a workgroup or thread")),
                };
                Ok(Value::Array(Rc::new(Array::scalar(Const::int(graph.dtype(node), at as i128)))))
            }
            (Op::Ins, _) => self.instruction(node),
            (op, arg) => {
                if let Some(Value::Buffer(_) | Value::Address(..)) =
                    sources.first().and_then(|&source| self.values[self.slot(source, self.thread)].as_ref())
                {
                    return self.view(node);
                }
                let arrays = sources.iter().map(|&source| self.array(source)).collect::<Result<Vec<_>>>()?;
                let arrays: Vec<&Array> = arrays.iter().map(Rc::as_ref).collect();
                Ok(Value::Array(Rc::new(apply(op, arg, graph.dtype(node), &arrays)?)))
            }
        }
    }

    /// Runs `body` for each value of the Ranges, the first one outermost.
    fn iterate(&mut self, ranges: &[NodeId], body: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Some((&range, inner)) = ranges.split_first() else { return body(self) };
        if self.graph.op(range) != Op::Range {
            return Err(refuse(self.graph, range, "is not a Range to loop over"));
        }
        let bound = self.graph.source(range, 0);
        self.demand(bound)?;
        let active = self.active.clone();
        let mut bounds = Vec::new();
        for &thread in active.iter() {
            self.thread = thread;
            bounds.push(self.array(bound)?.lanes().first().map_or(0, |&lane| lane as i64));
        }
        for value in 0..bounds.iter().copied().max().unwrap_or(0) {
            self.forget(range);
            if bounds.iter().any(|&bound| bound <= value) {
                let within = active.iter().zip(&bounds).filter(|(_, bound)| value < **bound);
                self.active = within.map(|(&thread, _)| thread).collect();
            }
            let counter = Rc::new(Array::scalar(Const::int(DType::Index, value as i128)));
            for &thread in self.active.clone().iter() {
                self.set(range, thread, Value::Array(counter.clone()));
            }
            self.iterate(inner, body)?;
        }
        self.active = active;
        self.forget(range);
        Ok(())
    }

    /// Discards values when a Range advances.
    fn forget(&mut self, range: NodeId) {
        let threads = self.grid.size();
        for node in self.dependents.get(&range).into_iter().flatten().chain([&range]) {
            self.values[node.index() * threads..][..threads].fill(None);
        }
    }

    /// The thread that owns a buffer; shared buffers belong to the first thread.
    pub fn owner(&self, buffer: NodeId) -> usize {
        match self.graph.arg(buffer) {
            Arg::Buffer { addrspace: AddrSpace::Reg, .. } => self.thread,
            _ => 0,
        }
    }

    /// A single machine instruction (Ins), lane by lane.
    fn instruction(&self, node: NodeId) -> Result<Value> {
        let sources: Vec<Rc<Array>> =
            self.graph.sources(node).iter().map(|&source| self.array(source)).collect::<Result<_>>()?;
        let instruction = Instruction::of(self.graph, node).filter(|known| known.arity() == sources.len());
        let instruction = instruction.ok_or_else(|| refuse(self.graph, node, "is not an instruction that is known"))?;
        let shape = shape(self.graph, node)?;
        let sources = sources.iter().map(|source| source.expanded(Op::Ins, &shape)).collect::<Result<Vec<_>>>()?;
        let numbers: Vec<Vec<f64>> = sources.iter().map(Array::to_floats).collect();
        let lane = |lane: usize| {
            let values: Vec<f32> = numbers.iter().map(|numbers| numbers[lane] as f32).collect();
            f64::from(instruction.eval(&values).unwrap_or(f32::NAN))
        };
        let lanes: Vec<f64> = (0..element_count(&shape)?).map(lane).collect();
        Ok(Value::Array(Rc::new(Array::from_floats(self.graph.dtype(node), &shape, &lanes)?)))
    }

    pub fn value(&self, node: NodeId) -> Result<Value> {
        self.values[self.slot(node, self.thread)]
            .clone()
            .ok_or_else(|| refuse(self.graph, node, "is used before it has a value"))
    }

    pub fn array(&self, node: NodeId) -> Result<Rc<Array>> {
        match self.value(node)? {
            Value::Array(array) => Ok(array),
            _ => Err(refuse(self.graph, node, "is not a value")),
        }
    }
}
