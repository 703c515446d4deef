//! The command line.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use argh::{FromArgValue, FromArgs};

/// Trains a small network on handwritten digits.
#[derive(Debug, FromArgs)]
pub struct Options {
    /// the digits: CSV, gzipped or not, 64 pixels from 0 to 16 and the label on every line [default: those beside the program]
    #[argh(option, arg_name = "file", default = "shipped()")]
    pub data: PathBuf,
    /// of the random numbers: initial weights, the split into training and test images, shuffling [default: 0]
    #[argh(option, arg_name = "n", default = "0")]
    pub seed: u64,
    /// how often every image is seen [default: 30]
    #[argh(option, arg_name = "n", default = "NonZeroU32::new(30).unwrap()")]
    pub epochs: NonZeroU32,
    /// what computes: cpu or interpreter [default: what TINYSPEC_DEVICE says, else cpu]
    #[argh(option)]
    pub device: Option<Device>,
    /// devices that share every batch: with more than one, virtual ones, each with the whole network and its part of the
    /// images [default: 1]
    #[argh(option, arg_name = "n", default = "NonZeroU16::MIN")]
    pub devices: NonZeroU16,
    /// where the weights are kept, as safetensors [default: nowhere after the run]
    #[argh(option, arg_name = "file")]
    pub weights: Option<PathBuf>,
    /// where the training is kept after every epoch; if the file is there, the training goes on from it
    #[argh(option, arg_name = "file")]
    pub training: Option<PathBuf>,
    /// deal the labels out at random first: the accuracy must fall to chance
    #[argh(switch)]
    pub shuffle_labels: bool,
}

fn shipped() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/digits/data/digits.csv.gz").into()
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromArgValue)]
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
