//! Programs whose first call users wait for.

use tinyspec::nn::{Adam, Optimizer};
use tinyspec::{DType, Result, Tensor, grad, realize_all};

/// A program by name.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// As rows name it.
    pub name: &'static str,
    run: fn() -> Result<()>,
}

/// The training step of the digits example, then an encoder of six layers: its forward pass and its training step.
pub const PROGRAMS: [Program; 3] = [
    Program { name: "digits", run: digits },
    Program { name: "encoder6", run: || encoder(false) },
    Program { name: "encoder6-step", run: || encoder(true) },
];

impl Program {
    /// Of this name.
    pub fn named(name: &str) -> Option<Program> {
        PROGRAMS.into_iter().find(|program| program.name == name)
    }

    /// Runs it once.
    ///
    /// # Errors
    /// When it cannot be compiled or run.
    pub fn run(self) -> Result<()> {
        (self.run)()
    }
}

fn filled(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|index| ((index * 7919) % 251) as f32 / 1255.0 - 0.1).collect();
    Tensor::from_vec(data, shape)
}

fn update(loss: &Tensor, weights: &mut [Tensor]) -> Result<()> {
    let mut optimizer = Adam::new(1e-3);
    let gradients = grad(loss, &weights.iter().collect::<Vec<_>>())?;
    optimizer.step(&mut weights.iter_mut().collect::<Vec<_>>(), &gradients)?;
    let results: Vec<&Tensor> = std::iter::once(loss).chain(weights.iter()).chain(optimizer.state()).collect();
    realize_all(&results)
}

fn digits() -> Result<()> {
    let mut weights: Vec<Tensor> = [&[64, 128][..], &[128], &[128, 10], &[10]].map(filled).into();
    let images = filled(&[32, 64]);
    let labels = Tensor::from_vec((0..32).map(|index| index % 10).collect::<Vec<i32>>(), [32usize]);
    let hidden = images.linear(&weights[0], &weights[1]).relu();
    let loss = hidden.linear(&weights[2], &weights[3]).cross_entropy(&labels, "mean", 0.0, -100);
    update(&loss, &mut weights)
}

/// Six layers of width 128 and four heads over 64 positions, batch 4.
fn encoder(train: bool) -> Result<()> {
    let (batch, length, heads, width) = (4i64, 64i64, 4i64, 128i64);
    let (d, wide) = (width as usize, 4 * width as usize);
    let mut weights = Vec::new();
    for _ in 0..6 {
        let shapes: [&[usize]; 10] =
            [&[d], &[d], &[d, 3 * d], &[3 * d], &[d, d], &[d], &[d], &[d], &[d, wide], &[wide, d]];
        weights.extend(shapes.map(filled));
    }
    let mut x = filled(&[batch as usize, length as usize, d]);
    for layer in weights.chunks(10) {
        let [scale1, offset1, qkv, qkv_bias, out, out_bias, scale2, offset2, up, down] = layer else {
            unreachable!("ten weights a layer");
        };
        let normal = x.layer_norm(scale1, offset1, 1, 1e-5);
        let split = normal.linear(qkv, qkv_bias).reshape([batch, length, 3, heads, width / heads]);
        let split = split.permute([2, 0, 3, 1, 4]);
        let part = |index: i64| split.narrow(0, index, 1).squeeze(0);
        let attended = part(0).sdpa(part(1), part(2), false);
        let attended = attended.permute([0, 2, 1, 3]).reshape([batch, length, width]);
        x += attended.linear(out, out_bias);
        let normal = x.layer_norm(scale2, offset2, 1, 1e-5);
        x += normal.matmul(up).gelu().matmul(down);
    }
    if !train {
        x.realize()?;
        return Ok(());
    }
    let loss = (&x * &x).mean(.., false).cast(DType::F32);
    update(&loss, &mut weights)
}
