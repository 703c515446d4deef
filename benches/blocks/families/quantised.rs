//! Narrow numbers.

use tinyspec::DType;

use crate::blocks::block::{Block, Unit, below, blocks, linear, normal, pass, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // Products of i8, summed in i32.
        "quantised/i8-product" (x = uniform(-127.0, 127.0, [256, 768]).cast(DType::I8), w = uniform(-127.0, 127.0, [768, 768]).cast(DType::I8))
            ours x.cast(DType::I32).matmul(w.cast(DType::I32));
            torch "torch._int_mm(x, w)";
            work [linear(256, 768, 768).on(Unit::I8, 1)];

        // Activations quantised row by row on the way, weights before.
        "quantised/dynamic-linear" (x = normal([128, 768]), w = uniform(-127.0, 127.0, [768, 768]).cast(DType::I8),
                                    s = uniform(0.001, 0.002, [768]))
            ours {
                let scale = x.abs().max(1, true) * (1.0 / 127.0);
                let q = (x / &scale).round().cast(DType::I8);
                q.cast(DType::I32).matmul(w.cast(DType::I32)).cast(DType::F32) * scale * s
            };
            torch "a = x.abs().amax(1, keepdim=True) / 127; q = (x / a).round().to(torch.int8); return torch._int_mm(q, w).float() * a * s";
            work [pass(128 * 768), linear(128, 768, 768).on(Unit::I8, 1)];

        // Weights as bytes with a scale for each column, one row: decoding.
        "quantised/i8-weights-single" (x = normal([1, 768]), w = uniform(-127.0, 127.0, [768, 3072]).cast(DType::I8), s = uniform(0.001, 0.002, [3072]))
            ours x.matmul(w.cast(DType::F32)) * s;
            torch "(x @ w.float()) * s";
            work [pass(768 * 3072 / 4)];

        "quantised/i8-weights" (x = normal([128, 768]), w = uniform(-127.0, 127.0, [768, 768]).cast(DType::I8), s = uniform(0.001, 0.002, [768]))
            ours x.matmul(w.cast(DType::F32)) * s;
            torch "(x @ w.float()) * s";
            work [linear(128, 768, 768)];
            train x s;

        // Two weights of four bits in a byte, a scale for 32 of them.
        "quantised/i4-weights" (x = normal([16, 512]), w = below(256, [512, 256]).cast(DType::U8), s = uniform(0.01, 0.02, [16, 1, 512]))
            ours {
                let halves = tinyspec::Tensor::stack(&[&w.and(15u8), &w.shr(4u8)], 2).reshape([512, 512]);
                let weight = (halves.cast(DType::F32) - 8.0).reshape([16, 32, 512]) * s;
                x.matmul(weight.reshape([512, 512]))
            };
            torch "h = torch.stack([w & 15, w >> 4], 2).reshape(512, 512); return x @ ((h.float() - 8).view(16, 32, 512) * s).view(512, 512)";
            work [pass(512 * 256 / 4), linear(16, 512, 512)];
            train x;

        // Training for quantisation: what 8 bits would leave.
        "quantised/fake-weights" (x = normal([128, 512]), w = weight([512, 512], 512))
            ours {
                let scale = w.abs().max(.., false) * (1.0 / 127.0);
                x.matmul((w / &scale).round().clip(-127.0, 127.0) * scale)
            };
            torch "s = w.abs().amax() / 127; return x @ ((w / s).round().clamp(-127, 127) * s)";
            work [pass(2 * 512 * 512), linear(128, 512, 512)];
            train x;

        // bf16, as models are stored.
        "quantised/bf16-product" (x = normal([128, 768]).cast(DType::BF16), w = weight([768, 3072], 768).cast(DType::BF16))
            ours x.matmul(w);
            torch "x @ w";
            work [linear(128, 768, 3072).on(Unit::Bf16, 2)];
            train x w;

        "quantised/f16-weights" (x = normal([64, 768]), w = weight([768, 768], 768).cast(DType::F16))
            ours x.matmul(w.cast(DType::F32));
            torch "x @ w.float()";
            work [linear(64, 768, 768)];
            train x;
    }
}
