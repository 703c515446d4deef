//! `cargo bench -- models`: whole models and the kernels that decide about them, on one thread and on all, each as a share of the
//! limit of the same run.

mod decode;
mod encoder;
mod kernels;
mod resnet;

use crate::blocks::block::{Block, Input, weight};

/// All of them.
pub fn all() -> Vec<Block> {
    let mut all = vec![resnet::block(), encoder::block(), decode::block()];
    all.extend(kernels::blocks());
    all
}

/// The inputs of a model, in the order that its program takes them.
#[derive(Default)]
struct Inputs(Vec<(String, Input)>);

impl Inputs {
    fn push(&mut self, input: Input) {
        self.0.push((format!("x{}", self.0.len()), input));
    }

    /// A weight over so many inputs of the layer, and as many offsets as it has outputs.
    fn layer<const N: usize>(&mut self, shape: [usize; N], summed: usize, outputs: usize) {
        self.push(weight(shape, summed));
        self.push(weight([outputs], 100));
    }

    /// The scale and the offset of a normalisation.
    fn norm(&mut self, width: usize) {
        self.push(crate::blocks::block::uniform(0.5, 1.5, [width]));
        self.push(weight([width], 100));
    }
}
