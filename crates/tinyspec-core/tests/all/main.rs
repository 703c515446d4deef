//! Tests of the core through its public surface.

mod decompositions;
mod evaluate;
mod functions;
mod indexing;
mod interpreters;
mod kernels;
mod lowering;
mod native;
mod rangeify;
mod small_floats;
mod tensors;
mod training;
mod windows;
