//! ResNet-50, one picture, its batch normalisations folded into the convolutions.

use tinyspec::Tensor;
use tinyspec::options::{Conv2d, MaxPool2d, default};

use super::Inputs;
use crate::blocks::block::{Block, Work, convolution, linear, normal, pass};

/// Blocks of each stage.
const STAGES: [usize; 4] = [3, 4, 6, 3];

pub fn block() -> Block {
    let mut inputs = Inputs::default();
    let mut work = Vec::new();
    inputs.push(normal([1, 3, 224, 224]));
    let layer = |inputs: &mut Inputs, work: &mut Vec<Work>, from: usize, to: usize, kernel: usize, side: usize| {
        // A deviation that keeps sixteen sums of a branch and its input small.
        inputs.layer([to, from, kernel, kernel], 2 * from * kernel * kernel, to);
        work.push(convolution([1, to, side, side], from * kernel * kernel, from * side * side));
    };
    layer(&mut inputs, &mut work, 3, 64, 7, 112);
    work.push(pass(64 * (112 * 112 + 56 * 56)));
    let mut channels = 64;
    for (stage, blocks) in STAGES.into_iter().enumerate() {
        let (width, side) = (64 << stage, 56 >> stage);
        for block in 0..blocks {
            // The stride is in the middle of a block.
            let before = if stage > 0 && block == 0 { 2 * side } else { side };
            layer(&mut inputs, &mut work, channels, width, 1, before);
            layer(&mut inputs, &mut work, width, width, 3, side);
            layer(&mut inputs, &mut work, width, 4 * width, 1, side);
            if block == 0 {
                layer(&mut inputs, &mut work, channels, 4 * width, 1, side);
            }
            channels = 4 * width;
        }
    }
    inputs.layer([2048, 1000], 2048, 1000);
    work.push(linear(1, 2048, 1000));
    Block {
        name: "resnet50".into(),
        inputs: inputs.0,
        ours: |inputs| vec![forward(inputs)],
        torch: "x, *p = inputs; p = iter(p)\n\
                def conv(x, stride, padding):\n    return F.conv2d(x, next(p), next(p), stride, padding)\n\
                x = F.max_pool2d(torch.relu(conv(x, 2, 3)), 3, 2, 1)\n\
                for stage, blocks in enumerate((3, 4, 6, 3)):\n\
                \x20   for block in range(blocks):\n\
                \x20       s = 2 if stage > 0 and block == 0 else 1\n\
                \x20       y = torch.relu(conv(x, 1, 0)); y = torch.relu(conv(y, s, 1)); y = conv(y, 1, 0)\n\
                \x20       x = torch.relu(y + (conv(x, s, 0) if block == 0 else x))\n\
                return x.mean((2, 3)) @ next(p) + next(p)",
        work,
        train: &[],
    }
}

fn forward(inputs: &[Tensor]) -> Tensor {
    let mut weights = inputs[1..].iter();
    let mut next = || weights.next().expect("as many weights as layers");
    let mut conv = |x: &Tensor, stride: i64, padding: i64| {
        let (weight, bias) = (next(), next());
        x.conv2d(weight, Some(bias), Conv2d { stride: [stride; 2], padding: [padding; 2], ..default() })
    };
    let mut x = conv(&inputs[0], 2, 3).relu();
    x = x.max_pool2d([3, 3], MaxPool2d { stride: Some([2, 2]), padding: [1, 1], ..default() });
    for (stage, blocks) in STAGES.into_iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let y = conv(&x, 1, 0).relu();
            let y = conv(&y, stride, 1).relu();
            let y = conv(&y, 1, 0);
            let beside = if block == 0 { conv(&x, stride, 0) } else { x };
            x = (y + beside).relu();
        }
    }
    x.mean([2, 3], false).linear(next(), next())
}
