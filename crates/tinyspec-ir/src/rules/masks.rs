//! Products with a mask, `x · [c]`, as selects, which lowering turns into gathers, windows and scatters.
//!
//! For integers this is exact. For floats it is not: where the mask is 0, an infinity or nan in x gives nan, and a
//! negative number gives -0. Values converted from integers are neither. Otherwise only the user knows that values are
//! finite (the permission `finite`), except in a sum of products, where counting decides: it is nan if more of its x
//! are infinite or nan than the mask selects. If the mask selects by position, both counts are cheap: one is shared by
//! all masks, the other is computed like the sum itself.

use super::boolean::and;
use super::choices::{Choice, expanded};
use super::pattern::{is_int, not, repeated};
use crate::masks::{conjuncts, varying_axes};
use crate::{Arg, Axes, Builder, Const, DType, Graph, NodeId, Op};
use smallvec::SmallVec;

rules! {
    /// Products with masks.
    MASKS (Exact, "masks", g, node) {
        int_mask: (Mul x m) if is_int(g, x) && g.dtype(x) != DType::Index => chosen(g, x, m, is_zero)?;
        int_mask_left: (Mul m x) if is_int(g, x) && g.dtype(x) != DType::Index => chosen(g, x, m, is_zero)?;
        count_mask: (Mul x m) if g.dtype(x).is_float() && least(g, x)? >= 0.0 => chosen(g, x, m, is_zero)?;
        count_mask_left: (Mul m x) if g.dtype(x).is_float() && least(g, x)? >= 0.0 => chosen(g, x, m, is_zero)?;
    }
}

rules! {
    /// Products with masks in a sum, where the sign of a zero is lost.
    SUMS_OF_MASKED (Reassoc, "sums of masked", g, node) {
        sum_of_masked: (Reduce terms) if is_sum(g, node) => {
            let product = Product::below(g, terms)?;
            least(g, product.x)?;
            product.sum(g, node)?
        };
        sum_of_chosen: (Reduce terms) if is_sum(g, node) => {
            let product = Product::below(g, terms)?;
            let once = chooses(g, node, &product)?;
            counted(g, node, product, &once)?
        };
    }
}

rules! {
    /// Floats are finite, and a zero has no sign.
    FINITE (Permitted(Finite), "finite", g, node) {
        finite_mask: (Mul x m) if g.dtype(x).is_float() => chosen(g, x, m, is_some_zero)?;
        finite_mask_left: (Mul m x) if g.dtype(x).is_float() => chosen(g, x, m, is_some_zero)?;
    }
}

/// `x · m` as a select, where m is a constant or 0.
fn chosen(graph: &mut Graph, x: NodeId, m: NodeId, is_zero: fn(Const) -> bool) -> Option<NodeId> {
    let (mask, by) = mask(graph, m, is_zero)?;
    let x = times(graph, x, by)?;
    masked(graph, mask, x)
}

fn masked(graph: &mut Graph, mask: NodeId, x: NodeId) -> Option<NodeId> {
    let zero = graph.constant(Const::int(graph.dtype(x), 0));
    graph.alu(Op::Where, &[mask, x, zero]).ok()
}

fn times(graph: &mut Graph, x: NodeId, by: Const) -> Option<NodeId> {
    if by == Const::int(by.dtype, 1) {
        return Some(x);
    }
    let by = graph.constant(by);
    graph.alu(Op::Mul, &[x, by]).ok()
}

fn is_zero(number: Const) -> bool {
    number == Const::int(number.dtype, 0)
}

/// A zero of either sign.
fn is_some_zero(number: Const) -> bool {
    is_zero(number) || number.as_float() == Some(0.0)
}

/// A number as a mask: its condition, and the finite constant where that holds; it is 0 elsewhere.
fn mask(graph: &mut Graph, number: NodeId, is_zero: fn(Const) -> bool) -> Option<(NodeId, Const)> {
    let Choice { condition, yes, no } = Choice::of(graph, number)?;
    let (mask, by) = match (is_zero(yes), is_zero(no)) {
        (false, true) => (condition, yes),
        (true, false) => (not(graph, condition)?, no),
        _ => return None,
    };
    by.as_float().is_none_or(f64::is_finite).then_some((mask, by))
}

/// The least value of a float that is certainly finite: a constant, a choice of two, or a cast integer. -0 counts as
/// negative. Of what is computed from such, min_max knows it as well, but products of masks are left to the sums of
/// them, which select by all masks at once.
fn least(graph: &Graph, x: NodeId) -> Option<f64> {
    let mut below = x;
    while matches!(graph.op(below), Op::Reshape | Op::Expand | Op::Permute | Op::Flip | Op::Shrink) {
        below = graph.source(below, 0);
    }
    let is_constant = |node: &NodeId| graph.as_const(repeated(graph, *node)).is_some();
    let is_plain = match graph.op(below) {
        Op::Const => true,
        Op::Where => graph.sources(below)[1..].iter().all(is_constant),
        Op::Cast => !graph.dtype(graph.source(below, 0)).is_float(),
        _ => false,
    };
    if !is_plain {
        return None;
    }
    let low = graph.props(x).interval.float().filter(|floats| floats.is_finite())?.low;
    Some(if low.is_sign_negative() { low.min(-f64::MIN_POSITIVE) } else { low })
}

fn is_sum(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.arg(node), Arg::Reduce { op: Op::Add, .. }) && graph.sources(node).len() == 1
}

/// The terms of a sum: x times a number where a mask holds, cast to the accumulator's dtype.
struct Product {
    x: NodeId,
    by: Const,
    mask: NodeId,
    /// Outermost first.
    casts: SmallVec<[DType; 2]>,
}

/// The most factors to search for masks.
const FACTORS: usize = 32;

impl Product {
    /// Terms that are x times masks.
    fn below(graph: &mut Graph, terms: NodeId) -> Option<Product> {
        let (mut product, mut casts) = (terms, SmallVec::new());
        while graph.op(product) == Op::Cast && graph.dtype(graph.source(product, 0)).is_float() {
            casts.push(graph.dtype(product));
            product = graph.source(product, 0);
        }
        let one = Const::int(graph.dtype(product), 1);
        let (mut x, mut all) = (product, None);
        for _ in 0..FACTORS {
            let (Op::Mul, &[a, b]) = (graph.op(x), graph.sources(x)) else { break };
            let right = mask(graph, b, is_some_zero).map(|mask| (mask, a));
            let Some(((mask, by), other)) = right.or_else(|| Some((mask(graph, a, is_some_zero)?, b))) else { break };
            all = Some(match all {
                None => (mask, by),
                // Multiplied by another number, x may become infinite where only one of the masks holds.
                Some(_) if by != one => break,
                Some((others, scale)) => (and(graph, others, mask)?, scale),
            });
            x = other;
        }
        let (mask, by) = all?;
        Some(Product { x, by, mask, casts })
    }

    /// The sum of the selected terms, reduced like `node`.
    fn sum(&self, graph: &mut Graph, node: NodeId) -> Option<NodeId> {
        let x = times(graph, self.x, self.by)?;
        let mut terms = masked(graph, self.mask, x)?;
        for &dtype in self.casts.iter().rev() {
            terms = graph.add(Op::Cast, &[terms], Arg::DType(dtype)).ok()?;
        }
        reduce_like(graph, node, terms)
    }
}

/// The same Reduce, of other terms.
fn reduce_like(graph: &mut Graph, node: NodeId, terms: NodeId) -> Option<NodeId> {
    graph.add(Op::Reduce, &[terms], graph.arg(node).clone()).ok()
}

/// The least number of masks of one x for which counting its non-finite elements pays.
const MASKS_OF_ONE: i64 = 32;

/// The axes along which there are many sums of the same x, if the mask selects terms by position.
fn chooses(graph: &mut Graph, node: NodeId, product: &Product) -> Option<Axes> {
    let Arg::Reduce { axes, .. } = graph.arg(node).clone() else { return None };
    let shape = graph.props(graph.source(node, 0)).shape.clone();
    let most = |axis: usize| shape[axis].bounds().1 as i128;
    let along = |graph: &Graph, value: NodeId| varying_axes(graph, value, shape.len());
    let own = along(graph, product.x);
    let is_summed = |axis: &u32| axes.contains(axis);
    let once: Axes = (0..shape.len() as u32).filter(|axis| !is_summed(axis) && !own.contains(axis)).collect();
    let masks = once.iter().map(|&axis| most(axis as usize)).fold(1, i128::saturating_mul);
    // Counts must fit in 32 bits.
    let terms = axes.iter().map(|&axis| most(axis as usize)).fold(1, i128::saturating_mul);
    if !graph.dtype(product.x).is_float()
        || least(graph, product.x).is_some()
        || masks < MASKS_OF_ONE.into()
        || terms > i32::MAX.into()
    {
        return None;
    }
    let is_choice = |&(condition, holds): &(NodeId, bool)| {
        let &[a, b] = graph.sources(condition) else { return false };
        let is_ramp = |side: NodeId| is_ramp(graph, side);
        match graph.op(condition) {
            // A position equals a datum, or a result's own position.
            Op::CmpNe if !holds => {
                is_ramp(a) && !along(graph, a).is_empty() || is_ramp(b) && !along(graph, b).is_empty()
            }
            // A window that moves from sum to sum.
            Op::CmpLt => {
                let sums = |side: NodeId| along(graph, side).iter().any(is_summed);
                is_ramp(a) && is_ramp(b) && sums(a) != sums(b)
            }
            _ => false,
        }
    };
    conjuncts(graph, product.mask, true).iter().any(is_choice).then_some(once)
}

/// The most nodes to search for a ramp.
const RAMP: usize = 64;

/// Whether a number depends on its position alone: a ramp, possibly shifted, scaled or viewed.
fn is_ramp(graph: &Graph, node: NodeId) -> bool {
    let mut stack: SmallVec<[NodeId; 8]> = SmallVec::from_iter([node]);
    for _ in 0..RAMP {
        let Some(node) = stack.pop() else { return true };
        match graph.op(node) {
            Op::Const => {}
            Op::Add | Op::Mul | Op::Max => stack.extend_from_slice(graph.sources(node)),
            op if op.is_view() || op == Op::Cast || is_sum(graph, node) => stack.push(graph.source(node, 0)),
            _ => return false,
        }
    }
    false
}

/// The sum of the selected terms, or nan if more of x is non-finite than is selected. x is constant along the axes
/// `once`.
fn counted(graph: &mut Graph, node: NodeId, product: Product, once: &[u32]) -> Option<NodeId> {
    let sum = product.sum(graph, node)?;
    let (x, mask) = (product.x, product.mask);
    let zero = graph.constant(Const::int(graph.dtype(x), 0));
    let times_zero = graph.alu(Op::Mul, &[x, zero]).ok()?;
    let is_infinite = graph.alu(Op::CmpNe, &[times_zero, zero]).ok()?;
    let one = graph.add(Op::Cast, &[is_infinite], Arg::DType(DType::I32)).ok()?;
    let shape = graph.props(graph.source(node, 0)).shape.clone();
    let all = expanded(graph, one, &shape)?;
    let chosen = masked(graph, mask, all)?;
    let chosen = reduce_like(graph, node, chosen)?;
    let all = first_along(graph, all, once)?;
    let all = reduce_like(graph, node, all)?;
    let is_lost = graph.alu(Op::CmpNe, &[all, chosen]).ok()?;
    let nan = graph.constant(Const::float(graph.dtype(sum), f64::NAN));
    graph.alu(Op::Where, &[is_lost, nan, sum]).ok()
}

/// Only the first element along some axes.
fn first_along(graph: &mut Graph, node: NodeId, axes: &[u32]) -> Option<NodeId> {
    let mut shape = graph.props(node).shape.clone();
    let start: SmallVec<[crate::Dim; 6]> = shape.iter().map(|_| 0.into()).collect();
    axes.iter().for_each(|&axis| shape[axis as usize] = 1.into());
    let (start, shape) = (graph.shape(&start).ok()?, graph.shape(&shape).ok()?);
    graph.add(Op::Shrink, &[node, start, shape], Arg::None).ok()
}
