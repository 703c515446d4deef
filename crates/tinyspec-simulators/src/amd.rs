//! Machine code of AMD's GPUs: code objects → the text of LLVM's disassembler → instructions in a compact form → lanes.

mod arithmetic;
mod chip;
mod decode;
mod execute;
mod kernel;
mod kind;
mod lanes;
mod object;
mod origins;
mod table;
mod text;
mod wave;

pub use kernel::{Kernel, Module};
