//! Tests of the core through its public surface.

mod decompositions;
mod evaluate;
mod kernels;
mod lowering;
