//! What training needs besides tensors: optimisers and files of weights.

mod optim;
mod weights;

pub use optim::{Adam, Optimizer, Sgd, SgdOptions};
pub use weights::{load, save};
