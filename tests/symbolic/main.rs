//! Functions whose dims have bounds: one set of kernels computes what kernels of each size do.

mod agreement;
mod kernels;
