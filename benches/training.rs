//! Training steps: forward, gradient and update as one lazy graph.

use tinyspec::nn::{Adam, Optimizer};
use tinyspec::options::{Conv2d, default};
use tinyspec::{Result, Tensor, grad, realize_all, with_default_device};
use tinyspec_benches::report::Measure;

use crate::session::{Case, Session};

/// A row a network.
///
/// # Errors
/// When a step fails.
pub fn benches(session: &mut Session) -> Result<()> {
    digits(session)?;
    lenet(session)
}

/// The network of the digits example, 64→128→10 at batch 32: what it costs is mostly the graph, the kernels are small.
fn digits(session: &mut Session) -> Result<()> {
    let name = "step/digits/b32";
    if !session.selects(name) {
        return Ok(());
    }
    let weights = [[64, 128], [128, 10]].map(|shape: [usize; 2]| shape.to_vec());
    let images = Tensor::uniform([32usize, 64], 0.0, 1.0);
    step(session, name, &weights, &images, |images, weights| images.matmul(&weights[0]).relu().matmul(&weights[1]))
}

/// LeNet-5 at batch 128 on one thread: convolutions and their gradients set the pace.
fn lenet(session: &mut Session) -> Result<()> {
    let name = "step/lenet/b128/1t";
    if !session.selects(name) {
        return Ok(());
    }
    with_default_device("cpu:1t", || {
        let weights: [&[usize]; 10] =
            [&[6, 1, 5, 5], &[6], &[16, 6, 5, 5], &[16], &[400, 120], &[120], &[120, 84], &[84], &[84, 10], &[10]];
        let images = Tensor::uniform([128usize, 1, 28, 28], 0.0, 1.0);
        step(session, name, &weights.map(<[usize]>::to_vec), &images, |images, weights| {
            let [filters1, bias1, filters2, bias2, dense1, offset1, dense2, offset2, dense3, offset3] = weights else {
                unreachable!("as many as the shapes above");
            };
            let x = images.conv2d(filters1, Some(bias1), Conv2d { padding: [2, 2], ..default() }).relu();
            let x = x.max_pool2d([2, 2], default());
            let x = x.conv2d(filters2, Some(bias2), default()).relu().max_pool2d([2, 2], default());
            let x = x.reshape([128, 400]);
            let x = (x.matmul(dense1) + offset1).relu();
            let x = (x.matmul(dense2) + offset2).relu();
            x.matmul(dense3) + offset3
        })
    })
}

fn step(
    session: &mut Session,
    name: &str,
    shapes: &[Vec<usize>],
    images: &Tensor,
    forward: fn(&Tensor, &[Tensor]) -> Tensor,
) -> Result<()> {
    let mut weights: Vec<Tensor> = shapes.iter().map(|shape| Tensor::randn(shape.as_slice()) * 0.1).collect();
    let batch = images.shape()[0].clone();
    let labels = Tensor::arange(batch).modulo(10).cast(tinyspec::DType::I32);
    realize_all(&weights.iter().chain([images, &labels]).collect::<Vec<_>>())?;
    let mut optimizer = Adam::new(1e-3);
    let mut step = || -> Result<f32> {
        let loss = forward(images, &weights).cross_entropy(&labels, "mean", 0.0, -100);
        let gradients = grad(&loss, &weights.iter().collect::<Vec<_>>())?;
        optimizer.step(&mut weights.iter_mut().collect::<Vec<_>>(), &gradients)?;
        let mut results = vec![&loss];
        results.extend(&weights);
        results.extend(optimizer.state());
        realize_all(&results)?;
        loss.item()
    };
    step()?;
    let mut failure = None;
    session.bench(Case {
        name: name.into(),
        measure: Measure::Times(1.0),
        bounds: Vec::new(),
        run: &mut || {
            if let Err(error) = step() {
                failure.get_or_insert(error);
            }
        },
        peer: None,
    });
    failure.map_or(Ok(()), Err)
}
