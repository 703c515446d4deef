//! The state of optimisers, by name, which can be saved and restored.

use super::differences::Differences;
use crate::tensor::collectives::broadcast;
use crate::tensor::from_bytes;
use crate::{Error, Result, Tensor, realize_all};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use tinyspec_ir::dim::show;
use tinyspec_ir::{DType, Device, ErrorKind, Shape};

/// One named item of an optimiser's state: a number, or a tensor for each weight. It dereferences to its tensors.
#[derive(Clone, Debug)]
pub struct Memory {
    name: &'static str,
    of: Of,
    tensors: Vec<Tensor>,
}

/// The kind of a memory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Of {
    Training,
    Weights,
    /// Unused with these options.
    Nothing,
}

impl Deref for Memory {
    type Target = [Tensor];

    fn deref(&self) -> &[Tensor] {
        &self.tensors
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [Tensor] {
        &mut self.tensors
    }
}

/// A number as data rather than a constant of the graph, so that one plan serves all values.
#[track_caller]
pub(super) fn scalar(value: f32) -> Tensor {
    from_bytes(Location::caller(), &value.to_le_bytes(), DType::F32, &Shape::new()).unwrap_or_else(Tensor::failed)
}

/// Zeros as separate data: if equal initial values were one tensor, the first step would be a different program from
/// all others.
#[track_caller]
fn zeros(weight: &Tensor) -> Result<Tensor> {
    let dtype = weight.dtype().accumulator();
    let count: usize = weight.sizes()?.iter().product();
    from_bytes(Location::caller(), &vec![0; count * dtype.size()], dtype, &weight.shape().iter().cloned().collect())
}

/// The value on the devices of `weight`: sharded like it, or whole on each.
#[track_caller]
fn on_devices_of(value: &Tensor, weight: &Tensor) -> Tensor {
    match weight.device() {
        Some(device) if value.device() == Some(device) => value.clone(),
        Some(device @ Device::Many(_)) if value.shape() != weight.shape() || weight.axis() != Some(0) => {
            broadcast(value, device)
        }
        Some(device) => value.to(device),
        None => value.clone(),
    }
}

impl Memory {
    /// Whether there is a tensor for each weight.
    pub(super) fn is_of_weights(&self) -> bool {
        self.of == Of::Weights
    }

    /// A number, such as the learning rate: f32, one tensor of shape `()`.
    #[track_caller]
    pub fn number(name: &'static str, value: f32) -> Memory {
        Memory { name, of: Of::Training, tensors: vec![scalar(value)] }
    }

    /// A tensor for each weight, of its shape, in at least f32. It is zeros at the first step; before that there are no
    /// tensors.
    pub fn of_weights(name: &'static str) -> Memory {
        Memory { name, of: Of::Weights, tensors: vec![] }
    }

    /// As [`Memory::of_weights`], but empty unless `is_used`.
    pub fn of_weights_if(is_used: bool, name: &'static str) -> Memory {
        Memory { name, of: if is_used { Of::Weights } else { Of::Nothing }, tensors: vec![] }
    }

    /// Whether this is its name.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Sets a number.
    pub(super) fn set(&mut self, value: Tensor) {
        self.tensors = vec![value];
    }

    /// Its tensors with their names: `rate`, `means.0`, `means.1`, …
    pub(super) fn named(&self) -> impl Iterator<Item = (String, &Tensor)> {
        let name = |position| match self.of {
            Of::Training => self.name.to_string(),
            Of::Weights | Of::Nothing => format!("{}.{position}", self.name),
        };
        self.tensors.iter().enumerate().map(move |(position, tensor)| (name(position), tensor))
    }

    /// Initialises it, once, for these weights: in at least f32, since squares of small gradients would underflow in
    /// narrower floats.
    #[track_caller]
    fn start(&mut self, weights: &[&mut Tensor]) -> Result<()> {
        match self.of {
            Of::Training => {
                if let Some(weight) = weights.first() {
                    self.tensors[0] = on_devices_of(&self.tensors[0], weight);
                }
            }
            Of::Weights if self.tensors.is_empty() => {
                let mut tensors = Vec::with_capacity(weights.len());
                for weight in weights {
                    tensors.push(on_devices_of(&zeros(weight)?, weight));
                }
                self.tensors = tensors;
            }
            Of::Weights => {
                self.check(weights)?;
                for (tensor, weight) in self.tensors.iter_mut().zip(weights) {
                    *tensor = on_devices_of(tensor, weight);
                }
            }
            Of::Nothing => {}
        }
        Ok(())
    }

    /// Refuses weights that it does not belong to.
    #[track_caller]
    fn check(&self, weights: &[&mut Tensor]) -> Result<()> {
        let location = Location::caller();
        let refuse = |kind, message| {
            let error = tinyspec_ir::Error::new(kind, "step", message).help(
                "each step of an optimiser, and each after `load_state`, takes the same weights in the same order",
            );
            Err(Error::Graph(error.at(location)))
        };
        if self.tensors.len() != weights.len() {
            let message =
                format!("{} weights, but the optimiser remembers `{}` of {}", weights.len(), self.name, self.len());
            return refuse(ErrorKind::Arity, message);
        }
        for (position, (tensor, weight)) in self.tensors.iter().zip(weights).enumerate() {
            let wanted = weight.dtype().accumulator();
            if tensor.shape() != weight.shape() || tensor.dtype() != wanted {
                let kind = if tensor.dtype() == wanted { ErrorKind::Shape } else { ErrorKind::DType };
                let message = format!(
                    "weight {position} is {} {}, but the optimiser remembers `{}.{position}` as {} {}",
                    weight.dtype(),
                    show(weight.shape()),
                    self.name,
                    tensor.dtype(),
                    show(tensor.shape())
                );
                return refuse(kind, message);
            }
        }
        Ok(())
    }
}

/// Starts a step. It computes what earlier steps left lazy, since otherwise a loop that reads nothing but its losses
/// would build a longer program each time. It also initialises the state, and computes that at once, so that the first
/// step is the same graph as all others. The run that first reads results of the step then also computes the states
/// that the step assigns.
#[track_caller]
pub(super) fn begin(memory: &mut [Memory], weights: &[&mut Tensor]) -> Result<()> {
    compute(weights.iter().map(|weight| &**weight).chain(remembered(memory)))?;
    for memory in memory.iter_mut() {
        memory.start(weights)?;
    }
    compute(remembered(memory))?;
    weights.iter().map(|weight| &**weight).chain(remembered(memory)).for_each(Tensor::become_loop_carried);
    Ok(())
}

fn remembered(memory: &[Memory]) -> impl Iterator<Item = &Tensor> {
    memory.iter().flat_map(|memory| memory.iter())
}

fn compute<'a>(values: impl Iterator<Item = &'a Tensor>) -> Result<()> {
    let undone: Vec<&Tensor> = values.filter(|value| !value.is_realized()).collect();
    if undone.is_empty() { Ok(()) } else { realize_all(&undone) }
}

/// Replaces the state by named tensors: all of it, or none if something is wrong.
pub(super) fn restore(memory: &mut [Memory], mut found: BTreeMap<String, Tensor>) -> Result<(), Differences> {
    let place = |name: &str| {
        let (list, position) = name.rsplit_once('.')?;
        memory.iter().any(|memory| memory.of == Of::Weights && memory.name == list).then(|| position.parse().ok())?
    };
    let places: BTreeSet<usize> = found.keys().filter_map(|name| place(name)).collect();
    let mut differences = Differences::default();
    // All state of a weight has its shape.
    let mut first_of: Vec<Option<(String, Tensor)>> = vec![None; places.len()];
    let mut restored: Vec<Vec<Tensor>> = vec![];
    for part in &*memory {
        let names: Vec<String> = match part.of {
            Of::Training => vec![part.name.to_string()],
            Of::Weights => (0..places.len()).map(|position| format!("{}.{position}", part.name)).collect(),
            Of::Nothing => vec![],
        };
        let mut tensors = vec![];
        for (position, name) in names.iter().enumerate() {
            let Some(tensor) = found.remove(name) else {
                differences.missing.push(name.clone());
                continue;
            };
            let dtype = tensor.dtype();
            let is_wanted = match part.of {
                Of::Training => dtype == DType::F32 && tensor.shape().is_empty(),
                _ => dtype.is_float() && dtype == dtype.accumulator(),
            };
            if !is_wanted {
                let wanted = if part.of == Of::Training { "f32 []" } else { "f32 or f64" };
                let shape = show(tensor.shape());
                differences.wrong.push(format!("`{name}` is {dtype} {shape}, the optimiser wants {wanted}"));
            }
            if part.of == Of::Weights {
                match &first_of[position] {
                    Some((other, first)) if first.shape() != tensor.shape() => {
                        let (own, shape) = (show(tensor.shape()), show(first.shape()));
                        differences.wrong.push(format!("`{name}` has {own}, `{other}` has {shape}"));
                    }
                    Some(_) => {}
                    None => first_of[position] = Some((name.clone(), tensor.clone())),
                }
            }
            tensors.push(tensor);
        }
        restored.push(tensors);
    }
    differences.unexpected.extend(found.into_keys());
    if !differences.is_empty() {
        return Err(differences);
    }
    for (memory, tensors) in memory.iter_mut().zip(restored) {
        memory.tensors = tensors;
    }
    Ok(())
}
