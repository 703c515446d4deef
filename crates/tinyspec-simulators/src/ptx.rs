//! PTX: text → syntax → instructions in a compact form → lanes.

mod arithmetic;
mod decode;
mod execute;
mod kernel;
mod lexer;
mod parse;
mod syntax;
mod types;

pub use kernel::{Kernel, Module};
