//! The instructions that are simulated, one a row: names, what the operands are, and the function of the lanes.
//!
//! Where families of chips name an instruction differently, its row lists the names, separated by `|`. Suffixes such as
//! `_e64`, which only choose an encoding, are left out.

mod compare;
mod float;
mod integer;
mod memory;
mod narrow;
mod scalar;

use super::kind::Kind;
use super::lanes::Function;
use super::text::Half;
pub(super) use memory::{Atomic, Permutation, Place, Transfer, TransferKind};
pub(super) use scalar::{Condition, Follows, Scalar, ScalarKind};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The masks among the operands of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Masks {
    None,
    /// The mask is the result.
    Result,
    /// EXEC is the result, and on gfx9 a mask as well.
    ResultActive,
    /// A mask follows the result.
    Out,
    /// A mask follows the result, and another is the last operand.
    OutIn,
    /// The last operand is a mask.
    In,
    /// VCC is an operand without being named.
    InCarry,
}

/// A vector instruction.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub to: Kind,
    pub from: &'static [Kind],
    pub function: Function,
    pub masks: Masks,
    /// The last operand is the register of the result, and does not appear in the text.
    pub accumulates: bool,
    /// Which parts of the result depend on unwritten parts of operands is found by trying other values for these: the low half
    /// of a sum is right whatever the high halves are. Always so for results that are bits.
    pub follows: bool,
    /// A narrow result goes to this half and preserves the other one, on every chip.
    pub half: Option<Half>,
    /// What `clamp` makes of an instruction of integers: its function, which then stops at the least and the greatest number.
    pub saturating: Option<Function>,
}

impl Row {
    pub const fn new(to: Kind, from: &'static [Kind], function: Function) -> Row {
        let (masks, accumulates, half, saturating) = (Masks::None, false, None, None);
        Row { to, from, function, masks, accumulates, follows: to.is_bits(), half, saturating }
    }

    pub const fn masks(self, masks: Masks) -> Row {
        Row { masks, ..self }
    }

    pub const fn accumulates(self) -> Row {
        Row { accumulates: true, ..self }
    }

    pub const fn follows(self) -> Row {
        Row { follows: true, ..self }
    }

    pub const fn half(self, half: Half) -> Row {
        Row { half: Some(half), ..self }
    }

    pub const fn saturating(self, function: Function) -> Row {
        Row { saturating: Some(function), ..self }
    }
}

type Vectors = Vec<(&'static str, Row)>;

/// The row of a vector instruction, by its name without the encoding.
pub(super) fn vector(name: &str) -> Option<&'static Row> {
    static ROWS: OnceLock<HashMap<&'static str, Row>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let all = [float::rows(), integer::rows(), narrow::rows(), compare::rows()].concat();
        all.into_iter().flat_map(|(names, row)| names.split('|').map(move |name| (name, row))).collect()
    });
    rows.get(name)
}

/// The row of a scalar instruction.
pub(super) fn scalar(name: &str) -> Option<&'static Scalar> {
    static ROWS: OnceLock<HashMap<&'static str, Scalar>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        scalar::rows().into_iter().flat_map(|(names, row)| names.split('|').map(move |name| (name, row))).collect()
    });
    rows.get(name)
}

/// The row of an access of memory.
pub(super) fn transfer(name: &str) -> Option<&'static Transfer> {
    static ROWS: OnceLock<HashMap<&'static str, Transfer>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        memory::rows().into_iter().flat_map(|(names, row)| names.split('|').map(move |name| (name, row))).collect()
    });
    rows.get(name)
}
