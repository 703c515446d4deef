//! Tests of the core through its public surface.

mod accuracy;
mod activations;
mod compile_time;
mod decompositions;
mod evaluate;
mod functions;
mod histories;
mod indexing;
mod kernels;
mod large_sums;
mod lowering;
mod memory_plan;
mod native;
mod numbers;
mod object_cache;
mod one_element_axes;
mod rangeify;
mod rearranging;
mod refusals;
mod rule_tables;
mod search;
mod small_floats;
mod tensors;
mod training;
mod windows;
