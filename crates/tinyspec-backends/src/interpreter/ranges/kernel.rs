//! One kernel: values on demand, kept until a Range they depend on moves on.

use super::{length, refuse, shape, unwritten};
use crate::interpreter::array::{Array, apply, value_error};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tinyspec_ir::eval::identity;
use tinyspec_ir::{AddrSpace, Arg, Const, DType, Graph, NodeId, Op, Result};

/// Runs a kernel (its Sink) on the buffers of its Params; the slots that it wrote.
///
/// # Errors
/// When an access leaves its buffer, a Range is used outside its End or Reduce, a buffer is missing or does not fit,
/// or the kernel is not in range form or tiles.
pub fn run_kernel(graph: &Graph, kernel: NodeId, buffers: &mut [Array]) -> Result<Vec<usize>> {
    let mut run = Run::new(graph, kernel, buffers)?;
    run.demand(kernel)?;
    let mut written: Vec<usize> = run.written.into_iter().collect();
    written.sort_unstable();
    Ok(written)
}

#[derive(Clone)]
pub(super) enum Value {
    Array(Rc<Array>),
    /// A whole Param or Buffer.
    Buffer(NodeId),
    /// Elements of one: their positions, counted from 1; 0 is outside.
    Address(NodeId, Rc<Array>),
    /// An effect that has happened.
    Done,
}

pub(super) struct Run<'a> {
    pub graph: &'a Graph,
    /// Of the Params, by slot.
    pub buffers: &'a mut [Array],
    /// LOCAL and REG buffers.
    pub locals: FxHashMap<NodeId, Array>,
    pub written: rustc_hash::FxHashSet<usize>,
    values: Vec<Option<Value>>,
    /// What becomes stale when a Range moves on.
    dependents: FxHashMap<NodeId, Vec<NodeId>>,
}

impl<'a> Run<'a> {
    fn new(graph: &'a Graph, kernel: NodeId, buffers: &'a mut [Array]) -> Result<Run<'a>> {
        let nodes = graph.reachable(&[kernel]);
        let ranges: Vec<NodeId> = nodes.iter().copied().filter(|&node| graph.op(node) == Op::Range).collect();
        if ranges.len() > 128 {
            return Err(refuse(graph, kernel, "has more than 128 Ranges"));
        }
        let bit = |range: NodeId| ranges.binary_search(&range).map_or(0, |position| 1u128 << position);
        let mut masks = vec![0u128; graph.len()];
        let mut dependents: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for node in nodes {
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
        let values = vec![None; graph.len()];
        Ok(Run { graph, buffers, locals: FxHashMap::default(), written: Default::default(), values, dependents })
    }

    /// Makes sure that `root` has its value. Only loops recurse, so a long expression does not.
    fn demand(&mut self, root: NodeId) -> Result<()> {
        let graph = self.graph;
        let mut stack = vec![root];
        while let Some(&node) = stack.last() {
            if self.values[node.index()].is_some() {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let sources = graph.sources(node);
            match graph.op(node) {
                Op::Range => return Err(value_error("range", "is used outside its End or Reduce")),
                // Bodies run in their loops; only the first bound is needed before.
                Op::End => stack.push(graph.source(sources[1], 0)),
                Op::Reduce if sources.len() > 1 => stack.push(graph.source(sources[1], 0)),
                _ => stack.extend(sources.iter().rev()),
            }
            let from = stack.split_off(before);
            stack.extend(from.into_iter().filter(|source| self.values[source.index()].is_none()));
            if stack.len() > before {
                continue;
            }
            let value = self.evaluate(node).map_err(|error| match graph.locations(node).first() {
                Some(location) => error.at(location.clone()),
                None => error,
            })?;
            self.values[node.index()] = Some(value);
            stack.pop();
        }
        Ok(())
    }

    fn evaluate(&mut self, node: NodeId) -> Result<Value> {
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
                self.locals.entry(node).or_insert(contents);
                Ok(Value::Buffer(node))
            }
            (Op::After, _) => self.value(sources[0]),
            (Op::End, _) => {
                self.iterate(&sources[1..], &mut |run| run.demand(sources[0]))?;
                Ok(Value::Done)
            }
            (Op::Reduce, Arg::Reduce { op, .. }) if sources.len() > 1 => {
                let dtype = graph.dtype(node);
                let mut total = Array::filled(&shape(graph, node)?, identity(*op, dtype))?;
                self.iterate(&sources[1..], &mut |run| {
                    run.demand(sources[0])?;
                    total = apply(*op, &Arg::None, dtype, &[&total, &*run.array(sources[0])?])?;
                    Ok(())
                })?;
                Ok(Value::Array(Rc::new(total)))
            }
            (Op::Load, _) => self.load(node),
            (Op::Store | Op::AtomicAdd, _) => self.store(node),
            (Op::Group | Op::Sink | Op::Barrier, _) => Ok(Value::Done),
            (op, arg) => {
                if let Some(Value::Buffer(_) | Value::Address(..)) =
                    sources.first().and_then(|source| self.values[source.index()].as_ref())
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
            return Err(refuse(self.graph, range, "is no Range to loop over"));
        }
        let bound = self.graph.source(range, 0);
        self.demand(bound)?;
        let bound = self.array(bound)?.lanes().first().map_or(0, |&lane| lane as i64);
        for value in 0..bound {
            self.forget(range);
            let counter = Array::scalar(Const::int(DType::Index, value as i128));
            self.values[range.index()] = Some(Value::Array(Rc::new(counter)));
            self.iterate(inner, body)?;
        }
        self.forget(range);
        self.values[range.index()] = None;
        Ok(())
    }

    fn forget(&mut self, range: NodeId) {
        for node in self.dependents.get(&range).into_iter().flatten() {
            self.values[node.index()] = None;
        }
    }

    pub fn value(&self, node: NodeId) -> Result<Value> {
        self.values[node.index()].clone().ok_or_else(|| refuse(self.graph, node, "is used before it has a value"))
    }

    pub fn array(&self, node: NodeId) -> Result<Rc<Array>> {
        match self.value(node)? {
            Value::Array(array) => Ok(array),
            _ => Err(refuse(self.graph, node, "is no value")),
        }
    }
}
