//! Programs whose first call users wait for.

use tinyspec::nn::{Adam, Optimizer};
use tinyspec::{DType, Function, Result, Spec, Tensor, grad, realize_all};

/// A program by name.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// As rows name it.
    pub name: &'static str,
    run: fn() -> Result<()>,
}

/// The training step of the digits example; an encoder of six layers written out, its forward pass and its training step; and
/// the same with a Function for each layer, of six layers and of 48.
pub const PROGRAMS: [Program; 7] = [
    Program { name: "digits", run: digits },
    Program { name: "encoder6", run: || encoder(6, false, |inputs| Ok(layer(inputs))) },
    Program { name: "encoder6-step", run: || encoder(6, true, |inputs| Ok(layer(inputs))) },
    Program { name: "layers6", run: || layers(6, false) },
    Program { name: "layers6-step", run: || layers(6, true) },
    Program { name: "layers48", run: || layers(48, false) },
    Program { name: "layers48-step", run: || layers(48, true) },
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

const BATCH: usize = 4;
const LENGTH: usize = 64;
const WIDTH: usize = 128;
const HEADS: usize = 4;

/// The shapes of a layer's weights: scale and offset, queries with keys and values, output; scale and offset, up and down.
const WEIGHTS: [&[usize]; 10] = [
    &[WIDTH],
    &[WIDTH],
    &[WIDTH, 3 * WIDTH],
    &[3 * WIDTH],
    &[WIDTH, WIDTH],
    &[WIDTH],
    &[WIDTH],
    &[WIDTH],
    &[WIDTH, 4 * WIDTH],
    &[4 * WIDTH, WIDTH],
];

fn layer(inputs: &[Tensor]) -> Vec<Tensor> {
    let [x, scale1, offset1, qkv, qkv_bias, out, out_bias, scale2, offset2, up, down] = inputs else {
        unreachable!("an activation and ten weights");
    };
    let normal = x.layer_norm(scale1, offset1, 1, 1e-5);
    let split = normal.linear(qkv, qkv_bias).reshape([BATCH, LENGTH, 3, HEADS, WIDTH / HEADS]);
    let split = split.permute([2, 0, 3, 1, 4]);
    let part = |index: i64| split.narrow(0, index, 1).squeeze(0);
    let attended = part(0).sdpa(part(1), part(2), false);
    let x = x + attended.permute([0, 2, 1, 3]).reshape([BATCH, LENGTH, WIDTH]).linear(out, out_bias);
    let normal = x.layer_norm(scale2, offset2, 1, 1e-5);
    vec![&x + normal.matmul(up).gelu().matmul(down)]
}

/// Layers of width 128 and four heads over 64 positions, batch 4.
fn encoder(depth: usize, train: bool, layer: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Result<()> {
    let mut weights: Vec<Tensor> = (0..depth).flat_map(|_| WEIGHTS.map(filled)).collect();
    let mut x = filled(&[BATCH, LENGTH, WIDTH]);
    for own in weights.chunks(WEIGHTS.len()) {
        x = layer(&[&[x], own].concat())?.swap_remove(0);
    }
    if !train {
        x.realize()?;
        return Ok(());
    }
    let loss = (&x * &x).mean(.., false).cast(DType::F32);
    update(&loss, &mut weights)
}

/// As [`encoder`], with a Function for each layer.
fn layers(depth: usize, train: bool) -> Result<()> {
    let activation: &[usize] = &[BATCH, LENGTH, WIDTH];
    let specs: Vec<Spec> = [&[activation], &WEIGHTS[..]].concat().into_iter().map(spec).collect();
    let function = Function::trace(&specs, layer)?;
    encoder(depth, train, |inputs| Ok(function.call(&inputs.iter().collect::<Vec<_>>())))
}

fn spec(shape: &[usize]) -> Spec {
    Spec::new(DType::F32, shape)
}
