//! Learning-rate schedules: the rate as a function of the number of the step.

use super::Optimizer;
use std::f32::consts::PI;

/// The learning rate of each step, counted from 0.
///
/// A schedule is stateless, so nothing has to be saved to resume a training.
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

    /// Sets the rate of an optimiser before a step.
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
    /// The number of steps with one rate.
    pub every: usize,
    /// The factor.
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
    /// The steps at which the rate changes.
    pub milestones: Vec<usize>,
    /// The factor.
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
    /// The factor.
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

/// Linear interpolation from one rate to another, which then stays.
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

/// How much of the way is done at a step.
fn share(step: usize, steps: usize) -> f32 {
    if step >= steps { 1.0 } else { step as f32 / steps as f32 }
}

/// Half a cosine from one rate to another.
fn cosine(from: f32, to: f32, share: f32) -> f32 {
    to + (from - to) * 0.5 * (1.0 + (PI * share).cos())
}

/// Cosine annealing: half a cosine from the rate to the least one, which then stays (Loshchilov and Hutter, 2017).
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

/// Polynomial decay: a power of the share of steps that is left, from one rate to another, which then stays.
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

/// [`Cosine`] with restarts, each time over more steps (Loshchilov and Hutter, 2017).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WarmRestarts {
    /// The first rate, and the one after each restart.
    pub rate: f32,
    /// The rate before each restart.
    pub least: f32,
    /// Steps to the first restart.
    pub steps: usize,
    /// The ratio of each period to the previous one; at least 1.
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

/// A triangular wave (Smith, 2017).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cyclic {
    /// The first rate, to which each cycle returns.
    pub least: f32,
    /// The rate in between.
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

/// Linear warm-up to the first rate of another schedule, which then starts at its own step 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Warmup<S> {
    /// Steps of the warm-up; the first one already has a rate above 0.
    pub steps: usize,
    /// The schedule after the warm-up.
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

/// The one-cycle policy: up to the greatest rate and down to almost 0, each as half a cosine (Smith and Topin, 2018).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OneCycle {
    /// The greatest rate.
    pub greatest: f32,
    /// The total number of steps.
    pub steps: usize,
    /// Share of the steps on the way up.
    pub rising: f32,
    /// How much greater the greatest rate is than the first one.
    pub start_divisor: f32,
    /// How much greater the first rate is than the last one.
    pub end_divisor: f32,
}

impl OneCycle {
    /// With the usual options: 3/10 of the steps up, from 1/25 of the greatest rate, down to 1/10,000 of that.
    pub fn new(greatest: f32, steps: usize) -> OneCycle {
        OneCycle { greatest, steps, rising: 0.3, start_divisor: 25.0, end_divisor: 1e4 }
    }
}

impl Schedule for OneCycle {
    fn rate(&self, step: usize) -> f32 {
        let first = self.greatest / self.start_divisor;
        let last = first / self.end_divisor;
        // The ends of both parts are steps.
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
