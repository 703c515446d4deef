//! Plans: command buffers whose sizes are known, ready to run.

use super::compared::Compared;
use crate::custom_function::SizedCall;
use crate::device::{Device, Storage};
use crate::lazy::history;
use smallvec::SmallVec;
use std::sync::Arc;
use tinyspec_backends::{CommandBuffer, Grid, Launch, Program};
use tinyspec_ir::{Dim, NodeId};

/// A compiled kernel, shared by all plans that launch it.
pub(crate) struct Kernel {
    pub program: Arc<dyn Program>,
    /// The code that the program was loaded from, if it is worth keeping on disk.
    pub code: Option<Arc<[u8]>>,
    pub name: String,
    /// Axes as the profile shows them.
    pub axes: String,
    pub scratch_bytes: usize,
    /// The number of buffers that it takes: the first ones of its call, and that of its named dims.
    pub params: usize,
    /// The number without that of its named dims.
    pub buffers: usize,
    /// The number of named dims that it takes.
    pub dims: usize,
    /// Trips of the THREAD Range, over the kernel's own named dims.
    pub trips: Dim,
    /// If this is 0, it has nothing to do.
    pub blocks: Dim,
    pub grid: Grid,
    /// Operations on elements.
    pub work: u64,
    /// Estimated time on one thread; none if the schedule is unknown.
    pub nanoseconds: Option<u64>,
    /// Whether something is computed before the THREAD Range.
    pub has_prologue: bool,
    /// The sizes of the copies that its copy kernels fill, which are its last buffers.
    pub temporaries: SmallVec<[usize; 1]>,
    /// The bytes that it copies, if it is a copy kernel.
    pub copied: Option<u64>,
}

/// A description of a launch, for the profile.
pub(crate) struct Step {
    pub kernel: Arc<Kernel>,
    pub location: Arc<str>,
    /// Bytes of the buffers it reads and writes.
    pub bytes: u64,
}

/// A custom function between the launches of a plan.
pub(crate) struct CustomStep {
    pub call: SizedCall,
    /// The number of launches before it.
    pub after: usize,
    /// Positions of its buffers.
    pub buffers: Vec<u32>,
    pub location: Arc<str>,
    /// Bytes of its buffers.
    pub bytes: u64,
}

/// Where a buffer of the launches comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    /// An argument, by slot.
    Leaf(u32),
    /// A result, by number.
    Output(u32),
    /// A temporary, by offset in the arena.
    Arena(usize),
    /// Data of the graph itself, by number.
    Constant(u32),
    /// Part of an earlier buffer of the table: its position, and the offset in bytes.
    Within(u32, usize),
}

/// A command buffer, and the sources of the memory that it refers to. A run fills a table of addresses.
pub(crate) struct Plan {
    /// The computation, if gradients may need it.
    pub program: Option<Arc<history::Program>>,
    pub device: Arc<Device>,
    pub commands: CommandBuffer,
    /// The Tuple of results, in the graph of the command buffer.
    pub root: NodeId,
    pub steps: Vec<Step>,
    /// Custom functions, in order.
    pub custom: Vec<CustomStep>,
    /// If there are any, the launches before each of them, and those after the last.
    pub between: Vec<CommandBuffer>,
    pub table: Vec<Place>,
    pub constants: Vec<Arc<Storage>>,
    pub arena_bytes: usize,
    /// Bytes of each result.
    pub outputs: Vec<usize>,
    /// The result of each root: equal roots share one.
    pub output_of_root: Vec<u32>,
    /// Results that take the memory of an argument: their number and its slot.
    pub overwritten: Vec<(u32, u32)>,
    /// Whether no result may take an argument's memory, although some could.
    pub stays_apart: bool,
    /// The reference for its results, under `TINYSPEC_VALIDATE`.
    pub compared: Option<Box<Compared>>,
}

impl Plan {
    /// Bytes that a run reads and writes.
    pub fn moved(&self) -> u64 {
        let custom: u64 = self.custom.iter().map(|step| step.bytes).sum();
        self.steps.iter().map(|step| step.bytes).sum::<u64>() + custom
    }

    /// Approximate bytes that it keeps alive, including kernels that other plans launch, too.
    pub fn kept_bytes(&self) -> u64 {
        let launches: usize =
            self.commands.launches().iter().map(|launch| size_of::<Launch>() + 4 * launch.buffers.len()).sum();
        let kernel = |kernel: &Kernel| {
            let code = kernel.code.as_ref().map_or(0, |code| code.len());
            size_of::<Kernel>() + kernel.name.len() + kernel.axes.len() + kernel.program.bytes() + code + OF_A_PROGRAM
        };
        let steps = self.steps.iter().map(|step| size_of::<Step>() + step.location.len() + kernel(&step.kernel));
        let tables = size_of_val(&self.table[..]) + size_of_val(&self.outputs[..]) + 4 * self.output_of_root.len();
        let constants: usize = self.constants.iter().map(|constant| constant.bytes()).sum();
        let program = self.program.as_ref().map_or(0, |program| program.bytes());
        // Launches between custom functions are there twice.
        let launches = if self.custom.is_empty() { launches } else { 2 * launches };
        (size_of::<Plan>() + launches + steps.sum::<usize>() + tables + constants + program) as u64
    }
}

/// Approximate bytes that a runtime keeps for a loaded kernel besides its code.
const OF_A_PROGRAM: usize = 512;
