//! Random tensors: Threefry over a counter, from a key that the process draws for each tensor.

use super::collectives::broadcast_at;
use super::create::{IntoShape, from_bytes};
use super::methods::Call;
use super::{Element, Tensor};
use crate::Result;
use crate::lazy::LazyBuilder;
use std::hash::Hash;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};
use tinyspec_ir::ops::{draw, random};
use tinyspec_ir::{DType, Dim, ErrorKind, NodeId, Shape, eval::threefry};

/// Seed, and how many keys were drawn from it.
static STATE: Mutex<(u64, u64)> = Mutex::new((0, 0));

/// Random tensors made from now on follow from this seed.
pub fn set_seed(seed: u64) {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = (seed, 0);
}

/// The state of the random number generator, u64 `[2]`: the seed, and how many keys were drawn from it. Restoring it by
/// [`set_random_state`] repeats the same values. The contents are opaque.
///
/// ```standalone_crate
/// # use tinyspec_core::{Tensor, random_state, set_random_state, set_seed};
/// set_seed(7);
/// let before = random_state();
/// let first = Tensor::rand([3]).to_vec::<f32>()?;
/// assert_ne!(Tensor::rand([3]).to_vec::<f32>()?, first);
/// set_random_state(&before)?;
/// assert_eq!(Tensor::rand([3]).to_vec::<f32>()?, first);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
#[track_caller]
pub fn random_state() -> Tensor {
    let (seed, drawn) = *STATE.lock().unwrap_or_else(PoisonError::into_inner);
    Tensor::from_slice(&[seed, drawn], [2])
}

/// Restores a state of [`random_state`]: random tensors made from now on are those that followed it.
///
/// # Errors
/// When it is not u64 `[2]`, or cannot be computed.
#[track_caller]
pub fn set_random_state(state: &Tensor) -> Result<()> {
    let location = Location::caller();
    let values = state.to_vec::<u64>().map_err(|error| error.in_op("set_random_state").at(location))?;
    let ([_], &[seed, drawn]) = (state.shape(), &values[..]) else {
        let message = format!("a state of {}", tinyspec_ir::dim::show(state.shape()));
        let error = tinyspec_ir::Error::new(ErrorKind::Shape, "set_random_state", message)
            .help("what `random_state` gave: u64 [2]");
        return Err(error.at(location).into());
    };
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = (seed, drawn);
    Ok(())
}

/// The next key. It is data, not a constant of the graph: one kernel serves every draw of a shape.
fn next_key(location: &'static Location<'static>) -> Result<Tensor> {
    let key = {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += 1;
        threefry(state.1, state.0)
    };
    Ok(from_bytes(location, u64::bytes(&[key]), DType::U64, &Shape::new())?.internal())
}

/// The next key, on the devices of `like` if there is such a tensor.
fn key_for(location: &'static Location<'static>, like: Option<&Tensor>) -> Result<Tensor> {
    let key = next_key(location)?;
    Ok(match like.and_then(Tensor::device) {
        Some(device) if key.device() != Some(device) => broadcast_at(location, &key, Ok(device.clone())),
        _ => key,
    })
}

/// A draw, whose nodes all draws of the same parameters share. A loop may change the `numbers` in each step, but not the rest.
fn draw_call(op: &'static str, location: &'static Location<'static>, (fixed, numbers): (impl Hash, &[f64])) -> Call {
    let mut call = Call::of_row(op, location);
    call.parameter(fixed, false);
    numbers.iter().for_each(|number| call.parameter(number.to_bits(), true));
    call
}

/// Draws from the next key, on the devices of `like`.
fn drawn(
    op: &'static str,
    location: &'static Location<'static>,
    like: Option<&Tensor>,
    parameters: (impl Hash, &[f64]),
    build: impl FnOnce(&mut LazyBuilder, NodeId) -> tinyspec_ir::Result<NodeId>,
) -> Tensor {
    match key_for(location, like) {
        Ok(key) => {
            let mut call = draw_call(op, location, parameters);
            let key = call.operand(&key, DType::Void);
            call.tensor(|builder| build(builder, key))
        }
        Err(error) => Tensor::failed(error),
    }
}

fn uniform(op: &'static str, location: &'static Location<'static>, shape: &Shape, low: f64, high: f64) -> Tensor {
    drawn(op, location, None, (shape, &[low, high]), |builder, key| {
        random::uniform(builder, key, shape, low, high, DType::F32)
    })
}

/// Draws from the seed of the process ([`set_seed`]): the same values on every device.
impl Tensor {
    /// The next key of the process, a u64 scalar, for methods that take one (`dropout_with`, …) and for functions.
    #[track_caller]
    pub fn random_key() -> Tensor {
        next_key(Location::caller()).unwrap_or_else(Tensor::failed)
    }

    /// Standard normal numbers, f32.
    #[track_caller]
    pub fn randn(shape: impl IntoShape) -> Tensor {
        let shape = shape.into_shape();
        drawn("randn", Location::caller(), None, (&shape, &[]), |builder, key| {
            random::randn(builder, key, &shape, DType::F32)
        })
    }

    /// Normal numbers of this mean and standard deviation, f32.
    #[track_caller]
    pub fn normal(shape: impl IntoShape, mean: f64, deviation: f64) -> Tensor {
        let shape = shape.into_shape();
        drawn("normal", Location::caller(), None, (&shape, &[mean, deviation]), |builder, key| {
            draw::normal(builder, key, &shape, mean, deviation, DType::F32)
        })
    }

    /// Numbers in `[low, high)`, f32.
    #[track_caller]
    pub fn uniform(shape: impl IntoShape, low: f64, high: f64) -> Tensor {
        uniform("uniform", Location::caller(), &shape.into_shape(), low, high)
    }

    /// Numbers in `[0, 1)`, f32.
    #[track_caller]
    pub fn rand(shape: impl IntoShape) -> Tensor {
        uniform("rand", Location::caller(), &shape.into_shape(), 0.0, 1.0)
    }

    /// Whole numbers in `[low, high)`, as i32 if that can hold them, else as i64.
    #[track_caller]
    pub fn randint(shape: impl IntoShape, low: i64, high: i64) -> Tensor {
        let shape = shape.into_shape();
        let reaches = i32::try_from(low).is_ok() && i32::try_from(high.saturating_sub(1)).is_ok();
        let dtype = if reaches { DType::I32 } else { DType::I64 };
        drawn("randint", Location::caller(), None, ((&shape, low, high), &[]), |builder, key| {
            draw::randint(builder, key, &shape, low, high, dtype)
        })
    }

    /// Standard normal numbers of this tensor's shape and dtype.
    #[track_caller]
    pub fn randn_like(&self) -> Tensor {
        self.drawn_like("randn_like", Location::caller(), |builder, key, shape, dtype| {
            draw::normal(builder, key, shape, 0.0, 1.0, dtype)
        })
    }

    /// Numbers in `[0, 1)` of this tensor's shape and dtype.
    #[track_caller]
    pub fn rand_like(&self) -> Tensor {
        self.drawn_like("rand_like", Location::caller(), |builder, key, shape, dtype| {
            random::uniform(builder, key, shape, 0.0, 1.0, dtype)
        })
    }

    fn drawn_like(
        &self,
        op: &'static str,
        location: &'static Location<'static>,
        build: impl FnOnce(&mut LazyBuilder, NodeId, &Shape, DType) -> tinyspec_ir::Result<NodeId>,
    ) -> Tensor {
        match self.node() {
            Ok(node) => {
                let (shape, dtype) = (&node.props.shape, node.props.dtype);
                drawn(op, location, Some(self), ((shape, dtype), &[]), |builder, key| build(builder, key, shape, dtype))
            }
            Err(error) => Tensor::failed(error),
        }
    }

    /// 0, 1, … `n - 1` in random order (i32): the result of `permutation_with` for the next key, but sorted on the
    /// host.
    ///
    /// ```standalone_crate
    /// # use tinyspec_core::{Tensor, set_seed};
    /// set_seed(7);
    /// let order = Tensor::randperm(50).to_vec::<i32>()?;
    /// set_seed(7);
    /// assert_eq!(Tensor::random_key().permutation_with(50).to_vec::<i32>()?, order);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    #[track_caller]
    pub fn randperm(n: usize) -> Tensor {
        let location = Location::caller();
        let order = || -> Result<Tensor> {
            let key = next_key(location)?.item::<u64>()?;
            let mut order: Vec<(u64, i32)> =
                (0..n as u64).zip(0i32..).map(|(counter, number)| (threefry(counter, key), number)).collect();
            order.sort_unstable();
            let order: Vec<i32> = order.into_iter().map(|(_, number)| number).collect();
            from_bytes(location, i32::bytes(&order), DType::I32, &Shape::from_iter([Dim::from(n)]))
        };
        match i32::try_from(n) {
            Ok(_) => order().unwrap_or_else(Tensor::failed),
            Err(_) => Tensor::refused(location, ErrorKind::Value, "randperm", format!("{n} numbers are too many")),
        }
    }

    /// 1 with each element as its probability, else 0, in this dtype.
    #[track_caller]
    pub fn bernoulli(&self) -> Tensor {
        self.with_key("bernoulli", Location::caller(), ((), &[]), |builder, x, key| draw::bernoulli(builder, x, key))
    }

    /// Zeroes each element with probability `p` and divides the others by `1 - p`. For training only.
    ///
    /// ```
    /// # use tinyspec_core::{Tensor, set_seed};
    /// set_seed(1);
    /// let x = Tensor::ones([1000]).dropout(0.25);
    /// assert!((x.mean(.., false).item::<f32>()? - 1.0).abs() < 0.1);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    #[track_caller]
    pub fn dropout(&self, p: f64) -> Tensor {
        self.with_key("dropout", Location::caller(), ((), &[p]), |builder, x, key| draw::dropout(builder, x, key, p))
    }

    /// `count` positions along the last axis (i32), drawn with probabilities proportional to its elements; without
    /// `replacement` they are distinct. Elements that are not positive are never drawn: once no others are left, the
    /// position is -1.
    ///
    /// ```
    /// # use tinyspec_core::Tensor;
    /// let weights = Tensor::from_slice(&[0f32, 1.0, 0.0, 3.0], [4]);
    /// let mut drawn = weights.multinomial(3, false).to_vec::<i32>()?;
    /// drawn.sort_unstable();
    /// assert_eq!(drawn, [-1, 1, 3]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    #[track_caller]
    pub fn multinomial(&self, count: i64, replacement: bool) -> Tensor {
        self.with_key("multinomial", Location::caller(), ((count, replacement), &[]), |builder, x, key| {
            draw::multinomial(builder, x, key, count, replacement)
        })
    }

    fn with_key(
        &self,
        op: &'static str,
        location: &'static Location<'static>,
        parameters: (impl Hash, &[f64]),
        build: impl FnOnce(&mut LazyBuilder, NodeId, NodeId) -> tinyspec_ir::Result<NodeId>,
    ) -> Tensor {
        match key_for(location, Some(self)) {
            Ok(key) => {
                let mut call = draw_call(op, location, parameters);
                let (x, key) = (call.operand(self, DType::Void), call.operand(&key, DType::Void));
                call.tensor(|builder| build(builder, x, key))
            }
            Err(error) => Tensor::failed(error),
        }
    }
}
