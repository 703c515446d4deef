//! Copies between devices: one to one, one to the parts of a tuple, and these back to one.

use crate::device::{Device, Owner, Storage, device};
use crate::execute::run::realize_part;
use crate::lazy::{History, LazyBuilder, Node, Shards, part};
use crate::{Error, Result};
use std::sync::Arc;
use tinyspec_ir::Device as DeviceId;
use tinyspec_ir::ops::movement;
use tinyspec_ir::{AddrSpace, Arg, Builder, Dim, ErrorKind, NodeId, Op, cut};

/// Executes a `to(device)` whose source is computed.
pub(in crate::execute) fn move_to_device(node: &Arc<Node>) -> Result<()> {
    debug_assert_eq!(node.op, Op::Load);
    let (Some(source), Some(to)) = (node.sources().into_iter().next(), node.device().cloned()) else { return Ok(()) };
    let computed = History::of_tensor(node)?.and_then(|history| history.result(0));
    match (source.shards(), &to) {
        (None, DeviceId::Single(name)) => {
            let (from, start) = part(&source).ok_or_else(|| refused("the source has no value"))?;
            let bytes = node.props.element_count().as_const().unwrap_or_default() as usize * node.props.dtype.size();
            let device = device(name).map_err(|error| error.at_known(node.location))?;
            let storage = Storage::allocate(&device, bytes, &node.owner())?;
            storage.copy(&from, start)?;
            node.become_buffer(Arc::new(storage), computed);
        }
        (Some(shards), DeviceId::Single(name)) => {
            let whole = joined(&shards, name, node)?;
            realize_part(std::slice::from_ref(&whole))?;
            node.become_buffer(stored(&whole)?, computed);
        }
        (None, DeviceId::Many(names)) => node.become_shards(scattered(&source, names, node)?, computed),
        (Some(shards), DeviceId::Many(names)) => {
            let first = names.first().ok_or_else(|| refused("the tuple has no devices"))?;
            let whole = joined(&shards, first, node)?;
            realize_part(std::slice::from_ref(&whole))?;
            node.become_shards(scattered(&whole, names, node)?, computed);
        }
    }
    Ok(())
}

/// The memory itself if it is on `device`, else a copy there.
pub(in crate::execute) fn on_device(
    storage: &Arc<Storage>,
    device: &Arc<Device>,
    roots: &[Arc<Node>],
) -> Result<Arc<Storage>> {
    if storage.device().name() == device.name() {
        return Ok(storage.clone());
    }
    let owner = Owner::temporaries(roots.first().and_then(|root| root.location));
    let copy = Storage::allocate(device, storage.bytes(), &owner)?;
    copy.copy(storage, 0)?;
    Ok(Arc::new(copy))
}

/// The whole value, lazily, on the device `name`.
fn joined(shards: &Shards, name: &Arc<str>, node: &Node) -> Result<Arc<Node>> {
    let mut builder = LazyBuilder::at(node.location);
    let parts: Vec<NodeId> = shards.parts.iter().map(|part| builder.import(part.clone())).collect();
    let whole = joined_on(&mut builder, &parts, shards.axis.map(|axis| axis as usize), name)?;
    Ok(builder.node(whole))
}

/// The whole of a value with these parts, on the device `name`.
pub(super) fn joined_on(
    builder: &mut LazyBuilder,
    parts: &[NodeId],
    axis: Option<usize>,
    name: &Arc<str>,
) -> tinyspec_ir::Result<NodeId> {
    // Without an axis any part will do, preferably one that need not move.
    let parts = match axis {
        Some(_) => parts,
        None => {
            let here = |part: &&NodeId| builder.props(**part).device == Some(DeviceId::Single(name.clone()));
            parts.iter().find(here).or(parts.first()).map(std::slice::from_ref).unwrap_or_default()
        }
    };
    let parts = parts.iter().map(|&part| on(builder, part, name)).collect::<tinyspec_ir::Result<Vec<_>>>()?;
    match &parts[..] {
        [part] => Ok(*part),
        parts => movement::cat(builder, parts, axis.unwrap_or_default() as i64),
    }
}

/// A lazy value on the device `name`.
pub(super) fn on(builder: &mut LazyBuilder, node: NodeId, name: &Arc<str>) -> tinyspec_ir::Result<NodeId> {
    let device = Some(DeviceId::Single(name.clone()));
    match builder.props(node).device == device {
        true => Ok(node),
        false => builder.add(Op::Load, &[node], Arg::Load { device, addrspace: AddrSpace::Global }),
    }
}

/// Equal parts along axis 0, as computed nodes.
fn scattered(source: &Arc<Node>, names: &Arc<[Arc<str>]>, node: &Node) -> Result<Shards> {
    let located = |error: tinyspec_ir::Error| error.at_known(node.location);
    let length = check_even(&node.props.shape, names.len()).map_err(located)?;
    let mut builder = LazyBuilder::at(node.location);
    let source = builder.import(placed(source)?);
    let parts = (names.iter().enumerate())
        .map(|(number, name)| {
            let span = cut::span(length, number, names.len());
            let part = movement::narrow(&mut builder, source, 0, span.start, span.end - span.start)?;
            let part = on(&mut builder, part, name)?;
            Ok(builder.node(part))
        })
        .collect::<tinyspec_ir::Result<Vec<_>>>()
        .map_err(located)?;
    realize_part(&parts)?;
    Ok(Shards { axis: Some(0), parts: parts.into() })
}

/// The length of axis 0, which must be divisible by `count`, the number of devices.
pub(super) fn check_even(shape: &[Dim], count: usize) -> tinyspec_ir::Result<i64> {
    let show = tinyspec_ir::dim::show;
    let refuse =
        |message: String, help: &str| Err(tinyspec_ir::Error::new(ErrorKind::Device, "to", message).help(help));
    let Some(dim) = shape.first() else {
        return refuse(
            format!("{} has no axis 0 to cut into {count} parts, one a device", show(shape)),
            "`broadcast` gives every device the whole value",
        );
    };
    match dim.as_const() {
        Some(length) if count > 0 && length % count as i64 == 0 => Ok(length),
        _ => refuse(
            format!("axis 0 of {} does not divide into {count} equal parts, one a device", show(shape)),
            "`pad` the axis first, take as many devices as divide it, or `broadcast` the whole to all",
        ),
    }
}

/// A computed tensor as a buffer on its device: nodes computed from constants name none.
pub(super) fn placed(node: &Arc<Node>) -> Result<Arc<Node>> {
    match (node.device(), node.storage()) {
        (None, Some(storage)) => Ok(Node::buffer(storage, node.props.dtype, &node.props.shape, node.location)?),
        _ => Ok(node.clone()),
    }
}

fn stored(node: &Node) -> Result<Arc<Storage>> {
    node.storage().ok_or_else(|| refused("the source has no value"))
}

fn refused(message: &str) -> Error {
    Error::refused(ErrorKind::Device, "to", message)
}
