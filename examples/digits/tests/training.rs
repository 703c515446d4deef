//! The network learns, the same on every device.

use crate::data::Digits;
use crate::network::Network;
use crate::options::Options;
use argh::FromArgs;
use tinyspec::nn::{Adam, Model};
use tinyspec::{Error, realize_all, with_default_device};

/// Losses of some steps, and the accuracy after them.
fn train(device: &str, steps: usize) -> Result<(Vec<f32>, f64), Error> {
    train_shared(device, 1, steps)
}

/// As [`train`], each batch shared by several virtual devices.
fn train_shared(device: &str, devices: usize, steps: usize) -> Result<(Vec<f32>, f64), Error> {
    let _alone = crate::alone();
    with_default_device(device, || {
        tinyspec::set_seed(5);
        let digits = Digits::read(&Options::from_args(&["digits"], &[]).unwrap().data).unwrap();
        let (train, test) = digits.split(5);
        let mut network = Network::init();
        if devices > 1 {
            let names: Vec<String> = (0..devices).map(|number| format!("{device}:{number}")).collect();
            network = network.to(device).to(&names);
        }
        realize_all(&network.parameters())?;
        let mut optimizer = Adam::new(2e-3);
        let losses = train.batches(32).take(steps).map(|batch| network.step(&mut optimizer, &batch));
        Ok((losses.collect::<Result<_, _>>()?, network.to(device).test(&test)?.accuracy()))
    })
}

#[test]
fn an_epoch_recognises_most_digits() {
    let (losses, accuracy) = train("cpu", 44).unwrap();
    assert!(losses[43] < 0.5 * losses[0], "{losses:?}");
    assert!(accuracy > 75.0, "{accuracy}");
}

#[test]
fn the_interpreter_computes_the_same_steps() {
    let (machine, _) = train("cpu", 4).unwrap();
    let (interpreted, _) = train("interpreter", 4).unwrap();
    for (a, b) in machine.iter().zip(&interpreted) {
        assert!((a - b).abs() < 1e-4 * a.abs(), "{machine:?} and {interpreted:?}");
    }
}

#[test]
fn devices_that_share_the_batches_compute_the_same_steps() {
    let (one, _) = train("cpu", 12).unwrap();
    for devices in [2, 4] {
        let (shared, _) = train_shared("cpu", devices, 12).unwrap();
        for (a, b) in one.iter().zip(&shared) {
            assert!((a - b).abs() < 1e-4 * a.abs(), "{one:?} and {shared:?} on {devices} devices");
        }
    }
}

#[test]
fn weights_survive_a_file() {
    let _alone = crate::alone();
    let path = std::env::temp_dir().join(format!("tinyspec-test-{}.safetensors", std::process::id()));
    let digits = Digits::read(&Options::from_args(&["digits"], &[]).unwrap().data).unwrap();
    let network = Network::init();
    network.save(&path).unwrap();
    let loaded = Network::load(&path).unwrap();
    let predicted = |network: &Network| network.predict(&digits).to_vec::<i32>().unwrap();
    assert_eq!(predicted(&network), predicted(&loaded));
    std::fs::write(&path, b"no weights").unwrap();
    assert!(Network::load(&path).is_err());
    std::fs::remove_file(&path).unwrap();
}
