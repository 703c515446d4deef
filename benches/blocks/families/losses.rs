//! Losses over many classes, and of pairs.

use tinyspec::{DType, Tensor};

use crate::blocks::block::{Block, below, blocks, linear, mask, normal, pass, product, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "losses/cross-entropy-vocabulary" (x = normal([256, 32_000]), t = below(32_000, [256]))
            ours x.cross_entropy(t, "mean", 0.0, -100);
            torch "F.cross_entropy(x, t)";
            work [pass(256 * 32_000)];
            train x;

        // The head of a language model and its loss.
        "losses/head" (x = normal([128, 384]), w = weight([384, 16_384], 384), t = below(16_384, [128]))
            ours x.matmul(w).cross_entropy(t, "mean", 0.0, -100);
            torch "F.cross_entropy(x @ w, t)";
            work [linear(128, 384, 16_384)];
            train x w;

        "losses/label-smoothing" (x = normal([512, 1000]), t = below(1000, [512]))
            ours x.cross_entropy(t, "mean", 0.1, -100);
            torch "F.cross_entropy(x, t, label_smoothing=0.1)";
            work [pass(512 * 1000)];
            train x;

        // CLIP: pictures against texts, both ways.
        "losses/contrastive" (a = normal([256, 512]), b = normal([256, 512]))
            ours {
                let scores = a.normalize(2.0, 1, 1e-12).matmul(b.normalize(2.0, 1, 1e-12).transpose(0, 1)) * 14.3;
                let own = Tensor::arange(256);
                (scores.cross_entropy(&own, "mean", 0.0, -100) + scores.transpose(0, 1).cross_entropy(&own, "mean", 0.0, -100)) * 0.5
            };
            torch "s = F.normalize(a) @ F.normalize(b).t() * 14.3; t = torch.arange(256); \
                   return (F.cross_entropy(s, t) + F.cross_entropy(s.t(), t)) * 0.5";
            work [pass(4 * 256 * 512), product(1, 256, 512, 256)];
            train a b;

        // Many labels at once.
        "losses/many-labels" (x = normal([64, 10_000]), t = mask(0.01, [64, 10_000]))
            ours x.binary_crossentropy_logits(t.cast(DType::F32), "mean");
            torch "F.binary_cross_entropy_with_logits(x, t.float())";
            work [pass(64 * 12_500)];
            train x;

        // Distillation, at a temperature.
        "losses/distillation" (x = normal([128, 8192]), y = normal([128, 8192]))
            ours (x * 0.5).log_softmax(-1).kl_div((y * 0.5).softmax(-1), "batchmean", false);
            torch "F.kl_div(F.log_softmax(x * 0.5, -1), F.softmax(y * 0.5, -1), reduction='batchmean')";
            work [pass(2 * 128 * 8192)];
            train x;

        // RetinaNet.
        "losses/focal" (x = normal([20_000, 20]), t = mask(0.02, [20_000, 20]))
            ours x.sigmoid_focal_loss(t.cast(DType::F32), "mean", 0.25, 2.0);
            torch "t = t.float(); p = torch.sigmoid(x); ce = F.binary_cross_entropy_with_logits(x, t, reduction='none'); \
                   q = p * t + (1 - p) * (1 - t); return ((0.25 * t + 0.75 * (1 - t)) * ce * (1 - q) ** 2).mean()";
            work [pass(20_000 * 25)];
            train x;

        // Faces: distances of a triple.
        "losses/triplet" (a = normal([512, 128]), p = normal([512, 128]), n = normal([512, 128]))
            ours a.triplet_margin_loss(p, n, "mean", 1.0, 2.0);
            torch "F.triplet_margin_loss(a, p, n)";
            work [pass(3 * 512 * 128)];
            train a p n;

        // Segmentation: a class for each pixel, classes in axis 1.
        "losses/pixels" (x = normal([2, 21, 128, 128]), t = below(21, [2, 128, 128]))
            ours x.movedim(1, -1).cross_entropy(t, "mean", 0.0, -100);
            torch "F.cross_entropy(x, t)";
            work [pass(2 * 21 * 16_384)];
            train x;

        // Masks: one minus twice the overlap.
        "losses/dice" (x = normal([8, 256, 256]), t = mask(0.3, [8, 256, 256]))
            ours {
                let (p, t) = (x.sigmoid().flatten(1, 2), t.cast(DType::F32).flatten(1, 2));
                let overlap = (&p * &t).sum(1, false) * 2.0 + 1.0;
                (1.0 - overlap / (p.sum(1, false) + t.sum(1, false) + 1.0)).mean(.., false)
            };
            torch "p = torch.sigmoid(x).flatten(1); t = t.float().flatten(1); \
                   return (1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).mean()";
            work [pass(8 * 65_536 * 5 / 4)];
            train x;

        // Preference pairs: log-probabilities of the chosen and the rejected answer.
        "losses/preference" (x = normal([4, 64, 8192]), t = below(8192, [4, 64, 1]), y = uniform(-300.0, -200.0, [4]))
            ours {
                let chosen = x.log_softmax(-1).gather(t, 2).squeeze(-1).sum(1, false);
                ((&chosen - y) * -0.1).softplus().mean(.., false)
            };
            torch "c = F.log_softmax(x, -1).gather(2, t).squeeze(-1).sum(1); return F.softplus(-0.1 * (c - y)).mean()";
            work [pass(4 * 64 * 8192)];
            train x;
    }
}
