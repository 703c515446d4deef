//! The axes of a schedule, and their names.

use std::fmt;
use std::str::FromStr;
use tinyspec_ir::AxisType;

/// The name of an axis: the original Range that it is a part of, as a letter, and which part. It stays the same whatever happens
/// to the other axes, so an op of a schedule means the same wherever in the schedule it stands.
///
/// Letters count the Ranges in loop order, those over results before those over the terms of each Reduce. A Range as a whole has its
/// letter alone; parts that are split off are numbered from 1.
///
/// ```
/// use tinyspec_core::lower::optimize::AxisName;
/// let name: AxisName = "c2".parse().unwrap();
/// assert_eq!((name, name.to_string()), (AxisName::new(2, 2), "c2".to_string()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AxisName {
    range: u16,
    part: u16,
}

const LETTERS: u16 = 26;

impl AxisName {
    /// A part of the Range at a position.
    pub fn new(range: u16, part: u16) -> AxisName {
        AxisName { range, part }
    }

    /// Whether both are parts of the same Range.
    pub(crate) fn shares_range(self, other: AxisName) -> bool {
        self.range == other.range
    }
}

impl fmt::Display for AxisName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `a` to `z`, then `aa`, `ab`, …
        if let Some(before) = (self.range / LETTERS).checked_sub(1) {
            write!(f, "{}", AxisName::new(before, 0))?;
        }
        write!(f, "{}", char::from(b'a' + (self.range % LETTERS) as u8))?;
        if self.part > 0 { write!(f, "{}", self.part) } else { Ok(()) }
    }
}

/// The error for text that is not the name of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an axis has a name such as `a` or `a1`")]
pub struct NoAxisName;

impl FromStr for AxisName {
    type Err = NoAxisName;

    fn from_str(text: &str) -> Result<AxisName, NoAxisName> {
        let end = text.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(text.len());
        let (letters, part) = text.split_at(end);
        let place = letters
            .bytes()
            .try_fold(0u16, |place, letter| place.checked_mul(LETTERS)?.checked_add(u16::from(letter - b'a') + 1));
        let range = place.and_then(|place| place.checked_sub(1)).ok_or(NoAxisName)?;
        let part = match part {
            "" => 0,
            part => part
                .parse()
                .ok()
                .filter(|&number: &u16| number > 0 && !part.starts_with(['0', '+']))
                .ok_or(NoAxisName)?,
        };
        Ok(AxisName { range, part })
    }
}

/// One loop of the schedule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Axis {
    /// Which original Range it is a part of, by its position in the [`Space`](super::Space).
    pub origin: usize,
    /// Which part of it.
    pub part: u16,
    /// Number of trips; `None` where a named dim decides.
    pub trips: Option<i64>,
    /// The amount that a trip adds to the original Range.
    pub stride: i64,
    /// Its type.
    pub kind: AxisType,
}

impl Axis {
    /// The name of the axis.
    pub fn name(&self) -> AxisName {
        AxisName { range: self.origin as u16, part: self.part }
    }

    /// Part of a register tile, not a loop.
    pub(crate) fn is_tile(&self) -> bool {
        matches!(self.kind, AxisType::Upcast | AxisType::Unroll)
    }
}
