//! Tests of the backends.

mod assembler_bugs;
mod gradients;
mod kernel;
mod linear_interpreter;
mod memory_blocks;
mod range_interpreter;
mod simt_interpreter;
mod tensor_interpreter;

#[cfg(feature = "llvm")]
mod disassembler;
#[cfg(feature = "llvm")]
mod gpus;
#[cfg(feature = "llvm")]
mod hsa_objects;
#[cfg(feature = "llvm")]
mod llvm_machine;
#[cfg(feature = "llvm")]
mod llvm_render;
#[cfg(feature = "llvm")]
mod processors;
#[cfg(feature = "llvm")]
mod threads;
