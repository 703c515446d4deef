//! Floored division and remainder of indices by positive constants. Only mathematical integers qualify, since a sum
//! that wraps has a different quotient.

use super::pattern::{alu, bounds, int, is_index, is_int};
use super::terms::{sum, terms};
use crate::dim::floor_div;
use crate::{Graph, NodeId, Op};

rules! {
    /// Quotients and remainders.
    DIVISION (Exact, "division", g, node) {
        idiv_one: (Idiv x 1) if is_int(g, x) => x;
        mod_one: (Mod x 1) if is_int(g, x) => zero(g, node)?;
        idiv_self_range: (Idiv x #c) if c > 0 && within(g, x, c)? => quotient_of_block(g, node, x, c)?;
        mod_self_range: (Mod x #c) if c > 0 && within(g, x, c)? => remainder_in_block(g, x, c)?;
        idiv_multiples: (Idiv x #c) if c > 1 && is_index(g, x) => split_quotient(g, x, c)?;
        mod_multiples: (Mod x #c) if c > 1 && is_index(g, x) => split_remainder(g, x, c)?;
        idiv_of_product: (Idiv (Mul x y) z) if y == z && is_index(g, x) && never_zero(g, z)? => x;
        idiv_of_product_left: (Idiv (Mul x y) z) if x == z && is_index(g, x) && never_zero(g, z)? => y;
        mod_of_product: (Mod (Mul x y) z) if (x == z || y == z) && is_index(g, x) && never_zero(g, z)? => zero(g, node)?;
        idiv_idiv: (Idiv (Idiv x #a) #b) if a > 0 && b > 0 && is_index(g, x) => divided(g, x, a.checked_mul(b)?)?;
        mod_mod: (Mod (Mod x #a) #b) if a > 0 && b > 0 && a % b == 0 && is_index(g, x) => remainder(g, x, b)?;
        idiv_of_mod: (Idiv (Mod x #a) #b) if a > 0 && b > 0 && a % b == 0 && is_index(g, x) => {
            let quotient = divided(g, x, b)?;
            remainder(g, quotient, a / b)?
        };
        recombine: (Add (Mod x #a) (Mul (Idiv y #b) #c)) if x == y && a == b && a == c && is_index(g, x) => x;
        recombine_left: (Add (Mul (Idiv y #b) #c) (Mod x #a)) if x == y && a == b && a == c && is_index(g, x) => x;
        common_factor_idiv: (Idiv (Mul x #a) #c) if a > 1 && c > 1 && c % a == 0 && is_index(g, x) => divided(g, x, c / a)?;
        common_factor_mod: (Mod (Mul x #a) #c) if a > 1 && c > a && c % a == 0 && is_index(g, x) => {
            let (inner, factor) = (remainder(g, x, c / a)?, int(g, x, a));
            alu(g, Op::Mul, inner, factor)?
        };
    }
}

fn zero(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let constant = crate::Const::int(graph.dtype(node), 0);
    super::pattern::folded(graph, node, constant)
}

fn divided(graph: &mut Graph, x: NodeId, divisor: i128) -> Option<NodeId> {
    let divisor = int(graph, x, i64::try_from(divisor).ok()? as i128);
    alu(graph, Op::Idiv, x, divisor)
}

fn remainder(graph: &mut Graph, x: NodeId, divisor: i128) -> Option<NodeId> {
    let divisor = int(graph, x, divisor);
    alu(graph, Op::Mod, x, divisor)
}

fn never_zero(graph: &Graph, x: NodeId) -> Option<bool> {
    let (low, high) = bounds(graph, x)?;
    Some(low > 0 || high < 0)
}

/// Whether all values of `x` have the same quotient by `c`.
fn within(graph: &Graph, x: NodeId, c: i128) -> Option<bool> {
    let (low, high) = bounds(graph, x)?;
    Some(i64::try_from(low).is_ok() && i64::try_from(high).is_ok() && block(low, c) == block(high, c))
}

fn block(value: i128, c: i128) -> i64 {
    floor_div(value as i64, c as i64)
}

fn quotient_of_block(graph: &mut Graph, node: NodeId, x: NodeId, c: i128) -> Option<NodeId> {
    let quotient = block(bounds(graph, x)?.0, c);
    let constant = crate::Const::int(graph.dtype(node), quotient as i128);
    super::pattern::folded(graph, node, constant)
}

fn remainder_in_block(graph: &mut Graph, x: NodeId, c: i128) -> Option<NodeId> {
    match block(bounds(graph, x)?.0, c) {
        0 => Some(x),
        quotient => {
            let shift = int(graph, x, -(quotient as i128) * c);
            alu(graph, Op::Add, x, shift)
        }
    }
}

/// The most terms of a sum to expand: a shared subexpression counts once per path to it.
const MOST_TERMS: usize = 64;

/// Splits a sum into `c · whole + rest`, including constants; `None` if no part of it is a multiple.
fn split(graph: &mut Graph, x: NodeId, c: i128) -> Option<(NodeId, NodeId)> {
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for (term, coefficient) in terms(graph, x, MOST_TERMS) {
        if let Some(value) = graph.as_int(term) {
            let value = i64::try_from(value.checked_mul(coefficient)?).ok()?;
            let quotient = floor_div(value, c as i64) as i128;
            let one = int(graph, x, 1);
            whole.push((one, quotient));
            rest.push((one, value as i128 - quotient * c));
            continue;
        }
        // Truncated, so that a coefficient smaller than c is unchanged, whatever its sign.
        let quotient = coefficient / c;
        whole.push((term, quotient));
        rest.push((term, coefficient - quotient * c));
    }
    if whole.iter().all(|(_, quotient)| *quotient == 0) {
        return None;
    }
    Some((sum(graph, &whole, x)?, sum(graph, &rest, x)?))
}

fn split_quotient(graph: &mut Graph, x: NodeId, c: i128) -> Option<NodeId> {
    let (whole, rest) = split(graph, x, c)?;
    let rest = divided(graph, rest, c)?;
    alu(graph, Op::Add, whole, rest)
}

fn split_remainder(graph: &mut Graph, x: NodeId, c: i128) -> Option<NodeId> {
    let (_, rest) = split(graph, x, c)?;
    remainder(graph, rest, c)
}
