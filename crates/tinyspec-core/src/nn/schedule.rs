//! Learning-rate schedules: the rate as a function of the number of the step.

use super::Optimizer;
use std::f32::consts::PI;

/// The learning rate of each step, counted from 0.
///
/// A schedule is a value: it remembers no step, so nothing has to be stored to go on with a training.
///
/// ```
/// # use tinyspec_core::nn::{Cosine, Schedule, Warmup};
/// let schedule = Warmup { steps: 10, then: Cosine { rate: 0.1, least: 0.0, steps: 100 } };
/// assert_eq!(schedule.rate(0), 0.01);
/// assert_eq!(schedule.rate(10), 0.1);
/// assert!(schedule.rate(60) < 0.051 && schedule.rate(200) == 0.0);
/// ```
pub trait Schedule {
    /// The rate of a step.
    fn rate(&self, step: usize) -> f32;

    /// Gives an optimiser the rate of a step, before it makes the step.
    fn apply(&self, optimizer: &mut dyn Optimizer, step: usize) {
        optimizer.set_learning_rate(self.rate(step));
    }
}

/// A function of the step is a schedule.
impl<F: Fn(usize) -> f32> Schedule for F {
    fn rate(&self, step: usize) -> f32 {
        self(step)
    }
}

/// One rate for all steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Constant {
    /// The rate.
    pub rate: f32,
}

impl Schedule for Constant {
    fn rate(&self, _: usize) -> f32 {
        self.rate
    }
}

/// The rate times `factor` after every `every` steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepDecay {
    /// The first rate.
    pub rate: f32,
    /// Steps of one rate.
    pub every: usize,
    /// What the rate is multiplied by then.
    pub factor: f32,
}

impl Schedule for StepDecay {
    fn rate(&self, step: usize) -> f32 {
        self.rate * power(self.factor, step / self.every.max(1))
    }
}

/// The rate times `factor` at each of these steps.
#[derive(Clone, PartialEq, Debug)]
pub struct MultiStep {
    /// The first rate.
    pub rate: f32,
    /// Steps that have a lower rate than those before.
    pub milestones: Vec<usize>,
    /// What the rate is multiplied by there.
    pub factor: f32,
}

impl Schedule for MultiStep {
    fn rate(&self, step: usize) -> f32 {
        self.rate * power(self.factor, self.milestones.iter().filter(|&&milestone| milestone <= step).count())
    }
}

/// The rate times `factor` after every step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Exponential {
    /// The first rate.
    pub rate: f32,
    /// What the rate is multiplied by.
    pub factor: f32,
}

impl Schedule for Exponential {
    fn rate(&self, step: usize) -> f32 {
        self.rate * power(self.factor, step)
    }
}

fn power(factor: f32, count: usize) -> f32 {
    factor.powi(i32::try_from(count).unwrap_or(i32::MAX))
}

/// A straight line from one rate to another, which stays.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Linear {
    /// The first rate.
    pub from: f32,
    /// The rate after `steps`.
    pub to: f32,
    /// Steps on the way.
    pub steps: usize,
}

impl Schedule for Linear {
    fn rate(&self, step: usize) -> f32 {
        let share = share(step, self.steps);
        self.from * (1.0 - share) + self.to * share
    }
}

/// How much of the way a step is.
fn share(step: usize, steps: usize) -> f32 {
    if step >= steps { 1.0 } else { step as f32 / steps as f32 }
}

/// Half a cosine from one rate to another.
fn cosine(from: f32, to: f32, share: f32) -> f32 {
    to + (from - to) * 0.5 * (1.0 + (PI * share).cos())
}

/// Half a cosine from the rate to the least one, which stays (Loshchilov and Hutter, 2017).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cosine {
    /// The first rate.
    pub rate: f32,
    /// The rate after `steps`.
    pub least: f32,
    /// Steps on the way.
    pub steps: usize,
}

impl Schedule for Cosine {
    fn rate(&self, step: usize) -> f32 {
        // The cosine is not exactly -1 at the end.
        if step >= self.steps { self.least } else { cosine(self.rate, self.least, share(step, self.steps)) }
    }
}

/// A power of the share that is left, from one rate to another, which stays.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Polynomial {
    /// The first rate.
    pub from: f32,
    /// The rate after `steps`.
    pub to: f32,
    /// Steps on the way.
    pub steps: usize,
    /// The power; 1 is a straight line.
    pub power: f32,
}

impl Schedule for Polynomial {
    fn rate(&self, step: usize) -> f32 {
        self.to + (self.from - self.to) * (1.0 - share(step, self.steps)).powf(self.power)
    }
}

/// [`Cosine`] again and again, each time over more steps (Loshchilov and Hutter, 2017).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WarmRestarts {
    /// The first rate, and the one after each restart.
    pub rate: f32,
    /// What each way leads to.
    pub least: f32,
    /// Steps to the first restart.
    pub steps: usize,
    /// How many times as long each way is as the one before; at least 1.
    pub growth: usize,
}

impl Schedule for WarmRestarts {
    fn rate(&self, step: usize) -> f32 {
        let (mut rest, mut length) = (step, self.steps.max(1));
        if self.growth <= 1 {
            rest %= length;
        }
        while rest >= length {
            rest -= length;
            length = length.saturating_mul(self.growth);
        }
        cosine(self.rate, self.least, share(rest, length))
    }
}

/// Straight lines up and down, again and again (Smith, 2017).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cyclic {
    /// The first rate, to which each way leads back.
    pub least: f32,
    /// The rate between.
    pub greatest: f32,
    /// Steps up.
    pub up: usize,
    /// Steps down.
    pub down: usize,
}

impl Schedule for Cyclic {
    fn rate(&self, step: usize) -> f32 {
        let step = step % self.up.saturating_add(self.down).max(1);
        let height = match step.checked_sub(self.up) {
            Some(step) => 1.0 - share(step, self.down),
            None => share(step, self.up),
        };
        self.least + (self.greatest - self.least) * height
    }
}

/// A straight line up to the first rate of another schedule, which then goes on from its own step 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Warmup<S> {
    /// Steps on the way; the first one already has a rate.
    pub steps: usize,
    /// What follows.
    pub then: S,
}

impl<S: Schedule> Schedule for Warmup<S> {
    fn rate(&self, step: usize) -> f32 {
        match step.checked_sub(self.steps) {
            Some(step) => self.then.rate(step),
            None => self.then.rate(0) * (step + 1) as f32 / self.steps as f32,
        }
    }
}

/// Up to the greatest rate and down to nearly none, both as half a cosine (Smith and Topin, 2018).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OneCycle {
    /// The greatest rate.
    pub greatest: f32,
    /// Steps of the whole.
    pub steps: usize,
    /// Share of the steps on the way up.
    pub rising: f32,
    /// How much greater the greatest rate is than the first one.
    pub start_divisor: f32,
    /// How much greater the first rate is than the last one.
    pub end_divisor: f32,
}

impl OneCycle {
    /// With what is usual: 3/10 of the steps up, from 1/25 of the greatest rate, down to 1/10,000 of that.
    pub fn new(greatest: f32, steps: usize) -> OneCycle {
        OneCycle { greatest, steps, rising: 0.3, start_divisor: 25.0, end_divisor: 1e4 }
    }
}

impl Schedule for OneCycle {
    fn rate(&self, step: usize) -> f32 {
        let first = self.greatest / self.start_divisor;
        let last = first / self.end_divisor;
        // Both ends of both ways are steps.
        let (top, end) = (self.rising * self.steps as f32 - 1.0, self.steps as f32 - 1.0);
        let step = step as f32;
        if step >= end {
            last
        } else if step <= top {
            cosine(first, self.greatest, step / top)
        } else {
            cosine(self.greatest, last, (step - top) / (end - top))
        }
    }
}
