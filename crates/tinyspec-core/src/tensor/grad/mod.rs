//! Gradients of lazy tensors: the graph of the loss is differentiated, and the result becomes lazy nodes again.

mod end;
mod forward;
mod function;
mod nodes;

use super::Tensor;
use crate::device::{Device, device_of};
use crate::execute::settled_walk;
use crate::lazy::callify::Opened;
use crate::lazy::{LazyBuilder, Node, Walk};
use crate::{Error, Result};
use forward::Forward;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, Const, DType, Dim, ErrorKind, NodeId, Op, gradient};

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
                let message = format!("the loss does not depend on wanted tensor {position}");
                let (message, help) = match end::between(loss, wanted[position]) {
                    Some(end) => (format!("{message} but through {}", end.what), end.help),
                    None => (message, NO_DEPENDENCE),
                };
                tinyspec_ir::Error::new(ErrorKind::Gradient, "grad", message).help(help).at(location).into()
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

const NO_DEPENDENCE: &str = "a tensor that was assigned after the loss was made is another one, and what was detached, as optimisers do, has \
                             no history; if there is no dependence, `grad_or_zeros` gives zeros";

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
    let states = walk.next_states();
    let walk = walk.with_moved_windows(&roots[1..])?;
    let call = Call { location, wanted: &roots[1..], dtype, shape };
    let gradients = match walk.derivation(call.wanted) {
        Some(derivation) => function::of(&call, Forward::of_walk(derivation))?,
        None => {
            let opened = call.open(&walk)?;
            match Forward::of_opened(opened) {
                Ok(forward) => function::of(&call, forward)?,
                Err(opened) => nodes::of(&call, *opened)?,
            }
        }
    };
    walk.nodes().for_each(|value| value.become_differentiated());
    become_gradients(gradients.iter().flatten(), roots.iter().take(1).chain(&states));
    roots[0].become_differentiated();
    Ok(gradients)
}

/// A call of [`grad`] with valid arguments.
struct Call<'a> {
    location: &'static Location<'static>,
    wanted: &'a [Arc<Node>],
    /// Of the loss.
    dtype: DType,
    shape: &'a [Dim],
}

/// The gradients in a graph.
struct Derived {
    /// Nodes before this one are of the forward pass.
    written: usize,
    /// One per wanted tensor.
    gradients: Vec<Option<NodeId>>,
}

impl Call<'_> {
    fn located(&self, error: tinyspec_ir::Error) -> Error {
        error.at(self.location).into()
    }

    /// Where the gradients are computed.
    fn device(&self) -> Result<Arc<Device>> {
        device_of(self.wanted.iter().map(|wanted| wanted.device()))
    }

    /// The graph of a walk whose roots are the loss and the wanted tensors.
    fn open(&self, walk: &Walk) -> Result<Opened> {
        walk.open(self.wanted).map_err(|error| self.located(error))
    }

    /// Extends a graph by the gradients.
    fn derive(&self, opened: &mut Opened) -> Result<Derived> {
        let Opened { graph, outputs, .. } = opened;
        let written = graph.len();
        let one = graph.constant(Const::float(self.dtype, 1.0));
        let ones = tinyspec_ir::ops::movement::expand(graph, one, self.shape)?;
        let gradients = gradient::gradient_or_none(graph, &[(outputs[0], ones)], &outputs[1..]);
        Ok(Derived { gradients: gradients.map_err(|error| self.located(error))?, written })
    }

    /// The error for a gradient that needs a value which is gone.
    fn gone(&self, opened: &Opened, node: NodeId) -> Error {
        let props = opened.graph.props(node);
        let what = format!("{} {}", props.dtype, tinyspec_ir::dim::show(&props.shape));
        let message = format!("needs a value that is gone: {what}, from which a tensor was computed and read");
        let error = tinyspec_ir::Error::new(ErrorKind::Gradient, "grad", message);
        self.located(error.help("keep that tensor, or take the gradient before the result is read"))
    }
}

/// The maxima that `gradients` compare with their terms, with the views in between, if any of these nodes is already in memory.
/// Recomputed terms may round differently, so that none equals the stored maximum: it has to be recomputed along with them.
fn compared_maxima(Opened { graph, origins, .. }: &Opened, gradients: &[NodeId]) -> FxHashSet<NodeId> {
    let is_in_memory = |node: &NodeId| origins.get(node).is_some_and(|origin| origin.is_realized());
    let mut maxima = FxHashSet::default();
    for node in nodes::reachable_until(graph, gradients, |_| false) {
        let sides = if graph.op(node) == Op::CmpNe { graph.sources(node) } else { &[] };
        for &side in sides {
            let path: SmallVec<[NodeId; 4]> = graph.views(side).collect();
            let is_maximum =
                path.last().is_some_and(|&node| matches!(graph.arg(node), Arg::Reduce { op: Op::Max, .. }));
            if is_maximum && path.iter().any(is_in_memory) {
                maxima.extend(path);
            }
        }
    }
    maxima
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
