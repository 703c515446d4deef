//! Handwritten digits: `cargo run --release --example digits`.

mod confusion;
mod data;
mod draw;
mod network;
mod options;
mod program;

use options::Options;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

fn main() -> ExitCode {
    match program::run(&argh::from_env::<Options>(), &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has read enough: `digits | head`.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
