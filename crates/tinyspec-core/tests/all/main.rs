//! Tests of the core through its public surface.

mod evaluate;
mod kernels;
mod lowering;
