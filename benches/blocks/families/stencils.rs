//! Grids whose cells look at their neighbours.

use tinyspec::DType;
use tinyspec::options::{Conv2d, default};

use crate::blocks::block::{Block, blocks, mask, normal, pass, uniform};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // Heat, periodic, one step.
        "stencils/heat-periodic" (u = normal([512, 512]))
            ours u + (u.roll([1], [0]) + u.roll([-1], [0]) + u.roll([1], [1]) + u.roll([-1], [1]) - u * 4.0) * 0.1;
            torch "u + 0.1 * (u.roll(1, 0) + u.roll(-1, 0) + u.roll(1, 1) + u.roll(-1, 1) - 4 * u)";
            work [pass(2 * 512 * 512)];
            train u;

        // Heat between fixed borders, four steps.
        "stencils/heat-fixed-4" (u = normal([256, 256]))
            ours {
                let mut u = u.clone();
                for _ in 0..4 {
                    let part = |row: i64, column: i64| u.narrow(0, row, 254).narrow(1, column, 254);
                    let inner = part(1, 1) + (part(0, 1) + part(2, 1) + part(1, 0) + part(1, 2) - part(1, 1) * 4.0) * 0.1;
                    u = inner.pad([1, 1], [256, 256], 0.0);
                }
                u
            };
            torch "for _ in range(4):\n    i = u[1:-1, 1:-1]\n\
                   \x20   u = F.pad(i + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * i), (1, 1, 1, 1))\nreturn u";
            work [pass(2 * 256 * 256).times(4)];
            train u;

        // Waves: two states.
        "stencils/wave" (u = normal([512, 512]), before = normal([512, 512]))
            ours u * 2.0 - before + (u.roll([1], [0]) + u.roll([-1], [0]) + u.roll([1], [1]) + u.roll([-1], [1]) - u * 4.0) * 0.25;
            torch "2 * u - before + 0.25 * (u.roll(1, 0) + u.roll(-1, 0) + u.roll(1, 1) + u.roll(-1, 1) - 4 * u)";
            work [pass(3 * 512 * 512)];
            train u before;

        // Seven points in space.
        "stencils/laplace-3d" (u = normal([64, 64, 64]))
            ours {
                let part = |x: i64, y: i64, z: i64| u.narrow(0, x, 62).narrow(1, y, 62).narrow(2, z, 62);
                part(0, 1, 1) + part(2, 1, 1) + part(1, 0, 1) + part(1, 2, 1) + part(1, 1, 0) + part(1, 1, 2) - part(1, 1, 1) * 6.0
            };
            torch "i = slice(1, -1); a = slice(None, -2); b = slice(2, None); \
                   return u[a, i, i] + u[b, i, i] + u[i, a, i] + u[i, b, i] + u[i, i, a] + u[i, i, b] - 6 * u[i, i, i]";
            work [pass(2 * 64 * 64 * 64)];
            train u;

        // The game of life.
        "stencils/life" (u = mask(0.3, [512, 512]))
            ours {
                let cells = u.cast(DType::F32);
                let rows = &cells + cells.roll([1], [0]) + cells.roll([-1], [0]);
                let near = &rows + rows.roll([1], [1]) + rows.roll([-1], [1]) - &cells;
                near.eq(3.0).logical_or(near.eq(2.0).logical_and(u)).cast(DType::F32)
            };
            torch "c = u.float(); r = c + c.roll(1, 0) + c.roll(-1, 0); n = r + r.roll(1, 1) + r.roll(-1, 1) - c; \
                   return ((n == 3) | ((n == 2) & u)).float()";
            work [pass(512 * 512 + 512 * 512 / 4)];

        // Fluids: velocity times its gradient, upwind.
        "stencils/advection" (u = normal([512, 512]), v = uniform(-1.0, 1.0, [512, 512]))
            ours {
                let (back, ahead) = (u - u.roll([1], [1]), u.roll([-1], [1]) - u);
                u - v.gt(0.0).where_(v * back, v * ahead) * 0.1
            };
            torch "b = u - u.roll(1, 1); a = u.roll(-1, 1) - u; return u - 0.1 * torch.where(v > 0, v * b, v * a)";
            work [pass(3 * 512 * 512)];
            train u v;

        // Reaction and diffusion, a kernel of nine weights as a convolution.
        "stencils/gray-scott" (a = uniform(0.0, 1.0, [1, 1, 256, 256]), b = uniform(0.0, 1.0, [1, 1, 256, 256]), k = normal([1, 1, 3, 3]))
            ours {
                let near = Conv2d { padding: [1, 1], ..default() };
                let meet = a * b * b;
                vec![
                    a + a.conv2d(k, None, near) * 0.2 - &meet + (1.0 - a) * 0.05,
                    b + b.conv2d(k, None, near) * 0.1 + &meet - b * 0.1,
                ]
            };
            torch "m = a * b * b; return a + 0.2 * F.conv2d(a, k, padding=1) - m + 0.05 * (1 - a), b + 0.1 * F.conv2d(b, k, padding=1) + m - 0.1 * b";
            work [pass(4 * 65_536)];
            train a b;
    }
}
