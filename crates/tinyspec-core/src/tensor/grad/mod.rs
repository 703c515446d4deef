//! Gradients of lazy tensors: the graph of the loss goes through the language's gradient and comes back lazy.

mod function;
mod nodes;

use super::Tensor;
use crate::execute::settled_walk;
use crate::lazy::callify::Opened;
use crate::lazy::{LazyBuilder, Node, Walk};
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Builder, Const, DType, Dim, ErrorKind, NodeId, gradient};

/// Lazy gradients of a scalar `loss` with respect to each tensor in `wanted`.
///
/// Each result of a method or a constructor is a tensor of its own, even if another one has the same value. Its clones are the same
/// tensor, as is the result of a method that has nothing to do, such as `reshape` to the current shape or `cast` to the current
/// dtype. Any tensor may be in `wanted`: an input, an intermediate value, or a detached one.
///
/// The first read of one of these gradients, or of a value computed from it, computes all those that the program still holds.
///
/// Reading a tensor changes no gradient: how it was computed is remembered. A loss that was read keeps the tensors it was computed
/// from alive until its gradient is taken or it is dropped; only the 16 most recent losses of a thread do. A tensor that was read also
/// keeps alive detached values and data created since the previous run, such as a batch, up to 64 MiB per thread.
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
    /// Its roots are the loss and the wanted tensors.
    walk: &'a Walk,
    wanted: &'a [Arc<Node>],
    /// Of the loss.
    dtype: DType,
    shape: &'a [Dim],
}

/// The graph of the forward pass, extended by the gradients.
struct Derived {
    opened: Opened,
    /// Nodes before this one are of the forward pass.
    written: usize,
    /// One a wanted tensor.
    gradients: Vec<Option<NodeId>>,
}

impl Call<'_> {
    fn located(&self, error: tinyspec_ir::Error) -> Error {
        error.at(self.location).into()
    }

    /// Builds the graph of a walk and derives its gradients.
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

/// A value of the forward pass as a gradient. If no tensor refers to the node, the result is a copy, since other gradients may return the
/// same node.
fn value_as_gradient(builder: &mut LazyBuilder, node: NodeId) -> tinyspec_ir::Result<NodeId> {
    if builder.node(node).identity().is_tensor() { Ok(node) } else { builder.twin(node) }
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
