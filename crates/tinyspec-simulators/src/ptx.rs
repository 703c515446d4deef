//! PTX: text → syntax → instructions in a compact form → lanes.

mod arithmetic;
mod decode;
mod execute;
mod float;
mod kernel;
mod lexer;
mod parse;
mod syntax;
mod types;

pub(crate) use execute::{Given, run};
pub use kernel::{Kernel, Module};
