//! From linear UOps to bytes that a [`crate::Runtime`] can load; works with no device present.

use crate::{BackendError, Target};
use tinyspec_ir::{Graph, NodeId};

/// A kernel after Linearize and Plan: what a compiler renders.
#[derive(Clone, Debug)]
pub struct LinearKernel {
    /// Holds the nodes.
    pub graph: Graph,
    /// The `Linear` node.
    pub linear: NodeId,
    /// Name for symbols, profiles and tables, such as `reduce_4096_1024`.
    pub name: String,
    /// Number of Params: buffers of the kernel.
    pub params: usize,
    /// Byte offset of each LOCAL Buffer (by slot) in the scratch of a call.
    pub local_offsets: Vec<(u32, usize)>,
    /// Bytes of that scratch.
    pub scratch_bytes: usize,
    /// Trips of the GLOBAL range, 1 without one.
    pub global_trips: usize,
    /// The names of the buffers of a kernel written by hand, by Param: an interpreter looks whether its parallel iterations
    /// meet.
    pub by_hand: Option<Vec<String>>,
}

/// Human-readable forms of a compiled kernel.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Rendered source, such as LLVM IR.
    pub source: String,
    /// Machine instructions.
    pub assembly: String,
}

/// Renders linear UOps to code.
pub trait Compiler: Send + Sync {
    /// Version of compiler and libraries: part of the object cache's key.
    fn fingerprint(&self) -> String;

    /// The code of a kernel, as bytes.
    ///
    /// # Errors
    /// When the kernel uses what the target cannot do, or the code generator fails.
    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError>;

    /// Source and assembly, for debugging.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    fn listing(&self, kernel: &LinearKernel, target: &Target) -> Result<Listing, BackendError>;
}
