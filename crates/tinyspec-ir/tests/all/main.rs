//! Tests of the language through its public surface.

mod eval;
mod forms;
mod symbolic;
mod verify;
