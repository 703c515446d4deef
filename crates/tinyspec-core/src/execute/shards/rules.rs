//! Sharding rules of each op: the axis along which its sources must be sharded so that a device can compute its
//! part of the result, and the computation on the device. ("axis" under "Derived Properties" of the spec.)

use super::spread::{Spread, Value};
use std::sync::Arc;
use tinyspec_ir::ops::movement;
use tinyspec_ir::{Arg, Axes, Builder, Device, Error, ErrorKind, NodeId, Op, Props, Result, Shape, cut};

impl Spread<'_> {
    /// The value of a node, whose sources have theirs.
    pub fn node(&mut self, node: NodeId) -> Result<Value> {
        let graph = self.graph;
        let (op, arg, props) = (graph.op(node), graph.arg(node), graph.props(node));
        let sources = graph.sources(node);
        let values: Vec<Value> = sources.iter().map(|source| self.values[source].clone()).collect();
        if let (Op::Buffer, Some(Device::Many(names))) = (op, &props.device) {
            return self.buffer(arg, &props.shape, names);
        }
        match (arg, values.first()) {
            (Arg::Load { device: Some(Device::Many(names)), .. }, Some(value)) => {
                return self.scattered(value, &props.shape, names);
            }
            (Arg::Load { device: Some(Device::Single(name)), .. }, Some(Value::Parts { axis, parts })) => {
                return Ok(Value::One(super::moves::joined_on(&mut self.builder, parts, *axis, name)?));
            }
            _ => {}
        }
        if values.iter().all(|value| matches!(value, Value::One(_))) {
            return self.on_one(op, arg, &values);
        }
        let shapes: Vec<&Props> = sources.iter().map(|&source| graph.props(source)).collect();
        let cuts: Vec<Option<u32>> = values.iter().map(|value| value.axis().map(|axis| axis as u32)).collect();
        let axis = cut::axis(op, arg, &shapes, &cuts, self.names.len()).map(|axis| axis as usize);
        match (op, arg) {
            (Op::Reduce, Arg::Reduce { op, axes }) if sources.len() == 1 => self.reduce(&values[0], *op, axes),
            (Op::Replicated, Arg::Number(number)) => self.replicated(&values[0], *number as usize, &props.shape),
            (Op::Pad | Op::Shrink | Op::Flip, _) => self.window(op, arg, &values[0], &shapes, &props.shape, axis),
            // Whole values are stored, so that a state is the last one, cut as the buffer is.
            (Op::Store, _) => {
                let shape = &shapes[0].shape;
                let parts = self.fit(&values[1], shape, axis)?;
                self.on_each(axis, |spread, number| {
                    super::moves::on(&mut spread.builder, parts[number], &spread.names[number])
                })
            }
            (Op::After, _) if sources[1..].iter().all(|&effect| graph.op(effect) == Op::Store) => {
                Ok(values[values.len() - 1].clone())
            }
            (Op::Reshape, _) => {
                let from = &shapes[0].shape;
                let kept = |own| cut::through_reshape(from, own, &props.shape, self.names.len());
                let source = self.fit(&values[0], from, values[0].axis().and_then(kept).map(|(source, _)| source))?;
                self.on_each(axis, |spread, number| {
                    // A reshape to the same shape is a deliberate copy of the node. Dropping it would deduplicate its users with those of
                    // the original.
                    if *from == props.shape {
                        return spread.builder.twin(source[number]);
                    }
                    let shape = spread.part_shape(&props.shape, axis, number);
                    movement::reshape(&mut spread.builder, source[number], &shape)
                })
            }
            (Op::Expand, _) => {
                let from = &shapes[0].shape;
                let lead = props.shape.len() - from.len();
                let source = self.fit(&values[0], from, axis.and_then(|axis| axis.checked_sub(lead)))?;
                self.on_each(axis, |spread, number| {
                    let shape = spread.part_shape(&props.shape, axis, number);
                    movement::expand(&mut spread.builder, source[number], &shape)
                })
            }
            _ => {
                let needed = needed(op, arg, &shapes, &cuts, axis);
                let sources = (values.iter().zip(&shapes).zip(needed))
                    .map(|((value, props), axis)| self.fit(value, &props.shape, axis))
                    .collect::<Result<Vec<_>>>()?;
                self.on_each(axis, |spread, number| {
                    let sources: Vec<NodeId> = sources.iter().map(|parts| parts[number]).collect();
                    spread.builder.add(op, &sources, arg.clone())
                })
            }
        }
    }

    fn on_one(&mut self, op: Op, arg: &Arg, values: &[Value]) -> Result<Value> {
        let sources: Vec<NodeId> =
            values.iter().filter_map(|value| if let Value::One(node) = value { Some(*node) } else { None }).collect();
        Ok(Value::One(self.builder.add(op, &sources, arg.clone())?))
    }

    /// A value whose parts are the results of `make` for each device.
    fn on_each(
        &mut self,
        axis: Option<usize>,
        mut make: impl FnMut(&mut Self, usize) -> Result<NodeId>,
    ) -> Result<Value> {
        let parts = (0..self.names.len()).map(|number| make(self, number)).collect::<Result<_>>()?;
        Ok(Value::Parts { axis, parts })
    }

    /// The shape of part `number` of a value of `shape` that is sharded along `axis`.
    fn part_shape(&self, shape: &Shape, axis: Option<usize>, number: usize) -> Shape {
        let mut shape = shape.clone();
        if let Some(dim) = axis.and_then(|axis| shape.get_mut(axis))
            && let Some(length) = dim.as_const()
        {
            let span = cut::span(length, number, self.names.len());
            *dim = (span.end - span.start).into();
        }
        shape
    }

    /// A copy to the tuple: sharded along axis 0, whatever it was before.
    fn scattered(&mut self, value: &Value, shape: &Shape, names: &[Arc<str>]) -> Result<Value> {
        self.check_names("to", names)?;
        if value.axis() != Some(0) {
            super::moves::check_even(shape, self.names.len())?;
        }
        let parts = self.fit(value, shape, Some(0))?;
        self.on_each(Some(0), |spread, number| {
            super::moves::on(&mut spread.builder, parts[number], &spread.names[number])
        })
    }

    /// A Buffer on the tuple: cut along its first axis, one part per device; a scalar is replicated.
    fn buffer(&mut self, arg: &Arg, shape: &Shape, names: &[Arc<str>]) -> Result<Value> {
        self.check_names("buffer", names)?;
        let axis = (!shape.is_empty()).then_some(0);
        if axis.is_some() {
            super::moves::check_even(shape, names.len()).map_err(|error| error.in_op("buffer"))?;
        }
        let Arg::Buffer { slot, dtype, addrspace, .. } = *arg else {
            return Err(Error::new(ErrorKind::Device, "buffer", "has no device"));
        };
        self.on_each(axis, |spread, number| {
            let part = spread.part_shape(shape, axis, number);
            let part = spread.builder.shape(&part)?;
            let device = Some(Device::Single(spread.names[number].clone()));
            spread.builder.add(Op::Buffer, &[part], Arg::Buffer { slot, dtype, device, addrspace })
        })
    }

    /// All tuples of a graph are one.
    fn check_names(&self, op: &str, names: &[Arc<str>]) -> Result<()> {
        if names == self.names {
            return Ok(());
        }
        let message = format!("a value is on {names:?} among values on {:?}", self.names);
        Err(Error::new(ErrorKind::Unsupported, op, message)
            .help("call the function without preparing it, or let it compute on one tuple of devices"))
    }

    /// Drops an axis along which all parts are equal and one element long.
    fn replicated(&mut self, value: &Value, axis: usize, shape: &Shape) -> Result<Value> {
        let parts = match value {
            Value::Parts { axis: Some(cut), parts } if *cut == axis => parts.clone(),
            _ => {
                let message = format!("the value is not cut along axis {axis} over the devices");
                return Err(Error::new(ErrorKind::Axis, Op::Replicated.name(), message));
            }
        };
        if !parts.iter().all(|&part| self.builder.props(part).shape[axis].is(1)) {
            let message = format!("axis {axis} is longer than the tuple of {} devices", self.names.len());
            return Err(Error::new(ErrorKind::Shape, Op::Replicated.name(), message));
        }
        self.on_each(None, |spread, number| movement::reshape(&mut spread.builder, parts[number], shape))
    }

    /// Pad, Shrink and Flip. Along the sharded axis, each device gets the positions that its part of the result
    /// consists of from the devices that have them.
    fn window(
        &mut self,
        op: Op,
        arg: &Arg,
        value: &Value,
        sources: &[&Props],
        shape: &Shape,
        axis: Option<usize>,
    ) -> Result<Value> {
        let from = &sources[0].shape;
        let zeros = || std::iter::repeat_n(0.into(), shape.len()).collect();
        let offset = match op {
            Op::Flip => zeros(),
            _ => sources[1].value.clone().unwrap_or_else(zeros),
        };
        let lengths = |axis: usize| Some((from[axis].as_const()?, shape[axis].as_const()?, offset[axis].as_const()?));
        let Some((axis, (length, total, start))) = axis.and_then(|axis| Some((axis, lengths(axis)?))) else {
            let parts = self.fit(value, from, None)?;
            return self.on_each(None, |spread, number| spread.windowed(op, arg, parts[number], &offset, shape));
        };
        self.on_each(Some(axis), |spread, number| {
            let own = cut::span(total, number, spread.names.len());
            // The range of the source, and the number of positions in the result before it.
            let (places, before) = match (op, arg) {
                (Op::Flip, Arg::Flags(flags)) if flags[axis] => (length - own.end..length - own.start, 0),
                (Op::Pad, _) => {
                    let first = (own.start - start).clamp(0, length);
                    (first..(own.end - start).clamp(first, length), first + start - own.start)
                }
                _ => (own.start + start..own.end + start, 0),
            };
            let mut offset = offset.clone();
            // With an empty range, the whole part is padding.
            offset[axis] = if op == Op::Pad && !places.is_empty() { before.into() } else { 0.into() };
            let part = spread.places(value, axis, length, places, number)?;
            let shape = spread.part_shape(shape, Some(axis), number);
            spread.windowed(op, arg, part, &offset, &shape)
        })
    }

    fn windowed(&mut self, op: Op, arg: &Arg, x: NodeId, offset: &Shape, shape: &Shape) -> Result<NodeId> {
        match op {
            Op::Pad => movement::pad(&mut self.builder, x, offset, shape, 0.0),
            Op::Shrink => movement::shrink(&mut self.builder, x, offset, shape),
            _ => self.builder.add(op, &[x], arg.clone()),
        }
    }
}

/// The axis along which each source must be sharded if the result is sharded along `axis`.
fn needed(op: Op, arg: &Arg, sources: &[&Props], cuts: &[Option<u32>], axis: Option<usize>) -> Vec<Option<usize>> {
    let everywhere = |axis: Option<usize>| vec![axis; sources.len()];
    let Some(axis) = axis else { return everywhere(None) };
    match (op, arg) {
        (Op::Permute, Arg::Axes(order)) => everywhere(order.get(axis).map(|&from: &u32| from as usize)),
        (Op::Stack, _) => everywhere(axis.checked_sub(1)),
        (Op::Index, _) => {
            // The first sharded index decides; without one, the source does.
            let own = |cut: Option<u32>| cut.map(|axis| axis as usize);
            let decides = cuts.iter().skip(1).position(Option::is_some).map_or(0, |position| position + 1);
            (0..sources.len()).map(|source| own(cuts[source]).filter(|_| source == decides)).collect()
        }
        _ if op.is_elementwise() => {
            let rank = sources.iter().map(|source| source.rank()).max().unwrap_or_default();
            sources.iter().map(|source| (axis + source.rank()).checked_sub(rank)).collect()
        }
        _ => everywhere(Some(axis)),
    }
}

/// Whether a Reduce along `axes` crosses devices.
pub(super) fn crosses(axes: &Axes, cut: Option<usize>) -> bool {
    cut.is_some_and(|cut| axes.contains(&(cut as u32)))
}
