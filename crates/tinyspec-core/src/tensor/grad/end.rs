//! Where gradients end between a loss and a tensor that it is computed from, for the message that says so.

use super::Tensor;
use crate::lazy::{Node, ends_gradients};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use tinyspec_ir::Op;

/// A node that passes no gradient on.
pub(super) struct End {
    /// A description of the node, and where it was made.
    pub what: String,
    pub help: &'static str,
}

/// The first node on the way from `wanted` to `loss` that passes no gradient on.
pub(super) fn between(loss: &Tensor, wanted: &Tensor) -> Option<End> {
    let (loss, wanted) = (loss.node().ok()?, wanted.node().ok()?);
    let mut all = vec![loss.clone()];
    let mut met: FxHashSet<*const Node> = FxHashSet::from_iter([Arc::as_ptr(loss)]);
    let mut next = 0;
    while next < all.len() {
        let sources = all[next].sources();
        all.extend(sources.iter().filter(|source| met.insert(Arc::as_ptr(source))).cloned());
        next += 1;
    }
    // Sources are older.
    all.sort_unstable_by_key(|node| node.age);
    let mut depends: FxHashSet<*const Node> = FxHashSet::from_iter([Arc::as_ptr(wanted)]);
    let mut found = None;
    for node in &all {
        if !depends.contains(&Arc::as_ptr(node))
            && node.with_sources(|sources| sources.iter().any(|source| depends.contains(&Arc::as_ptr(source))))
        {
            depends.insert(Arc::as_ptr(node));
            if found.is_none() && ends_gradients(node.op, node.props.dtype) {
                found = Some(node);
            }
        }
    }
    let node = found.filter(|_| depends.contains(&Arc::as_ptr(loss)))?;
    let place = node.location.map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()));
    let shape = tinyspec_ir::dim::show(&node.props.shape);
    let dtype = node.props.dtype;
    Some(match node.op {
        Op::Detach => End {
            what: format!("what was detached{place}, {dtype} {shape}"),
            help: "leave the `detach` out, or want the gradient of the detached tensor",
        },
        _ => End {
            what: format!("{dtype} {shape}{place}, and only floats have gradients"),
            help: "use a choice that has a slope, such as `softmax` for `argmax` or `sigmoid` for a comparison; to let \
                   the gradient pass a step y of x, `&x + (y - &x).detach()`",
        },
    })
}
