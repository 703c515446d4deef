//! Calls of functions that are compiled once for all sizes of their dims.

use super::run::{realize_part, run};
use crate::compile::Ranged;
use crate::device::{Owner, Storage, device_of};
use crate::lazy::{History, Node, part, sizes, within};
use crate::lower::plan::ALIGNMENT;
use crate::{Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;
use tinyspec_ir::{Arg, Category, DType, Device, ErrorKind, Op};

/// The nodes that must be computed before `node`: the source of a move, or the tensor arguments of a function.
pub(super) fn needed(node: &Arc<Node>) -> Vec<Arc<Node>> {
    let sources = node.sources();
    match node.op {
        Op::GetTuple => {
            let tensors = sources.iter().flat_map(|call| arguments(call)).filter(is_tensor);
            tensors.filter(|argument| window(argument).is_none()).map(|argument| assigned(&argument)).collect()
        }
        _ => sources.first().map(moved).unwrap_or_default(),
    }
}

/// The nodes that must be computed to move `source`: the value that it is a part of if that is needed anyway, else itself.
fn moved(source: &Arc<Node>) -> Vec<Arc<Node>> {
    let (whole, offset) = within(source);
    if whole.storage().is_some() && offset.is_some() {
        return vec![];
    }
    // Two references are those of the part and of `whole` here; any other will need the value computed.
    let is_shared = !Arc::ptr_eq(&whole, source) && !whole.is_realized() && Arc::strong_count(&whole) > 2;
    let is_here = matches!(whole.device(), Some(Device::Single(_))) && whole.op.category() != Category::Movement;
    match (is_shared && is_here, offset) {
        (true, Some(_)) => vec![whole],
        (true, None) => vec![whole, source.clone()],
        (false, _) => vec![source.clone()],
    }
}

fn is_tensor(argument: &Arc<Node>) -> bool {
    argument.props.dtype != DType::Index || !argument.props.shape.is_empty()
}

fn arguments(call: &Node) -> Vec<Arc<Node>> {
    call.sources().into_iter().skip(1).collect()
}

/// Computes those of `nodes` that are results of functions, once per call.
pub(super) fn call(nodes: &[Arc<Node>]) -> Result<()> {
    for (position, node) in nodes.iter().enumerate() {
        let Some(function) = node.sources().into_iter().next().filter(|_| node.op == Op::GetTuple) else { continue };
        let is_same = |other: &&Arc<Node>| {
            other.op == Op::GetTuple && other.sources().first().is_some_and(|call| call.hash == function.hash)
        };
        let results: Vec<&Arc<Node>> = nodes[position..].iter().filter(is_same).collect();
        one(&function, &results).map_err(|error| error.at_known(node.location))?;
    }
    Ok(())
}

fn one(function: &Arc<Node>, results: &[&Arc<Node>]) -> Result<()> {
    let missing = || Error::refused(ErrorKind::Value, "call", "an argument has no value");
    let arguments = arguments(function);
    let body = function.sources().first().and_then(|tuple| tuple.body()).ok_or_else(missing)?;
    // Another result of the call has found that its kernels need numbers.
    if body.ranged().is_empty() {
        return Ok(());
    }
    let sizes = sizes(&body, &arguments).ok_or_else(missing)?;
    let device = device_of(arguments.iter().map(|argument| argument.device()))?;
    let without = arguments.iter().filter(|argument| is_tensor(argument) && window(argument).is_none());
    realize_part(&without.cloned().collect::<Vec<_>>())?;
    // Without one, the call becomes part of the next plan.
    let Some(ranged) = Ranged::of(&body, &arguments, &device)? else { return Ok(()) };
    let plan = ranged.plan(&sizes)?;
    // By slot; dims have no memory.
    let held: Vec<Option<(Arc<Storage>, usize)>> = arguments.iter().map(window).collect();
    if arguments.iter().zip(&held).any(|(argument, memory)| is_tensor(argument) && memory.is_none()) {
        return Err(missing());
    }
    let address = |memory: &Option<(Arc<Storage>, usize)>| match memory {
        // SAFETY: a window lies inside its storage.
        Some((storage, offset)) => unsafe { storage.address().add(*offset) },
        None => std::ptr::null_mut(),
    };
    let leaves: SmallVec<[*mut u8; 16]> = held.iter().map(address).collect();
    let outputs: Vec<Arc<Storage>> = (plan.outputs.iter())
        .map(|&bytes| Ok(Arc::new(Storage::allocate(&device, bytes, &results[0].owner())?)))
        .collect::<Result<_>>()?;
    let addresses: SmallVec<[*mut u8; 8]> = outputs.iter().map(|output| output.address()).collect();
    let temporaries = Owner::temporaries(results[0].location);
    let arena =
        (plan.arena_bytes > 0).then(|| Storage::allocate(&device, plan.arena_bytes, &temporaries)).transpose()?;
    let mut table = Vec::with_capacity(plan.table.len());
    // SAFETY: `held` keeps the leaves alive, and their sizes agree with the bound dims; outputs and arena are ours
    // alone.
    unsafe { run(&plan, &leaves, &addresses, arena.as_ref(), &mut table)? };
    let history = History::of_call(&ranged.program, &body, &arguments, function.last_run)?;
    for &result in results {
        let Arg::Number(number) = result.arg else { continue };
        // An equal call may have other tensors as arguments.
        let other = result.sources().into_iter().next().filter(|call| call.who() != function.who());
        let computed = match other {
            Some(call) => History::of_call(&ranged.program, &body, &self::arguments(&call), call.last_run)?
                .result(number as usize),
            None => history.result(number as usize),
        };
        let output = plan.output_of_root[number as usize];
        result.become_buffer(outputs[output as usize].clone(), computed);
    }
    Ok(())
}

/// The state that `argument` is a view of, if it was assigned: it is computed as a whole and contains its parts.
/// Otherwise the argument.
fn assigned(argument: &Arc<Node>) -> Arc<Node> {
    let mut node = argument.clone();
    while matches!(node.op, Op::Reshape | Op::Shrink) {
        let Some(source) = node.sources().into_iter().next() else { break };
        node = source;
    }
    if node.op == Op::After { node } else { argument.clone() }
}

/// The memory of an argument, and its offset in bytes: its own, or consecutive elements of another tensor, such as its
/// first rows. A part is read in place if its alignment suffices.
fn window(argument: &Arc<Node>) -> Option<(Arc<Storage>, usize)> {
    part(argument).filter(|(_, start)| start % ALIGNMENT == 0)
}
