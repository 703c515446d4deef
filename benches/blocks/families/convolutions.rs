//! Convolutions, each with what models put before and behind it.

use tinyspec::Tensor;
use tinyspec::options::{Conv1d, Conv2d, Conv3d, ConvTranspose2d, default};

use crate::blocks::block::{Block, blocks, convolution, normal, uniform, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // ResNet: 3×3 of 64 channels.
        "convolutions/resnet-3x3" (x = normal([1, 64, 56, 56]), w = weight([64, 64, 3, 3], 576), b = normal([64]))
            ours x.conv2d(w, Some(b), Conv2d { padding: [1, 1], ..default() }).relu();
            torch "torch.relu(F.conv2d(x, w, b, padding=1))";
            work [convolution([1, 64, 56, 56], 576, 64 * 3136)];
            train x w b;

        // ResNet-50: a bottleneck with its residual.
        "convolutions/bottleneck" (x = normal([1, 256, 28, 28]), a = weight([64, 256, 1, 1], 256), b = weight([64, 64, 3, 3], 576),
                                   c = weight([256, 64, 1, 1], 64))
            ours {
                let y = x.conv2d(a, None, default()).relu();
                let y = y.conv2d(b, None, Conv2d { padding: [1, 1], ..default() }).relu();
                (y.conv2d(c, None, default()) + x).relu()
            };
            torch "torch.relu(F.conv2d(torch.relu(F.conv2d(torch.relu(F.conv2d(x, a)), b, padding=1)), c) + x)";
            work [
                convolution([1, 64, 28, 28], 256, 256 * 784),
                convolution([1, 64, 28, 28], 576, 64 * 784),
                convolution([1, 256, 28, 28], 64, 64 * 784),
            ];
            train x a b c;

        // ResNet-50: the first block of a stage adds a 1×1 and a strided 1×1 convolution.
        "convolutions/downsampling-sum" (y = normal([1, 128, 28, 28]), x = normal([1, 256, 56, 56]), a = weight([512, 128, 1, 1], 128),
                                         b = weight([512, 256, 1, 1], 256))
            ours (y.conv2d(a, None, default()) + x.conv2d(b, None, Conv2d { stride: [2, 2], ..default() })).relu();
            torch "torch.relu(F.conv2d(y, a) + F.conv2d(x, b, stride=2))";
            work [convolution([1, 512, 28, 28], 128, 128 * 784), convolution([1, 512, 28, 28], 256, 256 * 784)];
            train y x a b;

        // ResNet: the first layer.
        "convolutions/stem-7x7" (x = normal([1, 3, 224, 224]), w = weight([64, 3, 7, 7], 147), b = normal([64]))
            ours x.conv2d(w, Some(b), Conv2d { stride: [2, 2], padding: [3, 3], ..default() }).relu();
            torch "torch.relu(F.conv2d(x, w, b, stride=2, padding=3))";
            work [convolution([1, 64, 112, 112], 147, 3 * 224 * 224)];
            train w b;

        // ViT: patches of 16×16.
        "convolutions/patches" (x = normal([1, 3, 224, 224]), w = weight([384, 3, 16, 16], 768), b = normal([384]))
            ours x.conv2d(w, Some(b), Conv2d { stride: [16, 16], ..default() }).flatten(2, 3).transpose(1, 2);
            torch "F.conv2d(x, w, b, stride=16).flatten(2).transpose(1, 2)";
            work [convolution([1, 384, 14, 14], 768, 3 * 224 * 224)];
            train w b;

        // Inference of a small CNN: convolution, batch normalisation by its statistics, ReLU.
        "convolutions/conv-bn-relu" (x = normal([4, 32, 32, 32]), w = weight([64, 32, 3, 3], 288), g = normal([64]), b = normal([64]),
                                     m = normal([64]), v = uniform(0.5, 2.0, [64]))
            ours x.conv2d(w, None, Conv2d { padding: [1, 1], ..default() }).batch_norm_eval(g, b, m, v, 1e-5).relu();
            torch "torch.relu(F.batch_norm(F.conv2d(x, w, padding=1), m, v, g, b))";
            work [convolution([4, 64, 32, 32], 288, 4 * 32 * 1024)];
            train x w g b;

        // U-Net: two maps beside each other.
        "convolutions/unet-skip" (x = normal([1, 32, 64, 64]), s = normal([1, 32, 64, 64]), w = weight([32, 64, 3, 3], 576), b = normal([32]))
            ours Tensor::cat(&[x, s], 1).conv2d(w, Some(b), Conv2d { padding: [1, 1], ..default() }).silu();
            torch "F.silu(F.conv2d(torch.cat([x, s], 1), w, b, padding=1))";
            work [convolution([1, 32, 64, 64], 576, 64 * 4096)];
            train x s w b;

        // WaveNet: dilated, along time.
        "convolutions/wavenet-dilated" (x = normal([4, 64, 1024]), w = weight([128, 64, 2], 128))
            ours x.conv1d(w, None, Conv1d { dilation: [16], ..default() });
            torch "F.conv1d(x, w, dilation=16)";
            work [convolution([4, 128, 1008, 1], 128, 4 * 64 * 1024)];
            train x w;

        // Video: 3×3×3.
        "convolutions/video-3x3x3" (x = normal([1, 16, 8, 32, 32]), w = weight([32, 16, 3, 3, 3], 432))
            ours x.conv3d(w, None, Conv3d { padding: [1, 1, 1], ..default() });
            torch "F.conv3d(x, w, padding=1)";
            work [convolution([8, 32, 32, 32], 432, 16 * 8192)];
            train x w;

        // DCGAN: up by two.
        "convolutions/transposed-4x4" (x = normal([4, 128, 16, 16]), w = weight([128, 64, 4, 4], 512))
            ours x.conv_transpose2d(w, None, ConvTranspose2d { stride: [2, 2], padding: [1, 1], ..default() });
            torch "F.conv_transpose2d(x, w, stride=2, padding=1)";
            work [convolution([4, 64, 32, 32], 512, 4 * 128 * 256)];
            train x w;

        // DeepLab: dilated, in the plane.
        "convolutions/atrous" (x = normal([1, 128, 33, 33]), w = weight([64, 128, 3, 3], 1152))
            ours x.conv2d(w, None, Conv2d { padding: [6, 6], dilation: [6, 6], ..default() });
            torch "F.conv2d(x, w, padding=6, dilation=6)";
            work [convolution([1, 64, 33, 33], 1152, 128 * 1089)];
            train x w;
    }
}
