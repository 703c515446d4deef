//! The digits example, part by part.

#[path = "../data.rs"]
mod data;
#[path = "../draw.rs"]
mod draw;
#[path = "../network.rs"]
mod network;
#[path = "../options.rs"]
mod options;

mod drawing;
mod line;
mod reading;
mod splitting;
mod training;
