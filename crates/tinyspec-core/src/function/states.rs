//! Functions that change buffers of models: the new states follow the results.

use super::embedded::{EmbeddedFunction, Results};
use crate::Tensor;
use crate::lazy::Tracing;
use crate::nn::{Model, Name, Role};

/// As [`call`](super::call), for a function that changes buffers: their new states, where they change, follow.
#[doc(hidden)]
#[track_caller]
pub fn call_updating<R: Results>(
    function: &'static EmbeddedFunction,
    arguments: &[&Tensor],
) -> (R, Vec<Option<Tensor>>) {
    let count = function.states.len();
    let mut results = function.call(arguments);
    if results.len() != R::COUNT + count {
        let error = results.pop();
        return (R::from_tensors(error.into_iter().cycle().take(R::COUNT).collect()), vec![None; count]);
    }
    let states = results.split_off(R::COUNT);
    // Within a trace all states are returned, as in the embedded graph. A failed state leaves the old one.
    let is_new = |(number, state): (usize, Tensor)| {
        let is_kept = !Tracing::is_under_way() && (state.error().is_some() || function.is_unchanged(number));
        (!is_kept).then_some(state)
    };
    (R::from_tensors(results), states.into_iter().enumerate().map(is_new).collect())
}

/// How many calls in a row may change a buffer before all buffers of its model are computed.
const MOST_WAITING: usize = 8;

/// Gives the buffers of a model their new states.
#[doc(hidden)]
#[track_caller]
pub fn update<M: Model>(model: &mut M, states: &mut dyn Iterator<Item = Option<Tensor>>) {
    let mut waiting = 0;
    model.visit_mut(Name::ROOT, &mut |_, role, buffer| {
        if role != Role::Buffer {
            return;
        }
        if let Some(state) = states.next().flatten() {
            if Tracing::is_under_way() {
                *buffer = state;
                buffer.without_gradient();
            } else {
                buffer.become_loop_carried();
                buffer.assign(&state);
                waiting = waiting.max(buffer.waiting_states(MOST_WAITING));
            }
        }
    });
    if waiting >= MOST_WAITING {
        // Unread states would accumulate the values that they depend on. An error stays in the tensor until it is read.
        let buffers: Vec<&Tensor> = model.named_buffers().into_iter().map(|(_, buffer)| buffer).collect();
        let _ = crate::realize_all(&buffers);
    }
}

/// A constant in the shapes of a model that is reached from another by `_path`.
#[doc(hidden)]
pub const fn field_size<S, T: Model>(_path: fn(&S) -> &T, position: usize) -> usize {
    T::SIZES[position]
}

/// Appends the buffers of a model to the results of a body.
#[doc(hidden)]
pub fn push_buffers<M: Model>(model: &M, results: &mut Vec<Tensor>) {
    results.extend(model.named_buffers().into_iter().map(|(_, buffer)| buffer.clone()));
}

/// A value assigned to a buffer is data to gradients.
#[doc(hidden)]
pub trait Buffer {
    /// From here on.
    fn without_gradient(&mut self);
}

impl Buffer for Tensor {
    #[track_caller]
    fn without_gradient(&mut self) {
        if self.dtype().is_float() {
            *self = self.detach();
        }
    }
}
