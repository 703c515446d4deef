//! The capabilities of a device, as data. Lowering depends on nothing else.

use crate::processor::Isa;
use crate::{BackendError, Grid, LinearKernel, Rates};
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{ContentHash, DType, Op};

/// Properties of a device that determine how kernels are lowered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Device kind, such as `cpu`.
    pub name: String,
    /// Whatever the other fields do not cover, such as the processor's model: part of every cache key.
    pub fingerprint: String,
    /// The instruction set of machine code; `None` if kernels are interpreted.
    pub isa: Option<Isa>,
    /// Bytes of a machine vector; 0 if there are only scalars.
    pub vector_bytes: usize,
    /// Number of vector registers.
    pub vector_registers: usize,
    /// Whether loads, stores and arithmetic can be masked per lane at no cost.
    pub masked_access: bool,
    /// Whether there is a hardware fused multiply-add.
    pub fused_multiply_add: bool,
    /// Independent accumulators that hide the latency of an add (latency × throughput).
    pub accumulators: usize,
    /// Whether the device checks the parallel iterations of hand-written kernels for races. These loops are not
    /// vectorised then.
    pub watches_races: bool,
    /// The number of threads that share a THREAD axis.
    pub threads: usize,
    /// Bytes of the first- and second-level data caches of a core, and of the shared last-level cache; 0 for none.
    pub cache_bytes: [usize; 3],
    /// Throughput and bandwidth of a core.
    pub rates: Rates,
    /// Non-primitive ops that are not decomposed for this target; on floats unless stated otherwise.
    pub native: Vec<Op>,
    /// Single machine instructions (Ins) that it has.
    pub instructions: Vec<Instruction>,
    /// Packed dot products that are one instruction (Wmma): pairs of I16 into i32, exactly; four U8 by four I8 into
    /// i32, exactly (listed as U8); pairs of BF16 into f32, where pairs are added before rounding and subnormal numbers
    /// are flushed to 0 (see [`Target::strict`]).
    pub tensor_cores: Vec<DType>,
    /// Dtypes with native arithmetic; others are storage only.
    pub arithmetic: Vec<DType>,
    /// The workgroups of a GPU; `None` if GLOBAL and LOCAL axes are loops.
    pub workgroups: Option<Workgroups>,
}

/// The limits of a GPU's workgroups, whose threads share LOCAL memory and wait for each other at Barriers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workgroups {
    /// The most workgroups of a launch, by dimension.
    pub counts: [usize; 3],
    /// The most threads of a workgroup, by dimension.
    pub threads: [usize; 3],
    /// The most threads of a workgroup in total.
    pub size: usize,
    /// Threads that execute together: a warp, a wave.
    pub warp: usize,
    /// Bytes of LOCAL memory that a workgroup may use.
    pub local_bytes: usize,
    /// The number of processors that run workgroups: multiprocessors, compute units.
    pub processors: usize,
    /// The most resident threads of a processor, over all its workgroups.
    pub resident: usize,
}

impl Workgroups {
    /// The most resident threads of the device.
    pub fn capacity(&self) -> usize {
        self.processors * self.resident
    }

    /// Refuses a kernel that exceeds these limits.
    ///
    /// # Errors
    /// When the kernel has more workgroups, threads or LOCAL memory.
    pub fn admit(&self, kernel: &LinearKernel, target: &str) -> Result<(), BackendError> {
        let Grid { groups, threads } = kernel.grid;
        let refuse = |reason: String| {
            Err(BackendError::Unsupported {
                target: target.into(),
                op: "special".into(),
                reason: format!("in `{}`: {reason}", kernel.name),
            })
        };
        let exceeds =
            |sizes: &[usize; 3], limits: &[usize; 3]| sizes.iter().zip(limits).any(|(size, limit)| size > limit);
        if exceeds(&groups, &self.counts) {
            return refuse(format!("{groups:?} workgroups, at most {:?}", self.counts));
        }
        if exceeds(&threads, &self.threads) || kernel.grid.size() > self.size {
            let (limits, size) = (self.threads, self.size);
            return refuse(format!("{threads:?} threads in a workgroup, at most {limits:?} and {size} in all"));
        }
        if kernel.scratch_bytes > self.local_bytes {
            let (bytes, limit) = (kernel.scratch_bytes, self.local_bytes);
            return refuse(format!("{bytes} bytes of LOCAL memory, at most {limit}"));
        }
        Ok(())
    }
}

impl Target {
    /// Lanes of a machine vector of this dtype; at least 1.
    pub fn lanes(&self, dtype: DType) -> usize {
        self.vector_bytes.checked_div(dtype.size()).map_or(1, |lanes| lanes.max(1))
    }

    /// Whether the target has masked loads of this dtype.
    pub fn masks_loads(&self, dtype: DType) -> bool {
        const LEAST: usize = size_of::<i32>();
        self.masked_access || dtype.size() >= LEAST && self.isa.as_ref().is_some_and(|isa| isa.has("avx2"))
    }

    /// Whether this op needs no decomposition.
    pub fn is_native(&self, op: Op) -> bool {
        self.native.contains(&op)
    }

    /// Whether a packed dot product of this dtype is one instruction.
    pub fn has_tensor_core(&self, dtype: DType) -> bool {
        self.tensor_cores.contains(&dtype)
    }

    /// The target without instructions that round sums of products differently from f32 arithmetic.
    pub fn strict(mut self) -> Target {
        self.tensor_cores.retain(|dtype| !dtype.is_float());
        self
    }

    /// Identity for caches.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self)
    }
}

/// Ops on floats that LLVM supports on every processor, CPU or GPU; the others are decomposed.
pub(crate) const LLVM_OPS: &[Op] = &[
    Op::Add,
    Op::Mul,
    Op::Max,
    Op::Div,
    Op::Recip,
    Op::Sqrt,
    Op::Trunc,
    Op::Mulacc,
    Op::Mod,
    Op::Idiv,
    Op::Shl,
    Op::Shr,
    Op::Cast,
    Op::Where,
];

/// Dtypes with native arithmetic in LLVM's code. Small floats are computed in f32 and rounded.
pub(crate) const LLVM_DTYPES: &[DType] = &[
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F32,
    DType::F64,
];
