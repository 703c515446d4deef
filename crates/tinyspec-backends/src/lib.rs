//! Targets, compilers and runtimes of tinyspec: the three traits, the interpreters, and LLVM for CPUs and GPUs.

mod command_buffer;
mod compiler;
#[doc(hidden)]
pub mod console;
pub mod cpu;
mod cpuid;
mod error;
pub mod gpu;
pub mod host_memory;
pub mod interpreter;
pub mod llvm;
pub mod processor;
mod rates;
mod runtime;
pub mod settings;
mod target;

pub use command_buffer::{CommandBuffer, Launch};
pub use compiler::{Compiler, Grid, LinearKernel};
pub use error::BackendError;
pub use gpu::{Gpu, UnknownGpu};
pub use processor::{Processor, UnknownProcessor};
pub use rates::Rates;
pub use runtime::{Memory, Program, Runtime};
pub use target::{Target, Workgroups};

/// Hash of the sources of these compilers: part of the key of objects on disk.
pub const SOURCES_HASH: &str = env!("TINYSPEC_SOURCES_HASH");
