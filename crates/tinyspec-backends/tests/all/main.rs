//! Tests of the backends.

mod linear_interpreter;
mod tensor_interpreter;

#[cfg(feature = "llvm")]
mod llvm_machine;
