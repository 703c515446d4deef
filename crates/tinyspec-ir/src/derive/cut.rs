//! The axis along which a tuple of devices shards a value, and the shards ("axis" under "Derived Properties" of the
//! spec).
//!
//! Shards are as equal as possible. If an op leaves fewer positions than devices, or reorders elements so that no axis
//! has the old shards, its result is replicated.

use crate::{Arg, Device, Dim, Op, Props};
use std::ops::Range;

/// The number of sources of an After for a buffer that a kernel written by hand has written: the buffer, the Call, and
/// the number of the result.
pub(super) const AFTER_KERNEL: usize = 3;

/// The positions of an axis of `length` that part `number` of `count` holds.
pub fn span(length: i64, number: usize, count: usize) -> Range<i64> {
    let start = |number: usize| (i128::from(length) * number as i128 / count.max(1) as i128) as i64;
    start(number)..start(number + 1)
}

/// Whether `count` devices can share an axis: there is at least one position for each.
pub fn is_shared(dim: &Dim, count: usize) -> bool {
    dim.as_const().is_some_and(|length| length >= count as i64)
}

/// For a reshape of a value sharded along `axis`: the axis of `from` along which it must be sharded, and the resulting
/// axis of `to`. Prefers the same shards if an axis of `to` has them, or else the first other axis that works.
pub fn through_reshape(from: &[Dim], axis: usize, to: &[Dim], count: usize) -> Option<(usize, usize)> {
    let others = (0..from.len()).filter(|&other| other != axis && is_shared(&from[other], count));
    std::iter::once(axis).chain(others).find_map(|axis| Some((axis, reshaped(from, axis, to, count)?)))
}

/// The axis of `to` whose shards are those of `axis` of `from`.
fn reshaped(from: &[Dim], axis: usize, to: &[Dim], count: usize) -> Option<usize> {
    let elements = |dims: &[Dim]| dims.iter().try_fold(1i64, |product, dim| product.checked_mul(dim.as_const()?));
    let starts = |shape: &[Dim], axis: usize| -> Option<Vec<i64>> {
        let (length, inner) = (shape.get(axis)?.as_const()?, elements(&shape[axis + 1..])?);
        Some((0..count).map(|number| span(length, number, count).start * inner).collect())
    };
    if elements(from)? == 0 {
        return None;
    }
    let (lead, parts) = (elements(from.get(..axis)?)?, starts(from, axis)?);
    let is_kept = |&to_axis: &usize| {
        elements(&to[..to_axis]) == Some(lead)
            && is_shared(&to[to_axis], count)
            && starts(to, to_axis).as_ref() == Some(&parts)
    };
    // The axis after one of length 1 has as many elements before it.
    (0..to.len()).filter(|&axis| !to[axis].is(1) || count == 1).find(is_kept)
}

/// The axis along which the result is sharded if the sources are sharded along `axes` over `count` devices.
pub fn axis(op: Op, arg: &Arg, sources: &[&Props], axes: &[Option<u32>], count: usize) -> Option<u32> {
    let first = axes.first().copied().flatten();
    let shape = || sources.get(1).and_then(|shape| shape.value.as_deref());
    match (op, arg) {
        // A scalar has no axis to shard, so it is replicated.
        (Op::Buffer, Arg::Buffer { device: Some(Device::Many(_)), .. })
        | (Op::Param, Arg::Param { device: Some(Device::Many(_)), .. }) => {
            sources.first()?.value.as_ref().filter(|shape| !shape.is_empty()).map(|_| 0)
        }
        (Op::Load, Arg::Load { device: Some(Device::Many(_)), .. }) => Some(0),
        (Op::Load, Arg::Load { device: Some(_), .. }) | (Op::Replicated, _) => None,
        (Op::Permute, Arg::Axes(order)) => {
            let axis = first?;
            order.iter().position(|&from| from == axis).map(|to| to as u32)
        }
        (Op::Reduce, Arg::Reduce { axes, .. }) => first.filter(|axis| !axes.contains(axis)),
        (Op::Stack, _) => axes.iter().find_map(|&axis| axis).map(|axis| axis + 1),
        (Op::Index, _) => indexed(sources, axes),
        (Op::Expand, _) => Some(first? + shape()?.len().checked_sub(sources[0].rank())? as u32),
        (Op::Reshape, _) => {
            let (_, axis) = through_reshape(&sources[0].shape, first? as usize, shape()?, count)?;
            Some(axis as u32)
        }
        (Op::Pad | Op::Shrink, _) => {
            let length = sources.get(2).and_then(|shape| shape.value.as_deref())?.get(first? as usize)?;
            first.filter(|_| shape().is_some() && is_shared(length, count))
        }
        (Op::Bitcast, Arg::DType(dtype)) => {
            let axis = first? as usize;
            let (from, to) = (sources[0].dtype.size() as i64, dtype.size() as i64);
            if from == to || axis + 1 < sources[0].rank() {
                return first;
            }
            let length = sources[0].shape.get(axis)?.as_const()?;
            let result = (length * from).checked_div(to)?;
            let start = |length: i64, number: usize| span(length, number, count).start;
            let is_kept = (0..count).all(|number| start(length, number) * from == start(result, number) * to);
            first.filter(|_| is_kept && is_shared(&Dim::from(result), count))
        }
        (Op::Flip | Op::Contiguous | Op::ContiguousBackward | Op::Detach | Op::Load, _) => first,
        _ if op.is_elementwise() => {
            // Broadcasting is right-aligned, so a lower rank shifts the axis.
            let rank = sources.iter().map(|source| source.rank()).max()?;
            sources.iter().zip(axes).find_map(|(source, axis)| Some((*axis)? + (rank - source.rank()) as u32))
        }
        // A kernel written by hand may access its buffers anywhere, so every device runs it on whole buffers.
        (Op::After, _) if sources.len() == AFTER_KERNEL => None,
        _ if op == Op::After || op == Op::Store => first,
        _ => None,
    }
}

/// A sharded index determines the axis at the position of its own dims; the axis of a source sharded after the indexed
/// axes shifts with the rest.
fn indexed(sources: &[&Props], axes: &[Option<u32>]) -> Option<u32> {
    let mut rank = 0;
    for (index, axis) in sources.iter().zip(axes).skip(1) {
        if let Some(axis) = axis {
            return Some(rank + axis);
        }
        rank += index.rank() as u32;
    }
    Some(axes.first().copied().flatten()?.checked_sub(sources.len() as u32 - 1)? + rank)
}
