//! Errors in compiling linear UOps and running kernels.

use std::path::PathBuf;

/// Error of a compiler or a runtime. `Debug` gives the same text as `Display`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The graph of a kernel is not what the backend expects.
    #[error(transparent)]
    Graph(#[from] tinyspec_ir::Error),
    /// The kernel needs something that the target lacks.
    #[error("{target} cannot run `{op}`: {reason}")]
    Unsupported {
        /// Device kind.
        target: String,
        /// The op.
        op: String,
        /// Why.
        reason: String,
    },
    /// The code generator failed.
    #[error("{0}")]
    Compile(String),
    /// No code generator is available; the text lists what was tried.
    #[error("{0}")]
    NoGenerator(String),
    /// A kernel is not in the object cache, and no code generator is available to compile it.
    #[error(
        "kernel `{name}` for {target} is not {}, and there is no code generator to compile it: {reason}",
        cache.as_ref().map_or_else(|| "on disk, where there is no cache".into(), |cache| format!("in the cache {}", cache.display()))
    )]
    NotCompiled {
        /// Kernel.
        name: String,
        /// The target.
        target: String,
        /// The cache folder, if there is one.
        cache: Option<PathBuf>,
        /// Why there is no code generator.
        reason: String,
    },
    /// Compiled code is damaged or made for another machine.
    #[error("compiled code of `{name}` cannot be loaded: {reason}")]
    Load {
        /// Kernel.
        name: String,
        /// Why.
        reason: String,
    },
    /// Code for a processor that has instructions which this machine lacks.
    #[error(
        "code for the processor `{name}` cannot run here: {reason}\nhelp: TINYSPEC_CPU=native, or none, compiles for this machine"
    )]
    Processor {
        /// The processor that the code is for.
        name: String,
        /// The missing instructions, as text.
        reason: String,
    },
    /// The device only generates code for a GPU.
    #[error(
        "the device `{name}` makes code and runs none\nhelp: `Program::of` gives that code; the device `simt/{name}` interprets what is lowered for this GPU"
    )]
    CompileOnly {
        /// The GPU.
        name: String,
    },
    /// A GPU or its driver is missing or unusable.
    #[error(transparent)]
    Driver(#[from] crate::gpu::DriverError),
    /// A device refused a request, and continues to work.
    #[error("{device}: {reason}")]
    Device {
        /// Device.
        device: String,
        /// Description of the failure.
        reason: String,
    },
    /// A device that failed and cannot be used any more.
    #[error(
        "{device} is lost: {reason}\nhelp: start the program again to use it; other devices, and tensors that are there, can still be used"
    )]
    Lost {
        /// Device.
        device: String,
        /// Description of the failure.
        reason: String,
    },
    /// Memory ran out or does not fit.
    #[error("device memory: {0}")]
    Memory(String),
    /// A data race: parallel iterations of a kernel access the same element, so its results depend on their order.
    #[error("kernel `{name}` races: {reason}")]
    Race {
        /// Kernel.
        name: String,
        /// Which iterations access which element.
        reason: String,
    },
    /// A Barrier that not all threads of a workgroup reach.
    #[error("kernel `{name}`: {reason}")]
    Divergence {
        /// Kernel.
        name: String,
        /// Which thread reaches it, and which does not.
        reason: String,
    },
    /// LOCAL memory read before it is written.
    #[error("kernel `{name}`: {reason}")]
    Uninitialised {
        /// Kernel.
        name: String,
        /// Which thread reads what.
        reason: String,
    },
    /// A kernel did something illegal, such as an access out of bounds.
    #[error("kernel `{name}`: {reason}")]
    Execution {
        /// Kernel.
        name: String,
        /// Description of the fault.
        reason: String,
    },
}

impl BackendError {
    /// Appends the user's line to errors that concern a kernel.
    pub fn at(mut self, line: &str) -> BackendError {
        if let BackendError::Race { reason, .. }
        | BackendError::Divergence { reason, .. }
        | BackendError::Uninitialised { reason, .. }
        | BackendError::Execution { reason, .. }
        | BackendError::Load { reason, .. }
        | BackendError::Unsupported { reason, .. }
        | BackendError::NotCompiled { reason, .. }
        | BackendError::NoGenerator(reason)
        | BackendError::Compile(reason) = &mut self
            && !line.is_empty()
        {
            reason.push_str("\n  at ");
            reason.push_str(line);
        }
        self
    }
}

impl std::fmt::Debug for BackendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
