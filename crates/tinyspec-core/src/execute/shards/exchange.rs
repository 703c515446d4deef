//! Exchange of data: gives each device the part that it needs of a value that is spread over the devices.

use super::moves::on;
use super::spread::{Spread, Value};
use std::ops::Range;
use tinyspec_ir::ops::movement;
use tinyspec_ir::{NodeId, Result, Shape, cut};

impl Spread<'_> {
    /// The part of a value of `shape` that each device needs if its users are sharded along `axis`; without an axis, all of it.
    pub fn fit(&mut self, value: &Value, shape: &Shape, axis: Option<usize>) -> Result<Vec<NodeId>> {
        // All devices need a value that is broadcast along the axis.
        let axis = axis.filter(|&axis| shape.get(axis).is_some_and(|dim| !dim.is(1)));
        let length = |axis: usize| shape.get(axis)?.as_const();
        let each = 0..self.names.len();
        match (value, axis) {
            (Value::One(node), None) => Ok(vec![*node; self.names.len()]),
            (Value::Parts { axis: own, parts }, axis) if *own == axis => Ok(parts.clone()),
            (_, Some(axis)) => match length(axis) {
                Some(length) => each.map(|number| self.part(value, axis, length, number)).collect(),
                None => self.fit(value, shape, None),
            },
            (Value::Parts { axis: own, parts }, None) => match own.and_then(|own| Some((own, length(own)?))) {
                Some((own, length)) => each.map(|number| self.places(value, own, length, 0..length, number)).collect(),
                None => Ok(parts.clone()),
            },
        }
    }

    /// Part `number` of a value along `axis`, which is not the axis that is sharded now.
    fn part(&mut self, value: &Value, axis: usize, length: i64, number: usize) -> Result<NodeId> {
        let count = self.names.len();
        let span = cut::span(length, number, count);
        match value {
            Value::One(node) => self.narrow(*node, axis, span),
            Value::Parts { axis: None, parts } => self.narrow(parts[number], axis, span),
            // An all-to-all exchange.
            Value::Parts { axis: Some(own), parts } => {
                let pieces = (parts.iter())
                    .map(|&part| {
                        let piece = self.narrow(part, axis, span.clone())?;
                        on(&mut self.builder, piece, &self.names[number])
                    })
                    .collect::<Result<Vec<_>>>()?;
                self.cat(&pieces, *own)
            }
        }
    }

    /// Gives device `number` the range `wanted` of an axis of `length`.
    pub fn places(
        &mut self,
        value: &Value,
        axis: usize,
        length: i64,
        wanted: Range<i64>,
        number: usize,
    ) -> Result<NodeId> {
        let parts = match value {
            Value::One(node) => return self.narrow(*node, axis, wanted),
            Value::Parts { axis: Some(cut), parts } if *cut == axis => parts,
            Value::Parts { parts, .. } => return self.narrow(parts[number], axis, wanted),
        };
        if wanted.is_empty() {
            return self.narrow(parts[number], axis, 0..0);
        }
        let mut pieces = Vec::new();
        for (holder, &part) in parts.iter().enumerate() {
            let held = cut::span(length, holder, parts.len());
            let (start, end) = (wanted.start.max(held.start), wanted.end.min(held.end));
            if start < end {
                let piece = self.narrow(part, axis, start - held.start..end - held.start)?;
                pieces.push(on(&mut self.builder, piece, &self.names[number])?);
            }
        }
        self.cat(&pieces, axis)
    }

    fn narrow(&mut self, node: NodeId, axis: usize, places: Range<i64>) -> Result<NodeId> {
        movement::narrow(&mut self.builder, node, axis as i64, places.start, places.end - places.start)
    }

    fn cat(&mut self, pieces: &[NodeId], axis: usize) -> Result<NodeId> {
        match pieces {
            [piece] => Ok(*piece),
            pieces => movement::cat(&mut self.builder, pieces, axis as i64),
        }
    }
}
