//! Running sums and products, and recurrences.

use tinyspec::Tensor;

use crate::blocks::block::{Block, blocks, normal, pass, uniform};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "scans/sum-rows" (x = normal([64, 4096]))
            ours x.cumsum(1);
            torch "x.cumsum(1)";
            work [pass(2 * 64 * 4096)];
            train x;

        "scans/sum-columns" (x = normal([512, 512]))
            ours x.cumsum(0);
            torch "x.cumsum(0)";
            work [pass(2 * 512 * 512)];
            train x;

        "scans/product" (x = uniform(0.9, 1.1, [64, 1024]))
            ours x.cumprod(1);
            torch "x.cumprod(1)";
            work [pass(2 * 64 * 1024)];
            train x;

        "scans/maximum" (x = normal([256, 1024]))
            ours x.cummax(1);
            torch "x.cummax(1)[0]";
            work [pass(2 * 256 * 1024)];

        "scans/logsumexp" (x = normal([64, 1024]))
            ours x.logcumsumexp(1);
            torch "x.logcumsumexp(1)";
            work [pass(2 * 64 * 1024)];
            train x;

        // NeRF: light along rays of 128 samples.
        "scans/volume-rendering" (density = uniform(0.0, 2.0, [2048, 128]), colour = uniform(0.0, 1.0, [2048, 128, 3]))
            ours {
                let passed = density * 0.03;
                let light = (-(passed.cumsum(1) - &passed)).exp();
                let weight = light * (1.0 - (-&passed).exp());
                (weight.unsqueeze(-1) * colour).sum(1, false)
            };
            torch "d = density * 0.03; t = torch.exp(-(d.cumsum(1) - d)); w = t * (1 - torch.exp(-d)); return (w[..., None] * colour).sum(1)";
            work [pass(2048 * 128 * 4)];
            train density colour;

        // Reinforcement learning: discounted sums of what follows.
        "scans/discounted-returns" (r = normal([256, 512]))
            ours {
                let power = (Tensor::arange(512).cast(tinyspec::DType::F32) * 0.99_f32.ln()).exp();
                (r * &power).flip([1]).cumsum(1).flip([1]) / &power
            };
            torch "p = torch.exp(torch.arange(512) * -0.010050336); return (r * p).flip(1).cumsum(1).flip(1) / p";
            work [pass(2 * 256 * 512)];
            train r;

        // A state space model with a diagonal state: 64 steps written out.
        "scans/state-space" (a = uniform(0.5, 1.0, [512]), b = normal([64, 4, 512]))
            ours {
                let mut state = b.select(0, 0);
                let mut states = vec![state.clone()];
                for step in 1..64 {
                    state = &state * a + b.select(0, step);
                    states.push(state.clone());
                }
                Tensor::stack(&states.iter().collect::<Vec<_>>(), 0)
            };
            torch "s = b[0]; r = [s]\nfor t in range(1, 64):\n    s = s * a + b[t]; r.append(s)\nreturn torch.stack(r)";
            work [pass(2 * 64 * 2048)];
            train a b;

        // Detection of changes: means of what came before, of a window of 32.
        "scans/moving-mean" (x = normal([64, 4096]))
            ours {
                let total = x.cumsum(1);
                (total.narrow(1, 32, 4064) - total.narrow(1, 0, 4064)) * (1.0 / 32.0)
            };
            torch "c = x.cumsum(1); return (c[:, 32:] - c[:, :-32]) / 32";
            work [pass(2 * 64 * 4096)];
            train x;
    }
}
