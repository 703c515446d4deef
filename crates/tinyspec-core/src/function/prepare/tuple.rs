//! Prepared calls on tuples of devices: prepared calls of single devices, and moves of values between them.

use super::State;
use super::single::{Single, Sizing};
use crate::device::{Device, Owner, Storage, default_device, device};
use crate::execute::{Input, Output, Run, Stage, stages, together};
use crate::function::Function;
use crate::lazy::{Node, Shards, part};
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_ir::Device as DeviceId;
use tinyspec_ir::function::inline_all;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, Dim, ErrorKind, Graph, Op, Shape, dim};

/// A function planned on a tuple of devices.
pub(super) struct OnTuple {
    inputs: Vec<Input>,
    /// The number of the first value of each input; the others follow.
    first: Vec<usize>,
    outputs: Vec<Output>,
    stages: Vec<PlannedStage>,
    states: Vec<State>,
    /// Where arguments without a device are.
    default: Arc<Device>,
    /// The memory of values from call to call, by number; results are with the caller.
    values: Mutex<Vec<Option<Tensor>>>,
}

struct PlannedStage {
    moves: Vec<(crate::execute::Move, Arc<Device>)>,
    runs: Vec<PlannedRun>,
}

struct PlannedRun {
    call: Single,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
}

impl OnTuple {
    pub fn new(
        function: &Function,
        arguments: &[&Tensor],
        names: &Arc<[Arc<str>]>,
        location: &'static Location<'static>,
    ) -> Result<OnTuple> {
        let located = |error: Error| match error {
            Error::Graph(error) => Error::Graph(error.at(location)),
            other => other,
        };
        let bound = function.bind(arguments).map_err(located)?;
        let inputs = arguments.iter().map(|argument| input(argument)).collect::<Result<Vec<_>>>()?;
        let mut graph = Graph::new();
        let mut nodes = Vec::with_capacity(inputs.len() + bound.len());
        for (slot, input) in (0..).zip(&inputs) {
            let shape = graph.shape(&input.shape)?;
            let device = match &input.device {
                Some(single @ DeviceId::Single(_)) if !input.shape.is_empty() => single.clone(),
                Some(many @ DeviceId::Many(_)) => many.clone(),
                // Every device gets a copy.
                _ => DeviceId::Many(names.clone()),
            };
            let arg = Arg::Param { slot, dtype: input.dtype, device: Some(device), addrspace: Some(AddrSpace::Global) };
            nodes.push(graph.add(Op::Param, &[shape], arg).map_err(|error| error.at(location))?);
        }
        for dim in &bound {
            nodes.push(graph.dim(dim)?);
        }
        let results = function.body.inline(&mut graph, &nodes).map_err(|error| error.at(location))?;
        let (graph, results) = inline_all(graph, results).map_err(|error| error.at(location))?;
        let found = stages(&graph, &results, &inputs, names, location).map_err(located)?;
        let mut count = 0;
        let first = (inputs.iter())
            .map(|input| {
                count += input.parts.len();
                count - input.parts.len()
            })
            .collect();
        Ok(OnTuple {
            inputs,
            first,
            outputs: found.outputs,
            stages: found.stages.into_iter().map(planned).collect::<Result<_>>()?,
            states: Vec::new(),
            default: default_device()?,
            values: Mutex::new(vec![None; found.values]),
        })
    }

    pub fn in_place(mut self, states: &[State], location: &'static Location<'static>) -> Result<OnTuple> {
        let results: Vec<Input> = self.outputs.iter().map(like).collect();
        let inputs: Vec<Input> = self.inputs.iter().map(|input| Input { parts: vec![], ..input.clone() }).collect();
        State::check(states, &results, &inputs, show).map_err(|error| error.at(location))?;
        self.states = states.to_vec();
        Ok(self)
    }

    pub fn outputs(&self) -> Result<Vec<Tensor>> {
        let whole = |output: &Output| -> Result<Tensor> {
            let parts = self.stages.iter().flat_map(|stage| &stage.runs);
            let part = |value: &u32| -> Result<Tensor> {
                for run in parts.clone() {
                    if let Some(position) = run.outputs.iter().position(|other| other == value) {
                        return run.call.output_of(position);
                    }
                }
                let moves = self.stages.iter().flat_map(|stage| &stage.moves);
                match moves.into_iter().find(|(moved, _)| moved.to == *value) {
                    Some((moved, device)) => empty(device, moved),
                    None => Err(missing()),
                }
            };
            let parts = output.parts.iter().map(part).collect::<Result<Vec<_>>>()?;
            joined(output, parts)
        };
        self.outputs.iter().map(whole).collect()
    }

    pub fn call(&self, out: &mut [Tensor], arguments: &[&Tensor], location: &'static Location<'static>) -> Result<()> {
        let planned = (self.inputs.len(), self.outputs.len());
        State::check_counts(&self.states, planned, (arguments.len(), out.len())).map_err(|error| error.at(location))?;
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = State::with(&self.states, out, arguments);
        let mut parts = Vec::with_capacity(passed.len());
        for (position, (argument, input)) in passed.iter().zip(&self.inputs).enumerate() {
            parts.push(self.parts_of(position, argument, input).map_err(|error| error.at(location))?);
        }
        drop(passed);
        for (&first, parts) in self.first.iter().zip(parts) {
            for (value, part) in (first..).zip(parts) {
                values[value] = Some(part);
            }
        }
        // Memory of results that only the caller has is written again.
        for (number, (out, output)) in out.iter_mut().zip(&self.outputs).enumerate() {
            let is_state = self.states.iter().any(|state| state.result == number);
            let old = std::mem::replace(out, Tensor::failed(missing()));
            if is_state || old.device() != Some(&output.device) {
                continue;
            }
            let Ok(node) = old.node() else { continue };
            let parts = match node.shards() {
                Some(shards) => shards.parts.iter().cloned().map(Tensor::of_part).collect(),
                None => vec![old.clone()],
            };
            drop(old);
            for (&value, part) in output.parts.iter().zip(parts) {
                values[value as usize].get_or_insert(part);
            }
        }
        let result = self.run(&mut values, location);
        if result.is_ok() {
            for (out, output) in out.iter_mut().zip(&self.outputs) {
                let parts = output.parts.iter().map(|&value| values[value as usize].clone().ok_or_else(missing));
                *out = joined(output, parts.collect::<Result<_>>()?)?;
            }
        }
        for &value in self.outputs.iter().flat_map(|output| &output.parts) {
            values[value as usize] = None;
        }
        // The memory of an old state is that of the next one.
        for state in &self.states {
            for (number, &value) in self.outputs[state.result].parts.iter().enumerate() {
                values[value as usize] = values[self.first[state.argument] + number].take();
            }
        }
        let inputs = self.inputs.iter().map(|input| input.parts.len()).sum();
        values[..inputs].fill(None);
        result
    }

    fn run(&self, values: &mut [Option<Tensor>], location: &'static Location<'static>) -> Result<()> {
        for stage in &self.stages {
            for (moved, device) in &stage.moves {
                let from = values[moved.from as usize].clone().ok_or_else(missing)?;
                let (from, start) = part(from.node()?).ok_or_else(missing)?;
                let is_ours = |to: &mut Tensor| to.exclusive_memory(moved.dtype, &moved.shape, device).is_some();
                let to = match values[moved.to as usize].take().map(|mut to| (is_ours(&mut to), to)) {
                    Some((true, to)) => to,
                    _ => empty(device, moved)?,
                };
                to.node()?.storage().ok_or_else(missing)?.copy(&from, start)?;
                values[moved.to as usize] = Some(to);
            }
            let mut calls = Vec::with_capacity(stage.runs.len());
            for PlannedRun { call, inputs, outputs } in &stage.runs {
                let inputs = inputs.iter().map(|&value| values[value as usize].clone().ok_or_else(missing));
                let inputs = inputs.collect::<Result<Vec<_>>>()?;
                let out = outputs.iter().enumerate().map(|(position, &value)| match values[value as usize].take() {
                    Some(out) => Ok(out),
                    None => call.output_of(position),
                });
                calls.push((inputs, Mutex::new(out.collect::<Result<Vec<_>>>()?)));
            }
            together(calls.len(), |number| {
                let (inputs, out) = &calls[number];
                let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
                stage.runs[number].call.call(&mut out, &inputs.iter().collect::<Vec<_>>(), location)
            })?;
            for (run, (_, out)) in stage.runs.iter().zip(calls) {
                let out = out.into_inner().unwrap_or_else(PoisonError::into_inner);
                for (&value, out) in run.outputs.iter().zip(out) {
                    values[value as usize] = Some(out);
                }
            }
        }
        Ok(())
    }

    /// The parts of an argument, which is computed if necessary.
    fn parts_of(&self, position: usize, argument: &Tensor, planned: &Input) -> Result<Vec<Tensor>> {
        let node = argument.node()?;
        let is_like = node.props.dtype == planned.dtype && node.props.shape == planned.shape;
        let found = match is_like && node.device() == planned.device.as_ref() {
            true => input(argument)?,
            false => {
                let (dtype, shape) = (node.props.dtype, node.props.shape.clone());
                Input {
                    dtype,
                    shape,
                    device: node.device().cloned(),
                    axis: argument.axis().map(|axis| axis as u32),
                    parts: vec![],
                }
            }
        };
        if found != *planned {
            let (kind, help) = match is_like {
                true => (ErrorKind::Device, "move it as the prepared one was, or prepare another call for it"),
                false => {
                    (ErrorKind::Shape, "on several devices a prepared call takes one size: prepare another for it")
                }
            };
            let message =
                format!("argument {position} is {}, the call was prepared for {}", show(&found), show(planned));
            return Err(tinyspec_ir::Error::new(kind, "call", message).help(help).into());
        }
        if let Some(shards) = node.shards() {
            return Ok(shards.parts.iter().cloned().map(Tensor::of_part).collect());
        }
        argument.realize()?;
        let storage = node.storage().ok_or_else(missing)?;
        let is_here = match &planned.device {
            Some(device) => storage.device().id() == device,
            None => Arc::ptr_eq(storage.device(), &self.default),
        };
        if is_here {
            return Ok(vec![argument.clone()]);
        }
        let (there, default) = (storage.device().name(), self.default.name());
        let message = format!("argument {position} is on {there}, the call was prepared for {default}");
        let error = tinyspec_ir::Error::new(ErrorKind::Device, "call", message);
        Err(error.help(format!("`x.to(\"{default}\")` moves it")).into())
    }

    /// Its arguments and results, for people.
    pub fn show(&self) -> [Vec<String>; 2] {
        let outputs: Vec<Input> = self.outputs.iter().map(like).collect();
        let all = |inputs: &[Input]| inputs.iter().map(show).collect::<Vec<_>>();
        [all(&self.inputs), all(&outputs)]
    }

    /// Writes each command buffer, by `print`, with lines that say what becomes of its values.
    pub fn print(
        &self,
        f: &mut fmt::Formatter<'_>,
        print: impl Fn(&Sizing, &[(DType, Shape)]) -> std::result::Result<String, fmt::Error>,
    ) -> fmt::Result {
        let list = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        for (number, (input, &first)) in self.inputs.iter().zip(&self.first).enumerate() {
            let values: Vec<u32> = (first as u32..).take(input.parts.len()).collect();
            writeln!(f, "; argument {number}, {}: values {}", show(input), list(&values))?;
        }
        for stage in &self.stages {
            for (moved, device) in &stage.moves {
                writeln!(f, "; value {} moves to {}: value {}", moved.from, device.name(), moved.to)?;
            }
            for PlannedRun { call, inputs, outputs } in &stage.runs {
                writeln!(f, "; {}: values {} of values {}", call.device().name(), list(outputs), list(inputs))?;
                f.write_str(&print(&call.last(), &call.inputs())?)?;
            }
        }
        for (number, output) in self.outputs.iter().enumerate() {
            writeln!(f, "; result {number}, {}: values {}", show(&like(output)), list(&output.parts))?;
        }
        Ok(())
    }
}

/// Describes an argument; one on a tuple of devices is computed, since only then its sharding is known.
fn input(argument: &Tensor) -> Result<Input> {
    let node = argument.node()?;
    let device = node.device().cloned();
    let (axis, parts) = match &device {
        Some(DeviceId::Many(_)) => {
            argument.realize()?;
            let shards = node.shards().ok_or_else(missing)?;
            (shards.axis, shards.parts.iter().map(|part| part.props.shape.clone()).collect())
        }
        _ => (None, vec![node.props.shape.clone()]),
    };
    Ok(Input { dtype: node.props.dtype, shape: node.props.shape.clone(), device, axis, parts })
}

/// A result as an argument, to compare them.
fn like(output: &Output) -> Input {
    let Output { dtype, shape, device, axis, .. } = output;
    Input { dtype: *dtype, shape: shape.clone(), device: Some(device.clone()), axis: *axis, parts: vec![] }
}

fn show(input: &Input) -> String {
    let place = match (&input.device, input.axis) {
        (Some(DeviceId::Many(names)), Some(axis)) => format!(" on {names:?}, cut along axis {axis}"),
        (Some(DeviceId::Many(names)), None) => format!(" on each of {names:?}"),
        (Some(device), _) => format!(" on {device}"),
        (None, _) => String::new(),
    };
    format!("{} {}{place}", input.dtype, dim::show(&input.shape))
}

fn planned(stage: Stage) -> Result<PlannedStage> {
    let moves = stage.moves.into_iter().map(|moved| {
        let device = device(&moved.device)?;
        Ok((moved, device))
    });
    let run = |Run { device: name, graph, results, inputs, outputs }: Run| {
        let device = device(&name)?;
        let mut of_slot = vec![None; inputs.len()];
        for node in graph.reachable_outside_bodies(&results) {
            if let Arg::Param { slot, .. } = *graph.arg(node)
                && let Some(place) = of_slot.get_mut(slot as usize)
            {
                *place = Some((graph.dtype(node), graph.props(node).shape.clone()));
            }
        }
        let shapes = of_slot.into_iter().collect::<Option<_>>().ok_or_else(missing)?;
        Ok(PlannedRun { call: Single::of_graph(device, &graph, &results, shapes)?, inputs, outputs })
    };
    let moves = moves.collect::<Result<_>>()?;
    Ok(PlannedStage { moves, runs: stage.runs.into_iter().map(run).collect::<Result<_>>()? })
}

/// Memory for a value that moves.
fn empty(device: &Arc<Device>, moved: &crate::execute::Move) -> Result<Tensor> {
    let count = moved.shape.iter().fold(1, |count, dim: &Dim| count * dim.as_const().unwrap_or(0).max(0) as usize);
    let owner = Owner::tensor(moved.dtype, &moved.shape, None);
    let storage = Storage::allocate(device, count * moved.dtype.size(), &owner)?;
    Ok(Tensor::of_part(Node::buffer(Arc::new(storage), moved.dtype, &moved.shape, None)?))
}

/// A result with these parts.
fn joined(output: &Output, mut parts: Vec<Tensor>) -> Result<Tensor> {
    let DeviceId::Many(_) = &output.device else { return parts.pop().ok_or_else(missing) };
    let parts = parts.iter().map(|part| Ok(part.node()?.clone())).collect::<Result<Vec<_>>>()?;
    let shards = Shards { axis: output.axis, parts: parts.into() };
    Ok(Tensor::from_node(Node::sharded(shards, &output.device, output.dtype, &output.shape)?))
}

fn missing() -> Error {
    Error::refused(ErrorKind::Value, "call", "a part has no value: the call that computes it has failed")
}
