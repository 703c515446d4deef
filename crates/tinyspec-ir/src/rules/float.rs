//! Floats: only what holds for nan, infinities and -0 too.

use super::pattern::{alu, fold, repeated};
use crate::{Builder, Const, Graph, NodeId, Op};

rules! {
    /// Float arithmetic.
    FLOAT (Exact, "float", g, node) {
        float_mul_one: (Mul x c) if is_value(g, c, 1.0) => x;
        float_add_minus_zero: (Add x c) if is_value(g, c, -0.0) => x;
        float_div_one: (Div x c) if is_value(g, c, 1.0) => x;
        float_neg_neg: (Mul (Mul x a) b) if is_value(g, a, -1.0) && is_value(g, b, -1.0) => x;
        float_div_power: (Div x c) => by_power_of_two(g, x, c)?;
        float_fold_div: (Div a b) => fold(g, node)?;
        float_fold_recip: (Recip a) => fold(g, node)?;
        float_fold_sqrt: (Sqrt a) => fold(g, node)?;
    }
}

/// Exactly this float, bit for bit, in every element.
fn is_value(graph: &Graph, node: NodeId, value: f64) -> bool {
    let constant = graph.as_const(repeated(graph, node));
    constant.and_then(Const::as_float).is_some_and(|found| found.to_bits() == value.to_bits())
}

/// A quotient by a power of two is a product, exactly, as long as the reciprocal is a normal number.
fn by_power_of_two(graph: &mut Graph, x: NodeId, c: NodeId) -> Option<NodeId> {
    let constant = graph.as_const(c)?;
    let value = constant.as_float()?;
    let is_power = value.is_normal() && value.to_bits() & ((1 << 52) - 1) == 0 && value.abs() <= 16384.0;
    if !is_power || value.abs() < 1.0 / 16384.0 {
        return None;
    }
    let reciprocal = Const::float(constant.dtype, 1.0 / value);
    // A narrow type may not hold the reciprocal.
    if reciprocal.as_float() != Some(1.0 / value) {
        return None;
    }
    let reciprocal = graph.constant(reciprocal);
    alu(graph, Op::Mul, x, reciprocal)
}
