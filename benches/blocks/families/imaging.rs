//! Pictures: sizes, filters, colours.

use tinyspec::DType;
use tinyspec::options::{AvgPool2d, Conv2d, MaxPool2d, default};

use crate::blocks::block::{Block, below, blocks, normal, pass, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // Bytes with channels last, as decoders give them, to what networks take.
        "imaging/normalise-bytes" (x = below(256, [4, 224, 224, 3]).cast(DType::U8), mean = uniform(0.4, 0.5, [3]), std = uniform(0.2, 0.3, [3]))
            ours ((x.cast(DType::F32) * (1.0 / 255.0) - mean) / std).permute([0, 3, 1, 2]).contiguous();
            torch "((x.float() / 255 - mean) / std).permute(0, 3, 1, 2).contiguous()";
            work [pass(4 * 224 * 224 * 3 * 5 / 4)];

        "imaging/resize-bilinear" (x = uniform(0.0, 1.0, [1, 3, 480, 640]))
            ours x.interpolate([224, 224], "linear", false);
            torch "F.interpolate(x, (224, 224), mode='bilinear')";
            work [pass(3 * (224 * 224 * 3))];

        // Feature pyramids.
        "imaging/upsample-twice" (x = normal([2, 64, 40, 40]))
            ours x.interpolate_scale(2.0, "nearest", false);
            torch "F.interpolate(x, scale_factor=2)";
            work [pass(2 * 64 * 8000)];
            train x;

        // U-Net's way up.
        "imaging/upsample-bilinear" (x = normal([1, 64, 64, 64]))
            ours x.interpolate([128, 128], "linear", true);
            torch "F.interpolate(x, (128, 128), mode='bilinear', align_corners=True)";
            work [pass(64 * 5 * 4096)];
            train x;

        // Gaussian blur, rows and columns apart.
        "imaging/gaussian-blur" (x = uniform(0.0, 1.0, [3, 1, 512, 512]), k = uniform(0.05, 0.2, [9]))
            ours {
                let rows = x.conv2d(k.reshape([1, 1, 9, 1]), None, Conv2d { padding: [4, 0], ..default() });
                rows.conv2d(k.reshape([1, 1, 1, 9]), None, Conv2d { padding: [0, 4], ..default() })
            };
            torch "F.conv2d(F.conv2d(x, k.view(1, 1, 9, 1), padding=(4, 0)), k.view(1, 1, 1, 9), padding=(0, 4))";
            work [pass(4 * 3 * 512 * 512)];
            train x;

        // Spatial transformers.
        "imaging/warp-affine" (x = uniform(0.0, 1.0, [4, 3, 128, 128]), a = uniform(-0.5, 0.5, [4, 2, 3]))
            ours x.grid_sample(a.affine_grid([128, 128], false), "bilinear", "zeros", false);
            torch "F.grid_sample(x, F.affine_grid(a, (4, 3, 128, 128), align_corners=False), align_corners=False)";
            work [pass(2 * 4 * 3 * 16_384)];
            train x a;

        // Edges.
        "imaging/sobel" (x = uniform(0.0, 1.0, [1, 1, 512, 512]), k = normal([2, 1, 3, 3]))
            ours (x.conv2d(k, None, Conv2d { padding: [1, 1], ..default() }).square().sum(1, true) + 1e-12).sqrt();
            torch "(F.conv2d(x, k, padding=1).square().sum(1, keepdim=True) + 1e-12).sqrt()";
            work [pass(2 * 512 * 512)];
            train x;

        // Colours, by a matrix.
        "imaging/rgb-to-yuv" (x = uniform(0.0, 1.0, [8, 3, 256, 256]), m = normal([3, 3]))
            ours m.matmul(x.flatten(2, 3)).clip(0.0, 1.0);
            torch "(m @ x.flatten(2)).clamp(0, 1)";
            work [pass(2 * 8 * 3 * 65_536)];
            train x;

        // The similarity of two pictures, in windows of 7.
        "imaging/ssim" (x = uniform(0.0, 1.0, [4, 3, 96, 96]), y = uniform(0.0, 1.0, [4, 3, 96, 96]))
            ours {
                let mean = |x: &tinyspec::Tensor| x.avg_pool2d([7, 7], AvgPool2d { stride: Some([1, 1]), ..default() });
                let (a, b) = (mean(x), mean(y));
                let (va, vb, vab) = (mean(&(x * x)) - &a * &a, mean(&(y * y)) - &b * &b, mean(&(x * y)) - &a * &b);
                ((&a * &b * 2.0 + 1e-4) * (vab * 2.0 + 9e-4) / ((&a * &a + &b * &b + 1e-4) * (va + vb + 9e-4))).mean(.., false)
            };
            torch "m = lambda x: F.avg_pool2d(x, 7, 1)\na = m(x); b = m(y); p = m(x * x) - a * a; q = m(y * y) - b * b; r = m(x * y) - a * b\n\
                   return ((2 * a * b + 1e-4) * (2 * r + 9e-4) / ((a * a + b * b + 1e-4) * (p + q + 9e-4))).mean()";
            work [pass(2 * 4 * 3 * 9216)];
            train x;

        // CenterNet: peaks of a heat map.
        "imaging/peaks" (x = uniform(0.0, 1.0, [1, 80, 96, 96]))
            ours {
                let top = x.max_pool2d([3, 3], MaxPool2d { stride: Some([1, 1]), padding: [1, 1], ..default() });
                top.eq(x).where_(x, 0.0)
            };
            torch "torch.where(F.max_pool2d(x, 3, 1, 1) == x, x, 0.)";
            work [pass(2 * 80 * 9216)];

        // Super-resolution: channels to pixels.
        "imaging/pixel-shuffle" (x = normal([1, 64, 64, 64]), w = weight([48, 64, 3, 3], 576))
            ours x.conv2d(w, None, Conv2d { padding: [1, 1], ..default() }).pixel_shuffle(4);
            torch "F.pixel_shuffle(F.conv2d(x, w, padding=1), 4)";
            work [crate::blocks::block::convolution([1, 48, 64, 64], 576, 64 * 4096)];
            train x w;

        // Noise of salt and pepper: medians of 3×3.
        "imaging/median-3x3" (x = uniform(0.0, 1.0, [1, 256, 256]))
            ours x.unfold(1, 3, 1).unfold(2, 3, 1).flatten(3, 4).median(-1, false);
            torch "x.unfold(1, 3, 1).unfold(2, 3, 1).flatten(3).median(-1)[0]";
            work [pass(2 * 65_536)];
    }
}
