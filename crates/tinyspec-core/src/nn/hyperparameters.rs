//! The numbers that optimisers are constructed with. A constructor returns no Result, so an impossible number is an error that the
//! optimiser's steps return, with the line of the constructor.

use crate::{Error, Result};
use std::panic::Location;
use tinyspec_ir::ErrorKind;

/// A hyperparameter, by name, with its value and the values that it may have.
pub(super) struct Hyperparameter {
    name: &'static str,
    value: f32,
    is_below_one: bool,
}

/// One that is finite and not negative, such as a weight decay.
pub(super) fn amount(name: &'static str, value: f32) -> Hyperparameter {
    Hyperparameter { name, value, is_below_one: false }
}

/// The share of a running mean that is kept: from 0 to below 1.
pub(super) fn share(name: &'static str, value: f32) -> Hyperparameter {
    Hyperparameter { name, value, is_below_one: true }
}

/// A flag, as 1 or 0.
pub(super) fn flag(name: &'static str, value: bool) -> Hyperparameter {
    amount(name, value.into())
}

/// Those that Adam's variants have in common.
pub(super) fn of_adam([first, second]: [f32; 2], epsilon: f32, weight_decay: f32) -> [Hyperparameter; 4] {
    [
        share("betas[0]", first),
        share("betas[1]", second),
        amount("epsilon", epsilon),
        amount("weight_decay", weight_decay),
    ]
}

impl Hyperparameter {
    /// # Errors
    /// When it has a value that it may not have.
    #[track_caller]
    pub fn check(&self, op: &str) -> Result<()> {
        let Hyperparameter { name, value, is_below_one } = *self;
        let (is_valid, expected) = match is_below_one {
            true => ((0.0..1.0).contains(&value), "at least 0 and below 1"),
            false => (value.is_finite() && value >= 0.0, "finite and not negative"),
        };
        require(op, is_valid, format!("{name} is {value}, it must be {expected}"))
    }
}

/// # Errors
/// With this explanation, where options contradict each other.
#[track_caller]
pub(super) fn require(op: &str, holds: bool, explanation: impl Into<String>) -> Result<()> {
    if holds {
        return Ok(());
    }
    let error = tinyspec_ir::Error::new(ErrorKind::Value, op, explanation.into());
    Err(Error::Graph(error.at(Location::caller())))
}

/// The options of an optimiser, as numbers: they are checked when it is made, and saved with a training.
pub(super) trait Options: Copy {
    fn numbers(&self) -> Vec<Hyperparameter>;
}

/// The options, if all of their numbers are valid.
#[track_caller]
pub(super) fn checked<O: Options>(op: &str, options: O) -> Result<O> {
    for number in options.numbers() {
        number.check(op)?;
    }
    Ok(options)
}

/// The options by name, as they are saved.
pub(super) fn named<O: Options>(options: &Result<O>) -> Result<Vec<(&'static str, f32)>> {
    let numbers = options.clone()?.numbers();
    Ok(numbers.into_iter().map(|number| (number.name, number.value)).collect())
}
