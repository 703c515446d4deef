//! Other libraries that do the same as a benchmark.

pub mod candle;
pub mod gemm;
pub mod torch;
