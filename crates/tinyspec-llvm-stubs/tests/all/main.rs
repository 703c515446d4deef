//! Tests of the stubs.

mod binding;
mod names;
