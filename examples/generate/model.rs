//! A GPT of 0.8 million parameters over characters, and one step of it: a token goes in, scores for the next one come out.

use tinyspec::prelude::*;

/// Tokens that the model knows.
pub const VOCABULARY: usize = 65;
/// Tokens that it remembers.
pub const CONTEXT: usize = 256;
/// Layers, each with keys and values of its own.
pub const LAYERS: usize = 4;
/// Width of a token.
pub const WIDTH: usize = 128;

/// Scale and shift of normalised rows.
#[model(functions)]
struct Norm<D> {
    #[model(init = ones)]
    scale: Tensor<f32, D>,
    #[model(init = zeros)]
    shift: Tensor<f32, D>,
}

#[function]
impl<D> Norm<D> {
    fn forward<B>(&self, x: &Tensor<f32, B, D>) -> Tensor<f32, B, D> {
        x.layer_norm(&self.scale, &self.shift, 1, 1e-5)
    }
}

/// `x @ weight + bias`
#[model(functions)]
struct Linear<I, O> {
    #[model(init = he)]
    weight: Tensor<f32, I, O>,
    #[model(init = zeros)]
    bias: Tensor<f32, O>,
}

#[function]
impl<I, O> Linear<I, O> {
    fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        x.linear(&self.weight, &self.bias)
    }
}

/// Attention and a feed-forward network.
#[model(functions)]
struct Block {
    before_attention: Norm<128>,
    projections: Linear<128, 384>,
    joined: Linear<128, 128>,
    before_network: Norm<128>,
    wide: Linear<128, 512>,
    narrow: Linear<512, 128>,
}

#[function]
impl Block {
    /// Query, key and value of a token.
    fn project(&self, x: &Tensor<f32, 1, 128>) -> Tensor<f32, 1, 384> {
        self.projections.forward(&self.before_attention.forward(x))
    }

    /// What the token at position `at` becomes; it sees the keys and values up to its own.
    fn finish(
        &self,
        x: &Tensor<f32, 1, 128>,
        at: &Tensor<i32, 1>,
        query: &Tensor<f32, 1, 128>,
        keys: &Tensor<f32, 256, 128>,
        values: &Tensor<f32, 256, 128>,
    ) -> Tensor<f32, 1, 128> {
        // Four heads of 32.
        let q = query.reshape([1, 4, 32]).transpose(0, 1);
        let k = keys.reshape([256, 4, 32]).transpose(0, 1);
        let v = values.reshape([256, 4, 32]).transpose(0, 1);
        let scores = q.matmul(k.transpose(-1, -2)) * (1.0 / 32.0_f32.sqrt());
        let later = Tensor::arange(256).gt(at);
        let attention = scores.masked_fill(&later, f32::NEG_INFINITY).softmax(-1).matmul(&v);
        let x = x + self.joined.forward(&attention.transpose(0, 1).reshape([1, 128]));
        let h = self.wide.forward(&self.before_network.forward(&x)).gelu();
        x + self.narrow.forward(&h)
    }
}

/// The whole network.
#[model]
pub struct Gpt {
    tokens: Tensor<f32, 65, 128>,
    positions: Tensor<f32, 256, 128>,
    blocks: [Block; 4],
    last: Norm<128>,
    scores: Linear<128, 65>,
}

/// Scores for the token after `token`, which stands at position `at`; and the keys and values of all layers with its own.
#[function]
pub fn step(
    gpt: &Gpt,
    token: &Tensor<i32, 1>,
    at: &Tensor<i32, 1>,
    keys: &Tensor<f32, 4, 256, 128>,
    values: &Tensor<f32, 4, 256, 128>,
) -> (Tensor<f32, 1, 65>, Tensor<f32, 4, 256, 128>, Tensor<f32, 4, 256, 128>) {
    let mut x = token.embedding(&gpt.tokens) + at.embedding(&gpt.positions);
    let mut keys = keys.clone();
    let mut values = values.clone();
    for layer in 0..4 {
        let block = &gpt.blocks[layer];
        let all = block.project(&x);
        keys.set((layer, at), all.narrow(1, 128, 128));
        values.set((layer, at), all.narrow(1, 256, 128));
        x = block.finish(&x, at, &all.narrow(1, 0, 128), &keys.at(layer), &values.at(layer));
    }
    (gpt.scores.forward(&gpt.last.forward(&x)), keys, values)
}
