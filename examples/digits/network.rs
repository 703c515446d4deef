//! A network of two layers, its loss, and its training step. The graphs are traced while rustc compiles this file:
//! change a size and it says which call no longer fits.

use crate::confusion::Confusion;
use crate::data::{Digits, PIXELS};
use tinyspec::prelude::*;

/// `x @ weight + bias`
#[model(functions)]
#[derive(Clone)]
pub struct Linear<I, O> {
    #[model(init = he)]
    weight: Tensor<f32, I, O>,
    bias: Tensor<f32, O>,
}

#[function]
impl<I, O> Linear<I, O> {
    fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        x.linear(&self.weight, &self.bias)
    }
}

/// From 8×8 pixels to a score for each of ten digits.
#[model(functions)]
#[derive(Clone)]
pub struct Network {
    hidden: Linear<64, 128>,
    output: Linear<128, 10>,
}

#[function]
impl Network {
    fn scores<B>(&self, images: &Tensor<f32, B, 64>) -> Tensor<f32, B, 10> {
        self.output.forward(&self.hidden.forward(images).relu())
    }

    fn loss<B>(&self, images: &Tensor<f32, B, 64>, labels: &Tensor<i32, B>) -> Tensor<f32> {
        self.scores(images).cross_entropy(labels, "mean", 0.0, -100)
    }
}

impl Network {
    /// The most likely digit of each image.
    pub fn predict(&self, digits: &Digits) -> Tensor {
        self.scores(&images(digits)).argmax(-1)
    }

    /// A batch where the weights are: on a tuple of devices each gets a part of it.
    fn beside(&self, batch: Tensor) -> Tensor {
        match self.output.bias.device() {
            Some(device) => batch.to(device),
            None => batch,
        }
    }

    /// Which digits were taken for which.
    pub fn test(&self, digits: &Digits) -> Result<Confusion> {
        Confusion::count(&labels(digits), &self.predict(digits))
    }

    /// Forward, backward and the update of the weights, computed as one graph; gives the loss.
    pub fn step(&mut self, optimizer: &mut Adam, batch: &Digits) -> Result<f32> {
        let loss = self.loss(&self.beside(images(batch)), &self.beside(labels(batch)));
        self.train_step(&loss, optimizer)?;
        loss.item()
    }
}

fn images(digits: &Digits) -> Tensor {
    Tensor::from_slice(&digits.images, [digits.len(), PIXELS])
}

fn labels(digits: &Digits) -> Tensor {
    let labels: Vec<i32> = digits.labels.iter().copied().map(i32::from).collect();
    Tensor::from_slice(&labels, [digits.len()])
}
