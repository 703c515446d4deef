//! Parts of computed tensors: consecutive elements, which are read in place.

use super::Node;
use crate::device::Storage;
use std::sync::Arc;
use tinyspec_ir::Op;
use tinyspec_ir::dim::static_shape;

/// The memory of a computed tensor or of consecutive elements of one, and their offset in bytes.
pub(crate) fn part(tensor: &Arc<Node>) -> Option<(Arc<Storage>, usize)> {
    let (whole, start) = within(tensor);
    Some((whole.storage()?, start? * whole.props.dtype.size()))
}

/// The tensor that another one is a view of by Reshapes and Shrinks, and the offset of the view in elements if it is
/// contiguous.
pub(crate) fn within(tensor: &Arc<Node>) -> (Arc<Node>, Option<usize>) {
    let (mut node, mut start) = (tensor.clone(), Some(0));
    while !node.is_realized() && matches!(node.op, Op::Reshape | Op::Shrink) {
        let sources = node.sources();
        let Some(from) = sources.first() else { break };
        if node.op == Op::Shrink {
            start = start.and_then(|start| Some(start + first(from, &node, sources.get(1)?)?));
        }
        node = from.clone();
    }
    (node, start)
}

/// The offset of `part` in `whole`, in elements, if it is contiguous there.
fn first(whole: &Node, part: &Node, offset: &Node) -> Option<usize> {
    let (whole, part) = (static_shape(&whole.props.shape)?, static_shape(&part.props.shape)?);
    let offset = static_shape(offset.props.value.as_deref()?)?;
    // All axes before the last one that is cut must have size 1.
    let cut = (0..whole.len()).rev().find(|&axis| whole[axis] != part[axis]).unwrap_or(0);
    if part[..cut].iter().any(|&size| size != 1) {
        return None;
    }
    whole.iter().zip(&offset).try_fold(0usize, |flat, (&size, &offset)| {
        Some(flat * usize::try_from(size).ok()? + usize::try_from(offset).ok()?)
    })
}
