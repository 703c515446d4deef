//! Sums and products of integers: ring laws, which also hold for wrapping arithmetic. An index does not wrap: if a
//! constant would, the expression is unchanged.

use super::pattern::{alu, bounds, exact, fold, int, is_index, is_int, repeated};
use super::terms::{sum, terms};
use crate::{Builder, Const, Graph, NodeId, Op};

rules! {
    /// Integer arithmetic.
    INTEGER (Exact, "integer", g, node) {
        fold_add: (Add a b) => fold(g, node)?;
        fold_mul: (Mul a b) => fold(g, node)?;
        fold_max: (Max a b) => fold(g, node)?;
        fold_idiv: (Idiv a b) => fold(g, node)?;
        fold_mod: (Mod a b) => fold(g, node)?;
        fold_cmplt: (CmpLt a b) => fold(g, node)?;
        fold_cmpne: (CmpNe a b) => fold(g, node)?;
        fold_and: (And a b) => fold(g, node)?;
        fold_or: (Or a b) => fold(g, node)?;
        fold_xor: (Xor a b) => fold(g, node)?;
        fold_shl: (Shl a b) => fold(g, node)?;
        fold_shr: (Shr a b) => fold(g, node)?;
        fold_cast: (Cast a) => fold(g, node)?;

        canonical_add: (Add a b) if out_of_order(g, a, b) => alu(g, Op::Add, b, a)?;
        canonical_mul: (Mul a b) if out_of_order(g, a, b) => alu(g, Op::Mul, b, a)?;
        canonical_max: (Max a b) if is_int(g, a) && out_of_order(g, a, b) => alu(g, Op::Max, b, a)?;

        add_zero: (Add x 0) if is_int(g, x) => x;
        mul_one: (Mul x 1) if is_int(g, x) => x;
        mul_zero: (Mul x 0) if is_int(g, x) => int_like(g, node, 0)?;
        max_same: (Max x y) if x == y => x;

        add_constants: (Add (Add x #a) #b) if is_int(g, x) => { let c = exact(g, x, a + b)?; alu(g, Op::Add, x, c)? };
        mul_constants: (Mul (Mul x #a) #b) if is_int(g, x) => { let c = exact(g, x, a.wrapping_mul(b))?; alu(g, Op::Mul, x, c)? };
        distribute: (Mul (Add x #a) #b) if is_int(g, x) => affine(g, x, b, a.wrapping_mul(b))?;
        constant_outward: (Add (Add x #a) y) if is_int(g, x) && g.as_int(y).is_none() => {
            let (sum, c) = (alu(g, Op::Add, x, y)?, int(g, x, a));
            alu(g, Op::Add, sum, c)?
        };
        constant_outward_right: (Add x (Add y #a)) if is_int(g, x) && g.as_int(x).is_none() => {
            let (sum, c) = (alu(g, Op::Add, x, y)?, int(g, x, a));
            alu(g, Op::Add, sum, c)?
        };
        combine_same: (Add x y) if x == y && is_int(g, x) => { let two = int(g, x, 2); alu(g, Op::Mul, x, two)? };
        combine_one: (Add (Mul x #a) y) if x == y && is_int(g, x) => times(g, x, a + 1)?;
        combine_one_right: (Add x (Mul y #a)) if x == y && is_int(g, x) => times(g, x, a + 1)?;
        combine: (Add (Mul x #a) (Mul y #b)) if x == y && is_int(g, x) => times(g, x, a + b)?;
        combine_terms: (Add x y) if is_int(g, x) => combined(g, node)?;

        max_left: (Max x y) if is_int(g, x) && bounds(g, x)?.0 >= bounds(g, y)?.1 => x;
        max_right: (Max x y) if is_int(g, x) && bounds(g, y)?.0 >= bounds(g, x)?.1 => y;
        single_value: (Add x y) if is_index(g, x) => only_value(g, node)?;
        single_value_mul: (Mul x y) if is_index(g, x) => only_value(g, node)?;
    }
}

/// Constants go right; other operands in the order of their numbers.
fn out_of_order(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let is_const = |node| graph.op(repeated(graph, node)) == Op::Const;
    match (is_const(a), is_const(b)) {
        (true, false) => true,
        (false, true) | (true, true) => false,
        // Only integers are reordered: a float node keeps the order that its user wrote.
        _ => is_int(graph, a) && rank(graph, a) > rank(graph, b),
    }
}

/// Sums come first, so that nests lean left and equal terms meet.
fn rank(graph: &Graph, node: NodeId) -> (bool, NodeId) {
    (graph.op(node) != Op::Add, term(graph, node))
}

/// The other factor of a product with a constant.
fn term(graph: &Graph, node: NodeId) -> NodeId {
    match graph.op(node) {
        Op::Mul if graph.as_int(graph.source(node, 1)).is_some() => graph.source(node, 0),
        _ => node,
    }
}

fn int_like(graph: &mut Graph, node: NodeId, value: i128) -> Option<NodeId> {
    let constant = Const::int(graph.dtype(node), value);
    super::pattern::folded(graph, node, constant)
}

fn times(graph: &mut Graph, x: NodeId, factor: i128) -> Option<NodeId> {
    let factor = exact(graph, x, factor)?;
    alu(graph, Op::Mul, x, factor)
}

fn affine(graph: &mut Graph, x: NodeId, factor: i128, summand: i128) -> Option<NodeId> {
    let product = times(graph, x, factor)?;
    let summand = exact(graph, x, summand)?;
    alu(graph, Op::Add, product, summand)
}

/// The most terms to search for equal ones, which each Add of a long chain repeats.
const NEAR_TERMS: usize = 16;

/// Combines equal terms of a sum.
fn combined(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let is_sum = |&source: &NodeId| graph.op(source) == Op::Add || graph.op(term(graph, source)) == Op::Add;
    if !graph.sources(node).iter().any(is_sum) {
        return None;
    }
    let mut found = terms(graph, node, NEAR_TERMS);
    let before = found.len();
    found.sort_by_key(|&(term, _)| term);
    found.dedup_by(|(term, more), (kept, factor)| {
        let same = term == kept;
        *factor = factor.wrapping_add(if same { *more } else { 0 });
        same
    });
    if found.len() == before { None } else { sum(graph, &found, node) }
}

/// min_max leaves one value.
fn only_value(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let value = graph.props(node).interval.single()?;
    int_like(graph, node, value)
}
