//! Passes over the instruction sequence of a kernel. They do nothing for GPUs, where workgroups replace the outer loops.

mod dead_lanes;
mod instructions;

pub use dead_lanes::dead_lanes;

use instructions::Instructions;
