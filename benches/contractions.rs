//! Matrix products and convolutions, forward and backward: all are bounded by the multiply-adds, but for the depthwise
//! ones, which move more than they compute.

use tinyspec::backends::Processor;
use tinyspec::options::{Conv2d, default};
use tinyspec::{DType, Tensor, grad};
use tinyspec_benches::limits::{Resource, Words};
use tinyspec_benches::report::Measure;

use crate::kernels::Workload;
use crate::peers::gemm::{Product, SIDES};

type Body = fn(&[Tensor]) -> Vec<Tensor>;

pub fn flops(name: &str, multiplications: usize, inputs: &[&[usize]], body: Body) -> Workload {
    Workload {
        name: name.into(),
        measure: Measure::Flops(2.0 * multiplications as f64),
        resource: Resource::Fma,
        exponentials: 0,
        multiply_adds: 0,
        inputs: inputs.iter().map(|shape| shape.to_vec()).collect(),
        dtype: DType::F32,
        body,
        peer: None,
    }
}

/// Every workload whose core is a sum of products.
pub fn workloads() -> Vec<Workload> {
    [products(), convolutions(), gradients()].into_iter().flatten().collect()
}

fn products() -> Vec<Workload> {
    let square = |side: usize| Workload {
        peer: Some(side),
        ..flops(&format!("gemm/f32/{side}"), Product::multiplications(side), &[&[side; 2], &[side; 2]], |inputs| {
            vec![inputs[0].matmul(&inputs[1])]
        })
    };
    let turned = |name: &str, body: Body| {
        let side = 1024;
        flops(&format!("gemm/f32/{side}/{name}"), Product::multiplications(side), &[&[side; 2], &[side; 2]], body)
    };
    let general = |name: &str, [rows, columns, inner]: [usize; 3]| {
        flops(name, rows * columns * inner, &[&[rows, inner], &[inner, columns]], |inputs| {
            vec![inputs[0].matmul(&inputs[1])]
        })
    };
    let is_used = |words: &Words| {
        let numbers = match words {
            Words::Bytes => DType::U8,
            Words::Bf16 => DType::BF16,
        };
        words.are_there() && Processor::chosen().is_ok_and(|processor| processor.dots.contains(&numbers))
    };
    let narrow = |name: &str, dtype: DType, words: Option<Words>| {
        let side = 1024;
        let (name, way) = name.split_once('/').map_or((name, String::new()), |(name, way)| (name, format!("/{way}")));
        let name = format!("gemm/{name}/{side}{way}");
        let inputs: [&[usize]; 2] = [&[side; 2], &[side; 2]];
        Workload {
            dtype,
            resource: words.filter(is_used).map_or(Resource::Fma, Resource::Words),
            ..flops(&name, Product::multiplications(side), &inputs, |inputs| vec![inputs[0].matmul(&inputs[1])])
        }
    };
    let mut workloads: Vec<Workload> = SIDES.into_iter().map(square).collect();
    workloads.extend([
        narrow("f16", DType::F16, None),
        narrow("bf16", DType::BF16, Some(Words::Bf16)),
        narrow("bf16/strict", DType::BF16, None),
        narrow("i8", DType::I8, Some(Words::Bytes)),
    ]);
    workloads.extend([
        turned("tn", |inputs| vec![inputs[0].transpose(0, 1).matmul(&inputs[1])]),
        turned("nt", |inputs| vec![inputs[0].matmul(inputs[1].transpose(0, 1))]),
        turned("tt", |inputs| vec![inputs[0].transpose(0, 1).matmul(inputs[1].transpose(0, 1))]),
        general("gemm/f32/128x384x1536", [128, 384, 1536]),
        general("gemm/f32/1000x777x513", [1000, 777, 513]),
        flops("gemm/f32/12x128x64x128", 12 * 128 * 64 * 128, &[&[12, 128, 128], &[12, 128, 64]], |inputs| {
            vec![inputs[0].matmul(&inputs[1])]
        }),
        // Scale, bias, activation and residual in the product's own kernel.
        flops(
            "gemm/f32/1024/epilogue",
            Product::multiplications(1024),
            &[&[1024, 1024], &[1024, 1024], &[1024], &[1024, 1024]],
            |inputs| vec![(inputs[0].matmul(&inputs[1]) * 0.125 + &inputs[2]).relu() + &inputs[3]],
        ),
    ]);
    workloads
}

/// Shapes of one convolution of square images and filters.
struct Layer {
    batch: usize,
    channels: [usize; 2],
    side: usize,
    kernel: usize,
    stride: usize,
}

impl Layer {
    fn multiplications(&self) -> usize {
        let side = self.side / self.stride;
        self.batch * self.channels[0] * self.channels[1] * (side * self.kernel).pow(2)
    }

    fn input(&self) -> [usize; 4] {
        [self.batch, self.channels[0], self.side, self.side]
    }

    fn filters(&self) -> [usize; 4] {
        [self.channels[1], self.channels[0], self.kernel, self.kernel]
    }

    fn output(&self) -> [usize; 4] {
        let side = self.side / self.stride;
        [self.batch, self.channels[1], side, side]
    }
}

/// Layers of a residual network.
const RESIDUAL: Layer = Layer { batch: 8, channels: [64, 64], side: 56, kernel: 3, stride: 1 };

const DOWNSAMPLING: Layer = Layer { channels: [64, 128], stride: 2, ..RESIDUAL };

fn same(inputs: &[Tensor]) -> Tensor {
    inputs[0].conv2d(&inputs[1], None, Conv2d { padding: [1, 1], ..default() })
}

fn half(inputs: &[Tensor]) -> Tensor {
    inputs[0].conv2d(&inputs[1], None, Conv2d { padding: [1, 1], stride: [2, 2], ..default() })
}

fn convolutions() -> Vec<Workload> {
    let forward = |name: &str, layer: Layer, body: Body| {
        flops(name, layer.multiplications(), &[&layer.input(), &layer.filters()], body)
    };
    // Far more than the caches hold.
    let depthwise = [32, 128, 56, 56];
    vec![
        forward("conv3x3/f32/b1", Layer { batch: 1, ..RESIDUAL }, |inputs| vec![same(inputs)]),
        forward("conv3x3/f32/b8", RESIDUAL, |inputs| vec![same(inputs)]),
        forward("conv1x1/f32/b8", Layer { channels: [256, 64], kernel: 1, ..RESIDUAL }, |inputs| {
            vec![inputs[0].conv2d(&inputs[1], None, default())]
        }),
        forward("conv3x3s2/f32/b8", DOWNSAMPLING, |inputs| vec![half(inputs)]),
        forward("conv7x7s2/f32/b1", Layer { batch: 1, channels: [3, 64], side: 224, kernel: 7, stride: 2 }, |inputs| {
            vec![inputs[0].conv2d(&inputs[1], None, Conv2d { padding: [3, 3], stride: [2, 2], ..default() })]
        }),
        Workload::bytes(
            "convdepthwise3x3/f32/b32",
            2 * depthwise.iter().product::<usize>(),
            Resource::Copy(depthwise.iter().product()),
            &[&depthwise, &[128, 1, 3, 3]],
            |inputs| {
                let options = Conv2d { padding: [1, 1], groups: 128, ..default() };
                vec![inputs[0].conv2d(&inputs[1], None, options)]
            },
        ),
    ]
}

/// The gradient for input `wanted` of what `forward` computes; the last input is the cotangent.
fn gradient(inputs: &[Tensor], forward: fn(&[Tensor]) -> Tensor, wanted: usize) -> Vec<Tensor> {
    let loss = (forward(inputs) * &inputs[2]).sum(.., false);
    grad(&loss, &[&inputs[wanted]]).expect("a convolution of floats has gradients")
}

fn gradients() -> Vec<Workload> {
    let backward = |name: &str, layer: Layer, body: Body| {
        flops(name, layer.multiplications(), &[&layer.input(), &layer.filters(), &layer.output()], body)
    };
    vec![
        backward("conv3x3/f32/b8/input", RESIDUAL, |inputs| gradient(inputs, same, 0)),
        backward("conv3x3/f32/b8/weight", RESIDUAL, |inputs| gradient(inputs, same, 1)),
        backward("conv3x3s2/f32/b8/input", DOWNSAMPLING, |inputs| gradient(inputs, half, 0)),
        backward("conv3x3s2/f32/b8/weight", DOWNSAMPLING, |inputs| gradient(inputs, half, 1)),
    ]
}
