//! GPUs in software: machine code is executed instruction by instruction, and whatever a GPU would get wrong silently is an
//! error that names the kernel, the instruction and the lanes.
//!
//! [`ptx`] reads PTX text, [`amd`] code objects of AMD's GPUs, whose bytes LLVM's disassembler decodes. Both are executed on the
//! machine of [`lanes`]: waves whose lanes share a register file, memory with bounds, initialisation and races tracked byte by
//! byte, barriers. The simulators share no table with the compilers whose code they run: both sides are written from the
//! instruction set's documentation.
//!
//! ```
//! use tinyspec_simulators::{Launch, Simulation, ptx::Module};
//!
//! let module = Module::parse(
//!     ".version 7.0\n.target sm_80\n.address_size 64\n\
//!      .visible .entry double(.param .u64 double_param_0) .reqntid 32 {\n\
//!      .reg .b32 %r<3>; .reg .b64 %rd<4>;\n\
//!      ld.param.u64 %rd1, [double_param_0]; cvta.to.global.u64 %rd2, %rd1;\n\
//!      mov.u32 %r1, %tid.x; mad.wide.u32 %rd3, %r1, 4, %rd2;\n\
//!      ld.global.u32 %r2, [%rd3]; shl.b32 %r2, %r2, 1; st.global.u32 [%rd3], %r2; ret; }",
//! )?;
//! let mut simulation = Simulation::new();
//! let buffer = simulation.buffer(&(0..32u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
//! simulation.run(&module.kernel("double")?, &Launch::threads(1, 32), &[buffer])?;
//! assert_eq!(simulation.bytes(buffer)?[4 * 5], 10);
//! # Ok::<(), tinyspec_simulators::SimulatorError>(())
//! ```

pub mod amd;
mod error;
mod float;
pub mod lanes;
pub mod ptx;
mod runtime;
mod simulation;

pub use error::{Fault, FaultKind, Position, SimulatorError};
pub use lanes::launch::{Launch, Parameter, Run};
pub use runtime::{AmdRuntime, PtxRuntime, register_amd, register_ptx};
pub use simulation::{Argument, BufferId, Simulation};
