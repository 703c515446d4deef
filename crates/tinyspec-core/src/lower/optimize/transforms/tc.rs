//! Tc: the packed dot product.

use super::{Transform, operand};
use crate::lower::optimize::{Axis, AxisName, Refusal, Space};
use std::fmt;

/// Makes one trip of two of a reduction: an instruction multiplies words of two numbers (TC). Before the axis is split.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Tc {
    /// The axis.
    pub axis: AxisName,
}

impl Transform for Tc {
    const NAME: &'static str = "tc";
    const OPERANDS: &'static str = "axis";
    const EFFECT: &'static str = "makes one trip of two of a reduction, whose terms an instruction multiplies in pairs";
    const REQUIRES: &'static str = "the axis is a whole Range over an even number of terms of a sum of products that the target has an instruction for";

    fn parse(operands: &[&str]) -> Option<Tc> {
        let &[axis] = operands else { return None };
        Some(Tc { axis: operand(axis)? })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.axis)
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        space.no_sums_of_rows()?;
        let position = space.position(self.axis)?;
        let old = space.axes[position].clone();
        let range = space.origins[old.origin].range;
        let parts = space.axes.iter().filter(|axis| axis.origin == old.origin).count();
        if space.words.is_some() || parts > 1 || !space.pairs.contains(&range) {
            return Err(Refusal::NoPairs(self.axis));
        }
        let Some(trips) = old.trips.filter(|trips| trips % 2 == 0) else { return Err(Refusal::OddPairs(self.axis)) };
        space.axes[position] = Axis { trips: Some(trips / 2), stride: 2, ..old };
        space.words = Some(old.origin);
        Ok(())
    }
}
