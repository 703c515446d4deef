//! From linear UOps to bytes that a [`crate::Runtime`] can load; works with no device present.

use crate::{BackendError, Target};
use tinyspec_ir::special::SpecialIndex;
use tinyspec_ir::{Arg, DType, Graph, NodeId, Op};

/// A kernel after Linearize and Plan: what a compiler renders.
#[derive(Clone, Debug)]
pub struct LinearKernel {
    /// Holds the nodes.
    pub graph: Graph,
    /// The `Linear` node.
    pub linear: NodeId,
    /// Name for symbols, profiles and tables, such as `reduce_4096_1024`.
    pub name: String,
    /// Number of buffers that the kernel is given: one a Param of memory; where named dims are left, behind them the i64
    /// values of those, by slot.
    pub params: usize,
    /// Byte offset of each LOCAL Buffer (by slot) in the scratch of a call.
    pub local_offsets: Vec<(u32, usize)>,
    /// Bytes of that scratch.
    pub scratch_bytes: usize,
    /// Trips of the GLOBAL range, 1 without one.
    pub global_trips: usize,
    /// Workgroups and threads that run it, where its indices are Specials.
    pub grid: Grid,
    /// The names of the buffers of a kernel written by hand, by Param: an interpreter looks whether its parallel iterations
    /// meet.
    pub hand_written: Option<Vec<String>>,
}

impl LinearKernel {
    /// Values of named dims that it is given.
    pub fn dims(&self) -> usize {
        let slot = |node: NodeId| match self.graph.arg(node) {
            Arg::Param { slot, dtype: DType::Index, .. } if self.graph.op(node) == Op::Param => {
                Some(*slot as usize + 1)
            }
            _ => None,
        };
        self.graph.reachable(&[self.linear]).into_iter().filter_map(slot).max().unwrap_or(0)
    }

    /// Buffers that it is given beside the table of its named dims.
    pub fn buffers(&self) -> usize {
        self.params - usize::from(self.dims() > 0 && self.params > 0)
    }
}

/// Workgroups of a launch and threads of each, by dimension; one of both where a kernel has no Special.
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

    /// Workgroups in all.
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
/// What [`Compiler::compile`] and [`Compiler::compile_all`] give is run as it is: it must do what the kernel says.
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
    /// What its code depends on beside kernel and target, such as the processor: part of the object cache's key.
    fn fingerprint(&self) -> String;

    /// Which code generator it uses, such as the version of a library that is found at run time; `None` where it cannot tell,
    /// as where there is none. The object cache keeps apart what each has made, and for `None` takes what any has made.
    fn generator(&self) -> Option<String> {
        Some(String::new())
    }

    /// The code of a kernel, as bytes.
    ///
    /// # Errors
    /// When the kernel uses what the target cannot do, or the code generator fails.
    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError>;

    /// The codes of several kernels, in their order. What a code generator does but once for all of them costs each less.
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
