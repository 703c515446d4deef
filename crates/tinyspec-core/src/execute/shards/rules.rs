//! What every op does on values that are cut: which axis its result is cut along, and what a device computes of it.
//! ("axis" under "Derived Properties" of the spec.)

use super::spread::{Spread, Value};
use crate::tensor::LazyBuilder;
use tinyspec_ir::ops::movement;
use tinyspec_ir::{Arg, Builder, Device, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// The length of one of `count` equal parts of an axis.
pub(super) fn even(op: &str, shape: &[Dim], axis: usize, count: usize) -> Result<i64> {
    let show = tinyspec_ir::dim::show;
    let refuse = |message: String, help: &str| Err(Error::new(ErrorKind::Device, op, message).help(help));
    let Some(dim) = shape.get(axis) else {
        return refuse(
            format!("{} has no axis {axis} to cut into {count} parts, one a device", show(shape)),
            "`broadcast` gives every device the whole value",
        );
    };
    match dim.as_const() {
        Some(length) if count > 0 && length % count as i64 == 0 => Ok(length / count as i64),
        _ => refuse(
            format!("axis {axis} of {} does not divide into {count} equal parts, one a device", show(shape)),
            "`pad` the axis first, or take as many devices as divide it",
        ),
    }
}

/// Part `number` of `count` along `axis`.
pub(super) fn slice(
    builder: &mut LazyBuilder,
    node: NodeId,
    axis: usize,
    number: usize,
    count: usize,
) -> Result<NodeId> {
    let length = even("to", &builder.props(node).shape, axis, count)?;
    movement::narrow(builder, node, axis as i64, number as i64 * length, length)
}

fn unshardable(op: Op, axis: usize, why: &str) -> Error {
    Error::new(ErrorKind::Device, op.name(), format!("its source is cut along axis {axis} over the devices, {why}"))
        .help("`to` one device first, or cut along another axis")
}

impl Spread<'_> {
    /// The value of a node, whose sources have theirs.
    pub fn node(&mut self, node: NodeId) -> Result<Value> {
        let graph = self.graph;
        let (op, arg, shape) = (graph.op(node), graph.arg(node), &graph.props(node).shape);
        let sources: Vec<Value> = graph.sources(node).iter().map(|source| self.values[source].clone()).collect();
        if let Arg::Load { device: Some(Device::Many(_)), .. } = arg {
            return self.scattered(&sources[0], shape);
        }
        if sources.iter().all(|source| matches!(source, Value::Anywhere(_))) {
            return self.anywhere(op, arg, &sources);
        }
        if op.is_elementwise() {
            return self.elementwise(op, arg, shape.len(), &sources);
        }
        let axis = sources[0].axis();
        match (op, arg) {
            (Op::Reduce, Arg::Reduce { op, axes }) if sources.len() == 1 => self.reduce(&sources[0], *op, axes),
            (Op::Replicated, Arg::Number(number)) => self.replicated(&sources[0], *number as usize, shape),
            (Op::Stack, _) => self.stacked(&sources),
            (Op::Reshape, _) => {
                let source = &graph.props(graph.source(node, 0)).shape;
                let axis = axis.map(|axis| reshaped(source, axis, shape, self.names.len())).transpose()?;
                let shape = self.part_shape(op, shape, axis)?;
                self.each(axis, &sources, |spread, part| movement::reshape(&mut spread.builder, part, &shape))
            }
            (Op::Expand, _) => {
                let lead = shape.len() - graph.props(graph.source(node, 0)).rank();
                let axis = axis.map(|axis| axis + lead);
                let shape = self.part_shape(op, shape, axis)?;
                self.each(axis, &sources, |spread, part| movement::expand(&mut spread.builder, part, &shape))
            }
            (Op::Permute, Arg::Axes(order)) => {
                let axis = axis.and_then(|axis| order.iter().position(|&from| from as usize == axis));
                self.each(axis, &sources, |spread, part| spread.builder.add(op, &[part], arg.clone()))
            }
            (Op::Pad | Op::Shrink, _) => {
                let offset = graph.props(graph.source(node, 1)).value.clone();
                let source = &graph.props(graph.source(node, 0)).shape;
                let offset =
                    offset.ok_or_else(|| Error::new(ErrorKind::Device, op.name(), "its offset is computed"))?;
                if let Some(axis) = axis
                    && (source[axis] != shape[axis] || !offset[axis].is(0))
                {
                    return Err(unshardable(op, axis, "and that axis is moved"));
                }
                let shape = self.part_shape(op, shape, axis)?;
                let window = if op == Op::Pad {
                    |b: &mut LazyBuilder, x, o: &Shape, s: &Shape| movement::pad(b, x, o, s, 0.0)
                } else {
                    |b: &mut LazyBuilder, x, o: &Shape, s: &Shape| movement::shrink(b, x, o, s)
                };
                self.each(axis, &sources, |spread, part| window(&mut spread.builder, part, &offset, &shape))
            }
            (Op::Flip, Arg::Flags(flags)) => match axis {
                Some(axis) if flags[axis] => Err(unshardable(op, axis, "and that axis is reversed")),
                _ => self.each(axis, &sources, |spread, part| spread.builder.add(op, &[part], arg.clone())),
            },
            (Op::Index, _) => self.indexed(&sources, arg),
            (Op::Bitcast, _) if axis.is_some_and(|axis| axis + 1 == shape.len()) => {
                let axis = axis.unwrap_or_default();
                even(op.name(), shape, axis, self.names.len())?;
                self.each(Some(axis), &sources, |spread, part| spread.builder.add(op, &[part], arg.clone()))
            }
            _ if sources.len() == 1 => {
                self.each(axis, &sources, |spread, part| spread.builder.add(op, &[part], arg.clone()))
            }
            _ => match sources.iter().find_map(Value::axis) {
                Some(axis) => Err(unshardable(op, axis, "which this op cannot follow")),
                None => self.apart(op, arg, None, &whole(&sources)),
            },
        }
    }

    fn anywhere(&mut self, op: Op, arg: &Arg, sources: &[Value]) -> Result<Value> {
        let sources: Vec<NodeId> = sources
            .iter()
            .filter_map(|source| if let Value::Anywhere(node) = source { Some(*node) } else { None })
            .collect();
        Ok(Value::Anywhere(self.builder.add(op, &sources, arg.clone())?))
    }

    /// What `make` gives for each device.
    fn on_each(
        &mut self,
        axis: Option<usize>,
        mut make: impl FnMut(&mut Self, usize) -> Result<NodeId>,
    ) -> Result<Value> {
        let parts = (0..self.names.len()).map(|number| make(self, number)).collect::<Result<_>>()?;
        Ok(Value::Parts { axis, parts })
    }

    /// What `make` gives for each part of the first source.
    fn each(
        &mut self,
        axis: Option<usize>,
        sources: &[Value],
        mut make: impl FnMut(&mut Self, NodeId) -> Result<NodeId>,
    ) -> Result<Value> {
        self.on_each(axis, |spread, number| {
            let part = spread.whole(&sources[0], number)?;
            make(spread, part)
        })
    }

    /// The op on each device, on what it needs of sources whose users are cut along an axis of each.
    fn apart(&mut self, op: Op, arg: &Arg, axis: Option<usize>, sources: &[(Value, Option<usize>)]) -> Result<Value> {
        self.on_each(axis, |spread, number| {
            let sources = (sources.iter())
                .map(|(source, axis)| spread.local(source, number, *axis))
                .collect::<Result<Vec<_>>>()?;
            spread.builder.add(op, &sources, arg.clone())
        })
    }

    /// A copy to the tuple: cut along axis 0, whatever it was before.
    fn scattered(&mut self, source: &Value, shape: &Shape) -> Result<Value> {
        even("to", shape, 0, self.names.len())?;
        let source = self.cut_along(source, 0)?;
        self.on_each(Some(0), |spread, number| {
            let part = spread.local(&source, number, Some(0))?;
            super::moves::on(&mut spread.builder, part, &spread.names[number])
        })
    }

    /// Sources are aligned at the right. The first that is cut decides; those cut elsewhere are cut anew.
    fn elementwise(&mut self, op: Op, arg: &Arg, rank: usize, sources: &[Value]) -> Result<Value> {
        let mut ranks = Vec::with_capacity(sources.len());
        for source in sources {
            let node = self.local(source, 0, None)?;
            ranks.push(self.builder.props(node).rank());
        }
        let cut = (sources.iter().zip(&ranks)).find_map(|(source, own)| Some(source.axis()? + rank - own));
        let mut aligned = Vec::with_capacity(sources.len());
        for (source, own) in sources.iter().zip(&ranks) {
            let axis = cut.and_then(|cut| (cut + own).checked_sub(rank));
            let source = match (source.axis(), axis) {
                (Some(_), Some(axis)) => self.cut_along(source, axis)?,
                (Some(axis), None) => return Err(unshardable(op, axis, "another one along an axis that it has not")),
                (None, _) => source.clone(),
            };
            aligned.push((source, axis));
        }
        self.apart(op, arg, cut, &aligned)
    }

    /// All shards along the axis are equal, and each is one element long there: the axis is dropped.
    fn replicated(&mut self, source: &Value, axis: usize, shape: &Shape) -> Result<Value> {
        let parts = match source {
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
        let parts =
            parts.into_iter().map(|part| movement::reshape(&mut self.builder, part, shape)).collect::<Result<_>>()?;
        Ok(Value::Parts { axis: None, parts })
    }

    fn stacked(&mut self, sources: &[Value]) -> Result<Value> {
        let cut = sources.iter().find_map(Value::axis);
        let aligned = (sources.iter())
            .map(|source| Ok((cut.map_or_else(|| Ok(source.clone()), |cut| self.cut_along(source, cut))?, cut)))
            .collect::<Result<Vec<_>>>()?;
        self.apart(Op::Stack, &Arg::None, cut.map(|cut| cut + 1), &aligned)
    }

    /// Indices that are cut read a whole source; a source that is cut behind the indexed axes is read by whole indices.
    fn indexed(&mut self, sources: &[Value], arg: &Arg) -> Result<Value> {
        let indices = &sources[1..];
        let mut cut = None;
        let mut rank = 0;
        for index in indices {
            let node = self.local(index, 0, None)?;
            if let Some(axis) = index.axis() {
                if cut.is_some() {
                    return Err(unshardable(Op::Index, axis, "and so is another index"));
                }
                cut = Some(rank + axis);
            }
            rank += self.builder.props(node).rank();
        }
        let axis = match (sources[0].axis(), cut) {
            (None, cut) => cut,
            (Some(axis), None) if axis >= indices.len() => Some(axis - indices.len() + rank),
            (Some(axis), None) => return Err(unshardable(Op::Index, axis, "and that axis is indexed")),
            (Some(axis), Some(_)) => return Err(unshardable(Op::Index, axis, "and so is an index")),
        };
        self.apart(Op::Index, arg, axis, &whole(sources))
    }
}

/// Sources whose users are cut along none of their axes.
fn whole(sources: &[Value]) -> Vec<(Value, Option<usize>)> {
    sources.iter().map(|source| (source.clone(), None)).collect()
}

/// The axis of `to` that keeps the cut of `axis` of `from` into `count` parts.
fn reshaped(from: &Shape, axis: usize, to: &Shape, count: usize) -> Result<usize> {
    let before = |shape: &Shape, axis: usize| shape[..axis].iter().cloned().fold(Dim::from(1), |a, b| a * b);
    let lead = before(from, axis);
    let found = (0..to.len()).find(|&axis| before(to, axis) == lead && !to[axis].is(1));
    match found.filter(|&axis| even("reshape", to, axis, count).is_ok()) {
        Some(axis) => Ok(axis),
        None => {
            let show = tinyspec_ir::dim::show;
            let message = format!(
                "{} is cut along axis {axis} into {count} parts, and no axis of {} keeps that cut",
                show(from),
                show(to)
            );
            Err(Error::new(ErrorKind::Device, "reshape", message)
                .help("`to` one device first, or reshape before the cut"))
        }
    }
}
