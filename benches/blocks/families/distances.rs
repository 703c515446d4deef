//! Distances of many points.

use tinyspec::Tensor;

use crate::blocks::block::{Block, blocks, normal, pass, product};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "distances/cdist" (x = normal([512, 64]), y = normal([512, 64]))
            ours x.cdist(y, 2.0);
            torch "torch.cdist(x, y)";
            work [product(1, 512, 64, 512)];
            train x y;

        "distances/manhattan" (x = normal([256, 32]), y = normal([256, 32]))
            ours x.cdist(y, 1.0);
            torch "torch.cdist(x, y, p=1)";
            work [product(1, 256, 32, 256)];
            train x y;

        // By the squares and the product.
        "distances/squared" (x = normal([1024, 64]), y = normal([512, 64]))
            ours x.square().sum(1, true) + y.square().sum(1, false) - x.matmul(y.transpose(0, 1)) * 2.0;
            torch "x.square().sum(1, keepdim=True) + y.square().sum(1) - 2 * x @ y.t()";
            work [product(1, 1024, 64, 512)];
            train x y;

        "distances/cosine" (x = normal([512, 128]), y = normal([512, 128]))
            ours x.normalize(2.0, 1, 1e-12).matmul(y.normalize(2.0, 1, 1e-12).transpose(0, 1));
            torch "F.normalize(x) @ F.normalize(y).t()";
            work [pass(4 * 512 * 128), product(1, 512, 128, 512)];
            train x y;

        // k-means: the nearest centre.
        "distances/nearest-centre" (x = normal([4096, 32]), c = normal([64, 32]))
            ours (c.square().sum(1, false) - x.matmul(c.transpose(0, 1)) * 2.0).argmin(1);
            torch "(c.square().sum(1) - 2 * x @ c.t()).argmin(1)";
            work [product(1, 4096, 32, 64)];

        // A kernel matrix of a Gaussian process.
        "distances/rbf-kernel" (x = normal([512, 8]))
            ours {
                let difference = x.unsqueeze(1) - x.unsqueeze(0);
                (difference.square().sum(2, false) * -0.5).exp()
            };
            torch "torch.exp(-0.5 * (x[:, None] - x[None]).square().sum(2))";
            work [product(1, 512, 8, 512)];
            train x;

        // The 8 nearest of 1,000 points.
        "distances/neighbours" (x = normal([1000, 16]))
            ours x.cdist(x, 2.0).topk(8, 1, false);
            torch "torch.cdist(x, x).topk(8, 1, largest=False)";
            work [product(1, 1000, 16, 1000), pass(2 * 1_000_000)];

        // Point clouds: each to the nearest of the other, both ways.
        "distances/chamfer" (x = normal([4, 512, 3]), y = normal([4, 512, 3]))
            ours {
                let square = (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3, false);
                square.min(2, false).mean(.., false) + square.min(1, false).mean(.., false)
            };
            torch "d = (x[:, :, None] - y[:, None]).square().sum(3); return d.amin(2).mean() + d.amin(1).mean()";
            work [product(4, 512, 3, 512)];
            train x y;

        // Prototypes: a softmax over the distances, negative.
        "distances/prototypes" (x = normal([256, 128]), p = normal([64, 128]))
            ours (-(x.unsqueeze(1) - p).square().sum(2, false)).log_softmax(1);
            torch "F.log_softmax(-(x[:, None] - p).square().sum(2), 1)";
            work [product(1, 256, 128, 64)];
            train x p;

        // Mahalanobis.
        "distances/mahalanobis" (x = normal([1024, 64]), m = normal([64]), s = normal([64, 64]))
            ours {
                let centred: Tensor = x - m;
                (centred.matmul(s) * &centred).sum(1, false)
            };
            torch "d = x - m; return ((d @ s) * d).sum(1)";
            work [product(1, 1024, 64, 64)];
            train x s;
    }
}
