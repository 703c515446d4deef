//! MiniLM: six layers of 384 in 12 heads over 128 tokens, to a unit vector of the sentence.

use tinyspec::Tensor;

use super::Inputs;
use crate::blocks::block::{Block, below, linear, normal, pass, product};

const LAYERS: usize = 6;
const TOKENS: usize = 128;
const WIDTH: usize = 384;
const HEADS: usize = 12;
const WIDE: usize = 1536;

pub fn block() -> Block {
    let mut inputs = Inputs::default();
    inputs.push(below(30_522, [TOKENS]));
    inputs.push(normal([30_522, WIDTH]));
    inputs.push(normal([TOKENS, WIDTH]));
    inputs.norm(WIDTH);
    for _ in 0..LAYERS {
        for _ in 0..4 {
            inputs.layer([WIDTH, WIDTH], WIDTH, WIDTH);
        }
        inputs.norm(WIDTH);
        inputs.layer([WIDTH, WIDE], WIDTH, WIDE);
        inputs.layer([WIDE, WIDTH], WIDE, WIDTH);
        inputs.norm(WIDTH);
    }
    Block {
        name: "minilm".into(),
        inputs: inputs.0,
        ours: |inputs| vec![forward(inputs)],
        torch: "t, table, place, *p = inputs; p = iter(p)\n\
                norm = lambda x: F.layer_norm(x, (384,), next(p), next(p), 1e-12)\n\
                def dense(x):\n    w = next(p); return torch.addmm(next(p), x, w)\n\
                heads = lambda x: x.view(128, 12, 32).transpose(0, 1)\n\
                x = norm(F.embedding(t, table) + place)\n\
                for _ in range(6):\n\
                \x20   q = heads(dense(x)); k = heads(dense(x)); v = heads(dense(x))\n\
                \x20   a = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(128, 384)\n\
                \x20   x = norm(x + dense(a)); x = norm(x + dense(F.gelu(dense(x))))\n\
                return F.normalize(x.mean(0), dim=0)",
        work: [
            pass(2 * TOKENS * WIDTH),
            linear(TOKENS, WIDTH, WIDTH).times(4 * LAYERS),
            product(HEADS, TOKENS, WIDTH / HEADS, TOKENS).times(2 * LAYERS),
            linear(TOKENS, WIDTH, WIDE).times(2 * LAYERS),
        ]
        .into(),
        train: &[],
    }
}

fn forward(inputs: &[Tensor]) -> Tensor {
    let [tokens, table, place, weights @ ..] = inputs else { unreachable!("the inputs above") };
    let mut weights = weights.iter();
    let mut next = || weights.next().expect("as many weights as layers");
    let heads = |x: Tensor| x.reshape([TOKENS, HEADS, WIDTH / HEADS]).transpose(0, 1);
    let mut x = (tokens.embedding(table) + place).layer_norm(next(), next(), 1, 1e-12);
    for _ in 0..LAYERS {
        let (q, k, v) = (x.linear(next(), next()), x.linear(next(), next()), x.linear(next(), next()));
        let attended = heads(q).sdpa(heads(k), heads(v), false).transpose(0, 1).reshape([TOKENS, WIDTH]);
        let added = &x + attended.linear(next(), next());
        x = added.layer_norm(next(), next(), 1, 1e-12);
        let wide = x.linear(next(), next()).gelu_erf();
        let added = &x + wide.linear(next(), next());
        x = added.layer_norm(next(), next(), 1, 1e-12);
    }
    x.mean(0, false).normalize(2.0, 0, 1e-12)
}
