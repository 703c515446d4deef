//! Handwritten digits: `cargo run --release --example digits`.

mod data;
mod draw;
mod options;

use std::process::ExitCode;

use clap::Parser;
use data::{Digits, Error};
use draw::{Drawing, draw};
use options::Options;

/// Images drawn at the end.
const SHOWN: usize = 6;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let mut digits = Digits::read(&options.data)?;
    if options.shuffle_labels {
        digits.shuffle_labels(options.seed);
    }
    let (train, test) = digits.split(options.seed);
    println!("{} images to train on, {} held out", train.len(), test.len());
    let shown: Vec<_> =
        test.iter().take(SHOWN).map(|(image, label)| Drawing { image, label, predicted: None }).collect();
    print!("{}", draw(&shown));
    Ok(())
}
