//! Lazy tensors, functions and the lowering pipeline of tinyspec.
