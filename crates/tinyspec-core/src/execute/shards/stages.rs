//! Functions on tuples of devices, for prepared calls: the computation of each device between moves, and the moves.
//!
//! The function is [spread](super::spread) over placeholders for the parts of its arguments. In the graph of all devices that this
//! gives, a node's *level* is the number of moves before it. The nodes of a level on one device are one graph: its inputs are parts
//! of arguments, values that have moved there, and values of earlier levels.

use super::moves::on;
use super::spread::{Spread, Value, plain_stores};
use crate::compile::own;
use crate::device::default_device;
use crate::lazy::Walk;
use crate::lazy::callify::{Numbers, param};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{AddrSpace, Arg, Builder, Category, DType, Device, ErrorKind, Graph, NodeId, Op, Shape};

/// An argument, whose parts are values of [`Stages`].
#[derive(Clone, PartialEq)]
pub(crate) struct Input {
    pub dtype: DType,
    pub shape: Shape,
    /// As the caller has it; `None` for what is computed from constants.
    pub device: Option<Device>,
    /// The axis along which it is cut.
    pub axis: Option<u32>,
    /// The shape of each part, or of the whole.
    pub parts: Vec<Shape>,
}

/// A result: its parts, or the whole.
pub(crate) struct Output {
    pub dtype: DType,
    pub shape: Shape,
    pub device: Device,
    pub axis: Option<u32>,
    /// Numbers of the values.
    pub parts: Vec<u32>,
}

/// A value on one device moves to another.
pub(crate) struct Move {
    pub from: u32,
    pub to: u32,
    pub device: Arc<str>,
    pub dtype: DType,
    pub shape: Shape,
}

/// The computation of one device.
pub(crate) struct Run {
    pub device: Arc<str>,
    /// Over Params, a slot for each of `inputs`.
    pub graph: Graph,
    pub results: Vec<NodeId>,
    /// The numbers of the values that it reads; `outputs` has those of its results.
    pub inputs: Vec<u32>,
    pub outputs: Vec<u32>,
}

/// The moves that end a level, and then the independent computations of the devices.
#[derive(Default)]
pub(crate) struct Stage {
    pub moves: Vec<Move>,
    pub runs: Vec<Run>,
}

/// A function on a tuple of devices.
pub(crate) struct Stages {
    pub stages: Vec<Stage>,
    pub outputs: Vec<Output>,
    /// The number of values. Those of the arguments come first, in order.
    pub values: usize,
}

/// The stages of a function: of `results` in `graph`, whose Params are the `inputs`, by slot. Inputs that are not on the tuple `names`
/// themselves, but whose Params are, are copied to each of its devices.
///
/// # Errors
/// Where an op cannot be spread over the devices.
pub(crate) fn stages(
    graph: &Graph,
    results: &[NodeId],
    inputs: &[Input],
    names: &[Arc<str>],
    location: &'static Location<'static>,
) -> Result<Stages> {
    let mut graph = graph.clone();
    let results = &plain_stores(&mut graph, results)?[..];
    let graph = &graph;
    let mut spread = Spread::new(graph, names, Numbers::default(), Some(location));
    let default: Arc<str> = default_device()?.name().into();
    let mut values = 0;
    let mut known = Vec::with_capacity(inputs.len());
    for input in inputs {
        let devices: Vec<Arc<str>> = match &input.device {
            Some(Device::Many(names)) => names.to_vec(),
            Some(Device::Single(name)) => vec![name.clone()],
            None => vec![default.clone()],
        };
        let mut parts = Vec::with_capacity(devices.len());
        for (device, shape) in devices.into_iter().zip(&input.parts) {
            let device = Some(Device::Single(device));
            let arg = Arg::Param { slot: values, dtype: input.dtype, device, addrspace: Some(AddrSpace::Global) };
            let shape = spread.builder.shape(shape)?;
            parts.push(spread.builder.add(Op::Param, &[shape], arg)?);
            values += 1;
        }
        known.push(match input.device {
            Some(Device::Many(_)) => Value::Parts { axis: input.axis.map(|axis| axis as usize), parts },
            _ => Value::One(parts[0]),
        });
    }
    let missing = |slot: u32| Error::refused(ErrorKind::Arity, "prepare", format!("argument {slot} is missing"));
    spread.values_of(results, |spread, slot| {
        let value = known.get(slot as usize).cloned().ok_or_else(|| missing(slot))?;
        match (&inputs[slot as usize].device, value) {
            (Some(Device::Single(_)) | None, Value::One(node)) if is_on_tuple(graph, results, slot) => {
                let parts = names.iter().map(|name| on(&mut spread.builder, node, name));
                Ok(Value::Parts { axis: None, parts: parts.collect::<tinyspec_ir::Result<_>>()? })
            }
            (_, value) => Ok(value),
        }
    })?;
    let (mut outputs, mut roots) = (Vec::with_capacity(results.len()), Vec::new());
    for &result in results {
        let props = graph.props(result);
        let (device, parts) = match &spread.values[&result] {
            Value::Parts { parts, .. } => (Device::Many(names.into()), parts.clone()),
            &Value::One(node) => match &props.device {
                Some(many @ Device::Many(_)) => {
                    let parts = names.iter().map(|name| on(&mut spread.builder, node, name));
                    (many.clone(), parts.collect::<tinyspec_ir::Result<_>>()?)
                }
                Some(single) => (single.clone(), vec![node]),
                None => (Device::Single(default.clone()), vec![on(&mut spread.builder, node, &default)?]),
            },
        };
        let axis = spread.values[&result].axis().map(|axis| axis as u32);
        roots.extend(parts.iter().map(|&part| spread.builder.node(part)));
        let parts = vec![0; parts.len()];
        outputs.push(Output { dtype: props.dtype, shape: props.shape.clone(), device, axis, parts });
    }
    let program = Walk::of(&roots).build()?;
    let mut graph = program.graph;
    let roots = own(&mut graph, program.outputs)?;
    let levels = Levels::of(&graph, &roots);
    let (stages, number) = levels.stages(&graph, values)?;
    let mut numbers = roots.iter().map(|root| number[root]);
    for part in outputs.iter_mut().flat_map(|output| &mut output.parts) {
        *part = numbers.next().unwrap_or_default();
    }
    Ok(Stages { stages, outputs, values: values as usize + number.len() })
}

/// Whether the Param of a slot is on a tuple of devices.
fn is_on_tuple(graph: &Graph, results: &[NodeId], slot: u32) -> bool {
    graph.reachable_outside_bodies(results).into_iter().any(|node| match graph.arg(node) {
        Arg::Param { slot: other, device: Some(Device::Many(_)), .. } => *other == slot,
        _ => false,
    })
}

/// The levels of a graph of several devices, and the nodes whose values are kept.
struct Levels {
    level: FxHashMap<NodeId, usize>,
    /// In order: results, sources of moves, and what a later level reads.
    kept: Vec<NodeId>,
}

/// The device to which a node moves its source from another one.
fn moves_to(graph: &Graph, node: NodeId) -> Option<&Arc<str>> {
    let Arg::Load { device: Some(to @ Device::Single(name)), .. } = graph.arg(node) else { return None };
    let from = graph.props(graph.source(node, 0)).device.as_ref()?;
    (from != to).then_some(name)
}

impl Levels {
    fn of(graph: &Graph, roots: &[NodeId]) -> Levels {
        let order = graph.reachable_outside_bodies(roots);
        let mut level: FxHashMap<NodeId, usize> = FxHashMap::default();
        let data = |node: NodeId| graph.sources(node).iter().filter(|source| graph.props(**source).device.is_some());
        for &node in &order {
            let sources = data(node).filter_map(|source| level.get(source)).max().copied().unwrap_or(0);
            level.insert(node, sources + usize::from(moves_to(graph, node).is_some()));
        }
        let mut kept = roots.to_vec();
        let mut open: Vec<NodeId> = Vec::new();
        for &node in &order {
            let sources = data(node).copied();
            match moves_to(graph, node) {
                Some(_) => kept.extend(sources),
                None => open.extend(sources.filter(|source| level[source] < level[&node])),
            }
        }
        // A later level makes views anew.
        while let Some(node) = open.pop() {
            let is_view = graph.op(node).category() == Category::Movement || graph.dtype(node) == DType::Void;
            match is_view && moves_to(graph, node).is_none() {
                true => open.extend(data(node)),
                false => kept.push(node),
            }
        }
        kept.retain(|&node| graph.op(node) != Op::Param);
        kept.sort_unstable();
        kept.dedup();
        Levels { level, kept }
    }

    /// The stage of each level; and the numbers of the values that are made, which follow those of the `inputs`.
    fn stages(&self, graph: &Graph, inputs: u32) -> Result<(Vec<Stage>, FxHashMap<NodeId, u32>)> {
        let moved = self.level.keys().copied().filter(|&node| moves_to(graph, node).is_some());
        let mut made: Vec<NodeId> = self.kept.iter().copied().chain(moved).collect();
        made.sort_unstable();
        made.dedup();
        let number: FxHashMap<NodeId, u32> = made.iter().copied().zip(inputs..).collect();
        let value = |node: NodeId| match *graph.arg(node) {
            Arg::Param { slot, .. } => Some(slot),
            _ => number.get(&node).copied(),
        };
        let last = made.iter().map(|node| self.level[node]).max().unwrap_or(0);
        let mut stages: Vec<Stage> = (0..=last).map(|_| Stage::default()).collect();
        for (level, stage) in stages.iter_mut().enumerate() {
            let mut devices: Vec<(Arc<str>, Vec<NodeId>)> = Vec::new();
            for &node in made.iter().filter(|node| self.level[node] == level) {
                let props = graph.props(node);
                if let Some(device) = moves_to(graph, node) {
                    let from = graph.source(node, 0);
                    let from = value(from).ok_or_else(|| missing("a value that moves"))?;
                    let (device, dtype, shape) = (device.clone(), props.dtype, props.shape.clone());
                    stage.moves.push(Move { from, to: number[&node], device, dtype, shape });
                    continue;
                }
                let Some(Device::Single(device)) = &props.device else { return Err(missing("a device")) };
                match devices.iter_mut().find(|(name, _)| name == device) {
                    Some((_, nodes)) => nodes.push(node),
                    None => devices.push((device.clone(), vec![node])),
                }
            }
            for (device, nodes) in devices {
                let is_input = |node: NodeId| nodes.binary_search(&node).is_err() && value(node).is_some();
                let order = graph.reachable_until(&nodes, is_input);
                let calls = order.iter().filter(|&&node| graph.op(node) == Op::Call);
                let bodies: Vec<NodeId> = calls.map(|&call| graph.source(call, 0)).collect();
                let mut all = [order, graph.reachable(&bodies)].concat();
                all.sort_unstable();
                all.dedup();
                let (mut own, mut inputs) = (Graph::new(), Vec::new());
                let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
                for node in all {
                    let made = match value(node).filter(|_| is_input(node) && graph.props(node).device.is_some()) {
                        Some(value) => {
                            inputs.push(value);
                            param(&mut own, graph.props(node), inputs.len() as u32 - 1)?
                        }
                        None => {
                            let sources: Vec<NodeId> = graph.sources(node).iter().map(|source| new[source]).collect();
                            own.add(graph.op(node), &sources, graph.arg(node).clone())?
                        }
                    };
                    for line in graph.locations(node) {
                        own.locate(made, line.clone());
                    }
                    new.insert(node, made);
                }
                let (results, outputs) = nodes.iter().map(|node| (new[node], number[node])).unzip();
                stage.runs.push(Run { device, graph: own, results, inputs, outputs });
            }
        }
        Ok((stages, number))
    }
}

fn missing(what: &str) -> Error {
    Error::refused(ErrorKind::Value, "prepare", format!("{what} is missing"))
}
