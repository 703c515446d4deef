//! Optimizations of a kernel, as data.

use std::fmt;
use tinyspec_ir::AxisType;

/// One optimization ("OptOps"). Axes are numbered by their position in the loop order at that moment.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum OptOp {
    /// Split an axis of `n` trips into `(n/factor, factor)`, or `(factor, n/factor)` if `top`. The part of `factor`
    /// trips gets type `target`.
    Split {
        /// The axis.
        axis: usize,
        /// Trips of the new axis; divides those of the old one.
        factor: i64,
        /// Type of the new axis.
        target: AxisType,
        /// The new axis is the outer one.
        top: bool,
    },
    /// Exchange two axes of the loop order.
    Swap(usize, usize),
    /// Pad an axis to a multiple, with validity gates.
    Padto {
        /// The axis; the outermost of its range.
        axis: usize,
        /// Of what its trips become a multiple.
        multiple: i64,
    },
    /// Copy what the axes inside of `at` read from a Param into a LOCAL buffer (packing), then read that.
    Stage {
        /// Slot of the Param.
        slot: u32,
        /// The copy is made once a trip of this axis and those around it.
        at: usize,
    },
}

impl fmt::Display for OptOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptOp::Split { axis, factor, target, top } => {
                let side = if *top { " top" } else { "" };
                write!(f, "split({axis}, {factor} {}{side})", target.letter())
            }
            OptOp::Swap(a, b) => write!(f, "swap({a}, {b})"),
            OptOp::Padto { axis, multiple } => write!(f, "padto({axis}, {multiple})"),
            OptOp::Stage { slot, at } => write!(f, "stage(%{slot}, at {at})"),
        }
    }
}
