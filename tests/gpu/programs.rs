//! Programs whose results are compared with the CPU's.

use crate::Outcome;
use crate::data::Digits;
use crate::network::Network;
use std::path::Path;
use tinyspec::prelude::*;
use tinyspec::with_default_device;

/// Numbers around 0 that every machine makes alike.
pub fn numbers(shape: &[i64], seed: u64) -> Tensor {
    let count: i64 = shape.iter().product();
    let mut random = fastrand::Rng::with_seed(seed);
    let scale = 1.0 / shape.last().map_or(1.0, |&last| last.max(1) as f32).sqrt();
    let data: Vec<f32> = (0..count).map(|_| (2.0 * random.f32() - 1.0) * scale).collect();
    Tensor::from_vec(data, shape)
}

/// Trains on the digits; the share of held out images that are recognised, in percent.
///
/// # Errors
/// When the file cannot be read, or a kernel fails.
pub fn digits(device: &str, data: &Path, epochs: u64) -> Outcome<f64> {
    with_default_device(device, || {
        tinyspec::set_seed(1);
        let (train, test) = Digits::read(data)?.split(1);
        let (mut network, mut optimizer) = (Network::init(), Adam::new(2e-3));
        for epoch in 1..=epochs {
            for batch in train.shuffled(epoch).batches(32) {
                network.step(&mut optimizer, &batch)?;
            }
        }
        Ok(network.test(&test)?.accuracy())
    })
}

/// The file of digits that the example has.
pub fn shipped_digits() -> std::path::PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/data/digits.csv.gz").into()
}

/// How large the programs are.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Tokens of a sentence, and pixels of an image's side.
    pub rows: i64,
    /// Numbers a token.
    pub width: i64,
    /// Heads of attention.
    pub heads: i64,
    /// Channels of an image.
    pub channels: i64,
}

impl Size {
    /// For a simulator.
    pub const SMALL: Size = Size { rows: 10, width: 48, heads: 4, channels: 8 };
    /// For a GPU: the widths of MiniLM and of ResNet-50's second stage.
    pub const REAL: Size = Size { rows: 128, width: 384, heads: 12, channels: 64 };
}

/// A layer of MiniLM: attention of several heads and two products, each with its sum and normalisation.
pub fn encoder_layer(device: &str, Size { rows, width, heads, .. }: Size) -> Tensor {
    let mut seed = 0;
    let mut of = |shape: &[i64]| {
        seed += 1;
        numbers(shape, seed).to(device)
    };
    let x = of(&[rows, width]);
    let parts = x.linear(of(&[width, 3 * width]), of(&[3 * width])).reshape([rows, 3, heads, width / heads]);
    let part = |number: i64| parts.at((.., number)).transpose(0, 1);
    let scale = 1.0 / ((width / heads) as f32).sqrt();
    let scores = (part(0).matmul(part(1).transpose(1, 2)) * scale).softmax(-1);
    let joined = scores.matmul(part(2)).transpose(0, 1).reshape([rows, width]);
    let mut normal = |x: Tensor| x.layer_norm(of(&[width]) + 1.0, of(&[width]), 1, 1e-12);
    let x = normal(x + joined);
    let hidden = x.linear(numbers(&[width, 4 * width], 90).to(device), numbers(&[4 * width], 91).to(device)).gelu();
    let rest = hidden.linear(numbers(&[4 * width, width], 92).to(device), numbers(&[width], 93).to(device));
    normal(x + rest)
}

/// A block of ResNet: three convolutions with their normalisations, and the sum with what came in.
pub fn residual_block(device: &str, Size { rows, channels, .. }: Size) -> Tensor {
    let mut seed = 100;
    let mut of = |shape: &[i64]| {
        seed += 1;
        numbers(shape, seed).to(device)
    };
    let x = of(&[1, 4 * channels, rows, rows]);
    let mut convolution = |x: &Tensor, from: i64, to: i64, side: i64| {
        let weight = of(&[to, from, side, side]);
        let options = Conv2d { padding: [side / 2, side / 2], ..default() };
        let variance = of(&[to]).square() + 0.5;
        x.conv2d(&weight, None, options).batch_norm_eval(of(&[to]), of(&[to]), of(&[to]), variance, 1e-5)
    };
    let narrow = convolution(&x, 4 * channels, channels, 1).relu();
    let middle = convolution(&narrow, channels, channels, 3).relu();
    (convolution(&middle, channels, 4 * channels, 1) + x).relu()
}

#[function(bounds(T: 1..=64))]
fn attend<T>(q: &Tensor<f32, 1, 64>, keys: &Tensor<f32, T, 64>, values: &Tensor<f32, T, 64>) -> Tensor<f32, 1, 64> {
    (q.matmul(keys.transpose(0, 1)) * 0.125).softmax(-1).matmul(values)
}

/// Decodes with a cache of keys and values that grows by a row a step.
///
/// # Errors
/// When a kernel fails.
pub fn decode(device: &str, steps: i64) -> Result<Tensor> {
    let [mut keys, mut values] = [(); 2].map(|()| Tensor::zeros([64, 64]).to(device).contiguous());
    let mut x = numbers(&[1, 64], 7).to(device);
    for step in 0..steps {
        let at = Tensor::from_slice(&[step as i32], [1]).to(device);
        keys.set(&at, &x);
        values.set(&at, &x * 0.5);
        x = attend(&x, &keys.at(..=step), &values.at(..=step)) + numbers(&[1, 64], 1000 + step as u64).to(device);
        x.realize()?;
    }
    Ok(x)
}

/// Runs the programs but the digits on a device and on the CPU.
///
/// # Errors
/// When they differ: which program, and where.
pub fn agree(device: &str, size: Size, steps: i64) -> Outcome {
    let close = |name: &str, found: Tensor, expected: Tensor| -> Outcome {
        let (found, expected) = (found.to_vec::<f32>()?, expected.to_vec::<f32>()?);
        let differs = |(found, expected): (&f32, &f32)| {
            let is_near = (found - expected).abs() <= 1e-4 * (1.0 + expected.abs());
            !is_near
        };
        match found.iter().zip(&expected).position(differs) {
            None if found.len() == expected.len() && found.iter().any(|&value| value != 0.0) => Ok(()),
            place => {
                let at = place.unwrap_or(0);
                Err(format!("{name} on {device}: element {at} is {}, on the CPU {}", found[at], expected[at]).into())
            }
        }
    };
    let on = |device: &str| -> Result<_> {
        let all = [encoder_layer(device, size), residual_block(device, size), decode(device, steps)?];
        realize_all(&all.iter().collect::<Vec<_>>())?;
        Ok(all)
    };
    let names = ["a layer of MiniLM", "a block of ResNet", "decoding"];
    let both = on(device)?.into_iter().zip(on("cpu")?);
    names.into_iter().zip(both).try_for_each(|(name, (found, expected))| close(name, found, expected))
}
