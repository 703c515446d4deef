//! Lazy tensors, functions and the lowering pipeline of tinyspec.

pub mod lower;
