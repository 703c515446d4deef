//! Rules that need a permission, which bounds how values may differ (SEMANTICS, "Contraction").

use super::pattern::alu;
use crate::{Builder, Const, DType, Graph, NodeId, Op};

rules! {
    /// Fused multiply-adds.
    CONTRACT (Permitted(Contract), "contract", g, node) {
        contract_right: (Add c (Mul a b)) if is_float(g, node) => g.alu(Op::Mulacc, &[a, b, c]).ok()?;
        contract_left: (Add (Mul a b) c) if is_float(g, node) => g.alu(Op::Mulacc, &[a, b, c]).ok()?;
    }
}

rules! {
    /// Multiplication by a reciprocal instead of division.
    APPROX (Permitted(Approx), "approx", g, node) {
        div_by_constant: (Div x c) => { let c = reciprocal(g, c)?; alu(g, Op::Mul, x, c)? };
        div_by_fewer: (Div x y) if is_float(g, node) && has_fewer(g, y, node) => {
            let reciprocal = g.alu(Op::Recip, &[y]).ok()?;
            alu(g, Op::Mul, x, reciprocal)?
        };
    }
}

fn is_float(graph: &Graph, node: NodeId) -> bool {
    graph.dtype(node).is_float()
}

/// The reciprocal of a float constant, if both are normal numbers. Narrow floats have too few of them.
fn reciprocal(graph: &mut Graph, c: NodeId) -> Option<NodeId> {
    let constant = graph.as_const(c).filter(|constant| matches!(constant.dtype, DType::F32 | DType::F64))?;
    let value = constant.as_float()?;
    let is_normal = |value: f64| value.is_normal() && value.abs() >= f64::from(f32::MIN_POSITIVE);
    let reciprocal = Const::float(constant.dtype, 1.0 / value);
    (is_normal(value) && is_normal(reciprocal.as_float()?)).then(|| graph.constant(reciprocal))
}

/// Whether one divisor serves many elements.
fn has_fewer(graph: &Graph, y: NodeId, quotient: NodeId) -> bool {
    let count = |node: NodeId| graph.props(node).element_count().as_const();
    graph.as_const(y).is_none() && matches!((count(y), count(quotient)), (Some(y), Some(all)) if y < all)
}
