//! Factors of matrices, and systems of equations.

use tinyspec::{DType, Tensor};

use crate::blocks::block::{Block, Work, blocks, definite, normal, product};

/// `n³ / 3` multiply-adds.
fn thirds(batch: usize, n: usize, thirds: f64) -> Work {
    let whole = product(batch, n, n, n);
    Work { flops: whole.flops * thirds / 6.0, ..whole }
}

pub fn blocks() -> Vec<Block> {
    blocks! {
        "factorisations/cholesky-64" (a = definite([64, 64]))
            ours a.cholesky(false);
            torch "torch.linalg.cholesky(a)";
            work [thirds(1, 64, 1.0)];
            train a;

        "factorisations/cholesky-512" (a = definite([512, 512]))
            ours a.cholesky(false);
            torch "torch.linalg.cholesky(a)";
            work [thirds(1, 512, 1.0)];
            train a;

        "factorisations/solve-96" (a = definite([96, 96]), b = normal([96, 8]))
            ours a.solve(b);
            torch "torch.linalg.solve(a, b)";
            work [thirds(1, 96, 2.0)];
            train a b;

        "factorisations/solve-256" (a = definite([256, 256]), b = normal([256, 16]))
            ours a.solve(b);
            torch "torch.linalg.solve(a, b)";
            work [thirds(1, 256, 2.0)];
            train a b;

        // Kalman filters: many small systems.
        "factorisations/solve-batch" (a = definite([256, 12, 12]), b = normal([256, 12, 1]))
            ours a.solve(b);
            torch "torch.linalg.solve(a, b)";
            work [thirds(256, 12, 2.0)];
            train a b;

        "factorisations/qr" (a = normal([256, 64]))
            ours a.qr();
            torch "torch.linalg.qr(a)";
            work [product(1, 256, 64, 64).times(2)];

        "factorisations/inverse" (a = definite([128, 128]))
            ours a.inverse();
            torch "torch.linalg.inv(a)";
            work [thirds(1, 128, 6.0)];
            train a;

        "factorisations/lstsq" (a = normal([2000, 32]), b = normal([2000, 1]))
            ours a.lstsq(b);
            torch "torch.linalg.lstsq(a, b).solution";
            work [product(1, 2000, 32, 32).times(2)];

        "factorisations/triangular" (a = definite([256, 256]), b = normal([256, 64]))
            ours a.solve_triangular(b, false, false);
            torch "torch.linalg.solve_triangular(a.tril(), b, upper=False)";
            work [thirds(1, 256, 0.75)];
            train a b;

        // A Gaussian process: the likelihood of its data.
        "factorisations/gaussian-process" (x = normal([128, 4]), y = normal([128, 1]))
            ours {
                let square = x.square().sum(1, true);
                let distance = &square + square.transpose(0, 1) - x.matmul(x.transpose(0, 1)) * 2.0;
                let kernel = (distance * -0.5).exp() + Tensor::eye(128, 128, DType::F32) * 0.1;
                let factor = kernel.cholesky(false);
                let solved = y.cholesky_solve(&factor, false);
                (y * solved).sum(.., false) * 0.5 + factor.diagonal(0).log().sum(.., false)
            };
            torch "s = (x * x).sum(1, keepdim=True); d = s + s.t() - 2 * x @ x.t(); k = torch.exp(-0.5 * d) + 0.1 * torch.eye(128); \
                   l = torch.linalg.cholesky(k); return 0.5 * (y * torch.cholesky_solve(y, l)).sum() + l.diagonal().log().sum()";
            work [product(1, 128, 4, 128), thirds(1, 128, 1.0)];
            train x;
    }
}
