//! Sorting. Short axes by rank: an element's place is the number of elements before it, n² independent comparisons in one
//! kernel. Long ones by a bitonic network (Batcher, 1968): n/2 · log₂n · (log₂n + 1)/2 comparisons. Ties keep their order,
//! and nan is greater than all numbers.

use super::arithmetic::logical_not;
use super::creation::arange_dim;
use super::movement::{expand, flip, narrow, pad, reshape, stack, transpose, unsqueeze};
use super::{axis_of, dtype_of, reduce, shape_of};
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Up to this length one kernel of n² comparisons is quicker than a network's many kernels.
const SHORT: i64 = 1024;

/// `[a < b]`, where nan is greater than all numbers.
fn less(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let less = b.alu(Op::CmpLt, &[x, y])?;
    if !dtype_of(b, x).is_float() {
        return Ok(less);
    }
    let (x_is_number, y_is_nan) = (super::arithmetic::eq(b, x, x)?, b.alu(Op::CmpNe, &[y, y])?);
    let before_nan = b.alu(Op::And, &[x_is_number, y_is_nan])?;
    b.alu(Op::Or, &[less, before_nan])
}

/// `[x stands before y]`, where of equal ones the `earlier` does.
fn stands_before(b: &mut dyn Builder, [x, y]: [NodeId; 2], earlier: NodeId, descending: bool) -> Result<NodeId> {
    let (before, after) = (less(b, x, y)?, less(b, y, x)?);
    let (before, after) = if descending { (after, before) } else { (before, after) };
    let not_after = logical_not(b, after)?;
    let tie = b.alu(Op::And, &[not_after, earlier])?;
    b.alu(Op::Or, &[before, tie])
}

/// The positions, along the last axis, of the elements in order (i32).
fn order(b: &mut dyn Builder, x: NodeId, descending: bool) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let x = b.add(Op::Detach, &[x], Arg::None)?;
    match shape[shape.len() - 1].as_const() {
        Some(length) if length > SHORT => by_network(b, x, length, descending),
        _ => by_rank(b, x, descending),
    }
}

/// Elements with their positions, in two tensors of one shape.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub values: NodeId,
    pub positions: NodeId,
}

impl Places {
    fn map(self, mut f: impl FnMut(NodeId) -> Result<NodeId>) -> Result<Places> {
        Ok(Places { values: f(self.values)?, positions: f(self.positions)? })
    }
}

/// A network that merges ever longer runs. The first step of a merge compares a run with the mirrored next one, so that all
/// runs ascend; the others compare halves.
fn by_network(b: &mut dyn Builder, x: NodeId, length: i64, descending: bool) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let lead = &shape[..shape.len() - 1];
    let (rows, width) =
        (lead.iter().cloned().fold(Dim::from(1), |a, b| a * b), (length as u64).next_power_of_two() as i64);
    let flat = [rows.clone(), Dim::from(width)];
    let values = reshape(b, x, &[rows.clone(), Dim::from(length)])?;
    let values = pad(b, values, &[Dim::from(0), Dim::from(0)], &flat, 0.0)?;
    let positions = arange_dim(b, &Dim::from(width), DType::I32)?;
    let positions = expand(b, positions, &flat)?;
    let mut places = Places { values, positions };
    let mut run = 1;
    while run < width {
        let mut distance = run;
        while distance > 0 {
            let blocks = [rows.clone(), Dim::from(width / (2 * distance)), Dim::from(2), Dim::from(distance)];
            let mirrored = distance == run;
            places = compare(b, places, &blocks, mirrored, length, descending)?
                .map(|joined| reshape(b, joined, &flat).and_then(|joined| b.alu(Op::Contiguous, &[joined])))?;
            distance /= 2;
        }
        run *= 2;
    }
    let order = narrow(b, places.positions, 1, 0, length)?;
    reshape(b, order, &shape)
}

/// A step of the network: of each pair that two halves of a block hold, the first one goes to the first half.
fn compare(
    b: &mut dyn Builder,
    places: Places,
    blocks: &[Dim],
    mirrored: bool,
    length: i64,
    descending: bool,
) -> Result<Places> {
    let half = |b: &mut dyn Builder, x: NodeId, number: i64| -> Result<NodeId> {
        let x = reshape(b, x, blocks)?;
        let half = narrow(b, x, 2, number, 1)?;
        if mirrored && number == 1 { flip(b, half, &[3]) } else { Ok(half) }
    };
    let first = places.map(|x| half(b, x, 0))?;
    let second = places.map(|x| half(b, x, 1))?;
    let swap = precedes(b, second, first, length, descending)?;
    let mut join = |first: NodeId, second: NodeId| -> Result<NodeId> {
        let low = b.alu(Op::Where, &[swap, second, first])?;
        let high = b.alu(Op::Where, &[swap, first, second])?;
        let high = if mirrored { flip(b, high, &[3])? } else { high };
        let shape: Shape = [0, 1, 3].iter().map(|&axis| blocks[axis].clone()).collect();
        let (low, high) = (reshape(b, low, &shape)?, reshape(b, high, &shape)?);
        stack(b, &[low, high], 2)
    };
    Ok(Places { values: join(first.values, second.values)?, positions: join(first.positions, second.positions)? })
}

/// `[x stands before y]`: what was padded is last, and ties keep their order.
pub(super) fn precedes(b: &mut dyn Builder, x: Places, y: Places, length: i64, descending: bool) -> Result<NodeId> {
    let earlier = b.alu(Op::CmpLt, &[x.positions, y.positions])?;
    let precedes = stands_before(b, [x.values, y.values], earlier, descending)?;
    let length = b.constant(Const::int(DType::I32, length.into()));
    let is_element = b.alu(Op::CmpLt, &[x.positions, length])?;
    let other_is_element = b.alu(Op::CmpLt, &[y.positions, length])?;
    let other_is_padding = logical_not(b, other_is_element)?;
    let precedes = b.alu(Op::Or, &[precedes, other_is_padding])?;
    b.alu(Op::And, &[precedes, is_element])
}

fn by_rank(b: &mut dyn Builder, x: NodeId, descending: bool) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let length = shape[shape.len() - 1].clone();
    let row = arange_dim(b, &length, DType::I32)?;
    let column = reshape(b, row, &[length.clone(), Dim::from(1)])?;
    let rank = ranks(b, Places { values: x, positions: row }, |b, x, y| {
        let earlier = b.alu(Op::CmpLt, &[x.positions, y.positions])?;
        stands_before(b, [x.values, y.values], earlier, descending)
    })?;
    // The inverse of the ranks: which element has this one.
    let rank = unsqueeze(b, rank, -2)?;
    let here = super::arithmetic::eq(b, rank, column)?;
    let zero = b.constant(Const::int(DType::I32, 0));
    let positions = b.alu(Op::Where, &[here, row, zero])?;
    reduce::sum(b, positions, Some(&[-1]), false)
}

/// How many elements of the last axis stand before each (i32).
pub(super) fn ranks(
    b: &mut dyn Builder,
    places: Places,
    precedes: impl Fn(&mut dyn Builder, Places, Places) -> Result<NodeId>,
) -> Result<NodeId> {
    let own = places.map(|x| unsqueeze(b, x, -1))?;
    let other = places.map(|x| unsqueeze(b, x, -2))?;
    let precedes = precedes(b, other, own)?;
    reduce::sum(b, precedes, Some(&[-1]), false)
}

/// Positions that put `x` in order along `axis` (i32).
pub fn argsort(b: &mut dyn Builder, x: NodeId, axis: i64, descending: bool) -> Result<NodeId> {
    if let Some(result) = super::in_row(b, x, axis, |b, x| argsort(b, x, 0, descending)) {
        return result;
    }
    axis_of("argsort", axis, &shape_of(b, x))?;
    let moved = transpose(b, x, axis, -1)?;
    let order = order(b, moved, descending)?;
    transpose(b, order, axis, -1)
}

/// `x` in order along `axis`, and the positions its elements come from (i32).
pub fn sort(b: &mut dyn Builder, x: NodeId, axis: i64, descending: bool) -> Result<Vec<NodeId>> {
    let order = argsort(b, x, axis, descending).map_err(|error| error.in_op("sort"))?;
    let is_scalar = shape_of(b, x).is_empty();
    let sorted = if is_scalar { x } else { super::index::gather(b, x, order, axis)? };
    Ok(vec![sorted, order])
}

/// The `k` greatest (or least) elements along `axis`, in order, and their positions (i32).
pub fn topk(b: &mut dyn Builder, x: NodeId, k: i64, axis: i64, largest: bool) -> Result<Vec<NodeId>> {
    let shape = shape_of(b, x);
    let length = &shape[axis_of("topk", axis, &shape)?];
    if k < 0 || length.bounds().1 < k {
        return Err(Error::new(ErrorKind::Value, "topk", format!("{k} of {length} elements")));
    }
    let moved = transpose(b, x, axis, -1)?;
    let order = match super::selection::first(b, moved, k, largest).map_err(|error| error.in_op("topk"))? {
        Some(order) => transpose(b, order, axis, -1)?,
        None => {
            let order = argsort(b, x, axis, largest).map_err(|error| error.in_op("topk"))?;
            narrow(b, order, axis, 0, k)?
        }
    };
    let values = super::index::gather(b, x, order, axis)?;
    Ok(vec![values, order])
}
