//! The sizes that a call gives the dims of a function whose kernels serve all of them.

use super::{Body, Node};
use smallvec::SmallVec;
use std::sync::Arc;
use tinyspec_ir::DType;
use tinyspec_ir::dim::Name;

/// Sizes of the ranged dims, in the order of [`Body::ranged`].
pub(crate) type Sizes = SmallVec<[i64; 4]>;

/// The sizes that a call gives the ranged dims of `body`, whose arguments are tensors first, then dims. `None` if the
/// body has no such dim, or one is not a number yet.
pub(crate) fn sizes(body: &Body, arguments: &[Arc<Node>]) -> Option<Sizes> {
    let size = |name: &Name| number(arguments.get(name.slot as usize)?);
    if body.ranged().is_empty() { None } else { body.ranged().iter().map(size).collect() }
}

/// The number that an index argument is.
pub(crate) fn number(node: &Node) -> Option<i64> {
    let value = node.props.value.as_deref()?.first()?;
    value.as_const().filter(|_| node.props.dtype == DType::Index && node.props.shape.is_empty())
}
