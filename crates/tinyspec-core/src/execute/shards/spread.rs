//! From a graph over values on a tuple of devices to one lazy graph per device.

use super::moves::{on, placed};
use crate::lazy::callify::{Callified, Numbers};
use crate::lazy::{LazyBuilder, Node, Shards};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::function::inline_all;
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{Arg, ErrorKind, Graph, NodeId, Op, rules};

/// A value of the graph, as handles of the builder.
#[derive(Clone)]
pub(super) enum Value {
    /// A single node: one that derives from constants alone, so that any device can compute it, or one on a single device.
    One(NodeId),
    /// One part per device.
    Parts {
        /// The sharded axis; without one, each part is the whole value.
        axis: Option<usize>,
        /// In the order of the devices.
        parts: Vec<NodeId>,
    },
}

impl Value {
    pub fn axis(&self) -> Option<usize> {
        match self {
            Value::One(_) => None,
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
    numbers: Numbers,
}

/// The parts of each output of `program`, whose inputs are `leaves`. Its constants that are among `numbers` may change
/// from run to run.
pub(super) fn spread(
    program: &Callified,
    leaves: &[&Arc<Node>],
    numbers: Numbers,
    names: &[Arc<str>],
    location: Option<&'static Location<'static>>,
) -> Result<Vec<Shards>> {
    let (mut graph, outputs) = inline_all(program.graph.clone(), program.outputs.clone())?;
    let outputs = plain_stores(&mut graph, &outputs)?;
    let mut spread = Spread::new(&graph, names, numbers, location);
    spread.values_of(&outputs, |spread, slot| spread.leaf(leaves.get(slot as usize).copied()))?;
    outputs.iter().map(|output| spread.shards(*output)).collect()
}

/// `outputs` with stores of whole values only, since a part of a view is no view of a part.
pub(super) fn plain_stores(graph: &mut Graph, outputs: &[NodeId]) -> tinyspec_ir::Result<Vec<NodeId>> {
    Rewriter::new(&[&rules::GATES]).rewrite(graph, outputs)
}

impl<'a> Spread<'a> {
    pub fn new(
        graph: &'a Graph,
        names: &'a [Arc<str>],
        numbers: Numbers,
        location: Option<&'static Location<'static>>,
    ) -> Spread<'a> {
        Spread { graph, names, builder: LazyBuilder::merging(location), values: FxHashMap::default(), numbers }
    }

    /// Finds the value of everything that `outputs` need; `input` gives those of the Params, by slot.
    pub fn values_of(
        &mut self,
        outputs: &[NodeId],
        mut input: impl FnMut(&mut Self, u32) -> Result<Value>,
    ) -> Result<()> {
        let graph = self.graph;
        for node in graph.reachable_outside_bodies(outputs) {
            let value = match (graph.op(node), graph.arg(node)) {
                (Op::Param, Arg::Param { slot, .. }) => input(self, *slot)?,
                (Op::Const, Arg::Const(value)) if self.numbers.contains_key(value) => {
                    let number = Node::number(*value, self.numbers[value])?;
                    Value::One(self.builder.import(number))
                }
                (Op::Call, _) => {
                    self.kernel(graph.source(node, 0))?;
                    self.node(node)?
                }
                _ => self.node(node).map_err(|error| graph.located(node, error))?,
            };
            self.values.insert(node, value);
        }
        Ok(())
    }
}

impl Spread<'_> {
    /// The body of a Call, which is closed: every device runs the same one.
    fn kernel(&mut self, body: NodeId) -> Result<()> {
        for node in self.graph.reachable(&[body]) {
            let value = self.node(node)?;
            self.values.insert(node, value);
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: Option<&Arc<Node>>) -> Result<Value> {
        let missing = || Error::refused(ErrorKind::Value, "realize", "an input has no value");
        let leaf = leaf.ok_or_else(missing)?;
        if let Some(shards) = leaf.shards() {
            let parts = shards.parts.iter().map(|part| self.builder.import(part.clone())).collect();
            return Ok(Value::Parts { axis: shards.axis.map(|axis| axis as usize), parts });
        }
        // Computed from constants on the default device: each device gets a copy.
        let whole = self.builder.import(placed(leaf)?);
        let parts =
            self.names.iter().map(|name| on(&mut self.builder, whole, name)).collect::<tinyspec_ir::Result<_>>();
        Ok(Value::Parts { axis: None, parts: parts? })
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

    /// The part of a value that device `number` holds.
    pub fn whole(&mut self, value: &Value, number: usize) -> tinyspec_ir::Result<NodeId> {
        match value {
            Value::One(node) => on(&mut self.builder, *node, &self.names[number]),
            Value::Parts { parts, .. } => Ok(parts[number]),
        }
    }
}
