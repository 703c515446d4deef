//! Calls of functions that are compiled once for all sizes of their dims.

use super::run::run;
use super::{Owner, Storage, default_device, device};
use crate::Error;
use crate::Result;
use crate::function::{Ranged, sizes};
use crate::tensor::{History, Node};
use smallvec::SmallVec;
use std::sync::Arc;
use tinyspec_ir::{Arg, DType, Device, ErrorKind, Op};

/// What must be computed before `node` is: the source of a move, the tensors that a function is given.
pub(super) fn needed(node: &Arc<Node>) -> Vec<Arc<Node>> {
    let sources = node.sources();
    match node.op {
        Op::GetTuple => sources.iter().flat_map(|call| arguments(call)).filter(is_tensor).collect(),
        _ => sources.into_iter().take(1).collect(),
    }
}

fn is_tensor(argument: &Arc<Node>) -> bool {
    argument.props.dtype != DType::Index || !argument.props.shape.is_empty()
}

fn arguments(call: &Node) -> Vec<Arc<Node>> {
    call.sources().into_iter().skip(1).collect()
}

/// Computes those of `nodes` that are results of functions, each call once.
pub(super) fn call(nodes: &[Arc<Node>]) -> Result<()> {
    for (position, node) in nodes.iter().enumerate() {
        let Some(function) = node.sources().into_iter().next().filter(|_| node.op == Op::GetTuple) else { continue };
        let is_same = |other: &&Arc<Node>| {
            other.op == Op::GetTuple && other.sources().first().is_some_and(|call| call.hash == function.hash)
        };
        let results: Vec<&Arc<Node>> = nodes[position..].iter().filter(is_same).collect();
        one(&function, &results).map_err(|error| match node.location {
            Some(location) => error.at(location),
            None => error,
        })?;
    }
    Ok(())
}

fn one(function: &Arc<Node>, results: &[&Arc<Node>]) -> Result<()> {
    let missing = || Error::refused(ErrorKind::Value, "call", "an argument has no value");
    let arguments = arguments(function);
    let body = function.sources().first().and_then(|tuple| tuple.body()).ok_or_else(missing)?;
    let sizes = sizes(&body, &arguments).ok_or_else(missing)?;
    let device = match arguments.iter().find_map(|argument| argument.device()) {
        Some(Device::Single(name)) => device(name)?,
        _ => default_device()?,
    };
    let ranged = Ranged::of(&body, &arguments, &device)?;
    let plan = ranged.plan(&sizes)?;
    // By slot; a dim has no memory.
    let held: Vec<Option<Arc<Storage>>> = arguments.iter().map(|argument| argument.storage()).collect();
    if arguments.iter().zip(&held).any(|(argument, storage)| is_tensor(argument) && storage.is_none()) {
        return Err(missing());
    }
    let null = std::ptr::null_mut();
    let leaves: SmallVec<[*mut u8; 16]> =
        held.iter().map(|storage| storage.as_ref().map_or(null, |storage| storage.address())).collect();
    let outputs: Vec<Arc<Storage>> = (plan.outputs.iter())
        .map(|&bytes| Ok(Arc::new(Storage::allocate(&device, bytes, &Owner::node(results[0]))?)))
        .collect::<Result<_>>()?;
    let addresses: SmallVec<[*mut u8; 8]> = outputs.iter().map(|output| output.address()).collect();
    let temporaries = Owner::temporaries(results[0].location);
    let arena =
        (plan.arena_bytes > 0).then(|| Storage::allocate(&device, plan.arena_bytes, &temporaries)).transpose()?;
    let mut table = Vec::with_capacity(plan.table.len());
    // SAFETY: `held` keeps the leaves, whose sizes the bound dims agree with; outputs and arena are ours alone.
    unsafe { run(&plan, &leaves, &addresses, arena.as_ref(), &mut table)? };
    let history = History::of_call(&ranged.program, &arguments);
    for &result in results {
        let Arg::Number(number) = result.arg else { continue };
        let computed = history.result(result, number as usize);
        let output = plan.output_of_root[number as usize];
        result.become_buffer(outputs[output as usize].clone(), computed);
    }
    Ok(())
}
