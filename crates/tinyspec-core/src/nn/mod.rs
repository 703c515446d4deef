//! Training: optimisers, learning-rate schedules, gradient clipping, files of weights.

mod adaptive;
mod clip;
mod differences;
mod header;
mod hyperparameters;
mod memory;
mod model;
mod name;
mod optim;
mod part;
mod resume;
mod schedule;
mod step;
mod variants;
mod weights;

pub use adaptive::{Adagrad, AdagradOptions, Lamb, LambOptions, RmsProp, RmsPropOptions};
pub use clip::{clip_norm, clip_value};
pub use memory::Memory;
pub use model::{Init, Model, Parameter, Role};
pub use name::Name;
pub use optim::{Adam, AdamOptions, Optimizer, Sgd, SgdOptions};
#[doc(hidden)]
pub use part::{Made, NoPart, NotMade, Part};
pub use resume::{resume, save_training};
pub use schedule::{
    Constant, Cosine, Cyclic, Exponential, Linear, MultiStep, OneCycle, Polynomial, Schedule, StepDecay, WarmRestarts,
    Warmup,
};
pub use step::TrainStep;
pub use variants::{Adadelta, Adamax, Lion, Nadam, Radam, VariantOptions};
pub use weights::{load, save};
