//! Loads, stores and views of buffers.

use super::kernel::{Run, Value};
use super::{refuse, shape};
use crate::interpreter::array::{Array, apply, element_count, index_positions, value_error};
use std::rc::Rc;
use tinyspec_ir::{Arg, DType, NodeId, Op, Result};

impl Run<'_> {
    /// A movement op on a buffer, or on elements of one: the same op on their positions.
    pub(super) fn view(&mut self, node: NodeId) -> Result<Value> {
        let (graph, sources) = (self.graph, self.graph.sources(node));
        let others = sources[1..].iter().map(|&source| self.array(source)).collect::<Result<Vec<_>>>()?;
        let others: Vec<&Array> = others.iter().map(Rc::as_ref).collect();
        let from = self.value(sources[0])?;
        if let (Value::Buffer(buffer), Op::Index) = (&from, graph.op(node)) {
            // A shortcut that does not compute the positions of the whole buffer.
            let (shape, positions) = index_positions(&shape(graph, *buffer)?, &others)?;
            let lanes = positions.iter().map(|position| position.map_or(0, |position| position as u64 + 1)).collect();
            return Ok(Value::Address(*buffer, Rc::new(Array::new(DType::U64, &shape, lanes)?)));
        }
        if let (Value::Buffer(buffer), Op::Shrink, [offset, size]) = (&from, graph.op(node), &others[..])
            && let [length] = shape(graph, *buffer)?[..]
        {
            // A run may extend beyond the buffer if a gate closes those lanes.
            let start = offset.lanes().first().map_or(0, |&lane| lane as i64);
            let place = |lane: usize| match usize::try_from(start.saturating_add(lane as i64)) {
                Ok(position) if position < length => position as u64 + 1,
                _ => 0,
            };
            let shape = size.sizes(Op::Shrink)?;
            let lanes = (0..element_count(&shape)?).map(place).collect();
            return Ok(Value::Address(*buffer, Rc::new(Array::new(DType::U64, &shape, lanes)?)));
        }
        if graph.op(node) == Op::Bitcast {
            return Err(refuse(graph, node, "cannot view a buffer"));
        }
        let (buffer, positions) = self.positions(sources[0])?;
        let sources: Vec<&Array> = std::iter::once(positions.as_ref()).chain(others).collect();
        let positions = apply(graph.op(node), graph.arg(node), DType::U64, &sources)?;
        Ok(Value::Address(buffer, Rc::new(positions)))
    }

    fn positions(&self, node: NodeId) -> Result<(NodeId, Rc<Array>)> {
        match self.value(node)? {
            Value::Address(buffer, positions) => Ok((buffer, positions)),
            Value::Buffer(buffer) => {
                let shape = shape(self.graph, buffer)?;
                let lanes = (1..=element_count(&shape)? as u64).collect();
                Ok((buffer, Rc::new(Array::new(DType::U64, &shape, lanes)?)))
            }
            _ => Err(refuse(self.graph, node, "is not an address")),
        }
    }

    fn contents(&mut self, buffer: NodeId) -> Result<&mut Array> {
        let contents = match self.graph.arg(buffer) {
            Arg::Param { slot, .. } => self.buffers.get_mut(*slot as usize),
            _ => self.locals.get_mut(&(buffer, self.owner(buffer))),
        };
        contents.ok_or_else(|| refuse(self.graph, buffer, "has no memory"))
    }

    /// A source broadcast to the lanes of an access.
    fn broadcast(&self, node: NodeId, index: usize, shape: &[usize]) -> Result<Option<Array>> {
        let source = self.graph.sources(node).get(index);
        source.map(|&source| spread(self.graph.op(node), &*self.array(source)?, shape)).transpose()
    }

    pub(super) fn load(&mut self, node: NodeId) -> Result<Value> {
        let from = self.graph.source(node, 0);
        if let Value::Array(value) = self.value(from)? {
            return Ok(Value::Array(value));
        }
        let (buffer, positions) = self.positions(from)?;
        let alternative = self.broadcast(node, 1, positions.shape())?;
        let gate = self.broadcast(node, 2, positions.shape())?;
        let mut lanes = Vec::with_capacity(positions.lanes().len());
        let contents = self.contents(buffer)?;
        for (lane, &position) in positions.lanes().iter().enumerate() {
            lanes.push(if is_open(gate.as_ref(), lane) {
                let element = (position as usize).checked_sub(1).and_then(|position| contents.lanes().get(position));
                *element.ok_or_else(|| outside("load", contents))?
            } else {
                alternative.as_ref().map_or(0, |alternative| alternative.lanes()[lane])
            });
        }
        let dtype = contents.dtype();
        Ok(Value::Array(Rc::new(Array::new(dtype, positions.shape(), lanes)?)))
    }

    /// Executes a Store or an AtomicAdd.
    pub(super) fn store(&mut self, node: NodeId) -> Result<Value> {
        let graph = self.graph;
        let (buffer, positions) = self.positions(graph.source(node, 0))?;
        let value = spread(Op::Store, &*self.array(graph.source(node, 1))?, positions.shape())?;
        let gate = self.broadcast(node, 2, positions.shape())?;
        let is_add = graph.op(node) == Op::AtomicAdd;
        let contents = self.contents(buffer)?;
        let dtype = contents.dtype();
        for (lane, &position) in positions.lanes().iter().enumerate().filter(|(lane, _)| is_open(gate.as_ref(), *lane))
        {
            let element = (position as usize).checked_sub(1).filter(|&element| element < contents.lanes().len());
            let element = element.ok_or_else(|| outside("store", contents))?;
            let mut result = value.lanes()[lane];
            if is_add {
                let operands: [&[u64]; 2] = [&[contents.lanes()[element]], &[result]];
                let mut sum = [0];
                tinyspec_ir::eval::eval_lanes(Op::Add, dtype, dtype, &operands, &mut sum)?;
                result = sum[0];
            }
            contents.scatter([(element, result)]);
        }
        if let Arg::Param { slot, .. } = graph.arg(buffer) {
            self.written.insert(*slot as usize);
        }
        Ok(Value::Done)
    }
}

/// An array in the shape of an access. A tile of one element may become a scalar.
fn spread(op: Op, source: &Array, shape: &[usize]) -> Result<Array> {
    let lead = source.shape().len().saturating_sub(shape.len());
    match source.shape()[..lead].iter().all(|&dim| dim == 1) {
        true if lead > 0 => source.reshaped(&source.shape()[lead..])?.expanded(op, shape),
        _ => source.expanded(op, shape),
    }
}

fn is_open(gate: Option<&Array>, lane: usize) -> bool {
    gate.is_none_or(|gate| gate.lanes()[lane] != 0)
}

fn outside(verb: &str, contents: &Array) -> tinyspec_ir::Error {
    let message = format!("leaves a buffer of {} {} without a gate", contents.lanes().len(), contents.dtype());
    value_error(verb, message)
}
