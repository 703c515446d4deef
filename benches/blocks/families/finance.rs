//! Prices and risks.

use tinyspec::Tensor;

use crate::blocks::block::{Block, blocks, linear, normal, pass, uniform};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // The price of calls; its gradients are the greeks.
        "finance/black-scholes" (s = uniform(50.0, 150.0, [200_000]), k = uniform(50.0, 150.0, [200_000]),
                                 t = uniform(0.1, 2.0, [200_000]), v = uniform(0.1, 0.5, [200_000]))
            ours {
                let root = t.sqrt() * v;
                let d1 = ((s / k).log() + t * (v * v * 0.5 + 0.02)) / &root;
                let d2 = &d1 - root;
                s * ((d1 * std::f32::consts::FRAC_1_SQRT_2).erf() * 0.5 + 0.5) - k * (t * -0.02).exp() * ((d2 * std::f32::consts::FRAC_1_SQRT_2).erf() * 0.5 + 0.5)
            };
            torch "r = t.sqrt() * v; a = (torch.log(s / k) + t * (v * v * 0.5 + 0.02)) / r; b = a - r; \
                   return s * (torch.erf(a * 0.70710678) * 0.5 + 0.5) - k * torch.exp(-0.02 * t) * (torch.erf(b * 0.70710678) * 0.5 + 0.5)";
            work [pass(5 * 200_000)];
            train s v t;

        // An Asian option: means along paths.
        "finance/asian-paths" (z = normal([8192, 64]), s = uniform(90.0, 110.0, [1]), v = uniform(0.2, 0.3, [1]))
            ours {
                let steps = z * v * 0.125 - v * v * 0.0078125;
                let mean = (steps.cumsum(1).exp() * s).mean(1, false);
                (mean - 100.0).relu().mean(.., false)
            };
            torch "p = (z * v * 0.125 - v * v * 0.0078125).cumsum(1).exp() * s; return (p.mean(1) - 100).relu().mean()";
            work [pass(8192 * 64)];
            train s v;

        // A binomial tree of 48 steps, 512 options.
        "finance/binomial-tree" (s = uniform(80.0, 120.0, [512, 1]))
            ours {
                let place = (Tensor::arange(49).cast(tinyspec::DType::F32) * 2.0 - 48.0) * 0.05;
                let mut value: Tensor = (s * place.exp() - 100.0).relu();
                for step in (1..=48).rev() {
                    value = value.narrow(1, 1, step) * 0.51 + value.narrow(1, 0, step) * 0.485;
                }
                value
            };
            torch "v = torch.relu(s * torch.exp((torch.arange(49) * 2. - 48) * 0.05) - 100)\nfor _ in range(48):\n    v = v[:, 1:] * 0.51 + v[:, :-1] * 0.485\nreturn v";
            work [pass(512 * 49)];
            train s;

        // Risk of a portfolio: the covariance of returns.
        "finance/covariance" (r = normal([1000, 128]), w = uniform(0.0, 0.02, [128]))
            ours {
                let centred = r - r.mean(0, true);
                let covariance = centred.transpose(0, 1).matmul(&centred) / 999.0;
                vec![w.matmul(&covariance).dot(w), covariance]
            };
            torch "c = r - r.mean(0); v = c.t() @ c / 999; return w @ v @ w, v";
            work [linear(128, 1000, 128)];
            train r w;

        // Value at risk: a quantile of each portfolio's losses.
        "finance/value-at-risk" (r = normal([2048, 32]), w = normal([32, 64]))
            ours r.matmul(w).quantile(0.05, 0, false);
            torch "(r @ w).quantile(0.05, 0)";
            work [linear(2048, 32, 64), pass(2048 * 64)];

        // Bonds: payments, discounted by a curve.
        "finance/bond-prices" (c = uniform(0.0, 5.0, [4096, 60]), y = uniform(0.01, 0.05, [4096, 1]))
            ours {
                let time = (Tensor::arange(60).cast(tinyspec::DType::F32) + 1.0) * 0.5;
                (c * (y * -time).exp()).sum(1, false)
            };
            torch "t = (torch.arange(60) + 1.) * 0.5; return (c * torch.exp(-y * t)).sum(1)";
            work [pass(4096 * 61)];
            train c y;

        // The highest of what was, and how far below it prices are.
        "finance/drawdown" (r = normal([512, 1024]))
            ours {
                let wealth = (r * 0.01).cumsum(1).exp();
                (1.0 - &wealth / wealth.cummax(1)).max(1, false)
            };
            torch "w = (r * 0.01).cumsum(1).exp(); return (1 - w / w.cummax(1)[0]).amax(1)";
            work [pass(512 * 1024)];
    }
}
