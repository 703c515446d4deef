//! Sorting, and elements by their number in order.

use tinyspec::DType;

use crate::blocks::block::{Block, blocks, distinct, linear, normal, pass, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "sorts/rows" (x = distinct([256, 1024]))
            ours x.sort(1, false)[0].clone();
            torch "x.sort(1)[0]";
            work [pass(2 * 256 * 1024)];
            train x;

        "sorts/argsort" (x = distinct([65_536]))
            ours x.argsort(0, false);
            torch "x.argsort()";
            work [pass(2 * 65_536)];

        // Sampling of a language model: the 50 most likely tokens.
        "sorts/topk-vocabulary" (x = distinct([16, 32_000]))
            ours x.topk(50, 1, true);
            torch "x.topk(50)";
            work [pass(16 * 32_000)];
            train x;

        // A router's two experts of 64.
        "sorts/topk-router" (x = normal([2048, 256]), w = weight([256, 64], 256))
            ours x.matmul(w).softmax(-1).topk(2, 1, true);
            torch "torch.softmax(x @ w, -1).topk(2)";
            work [linear(2048, 256, 64)];
            train x w;

        // Nucleus sampling: sorted probabilities, cut where their sum reaches 0.9.
        "sorts/nucleus" (x = normal([4, 8192]))
            ours {
                let p = x.softmax(-1).sort(1, true)[0].clone();
                let before = p.cumsum(1) - &p;
                before.lt(0.9).where_(p, 0.0)
            };
            torch "p = torch.softmax(x, -1).sort(1, True)[0]; return torch.where(p.cumsum(1) - p < 0.9, p, 0.)";
            work [pass(2 * 4 * 8192), pass(2 * 4 * 8192)];

        "sorts/median" (x = distinct([512, 512]))
            ours x.median(1, false);
            torch "x.median(1)[0]";
            work [pass(512 * 512)];
            train x;

        "sorts/quantile" (x = uniform(0.0, 1.0, [64, 4096]))
            ours x.quantile(0.95, 1, false);
            torch "x.quantile(0.95, 1)";
            work [pass(64 * 4096)];

        // Detection: the 100 best of 10,000 boxes.
        "sorts/best-boxes" (score = distinct([10_000]), boxes = uniform(0.0, 1.0, [10_000, 4]))
            ours boxes.index_select(0, score.topk(100, 0, true)[1].cast(DType::I32));
            torch "boxes.index_select(0, score.topk(100)[1])";
            work [pass(10_000 + 800)];
    }
}
