//! Optimisers that scale each weight's step by what its gradients were: RMSprop, Adagrad, LAMB.

use super::Optimizer;
use super::optim::{begin, follow, keep, remember, scalar, update, wide};
use crate::{Result, Tensor};

/// What [`RmsProp`] can do: `RmsPropOptions { momentum: 0.9, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RmsPropOptions {
    /// Share of the mean square that is kept.
    pub decay: f32,
    /// What keeps the quotient finite.
    pub epsilon: f32,
    /// Share of the last update that is kept.
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

/// Steps divided by the root of the running mean square of the gradient (Tieleman and Hinton, 2012).
#[derive(Clone, Debug)]
pub struct RmsProp {
    rate: Tensor,
    options: RmsPropOptions,
    squares: Vec<Tensor>,
    means: Vec<Tensor>,
    velocities: Vec<Tensor>,
}

impl RmsProp {
    /// With what is usual.
    pub fn new(rate: f32) -> RmsProp {
        RmsProp::with_options(rate, RmsPropOptions::default())
    }

    /// With all that there is.
    pub fn with_options(rate: f32, options: RmsPropOptions) -> RmsProp {
        RmsProp { rate: scalar(rate), options, squares: vec![], means: vec![], velocities: vec![] }
    }
}

impl Optimizer for RmsProp {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        begin(weights, gradients, &self.state())?;
        follow([&mut self.rate], weights);
        let RmsPropOptions { decay, epsilon, momentum, centered, weight_decay } = self.options;
        remember(&mut self.squares, weights)?;
        if centered {
            remember(&mut self.means, weights)?;
        }
        if momentum != 0.0 {
            remember(&mut self.velocities, weights)?;
        }
        for (position, (weight, gradient)) in weights.iter_mut().zip(gradients).enumerate() {
            let square = &mut self.squares[position];
            let dtype = square.dtype();
            let mut gradient = gradient.cast(dtype);
            if weight_decay != 0.0 {
                gradient += weight.cast(dtype) * weight_decay;
            }
            keep(&*square * decay + gradient.square() * (1.0 - decay), square);
            let variance = match self.means.get_mut(position) {
                Some(mean) => {
                    keep(&*mean * decay + &gradient * (1.0 - decay), mean);
                    &*square - mean.square()
                }
                None => square.clone(),
            };
            let mut change = gradient / (variance.sqrt() + epsilon);
            if let Some(velocity) = self.velocities.get_mut(position) {
                keep(&*velocity * momentum + change, velocity);
                change = velocity.clone();
            }
            let rate = self.rate.cast(dtype);
            update(weight, wide(weight) - change * rate);
        }
        Ok(())
    }

    fn state(&self) -> Vec<&Tensor> {
        self.squares.iter().chain(&self.means).chain(&self.velocities).collect()
    }

    fn set_learning_rate(&mut self, rate: f32) {
        self.rate = scalar(rate);
    }
}

/// What [`Adagrad`] can do: `AdagradOptions { weight_decay: 0.01, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdagradOptions {
    /// What keeps the quotient finite.
    pub epsilon: f32,
    /// Share of a weight that is added to its gradient.
    pub weight_decay: f32,
}

impl Default for AdagradOptions {
    fn default() -> AdagradOptions {
        AdagradOptions { epsilon: 1e-10, weight_decay: 0.0 }
    }
}

/// Steps divided by the root of the sum of all squares so far (Duchi et al., 2011).
#[derive(Clone, Debug)]
pub struct Adagrad {
    rate: Tensor,
    options: AdagradOptions,
    squares: Vec<Tensor>,
}

impl Adagrad {
    /// With what is usual.
    pub fn new(rate: f32) -> Adagrad {
        Adagrad::with_options(rate, AdagradOptions::default())
    }

    /// With all that there is.
    pub fn with_options(rate: f32, options: AdagradOptions) -> Adagrad {
        Adagrad { rate: scalar(rate), options, squares: vec![] }
    }
}

impl Optimizer for Adagrad {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        begin(weights, gradients, &self.state())?;
        follow([&mut self.rate], weights);
        remember(&mut self.squares, weights)?;
        for ((weight, gradient), square) in weights.iter_mut().zip(gradients).zip(&mut self.squares) {
            let dtype = square.dtype();
            let mut gradient = gradient.cast(dtype);
            if self.options.weight_decay != 0.0 {
                gradient += weight.cast(dtype) * self.options.weight_decay;
            }
            keep(&*square + gradient.square(), square);
            let change = gradient / (square.sqrt() + self.options.epsilon) * self.rate.cast(dtype);
            update(weight, wide(weight) - change);
        }
        Ok(())
    }

    fn state(&self) -> Vec<&Tensor> {
        self.squares.iter().collect()
    }

    fn set_learning_rate(&mut self, rate: f32) {
        self.rate = scalar(rate);
    }
}

/// What [`Lamb`] can do: `LambOptions { weight_decay: 0.01, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LambOptions {
    /// Decay of the mean and of the uncentred variance.
    pub betas: [f32; 2],
    /// What keeps the quotient finite.
    pub epsilon: f32,
    /// Share of a weight that is added to its step.
    pub weight_decay: f32,
}

impl Default for LambOptions {
    fn default() -> LambOptions {
        LambOptions { betas: [0.9, 0.999], epsilon: 1e-6, weight_decay: 0.0 }
    }
}

/// Adam's step for each weight tensor, made as long as the tensor's own norm: for large batches (You et al., 2020).
#[derive(Clone, Debug)]
pub struct Lamb {
    rate: Tensor,
    options: LambOptions,
    means: Vec<Tensor>,
    variances: Vec<Tensor>,
    /// The betas to the power of the number of steps.
    powers: [Tensor; 2],
}

impl Lamb {
    /// With what is usual.
    pub fn new(rate: f32) -> Lamb {
        Lamb::with_options(rate, LambOptions::default())
    }

    /// With all that there is.
    pub fn with_options(rate: f32, options: LambOptions) -> Lamb {
        Lamb { rate: scalar(rate), options, means: vec![], variances: vec![], powers: [scalar(1.0), scalar(1.0)] }
    }
}

impl Optimizer for Lamb {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        begin(weights, gradients, &self.state())?;
        follow(self.powers.iter_mut().chain([&mut self.rate]), weights);
        remember(&mut self.means, weights)?;
        remember(&mut self.variances, weights)?;
        let LambOptions { betas, epsilon, weight_decay } = self.options;
        for (power, beta) in self.powers.iter_mut().zip(betas) {
            keep(&*power * beta, power);
        }
        let memories = self.means.iter_mut().zip(&mut self.variances);
        for ((weight, gradient), (mean, variance)) in weights.iter_mut().zip(gradients).zip(memories) {
            let dtype = mean.dtype();
            let gradient = gradient.cast(dtype);
            let [mean_power, variance_power] = self.powers.each_ref().map(|power| 1.0 - power.cast(dtype));
            keep(&*mean * betas[0] + &gradient * (1.0 - betas[0]), mean);
            keep(&*variance * betas[1] + gradient.square() * (1.0 - betas[1]), variance);
            let mut change = (&*mean / mean_power) / ((&*variance / variance_power).sqrt() + epsilon);
            if weight_decay != 0.0 {
                change += weight.cast(dtype) * weight_decay;
            }
            let (own, step) = (weight.cast(dtype).norm(2.0, .., false), change.norm(2.0, .., false));
            // A tensor of zeros has no length to keep to, and no step needs none.
            let trust = own.gt(0.0).and(step.gt(0.0)).where_(&own / step.clone(), 1.0);
            let rate = self.rate.cast(dtype);
            update(weight, wide(weight) - change * (trust * rate));
        }
        Ok(())
    }

    fn state(&self) -> Vec<&Tensor> {
        self.means.iter().chain(&self.variances).chain(&self.powers).collect()
    }

    fn set_learning_rate(&mut self, rate: f32) {
        self.rate = scalar(rate);
    }
}
