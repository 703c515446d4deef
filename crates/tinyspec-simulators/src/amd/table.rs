//! The simulated instructions, one per row: names, operand types and the function of the lanes.
//!
//! Where chip families name an instruction differently, its row lists the names, separated by `|`. Suffixes that only select
//! an encoding, such as `_e64`, are left out.

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
    /// EXEC is the result; on gfx9 a mask is written, too.
    ResultActive,
    /// A mask follows the result.
    Out,
    /// A mask follows the result, and another is the last operand.
    OutIn,
    /// The last operand is a mask.
    In,
    /// VCC is an implicit operand.
    InCarry,
}

/// A vector instruction.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub to: Kind,
    pub from: &'static [Kind],
    pub function: Function,
    pub masks: Masks,
    /// The destination is also the last operand, which the text omits.
    pub accumulates: bool,
    /// Which parts of the result depend on unwritten parts of the operands is found by trying other values for those: the low
    /// half of a sum does not depend on the high halves. Always set where the result is raw bits.
    pub follows: bool,
    /// A 16-bit result goes to this half and preserves the other, on every chip.
    pub half: Option<Half>,
    /// The saturating function that `clamp` selects on an integer instruction.
    pub saturating: Option<Function>,
}

impl Row {
    pub const fn new(to: Kind, from: &'static [Kind], function: Function) -> Row {
        let (masks, accumulates, half, saturating) = (Masks::None, false, None, None);
        // Each of two packed numbers depends only on its own operands, the low byte of a sum only on low bytes.
        let follows = to.is_bits() || matches!(to, Kind::PairI16 | Kind::PairF16 | Kind::I16);
        Row { to, from, function, masks, accumulates, follows, half, saturating }
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

/// The row of a memory access.
pub(super) fn transfer(name: &str) -> Option<&'static Transfer> {
    static ROWS: OnceLock<HashMap<&'static str, Transfer>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        memory::rows().into_iter().flat_map(|(names, row)| names.split('|').map(move |name| (name, row))).collect()
    });
    rows.get(name)
}
