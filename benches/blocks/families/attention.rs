//! Attention, of the kinds that models have.

use tinyspec::options::{Attention, default};
use tinyspec::{DType, Tensor};

use crate::blocks::block::{Block, blocks, linear, normal, pass, product, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // GPT-2, 256 tokens, all 12 heads. Half of the scores are hidden, but both products are counted whole.
        "attention/causal" (q = normal([12, 256, 64]), k = normal([12, 256, 64]), v = normal([12, 256, 64]))
            ours q.sdpa(k, v, true);
            torch "F.scaled_dot_product_attention(q, k, v, is_causal=True)";
            work [product(12, 256, 64, 256).times(2)];
            train q k v;

        // The whole attention of a GPT-2 layer: heads cut out of one product, and the product behind them.
        "attention/gpt2-layer" (x = normal([256, 768]), w = weight([768, 2304], 768), out = weight([768, 768], 768))
            ours {
                let heads = x.matmul(w).reshape([256, 3, 12, 64]).permute([1, 2, 0, 3]);
                let part = |number| heads.select(0, number);
                part(0).sdpa(part(1), part(2), true).transpose(0, 1).reshape([256, 768]).matmul(out)
            };
            torch "q, k, v = (x @ w).view(256, 3, 12, 64).permute(1, 2, 0, 3).unbind(0); \
                   return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).reshape(256, 768) @ out";
            work [linear(256, 768, 2304), product(12, 256, 64, 256).times(2), linear(256, 768, 768)];
            train x w out;

        // BERT: a bias per key that hides padding, added before the softmax, batch of 4.
        "attention/padding-mask" (q = normal([4, 12, 128, 64]), k = normal([4, 12, 128, 64]), v = normal([4, 12, 128, 64]),
                                  bias = uniform(-8.0, 0.0, [4, 1, 1, 128]))
            ours (q.matmul(k.transpose(-1, -2)) * 0.125 + bias).softmax(-1).matmul(v);
            torch "torch.softmax(q @ k.transpose(-1, -2) * 0.125 + bias, -1) @ v";
            work [product(48, 128, 64, 128).times(2)];
            train q k v;

        // Llama: 32 heads of queries share 8 of keys and values.
        "attention/grouped" (q = normal([1, 32, 128, 64]), k = normal([1, 8, 128, 64]), v = normal([1, 8, 128, 64]))
            ours q.sdpa_with(k, v, None, None, Attention { causal: true, grouped: true, ..default() });
            torch "F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)";
            work [product(32, 128, 64, 128).times(2)];
            train q k v;

        // Stable Diffusion: pixels attend to the words of the prompt.
        "attention/cross" (q = normal([8, 1024, 40]), k = normal([8, 77, 40]), v = normal([8, 77, 40]))
            ours q.sdpa(k, v, false);
            torch "F.scaled_dot_product_attention(q, k, v)";
            work [product(8, 1024, 40, 77).times(2)];
            train q k v;

        // Swin: windows of 49 pixels, a learned bias per head, shared by all windows.
        "attention/window-bias" (q = normal([64, 3, 49, 32]), k = normal([64, 3, 49, 32]), v = normal([64, 3, 49, 32]),
                                 bias = normal([3, 49, 49]))
            ours (q.matmul(k.transpose(-1, -2)) * 0.1767767 + bias).softmax(-1).matmul(v);
            torch "torch.softmax(q @ k.transpose(-1, -2) * 0.1767767 + bias, -1) @ v";
            work [product(192, 49, 32, 49).times(2)];
            train q k v bias;

        // ALiBi: a slope per head times the distance, causal.
        "attention/alibi" (q = normal([8, 256, 64]), k = normal([8, 256, 64]), v = normal([8, 256, 64]),
                           slope = uniform(0.01, 0.5, [8, 1, 1]))
            ours {
                let place = Tensor::arange(256);
                let distance = place.unsqueeze(0) - place.unsqueeze(1);
                let bias = distance.gt(0).where_(f32::NEG_INFINITY, distance.cast(DType::F32) * slope);
                (q.matmul(k.transpose(-1, -2)) * 0.125 + bias).softmax(-1).matmul(v)
            };
            torch "p = torch.arange(256); d = p[None] - p[:, None]; b = torch.where(d > 0, float('-inf'), d * slope); \
                   return torch.softmax(q @ k.transpose(-1, -2) * 0.125 + b, -1) @ v";
            work [product(8, 256, 64, 256).times(2)];
            train q k v;

        // Linear attention: keys and values are summed up first.
        "attention/linear" (q = normal([8, 512, 64]), k = normal([8, 512, 64]), v = normal([8, 512, 64]))
            ours {
                let (q, k) = (q.elu(1.0) + 1.0, k.elu(1.0) + 1.0);
                let state = k.transpose(-1, -2).matmul(v);
                let scale = q.matmul(k.sum(1, true).transpose(-1, -2)) + 1e-6;
                q.matmul(state) / scale
            };
            torch "q = F.elu(q) + 1; k = F.elu(k) + 1; s = k.transpose(-1, -2) @ v; \
                   return (q @ s) / (q @ k.sum(1, keepdim=True).transpose(-1, -2) + 1e-6)";
            work [product(8, 64, 512, 64), product(8, 512, 64, 64)];
            train q k v;

        // Decoding: one query against a cache of 1,024 positions.
        "attention/decode" (q = normal([12, 1, 64]), k = normal([12, 1024, 64]), v = normal([12, 1024, 64]))
            ours q.sdpa(k, v, false);
            torch "F.scaled_dot_product_attention(q, k, v)";
            work [product(12, 1, 64, 1024).times(2)];

        // Llama: rotary positions before the scores.
        "attention/rotary" (q = normal([12, 256, 64]), k = normal([12, 256, 64]), v = normal([12, 256, 64]),
                            angle = uniform(0.0, 6.0, [256, 32]))
            ours {
                let (cosine, sine) = (angle.cos().repeat([1, 2]), angle.sin().repeat([1, 2]));
                let turned = |x: &Tensor| {
                    let halves = x.chunk(2, -1);
                    x * &cosine + Tensor::cat(&[&-&halves[1], &halves[0]], -1) * &sine
                };
                turned(q).sdpa(turned(k), v, true)
            };
            torch "c = torch.cat([angle.cos()] * 2, -1); s = torch.cat([angle.sin()] * 2, -1)\n\
                   def turned(x):\n    a, b = x.chunk(2, -1)\n    return x * c + torch.cat([-b, a], -1) * s\n\
                   return F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)";
            work [pass(4 * 12 * 256 * 64), product(12, 256, 64, 256).times(2)];
            train q k v;

        // Bahdanau: scores by a small network of query and key.
        "attention/additive" (q = normal([16, 1, 256]), k = normal([16, 64, 256]), x = normal([16, 64, 512]),
                              wq = weight([256, 256], 256), wk = weight([256, 256], 256), score = weight([256, 1], 256))
            ours {
                let scores = (q.matmul(wq) + k.matmul(wk)).tanh().matmul(score).transpose(1, 2);
                scores.softmax(-1).matmul(x)
            };
            torch "s = (torch.tanh(q @ wq + k @ wk) @ score).transpose(1, 2); return torch.softmax(s, -1) @ x";
            work [linear(16, 256, 256), linear(1024, 256, 256), product(16, 1, 64, 512)];
            train q k wq wk score;
    }
}
