//! The lazy tensor: a value that is computed when it is read.

mod apply;
#[cfg(feature = "ndarray")]
mod arrays;
mod at;
pub mod collectives;
mod create;
mod custom;
mod devices;
mod dynamic;
mod eight_bits;
mod element;
mod grad;
mod gradcheck;
mod methods;
#[cfg(feature = "npy")]
mod npy;
mod operators;
mod random;
mod realize;
mod select;
mod show;

pub(crate) use apply::{apply, apply_many};
pub use at::{IntoPick, IntoPicks, NewAxis, Pick, Rest, stepped};
pub(crate) use create::from_bytes;
pub use create::{IntoShape, Scalar};
pub use devices::IntoDevice;
pub use dynamic::Argument;
pub use eight_bits::{F8E4M3, F8E5M2};
pub use element::Element;
pub(crate) use grad::{become_gradients, connected};
pub use grad::{grad, grad_or_zeros};
pub use gradcheck::{GradcheckOptions, gradcheck};
pub use methods::{IntoAxes, Operand};
#[doc(hidden)]
pub use operators::Left;
pub use random::{random_state, set_random_state, set_seed};
pub use realize::realize_all;

use crate::device::Device;
use crate::lazy::{Handle, Node};
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Arg, Builder, DType, Dim, ErrorKind, Op};

/// A lazy tensor: dtype and shape are values, clones are cheap and share the computed result.
///
/// Methods and operators never panic and need no `?`: a wrong operation gives a tensor that carries its error with the
/// caller's line, and reading it ([`Tensor::realize`], [`Tensor::to_vec`], [`Tensor::item`]) returns that error.
///
/// A number on the right of an operator may have any type, and takes the tensor's dtype. On the left it must be an
/// `f64`, an `i32` or a `bool`, so that a literal needs no suffix; numbers of other types are converted, or go on the
/// right.
///
/// ```
/// # use tinyspec_core::Tensor;
/// let (x, rate, count) = (Tensor::ones([2]), 0.5f32, 3i64);
/// assert_eq!((1.0 - &x).exp().to_vec::<f32>()?, [1.0, 1.0]);
/// assert_eq!((f64::from(rate) / &x).to_vec::<f32>()?, [0.5, 0.5]);
/// assert_eq!((-&x + count).to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(Inner);

#[derive(Clone)]
enum Inner {
    Node(Handle),
    Failed(Arc<Error>),
}

impl Tensor {
    /// A handle of a new node, or of one that is already a tensor.
    pub(crate) fn from_node(node: Arc<Node>) -> Tensor {
        Tensor(Inner::Node(Handle::of_tensor(node)))
    }

    /// A handle of a part of a value on several devices, which is no tensor of the program.
    pub(crate) fn of_part(node: Arc<Node>) -> Tensor {
        Tensor(Inner::Node(Handle::new(node)))
    }

    pub(crate) fn failed(error: impl Into<Error>) -> Tensor {
        Tensor(Inner::Failed(Arc::new(error.into())))
    }

    pub(crate) fn refused(
        location: &'static Location<'static>,
        kind: ErrorKind,
        op: &str,
        message: impl Into<String>,
    ) -> Tensor {
        Tensor::failed(tinyspec_ir::Error::new(kind, op, message).at(location))
    }

    pub(crate) fn node(&self) -> Result<&Arc<Node>> {
        match &self.0 {
            Inner::Node(node) => Ok(node),
            Inner::Failed(error) => Err(Error::clone(error)),
        }
    }

    /// Marks data that the library made and that the caller gets no tensor of: they live as long as a gradient may need
    /// them.
    pub(crate) fn internal(self) -> Tensor {
        match self.0 {
            Inner::Node(node) => Tensor(Inner::Node(Handle::new(node.into_node().internal()))),
            failed => Tensor(failed),
        }
    }

    /// The error that the tensor carries.
    pub fn error(&self) -> Option<&Error> {
        match &self.0 {
            Inner::Node(_) => None,
            Inner::Failed(error) => Some(error),
        }
    }

    /// dtype of the elements; `void` if the tensor carries an error.
    pub fn dtype(&self) -> DType {
        self.node().map_or(DType::Void, |node| node.props.dtype)
    }

    /// The shape; `()` if the tensor carries an error.
    pub fn shape(&self) -> &[Dim] {
        match &self.0 {
            Inner::Node(node) => &node.props.shape,
            Inner::Failed(_) => &[],
        }
    }

    /// The shape as numbers.
    ///
    /// # Errors
    /// The error that the tensor carries, or that a dim is named.
    pub fn sizes(&self) -> Result<Vec<usize>> {
        let node = self.node()?;
        let number = |dim: &Dim| dim.as_const().and_then(|number| usize::try_from(number).ok());
        node.props.shape.iter().map(number).collect::<Option<_>>().ok_or_else(|| {
            Error::refused(
                ErrorKind::Shape,
                "sizes",
                format!("the shape {} has named dims", tinyspec_ir::dim::show(&node.props.shape)),
            )
        })
    }

    /// Number of dims.
    #[doc(alias("ndim"))]
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The device of the value; a tensor made of constants alone has none yet and takes the default device.
    pub fn device(&self) -> Option<&tinyspec_ir::Device> {
        self.node().ok().and_then(|node| node.device())
    }

    /// Whether its value is computed.
    pub fn is_realized(&self) -> bool {
        self.node().is_ok_and(|node| node.is_realized())
    }

    /// Binds this handle to a new state with the value `value`; clones keep the old one.
    ///
    /// If nothing refers to the old state any more, neither a clone nor a lazy tensor derived from it, its memory is
    /// overwritten when the new one is computed, and only changed elements are written.
    ///
    /// `value` must have this tensor's dtype and a shape that broadcasts to its shape.
    #[track_caller]
    pub fn assign(&mut self, value: &Tensor) {
        self.assign_at(Location::caller(), value);
    }

    fn assign_at(&mut self, location: &'static Location<'static>, value: &Tensor) {
        let next = apply(location, &[self, value], |builder, nodes| {
            let state = nodes[0];
            let value = tinyspec_ir::ops::pick::assigned(builder, state, nodes[1])?;
            let store = builder.add(Op::Store, &[state, value], Arg::None).map_err(|error| error.in_op("assign"))?;
            builder.add(Op::After, &[state, store], Arg::None)
        });
        if let (Ok(state), Ok(next)) = (self.node(), next.node()) {
            state.replace_by(next);
        }
        *self = next;
    }

    /// Marks this state as loop-carried: a run that reads it also computes the state assigned over it.
    pub(crate) fn become_loop_carried(&self) {
        if let Ok(node) = self.node() {
            node.become_loop_carried();
        }
    }

    /// The number of successive states that are not computed yet, counted up to `most`.
    pub(crate) fn waiting_states(&self, most: usize) -> usize {
        let mut node = self.node().ok().cloned();
        let mut count = 0;
        while let Some(state) = node.take().filter(|node| count < most && node.op == Op::After) {
            // A computed node has no sources.
            node = state.with_sources(|sources| sources.first().cloned());
            count += usize::from(node.is_some());
        }
        count
    }

    /// Address of the memory, if the tensor is computed, has this dtype, shape and device, and is unshared.
    pub(crate) fn exclusive_memory(&mut self, dtype: DType, shape: &[Dim], device: &Arc<Device>) -> Option<*mut u8> {
        let Inner::Node(node) = &mut self.0 else { return None };
        let fits = node.props.dtype == dtype && *node.props.shape == *shape;
        node.node_mut().filter(|_| fits)?.exclusive_storage(device)
    }
}
