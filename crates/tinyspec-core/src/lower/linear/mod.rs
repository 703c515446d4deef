//! Passes over the instruction sequence of a kernel, before a renderer prints it. All but `branches` do nothing for GPUs, where
//! workgroups replace the outer loops.

mod arithmetic;
mod branches;
mod dead_lanes;
mod full_tiles;
mod instructions;
mod nontemporal;
mod prefetch;
mod unroll;
mod unswitch;
mod versions;

pub use branches::branches;
pub use dead_lanes::dead_lanes;
pub use full_tiles::full_tiles;
pub use nontemporal::nontemporal;
pub use prefetch::prefetch;
pub use unroll::unroll;
pub use unswitch::unswitch;

pub(super) use instructions::Instructions;

/// Bytes of a cache line.
const LINE: i64 = 64;
