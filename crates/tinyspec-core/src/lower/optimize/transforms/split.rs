//! Split: two loops for one.

use super::{OptOp, Padto, Transform, operand};
use crate::lower::optimize::{Axis, AxisName, Refusal, Scheduler, Space};
use std::fmt;
use tinyspec_ir::AxisType;

/// Splits an axis of `n` trips into `(n/factor, factor)`, or `(factor, n/factor)` if `top`. The part of `factor` trips gets
/// type `target`.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Split {
    /// The axis.
    pub axis: AxisName,
    /// Trips of the new axis; divides those of the old one.
    pub factor: i64,
    /// Type of the new axis.
    pub target: AxisType,
    /// Whether the new axis is the outer one.
    pub top: bool,
}

/// Trips that register tiles may have along an axis.
pub(super) const TILES: [i64; 17] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64, 96, 128];
/// Trips of the blocks that loops are cut into.
const BLOCKS: [i64; 7] = [8, 16, 32, 64, 128, 256, 512];

impl Transform for Split {
    const NAME: &'static str = "split";
    const OPERANDS: &'static str = "axis, factor type [top]";
    const EFFECT: &'static str = "splits an axis of n trips into an outer one of n/factor and an inner one of factor trips, or with `top` the other way \
         round; the one of factor trips is a new part of the Range and has the type";
    const REQUIRES: &'static str =
        "the factor divides the trips, which are known; an axis over terms of a Reduce has parts over terms";

    fn parse(operands: &[&str]) -> Option<Split> {
        let &[axis, factor, letter, ref side @ ..] = operands else { return None };
        if !matches!(side, [] | ["top"]) {
            return None;
        }
        let target = AxisType::ALL.into_iter().find(|kind| letter == kind.letter().to_string())?;
        Some(Split { axis: operand(axis)?, factor: operand(factor)?, target, top: !side.is_empty() })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.top { " top" } else { "" };
        write!(f, "{}, {} {}{side}", self.axis, self.factor, self.target.letter())
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        let &Split { axis, factor, target, top } = self;
        let position = space.position(axis)?;
        let old = space.axes[position].clone();
        let Some(trips) = old.trips.filter(|trips| factor > 0 && trips % factor == 0) else {
            return Err(Refusal::Indivisible { axis, factor, trips: old.trips });
        };
        if old.kind.is_reduce() != target.is_reduce() {
            return Err(Refusal::Direction { from: old.kind, to: target });
        }
        let (rest, part) = (trips / factor, space.next_part(old.origin));
        let (outer, inner) = if top {
            let outer = Axis { part, trips: Some(factor), stride: old.stride * rest, kind: target, ..old };
            (outer, Axis { trips: Some(rest), ..old })
        } else {
            let outer = Axis { trips: Some(rest), stride: old.stride * factor, ..old };
            (outer, Axis { part, trips: Some(factor), kind: target, ..old })
        };
        space.axes.splice(position..=position, [outer, inner]);
        Ok(())
    }

    fn additions(_: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
        let mut more: Vec<Vec<OptOp>> = Vec::new();
        for position in space.loops() {
            let (axis, kind) = (space.name(position), space.axes[position].kind);
            let Some(trips) = space.axes[position].trips else { continue };
            let (tile, block) = match kind.is_reduce() {
                true => (AxisType::Unroll, AxisType::Reduce),
                false => (AxisType::Upcast, AxisType::Loop),
            };
            for factor in TILES.into_iter().filter(|&factor| factor <= trips) {
                let split = Split { axis, factor, target: tile, top: false }.into();
                match trips % factor {
                    0 => more.push(vec![split]),
                    // Padding that computes an eighth more can still pay.
                    rest if (factor - rest) * 8 <= trips => {
                        more.push(vec![Padto { axis, multiple: factor }.into(), split]);
                    }
                    _ => {}
                }
            }
            for factor in BLOCKS.into_iter().filter(|&factor| factor < trips && trips % factor == 0) {
                more.push(vec![Split { axis, factor, target: block, top: false }.into()]);
            }
        }
        more
    }

    fn replacements(&self, _: &Space) -> Vec<Split> {
        let factors: &[i64] = match self.target {
            kind if kind.is_parallel() => &[],
            AxisType::Upcast | AxisType::Unroll => &TILES,
            _ => &BLOCKS,
        };
        let others = factors.iter().filter(|&&factor| factor != self.factor);
        others.map(|&factor| Split { factor, ..self.clone() }).collect()
    }
}
