//! Tests of the backends.

mod linear_interpreter;

#[cfg(feature = "llvm")]
mod llvm_machine;
