//! Recurrent steps and sequences.

use tinyspec::Tensor;

use crate::blocks::block::{Block, blocks, linear, normal, pass, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        "recurrent/lstm-cell" (x = normal([64, 256]), h = normal([64, 256]), c = normal([64, 256]), w = weight([256, 1024], 256),
                               u = weight([256, 1024], 256), b = normal([1024]))
            ours x.lstm_cell(h, c, w, u, Some(b), None);
            torch "i, f, g, o = (x @ w + h @ u + b).chunk(4, 1); c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g); \
                   return torch.sigmoid(o) * torch.tanh(c), c";
            work [linear(64, 256, 1024).times(2)];
            train x h c w u b;

        "recurrent/gru-cell" (x = normal([64, 256]), h = normal([64, 256]), w = weight([256, 768], 256), u = weight([256, 768], 256),
                              b = normal([768]), d = normal([768]))
            ours x.gru_cell(h, w, u, Some(b), Some(d));
            torch "torch.gru_cell(x, h, w.t(), u.t(), b, d)";
            work [linear(64, 256, 768).times(2)];
            train x h w u b d;

        // 32 steps of speech, batch of 16.
        "recurrent/lstm-32" (x = normal([32, 16, 128]), h = normal([16, 128]), c = normal([16, 128]), w = weight([128, 512], 128),
                             u = weight([128, 512], 128), b = normal([512]), d = normal([512]))
            ours x.lstm(h, c, w, u, Some(b), Some(d))[0].clone();
            torch "torch._VF.lstm(x, (h[None], c[None]), (w.t(), u.t(), b, d), True, 1, 0.0, False, False, False)[0]";
            work [linear(512, 128, 512), linear(16, 128, 512).times(32)];
            train x w u;

        "recurrent/gru-32" (x = normal([32, 16, 128]), h = normal([16, 128]), w = weight([128, 384], 128), u = weight([128, 384], 128),
                            b = normal([384]), d = normal([384]))
            ours x.gru(h, w, u, Some(b), Some(d))[0].clone();
            torch "torch._VF.gru(x, h[None], (w.t(), u.t(), b, d), True, 1, 0.0, False, False, False)[0]";
            work [linear(512, 128, 384), linear(16, 128, 384).times(32)];
            train x w u;

        "recurrent/rnn-64" (x = normal([64, 8, 64]), h = normal([8, 64]), w = weight([64, 64], 64), u = weight([64, 64], 64))
            ours x.rnn(h, w, u, None, None)[0].clone();
            torch "torch._VF.rnn_tanh(x, h[None], (w.t(), u.t()), False, 1, 0.0, False, False, False)[0]";
            work [linear(512, 64, 64), linear(8, 64, 64).times(64)];
            train x w u;

        // A policy that is asked at each step: batch of 1.
        "recurrent/gru-cell-single" (x = normal([1, 128]), h = normal([1, 256]), w = weight([128, 768], 128), u = weight([256, 768], 256),
                                     b = normal([768]), d = normal([768]))
            ours x.gru_cell(h, w, u, Some(b), Some(d));
            torch "torch.gru_cell(x, h, w.t(), u.t(), b, d)";
            work [linear(1, 128, 768), linear(1, 256, 768)];

        // Minimal gated unit, written out.
        "recurrent/minimal-gated" (x = normal([32, 128]), h = normal([32, 128]), wf = weight([256, 128], 256), wh = weight([256, 128], 256))
            ours {
                let f = Tensor::cat(&[x, h], 1).matmul(wf).sigmoid();
                let n = Tensor::cat(&[x, &(&f * h)], 1).matmul(wh).tanh();
                (1.0 - &f) * h + &f * n
            };
            torch "f = torch.sigmoid(torch.cat([x, h], 1) @ wf); n = torch.tanh(torch.cat([x, f * h], 1) @ wh); return (1 - f) * h + f * n";
            work [linear(32, 256, 128).times(2)];
            train x h wf wh;

        // RWKV: time mixing of a token, one step.
        "recurrent/rwkv-step" (x = normal([1, 768]), last = normal([1, 768]), mix = uniform(0.0, 1.0, [768]), a = normal([1, 768]),
                               b = uniform(1.0, 2.0, [1, 768]), decay = uniform(0.1, 1.0, [768]), wk = weight([768, 768], 768),
                               wv = weight([768, 768], 768), wr = weight([768, 768], 768), wo = weight([768, 768], 768))
            ours {
                let m = x * mix + last * (1.0 - mix);
                let (k, v, r) = (m.matmul(wk).exp(), m.matmul(wv), m.matmul(wr).sigmoid());
                let fade = (-decay).exp();
                let (a, b) = (a * &fade + &k * v, b * &fade + &k);
                vec![(r * (&a / &b)).matmul(wo), a, b]
            };
            torch "m = x * mix + last * (1 - mix); k = torch.exp(m @ wk); v = m @ wv; r = torch.sigmoid(m @ wr); f = torch.exp(-decay); \
                   a = a * f + k * v; b = b * f + k; return (r * (a / b)) @ wo, a, b";
            work [linear(1, 768, 768).times(4), pass(8 * 768)];
    }
}
