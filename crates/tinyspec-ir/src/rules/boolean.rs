//! Comparisons, gates and selects.

use super::pattern::{alu, bounds, folded, int, is_index, is_int, not};
use crate::{Builder, Const, DType, Graph, NodeId, Op};

rules! {
    /// Comparisons and selects.
    BOOLEAN (Exact, "boolean", g, node) {
        decided_lt: (CmpLt a b) => decided(g, node)?;
        decided_ne: (CmpNe a b) => decided(g, node)?;
        ne_shift: (CmpNe (Add x #a) #b) if wraps(g, x) => { let c = int(g, x, b - a); alu(g, Op::CmpNe, x, c)? };
        ne_difference: (CmpNe (Add x (Mul y -1)) #c) if wraps(g, x) => { let x = shifted(g, x, -c)?; alu(g, Op::CmpNe, x, y)? };
        ne_difference_left: (CmpNe (Add (Mul y -1) x) #c) if wraps(g, x) => { let x = shifted(g, x, -c)?; alu(g, Op::CmpNe, x, y)? };
        ne_widened: (CmpNe (Cast x) #c) if widened(g, node, x, c) => { let c = int(g, x, c); alu(g, Op::CmpNe, x, c)? };
        lt_widened: (CmpLt (Cast x) #c) if widened(g, node, x, c) => { let c = int(g, x, c); alu(g, Op::CmpLt, x, c)? };
        lt_widened_right: (CmpLt #c (Cast x)) if widened(g, node, x, c) => { let c = int(g, x, c); alu(g, Op::CmpLt, c, x)? };
        lt_self: (CmpLt a b) if a == b => truth(g, node, false)?;
        ne_self: (CmpNe a b) if a == b && !g.dtype(a).is_float() => truth(g, node, false)?;
        lt_shift: (CmpLt (Add x #a) #b) if is_index(g, x) => { let c = within_index(g, x, b - a)?; alu(g, Op::CmpLt, x, c)? };
        lt_shift_right: (CmpLt #a (Add x #b)) if is_index(g, x) => { let c = within_index(g, x, a - b)?; alu(g, Op::CmpLt, c, x)? };
        lt_scale: (CmpLt (Mul x #a) #b) if a > 0 && is_index(g, x) => { let c = int(g, x, ceiling(b, a)); alu(g, Op::CmpLt, x, c)? };

        mul_bools: (Mul a b) if g.dtype(a) == DType::Bool => alu(g, Op::And, a, b)?;
        add_bools: (Add a b) if g.dtype(a) == DType::Bool => alu(g, Op::Or, a, b)?;
        max_bools: (Max a b) if g.dtype(a) == DType::Bool => alu(g, Op::Or, a, b)?;
        and_true: (And x 1) if g.dtype(x) == DType::Bool => x;
        true_and: (And 1 x) if g.dtype(x) == DType::Bool => x;
        and_false: (And x 0) => truth_like(g, node)?;
        false_and: (And 0 x) => truth_like(g, node)?;
        and_same: (And x y) if x == y => x;
        and_bounds: (And c d) => bounded(g, c, d)?;
        or_false: (Or x 0) => x;
        false_or: (Or 0 x) => x;
        or_same: (Or x y) if x == y => x;
        xor_zero: (Xor x 0) => x;
        xor_twice: (Xor (Xor x #a) #b) if a == b => x;

        where_same: (Where condition x y) if x == y => x;
        where_true: (Where 1 x y) => x;
        where_false: (Where 0 x y) => y;
        where_same_gate: (Where c (Where d x y) z) if c == d => choose(g, c, x, z)?;
        where_same_gate_else: (Where c x (Where d y z)) if c == d => choose(g, c, x, z)?;
        cast_same: (Cast x) if g.dtype(x) == g.dtype(node) => x;
        single_where: (Where c x y) if g.dtype(x).is_int() => only_value(g, node)?;
    }
}

/// Whether it is a machine integer, which wraps.
fn wraps(graph: &Graph, node: NodeId) -> bool {
    is_int(graph, node) && !is_index(graph, node)
}

/// Whether a comparison with a constant can be made before an integer is widened.
fn widened(graph: &Graph, comparison: NodeId, x: NodeId, constant: i128) -> bool {
    let wide = graph.dtype(graph.source(comparison, 0)).int_range();
    wraps(graph, x)
        && graph.dtype(graph.source(comparison, 0)) != DType::Index
        && matches!((wide, graph.dtype(x).int_range()), (Some((least, greatest)), Some((low, high)))
            if least <= low && high <= greatest && (low..=high).contains(&constant))
}

fn shifted(graph: &mut Graph, x: NodeId, by: i128) -> Option<NodeId> {
    if by == 0 {
        return Some(x);
    }
    let by = int(graph, x, by);
    alu(graph, Op::Add, x, by)
}

fn truth(graph: &mut Graph, node: NodeId, value: bool) -> Option<NodeId> {
    folded(graph, node, Const::int(DType::Bool, value as i128))
}

fn truth_like(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let constant = Const::int(graph.dtype(node), 0);
    folded(graph, node, constant)
}

/// min_max decides the comparison.
fn decided(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let (low, high) = bounds(graph, node)?;
    if low == high { truth(graph, node, low != 0) } else { None }
}

fn only_value(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let value = graph.props(node).interval.single()?;
    let constant = Const::int(graph.dtype(node), value);
    folded(graph, node, constant)
}

/// A constant, unless it is out of range for an index constant.
fn within_index(graph: &mut Graph, like: NodeId, value: i128) -> Option<NodeId> {
    i64::try_from(value).ok().map(|value| int(graph, like, value as i128))
}

/// `x·a < b` is `x < ceil(b / a)` for positive a.
fn ceiling(b: i128, a: i128) -> i128 {
    -((-b).div_euclid(a))
}

/// Both conditions.
pub(super) fn and(graph: &mut Graph, c: NodeId, d: NodeId) -> Option<NodeId> {
    bounded(graph, c, d).or_else(|| alu(graph, Op::And, c, d))
}

/// If neither of two integers is less, they are equal.
fn bounded(graph: &mut Graph, c: NodeId, d: NodeId) -> Option<NodeId> {
    let at_least = |node: NodeId| {
        bind!(graph, node, (Xor (CmpLt a b) 1));
        is_int(graph, a).then_some((a, b))
    };
    let ((a, b), other) = (at_least(c)?, at_least(d)?);
    if other != (b, a) {
        return None;
    }
    let differ = alu(graph, Op::CmpNe, a, b)?;
    not(graph, differ)
}

fn choose(graph: &mut Graph, condition: NodeId, x: NodeId, y: NodeId) -> Option<NodeId> {
    graph.alu(Op::Where, &[condition, x, y]).ok()
}
