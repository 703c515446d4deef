//! Gates: products of two linear maps, and channels that a small network weighs.

use tinyspec::options::{Conv2d, default};

use crate::blocks::block::{Block, blocks, convolution, linear, normal, pass, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // Llama's feed-forward network.
        "gates/swiglu" (x = normal([128, 768]), gate = weight([768, 2048], 768), up = weight([768, 2048], 768),
                        down = weight([2048, 768], 2048))
            ours (x.matmul(gate).silu() * x.matmul(up)).matmul(down);
            torch "(F.silu(x @ gate) * (x @ up)) @ down";
            work [linear(128, 768, 2048).times(2), linear(128, 2048, 768)];
            train x gate up down;

        // T5 and Stable Diffusion: both halves of one product.
        "gates/geglu" (x = normal([256, 320]), w = weight([320, 2560], 320), b = normal([2560]))
            ours {
                let halves = x.linear(w, b).chunk(2, -1);
                &halves[0] * halves[1].gelu_erf()
            };
            torch "a, g = torch.addmm(b, x, w).chunk(2, -1); return a * F.gelu(g)";
            work [linear(256, 320, 2560)];
            train x w b;

        // Conformer: a gated linear unit behind a pointwise convolution.
        "gates/glu-conv1x1" (x = normal([4, 256, 200]), w = weight([512, 256, 1], 256))
            ours x.conv1d(w, None, default()).glu(1);
            torch "F.glu(F.conv1d(x, w), 1)";
            work [linear(4 * 200, 256, 512)];
            train x w;

        // Two linear maps of different inputs, added.
        "gates/sum-of-products" (a = normal([256, 512]), b = weight([512, 512], 512), c = normal([256, 512]),
                                 d = weight([512, 512], 512))
            ours a.matmul(b) + c.matmul(d);
            torch "a @ b + c @ d";
            work [linear(256, 512, 512).times(2)];
            train a b c d;

        // A highway layer.
        "gates/highway" (x = normal([128, 512]), wt = weight([512, 512], 512), bt = normal([512]), wh = weight([512, 512], 512),
                         bh = normal([512]))
            ours {
                let t = x.linear(wt, bt).sigmoid();
                x.linear(wh, bh).relu() * &t + x * (1.0 - &t)
            };
            torch "t = torch.sigmoid(torch.addmm(bt, x, wt)); return torch.relu(torch.addmm(bh, x, wh)) * t + x * (1 - t)";
            work [linear(128, 512, 512).times(2)];
            train x wt bt wh bh;

        // MobileNetV3 and EfficientNet: squeeze and excite.
        "gates/squeeze-excite" (x = normal([8, 96, 28, 28]), w1 = weight([96, 24], 96), b1 = normal([24]), w2 = weight([24, 96], 24),
                                b2 = normal([96]))
            ours {
                let s = x.mean([2, 3], false).linear(w1, b1).relu().linear(w2, b2).sigmoid();
                x * s.unsqueeze(-1).unsqueeze(-1)
            };
            torch "s = torch.sigmoid(torch.addmm(b2, torch.relu(torch.addmm(b1, x.mean((2, 3)), w1)), w2)); return x * s[..., None, None]";
            work [pass(8 * 96 * 784), pass(2 * 8 * 96 * 784)];
            train x w1 b1 w2 b2;

        // Diffusion: an embedding of the time, added to every pixel of a channel.
        "gates/time-embedding" (h = normal([4, 128, 16, 16]), w = weight([128, 128, 3, 3], 1152), t = normal([4, 512]),
                                wt = weight([512, 128], 512), bt = normal([128]))
            ours {
                let shift = t.silu().linear(wt, bt).unsqueeze(-1).unsqueeze(-1);
                (h.conv2d(w, None, Conv2d { padding: [1, 1], ..default() }) + shift).silu()
            };
            torch "s = torch.addmm(bt, F.silu(t), wt)[..., None, None]; return F.silu(F.conv2d(h, w, padding=1) + s)";
            work [linear(4, 512, 128), convolution([4, 128, 16, 16], 1152, 4 * 128 * 256)];
            train h w wt bt;

        // DiT: scale and shift of a normalised input, by a linear map of the condition.
        "gates/adaptive-norm" (x = normal([4, 256, 384]), c = normal([4, 384]), w = weight([384, 768], 384), b = normal([768]))
            ours {
                let parts = c.silu().linear(w, b).chunk(2, -1);
                let (mean, var) = (x.mean(-1, true), x.var(-1, 0, true));
                (x - mean) * (var + 1e-6).rsqrt() * (parts[0].unsqueeze(1) + 1.0) + parts[1].unsqueeze(1)
            };
            torch "a, s = torch.addmm(b, F.silu(c), w).chunk(2, -1); \
                   return F.layer_norm(x, (384,), eps=1e-6) * (a[:, None] + 1) + s[:, None]";
            work [linear(4, 384, 768), pass(2 * 4 * 256 * 384)];
            train x w b;

        // A mixture of 8 experts, all computed and weighed by the router.
        "gates/experts" (x = normal([64, 256]), router = weight([256, 8], 256), up = weight([8, 256, 512], 256),
                         down = weight([8, 512, 256], 512))
            ours {
                let share = x.matmul(router).softmax(-1).transpose(0, 1).unsqueeze(-1);
                (x.matmul(up).relu().matmul(down) * share).sum(0, false)
            };
            torch "s = torch.softmax(x @ router, -1).t()[..., None]; return ((torch.relu(x @ up) @ down) * s).sum(0)";
            work [linear(64, 256, 512).times(8), linear(64, 512, 256).times(8)];
            train x router up down;

        // LoRA: a low-rank product added to the dense one.
        "gates/lora" (x = normal([256, 768]), w = weight([768, 768], 768), a = weight([768, 8], 768), b = weight([8, 768], 8))
            ours x.matmul(w) + x.matmul(a).matmul(b) * 2.0;
            torch "x @ w + (x @ a) @ b * 2";
            work [linear(256, 768, 768), linear(256, 768, 8), linear(256, 8, 768)];
            train x a b;
    }
}
