//! Reduces across devices.

use super::moves::on;
use super::rules::crosses;
use super::spread::{Spread, Value};
use tinyspec_ir::{Arg, Axes, Builder, NodeId, Op, Result};

impl Spread<'_> {
    /// Each device reduces its part. If the sharded axis is among `axes`, the first device combines the results and the
    /// others get a copy, so that they do not differ in rounding.
    pub fn reduce(&mut self, value: &Value, op: Op, axes: &Axes) -> Result<Value> {
        let arg = Arg::Reduce { op, axes: axes.clone() };
        let (cut, sources) = match value {
            Value::One(node) => return Ok(Value::One(self.builder.add(Op::Reduce, &[*node], arg)?)),
            Value::Parts { axis, parts } => (*axis, parts.clone()),
        };
        let parts = sources
            .iter()
            .map(|&part| self.builder.add(Op::Reduce, &[part], arg.clone()))
            .collect::<Result<Vec<_>>>()?;
        match crosses(axes, cut) {
            true => self.joined(op, &parts),
            false => Ok(Value::Parts { axis: cut, parts }),
        }
    }

    fn joined(&mut self, op: Op, parts: &[NodeId]) -> Result<Value> {
        let names = self.names;
        let mut total = parts[0];
        for &part in &parts[1..] {
            let part = on(&mut self.builder, part, &names[0])?;
            total = self.builder.alu(op, &[total, part])?;
        }
        let parts = names.iter().map(|name| on(&mut self.builder, total, name)).collect::<Result<_>>()?;
        Ok(Value::Parts { axis: None, parts })
    }
}
