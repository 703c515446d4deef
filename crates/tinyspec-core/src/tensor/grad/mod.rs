//! Gradients of lazy tensors: the graph of the loss goes through the language's gradient and comes back lazy.

mod function;
mod nodes;

use super::Tensor;
use crate::execute::settled_walk;
use crate::lazy::callify::Opened;
use crate::lazy::{Node, Walk};
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Builder, Const, DType, Dim, ErrorKind, NodeId, gradient};

/// The gradients of a scalar `loss` with respect to each of `wanted`, lazily.
///
/// Each result of a method or a constructor is a tensor of its own, whatever others are equal to it; its clones are the same
/// tensor, and so is what a method returns that has nothing to do, as `reshape` to the shape that is there or `cast` to the
/// dtype. All may be asked for: what a program starts from, values on the way, and what was detached.
///
/// The first read of one of these gradients, or of a value computed from it, computes all those that the program still holds.
///
/// Reading a tensor changes no gradient: how it was computed is remembered. A loss that was read keeps the tensors it was computed
/// from alive until its gradient is taken or it is dropped; only the 16 most recent losses of a thread do. A tensor that was read also
/// keeps alive the data that were made since the run before, such as a batch, and detached values, up to 64 MiB in each thread.
/// Numbers, keys of random values and positions of masks are always kept, since the caller has no tensor of them. If a derivative
/// needs another value that no tensor holds any more, the value is computed again; if it is data, that is an error. A detached
/// value, such as a weight after an optimiser's step, is data; a state that was assigned has the history of what it was assigned.
///
/// ```
/// # use tinyspec_core::{Tensor, grad};
/// let (a, b) = (Tensor::ones([2]), Tensor::ones([2]));
/// let loss = (&a * &b * &b).sum(.., false);
/// assert_eq!(loss.item::<f32>()?, 2.0);
/// let gradients = grad(&loss, &[&a, &b])?;
/// assert_eq!(gradients[0].to_vec::<f32>()?, [1.0, 1.0]);
/// assert_eq!(gradients[1].to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// # Errors
/// When the loss is not a float scalar, an op on the way has no gradient, the loss does not depend on a wanted tensor, or a
/// value that is needed is gone.
#[track_caller]
pub fn grad(loss: &Tensor, wanted: &[&Tensor]) -> Result<Vec<Tensor>> {
    let location = Location::caller();
    let gradients = connected(location, loss, wanted)?;
    gradients
        .into_iter()
        .enumerate()
        .map(|(position, gradient)| {
            gradient.ok_or_else(|| {
                tinyspec_ir::Error::new(
                    ErrorKind::Gradient,
                    "grad",
                    format!("the loss does not depend on wanted tensor {position}"),
                )
                .help(
                    "what was detached, as optimisers do, has no history; if there is no dependence, \
                     `grad_or_zeros` gives zeros",
                )
                .at(location)
                .into()
            })
        })
        .collect()
}

/// As [`grad`], with zeros for tensors that the loss does not depend on.
///
/// # Errors
/// As [`grad`], but for unconnected tensors.
#[track_caller]
pub fn grad_or_zeros(loss: &Tensor, wanted: &[&Tensor]) -> Result<Vec<Tensor>> {
    let gradients = connected(Location::caller(), loss, wanted)?;
    Ok(gradients
        .into_iter()
        .zip(wanted)
        .map(|(gradient, wanted)| gradient.unwrap_or_else(|| wanted.zeros_like()))
        .collect())
}

pub(crate) fn connected(
    location: &'static Location<'static>,
    loss: &Tensor,
    wanted: &[&Tensor],
) -> Result<Vec<Option<Tensor>>> {
    let mut roots = vec![loss.node()?.clone()];
    for tensor in wanted {
        roots.push(tensor.node()?.clone());
    }
    let refuse = |message: String, help: &str| {
        let error = tinyspec_ir::Error::new(ErrorKind::Gradient, "grad", message).help(help);
        Err(Error::from(error.at(location)))
    };
    let (dtype, shape) = (loss.dtype(), loss.shape());
    if !dtype.is_float() || !roots[0].props.element_count().is(1) {
        let message = format!("the loss must be a float scalar, found {dtype} {}", tinyspec_ir::dim::show(shape));
        return refuse(
            message,
            match dtype.is_float() {
                true => "`.mean(.., false)` or `.sum(.., false)` makes one number of it",
                false => "no gradient flows through whole numbers and comparisons: make the loss of floats",
            },
        );
    }
    if let Some(position) = wanted.iter().position(|tensor| !tensor.dtype().is_float()) {
        let message = format!("wanted tensor {position} is {}: only floats have gradients", wanted[position].dtype());
        return refuse(message, "leave it out of the wanted tensors");
    }
    let walk = settled_walk(&roots, &roots[1..])?;
    let states = walk.states_beside();
    let call = Call { location, walk: &walk, wanted: &roots[1..], dtype, shape };
    let gradients = match function::of(&call)? {
        Some(gradients) => gradients,
        None => nodes::of(&call)?,
    };
    become_gradients(gradients.iter().flatten(), roots.iter().take(1).chain(&states));
    roots[0].become_differentiated();
    Ok(gradients)
}

/// A call of [`grad`] with valid arguments.
struct Call<'a> {
    location: &'static Location<'static>,
    /// The loss and what is wanted are its roots.
    walk: &'a Walk,
    wanted: &'a [Arc<Node>],
    /// Those of the loss.
    dtype: DType,
    shape: &'a [Dim],
}

/// The graph of a call with its gradients.
struct Derived {
    opened: Opened,
    /// Nodes before this one are of the forward pass.
    written: usize,
    /// Those of the wanted tensors.
    gradients: Vec<Option<NodeId>>,
}

impl Call<'_> {
    fn located(&self, error: tinyspec_ir::Error) -> Error {
        error.at(self.location).into()
    }

    /// The gradients of a walk.
    fn derive(&self, walk: &Walk) -> Result<Derived> {
        let mut opened = walk.open(self.wanted).map_err(|error| self.located(error))?;
        let written = opened.graph.len();
        let one = opened.graph.constant(Const::float(self.dtype, 1.0));
        let ones = tinyspec_ir::ops::movement::expand(&mut opened.graph, one, self.shape)?;
        let outputs = &opened.outputs;
        let gradients = gradient::gradient_or_none(&mut opened.graph, &[(outputs[0], ones)], &outputs[1..]);
        Ok(Derived { gradients: gradients.map_err(|error| self.located(error))?, written, opened })
    }
}

/// Makes the first run that needs some of these gradients compute all of them, together with the other results of the same forward
/// pass: the loss, if the program still holds it, and the new states of buffers.
pub(crate) fn become_gradients<'a>(
    tensors: impl Iterator<Item = &'a Tensor>,
    beside: impl Iterator<Item = &'a Arc<Node>>,
) {
    let nodes: Vec<&Arc<Node>> = tensors.filter_map(|tensor| tensor.node().ok()).collect();
    Node::become_gradients(&nodes, beside);
}
