//! Gathers and scatters: embeddings, graphs, histograms.

use tinyspec::{DType, Tensor};

use crate::blocks::block::{Block, below, blocks, linear, normal, pass, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "gathers/embedding" (table = normal([16_384, 768]), tokens = below(16_384, [1024]))
            ours tokens.embedding(table);
            torch "F.embedding(tokens, table)";
            work [pass(2 * 1024 * 768)];

        // The gradient of an embedding is as large as its table.
        "gathers/embedding-small" (table = normal([4096, 256]), tokens = below(4096, [8, 256]))
            ours tokens.embedding(table);
            torch "F.embedding(tokens, table)";
            work [pass(2 * 2048 * 256)];
            train table;

        // Bags of words, as recommenders have them.
        "gathers/embedding-bag" (table = normal([20_000, 64]), items = below(20_000, [512, 20]))
            ours items.embedding(table).mean(1, false);
            torch "F.embedding_bag(items, table, mode='mean')";
            work [pass(512 * 20 * 64 + 512 * 64)];
            train table;

        // A graph network: what the edges bring is summed at their ends.
        "gathers/messages" (x = normal([2000, 64]), source = below(2000, [20_000]), to = below(2000, [20_000]), zero = normal([2000, 64]))
            ours zero.index_add(0, to, x.index_select(0, source));
            torch "zero.index_add(0, to, x.index_select(0, source))";
            work [pass(2 * 20_000 * 64)];
            train x;

        // Graph attention: a softmax over the edges of each node.
        "gathers/segment-softmax" (e = normal([20_000, 4]), to = below(2000, [20_000]))
            ours {
                let e = e.exp();
                let total = Tensor::zeros([2000, 4]).index_add(0, to, &e);
                &e / total.index_select(0, to)
            };
            torch "e = e.exp(); t = torch.zeros(2000, 4).index_add(0, to, e); return e / t.index_select(0, to)";
            work [pass(2 * 20_000 * 4), pass(3 * 20_000 * 4)];
            train e;

        "gathers/bincount" (x = below(1000, [100_000]))
            ours x.bincount(1000);
            torch "torch.bincount(x, minlength=1000)";
            work [pass(100_000)];

        "gathers/histogram" (x = normal([100_000]))
            ours x.histc(256, -4.0, 4.0);
            torch "torch.histc(x, 256, -4, 4)";
            work [pass(100_000)];

        // Deep Q-learning: the value of the action that was taken.
        "gathers/along-rows" (x = normal([4096, 64]), a = below(64, [4096, 1]))
            ours x.gather(a, 1);
            torch "x.gather(1, a)";
            work [pass(4096)];
            train x;

        // Pixels that a mask leaves, batch of 16: MAE's shuffle.
        "gathers/middle-axis" (x = normal([16, 196, 192]), keep = below(196, [49]))
            ours x.index_select(1, keep);
            torch "x.index_select(1, keep)";
            work [pass(2 * 16 * 49 * 192)];
            train x;

        // Rows of a cache, written at their positions.
        "gathers/cache-write" (cache = normal([512, 768]), at = below(512, [16]), rows = normal([16, 768]))
            ours cache.index_copy(0, at, rows);
            torch "cache.index_copy(0, at, rows)";
            work [pass(2 * 512 * 768)];

        // Means over clusters.
        "gathers/scatter-mean" (x = normal([8192, 32]), cluster = below(100, [8192]))
            ours {
                let sum = Tensor::zeros([100, 32]).index_add(0, cluster, x);
                let count = cluster.bincount(100).cast(DType::F32).maximum(1.0);
                sum / count.unsqueeze(1)
            };
            torch "s = torch.zeros(100, 32).index_add(0, cluster, x); return s / torch.bincount(cluster, minlength=100).clamp(min=1)[:, None]";
            work [pass(8192 * 32)];
            train x;

        // Words and their positions, and the product behind them.
        "gathers/embedding-linear" (table = normal([8192, 256]), place = normal([128, 256]), tokens = below(8192, [4, 128]),
                                    w = weight([256, 768], 256))
            ours (tokens.embedding(table) + place).matmul(w);
            torch "(F.embedding(tokens, table) + place) @ w";
            work [pass(2 * 512 * 256), linear(512, 256, 768)];
            train table place w;
    }
}
