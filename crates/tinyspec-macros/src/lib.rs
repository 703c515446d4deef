//! The home of the `#[function]` and `uop!` macros of tinyspec: not written yet. They will build on
//! [`tinyspec_ir`]'s method table, so that what is traced at compile time is the graph that a run-time trace gives.
