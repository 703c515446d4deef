//! Errors of LLVM itself.

use crate::BackendError;
use std::fmt;
use std::path::PathBuf;

/// A libLLVM that was tried, and why it was not used.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// File, folder, or the bare name of a library.
    pub path: PathBuf,
    /// The dynamic linker's message, or ours.
    pub reason: String,
}

/// The list of [`Attempt`]s, one per line.
#[derive(Clone, Debug, Default)]
pub struct Attempts(pub Vec<Attempt>);

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Attempt { path, reason } in &self.0 {
            write!(f, "\n  {}: {reason}", path.display())?;
        }
        Ok(())
    }
}

/// Error of the code generator.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LlvmError {
    /// No libLLVM is usable.
    #[error(
        "no usable libLLVM (versions 19 to 22) was found; tried:{0}\n\
         Install a Rust toolchain through rustup (it holds one), install `libllvm22`, or set TINYSPEC_LLVM to a libLLVM \
         or its folder; the device `interpreter` needs none"
    )]
    NotFound(Attempts),
    /// The libLLVM that the user named is not usable.
    #[error("TINYSPEC_LLVM={} is not usable:{attempts}\nName a libLLVM of version 19 to 22, or its folder, or unset it; the interpreter needs none: TINYSPEC_DEVICE=interpreter", path.display())]
    Named {
        /// The value of the variable.
        path: PathBuf,
        /// The libraries tried there.
        attempts: Attempts,
    },
    /// LLVM does not generate code for this processor.
    #[error("LLVM has no target for `{triple}`: {reason}")]
    Target {
        /// The target triple.
        triple: String,
        /// LLVM's message.
        reason: String,
    },
    /// LLVM refused a module.
    #[error("LLVM refused kernel `{name}`: {reason}")]
    Module {
        /// The kernel.
        name: String,
        /// LLVM's message.
        reason: String,
    },
}

impl From<LlvmError> for BackendError {
    fn from(error: LlvmError) -> BackendError {
        match error {
            LlvmError::NotFound(_) | LlvmError::Named { .. } => BackendError::NoGenerator(error.to_string()),
            _ => BackendError::Compile(error.to_string()),
        }
    }
}
