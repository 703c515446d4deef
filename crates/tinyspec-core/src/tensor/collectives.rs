//! The collectives over a tuple of devices, as compositions ("Multi-Device Collectives" of the spec).
//!
//! `n` is the number of devices. The spec's vectors of `s` elements may be tensors of any rank, with `s` as axis 0.
//!
//! # What is cut
//!
//! [`Tensor::axis`] is the axis along which a value is sharded. `to` and the collectives shard evenly, or report why
//! they cannot. Every method works on the shards, and gives the same result as on one device:
//!
//! * Elementwise methods, and those along other axes, work on each shard locally. Operands that are sharded along
//!   different axes are resharded by an all-to-all exchange.
//! * Slices, `flip`, `roll`, `pad`, `cat` along the sharded axis: each device gets the positions that its shard
//!   consists of. Shards are as equal as possible, so 7 positions are 3 and 4. With fewer positions than devices, the
//!   value is replicated.
//! * `reshape` keeps the sharded axis if it can, or else shards along another axis, or else replicates the value.
//! * A reduction along the sharded axis is computed for each shard and combined on the first device, and every device
//!   gets the result.
//! * A sharded index decides how the result is sharded; a table that is sharded along the indexed axis is gathered
//!   first.
//! * Numbers and index tensors are copied to every device automatically. Any other mix of a value on one device with
//!   one on a tuple is an error that says what to write.

use super::{IntoDevice, Tensor, apply};
use crate::Result;
use std::panic::Location;
use tinyspec_ir::{Device, Dim, ErrorKind, Shape};

/// Every device gets the whole of `x`, which is on a single device: `(s, …)` without an axis.
///
/// ```
/// # use tinyspec_core::{Tensor, tensor::collectives::broadcast};
/// # fn main() -> tinyspec_core::Result<()> {
/// let weights = broadcast(&Tensor::from_slice(&[1.0f32, 2.0], [2]), ["interpreter:0", "interpreter:1"]);
/// assert_eq!(weights.axis(), None);
/// assert_eq!(weights.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(()) }
/// ```
#[track_caller]
pub fn broadcast(x: &Tensor, devices: impl IntoDevice) -> Tensor {
    broadcast_at(Location::caller(), x, devices.into_device().map_err(|error| error.in_op("broadcast")))
}

pub(crate) fn broadcast_at(location: &'static Location<'static>, x: &Tensor, devices: Result<Device>) -> Tensor {
    match devices {
        Ok(devices @ Device::Many(_)) => apply(location, &[x], |builder, nodes| builder.broadcast(nodes[0], &devices)),
        device => x.to_at(location, device),
    }
}

/// An equal part of `x` for each device: `(n·s, …)` on axis 0.
#[track_caller]
pub fn scatter(x: &Tensor, devices: impl IntoDevice) -> Tensor {
    x.to(devices)
}

/// All shards of `x` on its first device: `(n·s, …)`.
#[track_caller]
pub fn gather(x: &Tensor) -> Tensor {
    match x.device() {
        Some(Device::Many(names)) if !names.is_empty() => x.to(&names[0]),
        _ => x.clone(),
    }
}

/// The sum of the shards on the first device: `(s, …)`.
#[track_caller]
pub fn reduce(x: &Tensor) -> Tensor {
    match parts("reduce", x) {
        Ok((n, rest)) => gather(x).reshape(with(&[n], &rest)).sum(0, false),
        Err(refused) => refused,
    }
}

/// All shards of `x` on every device: `(n·s, …)` without an axis.
#[track_caller]
pub fn allgather(x: &Tensor) -> Tensor {
    let (Ok((n, _)), Some(devices)) = (parts("allgather", x), x.device()) else { return refused("allgather", x) };
    x.reshape(with(&[1], x.shape())).expand(with(&[n], x.shape())).to(devices).replicated(0)
}

/// The sum of the shards, sharded itself: `(s, …)` on axis 0. `s` must be a multiple of `n`.
#[track_caller]
pub fn reduce_scatter(x: &Tensor) -> Tensor {
    reduced_parts("reduce_scatter", x)
}

#[track_caller]
fn reduced_parts(op: &str, x: &Tensor) -> Tensor {
    let (Ok((n, part)), Some(devices)) = (parts(op, x), x.device()) else {
        return refused(op, x);
    };
    let length = part[0].as_const().unwrap_or_default();
    if length % n != 0 {
        let message = format!("each of {n} devices has {length} rows, which {n} devices cannot share evenly");
        return Tensor::refused(Location::caller(), ErrorKind::Device, op, message);
    }
    let rest = &part[1..];
    let order: Vec<i64> = [1, 0].into_iter().chain(2..=(rest.len() as i64 + 2)).collect();
    x.reshape(with(&[n, n, length / n], rest)).permute(order).to(devices).sum(1, false).reshape(part)
}

/// The sum of the shards on every device: `(s, …)` without an axis. `s` must be a multiple of `n`.
#[track_caller]
pub fn allreduce(x: &Tensor) -> Tensor {
    allgather(&reduced_parts("allreduce", x))
}

fn count(devices: &Device) -> i64 {
    match devices {
        Device::Single(_) => 1,
        Device::Many(names) => names.len() as i64,
    }
}

fn with(lead: &[i64], rest: &[Dim]) -> Shape {
    lead.iter().map(|&dim| Dim::from(dim)).chain(rest.iter().cloned()).collect()
}

/// The number of devices and the shape of a shard.
#[track_caller]
fn parts(op: &str, x: &Tensor) -> Result<(i64, Shape), Tensor> {
    let n = match (x.device(), x.axis()) {
        (Some(devices @ Device::Many(_)), Some(0)) => count(devices),
        _ => return Err(refused(op, x)),
    };
    match x.shape().first().and_then(Dim::as_const) {
        Some(rows) if rows % n == 0 => Ok((n, with(&[rows / n], &x.shape()[1..]))),
        _ => Err(refused(op, x)),
    }
}

#[track_caller]
fn refused(op: &str, x: &Tensor) -> Tensor {
    if x.error().is_some() {
        return x.clone();
    }
    let (shape, axis) = (tinyspec_ir::dim::show(x.shape()), x.axis());
    let found = match (x.device(), axis) {
        (Some(Device::Many(_)), Some(axis)) => format!("found {shape} cut along axis {axis}"),
        (Some(Device::Many(_)), None) => format!("found {shape}, of which every device has all"),
        _ => format!("found {shape} on a single device"),
    };
    let message = format!("needs a tensor that a tuple of devices cuts evenly along axis 0, {found}");
    Tensor::refused(Location::caller(), ErrorKind::Device, op, message)
}
