//! Tests of the core through its public surface.

mod decompositions;
mod evaluate;
mod interpreters;
mod kernels;
mod lowering;
mod rangeify;
