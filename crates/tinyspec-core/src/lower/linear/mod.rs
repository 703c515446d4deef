//! Passes over the instruction sequence of a kernel, before a renderer prints it. They do nothing for GPUs, where workgroups
//! replace the outer loops.

mod dead_lanes;
mod instructions;
mod nontemporal;
mod prefetch;
mod unroll;
mod unswitch;

pub use dead_lanes::dead_lanes;
pub use nontemporal::nontemporal;
pub use prefetch::prefetch;
pub use unroll::unroll;
pub use unswitch::unswitch;

use instructions::Instructions;

/// Bytes of a cache line.
const LINE: i64 = 64;
