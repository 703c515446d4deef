//! The conformance corpus and some kernels written by hand, lowered: what the text form, the verifiers and the interpreters
//! make of every stage.
//!
//! `cargo test --release --test lowered -- --nocapture` prints how many mutants were found out; `TINYSPEC_MUTANTS=1000` tries
//! more kernels, `TINYSPEC_SURVIVORS=1` shows what passed.

mod blocks;
#[path = "../conformance/corpus.rs"]
#[allow(dead_code)]
mod corpus;
mod forms;
#[path = "../launch.rs"]
#[allow(dead_code)]
mod launch;
#[path = "../conformance/models.rs"]
mod models;
mod mutations;
#[path = "../conformance/programs.rs"]
mod programs;
mod replay;
#[path = "../conformance/run.rs"]
#[allow(dead_code)]
mod run;
mod stages;
mod written;
