//! The parts of the digits example that work without a network.

#[path = "../data.rs"]
mod data;
#[path = "../draw.rs"]
mod draw;
#[path = "../options.rs"]
mod options;

mod drawing;
mod line;
mod reading;
mod splitting;
