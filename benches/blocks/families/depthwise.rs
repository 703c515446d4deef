//! Convolutions whose channels do not all see each other.

use tinyspec::options::{Conv1d, Conv2d, default};

use crate::blocks::block::{Block, blocks, convolution, normal, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // MobileNetV2.
        "depthwise/mobilenet-3x3" (x = normal([4, 96, 56, 56]), w = weight([96, 1, 3, 3], 9), b = normal([96]))
            ours x.conv2d(w, Some(b), Conv2d { padding: [1, 1], groups: 96, ..default() }).relu6();
            torch "F.relu6(F.conv2d(x, w, b, padding=1, groups=96))";
            work [convolution([4, 96, 56, 56], 9, 4 * 96 * 3136)];
            train x w b;

        // MobileNetV2: the block that halves the resolution.
        "depthwise/mobilenet-3x3-s2" (x = normal([4, 144, 56, 56]), w = weight([144, 1, 3, 3], 9))
            ours x.conv2d(w, None, Conv2d { stride: [2, 2], padding: [1, 1], groups: 144, ..default() });
            torch "F.conv2d(x, w, stride=2, padding=1, groups=144)";
            work [convolution([4, 144, 28, 28], 9, 4 * 144 * 3136)];
            train x w;

        // EfficientNet.
        "depthwise/efficientnet-5x5" (x = normal([4, 240, 28, 28]), w = weight([240, 1, 5, 5], 25))
            ours x.conv2d(w, None, Conv2d { padding: [2, 2], groups: 240, ..default() }).silu();
            torch "F.silu(F.conv2d(x, w, padding=2, groups=240))";
            work [convolution([4, 240, 28, 28], 25, 4 * 240 * 784)];
            train x w;

        // ConvNeXt.
        "depthwise/convnext-7x7" (x = normal([4, 96, 56, 56]), w = weight([96, 1, 7, 7], 49), b = normal([96]))
            ours x.conv2d(w, Some(b), Conv2d { padding: [3, 3], groups: 96, ..default() });
            torch "F.conv2d(x, w, b, padding=3, groups=96)";
            work [convolution([4, 96, 56, 56], 49, 4 * 96 * 3136)];
            train x w b;

        // Xception: each channel by itself, then all of each pixel.
        "depthwise/separable" (x = normal([2, 128, 28, 28]), d = weight([128, 1, 3, 3], 9), p = weight([256, 128, 1, 1], 128))
            ours x.conv2d(d, None, Conv2d { padding: [1, 1], groups: 128, ..default() }).conv2d(p, None, default()).relu();
            torch "torch.relu(F.conv2d(F.conv2d(x, d, padding=1, groups=128), p))";
            work [convolution([2, 128, 28, 28], 9, 2 * 128 * 784), convolution([2, 256, 28, 28], 128, 2 * 128 * 784)];
            train x d p;

        // ResNeXt: 32 groups.
        "depthwise/resnext-grouped" (x = normal([1, 128, 56, 56]), w = weight([128, 4, 3, 3], 36))
            ours x.conv2d(w, None, Conv2d { padding: [1, 1], groups: 32, ..default() }).relu();
            torch "torch.relu(F.conv2d(x, w, padding=1, groups=32))";
            work [convolution([1, 128, 56, 56], 36, 128 * 3136)];
            train x w;

        // Conformer: 31 taps along time.
        "depthwise/conformer-31" (x = normal([4, 256, 200]), w = weight([256, 1, 31], 31))
            ours x.conv1d(w, None, Conv1d { padding: [15], groups: 256, ..default() });
            torch "F.conv1d(x, w, padding=15, groups=256)";
            work [convolution([4, 256, 200, 1], 31, 4 * 256 * 200)];
            train x w;

        // Mamba: four taps along time, causal.
        "depthwise/mamba-4" (x = normal([2, 768, 512]), w = weight([768, 1, 4], 4), b = normal([768]))
            ours x.conv1d(w, Some(b), Conv1d { padding: [3], groups: 768, ..default() }).narrow(2, 0, 512).silu();
            torch "F.silu(F.conv1d(x, w, b, padding=3, groups=768)[..., :512])";
            work [convolution([2, 768, 512, 1], 4, 2 * 768 * 512)];
            train x w b;
    }
}
