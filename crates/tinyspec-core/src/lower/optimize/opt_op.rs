//! Optimizations of a kernel, as data.

use super::online::Blocking;
use std::fmt;
use std::str::FromStr;
use tinyspec_ir::{AxisType, Error, ErrorKind};

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
    /// Exchange two axes of the loop order. A Reduce's loop around one over its results adds a few terms to each of
    /// them a trip; the sums are in LOCAL memory.
    Swap(usize, usize),
    /// Pad an axis to a multiple, with validity gates.
    Padto {
        /// The axis; the outermost of its range.
        axis: usize,
        /// Of what its trips become a multiple.
        multiple: i64,
    },
    /// No LOCAL memory, and no threads that share a workgroup: no such axis and no copy follows.
    Nolocals,
    /// Copy what the axes from `at` on read from a Param into a LOCAL buffer (packing), then read that.
    Stage {
        /// Slot of the Param.
        slot: u32,
        /// The copy is made inside of so many axes, the outermost ones.
        at: usize,
        /// Not by loops of its own, but by the first of the trips that read it, on the way: what copies and what
        /// computes then overlap. Where that is not regular the copy has its own loops.
        first: bool,
    },
    /// Two trips of a reduction become one of an instruction that multiplies words of two numbers (TC). Before the axis
    /// is split.
    Tc {
        /// The axis.
        axis: usize,
    },
    /// The loops inside of a serial one belong to different trips of it: while one stores, those before it work on the
    /// trips that follow. The last op but for stages.
    Stagger {
        /// The axis.
        axis: usize,
    },
    /// Non-temporal stores, which bypass the caches, to every Param that the kernel does not also read: the lines of the
    /// others are cached already.
    Nontemporal,
    /// Sums over a matrix of products, as in attention: strips of lanes, and blocks of the matrix that are never in memory.
    /// The only op of its schedule.
    Block(Blocking),
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
            OptOp::Nolocals => f.write_str("nolocals()"),
            OptOp::Stage { slot, at, first } => {
                let by = if *first { " first" } else { "" };
                write!(f, "stage(%{slot}, at {at}{by})")
            }
            OptOp::Tc { axis } => write!(f, "tc({axis})"),
            OptOp::Stagger { axis } => write!(f, "stagger({axis})"),
            OptOp::Nontemporal => f.write_str("nontemporal()"),
            OptOp::Block(Blocking { vectors, rows, tiles }) => write!(f, "block({vectors}, {rows}, {tiles})"),
        }
    }
}

impl FromStr for OptOp {
    type Err = Error;

    /// Reads an op as it is printed.
    fn from_str(text: &str) -> Result<OptOp, Error> {
        let wrong = || {
            let message = format!("`{text}` is no schedule op");
            Error::new(ErrorKind::Value, "schedule", message)
                .help("there are split(axis, factor letter [top]), swap(axis, axis), padto(axis, multiple), nolocals(), stage(%slot, at axis [first]), tc(axis), stagger(axis), nontemporal(), block(vectors, rows, tiles)")
        };
        let (name, operands) = text.trim().strip_suffix(')').and_then(|text| text.split_once('(')).ok_or_else(wrong)?;
        let operands: Vec<&str> = operands.split([',', ' ']).filter(|word| !word.is_empty()).collect();
        let number = |word: &str| word.parse::<i64>().map_err(|_| wrong());
        let axis = |word: &str| word.parse::<usize>().map_err(|_| wrong());
        let kind =
            |letter: &str| AxisType::ALL.into_iter().find(|kind| letter == kind.letter().to_string()).ok_or_else(wrong);
        Ok(match (name, &operands[..]) {
            ("split", [position, factor, letter, side @ ..]) if matches!(side, [] | ["top"]) => OptOp::Split {
                axis: axis(position)?,
                factor: number(factor)?,
                target: kind(letter)?,
                top: !side.is_empty(),
            },
            ("swap", [a, b]) => OptOp::Swap(axis(a)?, axis(b)?),
            ("padto", [position, multiple]) => OptOp::Padto { axis: axis(position)?, multiple: number(multiple)? },
            ("nolocals", []) => OptOp::Nolocals,
            ("nontemporal", []) => OptOp::Nontemporal,
            ("stage", [slot, "at", at, by @ ..]) if matches!(by, [] | ["first"]) => {
                let slot = slot.strip_prefix('%').and_then(|slot| slot.parse().ok()).ok_or_else(wrong)?;
                OptOp::Stage { slot, at: axis(at)?, first: !by.is_empty() }
            }
            ("tc", [position]) => OptOp::Tc { axis: axis(position)? },
            ("block", [vectors, rows, tiles]) => {
                OptOp::Block(Blocking { vectors: number(vectors)?, rows: number(rows)?, tiles: number(tiles)? })
            }
            ("stagger", [position]) => OptOp::Stagger { axis: axis(position)? },
            _ => return Err(wrong()),
        })
    }
}
