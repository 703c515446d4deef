//! Optimisers: a step makes the updates lazily, so that loss, weights and state are one graph.

use crate::tensor::collectives::broadcast;
use crate::{IntoShape, Result, Tensor, realize_all};
use std::panic::Location;
use tinyspec_ir::dim::show;
use tinyspec_ir::{Device, ErrorKind};

/// Updates weights by gradients.
///
/// ```no_run
/// # use tinyspec_core::{Tensor, grad, realize_all, nn::{Optimizer, Sgd}};
/// # fn main() -> tinyspec_core::Result<()> {
/// let mut weight = Tensor::ones([2]);
/// let mut optimizer = Sgd::new(0.1);
/// let loss = (&weight * &weight).sum(.., false);
/// let gradients = grad(&loss, &[&weight])?;
/// optimizer.step(&mut [&mut weight], &gradients)?;
/// let mut results = vec![&loss, &weight];
/// results.extend(optimizer.state());
/// realize_all(&results)?;
/// # Ok(())
/// # }
/// ```
pub trait Optimizer {
    /// Assigns the updated values to the weights, lazily. The weights and their order must be the same in every step.
    ///
    /// One step at a time waits to be computed: where weights or [`state`](Optimizer::state) still wait for the one before,
    /// they are computed first, without what the loss of that step had in common with them. So realise the loss, the weights
    /// and the state of a step together.
    ///
    /// # Errors
    /// When there are not as many gradients as weights, one has not the shape of its weight, or weights of the step before
    /// cannot be computed.
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()>;

    /// What the optimiser remembers, to be realised together with the weights.
    fn state(&self) -> Vec<&Tensor>;

    /// Learning rate of the steps from now on.
    fn set_learning_rate(&mut self, rate: f32);
}

/// Data and not a constant of the graph: one plan serves all values.
pub(super) fn scalar(value: f32) -> Tensor {
    Tensor::from_slice(&[value], ().into_shape())
}

/// Moves numbers to where the weights are.
pub(super) fn follow<'a>(numbers: impl IntoIterator<Item = &'a mut Tensor>, weights: &[&mut Tensor]) {
    if let Some(weight) = weights.first() {
        numbers.into_iter().for_each(|number| *number = beside(number, weight));
    }
}

/// The value where `weight` is: cut as it is, or whole on each of its devices.
fn beside(value: &Tensor, weight: &Tensor) -> Tensor {
    match weight.device() {
        Some(device) if value.device() == Some(device) => value.clone(),
        Some(device @ Device::Many(_)) if value.shape() != weight.shape() || weight.axis() != Some(0) => {
            broadcast(value, device)
        }
        Some(device) => value.to(device),
        None => value.clone(),
    }
}

/// Starts a step: computes what the steps before left undone. A loop that reads nothing but its losses would otherwise
/// make a longer program each time.
#[track_caller]
pub(super) fn begin(weights: &[&mut Tensor], gradients: &[Tensor], state: &[&Tensor]) -> Result<()> {
    check(weights, gradients)?;
    let values = weights.iter().map(|weight| &**weight).chain(state.iter().copied());
    let undone: Vec<&Tensor> = values.filter(|value| !value.is_realized()).collect();
    if undone.is_empty() { Ok(()) } else { realize_all(&undone) }
}

/// A gradient for each weight, of its shape: one that broadcasts would be a silent mistake.
#[track_caller]
fn check(weights: &[&mut Tensor], gradients: &[Tensor]) -> Result<()> {
    let location = Location::caller();
    let refuse = |kind, message| Err(crate::Error::refused(kind, "step", message).at(location));
    if weights.len() != gradients.len() {
        return refuse(ErrorKind::Arity, format!("{} gradients for {} weights", gradients.len(), weights.len()));
    }
    for (position, (weight, gradient)) in weights.iter().zip(gradients).enumerate() {
        if let Some(error) = weight.error().or(gradient.error()) {
            return Err(error.clone());
        }
        let (wanted, found) = (weight.shape(), gradient.shape());
        if wanted != found {
            let message = format!("the gradient of weight {position} has {}, the weight {}", show(found), show(wanted));
            return refuse(ErrorKind::Shape, message);
        }
        if let (Some(wanted @ Device::Single(_)), Some(found @ Device::Single(_))) =
            (weight.device(), gradient.device())
            && wanted != found
        {
            let message = format!("the gradient of weight {position} is on {found}, the weight on {wanted}");
            return refuse(ErrorKind::Device, message);
        }
    }
    Ok(())
}

/// Starts a memory for each weight, once, in at least f32: squares of small gradients are 0 in narrower floats. It is
/// computed at once: the first step then is the same graph as all others.
#[track_caller]
pub(super) fn remember(memory: &mut Vec<Tensor>, weights: &[&mut Tensor]) -> Result<()> {
    if memory.is_empty() {
        let zeros = |weight: &&mut Tensor| Tensor::full_of(weight.shape(), 0, weight.dtype().accumulator());
        *memory = weights.iter().map(|weight| beside(&zeros(weight), weight).contiguous()).collect();
        return realize_all(&memory.iter().collect::<Vec<_>>());
    }
    let same = memory.iter().zip(weights).all(|(memory, weight)| memory.shape() == weight.shape());
    if memory.len() == weights.len() && same {
        return Ok(());
    }
    let message = "the weights are not those of the steps before, which the optimiser remembers";
    Err(crate::Error::refused(ErrorKind::Arity, "step", message).at(Location::caller()))
}

/// A weight in the dtype that steps are computed in.
#[track_caller]
pub(super) fn wide(weight: &Tensor) -> Tensor {
    weight.cast(weight.dtype().accumulator())
}

/// The next value of what an optimiser remembers. No gradient flows through the step.
#[track_caller]
pub(super) fn keep(next: Tensor, memory: &mut Tensor) {
    memory.assign(&next.detach());
}

/// The next value of a weight, rounded once.
#[track_caller]
pub(super) fn update(weight: &mut Tensor, next: Tensor) {
    keep(next.cast(weight.dtype()), weight);
}

/// What gradient descent may add to the gradient: `SgdOptions { momentum: 0.9, ..default() }`.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct SgdOptions {
    /// Share of the last update that is kept.
    pub momentum: f32,
    /// Looks ahead: the new update is kept in part at once (Nesterov, 1983).
    pub nesterov: bool,
    /// Share of a weight that is added to its gradient.
    pub weight_decay: f32,
}

/// Gradient descent, with momentum if asked for.
#[derive(Clone, Debug)]
pub struct Sgd {
    rate: Tensor,
    options: SgdOptions,
    velocities: Vec<Tensor>,
}

impl Sgd {
    /// Plain gradient descent.
    pub fn new(rate: f32) -> Sgd {
        Sgd::with_options(rate, SgdOptions::default())
    }

    /// With this share of the last update kept.
    pub fn with_momentum(rate: f32, momentum: f32) -> Sgd {
        Sgd::with_options(rate, SgdOptions { momentum, ..SgdOptions::default() })
    }

    /// With all that there is.
    pub fn with_options(rate: f32, options: SgdOptions) -> Sgd {
        Sgd { rate: scalar(rate), options, velocities: vec![] }
    }
}

impl Optimizer for Sgd {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        begin(weights, gradients, &self.state())?;
        follow([&mut self.rate], weights);
        let SgdOptions { momentum, nesterov, weight_decay } = self.options;
        if momentum != 0.0 {
            remember(&mut self.velocities, weights)?;
        }
        for (position, (weight, gradient)) in weights.iter_mut().zip(gradients).enumerate() {
            let dtype = weight.dtype().accumulator();
            let mut gradient = gradient.cast(dtype);
            if weight_decay != 0.0 {
                gradient += weight.cast(dtype) * weight_decay;
            }
            let change = match self.velocities.get_mut(position) {
                Some(velocity) => {
                    keep(&*velocity * momentum + &gradient, velocity);
                    if nesterov { gradient + &*velocity * momentum } else { velocity.clone() }
                }
                None => gradient,
            };
            let rate = self.rate.cast(dtype);
            update(weight, wide(weight) - change * rate);
        }
        Ok(())
    }

    fn state(&self) -> Vec<&Tensor> {
        self.velocities.iter().collect()
    }

    fn set_learning_rate(&mut self, rate: f32) {
        self.rate = scalar(rate);
    }
}

/// What [`Adam`] can do: `AdamOptions { amsgrad: true, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdamOptions {
    /// Decay of the mean and of the uncentred variance.
    pub betas: [f32; 2],
    /// What keeps the quotient finite.
    pub epsilon: f32,
    /// Share of a weight that it loses each step, times the learning rate; or that is added to its gradient.
    pub weight_decay: f32,
    /// The weight itself decays (Loshchilov and Hutter, 2019), and nothing is added to the gradient.
    pub decoupled: bool,
    /// Divides by the greatest variance so far (Reddi et al., 2018).
    pub amsgrad: bool,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions { betas: [0.9, 0.999], epsilon: 1e-8, weight_decay: 0.0, decoupled: true, amsgrad: false }
    }
}

/// Adam (Kingma and Ba, 2015), with decoupled weight decay if asked for (Loshchilov and Hutter, 2019).
#[derive(Clone, Debug)]
pub struct Adam {
    rate: Tensor,
    options: AdamOptions,
    means: Vec<Tensor>,
    variances: Vec<Tensor>,
    greatest: Vec<Tensor>,
    /// The betas to the power of the number of steps.
    powers: [Tensor; 2],
}

impl Adam {
    /// With the usual decays, 0.9 and 0.999.
    pub fn new(rate: f32) -> Adam {
        Adam::with_options(rate, AdamOptions::default())
    }

    /// With these decays of the mean and of the uncentred variance, and this summand of the divisor.
    pub fn with_betas(rate: f32, betas: [f32; 2], epsilon: f32) -> Adam {
        Adam::with_options(rate, AdamOptions { betas, epsilon, ..AdamOptions::default() })
    }

    /// AdamW: with weights that decay by this share of the learning rate each step.
    pub fn with_weight_decay(rate: f32, weight_decay: f32) -> Adam {
        Adam::with_options(rate, AdamOptions { weight_decay, ..AdamOptions::default() })
    }

    /// With all that there is.
    pub fn with_options(rate: f32, options: AdamOptions) -> Adam {
        let powers = [scalar(1.0), scalar(1.0)];
        Adam { rate: scalar(rate), options, means: vec![], variances: vec![], greatest: vec![], powers }
    }
}

impl Optimizer for Adam {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        begin(weights, gradients, &self.state())?;
        follow(self.powers.iter_mut().chain([&mut self.rate]), weights);
        remember(&mut self.means, weights)?;
        remember(&mut self.variances, weights)?;
        let AdamOptions { betas, epsilon, weight_decay, decoupled, amsgrad } = self.options;
        if amsgrad {
            remember(&mut self.greatest, weights)?;
        }
        for (power, beta) in self.powers.iter_mut().zip(betas) {
            keep(&*power * beta, power);
        }
        let [mean_beta, variance_beta] = betas;
        let memories = self.means.iter_mut().zip(&mut self.variances);
        for (position, ((weight, gradient), (mean, variance))) in
            weights.iter_mut().zip(gradients).zip(memories).enumerate()
        {
            let dtype = mean.dtype();
            let mut gradient = gradient.cast(dtype);
            if weight_decay != 0.0 && !decoupled {
                gradient += weight.cast(dtype) * weight_decay;
            }
            let [mean_power, variance_power] = self.powers.each_ref().map(|power| 1.0 - power.cast(dtype));
            let rate = self.rate.cast(dtype);
            keep(&*mean * mean_beta + &gradient * (1.0 - mean_beta), mean);
            keep(&*variance * variance_beta + &gradient * &gradient * (1.0 - variance_beta), variance);
            let spread = match self.greatest.get_mut(position) {
                Some(greatest) => {
                    keep(greatest.maximum(&*variance), greatest);
                    greatest.clone()
                }
                None => variance.clone(),
            };
            let scale = (spread / variance_power).sqrt() + epsilon;
            let change = &rate * (&*mean / mean_power) / scale;
            let mut next = wide(weight) - change;
            if weight_decay != 0.0 && decoupled {
                next -= wide(weight) * (rate * weight_decay);
            }
            update(weight, next);
        }
        Ok(())
    }

    fn state(&self) -> Vec<&Tensor> {
        self.means.iter().chain(&self.variances).chain(&self.greatest).chain(&self.powers).collect()
    }

    fn set_learning_rate(&mut self, rate: f32) {
        self.rate = scalar(rate);
    }
}
