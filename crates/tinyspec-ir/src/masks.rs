//! Queries about masks: the comparisons that they consist of, and the axes along which a value varies.

use crate::eval::eval_op;
use crate::{Arg, Axes, Builder, Const, DType, Dim, Graph, NodeId, Op};
use smallvec::SmallVec;

/// The conditions that a mask consists of, each with the outcome that it must have for the mask to be `holds`.
///
/// ```
/// use tinyspec_ir::{Builder, DType, Dim, Graph, Op, masks::conjuncts};
/// let mut graph = Graph::new();
/// let (a, b) = (graph.dim(&Dim::named(0, 0, 9))?, graph.dim(&Dim::named(1, 0, 9))?);
/// let differ = graph.alu(Op::CmpNe, &[a, b])?;
/// let truth = graph.constant(tinyspec_ir::Const::int(DType::Bool, 1));
/// let equal = graph.alu(Op::Xor, &[differ, truth])?;
/// assert_eq!(conjuncts(&graph, equal, true)[..], [(differ, false)]);
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
pub fn conjuncts(graph: &Graph, mask: NodeId, holds: bool) -> SmallVec<[(NodeId, bool); 2]> {
    let mut found = SmallVec::new();
    let mut pending: SmallVec<[(NodeId, bool); 4]> = SmallVec::from_iter([(mask, holds)]);
    while let Some((node, holds)) = pending.pop() {
        let is_bool = |source: NodeId| graph.dtype(source) == DType::Bool;
        let truth = |source: NodeId| graph.as_int(repeated(graph, source)).map(|value| value != 0);
        match (graph.op(node), graph.sources(node)) {
            (Op::And, &[a, b]) if holds => pending.extend([(b, true), (a, true)]),
            (Op::Or, &[a, b]) if !holds => pending.extend([(b, false), (a, false)]),
            (Op::Xor | Op::CmpNe, &[a, b]) if is_bool(a) && truth(b).is_some() => {
                pending.push((a, holds ^ (truth(b) == Some(true))));
            }
            (Op::Where, &[condition, yes, no]) if holds && is_bool(no) && truth(no) == Some(false) => {
                pending.extend([(yes, true), (condition, true)]);
            }
            _ => match choice(graph, node) {
                Some((condition, same)) => pending.push((condition, holds == same)),
                None => found.push((node, holds)),
            },
        }
    }
    found
}

/// The condition behind a comparison with a select of constants, and whether both hold together: `k < Where(c, x, y)`
/// is c or its negation.
fn choice(graph: &Graph, node: NodeId) -> Option<(NodeId, bool)> {
    let chosen = |node: NodeId, value: &dyn Fn(Const) -> Option<Const>| {
        let &[condition, yes, no] = graph.sources(node) else { return None };
        let pair = (graph.op(node) == Op::Where).then_some((constant(graph, yes)?, constant(graph, no)?))?;
        let (yes, no) = (value(pair.0)?.as_int()? != 0, value(pair.1)?.as_int()? != 0);
        (yes != no).then_some((condition, yes))
    };
    match (graph.op(node), graph.sources(node)) {
        (Op::Where, _) => chosen(node, &|value| Some(value)),
        (op @ (Op::CmpLt | Op::CmpNe), &[a, b]) => match (constant(graph, a), constant(graph, b)) {
            (Some(a), None) => chosen(b, &|value| eval_op(op, DType::Bool, &[a, value]).ok()),
            (None, Some(b)) => chosen(a, &|value| eval_op(op, DType::Bool, &[value, b]).ok()),
            _ => None,
        },
        _ => None,
    }
}

/// A constant, possibly cast.
fn constant(graph: &Graph, node: NodeId) -> Option<Const> {
    let node = repeated(graph, node);
    match (graph.op(node), graph.sources(node)) {
        (Op::Cast, &[inner]) => eval_op(Op::Cast, graph.dtype(node), &[graph.as_const(repeated(graph, inner))?]).ok(),
        _ => graph.as_const(node),
    }
}

/// The constant that a view repeats; any other node itself.
pub fn repeated(graph: &Graph, node: NodeId) -> NodeId {
    let mut below = node;
    while matches!(graph.op(below), Op::Expand | Op::Reshape | Op::Permute | Op::Flip | Op::Shrink) {
        below = graph.source(below, 0);
    }
    if graph.op(below) == Op::Const { below } else { node }
}

/// The most nodes to visit for the axes of a value.
const NODES: usize = 64;

/// For each axis, whether a value may vary along it.
pub fn varies(graph: &Graph, node: NodeId) -> SmallVec<[bool; 6]> {
    along(graph, node, &mut { NODES })
}

/// Along which of `rank` axes a value, which broadcasts to them, may vary.
pub fn varying_axes(graph: &Graph, node: NodeId, rank: usize) -> Axes {
    let own = varies(graph, node);
    let first = rank.saturating_sub(own.len());
    own.iter().enumerate().filter(|(_, varies)| **varies).map(|(axis, _)| (first + axis) as u32).collect()
}

fn along(graph: &Graph, node: NodeId, budget: &mut usize) -> SmallVec<[bool; 6]> {
    let shape = &graph.props(node).shape;
    let any = || shape.iter().map(|dim| !dim.is(1)).collect();
    let Some(left) = budget.checked_sub(1) else { return any() };
    *budget = left;
    let mut below = |position: usize| {
        let source = graph.source(node, position);
        (along(graph, source, budget), &graph.props(source).shape)
    };
    match (graph.op(node), graph.arg(node)) {
        (Op::Const, _) => any(),
        (Op::Permute, Arg::Axes(order)) => {
            let (inner, _) = below(0);
            order.iter().map(|&axis| inner[axis as usize]).collect()
        }
        (Op::Flip | Op::Shrink, _) => {
            let (inner, _) = below(0);
            inner.iter().zip(shape).map(|(&varies, dim)| varies && !dim.is(1)).collect()
        }
        (Op::Pad, _) => {
            let (inner, from) = below(0);
            (0..shape.len()).map(|axis| inner[axis] || from[axis] != shape[axis]).collect()
        }
        (Op::Reshape, _) => {
            let (inner, from) = below(0);
            reshaped(&inner, from, shape)
        }
        (Op::Reduce, Arg::Reduce { axes, .. }) if graph.sources(node).len() == 1 => {
            let (mut inner, _) = below(0);
            axes.iter().for_each(|&axis| inner[axis as usize] = false);
            inner
        }
        (op, _) if op == Op::Expand || op.is_elementwise() && op != Op::Wmma => {
            let mut all: SmallVec<[bool; 6]> = shape.iter().map(|_| false).collect();
            let sources = if op == Op::Expand { 1 } else { graph.sources(node).len() };
            for position in 0..sources {
                let (inner, from) = below(position);
                let Some(first) = all.len().checked_sub(inner.len()) else { return any() };
                for (axis, varies) in inner.into_iter().enumerate() {
                    all[first + axis] |= varies && !from[axis].is(1);
                }
            }
            all
        }
        _ => any(),
    }
}

/// Matches axes in groups with equal numbers of elements; axes of size 1 do not matter.
fn reshaped(inner: &[bool], from: &[Dim], to: &[Dim]) -> SmallVec<[bool; 6]> {
    let wide = |dims: &[Dim]| (0..dims.len()).filter(|&axis| !dims[axis].is(1)).collect::<SmallVec<[usize; 6]>>();
    let (sources, targets) = (wide(from), wide(to));
    let mut found: SmallVec<[bool; 6]> = to.iter().map(|_| false).collect();
    let (mut source, mut target) = (0, 0);
    while let (Some(&first), Some(&second)) = (sources.get(source), targets.get(target)) {
        let (start, begin) = (source, target);
        let (mut many, mut few) = (from[first].clone(), to[second].clone());
        (source, target) = (source + 1, target + 1);
        while many != few {
            match (many.as_const(), few.as_const(), sources.get(source), targets.get(target)) {
                (Some(a), Some(b), Some(&next), _) if a < b => {
                    many = many * from[next].clone();
                    source += 1;
                }
                (Some(a), Some(b), _, Some(&next)) if a > b => {
                    few = few * to[next].clone();
                    target += 1;
                }
                // Sizes that cannot be compared end the matching: the rest is one group.
                _ => {
                    (source, target) = (sources.len(), targets.len());
                    break;
                }
            }
        }
        let changes = sources[start..source].iter().any(|&axis| inner[axis]);
        targets[begin..target].iter().for_each(|&axis| found[axis] = changes);
    }
    found
}
