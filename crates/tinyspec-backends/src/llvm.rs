//! Machine code by LLVM, which emits objects into memory. Our loader loads those for a CPU; our linker makes those for
//! an AMD GPU loadable.
//!
//! libLLVM is found and loaded at run time; loading compiled code does not need it.

mod object_loader;
mod perf_map;

#[cfg(feature = "llvm")]
mod assembler_bugs;
#[cfg(feature = "llvm")]
mod compiler;
#[cfg(feature = "llvm")]
mod disassembler;
#[cfg(feature = "llvm")]
mod error;
#[cfg(feature = "llvm")]
mod fatal;
#[cfg(feature = "llvm")]
pub mod find;
#[cfg(feature = "llvm")]
pub mod hsa_linker;
#[cfg(feature = "llvm")]
mod machine;
#[cfg(feature = "llvm")]
mod render;
#[cfg(feature = "llvm")]
mod sign_masks;
#[cfg(feature = "llvm")]
mod split;
#[cfg(feature = "llvm")]
mod wide_moves;

#[cfg(feature = "llvm")]
pub use compiler::LlvmCompiler;
#[cfg(feature = "llvm")]
pub use disassembler::Disassembler;
#[cfg(feature = "llvm")]
pub use error::LlvmError;
#[cfg(feature = "llvm")]
pub use find::{Llvm, llvm};
#[cfg(feature = "llvm")]
pub use machine::{Machine, Output};
pub use object_loader::{LoadError, LoadedObject};
