//! Tests of the language through its public surface.

mod access;
mod affine;
mod any_input;
mod documents;
mod eval;
mod forms;
mod graph;
mod interval;
mod methods;
mod mistakes;
mod rules;
mod symbolic;
mod verify;
