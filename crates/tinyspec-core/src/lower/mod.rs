//! The lowering pipeline: one module per row of the spec's table, in its order.

pub mod expand;
pub(crate) mod fold;
pub mod functions;
pub(crate) mod hand_written;
pub mod kernel;
pub mod linear;
pub mod linearize;
pub(crate) mod live;
pub(crate) mod loops;
pub(crate) mod multiversion;
pub mod optimize;
pub mod pass;
pub mod passes;
pub mod plan;
pub(crate) mod products;
pub mod rangeify;
pub(crate) mod replace;
pub mod select;
pub mod special;
pub(crate) mod terms;
pub(crate) mod traffic;

use tinyspec_backends::Target;
use tinyspec_ir::DType;

/// The number of lanes of a kernel's vectors: as many as its smallest type in memory allows. Among types of several
/// sizes, those narrower than 4 bytes count as 4, so that they do not spread wide ones over too many registers.
pub(crate) fn lanes(target: &Target, dtypes: impl Iterator<Item = DType>) -> usize {
    let sizes: Vec<usize> = dtypes.map(DType::size).collect();
    let least = sizes.iter().copied().min().unwrap_or(1);
    let narrow_only = sizes.iter().all(|&size| size == least);
    let size = if narrow_only { least } else { least.max(4) };
    (target.vector_bytes / size.max(1)).max(1)
}
