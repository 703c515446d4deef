//! Floats: only laws that also hold for nan, infinities and -0.

use super::pattern::{alu, fold, not, repeated};
use crate::ops::movement;
use crate::{Builder, Const, Graph, NodeId, Op};

rules! {
    /// Float arithmetic.
    FLOAT (Exact, "float", g, node) {
        float_mul_one: (Mul x c) if is_value(g, c, 1.0) => broadcast(g, x, node)?;
        float_add_minus_zero: (Add x c) if is_value(g, c, -0.0) => broadcast(g, x, node)?;
        float_div_one: (Div x c) if is_value(g, c, 1.0) => broadcast(g, x, node)?;
        float_neg_neg: (Mul (Mul x a) b) if is_value(g, a, -1.0) && is_value(g, b, -1.0) => x;
        float_div_power: (Div x c) => by_power_of_two(g, x, c)?;
        power_zero: (Pow x c) if is_value(g, c, 0.0) => ones(g, node)?;
        power_one: (Pow x c) if is_value(g, c, 1.0) => x;
        power_two: (Pow x c) if is_value(g, c, 2.0) => alu(g, Op::Mul, x, x)?;
        power_minus_one: (Pow x c) if is_value(g, c, -1.0) => g.alu(Op::Recip, &[x]).ok()?;
        float_fold_div: (Div a b) => fold(g, node)?;
        float_fold_recip: (Recip a) => fold(g, node)?;
        float_fold_sqrt: (Sqrt a) => fold(g, node)?;
        // For other numbers, a target's power may be more accurate.
        float_fold_power: (Exp2 a) if is_whole(g, a) => fold(g, node)?;

        max_above: (Max a b) if is_above(g, a, b) => broadcast(g, a, node)?;
        max_below: (Max a b) if is_above(g, b, a) => broadcast(g, b, node)?;

        // Floats may be unordered: neither less nor equal.
        below_or_equal: (Or (CmpLt a b) (Xor (CmpNe c d) 1)) if is_pair(&[a, b], &[c, d]) && is_number(g, a) && is_number(g, b) => {
            let above = alu(g, Op::CmpLt, b, a)?;
            not(g, above)?
        };
    }
}

/// `x` in the shape of `node`.
fn broadcast(graph: &mut Graph, x: NodeId, node: NodeId) -> Option<NodeId> {
    let shape = graph.props(node).shape.clone();
    movement::expand(graph, x, &shape).ok()
}

/// Ones of the shape of `node`.
fn ones(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let one = graph.constant(Const::float(graph.dtype(node), 1.0));
    broadcast(graph, one, node)
}

/// Whether every element is exactly this float, bit for bit.
fn is_value(graph: &Graph, node: NodeId, value: f64) -> bool {
    let constant = graph.as_const(repeated(graph, node));
    constant.and_then(Const::as_float).is_some_and(|found| found.to_bits() == value.to_bits())
}

/// Whether every element is a whole number.
fn is_whole(graph: &Graph, node: NodeId) -> bool {
    graph.as_const(repeated(graph, node)).and_then(Const::as_whole).is_some()
}

fn is_pair(a: &[NodeId; 2], b: &[NodeId; 2]) -> bool {
    a == b || a[0] == b[1] && a[1] == b[0]
}

/// Whether a value is certainly not nan. It may be infinite.
fn is_number(graph: &Graph, node: NodeId) -> bool {
    graph.props(node).interval.float().is_none_or(|floats| !floats.nan)
}

/// Whether the maximum of both is `a`, bit for bit; where `a` is nan, so is the maximum.
fn is_above(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let floats = |node: NodeId| graph.props(node).interval.float();
    floats(a).zip(floats(b)).is_some_and(|(a, b)| a.is_above(b))
}

/// Division by a power of two is an exact multiplication, if the reciprocal is a normal number.
fn by_power_of_two(graph: &mut Graph, x: NodeId, c: NodeId) -> Option<NodeId> {
    let constant = graph.as_const(c)?;
    let value = constant.as_float()?;
    let is_power = value.is_normal() && value.to_bits() & ((1 << 52) - 1) == 0 && value.abs() <= 16384.0;
    if !is_power || value.abs() < 1.0 / 16384.0 {
        return None;
    }
    let reciprocal = Const::float(constant.dtype, 1.0 / value);
    // The reciprocal may not be representable in a narrow type.
    if reciprocal.as_float() != Some(1.0 / value) {
        return None;
    }
    let reciprocal = graph.constant(reciprocal);
    alu(graph, Op::Mul, x, reciprocal)
}
