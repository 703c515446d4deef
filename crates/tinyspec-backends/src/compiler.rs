//! Compiles linear UOps to bytes that a [`crate::Runtime`] can load. No device need be present.

use crate::{BackendError, Target};
use tinyspec_ir::special::SpecialIndex;
use tinyspec_ir::{Arg, DType, Graph, NodeId, Op};

/// A kernel after Linearize and Plan, the input of a compiler.
#[derive(Clone, Debug)]
pub struct LinearKernel {
    /// Holds the nodes.
    pub graph: Graph,
    /// The `Linear` node.
    pub linear: NodeId,
    /// Name for symbols, profiles and tables, such as `reduce_4096_1024`.
    pub name: String,
    /// Number of buffers that the kernel takes: one per Param that is memory, and, if there are named dims, one with
    /// their i64 values, by slot.
    pub params: usize,
    /// Byte offset of each LOCAL Buffer (by slot) in the scratch of a call.
    pub local_offsets: Vec<(u32, usize)>,
    /// Bytes of that scratch.
    pub scratch_bytes: usize,
    /// Trips of the THREAD Range, 1 without one.
    pub shared_trips: usize,
    /// Workgroups and threads that run it, if its indices are Specials.
    pub grid: Grid,
    /// For a kernel written by hand, the names of its buffers, by Param: interpreters check its parallel iterations for
    /// races.
    pub hand_written: Option<Vec<String>>,
}

impl LinearKernel {
    /// The number of named dims that it takes.
    pub fn dims(&self) -> usize {
        let slot = |node: NodeId| match self.graph.arg(node) {
            Arg::Param { slot, dtype: DType::Index, .. } if self.graph.op(node) == Op::Param => {
                Some(*slot as usize + 1)
            }
            _ => None,
        };
        self.graph.reachable(&[self.linear]).into_iter().filter_map(slot).max().unwrap_or(0)
    }

    /// The number of buffers that it takes, without the table of its named dims.
    pub fn buffers(&self) -> usize {
        self.params - usize::from(self.dims() > 0 && self.params > 0)
    }
}

/// Workgroups of a launch and threads of each, by dimension; 1 if a kernel has no Specials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Bounds of `gidx0`, `gidx1`, `gidx2`.
    pub groups: [usize; 3],
    /// Bounds of `lidx0`, `lidx1`, `lidx2`.
    pub threads: [usize; 3],
}

impl Default for Grid {
    fn default() -> Grid {
        Grid { groups: [1; 3], threads: [1; 3] }
    }
}

impl Grid {
    /// The bounds of a kernel's Specials.
    pub fn of(graph: &Graph, linear: NodeId) -> Grid {
        Grid::among(graph, graph.sources(linear))
    }

    /// The bounds of the Specials among some nodes.
    pub(crate) fn among(graph: &Graph, nodes: &[NodeId]) -> Grid {
        let mut grid = Grid::default();
        for &node in nodes {
            let Some(index) = SpecialIndex::of(graph, node) else { continue };
            let bound = graph.as_int(graph.source(node, 0)).and_then(|bound| usize::try_from(bound).ok()).unwrap_or(0);
            match index {
                SpecialIndex::Group(dimension) => grid.groups[dimension] = bound,
                SpecialIndex::Thread(dimension) => grid.threads[dimension] = bound,
            }
        }
        grid
    }

    /// The total number of workgroups.
    pub fn count(&self) -> usize {
        self.groups.iter().fold(1, |count, &size| count.saturating_mul(size))
    }

    /// Threads of a workgroup.
    pub fn size(&self) -> usize {
        self.threads.iter().fold(1, |size, &threads| size.saturating_mul(threads))
    }
}

/// Renders linear UOps to code.
///
/// # Safety
/// The results of [`Compiler::compile`] and [`Compiler::compile_all`] are executed: they must do what the kernel says.
///
/// ```compile_fail,E0200
/// # use tinyspec_backends::{BackendError, Compiler, LinearKernel, Target};
/// struct Returns;
/// impl Compiler for Returns {
///     fn fingerprint(&self) -> String { String::new() }
///     fn compile(&self, _: &LinearKernel, _: &Target) -> Result<Vec<u8>, BackendError> { Ok(vec![0xc3]) }
///     fn source(&self, _: &LinearKernel, _: &Target) -> Result<String, BackendError> { Ok(String::new()) }
///     fn assembly(&self, _: &LinearKernel, _: &Target) -> Result<String, BackendError> { Ok(String::new()) }
/// }
/// ```
pub unsafe trait Compiler: Send + Sync {
    /// Inputs of code generation besides kernel and target, such as the processor: part of the object cache's key.
    fn fingerprint(&self) -> String;

    /// The code generator that it uses, such as the version of a library that is found at run time; `None` if it is
    /// unknown or missing. The object cache separates the code of different generators, and accepts that of any for
    /// `None`.
    fn generator(&self) -> Option<String> {
        Some(String::new())
    }

    /// The code of a kernel, as bytes.
    ///
    /// # Errors
    /// When the kernel uses something that the target lacks, or the code generator fails.
    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError>;

    /// The code of several kernels, in order. They share the work that a code generator does once per module.
    fn compile_all(&self, kernels: &[&LinearKernel], target: &Target) -> Vec<Result<Vec<u8>, BackendError>> {
        kernels.iter().map(|kernel| self.compile(kernel, target)).collect()
    }

    /// Rendered source, such as LLVM IR.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError>;

    /// Machine instructions, to read.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError>;
}
