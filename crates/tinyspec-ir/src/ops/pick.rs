//! Parts of tensors by a pick for each axis, read and written: `x.at((1..3, .., -1))`.

use super::slice::{self, Slice};
use super::{dtype_of, movement, shape_of};
use crate::dim::show;
use crate::{Arg, Builder, DType, Error, ErrorKind, NodeId, Op, Result};

/// What is picked along one axis, or several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// A position or a slice of one axis.
    Slice(Slice),
    /// The positions that an integer tensor names along one axis; or, of a bool tensor, where it is true along as many
    /// axes as it has.
    Tensor(NodeId),
    /// A new axis of size 1.
    NewAxis,
    /// All axes that the other picks leave.
    Rest,
}

/// Picks in their places.
pub struct Plan {
    /// Of the leading axes; those that tensors pick from are kept.
    pub slices: Vec<Slice>,
    /// Tensors, and the axis of each after slicing.
    pub tensors: Vec<(usize, NodeId)>,
    /// Axes of size 1 in the result, if no tensor picks.
    new_axes: Vec<usize>,
}

impl Plan {
    /// Where each of the picks belongs.
    ///
    /// # Errors
    /// When there are more picks than axes, or tensors beside what does not go with them.
    pub fn of(b: &dyn Builder, op: &str, x: NodeId, picks: &[Pick]) -> Result<Plan> {
        let shape = shape_of(b, x);
        let rank = shape.len();
        let refuse = |message: String| Err(Error::new(ErrorKind::Rank, op, message));
        let is_mask = |tensor: NodeId| dtype_of(b, tensor) == DType::Bool;
        let covered = |tensor: NodeId| if is_mask(tensor) { shape_of(b, tensor).len() } else { 1 };
        let taken = |pick: &Pick| match *pick {
            Pick::Slice(_) => 1,
            Pick::Tensor(tensor) => covered(tensor),
            Pick::NewAxis | Pick::Rest => 0,
        };
        let total: usize = picks.iter().map(taken).sum();
        if total > rank {
            return refuse(format!("the picks are of {total} axes, {} has {rank}", show(&shape)));
        }
        if picks.iter().filter(|pick| matches!(pick, Pick::Rest)).count() > 1 {
            return refuse("`Rest` twice: which axes each of them is, nothing says".into());
        }
        let mut plan = Plan { slices: vec![], tensors: vec![], new_axes: vec![] };
        // The axes of the result so far.
        let mut axis = 0;
        for &pick in picks {
            match pick {
                Pick::Slice(slice) => {
                    plan.slices.push(slice);
                    axis += usize::from(!matches!(slice, Slice::At(_)));
                }
                Pick::Tensor(tensor) => {
                    let axes = covered(tensor);
                    plan.slices.extend(std::iter::repeat_n(Slice::ALL, axes));
                    plan.tensors.push((axis, tensor));
                    axis += axes;
                }
                Pick::NewAxis => {
                    plan.new_axes.push(axis);
                    axis += 1;
                }
                Pick::Rest => {
                    plan.slices.extend(std::iter::repeat_n(Slice::ALL, rank - total));
                    axis += rank - total;
                }
            }
        }
        let masks = plan.tensors.iter().filter(|&&(_, tensor)| is_mask(tensor)).count();
        if masks > 0 && plan.tensors.len() > 1 {
            return refuse("a bool tensor picks beside another tensor: pick one after the other".into());
        }
        if !plan.tensors.is_empty() && !plan.new_axes.is_empty() {
            return refuse("new axes beside tensors: `.unsqueeze(axis)` makes one".into());
        }
        Ok(plan)
    }

    /// The bool tensor among the picks, and its axis.
    pub fn mask(&self, b: &dyn Builder) -> Option<(usize, NodeId)> {
        self.tensors.first().copied().filter(|&(_, mask)| dtype_of(b, mask) == DType::Bool)
    }
}

/// The part of `x` at `picks`, from the first axis on.
///
/// # Errors
/// As [`Plan::of`]; and for a bool tensor, as the data decide how much it picks.
pub fn at(b: &mut dyn Builder, x: NodeId, picks: &[Pick]) -> Result<NodeId> {
    let plan = Plan::of(b, "at", x, picks)?;
    if plan.mask(b).is_some() {
        let message = "how much a bool tensor picks, its values decide";
        return Err(Error::new(ErrorKind::Unsupported, "at", message)
            .help("`mask.where_(x, other)` keeps the shape; `x.set(mask, value)` writes"));
    }
    let part = slice::get(b, "at", x, &plan.slices)?;
    if !plan.tensors.is_empty() {
        let (axes, indices): (Vec<usize>, Vec<NodeId>) = plan.tensors.iter().copied().unzip();
        return slice::index_axes(b, "at", part, &axes, &indices);
    }
    plan.new_axes.iter().try_fold(part, |part, &axis| movement::unsqueeze(b, part, axis as i64))
}

/// `x` with `value` at `picks`.
///
/// # Errors
/// As [`Plan::of`]; and when `value` does not broadcast to the part, or its dtype does not fit.
pub fn set(b: &mut dyn Builder, x: NodeId, picks: &[Pick], value: NodeId) -> Result<NodeId> {
    let plan = Plan::of(b, "set", x, picks)?;
    if !plan.new_axes.is_empty() {
        return Err(Error::new(ErrorKind::Value, "set", "a new axis is no place of the tensor"));
    }
    let (axes, indices): (Vec<usize>, Vec<NodeId>) = plan.tensors.iter().copied().unzip();
    let (Some(&axis), Some(&first)) = (axes.first(), indices.first()) else {
        return slice::set(b, "set", x, &plan.slices, value);
    };
    let part = slice::get(b, "set", x, &plan.slices)?;
    let part = match plan.mask(b) {
        Some(_) => slice::set_mask(b, "set", part, axis, first, value)?,
        None => slice::set_axes(b, "set", part, &axes, &indices, value)?,
    };
    slice::set(b, "set", x, &plan.slices, part)
}

/// `value` as a new value of `state`: of its dtype, and spread over its shape.
///
/// # Errors
/// When it does not fit.
pub fn assigned(b: &mut dyn Builder, state: NodeId, value: NodeId) -> Result<NodeId> {
    let (want, found) = (dtype_of(b, state), dtype_of(b, value));
    if want != found {
        let message = format!("a value of {found} for a tensor of {want}");
        let help = format!("`.cast(DType::{})` makes one", want.name().to_uppercase());
        return Err(Error::new(ErrorKind::DType, "assign", message).help(help));
    }
    let shape = shape_of(b, state);
    if shape_of(b, value) == shape {
        return Ok(value);
    }
    let shape = b.shape(&shape)?;
    b.add(Op::Expand, &[value, shape], Arg::None).map_err(|error| error.in_op("assign"))
}
