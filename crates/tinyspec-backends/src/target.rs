//! What a device can do, as data; the lowering asks nothing else.

use crate::processor::Isa;
use crate::{BackendError, Grid, LinearKernel, Rates};
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{ContentHash, DType, Op};

/// Facts of a device that decide how kernels are lowered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Device kind, such as `cpu`.
    pub name: String,
    /// What the other facts do not say, such as the processor's model: part of every cache key.
    pub fingerprint: String,
    /// What machine code is generated for; `None` where kernels are interpreted.
    pub isa: Option<Isa>,
    /// Bytes of a machine vector; 0 where there are only scalars.
    pub vector_bytes: usize,
    /// Number of vector registers.
    pub vector_registers: usize,
    /// Loads, stores and arithmetic can be masked per lane at no cost.
    pub masked_access: bool,
    /// Fused multiply-add in hardware.
    pub fused_multiply_add: bool,
    /// Independent accumulators that hide the latency of an add (latency × throughput).
    pub accumulators: usize,
    /// Looks while a kernel written by hand runs whether its parallel iterations meet: they are not made into vectors.
    pub watches_races: bool,
    /// Threads that share a GLOBAL axis.
    pub threads: usize,
    /// Bytes of the first- and second-level data caches of a core, and of the last one, which all share; 0 for none.
    pub cache_bytes: [usize; 3],
    /// How fast a core works.
    pub rates: Rates,
    /// Ops beyond the primitives that need no decomposition: on floats unless said.
    pub native: Vec<Op>,
    /// Instructions beyond the ops.
    pub instructions: Vec<Instruction>,
    /// What one instruction multiplies in words and adds to a sum (Wmma): pairs of I16 into i32, exactly; four of U8 with four of
    /// I8 into i32, exactly (listed as U8); pairs of BF16 into f32, where pairs are added before they are rounded and subnormal
    /// numbers are 0 (see [`Target::strict`]).
    pub tensor_cores: Vec<DType>,
    /// Dtypes that arithmetic is done in; others are storage only.
    pub arithmetic: Vec<DType>,
    /// Threads in workgroups, on a GPU; `None` where GLOBAL and LOCAL axes are loops.
    pub workgroups: Option<Workgroups>,
}

/// What a GPU launches: workgroups of threads that share LOCAL memory and wait for each other at Barriers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workgroups {
    /// Most workgroups of a launch, by dimension.
    pub counts: [usize; 3],
    /// Most threads of a workgroup, by dimension.
    pub threads: [usize; 3],
    /// Most threads of a workgroup in all.
    pub size: usize,
    /// Threads that execute together: a warp, a wave.
    pub warp: usize,
    /// Bytes of LOCAL memory that a workgroup may use.
    pub local_bytes: usize,
    /// Processors that run workgroups: multiprocessors, compute units.
    pub processors: usize,
    /// Threads that a processor holds at once, of all its workgroups.
    pub resident: usize,
}

impl Workgroups {
    /// Threads that the device holds at once.
    pub fn capacity(&self) -> usize {
        self.processors * self.resident
    }

    /// Refuses what no launch can have.
    ///
    /// # Errors
    /// When the kernel has more workgroups, threads or LOCAL memory than this.
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

    /// Has this op as it is.
    pub fn is_native(&self, op: Op) -> bool {
        self.native.contains(&op)
    }

    /// Multiplies words of such numbers by one instruction.
    pub fn has_tensor_core(&self, dtype: DType) -> bool {
        self.tensor_cores.contains(&dtype)
    }

    /// The target without instructions that round sums of products in another way than f32 arithmetic does.
    pub fn strict(mut self) -> Target {
        self.tensor_cores.retain(|dtype| !dtype.is_float());
        self
    }

    /// Identity for caches.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self)
    }
}

/// Ops on floats for which LLVM makes code on every processor, CPU or GPU; the others are decomposed.
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

/// Dtypes that this code computes in. Small floats are computed in f32 and rounded.
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
