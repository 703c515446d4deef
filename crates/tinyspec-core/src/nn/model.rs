//! Structs of parameters: what `#[model]` implements.

use super::differences::Differences;
use super::step::{self, TrainStep};
use super::{Name, Optimizer, weights};
use crate::tensor::collectives::broadcast_at;
use crate::tensor::{IntoDevice, from_bytes};
use crate::{Result, Tensor};
use std::collections::BTreeMap;
use std::panic::Location;
use std::path::Path;
use tinyspec_ir::{DType, Device, Dim, Shape};

/// The initial value of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Init {
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// Uniform, scaled by the sizes of both sides (Glorot and Bengio, 2010).
    Xavier,
    /// Normal, scaled by the size of the input side, the first axis (He et al., 2015).
    He,
    /// Normal with this standard deviation.
    Normal(f64),
}

impl Init {
    /// A new tensor; dtypes other than floats start with zeros or ones.
    #[track_caller]
    pub fn tensor(self, dtype: DType, shape: &[usize]) -> Tensor {
        let receptive: usize = shape.iter().skip(2).product();
        let (first, second) = (shape.first().copied().unwrap_or(1), shape.get(1).copied().unwrap_or(1));
        match self {
            Init::Ones => filled(1, dtype, shape),
            _ if !dtype.is_float() => filled(0, dtype, shape),
            Init::Xavier => {
                let bound = (6.0 / ((first + second) * receptive).max(1) as f64).sqrt();
                scaled(Tensor::uniform(shape, -1.0, 1.0), bound, dtype)
            }
            Init::He => scaled(Tensor::randn(shape), (2.0 / (first * receptive).max(1) as f64).sqrt(), dtype),
            Init::Normal(deviation) => scaled(Tensor::randn(shape), deviation, dtype),
            Init::Zeros => filled(0, dtype, shape),
        }
    }
}

#[track_caller]
fn scaled(tensor: Tensor, scale: f64, dtype: DType) -> Tensor {
    (tensor * scale).cast(dtype).contiguous()
}

/// Separate data: two parameters with equal initial values are two parameters.
#[track_caller]
fn filled(value: i64, dtype: DType, shape: &[usize]) -> Tensor {
    let location = Location::caller();
    let bytes = Tensor::full_of(shape, value, dtype).to_bytes();
    let shape: Shape = shape.iter().map(|&size| Dim::from(size)).collect();
    bytes.and_then(|bytes| from_bytes(location, &bytes, dtype, &shape)).unwrap_or_else(Tensor::failed)
}

/// The role of a tensor in its model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Trained by optimisers.
    Parameter,
    /// State other than parameters, such as a running mean: saved, loaded and moved with them, changed by calls,
    /// without a gradient.
    Buffer,
}

/// The declaration of a tensor of a model.
#[derive(Clone, Debug)]
pub struct Parameter<'a> {
    /// Its path: `layers.0.attn.q.weight`.
    pub name: &'a Name<'a>,
    /// Type of the elements.
    pub dtype: DType,
    /// The declared shape.
    pub shape: &'a [usize],
    /// Its initial value.
    pub init: Init,
    /// Its role.
    pub role: Role,
}

/// A struct of tensors and models: `#[model]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    label = "`#[model]` before the struct makes it one"
)]
pub trait Model: Sized {
    /// Constants that the declared shapes name, for functions that take the model.
    #[doc(hidden)]
    const SIZES: &'static [usize] = &[];

    /// Passes every tensor, with its name and role, to `visit`, in the order of the fields. `name` is that of the model
    /// itself: [`Name::ROOT`], or its path in another model.
    fn visit<'a>(&'a self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a Tensor));

    /// As [`Model::visit`], to change them.
    fn visit_mut<'a>(&'a mut self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a mut Tensor));

    /// Builds the struct from the tensors that `make` returns for its parameters and buffers.
    ///
    /// # Errors
    /// The first error of `make`.
    fn build(name: &Name, make: &mut dyn FnMut(Parameter) -> Result<Tensor>) -> Result<Self>;

    /// A new model, with its tensors initialised as the fields say (`#[model(init = …)]`).
    #[track_caller]
    fn init() -> Self {
        let made =
            Self::build(Name::ROOT, &mut |parameter| Ok(parameter.init.tensor(parameter.dtype, parameter.shape)));
        made.unwrap_or_else(|_| unreachable!("a new tensor carries its error"))
    }

    /// The parameters: all tensors but the buffers.
    fn parameters(&self) -> Vec<&Tensor> {
        self.named_parameters().into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The parameters, to be passed to an optimiser.
    fn parameters_mut(&mut self) -> Vec<&mut Tensor> {
        let mut tensors = vec![];
        self.visit_mut(Name::ROOT, &mut |_, role, tensor| {
            if role == Role::Parameter {
                tensors.push(tensor);
            }
        });
        tensors
    }

    /// The parameters, with names.
    fn named_parameters(&self) -> Vec<(String, &Tensor)> {
        named(self, |role| role == Role::Parameter)
    }

    /// The buffers, `#[model(buffer)]`, with names.
    fn named_buffers(&self) -> Vec<(String, &Tensor)> {
        named(self, |role| role == Role::Buffer)
    }

    /// All tensors, parameters and buffers: to be realised together, or passed to a prepared call.
    fn state(&self) -> Vec<&Tensor> {
        self.named_state().into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// All tensors with their names, as they are saved.
    fn named_state(&self) -> Vec<(String, &Tensor)> {
        named(self, |_| true)
    }

    /// The number of elements of all parameters.
    fn count(&self) -> usize {
        let sizes = |tensor: &Tensor| tensor.sizes().map_or(0, |sizes| sizes.iter().product());
        self.parameters().into_iter().map(sizes).sum()
    }

    /// The same model with every tensor on another device; on a tuple of devices, each gets the whole model.
    #[track_caller]
    fn to(mut self, device: impl IntoDevice) -> Self {
        let (location, device) = (Location::caller(), device.into_device().map_err(|error| error.in_op("to")));
        self.visit_mut(Name::ROOT, &mut |_, _, tensor| {
            *tensor = match &device {
                Ok(Device::Many(_)) => broadcast_at(location, tensor, device.clone()),
                _ => tensor.to_at(location, device.clone()),
            };
        });
        self
    }

    /// Writes all tensors as safetensors.
    ///
    /// # Errors
    /// As [`super::save`].
    fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        weights::save(path, &self.named_state())
    }

    /// Reads what [`Model::save`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read; or when names are missing or unexpected, or shapes or dtypes differ: all of them are
    /// listed.
    fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        build_from(Name::ROOT, &mut weights::load(path)?)?.map_err(|differences| weights::failed(path, differences))
    }

    /// A training step in one call: the gradients of the loss, the optimiser's update, and whatever the loss and the
    /// buffers still need, computed together.
    ///
    /// ```no_run
    /// # use tinyspec_core::{Result, Tensor, nn::{Adam, Cosine, Model, Schedule}};
    /// # fn train<M: Model>(mut model: M, loss_of: impl Fn(&mut M) -> Tensor) -> Result<()> {
    /// let mut optimizer = Adam::new(1e-3);
    /// let schedule = Cosine { rate: 1e-3, least: 1e-5, steps: 1000 };
    /// for step in 0..1000 {
    ///     schedule.apply(&mut optimizer, step);
    ///     let loss = loss_of(&mut model);                // lazy: `model.loss(&images, &labels)`
    ///     model.train_step(&loss, &mut optimizer)?;      // computes the loss too
    ///     println!("{}", loss.item::<f32>()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`train_step_with`](Model::train_step_with) clips the gradients, and computes more tensors with the step.
    ///
    /// # Errors
    /// When the loss is not a float scalar or does not depend on one of the parameters, which is named; and as
    /// [`grad`](crate::grad) and [`Optimizer::step`].
    #[track_caller]
    fn train_step(&mut self, loss: &Tensor, optimizer: &mut dyn Optimizer) -> Result<()> {
        step::train(self, loss, optimizer, &TrainStep::default()).map(drop)
    }

    /// As [`train_step`](Model::train_step), with options: `TrainStep { clip_norm: Some(1.0), ..default() }`. If the
    /// norm of the gradients is clipped, returns the norm before clipping.
    ///
    /// # Errors
    /// As [`train_step`](Model::train_step), and when a bound is negative or no number.
    #[track_caller]
    fn train_step_with(
        &mut self,
        loss: &Tensor,
        optimizer: &mut dyn Optimizer,
        options: TrainStep<'_>,
    ) -> Result<Option<Tensor>> {
        step::train(self, loss, optimizer, &options)
    }
}

/// The tensors of these roles.
fn named<M: Model>(model: &M, is_wanted: impl Fn(Role) -> bool) -> Vec<(String, &Tensor)> {
    let mut tensors = vec![];
    model.visit(Name::ROOT, &mut |name, role, tensor| {
        if is_wanted(role) {
            tensors.push((name.to_string(), tensor));
        }
    });
    tensors
}

/// Builds the model from named tensors, which are removed from the map; whatever is left is unexpected.
pub(super) fn build_from<M: Model>(
    model: &Name,
    found: &mut BTreeMap<String, Tensor>,
) -> Result<Result<M, Differences>> {
    let mut differences = Differences::default();
    let made = M::build(model, &mut |parameter| {
        let name = parameter.name.to_string();
        let Some(tensor) = found.remove(&name) else {
            differences.missing.push(name);
            return Ok(Tensor::full_of(parameter.shape, 0, parameter.dtype));
        };
        let sizes = tensor.sizes()?;
        if tensor.dtype() != parameter.dtype || sizes != parameter.shape {
            differences.wrong.push(format!(
                "`{name}` is {} {sizes:?}, the model wants {} {:?}",
                tensor.dtype(),
                parameter.dtype,
                parameter.shape
            ));
        }
        Ok(tensor)
    })?;
    differences.unexpected.extend(std::mem::take(found).into_keys());
    Ok(if differences.is_empty() { Ok(made) } else { Err(differences) })
}
