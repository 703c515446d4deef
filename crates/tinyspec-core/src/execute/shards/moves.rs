//! Copies between devices: from one to one, to the parts of a tuple, and from these back to one.

use crate::execute::{Owner, Storage, device, realize};
use crate::lower::callify::Walk;
use crate::tensor::{History, LazyBuilder, Node};
use crate::{Error, Result};
use std::sync::Arc;
use tinyspec_ir::ops::movement;
use tinyspec_ir::{AddrSpace, Arg, Builder, Device, ErrorKind, NodeId, Op};

use super::Shards;
use super::rules::slice;

/// Does a `to(device)`, whose source is computed.
pub(in crate::execute) fn move_to_device(node: &Arc<Node>) -> Result<()> {
    debug_assert_eq!(node.op, Op::Load);
    let (Some(source), Some(to)) = (node.sources().into_iter().next(), node.device().cloned()) else { return Ok(()) };
    let walk = Walk::of(std::slice::from_ref(node));
    let history = History::new(&Arc::new(walk.build()?), walk.leaf_nodes());
    let computed = history.result(node, 0);
    match (source.shards(), &to) {
        (None, Device::Single(name)) => {
            let storage = copied(&source, name, &Owner::node(node))?;
            node.become_buffer(Arc::new(storage), computed);
        }
        (Some(shards), Device::Single(name)) => {
            let whole = joined(&shards, name, node)?;
            realize(std::slice::from_ref(&whole))?;
            node.become_buffer(stored(&whole)?, computed);
        }
        (None, Device::Many(names)) => node.become_shards(scattered(&source, names, node)?, computed),
        (Some(shards), Device::Many(names)) => {
            let first = names.first().ok_or_else(|| refused("the tuple has no devices"))?;
            let whole = joined(&shards, first, node)?;
            realize(std::slice::from_ref(&whole))?;
            node.become_shards(scattered(&whole, names, node)?, computed);
        }
    }
    Ok(())
}

/// A copy of a computed tensor on another device.
fn copied(source: &Node, name: &str, owner: &Owner) -> Result<Storage> {
    let from = stored(source)?;
    let mut data = vec![0; from.bytes()];
    from.read(&mut data)?;
    let to = Storage::allocate(&device(name)?, data.len(), owner)?;
    to.write(&data)?;
    Ok(to)
}

/// The whole value, lazily, on the device `name`.
fn joined(shards: &Shards, name: &Arc<str>, node: &Node) -> Result<Arc<Node>> {
    let mut builder = LazyBuilder::at(node.location);
    // Without an axis one part is as good as all, best one that need not move.
    let parts = match shards.axis {
        Some(_) => &shards.parts[..],
        None => {
            let here = |part: &&Arc<Node>| part.device() == Some(&Device::Single(name.clone()));
            let part = shards.parts.iter().find(here).or(shards.parts.first());
            part.map(std::slice::from_ref).unwrap_or_default()
        }
    };
    let parts = parts.iter().map(|part| moved(&mut builder, part, name)).collect::<Result<Vec<_>>>()?;
    let whole = match (&parts[..], shards.axis) {
        ([part], _) => *part,
        (parts, axis) => movement::cat(&mut builder, parts, axis.unwrap_or_default().into())?,
    };
    Ok(builder.node(whole))
}

fn moved(builder: &mut LazyBuilder, part: &Arc<Node>, name: &Arc<str>) -> Result<NodeId> {
    let part = builder.import(part.clone());
    Ok(on(builder, part, name)?)
}

/// A lazy value on the device `name`.
pub(super) fn on(builder: &mut LazyBuilder, node: NodeId, name: &Arc<str>) -> tinyspec_ir::Result<NodeId> {
    let device = Some(Device::Single(name.clone()));
    match builder.props(node).device == device {
        true => Ok(node),
        false => builder.add(Op::Load, &[node], Arg::Load { device, addrspace: AddrSpace::Global }),
    }
}

/// Equal parts along axis 0, computed.
fn scattered(source: &Arc<Node>, names: &Arc<[Arc<str>]>, node: &Node) -> Result<Shards> {
    let mut builder = LazyBuilder::at(node.location);
    let source = builder.import(source.clone());
    let parts = (names.iter().enumerate())
        .map(|(number, name)| {
            let part = slice(&mut builder, source, 0, number, names.len())?;
            let part = on(&mut builder, part, name)?;
            Ok(builder.node(part))
        })
        .collect::<tinyspec_ir::Result<Vec<_>>>()
        .map_err(|error| match node.location {
            Some(location) => error.in_op("to").at(location),
            None => error.in_op("to"),
        })?;
    realize(&parts)?;
    Ok(Shards { axis: Some(0), parts: parts.into() })
}

fn stored(node: &Node) -> Result<Arc<Storage>> {
    node.storage().ok_or_else(|| refused("the source has no value"))
}

fn refused(message: &str) -> Error {
    Error::refused(ErrorKind::Device, "to", message)
}
