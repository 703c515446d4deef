//! Tc: the packed dot product.

use super::{Transform, operand};
use crate::lower::optimize::{Axis, AxisName, Refusal, Space};
use std::fmt;
use tinyspec_ir::words;

/// Makes one trip of as many of a reduction as a word holds: an instruction multiplies words (TC). Before the axis is split.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Tc {
    /// The axis.
    pub axis: AxisName,
}

impl Transform for Tc {
    const NAME: &'static str = "tc";
    const OPERANDS: &'static str = "axis";
    const EFFECT: &'static str = "makes one trip of two or four of a reduction, whose terms an instruction multiplies in words of as many numbers";
    const REQUIRES: &'static str = "the axis is a whole Range over whole words of a sum of products of narrow numbers";

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
        let numbers = space
            .facts
            .numbers
            .filter(|_| space.words.is_none() && parts == 1 && space.facts.word_ranges.contains(&range));
        let Some(count) = numbers.map(|numbers| words::count(numbers) as i64) else {
            return Err(Refusal::NoWords(self.axis));
        };
        let Some(trips) = old.trips.filter(|trips| trips % count == 0) else {
            return Err(Refusal::PartOfWord { axis: self.axis, count });
        };
        space.axes[position] = Axis { trips: Some(trips / count), stride: count, ..old };
        space.words = Some(old.origin);
        Ok(())
    }
}
