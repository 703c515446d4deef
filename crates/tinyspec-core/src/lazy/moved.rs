//! Windows at offsets that are data: a part of a tensor, or a tensor inside a larger one, whose offset changes from run
//! to run.

use super::Node;
use crate::Result;
use crate::device::{Device, Owner, Storage};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::ops::creation::{self, arange_dim};
use tinyspec_ir::ops::{arithmetic, movement};
use tinyspec_ir::{Arg, Builder, Const, ContentHash, DType, Dim, Graph, NodeId, Op, Shape};

type Numbers = SmallVec<[i64; 4]>;

/// The constant offsets of a Shrink or a Pad.
pub(super) struct Offsets {
    offsets: Numbers,
    from: Numbers,
    to: Numbers,
}

/// The same offsets as data in a buffer.
#[derive(Clone)]
pub(crate) struct Moved(pub Arc<Node>);

impl Offsets {
    /// The offsets of a node, if its shapes and offsets are all numbers.
    pub fn of(node: &Node) -> Option<Offsets> {
        let sources = node.sources();
        let (source, offsets) = (sources.first()?, sources.get(1)?);
        let offsets = static_shape(offsets.props.value.as_deref()?)?;
        let (from, to) = (static_shape(&source.props.shape)?, static_shape(&node.props.shape)?);
        let fits = |&size: &i64| (1..=i64::from(i32::MAX) / 2).contains(&size);
        (from.iter().all(fits) && to.iter().all(fits)).then_some(Offsets { offsets, from, to })
    }

    /// A hash of the sizes.
    pub fn sizes(&self) -> u64 {
        ContentHash::of(&(&self.from[..], &self.to[..])).0 as u64
    }

    /// A hash of the offsets.
    pub fn number(&self) -> Const {
        Const { dtype: DType::Index, bits: ContentHash::of(&self.offsets[..]).0 as u64 }
    }

    /// Copies them to `device`.
    ///
    /// # Errors
    /// When there is none.
    pub fn moved(&self, device: &Arc<Device>, line: &'static Location<'static>) -> Result<Moved> {
        let numbers: SmallVec<[i32; 4]> = self.offsets.iter().map(|&offset| offset as i32).collect();
        let shape = Shape::from_iter([Dim::from(numbers.len())]);
        let bytes = bytemuck::cast_slice(&numbers);
        let data = Storage::allocate(device, bytes.len(), &Owner::tensor(DType::I32, &shape, Some(line)))?;
        data.write(bytes)?;
        Ok(Moved(Node::buffer(Arc::new(data), DType::I32, &shape, Some(line))?.internal()))
    }
}

/// Whether a node of a graph is a window whose offsets are data. The gradient of such a window is another one, so
/// windows are lowered to the ops that compute them only after gradients have been derived.
pub(crate) fn is_moved(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.op(node), Op::Shrink | Op::Pad) && graph.props(graph.source(node, 1)).value.is_none()
}

/// Emits the ops that compute the Shrink or Pad of `x` to the shape `to` at `offsets` that are data.
///
/// # Errors
/// None for windows that [`tinyspec_ir::derive()`] has accepted.
pub(crate) fn window(
    graph: &mut dyn Builder,
    op: Op,
    x: NodeId,
    offsets: NodeId,
    to: &[Dim],
) -> tinyspec_ir::Result<NodeId> {
    let from = graph.props(x).shape.clone();
    // The axes after the last one that is cut are unchanged.
    let Some(last) = (0..to.len()).rev().find(|&axis| from[axis] != to[axis]) else { return Ok(x) };
    let mut value = x;
    let (mut places, mut masks) = (Vec::new(), Vec::new());
    for axis in 0..=last {
        let ramp = arange_dim(graph, &to[axis], DType::I32)?;
        if from[axis] == to[axis] {
            places.push(ramp);
            continue;
        }
        let position = graph.constant(Const::int(DType::I32, axis as i128));
        let offset = graph.add(Op::Index, &[offsets, position], Arg::None)?;
        let place = match op {
            Op::Shrink => graph.alu(Op::Add, &[ramp, offset])?,
            _ => arithmetic::sub(graph, ramp, offset)?,
        };
        if op != Op::Pad {
            places.push(place);
            continue;
        }
        let hit = if from[axis].is(1) {
            let zero = graph.constant(Const::int(DType::I32, 0));
            places.push(movement::reshape(graph, zero, &[Dim::from(1)])?);
            arithmetic::eq(graph, place, zero)?
        } else {
            places.push(place);
            // `offset <= ramp` and `ramp - length < offset`: neither side overflows, so that both bound the ramp.
            let length = creation::size(graph, &from[axis], DType::I32)?;
            let before = arithmetic::sub(graph, ramp, length)?;
            let (starts, ends) = (arithmetic::ge(graph, ramp, offset)?, graph.alu(Op::CmpLt, &[before, offset])?);
            graph.alu(Op::And, &[starts, ends])?
        };
        let trailing = to.len() - axis - 1;
        let along: Shape = [to[axis].clone()].into_iter().chain(std::iter::repeat_n(Dim::from(1), trailing)).collect();
        masks.push(movement::reshape(graph, hit, &along)?);
    }
    let is_whole = (0..=last).all(|axis| from[axis] == to[axis] || op == Op::Pad && from[axis].is(1));
    if !is_whole {
        places.insert(0, value);
        value = graph.add(Op::Index, &places, Arg::None)?;
    }
    for mask in masks {
        let dtype = graph.props(value).dtype;
        let zero = graph.constant(Const::int(dtype, 0));
        value = graph.alu(Op::Where, &[mask, value, zero])?;
    }
    movement::expand(graph, value, to)
}
