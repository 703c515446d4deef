//! Optimisers: a step is lazy, so that loss, weights and state form one graph.

use super::hyperparameters::{Hyperparameter, Options, amount, checked, flag, named, of_adam, require};
use super::memory::{Memory, begin, restore, scalar};
use crate::{Error, Result, Tensor};
use std::collections::BTreeMap;
use std::panic::Location;
use tinyspec_ir::dim::show;
use tinyspec_ir::{Device, ErrorKind};

/// Updates weights by their gradients.
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
///
/// A custom optimiser declares its state, and is saved and resumed like all others:
///
/// ```
/// # use tinyspec_core::{Result, Tensor, nn::{Memory, Optimizer}};
/// struct Heavy {
///     memory: [Memory; 2],
/// }
///
/// impl Optimizer for Heavy {
///     fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
///         self.begin(weights, gradients)?;
///         let [rate, means] = &mut self.memory;
///         for ((weight, gradient), mean) in weights.iter_mut().zip(gradients).zip(means.iter_mut()) {
///             mean.assign(&(&*mean * 0.9 + gradient).detach());
///             weight.assign(&(&**weight - &*mean * &rate[0]).detach());
///         }
///         Ok(())
///     }
///
///     fn memory(&self) -> &[Memory] {
///         &self.memory
///     }
///
///     fn memory_mut(&mut self) -> &mut [Memory] {
///         &mut self.memory
///     }
/// }
///
/// let mut optimizer = Heavy { memory: [Memory::number("rate", 0.5), Memory::of_weights("means")] };
/// let mut weight = Tensor::zeros([2]);
/// for _ in 0..2 {
///     optimizer.step(&mut [&mut weight], &[Tensor::ones([2])])?;
/// }
/// assert!((weight.at(0).item::<f32>()? + 1.45).abs() < 1e-6);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
pub trait Optimizer {
    /// Assigns the updated values to the weights, lazily. The weights and their order must be the same in every step.
    ///
    /// At most one step is pending: if weights or [`state`](Optimizer::state) still depend on the previous step, they
    /// are computed first. Reading the loss of a step, or any of its weights, computes all that the step assigns in the
    /// same run, which shares the forward pass.
    ///
    /// # Errors
    /// When there are not as many gradients as weights, a gradient does not have the shape of its weight, a weight does not have a
    /// float dtype, weights of the step before cannot be computed, or the optimiser was made with impossible numbers, such as a negative learning rate.
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()>;

    /// The first part of a step: refuses gradients that do not fit, computes what earlier steps left lazy, and
    /// initialises the state of the weights.
    ///
    /// # Errors
    /// As [`step`](Optimizer::step).
    #[track_caller]
    fn begin(&mut self, weights: &[&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        start(self.memory_mut(), weights, gradients)
    }

    /// Its name in the file of a training, which no other optimiser can resume: by default, the name of its type.
    fn kind(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let plain = name.split_once('<').map_or(name, |(name, _)| name);
        plain.rsplit_once("::").map_or(plain, |(_, name)| name)
    }

    /// The options that it was made with (betas, momentum, …), by name; a flag is 0 or 1.
    /// [`save_training`](super::save_training) saves them, and [`resume`](super::resume) refuses an optimiser whose options
    /// differ. The default has none, so that any options are accepted.
    ///
    /// # Errors
    /// When it was made with impossible numbers.
    fn options(&self) -> Result<Vec<(&'static str, f32)>> {
        Ok(vec![])
    }

    /// Its state, always the same items in the same order; one of them is the number `rate`.
    fn memory(&self) -> &[Memory];

    /// As [`memory`](Optimizer::memory), to change it.
    fn memory_mut(&mut self) -> &mut [Memory];

    /// The state, to be realised together with the weights.
    fn state(&self) -> Vec<&Tensor> {
        self.memory().iter().flat_map(|memory| memory.iter()).collect()
    }

    /// The state, with names: `rate`, `means.0`, `means.1`, … for the weights in order. The
    /// [`options`](Optimizer::options) are not part of it.
    ///
    /// ```
    /// # use tinyspec_core::{Tensor, nn::{Adam, Optimizer, load, save}};
    /// let mut weight = Tensor::ones([2]);
    /// let mut optimizer = Adam::new(0.1);
    /// optimizer.step(&mut [&mut weight], &[Tensor::ones([2])])?;
    /// let file = std::env::temp_dir().join(format!("adam-{}.safetensors", std::process::id()));
    /// save(&file, &optimizer.named_state())?;
    ///
    /// let mut other = Adam::new(0.1);
    /// other.load_state(load(&file)?)?; // its next step is that of `optimizer`
    /// # std::fs::remove_file(&file).ok();
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    fn named_state(&self) -> Vec<(String, &Tensor)> {
        self.memory().iter().flat_map(Memory::named).collect()
    }

    /// Restores what [`named_state`](Optimizer::named_state) returned, including the learning rate, into an optimiser
    /// that was made with the same options: its next step is the one that would have followed, bit for bit. That step
    /// refuses other weights. [`resume`](super::resume) does this for a whole training.
    ///
    /// # Errors
    /// When names are missing or unexpected, or shapes or dtypes differ: all of them are listed, and nothing is changed.
    #[track_caller]
    fn load_state(&mut self, tensors: BTreeMap<String, Tensor>) -> Result<()> {
        let location = Location::caller();
        if let Some(error) = tensors.values().find_map(Tensor::error) {
            return Err(error.clone());
        }
        restore(self.memory_mut(), tensors).map_err(|differences| {
            let error = tinyspec_ir::Error::new(ErrorKind::Value, "load_state", differences.to_string())
                .help("what `named_state` of an optimiser gave that is made in the same way, with the same options");
            Error::Graph(error.at(location))
        })
    }

    /// Sets the learning rate of the steps from now on: the number `rate` of the state, if there is one.
    #[track_caller]
    fn set_learning_rate(&mut self, rate: f32) {
        if let Some(memory) = self.memory_mut().iter_mut().find(|memory| memory.is(RATE)) {
            memory.set(valid_rate("set_learning_rate", rate));
        }
    }
}

/// The name of the learning rate.
const RATE: &str = "rate";

/// The learning rate as an item of the state.
#[track_caller]
pub(super) fn learning_rate(op: &str, rate: f32) -> Memory {
    let mut memory = Memory::number(RATE, rate);
    memory.set(valid_rate(op, rate));
    memory
}

/// The rate, or a tensor that carries an error, which steps report.
#[track_caller]
fn valid_rate(op: &str, rate: f32) -> Tensor {
    match amount("the learning rate", rate).check(op) {
        Ok(()) => scalar(rate),
        Err(error) => Tensor::failed(error),
    }
}

/// Starts a step with gradients that fit.
#[track_caller]
pub(super) fn start(memory: &mut [Memory], weights: &[&mut Tensor], gradients: &[Tensor]) -> Result<()> {
    check(weights, gradients)?;
    begin(memory, weights)
}

/// A gradient for each weight, of its shape: one that broadcasts would be a silent mistake.
#[track_caller]
fn check(weights: &[&mut Tensor], gradients: &[Tensor]) -> Result<()> {
    let location = Location::caller();
    let refuse = |kind, message: String, help: &str| {
        Err(tinyspec_ir::Error::new(kind, "step", message).help(help).at(location).into())
    };
    if weights.len() != gradients.len() {
        let message = format!("{} gradients for {} weights", gradients.len(), weights.len());
        return refuse(ErrorKind::Arity, message, "`grad(&loss, &weights)` gives one for each weight, in their order");
    }
    for (position, (weight, gradient)) in weights.iter().zip(gradients).enumerate() {
        if let Some(error) = weight.error().or(gradient.error()) {
            return Err(error.clone());
        }
        if !weight.dtype().is_float() {
            let message = format!("weight {position} is {} {}", weight.dtype(), show(weight.shape()));
            let help = "only floats are trained: cast it where it is made, or leave it out of the weights";
            return refuse(ErrorKind::DType, message, help);
        }
        let (wanted, found) = (weight.shape(), gradient.shape());
        if wanted != found {
            let message = format!("the gradient of weight {position} has {}, the weight {}", show(found), show(wanted));
            let help = "`grad(&loss, &weights)` gives them in the order of the weights, and in their shapes";
            return refuse(ErrorKind::Shape, message, help);
        }
        if let (Some(wanted @ Device::Single(_)), Some(found @ Device::Single(_))) =
            (weight.device(), gradient.device())
            && wanted != found
        {
            let message = format!("the gradient of weight {position} is on {found}, the weight on {wanted}");
            return refuse(ErrorKind::Device, message, &format!("move one of them with `.to(\"{wanted}\")`"));
        }
    }
    Ok(())
}

/// A weight in the dtype that steps are computed in.
#[track_caller]
pub(super) fn wide(weight: &Tensor) -> Tensor {
    weight.cast(weight.dtype().accumulator())
}

/// Assigns the next value of an optimiser's state. No gradient flows through the step.
#[track_caller]
pub(super) fn keep(next: Tensor, memory: &mut Tensor) {
    memory.assign(&next.detach());
}

/// Assigns the next value of a weight, rounded once.
#[track_caller]
pub(super) fn update(weight: &mut Tensor, next: Tensor) {
    keep(next.cast(weight.dtype()), weight);
}

/// The options of [`Sgd`]: `SgdOptions { momentum: 0.9, ..default() }`.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct SgdOptions {
    /// Share of the last update that is kept.
    pub momentum: f32,
    /// Nesterov momentum: the step is the gradient plus the momentum's share of the new update (Nesterov, 1983).
    pub nesterov: bool,
    /// Share of a weight that is added to its gradient.
    pub weight_decay: f32,
}

impl Options for SgdOptions {
    fn numbers(&self) -> Vec<Hyperparameter> {
        let SgdOptions { momentum, nesterov, weight_decay } = *self;
        vec![amount("momentum", momentum), flag("nesterov", nesterov), amount("weight_decay", weight_decay)]
    }
}

/// Gradient descent, with momentum if asked for.
#[derive(Clone, Debug)]
pub struct Sgd {
    options: Result<SgdOptions>,
    /// The learning rate, the last updates.
    memory: [Memory; 2],
}

impl Sgd {
    /// Plain gradient descent.
    #[track_caller]
    pub fn new(rate: f32) -> Sgd {
        Sgd::with_options(rate, SgdOptions::default())
    }

    /// With this momentum, the share of the last update that is kept.
    #[track_caller]
    pub fn with_momentum(rate: f32, momentum: f32) -> Sgd {
        Sgd::with_options(rate, SgdOptions { momentum, ..SgdOptions::default() })
    }

    /// With these options.
    #[track_caller]
    pub fn with_options(rate: f32, options: SgdOptions) -> Sgd {
        let velocities = Memory::of_weights_if(options.momentum != 0.0, "velocities");
        let looks_ahead = options.momentum != 0.0 || !options.nesterov;
        let explanation =
            "nesterov is true and momentum is 0: there is no update to look ahead to; set momentum, such as 0.9";
        let options = require("Sgd", looks_ahead, explanation).and(checked("Sgd", options));
        Sgd { options, memory: [learning_rate("Sgd", rate), velocities] }
    }
}

impl Optimizer for Sgd {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        let SgdOptions { momentum, nesterov, weight_decay } = self.options.clone()?;
        self.begin(weights, gradients)?;
        let [rate, velocities] = &mut self.memory;
        for (position, (weight, gradient)) in weights.iter_mut().zip(gradients).enumerate() {
            let dtype = weight.dtype().accumulator();
            let mut gradient = gradient.cast(dtype);
            if weight_decay != 0.0 {
                gradient += weight.cast(dtype) * weight_decay;
            }
            let change = match velocities.get_mut(position) {
                Some(velocity) => {
                    keep(&*velocity * momentum + &gradient, velocity);
                    if nesterov { gradient + &*velocity * momentum } else { velocity.clone() }
                }
                None => gradient,
            };
            let rate = rate[0].cast(dtype);
            update(weight, wide(weight) - change * rate);
        }
        Ok(())
    }

    fn options(&self) -> Result<Vec<(&'static str, f32)>> {
        named(&self.options)
    }

    fn memory(&self) -> &[Memory] {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut [Memory] {
        &mut self.memory
    }
}

/// Options of [`Adam`]: `AdamOptions { amsgrad: true, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdamOptions {
    /// Decay of the mean and of the uncentred variance.
    pub betas: [f32; 2],
    /// Added to the divisor, to keep the quotient finite.
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

impl Options for AdamOptions {
    fn numbers(&self) -> Vec<Hyperparameter> {
        let AdamOptions { betas, epsilon, weight_decay, decoupled, amsgrad } = *self;
        let mut numbers = Vec::from(of_adam(betas, epsilon, weight_decay));
        numbers.extend([flag("decoupled", decoupled), flag("amsgrad", amsgrad)]);
        numbers
    }
}

/// Adam (Kingma and Ba, 2015), with decoupled weight decay if asked for (Loshchilov and Hutter, 2019).
#[derive(Clone, Debug)]
pub struct Adam {
    options: Result<AdamOptions>,
    /// The learning rate, the betas to the power of the number of steps, and of the gradients the means, the uncentred
    /// variances, and the greatest of those.
    memory: [Memory; 6],
}

impl Adam {
    /// With the usual decays, 0.9 and 0.999.
    #[track_caller]
    pub fn new(rate: f32) -> Adam {
        Adam::with_options(rate, AdamOptions::default())
    }

    /// With these decays of the mean and of the uncentred variance, and this term added to the divisor.
    #[track_caller]
    pub fn with_betas(rate: f32, betas: [f32; 2], epsilon: f32) -> Adam {
        Adam::with_options(rate, AdamOptions { betas, epsilon, ..AdamOptions::default() })
    }

    /// AdamW: with weights that decay by this share of the learning rate each step.
    #[track_caller]
    pub fn with_weight_decay(rate: f32, weight_decay: f32) -> Adam {
        Adam::with_options(rate, AdamOptions { weight_decay, ..AdamOptions::default() })
    }

    /// With these options.
    #[track_caller]
    pub fn with_options(rate: f32, options: AdamOptions) -> Adam {
        let memory = [
            learning_rate("Adam", rate),
            Memory::number("mean_power", 1.0),
            Memory::number("variance_power", 1.0),
            Memory::of_weights("means"),
            Memory::of_weights("variances"),
            Memory::of_weights_if(options.amsgrad, "greatest"),
        ];
        Adam { options: checked("Adam", options), memory }
    }
}

impl Optimizer for Adam {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        let AdamOptions { betas: [mean_beta, variance_beta], epsilon, weight_decay, decoupled, .. } =
            self.options.clone()?;
        self.begin(weights, gradients)?;
        let [rate, mean_power, variance_power, means, variances, greatest] = &mut self.memory;
        keep(&mean_power[0] * mean_beta, &mut mean_power[0]);
        keep(&variance_power[0] * variance_beta, &mut variance_power[0]);
        let memories = means.iter_mut().zip(variances.iter_mut());
        for (position, ((weight, gradient), (mean, variance))) in
            weights.iter_mut().zip(gradients).zip(memories).enumerate()
        {
            let dtype = mean.dtype();
            let mut gradient = gradient.cast(dtype);
            if weight_decay != 0.0 && !decoupled {
                gradient += weight.cast(dtype) * weight_decay;
            }
            let [mean_power, variance_power] =
                [&mean_power[0], &variance_power[0]].map(|power| 1.0 - power.cast(dtype));
            let rate = rate[0].cast(dtype);
            keep(&*mean * mean_beta + &gradient * (1.0 - mean_beta), mean);
            keep(&*variance * variance_beta + &gradient * &gradient * (1.0 - variance_beta), variance);
            let spread = match greatest.get_mut(position) {
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

    fn options(&self) -> Result<Vec<(&'static str, f32)>> {
        named(&self.options)
    }

    fn memory(&self) -> &[Memory] {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut [Memory] {
        &mut self.memory
    }
}
