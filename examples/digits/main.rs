//! Handwritten digits: `cargo run --release --example digits`.

mod data;
mod draw;
mod network;
mod options;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use data::Digits;
use draw::{Drawing, draw};
use indicatif::{ProgressBar, ProgressStyle};
use network::Network;
use options::Options;
use tinyspec::nn::Adam;

/// Images a step; what is left over at the end of an epoch waits for the next one, which has another order.
const BATCH: usize = 32;
const LEARNING_RATE: f32 = 2e-3;
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

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let mut digits = Digits::read(&options.data)?;
    if options.shuffle_labels {
        digits.shuffle_labels(options.seed);
    }
    tinyspec::set_default_device(options.device.name())?;
    tinyspec::set_seed(options.seed);
    let (train, test) = digits.split(options.seed);
    println!("{} images to train on, {} held out, device {}", train.len(), test.len(), options.device.name());

    let network = train_network(options, &train)?;

    let file = std::env::temp_dir().join(format!("tinyspec-digits-{}.safetensors", std::process::id()));
    network.save(&file)?;
    let loaded = Network::load(&file)?;
    println!("weights saved to {} and loaded back", file.display());
    let predicted = loaded.predict(&test)?;
    let shown: Vec<_> = test
        .iter()
        .zip(&predicted)
        .take(SHOWN)
        .map(|((image, label), &predicted)| Drawing { image, label, predicted: u8::try_from(predicted).ok() })
        .collect();
    print!("{}", draw(&shown));
    println!("test accuracy {:.1} %", loaded.accuracy(&test)?);
    Ok(())
}

fn train_network(options: &Options, train: &Digits) -> Result<Network, Box<dyn std::error::Error>> {
    let mut network = Network::new();
    network.realize()?;
    let mut optimizer = Adam::new(LEARNING_RATE);
    let start = Instant::now();
    let batches = train.len() / BATCH;
    for epoch in 1..=options.epochs {
        let bar =
            ProgressBar::new(batches as u64).with_style(ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}")?);
        bar.set_message(format!("epoch {epoch:2}"));
        let shuffled = train.shuffled(options.seed.wrapping_add(u64::from(epoch)));
        let mut total = 0.0;
        for batch in shuffled.batches(BATCH) {
            total += network.step(&mut optimizer, &batch)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        println!(
            "epoch {epoch:2}  loss {:.4}  training accuracy {:.1} %",
            total / batches.max(1) as f32,
            network.accuracy(train)?
        );
    }
    let compiled = tinyspec::profile::counters();
    println!(
        "trained in {:.2} s, of which {:.3} s compiling {} kernels",
        start.elapsed().as_secs_f64(),
        compiled.compiling.as_secs_f64(),
        compiled.kernels
    );
    Ok(network)
}
