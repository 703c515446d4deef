//! Tests of the language through its public surface.

mod eval;
mod forms;
mod rules;
mod symbolic;
mod verify;
