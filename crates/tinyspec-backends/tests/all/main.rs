//! Tests of the backends.

#[cfg(feature = "llvm")]
mod llvm_machine;
