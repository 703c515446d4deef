//! Random tensors: Threefry over a counter, from a key that the process draws for each tensor.

use super::create::{IntoShape, from_bytes};
use super::{Element, Tensor, apply};
use crate::Result;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};
use tinyspec_ir::ops::random;
use tinyspec_ir::{DType, Shape, eval::threefry};

/// Seed, and how many keys were drawn from it.
static STATE: Mutex<(u64, u64)> = Mutex::new((0, 0));

/// Random tensors made from now on follow from this seed.
pub fn set_seed(seed: u64) {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = (seed, 0);
}

/// The next key. It is data, not a constant of the graph: one kernel serves every draw of a shape.
fn next_key(location: &'static Location<'static>) -> Result<Tensor> {
    let key = {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += 1;
        threefry(state.1, state.0)
    };
    from_bytes(location, u64::bytes(&[key]), DType::U64, &Shape::new())
}

impl Tensor {
    /// Standard normal numbers, f32.
    #[track_caller]
    pub fn randn(shape: impl IntoShape) -> Tensor {
        let (location, shape) = (Location::caller(), shape.into_shape());
        match next_key(location) {
            Ok(key) => apply(location, &[&key], |builder, nodes| random::randn(builder, nodes[0], &shape, DType::F32)),
            Err(error) => Tensor::failed(error),
        }
    }

    /// Numbers in `[low, high)`, f32.
    #[track_caller]
    pub fn uniform(shape: impl IntoShape, low: f64, high: f64) -> Tensor {
        let (location, shape) = (Location::caller(), shape.into_shape());
        match next_key(location) {
            Ok(key) => apply(location, &[&key], |builder, nodes| {
                random::uniform(builder, nodes[0], &shape, low, high, DType::F32)
            }),
            Err(error) => Tensor::failed(error),
        }
    }
}
