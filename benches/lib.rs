//! Benchmarks against the limits of the machine.
//!
//! A time alone says little: every row of the [`report`] stands beside the [`limits`] that were measured in the same run.

pub mod limits;
pub mod report;
