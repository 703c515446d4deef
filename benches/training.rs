//! The step of the digits example: forward, gradient and update of a 64→128→10 network, batch 32, as one lazy graph.
//! What it costs is mostly the graph: the kernels are small.

use tinyspec::nn::{Adam, Optimizer};
use tinyspec::{Result, Tensor, grad, realize_all};
use tinyspec_benches::report::Measure;

use crate::session::{Case, Session};

/// One row.
///
/// # Errors
/// When a step fails.
pub fn benches(session: &mut Session) -> Result<()> {
    let name = "step/digits/b32";
    if !session.selects(name) {
        return Ok(());
    }
    let mut weights = [[64usize, 128], [128, 10]].map(|shape| Tensor::randn(shape) * 0.1);
    let images = Tensor::uniform([32usize, 64], 0.0, 1.0);
    let labels = Tensor::from_vec((0..32).map(|index| index % 10).collect::<Vec<i32>>(), [32usize]);
    realize_all(&[&weights[0], &weights[1], &images])?;
    let mut optimizer = Adam::new(1e-3);
    let mut step = || -> Result<f32> {
        let loss = images.matmul(&weights[0]).relu().matmul(&weights[1]).cross_entropy(&labels, "mean", 0.0, -100);
        let gradients = grad(&loss, &weights.each_ref())?;
        optimizer.step(&mut weights.each_mut(), &gradients)?;
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
        limit: None,
        run: &mut || {
            if let Err(error) = step() {
                failure.get_or_insert(error);
            }
        },
        peer: None,
    });
    failure.map_or(Ok(()), Err)
}
