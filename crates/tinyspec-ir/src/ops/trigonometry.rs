//! Sine, cosine and tangent, by the one op Sin.

use super::elementwise::{scale, shift, square};
use super::{in_wide, to_float};
use crate::{Builder, Graph, NodeId, Op, Result};

/// Sine.
pub fn sin(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    b.alu(Op::Sin, &[x])
}

/// Cosine: `sin 2x / (2 sin x)`. Sin is exact to its last places for every argument, so this is too, near the zeros
/// and for large `x`, where no turn by π/2 is: there π/2 is rounded away, or the sum is.
///
/// The quotient has no value at 0 and where 2x overflows: there it is `1 - 2 sin²(x/2)`.
pub fn cos(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let doubled = scale(b, x, 2.0)?;
        let of_doubled = b.alu(Op::Sin, &[doubled])?;
        let sine = b.alu(Op::Sin, &[x])?;
        let twice = scale(b, sine, 2.0)?;
        let quotient = b.alu(Op::Div, &[of_doubled, twice])?;
        let halved = scale(b, x, 0.5)?;
        let of_halved = b.alu(Op::Sin, &[halved])?;
        let squared = square(b, of_halved)?;
        let minus = scale(b, squared, -2.0)?;
        let otherwise = shift(b, minus, 1.0)?;
        let undefined = b.alu(Op::CmpNe, &[quotient, quotient])?;
        b.alu(Op::Where, &[undefined, otherwise, quotient])
    })
}

/// The `x` whose [`cos`] in its own dtype `node` is. A target that lacks Sin computes one series in place of three, and
/// the gradient is `-sin x`.
pub fn cosine_of(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let sources = |node: NodeId, op: Op| (graph.op(node) == op).then(|| graph.sources(node));
    let &[_, _, quotient] = sources(node, Op::Where)? else { return None };
    let &[_, twice] = sources(quotient, Op::Div)? else { return None };
    let &[sine, _] = sources(twice, Op::Mul)? else { return None };
    let &[x] = sources(sine, Op::Sin)? else { return None };
    let again = cos(graph, x).ok()?;
    graph.is_equal(again, node).then_some(x)
}

/// Tangent.
pub fn tan(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let (sine, cosine) = (b.alu(Op::Sin, &[x])?, cos(b, x)?);
        b.alu(Op::Div, &[sine, cosine])
    })
}
