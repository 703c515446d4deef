//! Why a schedule op does not fit: every op that [`Space::apply`](super::Space::apply) takes gives a kernel that computes
//! the same, and every other one is refused with one of these.

use super::axis::AxisName;
use super::transforms::OptOp;
use tinyspec_ir::{AxisType, Error, ErrorKind};

/// A schedule op that does not fit the axes it finds.
///
/// ```
/// use tinyspec_core::lower::optimize::{AxisName, Refusal, Refused, transforms::Swap};
/// let (a, c) = (AxisName::new(0, 0), AxisName::new(2, 0));
/// let refused = Refused { op: Swap(a, c).into(), reason: Refusal::NoAxis { axis: c, axes: "a, b".into() } };
/// assert_eq!(refused.to_string(), "swap(a, c): there is no axis c among a, b");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{op}: {reason}")]
pub struct Refused {
    /// The op.
    pub op: OptOp,
    /// Why it does not fit.
    #[source]
    pub reason: Refusal,
}

impl From<Refused> for Error {
    fn from(Refused { op, reason }: Refused) -> Error {
        let kind = if matches!(reason, Refusal::NoAxis { .. }) { ErrorKind::Axis } else { ErrorKind::Value };
        Error::new(kind, op.to_string(), reason.to_string())
    }
}

/// Why a schedule op does not fit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The name of an axis that is not there.
    #[error("there is no axis {axis} among {axes}")]
    NoAxis {
        /// The name.
        axis: AxisName,
        /// Those there are, in loop order.
        axes: String,
    },
    /// Block and Scatter write all loops themselves.
    #[error("nothing follows block(…) and scatter(), which have loops of their own")]
    AfterAlone,
    /// A transform that is a schedule by itself, on axes that are split, padded or staged for.
    #[error("it is the only op of its schedule")]
    NotAlone,
    /// A Block on a kernel without a matrix of scores.
    #[error("the kernel is not a sum over a matrix of products, or the device has workgroups: there are no blocks")]
    NoBlocks,
    /// Scatter on a kernel whose results are anything but sums at places.
    #[error("the kernel's results are not sums at places that data name, or the device has workgroups")]
    NoScatter,
    /// Pipeline and Partition fix the axes.
    #[error("a loop is pipelined or partitioned: what changes axes comes before")]
    FixedAxes,
    /// Partition on a loop that no condition bounds.
    #[error("axis {0} is not a serial loop over terms of which conditions on indices leave out many")]
    NotBounded(AxisName),
    /// A copy made on first use, by a loop that is partitioned.
    #[error("a loop is partitioned: its trips do not make all of a copy on first use")]
    PartitionedCopy,
    /// The loop of a Reduce is around a loop over its results.
    #[error("a loop over terms is around one over results: nothing is staged, paired or pipelined any more")]
    AroundResults,
    /// Nolocals, and LOCAL memory or threads that share a workgroup.
    #[error("with nolocals() there is no LOCAL memory, and no workgroup of several threads")]
    NoLocals,
    /// The factor of a Split.
    #[error("{factor} does not divide the {} of axis {axis}", in_words(.trips))]
    Indivisible {
        /// The axis.
        axis: AxisName,
        /// The factor.
        factor: i64,
        /// Trips of the axis; `None` where a named dim decides.
        trips: Option<i64>,
    },
    /// Terms are not results.
    #[error("a {from:?} axis cannot have a {to:?} part: one is over the terms of a Reduce, the other over results")]
    Direction {
        /// The axis as it is.
        from: AxisType,
        /// The part asked for.
        to: AxisType,
    },
    /// The device has no workgroups.
    #[error("a {0:?} axis needs workgroups, which this device does not have; its threads share a THREAD axis (t)")]
    NoWorkgroups(AxisType),
    /// The device has workgroups in place of a CPU's threads.
    #[error("a Thread axis is for the threads of a CPU; this device has workgroups, which share a GLOBAL axis (g)")]
    NoThreads,
    /// A second THREAD axis where threads share one.
    #[error("the threads of this device share one THREAD axis, and there is one already")]
    SecondThread,
    /// A loop is around the THREAD axis.
    #[error("the threads of this device share the outermost loop: no loop is around a THREAD axis")]
    ThreadInside,
    /// Loops that follow each other have no THREAD axis.
    #[error("the kernel has {0} loop nests that follow each other: its threads share none of them")]
    SeveralNests(usize),
    /// Two axes that cannot change places.
    #[error("this output axis cannot change places with a reduction")]
    SwapWithReduce,
    /// An axis that cannot be padded.
    #[error("axis {axis} of {} cannot be padded to a multiple of {multiple}", in_words(.trips))]
    Unpaddable {
        /// The axis.
        axis: AxisName,
        /// The multiple.
        multiple: i64,
        /// Its trips.
        trips: Option<i64>,
    },
    /// A register tile beyond all registers.
    #[error("a tile of {elements} elements is larger than {most}")]
    Tile {
        /// Elements of the tile.
        elements: i64,
        /// The most there may be.
        most: i64,
    },
    /// Tc on an axis that words cannot be made along.
    #[error("axis {0} is not a whole range of a sum of products of narrow numbers")]
    NoWords(AxisName),
    /// Tc on a number of terms that ends within a word.
    #[error("the trips of axis {axis} are not a multiple of {count}, as many as a word holds")]
    PartOfWord {
        /// The axis.
        axis: AxisName,
        /// Numbers of a word.
        count: i64,
    },
    /// Pipeline on anything but a serial loop over outputs.
    #[error("axis {0} is not a loop of known length over outputs")]
    NoLoop(AxisName),
    /// A sum that is carried from trip to trip.
    #[error("a sum is carried from trip to trip")]
    Carries,
    /// A copy of a Param that the kernel does not read, or writes.
    #[error("the kernel does not read %{0}, or also writes it")]
    NotRead(u32),
    /// A recomputed value that does not exist, or that conflicts with one that is kept.
    #[error("the kernel has no recomputed value {0} that can be kept beside those that are")]
    NoRepeat(usize),
    /// Sums to be staged where there is no tile of them.
    #[error("there is no register tile of sums with rows and with an axis that all stores are contiguous in")]
    NoEpilogue,
    /// A copy that a kernel of its own makes, where there can be none.
    #[error("%{0} is copied before the kernel only at root, without workgroups, and where no size is a named dim")]
    NoCopyBefore(u32),
    /// A second copy of the same Param.
    #[error("%{0} is copied already")]
    StagedTwice(u32),
}

fn in_words(trips: &Option<i64>) -> String {
    match trips {
        Some(1) => "1 trip".into(),
        Some(trips) => format!("{trips} trips"),
        None => "trips that a named dim decides".into(),
    }
}
