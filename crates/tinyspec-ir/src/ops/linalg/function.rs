//! Factorisations whose gradients are formulas: a kernel's loops have none. A gradient is made of such functions again, which
//! can be differentiated once less.

use super::Matrix;
use super::triangular::Kind;
use crate::ops::function::{self, Body, Gradient};
use crate::{Builder, NodeId, Result};

/// The results of `body` for float inputs, with the gradients of `gradient`. `what` identifies the function.
pub(super) fn with_gradient(
    b: &mut dyn Builder,
    what: (&str, Matrix, Option<Kind>),
    inputs: &[NodeId],
    body: Body,
    gradient: Gradient,
) -> Result<Vec<NodeId>> {
    let (name, Matrix { rows, columns, derivatives, .. }, kind) = what;
    if derivatives == 0 {
        return body(b, inputs);
    }
    function::with_gradient(b, (name, rows, columns, derivatives, kind), inputs, body, gradient)
}
