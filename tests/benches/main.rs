//! The benchmarks' limits and report.

mod limits;
mod report;
