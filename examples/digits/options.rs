//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Trains a small network on handwritten digits.
#[derive(Debug, Parser)]
pub struct Options {
    /// The digits: CSV, gzipped or not, 64 pixels from 0 to 16 and the label on every line
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/digits/data/digits.csv.gz"), hide_default_value = true)]
    pub data: PathBuf,
    /// Decides which images are held out, and every other choice of chance
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How often every image is seen
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub epochs: u32,
    /// What computes [default: what TINYSPEC_DEVICE says, else cpu]
    #[arg(long, value_enum)]
    pub device: Option<Device>,
    /// Devices that share every batch: with more than one, virtual ones, each with the whole network and its part of the
    /// images
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub devices: u16,
    /// Where the weights are kept, as safetensors [default: nowhere after the run]
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Where the training is kept after every epoch; if the file is there, the training goes on from it
    #[arg(long, value_name = "FILE")]
    pub training: Option<PathBuf>,
    /// Deal the labels out at random first: the accuracy must fall to chance
    #[arg(long)]
    pub shuffle_labels: bool,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// Machine code
    Cpu,
    /// The interpreter: slow, needs nothing
    Interpreter,
}

impl Device {
    /// What the library calls it.
    pub fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Interpreter => "interpreter",
        }
    }
}
