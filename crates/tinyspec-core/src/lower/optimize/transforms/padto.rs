//! Padto: more trips, with validity gates.

use super::split::TILES;
use super::{Transform, operand};
use crate::lower::optimize::space::LARGEST_TILE;
use crate::lower::optimize::{AxisName, Refusal, Space};
use std::fmt;

/// Pads an axis to a multiple; positions beyond its bound have gates.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Padto {
    /// The axis; the outermost of its Range.
    pub axis: AxisName,
    /// The number of which its trips become a multiple.
    pub multiple: i64,
}

impl Transform for Padto {
    const NAME: &'static str = "padto";
    const OPERANDS: &'static str = "axis, multiple";
    const EFFECT: &'static str = "pads an axis to a multiple of trips, with gates on what lies beyond its bound";
    const REQUIRES: &'static str = "the axis is the outermost of its Range, and its trips are known";

    fn parse(operands: &[&str]) -> Option<Padto> {
        let &[axis, multiple] = operands else { return None };
        Some(Padto { axis: operand(axis)?, multiple: operand(multiple)? })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.axis, self.multiple)
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        let &Padto { axis, multiple } = self;
        let position = space.position(axis)?;
        let old = space.axes[position].clone();
        // The others of its Range fill each of its trips, and nothing is beyond.
        let is_outermost = space.axes.iter().enumerate().all(|(place, other)| {
            let fills = |trips: i64| trips == 1 || other.stride.saturating_mul(trips) <= old.stride;
            other.origin != old.origin || place == position || other.trips.is_some_and(fills)
        });
        let padded = old
            .trips
            .filter(|_| is_outermost && (1..=LARGEST_TILE).contains(&multiple))
            .and_then(|trips| trips.checked_add(multiple - 1))
            .map(|trips| trips / multiple * multiple)
            .filter(|trips| trips.checked_mul(old.stride).is_some());
        if padded.is_none() {
            return Err(Refusal::Unpaddable { axis, multiple, trips: old.trips });
        }
        if padded != old.trips {
            space.axes[position].trips = padded;
            space.origins[old.origin].padded = true;
        }
        Ok(())
    }

    fn replacements(&self, _: &Space) -> Vec<Padto> {
        let others = TILES.into_iter().filter(|&other| other != self.multiple);
        others.map(|multiple| Padto { multiple, ..self.clone() }).collect()
    }
}
