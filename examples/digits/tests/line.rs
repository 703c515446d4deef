use clap::Parser;

use crate::data::Digits;
use crate::options::{Device, Options};

fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
    Options::try_parse_from(std::iter::once(&"digits").chain(arguments))
}

#[test]
fn without_options_the_shipped_digits_are_read() {
    let options = parse(&[]).unwrap();
    assert_eq!((options.seed, options.device, options.shuffle_labels), (0, Device::Cpu, false));
    assert_eq!(Digits::read(&options.data).unwrap().len(), 1797);
}

#[test]
fn every_option_is_taken() {
    let arguments = ["--data", "x.gz", "--seed", "7", "--epochs", "3", "--device", "interpreter", "--shuffle-labels"];
    let options = parse(&arguments).unwrap();
    assert_eq!((options.data.to_str(), options.seed, options.epochs), (Some("x.gz"), 7, 3));
    assert_eq!((options.device, options.shuffle_labels), (Device::Interpreter, true));
    assert_eq!(options.device.name(), "interpreter");
}

#[test]
fn no_epoch_and_an_unknown_device_are_refused() {
    assert!(parse(&["--epochs", "0"]).unwrap_err().to_string().contains("0 is not in 1.."));
    assert!(parse(&["--device", "abacus"]).unwrap_err().to_string().contains("[possible values: cpu, interpreter]"));
}
