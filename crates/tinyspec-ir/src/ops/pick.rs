//! Parts of tensors by a pick for each axis, read and written: `x.at((1..3, .., -1))`.

use super::slice::{self, Slice};
use super::{dtype_of, masked, movement, shape_of};
use crate::dim::show;
use crate::{Arg, Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// A selection along one axis, or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pick {
    /// A position or a slice of one axis.
    Slice(Slice),
    /// The positions that an integer tensor names along one axis; or, of a bool tensor, where it is true along as many
    /// axes as it has.
    Tensor(NodeId),
    /// Where a bool tensor is true, once that is known.
    Places {
        /// The positions of what is true, row by row.
        positions: NodeId,
        /// The bool tensor.
        mask: NodeId,
    },
    /// A new axis of size 1.
    NewAxis,
    /// All axes that the other picks leave.
    Rest,
}

/// Picks in their places.
struct Plan {
    /// Of the leading axes; those that tensors pick from are kept.
    slices: Vec<Slice>,
    /// How many axes of the sliced part each axis is that the tensors see: none is a new one, several are seen as one.
    seen: Vec<usize>,
    /// Tensors, and the axis of each as they see it.
    tensors: Vec<(usize, NodeId)>,
    /// Shapes of bool tensors whose positions are known, by the axis of these.
    places: Vec<(usize, Shape)>,
    /// The bool tensor among those tensors, and its axis.
    mask: Option<(usize, NodeId)>,
}

impl Plan {
    /// Where each of the picks belongs.
    fn of(b: &dyn Builder, op: &str, x: NodeId, picks: &[Pick]) -> Result<Plan> {
        let shape = shape_of(b, x);
        let rank = shape.len();
        let refuse = |message: String, help: &str| Err(Error::new(ErrorKind::Rank, op, message).help(help));
        let is_mask = |tensor: NodeId| dtype_of(b, tensor) == DType::Bool;
        let taken = |pick: &Pick| match *pick {
            Pick::Slice(_) => 1,
            Pick::Tensor(tensor) if !is_mask(tensor) => 1,
            Pick::Tensor(mask) | Pick::Places { mask, .. } => shape_of(b, mask).len(),
            Pick::NewAxis | Pick::Rest => 0,
        };
        let total: usize = picks.iter().map(taken).sum();
        if total > rank {
            let message = format!("the picks are of {total} axes, {} has {rank}", show(&shape));
            return refuse(message, "leave out the last ones, or begin with `NewAxis` for each axis that is to be new");
        }
        if picks.iter().filter(|pick| matches!(pick, Pick::Rest)).count() > 1 {
            return refuse(
                "`Rest` twice: it cannot be inferred which axes each of them covers".into(),
                "write `..` for each axis of one of them",
            );
        }
        let mut plan = Plan { slices: vec![], seen: vec![], tensors: vec![], places: vec![], mask: None };
        for pick in picks {
            let (axis, axes) = (plan.seen.len(), taken(pick));
            match *pick {
                Pick::Slice(ref slice) => {
                    plan.seen.extend((!matches!(slice, Slice::At(_))).then_some(1));
                    plan.slices.push(slice.clone());
                    continue;
                }
                Pick::Tensor(tensor) => {
                    plan.tensors.push((axis, tensor));
                    plan.seen.extend(std::iter::repeat_n(1, axes));
                    plan.mask = plan.mask.or(is_mask(tensor).then_some((axis, tensor)));
                }
                Pick::Places { positions, mask } => {
                    plan.tensors.push((axis, positions));
                    plan.places.push((axis, shape_of(b, mask)));
                    plan.seen.push(axes);
                }
                Pick::NewAxis => plan.seen.push(0),
                Pick::Rest => {
                    plan.slices.extend(std::iter::repeat_n(Slice::ALL, rank - total));
                    plan.seen.extend(std::iter::repeat_n(1, rank - total));
                }
            }
            plan.slices.extend(std::iter::repeat_n(Slice::ALL, axes));
        }
        Ok(plan)
    }

    /// Moves the tensors to where `x` is.
    fn come_to(&mut self, b: &mut dyn Builder, x: NodeId) -> Result<()> {
        for tensor in self.tensors.iter_mut().chain(&mut self.mask).map(|(_, tensor)| tensor) {
            *tensor = b.beside(x, *tensor)?;
        }
        Ok(())
    }

    /// The axes and the tensors that pick from them.
    fn indices(&self) -> (Vec<usize>, Vec<NodeId>) {
        self.tensors.iter().copied().unzip()
    }

    /// The sliced part as the tensors see it.
    fn view(&self, b: &mut dyn Builder, op: &str, part: NodeId) -> Result<NodeId> {
        let shape = shape_of(b, part);
        let (mut view, mut next) = (Shape::new(), 0);
        for (axis, &count) in self.seen.iter().enumerate() {
            let dims = &shape[next..next + count];
            if let Some((_, mask)) = self.places.iter().find(|(place, mask)| *place == axis && mask[..] != *dims) {
                let message = format!("a mask of {} over {}", show(mask), show(dims));
                return Err(Error::new(ErrorKind::Shape, op, message)
                    .help("a mask has the sizes of the axes that it picks from"));
            }
            view.push(dims.iter().fold(Dim::from(1), |product, dim| product * dim.clone()));
            next += count;
        }
        view.extend(shape[next..].iter().cloned());
        if view == shape { Ok(part) } else { movement::reshape(b, part, &view) }
    }
}

/// The part of `x` at `picks`, from the first axis on.
///
/// # Errors
/// When there are more picks than axes, or a tensor picks in no way; and for a bool tensor whose positions are not known, as
/// the data decide how much it picks.
pub fn at(b: &mut dyn Builder, x: NodeId, picks: &[Pick]) -> Result<NodeId> {
    let plan = Plan::of(b, "at", x, picks)?;
    if plan.mask.is_some() {
        let message = "how much a bool tensor picks, its values decide";
        return Err(Error::new(ErrorKind::Unsupported, "at", message)
            .help("`mask.where_(x, other)` keeps the shape; `x.set(mask, value)` writes"));
    }
    let part = slice::get(b, "at", x, &plan.slices)?;
    let part = plan.view(b, "at", part)?;
    match plan.indices() {
        (axes, _) if axes.is_empty() => Ok(part),
        (axes, indices) => slice::index_axes(b, "at", part, &axes, &indices),
    }
}

/// `x` with `value` at `picks`. A bool tensor alone picks by its values, which need not be known ([`masked::set_mask`]).
///
/// # Errors
/// As [`at`]; and when `value` does not broadcast to the part, or its dtype does not fit.
pub fn set(b: &mut dyn Builder, x: NodeId, picks: &[Pick], value: NodeId) -> Result<NodeId> {
    const OP: &str = "set";
    let mut plan = Plan::of(b, OP, x, picks)?;
    plan.come_to(b, x)?;
    if plan.mask.is_some() && plan.tensors.len() > 1 {
        let message = "a bool tensor picks beside another tensor: how much, its values decide";
        return Err(Error::new(ErrorKind::Unsupported, OP, message).help("pick one after the other"));
    }
    if plan.tensors.is_empty() && plan.seen.iter().all(|&count| count == 1) {
        return slice::set(b, OP, x, &plan.slices, value);
    }
    let part = slice::get(b, OP, x, &plan.slices)?;
    let shape = shape_of(b, part);
    let view = plan.view(b, OP, part)?;
    let written = match (plan.mask, plan.indices()) {
        (Some((axis, mask)), _) => masked::set_mask(b, OP, view, axis, mask, value)?,
        (None, (axes, _)) if axes.is_empty() => slice::set(b, OP, view, &[], value)?,
        (None, (axes, indices)) => {
            let (hit, value) = slice::set_axes(b, OP, view, &axes, &indices, value)?;
            let (hit, value) = (movement::reshape(b, hit, &shape)?, movement::reshape(b, value, &shape)?);
            return slice::set_where(b, OP, x, &plan.slices, hit, value);
        }
    };
    let written = movement::reshape(b, written, &shape)?;
    slice::set(b, OP, x, &plan.slices, written)
}

/// How many values of `value` a bool tensor among `picks` takes one after the other, if it does: that it has as many places
/// the graph cannot say.
///
/// # Errors
/// As [`set`].
pub fn counted(b: &mut dyn Builder, x: NodeId, picks: &[Pick], value: NodeId) -> Result<Option<Dim>> {
    let plan = Plan::of(b, "set", x, picks)?;
    let Some((axis, mask)) = plan.mask else { return Ok(None) };
    let part = slice::get(b, "set", x, &plan.slices)?;
    let view = plan.view(b, "set", part)?;
    Ok(masked::in_order(b, view, axis, mask, value))
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
