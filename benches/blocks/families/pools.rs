//! Pools: means and maxima of windows.

use tinyspec::Tensor;
use tinyspec::options::{AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, default};

use crate::blocks::block::{Block, blocks, linear, normal, pass, weight};

pub fn blocks() -> Vec<Block> {
    blocks! {
        // ResNet.
        "pools/max-3x3-s2" (x = normal([4, 64, 112, 112]))
            ours x.max_pool2d([3, 3], MaxPool2d { stride: Some([2, 2]), padding: [1, 1], ..default() });
            torch "F.max_pool2d(x, 3, 2, 1)";
            work [pass(4 * 64 * (12_544 + 3136))];
            train x;

        // VGG.
        "pools/max-2x2" (x = normal([4, 64, 112, 112]))
            ours x.relu().max_pool2d([2, 2], MaxPool2d::default());
            torch "F.max_pool2d(F.relu(x), 2)";
            work [pass(4 * 64 * (12_544 + 3136))];
            train x;

        "pools/average-2x2" (x = normal([8, 64, 56, 56]))
            ours x.avg_pool2d([2, 2], AvgPool2d::default());
            torch "F.avg_pool2d(x, 2)";
            work [pass(8 * 64 * (3136 + 784))];
            train x;

        // The head of a classifier.
        "pools/global-linear" (x = normal([16, 512, 7, 7]), w = weight([512, 1000], 512), b = normal([1000]))
            ours x.mean([2, 3], false).linear(w, b);
            torch "torch.addmm(b, x.mean((2, 3)), w)";
            work [pass(16 * 512 * 49), linear(16, 512, 1000)];
            train x w b;

        // AlexNet on pictures of another size: windows of unequal sizes.
        "pools/adaptive-uneven" (x = normal([4, 256, 13, 13]))
            ours x.adaptive_avg_pool2d([6, 6]);
            torch "F.adaptive_avg_pool2d(x, 6)";
            work [pass(4 * 256 * (169 + 36))];
            train x;

        "pools/adaptive-max-uneven" (x = normal([4, 128, 31, 31]))
            ours x.adaptive_max_pool2d([7, 7]);
            torch "F.adaptive_max_pool2d(x, 7)";
            work [pass(4 * 128 * (961 + 49))];
            train x;

        // PSPNet: four grids over one map.
        "pools/pyramid" (x = normal([1, 256, 30, 30]))
            ours {
                let grids = [1, 2, 3, 6].map(|size| x.adaptive_avg_pool2d([size, size]).flatten(2, 3));
                Tensor::cat(&grids.each_ref(), 2)
            };
            torch "torch.cat([F.adaptive_avg_pool2d(x, s).flatten(2) for s in (1, 2, 3, 6)], 2)";
            work [pass(256 * (900 + 50))];
            train x;

        // YOLO: three maxima of 5×5 in a row, side by side with their input.
        "pools/spp-fast" (x = normal([1, 128, 20, 20]))
            ours {
                let pool = |x: &Tensor| x.max_pool2d([5, 5], MaxPool2d { stride: Some([1, 1]), padding: [2, 2], ..default() });
                let (a, b) = (pool(x), pool(&pool(x)));
                let c = pool(&b);
                Tensor::cat(&[x, &a, &b, &c], 1)
            };
            torch "p = lambda x: F.max_pool2d(x, 5, 1, 2)\na = p(x); b = p(a); return torch.cat([x, a, b, p(b)], 1)";
            work [pass(5 * 128 * 400)];
            train x;

        // Text CNN: the maximum over time.
        "pools/max-over-time" (x = normal([32, 100, 128]))
            ours x.max(2, false);
            torch "x.amax(2)";
            work [pass(32 * 100 * 128)];
            train x;

        "pools/max-1d" (x = normal([16, 64, 1000]))
            ours x.max_pool1d([4], MaxPool1d::default());
            torch "F.max_pool1d(x, 4)";
            work [pass(16 * 64 * 1250)];
            train x;

        // Video.
        "pools/average-3d" (x = normal([2, 32, 16, 28, 28]))
            ours x.avg_pool3d([2, 2, 2], AvgPool3d::default());
            torch "F.avg_pool3d(x, 2)";
            work [pass(2 * 32 * (12_544 + 1568))];
            train x;
    }
}
