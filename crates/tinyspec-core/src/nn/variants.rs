//! Variants of Adam and Adagrad: Adadelta, Adamax, NAdam, RAdam; and Lion.

use super::Optimizer;
use super::hyperparameters::{Hyperparameter, Options, checked, named, of_adam};
use super::memory::Memory;
use super::optim::{keep, learning_rate, start, update, wide};
use crate::{Result, Tensor};

/// The options of the optimisers in this file: `VariantOptions { weight_decay: 0.01, ..default() }`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VariantOptions {
    /// Decays of the two running means.
    pub betas: [f32; 2],
    /// Added to the divisor, to keep the quotient finite.
    pub epsilon: f32,
    /// Share of a weight that is added to its gradient; for Lion, the share that it loses each step, times the learning
    /// rate.
    pub weight_decay: f32,
}

impl Default for VariantOptions {
    fn default() -> VariantOptions {
        VariantOptions { betas: [0.9, 0.999], epsilon: 1e-8, weight_decay: 0.0 }
    }
}

impl Options for VariantOptions {
    fn numbers(&self) -> Vec<Hyperparameter> {
        let VariantOptions { betas, epsilon, weight_decay } = *self;
        of_adam(betas, epsilon, weight_decay).into()
    }
}

/// The state of one weight: two tensors of its shape.
struct Tracks<'a> {
    first: &'a mut Tensor,
    second: &'a mut Tensor,
}

impl Tracks<'_> {
    /// The running mean of the gradient.
    fn mean(&mut self, gradient: &Tensor, beta: f32) -> Tensor {
        let next = &*self.first * beta + gradient * (1.0 - beta);
        keep(next.clone(), self.first);
        next
    }

    /// The running mean of its square.
    fn square(&mut self, gradient: &Tensor, beta: f32) -> Tensor {
        let next = &*self.second * beta + gradient.square() * (1.0 - beta);
        keep(next.clone(), self.second);
        next
    }
}

/// The number of the step, from 1 on, as tensors that a step may use.
struct Count {
    step: Tensor,
    /// The betas to its power, and the product of NAdam's momenta.
    powers: [Tensor; 3],
}

/// Computes a step from a gradient.
type Rule = fn(&VariantOptions, &mut Tracks, &Tensor, &Count) -> Tensor;

macro_rules! variants {
    ($($(#[doc = $doc:literal])* $name:ident { $($field:ident: $value:expr),* } = $rule:ident;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Variant);

        impl $name {
            /// With the usual options.
            #[track_caller]
            pub fn new(rate: f32) -> $name {
                $name::with_options(rate, VariantOptions { $($field: $value,)* ..VariantOptions::default() })
            }

            /// With these options.
            #[track_caller]
            pub fn with_options(rate: f32, options: VariantOptions) -> $name {
                $name(Variant::new(stringify!($name), rate, options))
            }
        }

        impl Optimizer for $name {
            #[track_caller]
            fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
                self.0.step($rule, weights, gradients)
            }

            fn options(&self) -> Result<Vec<(&'static str, f32)>> {
                named(&self.0.options)
            }

            fn memory(&self) -> &[Memory] {
                &self.0.memory
            }

            fn memory_mut(&mut self) -> &mut [Memory] {
                &mut self.0.memory
            }
        }
    )* };
}

variants! {
    /// The gradient divided by its root mean square, times the root mean square of previous steps (Zeiler, 2012). The
    /// usual rate is 1.
    Adadelta { betas: [0.9, 0.9], epsilon: 1e-6 } = adadelta;
    /// Adam with a decaying maximum of the gradients instead of the variance (Kingma and Ba, 2015).
    Adamax {} = adamax;
    /// Adam with Nesterov momentum, which grows over time (Dozat, 2016).
    Nadam {} = nadam;
    /// Adam that ignores the variance until its estimate is good enough (Liu et al., 2020).
    Radam {} = radam;
}

fn adadelta(options: &VariantOptions, memory: &mut Tracks, gradient: &Tensor, _: &Count) -> Tensor {
    let square = memory.square(gradient, options.betas[1]);
    let steps = memory.first.clone();
    let change = (&steps + options.epsilon).sqrt() / (square + options.epsilon).sqrt() * gradient;
    keep(steps * options.betas[0] + change.square() * (1.0 - options.betas[0]), memory.first);
    change
}

fn adamax(options: &VariantOptions, memory: &mut Tracks, gradient: &Tensor, count: &Count) -> Tensor {
    let mean = memory.mean(gradient, options.betas[0]);
    let greatest = (&*memory.second * options.betas[1]).maximum(gradient.abs() + options.epsilon);
    keep(greatest.clone(), memory.second);
    mean / (1.0 - count.powers[0].cast(gradient.dtype())) / greatest
}

/// The momentum of NAdam at a step.
fn momentum(beta: f32, step: &Tensor) -> Tensor {
    (1.0 - (step * (0.004 * 0.96f64.log2())).exp2() * 0.5) * beta
}

fn nadam(options: &VariantOptions, memory: &mut Tracks, gradient: &Tensor, count: &Count) -> Tensor {
    let dtype = gradient.dtype();
    let mean = memory.mean(gradient, options.betas[0]);
    let square = memory.square(gradient, options.betas[1]);
    let (now, next) = (momentum(options.betas[0], &count.step), momentum(options.betas[0], &(&count.step + 1.0)));
    let product = &count.powers[2];
    let (own, ahead) = ((1.0 - &now) / (1.0 - product), &next / (1.0 - product * &next));
    let scale = (square / (1.0 - count.powers[1].cast(dtype))).sqrt() + options.epsilon;
    (gradient * own.cast(dtype) + mean * ahead.cast(dtype)) / scale
}

fn radam(options: &VariantOptions, memory: &mut Tracks, gradient: &Tensor, count: &Count) -> Tensor {
    let dtype = gradient.dtype();
    let mean = memory.mean(gradient, options.betas[0]) / (1.0 - count.powers[0].cast(dtype));
    let square = memory.square(gradient, options.betas[1]);
    let power = &count.powers[1];
    let most = 2.0 / (1.0 - f64::from(options.betas[1])) - 1.0;
    // The effective number of gradients in the variance estimate.
    let length = most - &count.step * 2.0 * power / (1.0 - power);
    let is_known = length.gt(5.0);
    let safe = is_known.where_(&length, 6.0);
    let rectified = (&safe - 4.0) * (&safe - 2.0) * (most / ((most - 4.0) * (most - 2.0))) / &safe;
    let factor = (rectified * (1.0 - power)).sqrt().cast(dtype);
    let scaled = &mean * factor / (square.sqrt() + options.epsilon);
    is_known.where_(scaled, mean)
}

#[derive(Clone, Debug)]
struct Variant {
    options: Result<VariantOptions>,
    /// The learning rate, the numbers of [`Count`], the tensors of [`Tracks`].
    memory: [Memory; 7],
}

impl Variant {
    #[track_caller]
    fn new(op: &str, rate: f32, options: VariantOptions) -> Variant {
        let memory = [
            learning_rate(op, rate),
            Memory::number("step", 0.0),
            Memory::number("first_power", 1.0),
            Memory::number("second_power", 1.0),
            Memory::number("momenta", 1.0),
            Memory::of_weights("first"),
            Memory::of_weights("second"),
        ];
        Variant { options: checked(op, options), memory }
    }

    #[track_caller]
    fn step(&mut self, rule: Rule, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        let options = self.options.clone()?;
        start(&mut self.memory, weights, gradients)?;
        let [rate, step, powers @ .., first, second] = &mut self.memory;
        keep(&step[0] + 1.0, &mut step[0]);
        for (power, beta) in powers.iter_mut().zip(options.betas) {
            keep(&power[0] * beta, &mut power[0]);
        }
        let momenta = &mut powers[2][0];
        keep(&*momenta * momentum(options.betas[0], &step[0]), momenta);
        let count = Count { step: step[0].clone(), powers: powers.each_ref().map(|power| power[0].clone()) };
        let decay = options.weight_decay;
        let memories = first.iter_mut().zip(second.iter_mut());
        for ((weight, gradient), (first, second)) in weights.iter_mut().zip(gradients).zip(memories) {
            let dtype = first.dtype();
            let mut gradient = gradient.cast(dtype);
            if decay != 0.0 {
                gradient += weight.cast(dtype) * decay;
            }
            let change = rule(&options, &mut Tracks { first, second }, &gradient, &count);
            let rate = rate[0].cast(dtype);
            update(weight, wide(weight) - change * rate);
        }
        Ok(())
    }
}

/// The sign of a running mean of the gradients, so that all weights move equally far (Chen et al., 2023). Weight decay
/// is decoupled.
#[derive(Clone, Debug)]
pub struct Lion {
    options: Result<VariantOptions>,
    /// The learning rate, the means of the gradients.
    memory: [Memory; 2],
}

impl Lion {
    /// With the usual options.
    #[track_caller]
    pub fn new(rate: f32) -> Lion {
        Lion::with_options(rate, VariantOptions { betas: [0.9, 0.99], ..VariantOptions::default() })
    }

    /// With these options.
    #[track_caller]
    pub fn with_options(rate: f32, options: VariantOptions) -> Lion {
        Lion { options: checked("Lion", options), memory: [learning_rate("Lion", rate), Memory::of_weights("means")] }
    }
}

impl Optimizer for Lion {
    #[track_caller]
    fn step(&mut self, weights: &mut [&mut Tensor], gradients: &[Tensor]) -> Result<()> {
        let VariantOptions { betas: [now, later], weight_decay, .. } = self.options.clone()?;
        self.begin(weights, gradients)?;
        let [rate, means] = &mut self.memory;
        for ((weight, gradient), mean) in weights.iter_mut().zip(gradients).zip(means.iter_mut()) {
            let dtype = mean.dtype();
            let gradient = gradient.cast(dtype);
            let change = (&*mean * now + &gradient * (1.0 - now)).sign();
            keep(&*mean * later + gradient * (1.0 - later), mean);
            let rate = rate[0].cast(dtype);
            let change = if weight_decay == 0.0 { change } else { change + wide(weight) * weight_decay };
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
