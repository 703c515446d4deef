//! Tensors of equal value are one node of a graph. Where gradients of both are wanted they are two variables: for that
//! time each is a placeholder of its own.

use super::grad::connected;
use super::{LazyBuilder, Node, Sources, Tensor};
use crate::Result;
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, Op};

/// Slots of placeholders, out of reach of a Function's inputs.
const FIRST_SLOT: u32 = 1 << 30;

/// Which of the wanted tensors are equal to another one, without being it.
pub fn equal_ones(wanted: &[Arc<Node>]) -> Vec<bool> {
    let is_equal = |a: &Arc<Node>, b: &Arc<Node>| a.hash == b.hash && !Arc::ptr_eq(a, b);
    wanted.iter().map(|a| wanted.iter().any(|b| is_equal(a, b))).collect()
}

/// The gradients with a placeholder for each of the `equal` ones.
pub fn gradients(
    location: &'static Location<'static>,
    loss: &Arc<Node>,
    wanted: &[Arc<Node>],
    equal: &[bool],
) -> Result<Vec<Option<Tensor>>> {
    let (mut forward, mut back) = (Replacements::default(), Replacements::default());
    let mut variables = vec![];
    for (node, &equal) in wanted.iter().zip(equal) {
        if !equal {
            variables.push(node.clone());
            continue;
        }
        let known = forward.get(&Arc::as_ptr(node)).cloned();
        let placeholder = match known {
            Some(known) => known,
            None => placeholder(location, node, forward.len() as u32)?,
        };
        forward.insert(Arc::as_ptr(node), placeholder.clone());
        back.insert(Arc::as_ptr(&placeholder), node.clone());
        variables.push(placeholder);
    }
    let tensor = |node: &Arc<Node>| Tensor::from_node(node.clone());
    let loss = tensor(&replace(loss, &mut forward)?);
    let variables: Vec<Tensor> = variables.iter().map(tensor).collect();
    let mut found = vec![];
    for gradient in connected(location, &loss, &variables.iter().collect::<Vec<_>>())? {
        found.push(match gradient {
            Some(gradient) => Some(tensor(&replace(gradient.node()?, &mut back)?)),
            None => None,
        });
    }
    // What the equal ones were computed from: the chain rule goes on behind the placeholders.
    let others: Vec<Tensor> =
        wanted.iter().zip(equal).filter(|(_, equal)| !**equal).map(|(node, _)| tensor(node)).collect();
    for (position, node) in wanted.iter().enumerate() {
        let (true, false, Some(cotangent)) = (equal[position], others.is_empty(), found[position].clone()) else {
            continue;
        };
        let surrogate = (tensor(node) * cotangent.detach()).sum(.., false);
        let more = connected(location, &surrogate, &others.iter().collect::<Vec<_>>())?;
        let places = equal.iter().enumerate().filter(|(_, equal)| !**equal).map(|(place, _)| place);
        for (place, more) in places.zip(more) {
            found[place] = match (found[place].take(), more) {
                (Some(sum), Some(more)) => Some(sum + more),
                (sum, more) => sum.or(more),
            };
        }
    }
    Ok(found)
}

type Replacements = FxHashMap<*const Node, Arc<Node>>;

fn placeholder(location: &'static Location<'static>, node: &Arc<Node>, number: u32) -> Result<Arc<Node>> {
    let mut builder = LazyBuilder::new(location);
    let shape = builder.shape(&node.props.shape)?;
    let (dtype, device) = (node.props.dtype, node.device().cloned());
    let arg = Arg::Param { slot: FIRST_SLOT + number, dtype, device, addrspace: None };
    let param = builder.add(Op::Param, &[shape], arg)?;
    Ok(builder.node(param))
}

/// `root` with nodes replaced, identified by where they are and not by what they are equal to.
fn replace(root: &Arc<Node>, replaced: &mut Replacements) -> Result<Arc<Node>> {
    let mut pending: Vec<(Arc<Node>, bool)> = vec![(root.clone(), false)];
    // Nodes are compared by address: all of them live as long as the map.
    let mut seen: Vec<Arc<Node>> = vec![];
    while let Some((node, is_ready)) = pending.pop() {
        if replaced.contains_key(&Arc::as_ptr(&node)) {
            continue;
        }
        let sources = node.sources();
        if !is_ready {
            pending.push((node, true));
            pending.extend(sources.into_iter().map(|source| (source, false)));
            continue;
        }
        let mut is_same = true;
        let new: Sources = sources
            .iter()
            .map(|source| {
                let new = replaced.get(&Arc::as_ptr(source)).unwrap_or(source).clone();
                is_same &= Arc::ptr_eq(source, &new);
                new
            })
            .collect();
        let new = if is_same { node.clone() } else { Node::lazy(node.op, new, node.arg.clone(), node.location)? };
        replaced.insert(Arc::as_ptr(&node), new);
        seen.push(node);
    }
    Ok(replaced.get(&Arc::as_ptr(root)).unwrap_or(root).clone())
}
