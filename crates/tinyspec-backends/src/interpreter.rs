//! The interpreters, one per level of the language, over one `eval_op`.
//!
//! * [`tensor`]: a tensor graph on arrays, the oracle of every other form;
//! * [`ranges`]: kernels in range form or tiles, and whole schedules of them;
//! * [`linear`]: linear kernels, as a device;
//! * [`simt`]: linear kernels of workgroups, as a GPU that detects data races.

pub mod array;
pub mod linear;
pub mod ranges;
pub mod simt;
pub mod tensor;

use crate::{Rates, Target};
use tinyspec_ir::{DType, Op};

/// The interpreter as a device: every op is native, vectors are wide so that one dispatch serves many lanes.
pub fn target() -> Target {
    use DType::*;
    Target {
        name: "interpreter".into(),
        fingerprint: format!("interpreter {}", env!("CARGO_PKG_VERSION")),
        isa: None,
        vector_bytes: 256,
        vector_registers: 32,
        masked_access: true,
        fused_multiply_add: true,
        accumulators: 1,
        watches_races: true,
        tensor_cores: vec![DType::U8, DType::I16, DType::BF16],
        threads: 1,
        cache_bytes: [32 << 10, 1 << 20, 32 << 20],
        rates: Rates::TYPICAL,
        workgroups: None,
        instructions: Vec::new(),
        native: Op::ALL.iter().copied().filter(|op| op.is_elementwise()).collect(),
        arithmetic: vec![Bool, I8, I16, I32, I64, U8, U16, U32, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
    }
}
