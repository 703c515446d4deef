//! GPUs in software: machine code is executed instruction by instruction, and whatever a GPU would get wrong silently is an
//! error that names the kernel, the instruction and the lanes.
//!
//! [`ptx`] reads PTX text, [`amd`] code objects of AMD's GPUs, whose bytes LLVM's disassembler decodes. Both are executed on the
//! machine of [`lanes`]: waves whose lanes share a register file, memory with bounds, initialisation and races tracked byte by
//! byte, barriers. The simulators share no table with the compilers whose code they run: both sides are written from the
//! instruction set's documentation.
//!
//! Checks:
//!
//! * *Unwritten values* are tracked per lane, from registers and LOCAL memory to where they are stored, branched on or
//!   used as an address: by bits on PTX; on AMD by bytes of registers, and by bits of scalars. Which bits of a result
//!   depend on unwritten bits of an operand is found by trying, for instructions such as shifts where only some do.
//! * *Values still being loaded* (AMD) may not be used before a wait that covers them, except by a later load on chips
//!   that write loads in order. A wave may not reach a barrier while its accesses of LOCAL memory are outstanding.
//! * *Races* are found with vector clocks. Each piece of memory remembers its last writer and enough readers; barriers
//!   and `bar.warp.sync` join the clocks of their waves. So a race is found in whatever order waves run, if the bytes
//!   are touched at all. Lanes of an AMD wave run in lockstep, so a wave's instructions are ordered. Lanes of a PTX
//!   warp that diverge run apart, in random but repeatable order, until a `.sync` instruction joins them.
//! * *Bounds* hold per buffer: decoding determines which parameters an address derives from, and an access must land in
//!   the memory of one of them. An atomic access of 4 bytes may extend beyond the end if it leaves the bytes there
//!   unchanged, which is how numbers of 8 and 16 bits are added to.
//!
//! Stricter than hardware: a barrier that finished threads do not reach, or that lanes of a wave skip, and `.sync`
//! instructions met at different places, are errors; float `add`, `sub` and `mul` of PTX must say `.rn`. More lenient:
//! approximate functions give the nearest number, and waits between instructions that touch no memory (`s_nop`,
//! `s_delay_alu`) are not required.
//!
//! An error shows the instruction with its line in the PTX or its number in the object, and the instruction of the
//! Linear form that it was compiled from: `LlvmCompiler::located` adds debug locations, which are lines of the printed
//! Linear form, and that is kept behind the code (`runtime/linear.rs`). What LLVM merged from several instructions, or
//! made itself, has no location. The instructions are the same with and without locations.
//!
//! [`register_ptx`] and [`register_amd`] make a device of one chip and a compiler. To add an instruction: on PTX, its
//! lanes in `ptx/arithmetic/` and its suffixes in `ptx/decode/`; on AMD, a row in `amd/table/`. The expected results in
//! `tests/all/` come from the vendors' documentation.
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
