//! The text form of a graph, with one node per line. Whatever is printed parses back to the identical graph.
//!
//! ```text
//! %0 = stack()
//! %1 = param[0 f32 @cpu global](%0)          ; f32 []
//! %2 = const[f32 2.0]                        ; f32 []
//! %3 = mul(%1, %2)                           ; f32 []
//! return %3
//! ```
//!
//! Nodes are numbered in walk order; text after `;` is a comment.

mod parse;
mod print;

pub use parse::parse;
pub use print::print;
