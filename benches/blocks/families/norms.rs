//! Normalisations over each of the axes that models use.

use crate::blocks::block::{Block, blocks, linear, normal, pass, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "norms/layer" (x = normal([512, 768]), w = normal([768]), b = normal([768]))
            ours x.layer_norm(w, b, 1, 1e-5);
            torch "F.layer_norm(x, (768,), w, b)";
            work [pass(2 * 512 * 768)];
            train x w b;

        // Llama: the sum of the residual stream and a branch, and its norm.
        "norms/rms-residual" (x = normal([256, 2048]), r = normal([256, 2048]), w = normal([2048]))
            ours {
                let sum = x + r;
                vec![sum.rms_norm(w, 1e-6), sum]
            };
            torch "s = x + r; return F.rms_norm(s, (2048,), w, 1e-6), s";
            work [pass(4 * 256 * 2048)];
            train x r w;

        // Diffusion models: 32 groups of channels, and SiLU.
        "norms/group-silu" (x = normal([4, 128, 32, 32]), w = normal([128]), b = normal([128]))
            ours x.group_norm(w, b, 32, 1e-5).silu();
            torch "F.silu(F.group_norm(x, 32, w, b))";
            work [pass(2 * 4 * 128 * 1024)];
            train x w b;

        "norms/batch-train" (x = normal([16, 64, 28, 28]), w = normal([64]), b = normal([64]))
            ours x.batch_norm_train(w, b, 1e-5).relu();
            torch "torch.relu(F.batch_norm(x, None, None, w, b, True))";
            work [pass(16 * 64 * 784), pass(2 * 16 * 64 * 784)];
            train x w b;

        // ConvNeXt: over the channels of pictures whose channels come first.
        "norms/layer-channels" (x = normal([4, 96, 56, 56]), w = normal([96, 1, 1]), b = normal([96, 1, 1]))
            ours {
                let centred = x - x.mean(1, true);
                let scale = (centred.square().mean(1, true) + 1e-6).rsqrt();
                centred * scale * w + b
            };
            torch "u = x.mean(1, keepdim=True); s = (x - u).pow(2).mean(1, keepdim=True); \
                   return (x - u) / torch.sqrt(s + 1e-6) * w + b";
            work [pass(2 * 4 * 96 * 3136)];
            train x w b;

        // ConvNeXt V2: global response normalisation.
        "norms/global-response" (x = normal([4, 14, 14, 384]), w = normal([384]), b = normal([384]))
            ours {
                let g = x.square().sum([1, 2], true).sqrt();
                let n = &g / (g.mean(-1, true) + 1e-6);
                x * n * w + b + x
            };
            torch "g = torch.norm(x, 2, (1, 2), True); return x * (g / (g.mean(-1, keepdim=True) + 1e-6)) * w + b + x";
            work [pass(4 * 196 * 384), pass(2 * 4 * 196 * 384)];
            train x w b;

        // Style transfer.
        "norms/instance" (x = normal([4, 64, 64, 64]), w = normal([64]), b = normal([64]))
            ours x.instance_norm(w, b, 1e-5);
            torch "F.instance_norm(x, None, None, w, b)";
            work [pass(2 * 4 * 64 * 4096)];
            train x w b;

        // Pre-norm: what the product behind it reads.
        "norms/layer-linear" (x = normal([256, 768]), w = normal([768]), b = normal([768]), m = weight([768, 2304], 768))
            ours x.layer_norm(w, b, 1, 1e-5).matmul(m);
            torch "F.layer_norm(x, (768,), w, b) @ m";
            work [pass(2 * 256 * 768), linear(256, 768, 2304)];
            train x w b m;

        // Post-norm: behind a product, with the residual stream.
        "norms/linear-residual-layer" (x = normal([256, 768]), m = weight([768, 768], 768), r = normal([256, 768]), w = normal([768]),
                                       b = normal([768]))
            ours (x.matmul(m) + r).layer_norm(w, b, 1, 1e-12);
            torch "F.layer_norm(x @ m + r, (768,), w, b, 1e-12)";
            work [linear(256, 768, 768), pass(2 * 256 * 768)];
            train x m r w b;

        // Queries of unit length.
        "norms/l2" (x = normal([12, 256, 64]))
            ours x.normalize(2.0, -1, 1e-12);
            torch "F.normalize(x, dim=-1)";
            work [pass(2 * 12 * 256 * 64)];
            train x;

        // Columns to mean 0 and deviation 1, as tables are prepared.
        "norms/standardise-columns" (x = uniform(0.0, 10.0, [10_000, 50]))
            ours (x - x.mean(0, true)) / x.std(0, 1, true);
            torch "(x - x.mean(0)) / x.std(0)";
            work [pass(10_000 * 50), pass(2 * 10_000 * 50)];
            train x;
    }
}
