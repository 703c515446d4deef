//! Errors: text that is no PTX, instructions that are not simulated, and faults of a running kernel.

use std::fmt;
use std::num::NonZeroU32;
use tinyspec_backends::BackendError;

/// A place in the text of a program, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column, in bytes.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Error of a simulator.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulatorError {
    /// The text is not a program of this language.
    #[error("{at}: {reason}")]
    Syntax {
        /// Where.
        at: Position,
        /// Description of the mistake.
        reason: String,
    },
    /// An instruction, form or directive that is not simulated. Nothing is guessed.
    #[error("{at}: `{what}` is not simulated: {reason}")]
    Unknown {
        /// Where.
        at: Position,
        /// The instruction or directive.
        what: String,
        /// Why.
        reason: String,
    },
    /// A launch that the kernel or the device does not allow.
    #[error("kernel `{kernel}` cannot be launched: {reason}")]
    Launch {
        /// Entry.
        kernel: String,
        /// Why.
        reason: String,
    },
    /// The module has no kernel of this name.
    #[error("no kernel `{0}` in the module")]
    NoKernel(String),
    /// Memory for buffers or metadata ran out.
    #[error("simulated memory: {0}")]
    Memory(String),
    /// A fault of a running kernel.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}

/// The kind of a fault of a running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside of every buffer, or outside of the one whose address it derives from.
    OutOfBounds,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A value that nothing has written is stored, branched on or used as an address.
    Uninitialised,
    /// Threads meet at a byte with nothing that orders them.
    Race,
    /// A barrier or a `.sync` instruction that not all of its threads reach.
    Divergence,
    /// A trap, or a result that the instruction set leaves undefined.
    Undefined,
    /// More instructions than the limit of the launch.
    Endless,
}

/// A fault: kernel, instruction, lanes.
#[derive(Clone, Debug, thiserror::Error)]
#[error("kernel `{kernel}`, line {line} (`{instruction}`), {threads}: {reason}")]
pub struct Fault {
    /// Kind.
    pub kind: FaultKind,
    /// Entry.
    pub kernel: String,
    /// Line of the program text.
    pub line: u32,
    /// The instruction as it was written.
    pub instruction: String,
    /// Line of the source code that it is for, where the code says that: `.loc` in PTX, `.debug_line` in an object.
    pub source_line: Option<NonZeroU32>,
    /// Block, warp and lanes, in words.
    pub threads: String,
    /// Description of the fault.
    pub reason: String,
}

impl Fault {
    /// As an error of the kernel of this name, which was made for `origin` of the Linear form.
    pub(crate) fn of_kernel(self, name: String, origin: Option<&str>) -> BackendError {
        let Fault { kind, line, instruction, threads, reason, .. } = self;
        let origin = origin.map_or_else(String::new, |origin| format!(" for `{origin}` of the Linear form"));
        let reason = format!("line {line} (`{instruction}`){origin}, {threads}: {reason}");
        match kind {
            FaultKind::Race => BackendError::Race { name, reason },
            FaultKind::Divergence => BackendError::Divergence { name, reason },
            FaultKind::Uninitialised => BackendError::Uninitialised { name, reason },
            _ => BackendError::Execution { name, reason },
        }
    }
}

impl From<SimulatorError> for BackendError {
    fn from(error: SimulatorError) -> BackendError {
        match error {
            SimulatorError::Fault(fault) => {
                let name = fault.kernel.clone();
                fault.of_kernel(name, None)
            }
            SimulatorError::Launch { kernel, reason } => BackendError::Execution { name: kernel, reason },
            SimulatorError::Memory(reason) => BackendError::Memory(reason),
            error => BackendError::Compile(error.to_string()),
        }
    }
}
