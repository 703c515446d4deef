//! Products with a mask, `x · [c]`, as choices: what the lowering makes gathers, windows and sums at places of.
//!
//! Of integers it is one. Of floats it is not: an infinity or a nan of x stays where the mask is 0, and of a negative number
//! a -0. What was an integer before is neither. What else is finite only the user knows (the permission `finite`); but
//! a sum of products tells it by counting: it is a nan where more of its x are infinite or nan than the mask chooses. Where
//! positions are chosen, both counts are cheap: one is the same for all masks, the other as the sum itself.

use super::pattern::{is_int, not, repeated};
use crate::masks::{conjuncts, varying_axes};
use crate::{Arg, Axes, Builder, Const, DType, Graph, Interval, NodeId, Op};
use smallvec::SmallVec;

rules! {
    /// Products with masks.
    MASKS (Exact, "masks", g, node) {
        int_mask: (Mul x m) if is_int(g, x) && g.dtype(x) != DType::Index => chosen(g, x, m)?;
        int_mask_left: (Mul m x) if is_int(g, x) && g.dtype(x) != DType::Index => chosen(g, x, m)?;
        count_mask: (Mul x m) if g.dtype(x).is_float() && least(g, x)? >= 0.0 => chosen(g, x, m)?;
        count_mask_left: (Mul m x) if g.dtype(x).is_float() && least(g, x)? >= 0.0 => chosen(g, x, m)?;
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
        finite_mask: (Mul x m) if g.dtype(x).is_float() => chosen(g, x, m)?;
        finite_mask_left: (Mul m x) if g.dtype(x).is_float() => chosen(g, x, m)?;
    }
}

/// `x · m` as a choice, where m is 1 and 0.
fn chosen(graph: &mut Graph, x: NodeId, m: NodeId) -> Option<NodeId> {
    let mask = mask(graph, m)?;
    masked(graph, mask, x)
}

fn masked(graph: &mut Graph, mask: NodeId, x: NodeId) -> Option<NodeId> {
    let zero = graph.constant(Const::int(graph.dtype(x), 0));
    graph.alu(Op::Where, &[mask, x, zero]).ok()
}

/// Views and casts that a mask is looked for below.
const STEPS: usize = 32;

/// The condition of a number that is 1 where it holds and 0 elsewhere: a bool that was cast, a choice of 1 and 0, views of
/// them.
fn mask(graph: &mut Graph, number: NodeId) -> Option<NodeId> {
    mask_within(graph, number, STEPS)
}

fn mask_within(graph: &mut Graph, number: NodeId, steps: usize) -> Option<NodeId> {
    let mut views: SmallVec<[NodeId; 4]> = SmallVec::new();
    let mut below = number;
    for left in (0..steps).rev() {
        let (op, is_bool) = (graph.op(below), graph.dtype(below) == DType::Bool);
        let source = graph.sources(below).first().copied();
        let mask = match (op, source) {
            (_, Some(_)) if op.is_view() => {
                views.push(below);
                None
            }
            _ if is_bool => Some(below),
            (Op::Cast, Some(source)) if graph.dtype(source) != DType::Index => None,
            (Op::Where, _) => Some(one_or_zero(graph, below, left)?),
            _ => return None,
        };
        match mask {
            Some(mask) => return views.iter().rev().try_fold(mask, |mask, &view| viewed(graph, mask, view)),
            None => below = source?,
        }
    }
    None
}

/// The condition of a choice of 1, or of another such number, and 0.
fn one_or_zero(graph: &mut Graph, choice: NodeId, steps: usize) -> Option<NodeId> {
    let &[condition, yes, no] = graph.sources(choice) else { return None };
    let dtype = graph.dtype(choice);
    let value = |graph: &Graph, node: NodeId| graph.as_const(repeated(graph, node));
    let [one, zero] = [1, 0].map(|number| Some(Const::int(dtype, number)));
    let (condition, other) = match (value(graph, yes), value(graph, no)) {
        (_, no) if no == zero => (condition, yes),
        (yes, _) if yes == zero => (not(graph, condition)?, no),
        _ => return None,
    };
    let holds = if value(graph, other) == one {
        condition
    } else {
        let inner = mask_within(graph, other, steps)?;
        graph.alu(Op::And, &[condition, inner]).ok()?
    };
    let shape = graph.props(choice).shape.clone();
    expanded(graph, holds, &shape)
}

fn expanded(graph: &mut Graph, node: NodeId, shape: &[crate::Dim]) -> Option<NodeId> {
    if graph.props(node).shape[..] == *shape {
        return Some(node);
    }
    let shape = graph.shape(shape).ok()?;
    graph.add(Op::Expand, &[node, shape], Arg::None).ok()
}

/// The view of a mask, taken of what it compares: stages see the comparison then.
fn viewed(graph: &mut Graph, mask: NodeId, view: NodeId) -> Option<NodeId> {
    let sources: SmallVec<[NodeId; 3]> = graph.sources(mask).into();
    let is_inside = matches!(graph.op(mask), Op::And | Op::Or | Op::Xor | Op::CmpNe | Op::CmpLt);
    // What a Pad adds is no comparison of zeros.
    if !is_inside || graph.op(view) == Op::Pad {
        return seen(graph, mask, view);
    }
    let shape = graph.props(mask).shape.clone();
    let mut operands: SmallVec<[NodeId; 3]> = SmallVec::new();
    for source in sources {
        let constant = repeated(graph, source);
        if graph.op(constant) == Op::Const {
            operands.push(constant);
            continue;
        }
        let source = expanded(graph, source, &shape)?;
        operands.push(match graph.dtype(source) {
            DType::Bool => viewed(graph, source, view)?,
            _ => seen(graph, source, view)?,
        });
    }
    let inside = graph.alu(graph.op(mask), &operands).ok()?;
    if graph.props(inside).shape == graph.props(view).shape { Some(inside) } else { seen(graph, mask, view) }
}

/// The same view of something else.
fn seen(graph: &mut Graph, node: NodeId, view: NodeId) -> Option<NodeId> {
    let mut sources = graph.sources(view).to_vec();
    sources[0] = node;
    graph.add(graph.op(view), &sources, graph.arg(view).clone()).ok()
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
    matches!(graph.arg(node), Arg::Reduce { op: Op::Add, .. }) && graph.sources(node).len() == 1
}

/// The terms of a sum: x where a mask holds, cast to what they are summed in.
struct Product {
    x: NodeId,
    mask: NodeId,
    /// Outermost first.
    casts: SmallVec<[DType; 2]>,
}

impl Product {
    /// Terms that are x times masks.
    fn below(graph: &mut Graph, terms: NodeId) -> Option<Product> {
        let (mut product, mut casts) = (terms, SmallVec::new());
        while graph.op(product) == Op::Cast && graph.dtype(graph.source(product, 0)).is_float() {
            casts.push(graph.dtype(product));
            product = graph.source(product, 0);
        }
        let (mut x, mut all) = (product, None);
        for _ in 0..STEPS {
            let (Op::Mul, &[a, b]) = (graph.op(x), graph.sources(x)) else { break };
            let Some((one, other)) = mask(graph, b).map(|mask| (mask, a)).or_else(|| Some((mask(graph, a)?, b))) else {
                break;
            };
            all = Some(match all {
                Some(all) => graph.alu(Op::And, &[all, one]).ok()?,
                None => one,
            });
            x = other;
        }
        Some(Product { x, mask: all?, casts })
    }

    /// The sum of what the mask chooses, as `node` sums the products.
    fn sum(&self, graph: &mut Graph, node: NodeId) -> Option<NodeId> {
        let mut terms = masked(graph, self.mask, self.x)?;
        for &dtype in self.casts.iter().rev() {
            terms = graph.add(Op::Cast, &[terms], Arg::DType(dtype)).ok()?;
        }
        again(graph, node, terms)
    }
}

/// The same Reduce, of other terms.
fn again(graph: &mut Graph, node: NodeId, terms: NodeId) -> Option<NodeId> {
    graph.add(Op::Reduce, &[terms], graph.arg(node).clone()).ok()
}

/// Masks of one x from which on it is worth to count what of it is not finite.
const MASKS_OF_ONE: i64 = 32;

/// The axes along which there are many sums of the same x, where the mask says by positions what each of them takes.
fn chooses(graph: &mut Graph, node: NodeId, product: &Product) -> Option<Axes> {
    let Arg::Reduce { axes, .. } = graph.arg(node).clone() else { return None };
    let shape = graph.props(graph.source(node, 0)).shape.clone();
    let most = |axis: usize| shape[axis].bounds().1 as i128;
    let along = |graph: &Graph, value: NodeId| varying_axes(graph, value, shape.len());
    let own = along(graph, product.x);
    let is_summed = |axis: &u32| axes.contains(axis);
    let once: Axes = (0..shape.len() as u32).filter(|axis| !is_summed(axis) && !own.contains(axis)).collect();
    let masks = once.iter().map(|&axis| most(axis as usize)).fold(1, i128::saturating_mul);
    // Counts of 32 bits.
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
            // Where the positions are, or whose the sums are.
            Op::CmpNe if !holds => {
                is_ramp(a) && !along(graph, a).is_empty() || is_ramp(b) && !along(graph, b).is_empty()
            }
            // A window that moves on from sum to sum.
            Op::CmpLt => {
                let sums = |side: NodeId| along(graph, side).iter().any(is_summed);
                is_ramp(a) && is_ramp(b) && sums(a) != sums(b)
            }
            _ => false,
        }
    };
    conjuncts(graph, product.mask, true).iter().any(is_choice).then_some(once)
}

/// Nodes that a ramp is looked for among.
const RAMP: usize = 64;

/// A number of its position alone: counted, shifted, stretched and viewed.
fn is_ramp(graph: &Graph, node: NodeId) -> bool {
    let mut stack: SmallVec<[NodeId; 8]> = SmallVec::from_iter([node]);
    for _ in 0..RAMP {
        let Some(node) = stack.pop() else { return true };
        match graph.op(node) {
            Op::Const => {}
            Op::Add | Op::Mul => stack.extend_from_slice(graph.sources(node)),
            op if op.is_view() || op == Op::Cast || is_sum(graph, node) => stack.push(graph.source(node, 0)),
            _ => return false,
        }
    }
    false
}

/// The sum of what the mask chooses, and a nan where more is not finite than that. Along the axes `once` x is the same.
fn counted(graph: &mut Graph, node: NodeId, product: Product, once: &[u32]) -> Option<NodeId> {
    let sum = product.sum(graph, node)?;
    let (x, mask) = (product.x, product.mask);
    let zero = graph.constant(Const::int(graph.dtype(x), 0));
    let times_zero = graph.alu(Op::Mul, &[x, zero]).ok()?;
    let is_infinite = graph.alu(Op::CmpNe, &[times_zero, zero]).ok()?;
    let one = graph.add(Op::Cast, &[is_infinite], Arg::DType(DType::I32)).ok()?;
    let chosen = masked(graph, mask, one)?;
    let chosen = again(graph, node, chosen)?;
    let shape = graph.props(graph.source(node, 0)).shape.clone();
    let all = expanded(graph, one, &shape)?;
    let all = first_along(graph, all, once)?;
    let all = again(graph, node, all)?;
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
