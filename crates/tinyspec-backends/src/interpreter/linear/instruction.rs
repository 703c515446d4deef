//! The instructions of a resolved kernel, over one file of lanes.

use super::races::Parallel;
use crate::BackendError;
use tinyspec_ir::instruction::Instruction as Single;
use tinyspec_ir::special::SpecialIndex;
use tinyspec_ir::{DType, Dim, Op};

/// A value: consecutive lanes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Register {
    pub start: u32,
    pub lanes: u32,
}

impl Register {
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.lanes) as usize
    }
}

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Space {
    /// Memory of this Param.
    Param(u32),
    /// Scratch of the call, at this byte.
    Local(usize),
}

/// The number of elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Length {
    Number(usize),
    /// Depends on named dims: the number in [`Code::lengths`].
    Named(usize),
}

/// Elements of a buffer: a run from `index` on, or one for each lane of `index`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Address {
    pub space: Space,
    pub dtype: DType,
    /// Elements of the buffer.
    pub length: Length,
    pub index: Register,
    /// Elements of the access.
    pub lanes: u32,
}

impl Address {
    /// Whether the elements are consecutive, rather than one for each lane of the index.
    pub fn is_run(&self) -> bool {
        self.index.lanes == 1
    }
}

/// Targets come after all sources in the file, so that it can be split between them.
#[derive(Clone, Debug)]
pub(in super::super) enum Instruction {
    /// An elementwise op; sources have as many lanes as the target.
    Compute { op: Op, operand: DType, dtype: DType, sources: [Register; 3], count: u8, target: Register },
    /// A single machine instruction (Ins).
    Single { instruction: Single, sources: [Register; 2], count: u8, target: Register },
    /// Joins adjacent unsigned integers of `bytes` bytes, the first one in the lowest bits, into the lanes of the target.
    Join { source: Register, bytes: u32, target: Register },
    /// Copies one lane to all.
    Splat { source: Register, target: Register },
    /// Concatenates values.
    Concatenate { sources: Vec<Register>, target: Register },
    /// Picks lanes of a vector by index.
    Extract { source: Register, index: Register, target: Register },
    /// Reduces all lanes to one.
    Horizontal { op: Op, dtype: DType, source: Register, target: Register },
    /// Copies into or out of a REG Buffer, where the gate is true.
    Move { source: Register, gate: Option<Register>, target: Register },
    /// Loads lanes from memory; `alternative` where the gate is false.
    Load { address: Address, alternative: Option<Register>, gate: Option<Register>, target: Register },
    /// Stores lanes to memory, where the gate is true.
    Store { address: Address, source: Register, gate: Option<Register> },
    /// Adds lanes to memory, where the gate is true.
    Accumulate { address: Address, source: Register, gate: Option<Register> },
    /// Begins a loop; jumps to `exit` once `counter` reaches its limit.
    Loop { bound: Register, is_shared: bool, parallel: Parallel, counter: Register, limit: Register, exit: usize },
    /// Ends the loop that begins at `start`.
    Next { counter: Register, limit: Register, start: usize },
    /// Jumps to `exit` if the gate is false.
    If { gate: Register, exit: usize },
    /// The index of the workgroup or thread.
    Special { index: SpecialIndex, target: Register },
    /// All threads of a workgroup wait for each other.
    Barrier,
}

/// A resolved kernel.
#[derive(Debug, Default)]
pub(in super::super) struct Code {
    pub name: String,
    pub instructions: Vec<Instruction>,
    /// Lanes of the file.
    pub lanes: u32,
    /// Lanes with constant values.
    pub constants: Vec<(u32, u64)>,
    /// Lanes that hold named dims, each with its slot.
    pub dims: Vec<(u32, u32)>,
    /// Lengths of buffers that depend on named dims.
    pub lengths: Vec<Dim>,
    /// The number of buffers, including that of the values of the named dims, if there are any.
    pub params: usize,
    pub scratch_bytes: usize,
    /// Names of buffers, if parallel loops are checked for races.
    pub hand_written: Option<Vec<String>>,
}

/// The parts of the code that depend on the named dims of a call.
pub(in super::super) struct Bound {
    /// Lanes of the file and the values of the dims in them.
    pub lanes: Vec<(u32, u64)>,
    lengths: Vec<usize>,
}

impl Bound {
    /// Elements of a buffer.
    pub fn length(&self, length: Length) -> usize {
        match length {
            Length::Number(length) => length,
            Length::Named(number) => self.lengths.get(number).copied().unwrap_or(0),
        }
    }
}

impl Code {
    /// Binds the named dims, whose values follow the buffers.
    ///
    /// # Safety
    /// `params` are the arguments of the kernel.
    pub unsafe fn bind(&self, params: &[*mut u8]) -> Bound {
        let last = self.params.checked_sub(1).and_then(|last| params.get(last));
        let dim = |slot: u32| match last {
            // SAFETY: if there are named dims, the last buffer holds their values.
            Some(values) => unsafe { values.cast::<i64>().add(slot as usize).read_unaligned() },
            None => 0,
        };
        let length = |length: &Dim| {
            let number = length.substitute(&|slot| Some(Dim::from(dim(slot)))).as_const();
            number.map_or(0, |number| number.max(0) as usize)
        };
        Bound {
            lanes: self.dims.iter().map(|&(lane, slot)| (lane, dim(slot) as u64)).collect(),
            lengths: self.lengths.iter().map(length).collect(),
        }
    }

    /// The name of a buffer, for messages.
    pub fn buffer(&self, slot: u32) -> String {
        match self.hand_written.as_ref().and_then(|names| names.get(slot as usize)) {
            Some(name) => format!("`{name}`"),
            None => format!("buffer {slot}"),
        }
    }

    /// The error for a race between iterations of its parallel loops.
    pub fn race(&self, reason: String) -> BackendError {
        BackendError::Race { name: self.name.clone(), reason }
    }

    /// The error for an illegal action of the kernel.
    pub fn failure(&self, reason: impl Into<String>) -> BackendError {
        BackendError::Execution { name: self.name.clone(), reason: reason.into() }
    }
}
