//! The forward pass that gradients are derived from, and those of its values that they may refer to.

use super::Call;
use crate::Result;
use crate::lazy::callify::Opened;
use crate::lazy::{LazyBuilder, Node, Walk, number_as_data};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, Const, ContentHash, ContentHasher, Device, NodeId, Op};

/// A forward pass whose gradients can be the results of a Function.
pub(super) struct Forward {
    /// Forward passes with equal keys have the same gradient graph. Their data, and the numbers that the program writes, may differ.
    pub key: ContentHash,
    source: Source,
}

enum Source {
    /// Lazy values, by position.
    Walk(Walk),
    /// The graph of lazy values and of the history of others; and the values that have a position, with their nodes.
    Opened(Box<Opened>, Vec<(NodeId, Value)>),
}

/// A value that the gradients may refer to.
#[derive(Clone)]
pub(super) enum Value {
    Node(Arc<Node>),
    /// A number of a past run, which changes from run to run.
    Number(Const),
}

impl Forward {
    /// The result of [`Walk::derivation`].
    pub fn of_walk(derivation: Walk) -> Forward {
        Forward { key: derivation.key, source: Source::Walk(derivation) }
    }

    /// The graph of a walk and of the histories that gradients follow. Returned as it is if its gradients cannot be a Function: on several
    /// devices, of sizes that are not known, or with calls that are compiled once for all sizes.
    pub fn of_opened(opened: Opened) -> Result<Forward, Box<Opened>> {
        let graph = &opened.graph;
        let rules_out = |node: NodeId| {
            graph.op(node) == Op::Load
                || matches!(graph.props(node).device, Some(Device::Many(_)))
                || !graph.props(node).shape.iter().all(|dim| dim.as_const().is_some())
        };
        if opened.has_ranged || graph.nodes().any(rules_out) {
            return Err(Box::new(opened));
        }
        let nodes = opened.origins.iter().filter(|(_, node)| is_argument(node));
        let mut values: Vec<(NodeId, Value)> = nodes.map(|(&node, value)| (node, Value::Node(value.clone()))).collect();
        values.extend(opened.numbers.iter().filter_map(|&number| match *graph.arg(number) {
            Arg::Const(value) => Some((number, Value::Number(value))),
            _ => None,
        }));
        values.sort_unstable_by_key(|&(node, _)| node);
        Ok(Forward { key: key(&opened, &values), source: Source::Opened(Box::new(opened), values) })
    }

    /// The graph, and the positions of values by their nodes. Called at most once.
    pub fn open(&mut self, call: &Call) -> Result<(Opened, FxHashMap<NodeId, u32>)> {
        match &mut self.source {
            Source::Walk(walk) => {
                let opened = call.open(walk)?;
                let mut positions: FxHashMap<NodeId, u32> = FxHashMap::default();
                for ((position, &node), value) in (0..).zip(&opened.entries).zip(walk.nodes()) {
                    if is_argument(value) {
                        positions.entry(node).or_insert(position);
                    }
                }
                Ok((opened, positions))
            }
            Source::Opened(opened, values) => {
                Ok((std::mem::take(opened), values.iter().map(|&(node, _)| node).zip(0..).collect()))
            }
        }
    }

    /// The value at a position as an operand.
    pub fn value(&self, position: u32, builder: &mut LazyBuilder, call: &Call) -> Result<NodeId> {
        let node = match &self.source {
            Source::Walk(walk) => walk.node(position).clone(),
            Source::Opened(_, values) => match &values[position as usize].1 {
                Value::Node(node) => node.clone(),
                Value::Number(number) => number_as_data(*number, &call.device()?, call.location)?,
            },
        };
        Ok(builder.import(node))
    }

    /// Records that a gradient has been taken through the values.
    pub fn become_differentiated(&self) {
        if let Source::Opened(_, values) = &self.source {
            for (_, value) in values {
                if let Value::Node(node) = value {
                    node.become_differentiated();
                }
            }
        }
    }
}

/// Whether a value of the forward pass may be an argument of the Function. Constants and shapes are part of the body.
fn is_argument(value: &Node) -> bool {
    let is_constant = value.op == Op::Const && value.literal().is_none();
    value.op != Op::Function && value.props.value.is_none() && !is_constant
}

/// The key of an opened forward pass: a hash of the graph and of what decides which values gradients refer to. Numbers among `values` count
/// only if the derivation depends on them.
fn key(opened: &Opened, values: &[(NodeId, Value)]) -> ContentHash {
    let Opened { graph, outputs, gone, .. } = opened;
    let mut numbers: FxHashSet<NodeId> = values.iter().map(|&(node, _)| node).collect();
    numbers.retain(|&node| graph.op(node) == Op::Const);
    let mut hasher = ContentHasher::default();
    for node in graph.nodes() {
        let (op, sources) = (graph.op(node), graph.sources(node));
        match numbers.contains(&node) {
            true => (op, graph.dtype(node)).hash(&mut hasher),
            false => (op, graph.arg(node), sources).hash(&mut hasher),
        }
        // Numbers that terms are compared with, and arguments of Functions, which may be used that way.
        let deciding = match op {
            Op::Where => sources.get(2..).unwrap_or_default(),
            Op::Function => sources,
            _ => &[],
        };
        for &source in deciding {
            let viewed = graph.viewed(source);
            if numbers.contains(&viewed) {
                graph.arg(viewed).hash(&mut hasher);
            }
        }
    }
    (outputs, gone).hash(&mut hasher);
    for (node, value) in values {
        let is_realized = matches!(value, Value::Node(value) if value.is_realized());
        (node, is_realized).hash(&mut hasher);
    }
    hasher.content_hash()
}
