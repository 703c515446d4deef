//! Updates of weights.

use tinyspec::Tensor;

use crate::blocks::block::{Block, blocks, linear, normal, pass, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "optimisers/adamw" (w = normal([1 << 20]), g = normal([1 << 20]), m = normal([1 << 20]), v = uniform(0.0, 1.0, [1 << 20]))
            ours {
                let m = m * 0.9 + g * 0.1;
                let v = v * 0.999 + g * g * 0.001;
                let next = w * (1.0 - 1e-5) - &m * (1e-3 / 0.19) / ((&v * (1.0 / 0.002)).sqrt() + 1e-8);
                vec![next, m, v]
            };
            torch "m = m * 0.9 + g * 0.1; v = v * 0.999 + g * g * 0.001; \
                   return w * (1 - 1e-5) - m * (1e-3 / 0.19) / ((v / 0.002).sqrt() + 1e-8), m, v";
            work [pass(7 << 20)];

        "optimisers/sgd-momentum" (w = normal([1 << 20]), g = normal([1 << 20]), m = normal([1 << 20]))
            ours {
                let m = m * 0.9 + (g + w * 1e-4);
                vec![w - &m * 0.1, m]
            };
            torch "m = m * 0.9 + (g + w * 1e-4); return w - 0.1 * m, m";
            work [pass(5 << 20)];

        "optimisers/lion" (w = normal([1 << 20]), g = normal([1 << 20]), m = normal([1 << 20]))
            ours vec![w - (m * 0.9 + g * 0.1).sign() * 1e-4, m * 0.99 + g * 0.01];
            torch "w - torch.sign(m * 0.9 + g * 0.1) * 1e-4, m * 0.99 + g * 0.01";
            work [pass(5 << 20)];

        // The norm of all gradients first, then the update of each.
        "optimisers/clipped" (w = normal([512, 512]), b = normal([512]), gw = normal([512, 512]), gb = normal([512]))
            ours {
                let norm = (gw.square().sum(.., false) + gb.square().sum(.., false)).sqrt();
                let scale = (1.0 / (norm + 1e-6)).minimum(1.0) * 0.1;
                vec![w - gw * &scale, b - gb * &scale]
            };
            torch "n = (gw.square().sum() + gb.square().sum()).sqrt(); s = (1 / (n + 1e-6)).clamp(max=1) * 0.1; return w - gw * s, b - gb * s";
            work [pass(512 * 513), pass(3 * 512 * 513)];

        // LAMB: a step as long as the weights allow.
        "optimisers/lamb" (w = normal([768, 768]), g = normal([768, 768]), m = normal([768, 768]), v = uniform(0.0, 1.0, [768, 768]))
            ours {
                let m = m * 0.9 + g * 0.1;
                let v = v * 0.999 + g * g * 0.001;
                let step = &m / (v.sqrt() + 1e-6) + w * 0.01;
                let trust = w.norm(2.0, .., false) / step.norm(2.0, .., false);
                vec![w - step * (trust * 1e-3), m, v]
            };
            torch "m = m * 0.9 + g * 0.1; v = v * 0.999 + g * g * 0.001; s = m / (v.sqrt() + 1e-6) + w * 0.01; \
                   return w - s * (w.norm() / s.norm() * 1e-3), m, v";
            work [pass(6 * 768 * 768), pass(4 * 768 * 768)];

        // The teacher of a self-supervised model.
        "optimisers/moving-average" (t = normal([1 << 20]), s = normal([1 << 20]))
            ours t * 0.996 + s * 0.004;
            torch "t * 0.996 + s * 0.004";
            work [pass(3 << 20)];
            train t s;

        // Muon: five steps of Newton and Schulz towards an orthogonal matrix; here one.
        "optimisers/newton-schulz" (g = weight([256, 256], 65_536))
            ours {
                let square = g.matmul(g.transpose(0, 1));
                g * 3.4445 + (&square * -4.775 + square.matmul(&square) * 2.0315).matmul(g)
            };
            torch "a = g @ g.t(); return 3.4445 * g + (-4.775 * a + 2.0315 * a @ a) @ g";
            work [linear(256, 256, 256).times(3)];
            train g;

        // A linear model, its gradient and its step: all of training.
        "optimisers/linear-regression" (x = normal([2048, 256]), y = normal([2048, 1]), w = weight([256, 1], 256))
            ours {
                let error: Tensor = x.matmul(w) - y;
                w - x.transpose(0, 1).matmul(error) * (0.1 / 2048.0)
            };
            torch "w - x.t() @ (x @ w - y) * (0.1 / 2048)";
            work [linear(2048, 256, 1), linear(256, 2048, 1)];
            train w;
    }
}
