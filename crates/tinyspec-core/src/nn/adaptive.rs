//! Optimisers that scale each weight's step by its past gradients: RMSprop, Adagrad, LAMB.

use super::Optimizer;
use super::hyperparameters::{Hyperparameter, Options, amount, checked, flag, named, of_adam, share};
use super::memory::Memory;
use super::optim::{keep, learning_rate, update, wide};
use crate::{Result, Tensor};

/// Options of [`RmsProp`]: `RmsPropOptions { momentum: 0.9, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RmsPropOptions {
    /// Decay of the mean square.
    pub decay: f32,
    /// Added to the divisor, to keep the quotient finite.
    pub epsilon: f32,
    /// The momentum: share of the last update that is kept.
    pub momentum: f32,
    /// Divides by the deviation from the mean gradient (Graves, 2013).
    pub centered: bool,
    /// Share of a weight that is added to its gradient.
    pub weight_decay: f32,
}

impl Default for RmsPropOptions {
    fn default() -> RmsPropOptions {
        RmsPropOptions { decay: 0.99, epsilon: 1e-8, momentum: 0.0, centered: false, weight_decay: 0.0 }
    }
}

impl Options for RmsPropOptions {
    fn numbers(&self) -> Vec<Hyperparameter> {
        let RmsPropOptions { decay, epsilon, momentum, centered, weight_decay } = *self;
        vec![
            share("decay", decay),
            amount("epsilon", epsilon),
            amount("momentum", momentum),
            flag("centered", centered),
            amount("weight_decay", weight_decay),
        ]
    }
}

/// Steps divided by the root of the running mean square of the gradient (Tieleman and Hinton, 2012).
#[derive(Clone, Debug)]
pub struct RmsProp {
    options: Result<RmsPropOptions>,
    /// The learning rate, the mean squares and the means of the gradients, the last updates.
    memory: [Memory; 4],
}

impl RmsProp {
    /// With the usual options.
    #[track_caller]
    pub fn new(rate: f32) -> RmsProp {
        RmsProp::with_options(rate, RmsPropOptions::default())
    }

    /// With these options.
    #[track_caller]
    pub fn with_options(rate: f32, options: RmsPropOptions) -> RmsProp {
        let memory = [
            learning_rate("RmsProp", rate),
            Memory::of_weights("squares"),
            Memory::of_weights_if(options.centered, "means"),
            Memory::of_weights_if(options.momentum != 0.0, "velocities"),
        ];
        RmsProp { options: checked("RmsProp", options), memory }
    }
}

impl Optimizer for RmsProp {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        let RmsPropOptions { decay, epsilon, momentum, weight_decay, .. } = self.options.clone()?;
        self.begin(weights, gradients)?;
        let [rate, squares, means, velocities] = &mut self.memory;
        for (position, ((weight, gradient), square)) in
            weights.iter_mut().zip(gradients).zip(squares.iter_mut()).enumerate()
        {
            let dtype = square.dtype();
            let mut gradient = gradient.cast(dtype);
            if weight_decay != 0.0 {
                gradient += weight.cast(dtype) * weight_decay;
            }
            keep(&*square * decay + gradient.square() * (1.0 - decay), square);
            let variance = match means.get_mut(position) {
                Some(mean) => {
                    keep(&*mean * decay + &gradient * (1.0 - decay), mean);
                    &*square - mean.square()
                }
                None => square.clone(),
            };
            let mut change = gradient / (variance.sqrt() + epsilon);
            if let Some(velocity) = velocities.get_mut(position) {
                keep(&*velocity * momentum + change, velocity);
                change = velocity.clone();
            }
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

/// Options of [`Adagrad`]: `AdagradOptions { weight_decay: 0.01, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdagradOptions {
    /// Added to the divisor, to keep the quotient finite.
    pub epsilon: f32,
    /// Share of a weight that is added to its gradient.
    pub weight_decay: f32,
}

impl Default for AdagradOptions {
    fn default() -> AdagradOptions {
        AdagradOptions { epsilon: 1e-10, weight_decay: 0.0 }
    }
}

impl Options for AdagradOptions {
    fn numbers(&self) -> Vec<Hyperparameter> {
        let AdagradOptions { epsilon, weight_decay } = *self;
        vec![amount("epsilon", epsilon), amount("weight_decay", weight_decay)]
    }
}

/// Steps divided by the root of the sum of all squares so far (Duchi et al., 2011).
#[derive(Clone, Debug)]
pub struct Adagrad {
    options: Result<AdagradOptions>,
    /// The learning rate, the sums of the gradients' squares.
    memory: [Memory; 2],
}

impl Adagrad {
    /// With the usual options.
    #[track_caller]
    pub fn new(rate: f32) -> Adagrad {
        Adagrad::with_options(rate, AdagradOptions::default())
    }

    /// With these options.
    #[track_caller]
    pub fn with_options(rate: f32, options: AdagradOptions) -> Adagrad {
        let memory = [learning_rate("Adagrad", rate), Memory::of_weights("squares")];
        Adagrad { options: checked("Adagrad", options), memory }
    }
}

impl Optimizer for Adagrad {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        let AdagradOptions { epsilon, weight_decay } = self.options.clone()?;
        self.begin(weights, gradients)?;
        let [rate, squares] = &mut self.memory;
        for ((weight, gradient), square) in weights.iter_mut().zip(gradients).zip(squares.iter_mut()) {
            let dtype = square.dtype();
            let mut gradient = gradient.cast(dtype);
            if weight_decay != 0.0 {
                gradient += weight.cast(dtype) * weight_decay;
            }
            keep(&*square + gradient.square(), square);
            let change = gradient / (square.sqrt() + epsilon) * rate[0].cast(dtype);
            update(weight, wide(weight) - change);
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

/// Options of [`Lamb`]: `LambOptions { weight_decay: 0.01, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LambOptions {
    /// Decay of the mean and of the uncentred variance.
    pub betas: [f32; 2],
    /// Added to the divisor, to keep the quotient finite.
    pub epsilon: f32,
    /// Share of a weight that is added to its step.
    pub weight_decay: f32,
}

impl Default for LambOptions {
    fn default() -> LambOptions {
        LambOptions { betas: [0.9, 0.999], epsilon: 1e-6, weight_decay: 0.0 }
    }
}

impl Options for LambOptions {
    fn numbers(&self) -> Vec<Hyperparameter> {
        let LambOptions { betas, epsilon, weight_decay } = *self;
        of_adam(betas, epsilon, weight_decay).into()
    }
}

/// Adam's step for each weight tensor, made as long as the tensor's own norm: for large batches (You et al., 2020).
#[derive(Clone, Debug)]
pub struct Lamb {
    options: Result<LambOptions>,
    /// The learning rate, the betas to the power of the number of steps, and of the gradients the means and the uncentred
    /// variances.
    memory: [Memory; 5],
}

impl Lamb {
    /// With the usual options.
    #[track_caller]
    pub fn new(rate: f32) -> Lamb {
        Lamb::with_options(rate, LambOptions::default())
    }

    /// With these options.
    #[track_caller]
    pub fn with_options(rate: f32, options: LambOptions) -> Lamb {
        let memory = [
            learning_rate("Lamb", rate),
            Memory::number("mean_power", 1.0),
            Memory::number("variance_power", 1.0),
            Memory::of_weights("means"),
            Memory::of_weights("variances"),
        ];
        Lamb { options: checked("Lamb", options), memory }
    }
}

impl Optimizer for Lamb {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        let LambOptions { betas: [mean_beta, variance_beta], epsilon, weight_decay } = self.options.clone()?;
        self.begin(weights, gradients)?;
        let [rate, mean_power, variance_power, means, variances] = &mut self.memory;
        keep(&mean_power[0] * mean_beta, &mut mean_power[0]);
        keep(&variance_power[0] * variance_beta, &mut variance_power[0]);
        let memories = means.iter_mut().zip(variances.iter_mut());
        for ((weight, gradient), (mean, variance)) in weights.iter_mut().zip(gradients).zip(memories) {
            let dtype = mean.dtype();
            let gradient = gradient.cast(dtype);
            let [mean_power, variance_power] =
                [&mean_power[0], &variance_power[0]].map(|power| 1.0 - power.cast(dtype));
            keep(&*mean * mean_beta + &gradient * (1.0 - mean_beta), mean);
            keep(&*variance * variance_beta + gradient.square() * (1.0 - variance_beta), variance);
            let mut change = (&*mean / mean_power) / ((&*variance / variance_power).sqrt() + epsilon);
            if weight_decay != 0.0 {
                change += weight.cast(dtype) * weight_decay;
            }
            let (own, step) = (weight.cast(dtype).norm(2.0, .., false), change.norm(2.0, .., false));
            // A tensor of zeros has no norm to scale to, and a zero step needs no scaling.
            let trust = own.gt(0.0).and(step.gt(0.0)).where_(&own / step.clone(), 1.0);
            let rate = rate[0].cast(dtype);
            update(weight, wide(weight) - change * (trust * rate));
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
