//! Command buffers, which runtimes run.

use crate::{Grid, Program};
use std::ops::Range;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op};

/// One launch of a command buffer: a program, its buffers and its extent.
#[derive(Clone)]
pub struct Launch {
    /// Loaded code.
    pub program: Arc<dyn Program>,
    /// Indices into the buffer table, by Param slot, followed, if the kernel has named dims, by that of the table of
    /// dims.
    pub buffers: Vec<u32>,
    /// The values of the kernel's named dims, by slot. GPU kernels take them as parameters.
    pub dims: Vec<i64>,
    /// The trips of the THREAD Range to run.
    pub trips: Range<usize>,
    /// Workgroups and threads of a kernel whose indices are Specials.
    pub grid: Grid,
    /// Bytes of scratch memory per CPU thread, or of LOCAL memory per GPU workgroup.
    pub scratch_bytes: usize,
    /// Estimated time on one thread, so that small kernels are not split.
    pub nanoseconds: u64,
    /// Whether something is computed before the THREAD Range, which every call of the kernel repeats.
    pub has_prologue: bool,
    /// The user's line, for errors; empty where none is known.
    pub line: Arc<str>,
}

/// A command buffer: the spec's `Linear` of Calls, and the launches of each Call. It refers to memory by positions in a table of
/// addresses, so a runtime may record it once and replay it with other tables.
#[derive(Clone)]
pub struct CommandBuffer {
    graph: Arc<Graph>,
    linear: NodeId,
    launches: Vec<Launch>,
}

impl CommandBuffer {
    /// The Calls of `linear`, in its order: each launches at least one program, except where it has nothing to do.
    pub fn new(graph: Arc<Graph>, linear: NodeId, launches: Vec<Launch>) -> CommandBuffer {
        CommandBuffer { graph, linear, launches }
    }

    /// Holds the nodes.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The Linear.
    pub fn linear(&self) -> NodeId {
        self.linear
    }

    /// The launches, in order.
    pub fn launches(&self) -> &[Launch] {
        &self.launches
    }

    /// Only some of the launches, to observe the memory between them.
    #[must_use]
    pub fn only(&self, launches: Range<usize>) -> CommandBuffer {
        CommandBuffer { launches: self.launches[launches].to_vec(), ..self.clone() }
    }
}

/// Launches outside of a program, such as those that a search measures: their Linear is empty.
impl From<Vec<Launch>> for CommandBuffer {
    fn from(launches: Vec<Launch>) -> CommandBuffer {
        let mut graph = Graph::new();
        let linear = graph.add(Op::Linear, &[], Arg::None).unwrap_or_else(|_| unreachable!("a Linear may be empty"));
        CommandBuffer { graph: Arc::new(graph), linear, launches }
    }
}
