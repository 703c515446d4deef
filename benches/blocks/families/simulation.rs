//! Particles and differential equations.

use tinyspec::Tensor;

use crate::blocks::block::{Block, blocks, linear, normal, pass, product, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // Gravity of 512 bodies.
        "simulation/n-body" (x = normal([512, 3]), m = uniform(0.5, 1.5, [512]))
            ours {
                let apart = x.unsqueeze(0) - x.unsqueeze(1);
                let square = apart.square().sum(2, false) + 0.01;
                (apart * (m * square.rsqrt() / square).unsqueeze(2)).sum(1, false)
            };
            torch "d = x[None] - x[:, None]; s = d.square().sum(2) + 0.01; return (d * (m * s.rsqrt() / s)[..., None]).sum(1)";
            work [product(1, 512, 3, 512).times(2)];
            train x m;

        // Molecules: the energy of Lennard-Jones, whose gradient is the forces.
        "simulation/lennard-jones" (x = uniform(0.0, 40.0, [400, 3]))
            ours {
                let apart = x.unsqueeze(0) - x.unsqueeze(1);
                let square = apart.square().sum(2, false) + Tensor::eye(400, 400, tinyspec::DType::F32) * 1e6 + 0.5;
                let sixth = 1.0 / (&square * &square * square);
                ((&sixth * &sixth - sixth) * 2.0).sum(.., false)
            };
            torch "d = x[None] - x[:, None]; s = d.square().sum(2) + torch.eye(400) * 1e6 + 0.5; q = 1 / (s * s * s); return (2 * (q * q - q)).sum()";
            work [product(1, 400, 3, 400)];
            train x;

        // Lorenz's system: four evaluations a step, 8 steps of 4,096 starts.
        "simulation/lorenz-rk4" (x = normal([3, 4096]))
            ours {
                let slope = |x: &Tensor| {
                    let (a, b, c) = (x.select(0, 0), x.select(0, 1), x.select(0, 2));
                    Tensor::stack(&[&((&b - &a) * 10.0), &(&a * (28.0 - &c) - &b), &(&a * &b - &c * 2.6666667)], 0)
                };
                let mut x = x.clone();
                for _ in 0..8 {
                    let k1 = slope(&x);
                    let k2 = slope(&(&x + &k1 * 0.005));
                    let k3 = slope(&(&x + &k2 * 0.005));
                    let k4 = slope(&(&x + &k3 * 0.01));
                    x = &x + (k1 + k2 * 2.0 + k3 * 2.0 + k4) * (0.01 / 6.0);
                }
                x
            };
            torch "def f(x):\n    a, b, c = x\n    return torch.stack([(b - a) * 10, a * (28 - c) - b, a * b - c * 2.6666667])\n\
                   for _ in range(8):\n    p = f(x); q = f(x + 0.005 * p); r = f(x + 0.005 * q); s = f(x + 0.01 * r)\n\
                   \x20   x = x + (p + 2 * q + 2 * r + s) * (0.01 / 6)\nreturn x";
            work [pass(2 * 3 * 4096)];
            train x;

        // A neural differential equation: four steps of Euler.
        "simulation/neural-ode" (x = normal([256, 64]), a = weight([64, 128], 64), b = weight([128, 64], 128))
            ours {
                let mut x = x.clone();
                for _ in 0..4 {
                    x = &x + x.matmul(a).tanh().matmul(b) * 0.1;
                }
                x
            };
            torch "for _ in range(4):\n    x = x + 0.1 * torch.tanh(x @ a) @ b\nreturn x";
            work [linear(256, 64, 128).times(4), linear(256, 128, 64).times(4)];
            train x a b;

        // A chain of masses and springs, 16 steps.
        "simulation/springs" (x = normal([64, 512]), v = normal([64, 512]))
            ours {
                let (mut x, mut v) = (x.clone(), v.clone());
                for _ in 0..16 {
                    let pull = x.roll([1], [1]) + x.roll([-1], [1]) - &x * 2.0;
                    v = (v + pull * 0.1) * 0.99;
                    x += &v * 0.1;
                }
                vec![x, v]
            };
            torch "for _ in range(16):\n    v = (v + 0.1 * (x.roll(1, 1) + x.roll(-1, 1) - 2 * x)) * 0.99; x = x + 0.1 * v\nreturn x, v";
            work [pass(4 * 64 * 512)];
            train x;

        // A network that knows its equation: its value and a penalty for a slope.
        "simulation/diffusion-graph" (x = normal([256, 32]), a = uniform(0.0, 1.0, [256, 256]))
            ours {
                let share = a / a.sum(1, true);
                let mut x = x.clone();
                for _ in 0..4 {
                    x = &x * 0.9 + share.matmul(&x) * 0.1;
                }
                x
            };
            torch "s = a / a.sum(1, keepdim=True)\nfor _ in range(4):\n    x = 0.9 * x + 0.1 * s @ x\nreturn x";
            work [pass(2 * 65_536), linear(256, 256, 32).times(4)];
            train x a;

        // Smoothed particles: densities by a kernel of the distance.
        "simulation/particle-density" (x = uniform(0.0, 10.0, [1000, 2]))
            ours {
                let square = (x.unsqueeze(0) - x.unsqueeze(1)).square().sum(2, false);
                let near = (1.0 - square).relu();
                (&near * &near * near).sum(1, false)
            };
            torch "s = (x[None] - x[:, None]).square().sum(2); n = (1 - s).relu(); return (n * n * n).sum(1)";
            work [product(1, 1000, 2, 1000)];
            train x;
    }
}
