//! What a GPU is tried with. Tests do it on a simulated one, `scripts/gpu-check` on a real one.

// Of the example all is used but its command line.
#[allow(dead_code)]
#[path = "../../examples/digits/confusion.rs"]
mod confusion;
#[allow(dead_code)]
#[path = "../../examples/digits/data.rs"]
mod data;
pub mod facts;
#[allow(dead_code)]
#[path = "../../examples/digits/network.rs"]
mod network;
pub mod numbers;
pub mod programs;
pub mod rates;
#[path = "../recorder.rs"]
pub mod recorder;

/// What goes wrong, in words.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
