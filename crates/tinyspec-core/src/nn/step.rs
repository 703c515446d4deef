//! A training step as one graph: loss, gradients, update, buffers.

use super::{Model, Optimizer, clip_norm, clip_value};
use crate::tensor::connected;
use crate::{Result, Tensor, realize_all};
use std::panic::Location;
use tinyspec_ir::ErrorKind;

/// The options of a training step: `TrainStep { clip_norm: Some(1.0), ..default() }`.
#[derive(Clone, Copy, Default, Debug)]
pub struct TrainStep<'a> {
    /// All gradients are scaled so that their norm, as one vector, is at most this.
    pub clip_norm: Option<f64>,
    /// Every element of the gradients is clipped to this magnitude, before the norm is computed.
    pub clip_value: Option<f64>,
    /// Parameters that the loss does not depend on get a gradient of zeros; otherwise they are an error.
    pub allow_unused: bool,
    /// Further tensors to compute with the step, such as an accuracy.
    pub with: &'a [&'a Tensor],
}

/// Takes the step, and returns the norm of the gradients if it is clipped.
#[track_caller]
pub(super) fn train<M: Model>(
    model: &mut M,
    loss: &Tensor,
    optimizer: &mut dyn Optimizer,
    options: &TrainStep,
) -> Result<Option<Tensor>> {
    let location = Location::caller();
    let mut gradients = gradients(model, loss, options.allow_unused, location)?;
    if let Some(greatest) = options.clip_value {
        clip_value(&mut gradients, greatest).map_err(|error| error.at(location))?;
    }
    let norm = match options.clip_norm {
        Some(greatest) => Some(clip_norm(&mut gradients, greatest).map_err(|error| error.at(location))?),
        None => None,
    };
    optimizer.step(&mut model.parameters_mut(), &gradients).map_err(|error| error.at(location))?;
    let mut results = vec![loss];
    results.extend(&norm);
    results.extend(model.state());
    results.extend(optimizer.state());
    results.extend(options.with);
    realize_all(&results)?;
    Ok(norm)
}

/// The gradients of the parameters.
fn gradients<M: Model>(
    model: &M,
    loss: &Tensor,
    allow_unused: bool,
    location: &'static Location<'static>,
) -> Result<Vec<Tensor>> {
    let parameters = model.named_parameters();
    let wanted: Vec<&Tensor> = parameters.iter().map(|(_, tensor)| *tensor).collect();
    if let Some((name, tensor)) = parameters.iter().find(|(_, tensor)| !tensor.dtype().is_float()) {
        let message = format!("the parameter `{name}` is {}: only floats are trained", tensor.dtype());
        let error = tinyspec_ir::Error::new(ErrorKind::DType, "train_step", message).at(location);
        return Err(error.help("what is not trained is a buffer, `#[model(buffer)]`").into());
    }
    let gradients = connected(location, loss, &wanted)?;
    let unused: Vec<String> = parameters
        .iter()
        .zip(&gradients)
        .filter(|(_, gradient)| gradient.is_none())
        .map(|((name, _), _)| format!("`{name}`"))
        .collect();
    let refuse = |message: String, help: &str| {
        Err(tinyspec_ir::Error::new(ErrorKind::Gradient, "train_step", message).help(help).at(location).into())
    };
    if !unused.is_empty() && unused.len() == parameters.len() {
        return refuse(
            "the loss depends on no parameter of the model".to_string(),
            "make the loss of the model as it is now: each step gives it new parameters",
        );
    }
    if !unused.is_empty() && !allow_unused {
        let (some, more) = unused.split_at(unused.len().min(4));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        return refuse(
            format!("the loss does not depend on {}{more}", some.join(", ")),
            "what is not trained is a buffer, `#[model(buffer)]`; with `TrainStep { allow_unused: true, ..default() }` \
             such gradients are zeros",
        );
    }
    Ok(gradients
        .into_iter()
        .zip(wanted)
        .map(|(gradient, wanted)| gradient.unwrap_or_else(|| wanted.zeros_like()))
        .collect())
}
