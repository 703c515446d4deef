//! A network of two layers, and its training step.

use crate::data::{CLASSES, Digits, PIXELS};
use std::path::Path;
use tinyspec::nn::{self, Adam, Optimizer};
use tinyspec::{Error, Result, Tensor, grad, realize_all};

/// Width of the hidden layer.
const HIDDEN: usize = 128;
/// Names of the weights in the file.
const NAMES: [&str; 4] = ["hidden.weight", "hidden.bias", "output.weight", "output.bias"];

/// `relu(x @ w1 + b1) @ w2 + b2`.
pub struct Network {
    weights: [Tensor; 4],
}

impl Network {
    /// Weights drawn at random, scaled so that signals keep their size (He et al., 2015).
    pub fn new() -> Network {
        let layer = |inputs: usize, outputs: usize| Tensor::randn([inputs, outputs]) * (2.0 / inputs as f32).sqrt();
        let classes = CLASSES as usize;
        let bias = |width: usize| Tensor::zeros([width]).contiguous();
        Network { weights: [layer(PIXELS, HIDDEN), bias(HIDDEN), layer(HIDDEN, classes), bias(classes)] }
    }

    /// A score for each class.
    fn scores(&self, images: &Tensor) -> Tensor {
        let [hidden_weight, hidden_bias, output_weight, output_bias] = &self.weights;
        images.linear(hidden_weight, hidden_bias).relu().linear(output_weight, output_bias)
    }

    /// The most likely class of each image.
    pub fn predict(&self, digits: &Digits) -> Result<Vec<i32>> {
        self.scores(&images(digits)).argmax(-1).to_vec()
    }

    /// Share of the images that are recognised, in percent.
    pub fn accuracy(&self, digits: &Digits) -> Result<f64> {
        let predicted = self.predict(digits)?;
        let right = predicted.iter().zip(&digits.labels).filter(|(predicted, label)| **predicted == i32::from(**label));
        Ok(100.0 * right.count() as f64 / digits.len().max(1) as f64)
    }

    /// Forward, backward and the update of the weights, computed as one graph; gives the loss.
    pub fn step(&mut self, optimizer: &mut Adam, batch: &Digits) -> Result<f32> {
        let labels: Vec<i32> = batch.labels.iter().copied().map(i32::from).collect();
        let labels = Tensor::from_slice(&labels, [batch.len()]);
        let loss = self.scores(&images(batch)).cross_entropy(&labels, "mean", 0.0, -100);
        let gradients = grad(&loss, &self.weights.each_ref())?;
        optimizer.step(&mut self.weights.each_mut(), &gradients)?;
        let mut results = vec![&loss];
        results.extend(&self.weights);
        results.extend(optimizer.state());
        realize_all(&results)?;
        loss.item()
    }

    /// Computes the weights, so that the first step only reads them.
    pub fn realize(&self) -> Result<()> {
        realize_all(&self.weights.each_ref())
    }

    /// Writes the weights as safetensors.
    pub fn save(&self, path: &Path) -> Result<()> {
        let named: Vec<(&str, &Tensor)> = NAMES.into_iter().zip(&self.weights).collect();
        nn::save(path, &named)
    }

    /// Reads what [`Network::save`] wrote.
    pub fn load(path: &Path) -> Result<Network> {
        let mut tensors = nn::load(path)?;
        let mut take = |name: &str| {
            tensors.remove(name).ok_or_else(|| Error::Weights {
                path: path.display().to_string(),
                reason: format!("`{name}` is missing"),
            })
        };
        let [a, b, c, d] = NAMES;
        Ok(Network { weights: [take(a)?, take(b)?, take(c)?, take(d)?] })
    }
}

fn images(digits: &Digits) -> Tensor {
    Tensor::from_slice(&digits.images, [digits.len(), PIXELS])
}
