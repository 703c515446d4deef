//! The error type of the public API. It wraps the errors of all layers below.

mod memory;
mod mismatch;

pub use memory::{Held, MemoryReport};
pub(crate) use memory::{LARGEST_TOLD, size};
pub use mismatch::Mismatch;

use tinyspec_backends::BackendError;
use tinyspec_backends::settings::UnknownSetting;
use tinyspec_ir::{ErrorKind, Location};

/// Result of everything that runs tensors.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error in building, compiling or running a tensor program.
///
/// `Debug` gives the same text as `Display`, because `main` and `unwrap` print errors by `Debug`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An op refused its sources: names the op, shapes and dtypes, and the user's line.
    #[error(transparent)]
    Graph(#[from] tinyspec_ir::Error),
    /// A compiler or a device failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// No processor of this name.
    #[error(transparent)]
    Processor(#[from] tinyspec_backends::UnknownProcessor),
    /// No GPU has this name.
    #[error(transparent)]
    Gpu(#[from] tinyspec_backends::UnknownGpu),
    /// No device of this name.
    #[error("{}no device `{name}`; there are: {known}{}", prefix(op), place(location))]
    UnknownDevice {
        /// The op that was to move or create a tensor there.
        op: Option<String>,
        /// Name as asked for.
        name: String,
        /// Names that would have worked.
        known: String,
        /// The user's line, if a tensor was to go there.
        location: Option<Location>,
    },
    /// A device has no memory left for a buffer, or would exceed its limit (`TINYSPEC_MEMORY`).
    #[error("memory: no room for a {wanted}: {reason}{}\n{report}\n  help: {MEMORY_HELP}", place(location))]
    Memory {
        /// The buffer that was asked for, and its size.
        wanted: String,
        /// Why there is no room.
        reason: String,
        /// The device's memory use, with its largest buffers first.
        report: Box<MemoryReport>,
        /// The user's line.
        location: Option<Location>,
    },
    /// A custom function failed or panicked, or there is no code of it for the device.
    #[error("custom function `{name}` on {device}: {reason}{}", place(location))]
    CustomFunction {
        /// The function.
        name: String,
        /// The device of its arguments.
        device: String,
        /// Description of the failure.
        reason: String,
        /// The line of the call.
        location: Option<Location>,
    },
    /// Under `TINYSPEC_VALIDATE`, a kernel's results differ from those of the reference device.
    #[error("TINYSPEC_VALIDATE: {0}")]
    Mismatch(Box<Mismatch>),
    /// An environment variable has an unknown value.
    #[error(transparent)]
    Setting(#[from] UnknownSetting),
    /// A file of an array that cannot be read or written.
    #[error("file {path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file of weights that cannot be read or written.
    #[error("weights file {path}: {reason}")]
    Weights {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The error of an op.
    pub(crate) fn refused(kind: ErrorKind, op: &str, message: impl Into<String>) -> Error {
        Error::Graph(tinyspec_ir::Error::new(kind, op, message))
    }

    /// Names the method that was called.
    pub(crate) fn in_op(self, op: &str) -> Error {
        match self {
            Error::Graph(error) => Error::Graph(error.in_op(op)),
            Error::UnknownDevice { name, known, location, .. } => {
                Error::UnknownDevice { op: Some(op.into()), name, known, location }
            }
            other => other,
        }
    }

    /// Adds the user's line, unless one is known already.
    pub(crate) fn at(self, location: &'static std::panic::Location<'static>) -> Error {
        match self {
            Error::Graph(error) => Error::Graph(error.at(location)),
            Error::UnknownDevice { op, name, known, location: None } => {
                Error::UnknownDevice { op, name, known, location: Some(location.into()) }
            }
            Error::Memory { wanted, reason, report, location: None } => {
                Error::Memory { wanted, reason, report, location: Some(location.into()) }
            }
            other => other,
        }
    }

    /// As [`Error::at`], where the line may be unknown.
    pub(crate) fn at_known(self, location: Option<&'static std::panic::Location<'static>>) -> Error {
        match location {
            Some(location) => self.at(location),
            None => self,
        }
    }

    /// Adds the user's line to the error of a kernel.
    pub(crate) fn of_kernel(self, line: &str) -> Error {
        match self {
            Error::Backend(error) => Error::Backend(error.at(line)),
            other => other,
        }
    }

    /// The kind of mistake, if it is one in the program.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Error::Graph(error) | Error::Backend(BackendError::Graph(error)) => Some(error.kind()),
            _ => None,
        }
    }

    /// The user's line.
    pub fn location(&self) -> Option<&Location> {
        match self {
            Error::Graph(error) | Error::Backend(BackendError::Graph(error)) => error.location(),
            Error::UnknownDevice { location, .. }
            | Error::Memory { location, .. }
            | Error::CustomFunction { location, .. } => location.as_ref(),
            _ => None,
        }
    }
}

const MEMORY_HELP: &str = "drop tensors that are done with, work on smaller parts, or raise TINYSPEC_MEMORY";

fn prefix(op: &Option<String>) -> String {
    op.as_ref().map(|op| format!("{op}: ")).unwrap_or_default()
}

fn place(location: &Option<Location>) -> String {
    location.as_ref().map(|location| format!("\n  at {location}")).unwrap_or_default()
}
