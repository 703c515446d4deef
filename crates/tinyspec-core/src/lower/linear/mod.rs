//! Passes over the instruction sequence of a kernel. They run where loops are loops, not on a GPU.

mod dead_lanes;
mod instructions;

pub use dead_lanes::dead_lanes;

use instructions::Instructions;
