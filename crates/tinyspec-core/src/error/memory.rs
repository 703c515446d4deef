//! Reports of a device's memory use.

use bytesize::ByteSize;
use std::fmt;
use tinyspec_ir::Location;

/// How many of the largest buffers are reported.
pub(crate) const LARGEST_TOLD: usize = 8;

/// A buffer that is in use.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Held {
    /// Its contents: a tensor with its dtype and shape, the temporaries of a program, …
    pub what: String,
    /// Its size, as asked for.
    pub bytes: u64,
    /// The user's line that made it, where one is known.
    pub location: Option<Location>,
}

/// The memory of a device at one moment.
///
/// ```
/// # use tinyspec_core::{Tensor, execute::device};
/// # fn main() -> tinyspec_core::Result<()> {
/// let weights = Tensor::ones([256, 256]).to("interpreter") + 0.5;
/// weights.realize()?;
/// let report = device("interpreter")?.memory();
/// assert!(report.used >= 256 * 256 * 4 && report.peak >= report.used);
/// println!("{report}");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The device.
    pub device: String,
    /// Bytes of buffers that tensors and plans hold, rounded up as they are allocated.
    pub used: u64,
    /// The most that was used at a time.
    pub peak: u64,
    /// Bytes of freed buffers that are kept for the next of their size; given back before memory runs out.
    pub kept: u64,
    /// The limit of `used`, from `TINYSPEC_MEMORY`.
    pub limit: Option<u64>,
    /// The number of buffers in use.
    pub buffers: usize,
    /// The largest buffers in use, at most 8, the largest first.
    pub largest: Vec<Held>,
}

/// A size to read, in powers of ten.
pub(crate) fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().si().to_string()
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryReport { device, used, peak, kept, limit, buffers, largest } = self;
        write!(f, "`{device}` uses {} in {buffers} buffers", size(*used))?;
        if let Some(limit) = limit {
            write!(f, " of a limit of {}", size(*limit))?;
        }
        write!(f, " (at most {} so far, {} kept for reuse)", size(*peak), size(*kept))?;
        for held in largest {
            write!(f, "\n  {:>9}  {}", size(held.bytes), held.what)?;
            if let Some(location) = &held.location {
                write!(f, "  {location}")?;
            }
        }
        match buffers.saturating_sub(largest.len()) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} smaller"),
        }
    }
}
