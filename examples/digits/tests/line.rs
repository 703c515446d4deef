use argh::FromArgs;

use crate::data::Digits;
use crate::options::{Device, Options};

fn parse(arguments: &[&str]) -> Result<Options, argh::EarlyExit> {
    Options::from_args(&["digits"], arguments)
}

#[test]
fn without_options_the_shipped_digits_are_read() {
    let options = parse(&[]).unwrap();
    assert_eq!((options.seed, options.device, options.shuffle_labels), (0, None, false));
    assert_eq!(options.weights, None);
    assert_eq!(Digits::read(&options.data).unwrap().len(), 1797);
}

#[test]
fn every_option_is_taken() {
    let line = "--data x.gz --seed 7 --epochs 3 --device interpreter --shuffle-labels --weights w.safetensors";
    let options = parse(&line.split(' ').collect::<Vec<_>>()).unwrap();
    assert_eq!((options.data.to_str(), options.seed, options.epochs.get()), (Some("x.gz"), 7, 3));
    assert_eq!((options.device, options.shuffle_labels), (Some(Device::Interpreter), true));
    assert_eq!(options.device.map(Device::name), Some("interpreter"));
    assert_eq!(options.weights.unwrap().to_str(), Some("w.safetensors"));
}

#[test]
fn no_epoch_and_an_unknown_device_are_refused() {
    let refused = |arguments| parse(arguments).unwrap_err().output;
    assert!(refused(&["--epochs", "0"]).contains("option '--epochs' with value '0'"));
    assert!(refused(&["--device", "abacus"]).contains("expected \"cpu\" or \"interpreter\""));
}
