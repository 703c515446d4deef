//! What training needs besides tensors: optimisers and files of weights.

mod model;
mod optim;
mod part;
mod weights;

#[doc(hidden)]
pub use model::join;
pub use model::{Init, Model, Parameter};
pub use optim::{Adam, Optimizer, Sgd, SgdOptions};
#[doc(hidden)]
pub use part::{Made, NoPart, NotMade, Part};
pub use weights::{load, save};
