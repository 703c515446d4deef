//! Sums of products of several tensors.

use tinyspec::Tensor;

use crate::blocks::block::{Block, blocks, linear, normal, pass, product, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // Heads in the middle, as T5 writes its scores.
        "einsums/scores" (q = normal([4, 128, 8, 64]), k = normal([4, 128, 8, 64]))
            ours Tensor::einsum("bqhd,bkhd->bhqk", &[q, k]);
            torch "torch.einsum('bqhd,bkhd->bhqk', q, k)";
            work [product(32, 128, 64, 128)];
            train q k;

        // AlphaFold: the mean of outer products over sequences.
        "einsums/outer-product-mean" (a = normal([64, 48, 16]), b = normal([64, 48, 16]))
            ours Tensor::einsum("sic,sjd->ijcd", &[a, b]) * (1.0 / 64.0);
            torch "torch.einsum('sic,sjd->ijcd', a, b) / 64";
            work [product(1, 768, 64, 768)];
            train a b;

        // AlphaFold: pairs that share a third.
        "einsums/triangle" (a = normal([64, 64, 32]), b = normal([64, 64, 32]))
            ours Tensor::einsum("ikc,jkc->ijc", &[a, b]);
            torch "torch.einsum('ikc,jkc->ijc', a, b)";
            work [product(32, 64, 64, 64)];
            train a b;

        // Three factors in a row.
        "einsums/chain" (a = normal([8, 128, 64]), b = normal([8, 64, 128]), c = normal([8, 128, 32]))
            ours Tensor::einsum("bij,bjk,bkl->bil", &[a, b, c]);
            torch "torch.einsum('bij,bjk,bkl->bil', a, b, c)";
            work [product(8, 64, 128, 32), product(8, 128, 64, 32)];
            train a b c;

        // A tensor from three factors of rank 16.
        "einsums/cp-rank-16" (a = normal([32, 16]), b = normal([48, 16]), c = normal([64, 16]))
            ours Tensor::einsum("ir,jr,kr->ijk", &[a, b, c]);
            torch "torch.einsum('ir,jr,kr->ijk', a, b, c)";
            work [linear(1536, 16, 64)];
            train a b c;

        // Knowledge graphs: a relation between two entities.
        "einsums/bilinear-form" (x = normal([256, 64]), w = weight([64, 64, 16], 64), y = normal([256, 64]))
            ours Tensor::einsum("bi,ijr,bj->br", &[x, w, y]);
            torch "torch.einsum('bi,ijr,bj->br', x, w, y)";
            work [linear(256, 64, 1024), product(256, 1, 64, 16)];
            train x w y;

        // Experts by their share, an input for each.
        "einsums/grouped-linear" (x = normal([8, 64, 256]), w = weight([8, 256, 256], 256))
            ours Tensor::einsum("gbi,gio->gbo", &[x, w]);
            torch "torch.einsum('gbi,gio->gbo', x, w)";
            work [product(8, 64, 256, 256)];
            train x w;

        // A tensor train of two cores.
        "einsums/tensor-train" (x = normal([64, 16, 32]), a = weight([16, 24, 8], 16), b = weight([8, 32, 24], 256))
            ours Tensor::einsum("bij,ikr,rjl->bkl", &[x, a, b]);
            torch "torch.einsum('bij,ikr,rjl->bkl', x, a, b)";
            work [linear(64 * 32, 16, 192), product(64, 24, 256, 24)];
            train x a b;

        // Statistics of features: their products, summed over places.
        "einsums/gram" (x = normal([2, 64, 1024]))
            ours Tensor::einsum("bcn,bdn->bcd", &[x, x]) * (1.0 / 65_536.0);
            torch "torch.einsum('bcn,bdn->bcd', x, x) / 65536";
            work [product(2, 64, 1024, 64)];
            train x;

        "einsums/diagonal" (x = normal([256, 64, 64]))
            ours Tensor::einsum("bii->bi", &[x]) + Tensor::einsum("bij->bi", &[x]);
            torch "torch.einsum('bii->bi', x) + torch.einsum('bij->bi', x)";
            work [pass(256 * 64 * 65)];
            train x;
    }
}
