//! What the program does, from the digits to the accuracy.

use crate::data::Digits;
use crate::draw::{Drawing, draw};
use crate::network::Network;
use crate::options::Options;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tinyspec::nn::{Adam, Model, resume, save_training};

/// Images a step, if there are as many; what is left over at the end of an epoch waits for the next one, which has
/// another order.
const BATCH: usize = 32;
const LEARNING_RATE: f32 = 2e-3;
/// Images drawn at the end.
const SHOWN: usize = 6;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Trains, saves, loads and tests; what there is to tell is written to `out`.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let mut digits = Digits::read(&options.data)?;
    if options.shuffle_labels {
        digits.shuffle_labels(options.seed);
    }
    if let Some(device) = options.device {
        tinyspec::set_default_device(device.name())?;
    }
    let device = tinyspec::default_device()?;
    tinyspec::set_seed(options.seed);
    let (train, test) = digits.split(options.seed);
    writeln!(out, "{} images to train on, {} held out, device {}", train.len(), test.len(), device.name())?;

    let network = train_network(options, &train, out)?;
    let network = saved(network, options.weights.as_deref(), out)?;

    let predicted = network.predict(&test).to_vec::<i32>()?;
    let shown: Vec<_> = test
        .iter()
        .zip(&predicted)
        .take(SHOWN)
        .map(|((image, label), &predicted)| Drawing { image, label, predicted: u8::try_from(predicted).ok() })
        .collect();
    write!(out, "{}", draw(&shown))?;
    let confusion = network.test(&test)?;
    let of_each: Vec<String> =
        confusion.recognised().enumerate().map(|(digit, share)| format!("{digit}: {share:.0} %")).collect();
    writeln!(out, "recognised  {}", of_each.join("  "))?;
    writeln!(out, "test accuracy {:.1} %", confusion.accuracy())?;
    Ok(())
}

fn train_network(options: &Options, train: &Digits, out: &mut impl Write) -> Result<Network> {
    let device = tinyspec::default_device()?;
    let mut optimizer = Adam::new(LEARNING_RATE);
    let (done, mut network) = match options.training.as_deref().filter(|file| file.exists()) {
        Some(file) => resume(file, &mut optimizer)?,
        None => (0, Network::init()),
    };
    if done > 0 {
        writeln!(out, "{done} epochs were trained before")?;
    }
    let devices = options.devices.get();
    if devices > 1 {
        let names: Vec<String> = (0..devices).map(|number| format!("{}:{number}", device.name())).collect();
        network = network.to(device.name()).to(&names);
    }
    // The first step then only reads the weights, like all others.
    tinyspec::realize_all(&network.parameters())?;
    let start = Instant::now();
    let batch_size = BATCH.min(train.len());
    let batches = train.len() / batch_size;
    for epoch in done + 1..=options.epochs.get() as usize {
        let shuffled = train.shuffled(options.seed.wrapping_add(epoch as u64));
        let mut total = 0.0;
        for batch in shuffled.batches(batch_size) {
            total += network.step(&mut optimizer, &batch)?;
        }
        let (loss, accuracy) = (total / batches as f32, network.clone().to(device.name()).test(train)?.accuracy());
        writeln!(out, "epoch {epoch:2}  loss {loss:.4}  training accuracy {accuracy:.1} %")?;
        if let Some(file) = &options.training {
            save_training(file, epoch, &network, &optimizer)?;
        }
    }
    let compiled = tinyspec::profile::counters();
    writeln!(
        out,
        "trained in {:.2} s, of which {:.3} s compiling {} kernels",
        start.elapsed().as_secs_f64(),
        compiled.compiling.as_secs_f64(),
        compiled.kernels
    )?;
    Ok(network.to(device.name()))
}

/// The network as a file gives it back; where there can be no file, the trained one.
fn saved(network: Network, weights: Option<&Path>, out: &mut impl Write) -> Result<Network> {
    let file = match weights {
        Some(path) => WeightsFile { path: path.into(), is_temporary: false },
        None => {
            let name = format!("tinyspec-digits-{}.safetensors", std::process::id());
            WeightsFile { path: std::env::temp_dir().join(name), is_temporary: true }
        }
    };
    match network.save(&file.path).and_then(|()| Network::load(&file.path)) {
        Ok(loaded) => {
            let kept = if file.is_temporary { "; --weights FILE keeps them" } else { "" };
            writeln!(out, "weights saved to {} and loaded back{kept}", file.path.display())?;
            Ok(loaded)
        }
        Err(error) => {
            writeln!(out, "weights not saved: {error}")?;
            Ok(network)
        }
    }
}

/// Where the weights go; of no use after the run unless the user named it.
struct WeightsFile {
    path: PathBuf,
    is_temporary: bool,
}

impl Drop for WeightsFile {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
