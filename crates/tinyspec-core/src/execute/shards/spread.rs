//! From a graph over values on a tuple of devices to a lazy graph a device.

use super::Shards;
use super::moves::on;
use super::rules::slice;
use crate::lower::callify::Callified;
use crate::tensor::{LazyBuilder, Node};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::function::inline_all;
use tinyspec_ir::{Arg, Builder, ErrorKind, Graph, NodeId, Op, Shape};

/// A value of the graph, as handles of the builder.
#[derive(Clone)]
pub(super) enum Value {
    /// Made of constants alone: any device can make it.
    Anywhere(NodeId),
    /// One a device.
    Parts {
        /// The axis that is cut; without one each part is the whole.
        axis: Option<usize>,
        /// In the order of the devices.
        parts: Vec<NodeId>,
    },
}

impl Value {
    pub fn axis(&self) -> Option<usize> {
        match self {
            Value::Anywhere(_) => None,
            Value::Parts { axis, .. } => *axis,
        }
    }
}

/// One pass over the graph.
pub(super) struct Spread<'a> {
    pub graph: &'a Graph,
    pub names: &'a [Arc<str>],
    pub builder: LazyBuilder,
    pub values: FxHashMap<NodeId, Value>,
}

/// The parts of each output of `program`, whose inputs are `leaves`.
pub(super) fn spread(
    program: &Callified,
    leaves: &[&Arc<Node>],
    names: &[Arc<str>],
    location: Option<&'static Location<'static>>,
) -> Result<Vec<Shards>> {
    let (graph, outputs) = inline_all(program.graph.clone(), program.outputs.clone())?;
    let (builder, values) = (LazyBuilder::at(location), FxHashMap::default());
    let mut spread = Spread { graph: &graph, names, builder, values };
    for node in graph.reachable_outside_bodies(&outputs) {
        let value = match (graph.op(node), graph.arg(node)) {
            (Op::Param, Arg::Param { slot, .. }) => spread.leaf(leaves.get(*slot as usize).copied())?,
            _ => spread.node(node).map_err(|error| match graph.locations(node).first() {
                Some(location) => error.at(location.clone()),
                None => error,
            })?,
        };
        spread.values.insert(node, value);
    }
    outputs.iter().map(|output| spread.shards(*output)).collect()
}

impl Spread<'_> {
    fn leaf(&mut self, leaf: Option<&Arc<Node>>) -> Result<Value> {
        let Some(shards) = leaf.and_then(|leaf| leaf.shards()) else {
            return Err(Error::refused(ErrorKind::Device, "realize", "an input is not on the tuple of devices"));
        };
        let parts = shards.parts.iter().map(|part| self.builder.import(part.clone())).collect();
        Ok(Value::Parts { axis: shards.axis.map(|axis| axis as usize), parts })
    }

    fn shards(&mut self, output: NodeId) -> Result<Shards> {
        let value = self.values[&output].clone();
        let parts = (0..self.names.len())
            .map(|number| {
                let part = self.whole(&value, number)?;
                Ok(self.builder.node(part))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Shards { axis: value.axis().map(|axis| axis as u32), parts: parts.into() })
    }

    /// What device `number` holds of a value.
    pub fn whole(&mut self, value: &Value, number: usize) -> tinyspec_ir::Result<NodeId> {
        match value {
            Value::Anywhere(node) => on(&mut self.builder, *node, &self.names[number]),
            Value::Parts { parts, .. } => Ok(parts[number]),
        }
    }

    /// What device `number` needs of a value where its users are cut along `axis` of it. The value is cut there, or whole.
    pub fn local(&mut self, value: &Value, number: usize, axis: Option<usize>) -> tinyspec_ir::Result<NodeId> {
        let node = match value {
            Value::Anywhere(node) => *node,
            Value::Parts { parts, axis: Some(_) } => return Ok(parts[number]),
            Value::Parts { parts, axis: None } => parts[number],
        };
        match axis {
            Some(axis) if !self.builder.props(node).shape[axis].is(1) => {
                slice(&mut self.builder, node, axis, number, self.names.len())
            }
            _ => Ok(node),
        }
    }

    /// The value cut along another axis: every device sends every other one its part.
    pub fn cut_along(&mut self, value: &Value, to: usize) -> tinyspec_ir::Result<Value> {
        let Value::Parts { parts, axis: Some(from) } = value else { return Ok(value.clone()) };
        if *from == to {
            return Ok(value.clone());
        }
        let count = self.names.len();
        let names = self.names;
        let parts = (names.iter().enumerate())
            .map(|(number, name)| {
                let pieces = (parts.iter())
                    .map(|&part| {
                        let piece = slice(&mut self.builder, part, to, number, count)?;
                        on(&mut self.builder, piece, name)
                    })
                    .collect::<tinyspec_ir::Result<Vec<_>>>()?;
                tinyspec_ir::ops::movement::cat(&mut self.builder, &pieces, *from as i64)
            })
            .collect::<tinyspec_ir::Result<_>>()?;
        Ok(Value::Parts { axis: Some(to), parts })
    }

    /// The shape of a part of a value of `shape` that is cut along `axis`.
    pub fn part_shape(&self, op: Op, shape: &Shape, axis: Option<usize>) -> tinyspec_ir::Result<Shape> {
        let mut shape = shape.clone();
        if let Some(axis) = axis {
            shape[axis] = super::rules::even(op.name(), &shape, axis, self.names.len())?.into();
        }
        Ok(shape)
    }
}
