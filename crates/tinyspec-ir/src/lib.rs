//! The UOp language of tinyspec: op table, graph, dtypes, derived properties, symbolic rules, gradients, and the
//! composed tensor ops; the text and binary forms of a graph; and `eval_op`, which defines what every op computes.
//!
//! It is free of time, I/O and devices, and has few dependencies, since the macros are built with it.

pub mod address;
pub mod affine;
pub mod arg;
mod builder;
pub mod commands;
pub mod custom_function;
mod derive;
pub mod dim;
pub mod dtype;
pub mod encode;
mod error;
pub mod eval;
pub mod float;
pub mod function;
pub mod gradient;
mod graph;
mod hash;
pub mod instruction;
pub mod instructions;
mod interval;
pub mod kernel;
pub mod masks;
pub mod op;
pub mod ops;
mod props;
pub mod rewrite;
pub mod rules;
pub mod signature;
pub mod special;
pub mod text;
pub mod verify;
mod views;
pub mod words;

pub use arg::{AddrSpace, Arg, Axes, AxisType, Const, Device};
pub use builder::Builder;
pub use derive::{cut, derive};
pub use dim::{Dim, Shape};
pub use dtype::DType;
pub use error::{Error, ErrorKind, Location, Result};
pub use graph::{Graph, NodeId};
pub use hash::{ContentHash, ContentHasher};
pub use interval::{Floats, Interval};
pub use op::{Category, Op};
pub use props::Props;
