//! GPT-2: the next token after 512, from caches of keys and values.

use tinyspec::{DType, Tensor};

use super::Inputs;
use crate::blocks::block::{Block, Memory, below, linear, normal, pass, uniform, weight};

const LAYERS: usize = 12;
const WIDTH: usize = 768;
const HEADS: usize = 12;
const CACHED: usize = 512;
const TOKENS: usize = 50_257;

pub fn block() -> Block {
    let mut inputs = Inputs::default();
    inputs.push(below(TOKENS as u32, [1]));
    // Where the new keys and values go; later places of the caches are hidden.
    inputs.push(uniform(500.0, 500.5, [1]).cast(DType::I32));
    inputs.push(weight([TOKENS, WIDTH], WIDTH));
    inputs.push(weight([1024, WIDTH], WIDTH));
    inputs.norm(WIDTH);
    for _ in 0..LAYERS {
        inputs.push(normal([HEADS, CACHED, WIDTH / HEADS]));
        inputs.push(normal([HEADS, CACHED, WIDTH / HEADS]));
        inputs.norm(WIDTH);
        inputs.layer([WIDTH, 3 * WIDTH], WIDTH, 3 * WIDTH);
        inputs.layer([WIDTH, WIDTH], WIDTH, WIDTH);
        inputs.norm(WIDTH);
        inputs.layer([WIDTH, 4 * WIDTH], WIDTH, 4 * WIDTH);
        inputs.layer([4 * WIDTH, WIDTH], 4 * WIDTH, WIDTH);
    }
    Block {
        name: "gpt2-decode".into(),
        inputs: inputs.0,
        ours: forward,
        torch: "t, at, table, place, fs, fb, *p = inputs; p = iter(p); new = []\n\
                norm = lambda x: F.layer_norm(x, (768,), next(p), next(p))\n\
                def dense(x):\n    w = next(p); return torch.addmm(next(p), x, w)\n\
                hidden = torch.where(torch.arange(512) > at, float('-inf'), 0.0)\n\
                x = F.embedding(t, table) + F.embedding(at, place)\n\
                for _ in range(12):\n\
                \x20   ks = next(p); vs = next(p)\n\
                \x20   q, k, v = dense(norm(x)).view(3, 12, 1, 64).unbind(0); new += [k, v]\n\
                \x20   ks.index_copy_(1, at, k); vs.index_copy_(1, at, v)\n\
                \x20   a = F.scaled_dot_product_attention(q, ks, vs, hidden[None, None]).view(1, 768)\n\
                \x20   x = x + dense(a); x = x + dense(F.gelu(dense(norm(x)), approximate='tanh'))\n\
                return F.layer_norm(x, (768,), fs, fb) @ table.t(), torch.stack(new)",
        work: [
            linear(1, WIDTH, 3 * WIDTH).times(LAYERS),
            linear(1, WIDTH, WIDTH).times(LAYERS),
            linear(1, WIDTH, 4 * WIDTH).times(2 * LAYERS),
            pass(2 * 501 * WIDTH).by(Memory::Read).times(LAYERS),
            linear(1, WIDTH, TOKENS),
        ]
        // A token's weights come from memory, not from the cache that each of them alone would fit into.
        .map(|work| work.of(LAYERS * 12 * WIDTH * WIDTH + TOKENS * WIDTH))
        .into(),
        train: &[],
    }
}

/// The scores of the next token, and the new keys and values of each layer.
fn forward(inputs: &[Tensor]) -> Vec<Tensor> {
    let [token, at, table, place, scale, offset, weights @ ..] = inputs else { unreachable!("the inputs above") };
    let mut weights = weights.iter();
    let mut next = || weights.next().expect("as many weights as layers");
    let hidden = Tensor::arange(CACHED as i64).gt(at).where_(f32::NEG_INFINITY, 0.0);
    let mut new = Vec::new();
    let mut x = token.embedding(table) + at.embedding(place);
    for _ in 0..LAYERS {
        let (keys, values) = (next(), next());
        let parts = x.layer_norm(next(), next(), 1, 1e-5).linear(next(), next()).reshape([3, HEADS, 1, WIDTH / HEADS]);
        let (q, k, v) = (parts.select(0, 0), parts.select(0, 1), parts.select(0, 2));
        let (keys, values) = (keys.index_copy(1, at, &k), values.index_copy(1, at, &v));
        let attended = q.sdpa_mask(keys, values, &hidden).reshape([1, WIDTH]);
        new.extend([k, v]);
        x = &x + attended.linear(next(), next());
        let wide = x.layer_norm(next(), next(), 1, 1e-5).linear(next(), next()).gelu();
        x = &x + wide.linear(next(), next());
    }
    let scores = x.layer_norm(scale, offset, 1, 1e-5).matmul(table.transpose(0, 1));
    vec![scores, Tensor::stack(&new.iter().collect::<Vec<_>>(), 0)]
}
