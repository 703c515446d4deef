//! The mismatch that `TINYSPEC_VALIDATE` reports.

use std::fmt;
use std::sync::Arc;
use tinyspec_ir::DType;

/// A kernel whose results differ from those of the reference device.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Mismatch {
    /// The kernel.
    pub kernel: String,
    /// The user's line; empty where none is known.
    pub line: Arc<str>,
    /// Where it ran.
    pub device: String,
    /// The reference device.
    pub reference: String,
    /// The number of the buffer among those that it writes.
    pub buffer: usize,
    /// The dtype of that buffer.
    pub dtype: DType,
    /// The first element that differs.
    pub element: usize,
    /// Elements of the buffer.
    pub elements: usize,
    /// How many of them differ.
    pub count: usize,
    /// The value that it computed.
    pub found: f64,
    /// The value that the reference device computed.
    pub expected: f64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { kernel, line, device, reference, buffer, dtype, element, elements, count, found, expected } =
            self;
        write!(
            f,
            "kernel `{kernel}` computes {found} on {device} and {expected} on {reference}, at element {element} of "
        )?;
        write!(f, "its result {buffer} ({dtype}); {count} of {elements} elements differ")?;
        if line.is_empty() { Ok(()) } else { write!(f, "\n  at {line}") }
    }
}
