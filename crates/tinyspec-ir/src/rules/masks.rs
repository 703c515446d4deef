//! Products with a mask, `x · [c]`, as choices: what the lowering makes gathers, windows and sums at places of.
//!
//! Of integers it is one. Of floats it is not: an infinity or a nan of x stays where the mask is 0, and of a negative number
//! a -0. What was an integer before is neither; what else is finite only the user knows (the permission `finite`).

use super::pattern::is_int;
use crate::{Arg, Builder, Const, DType, Graph, Interval, NodeId, Op};

rules! {
    /// Products with masks.
    MASKS (Exact, "masks", g, node) {
        int_mask: (Mul x (Cast m)) if is_mask(g, m) && is_int(g, x) && g.dtype(x) != DType::Index => masked(g, m, x)?;
        int_mask_left: (Mul (Cast m) x) if is_mask(g, m) && is_int(g, x) && g.dtype(x) != DType::Index => masked(g, m, x)?;
        count_mask: (Mul x (Cast m)) if is_mask(g, m) && least(g, x)? >= 0.0 => masked(g, m, x)?;
        count_mask_left: (Mul (Cast m) x) if is_mask(g, m) && least(g, x)? >= 0.0 => masked(g, m, x)?;
    }
}

rules! {
    /// Products with masks in a sum, where the sign of a zero is lost.
    SUMS_OF_MASKED (Reassoc, "sums of masked", g, node) {
        sum_of_masked: (Reduce (Mul x (Cast m))) if is_mask(g, m) && is_sum(g, node) && least(g, x).is_some() => {
            let terms = masked(g, m, x)?;
            again(g, node, terms)?
        };
        sum_of_masked_left: (Reduce (Mul (Cast m) x)) if is_mask(g, m) && is_sum(g, node) && least(g, x).is_some() => {
            let terms = masked(g, m, x)?;
            again(g, node, terms)?
        };
    }
}

rules! {
    /// Floats are finite, and a zero has no sign.
    FINITE (Permitted(Finite), "finite", g, node) {
        finite_mask: (Mul x (Cast m)) if is_mask(g, m) && g.dtype(x).is_float() => masked(g, m, x)?;
        finite_mask_left: (Mul (Cast m) x) if is_mask(g, m) && g.dtype(x).is_float() => masked(g, m, x)?;
    }
}

fn is_mask(graph: &Graph, node: NodeId) -> bool {
    graph.dtype(node) == DType::Bool
}

fn masked(graph: &mut Graph, mask: NodeId, x: NodeId) -> Option<NodeId> {
    let zero = graph.constant(Const::int(graph.dtype(x), 0));
    graph.alu(Op::Where, &[mask, x, zero]).ok()
}

/// The least value of a float that is certainly finite: a constant, or what an integer was before.
fn least(graph: &Graph, x: NodeId) -> Option<f64> {
    let mut below = x;
    while matches!(graph.op(below), Op::Reshape | Op::Expand | Op::Permute | Op::Flip | Op::Shrink) {
        below = graph.source(below, 0);
    }
    if let Some(value) = graph.as_const(below).and_then(Const::as_float) {
        // Below 0 lies -0 too.
        return value.is_finite().then_some(if value.is_sign_negative() {
            value.min(-f64::MIN_POSITIVE)
        } else {
            value
        });
    }
    let was_whole = graph.op(below) == Op::Cast && {
        let from = graph.dtype(graph.source(below, 0));
        from.is_int() || from == DType::Bool
    };
    match graph.props(below).interval {
        Interval::Float(low, high) if was_whole && low.is_finite() && high.is_finite() => Some(low),
        _ => None,
    }
}

fn is_sum(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.arg(node), Arg::Reduce { op: Op::Add, .. })
}

/// The same Reduce, of other terms.
fn again(graph: &mut Graph, node: NodeId, terms: NodeId) -> Option<NodeId> {
    let mut sources = graph.sources(node).to_vec();
    sources[0] = terms;
    graph.add(Op::Reduce, &sources, graph.arg(node).clone()).ok()
}
