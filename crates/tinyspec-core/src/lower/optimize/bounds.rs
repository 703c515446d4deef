//! Powers whose exponents are never positive, as those of a softmax are: `x - max(x)`. The bound is written around the
//! difference, so that Select sees it when the maximum stands in memory: 2^n is one factor then instead of two.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::ops::arithmetic::negated;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, Builder, Const, Graph, NodeId, Op, Result};

/// Whether a power with a bound is cheaper. It is not where one instruction scales by any 2^n.
pub(super) fn are_used(target: &Target) -> bool {
    !target.is_native(Op::Exp2) && !target.instructions.contains(&Instruction::Scale)
}

/// The kernel with the bound around such differences.
pub(in super::super) fn write(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    if !are_used(target) {
        return Ok(sink);
    }
    let powers: SmallVec<[NodeId; 4]> =
        graph.reachable(&[sink]).into_iter().filter(|&node| graph.op(node) == Op::Exp2).collect();
    let mut bounded: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for power in powers {
        let exponent = graph.source(power, 0);
        let (difference, factor) = match (graph.op(exponent), graph.sources(exponent)) {
            (Op::Mul, &[difference, factor]) if is_positive(graph, factor) => (difference, Some(factor)),
            _ => (exponent, None),
        };
        if !is_from_greatest(graph, difference) {
            continue;
        }
        let sources: SmallVec<[NodeId; 2]> = [at_most_zero(graph, difference)?].into_iter().chain(factor).collect();
        let exponent = if factor.is_some() { graph.alu(Op::Mul, &sources)? } else { sources[0] };
        bounded.insert(power, graph.alu(Op::Exp2, &[exponent])?);
    }
    if bounded.is_empty() {
        return Ok(sink);
    }
    Ok(substitute(graph, &[sink], &bounded)?[0])
}

/// A number that is not above 0, with this bound in a form that Select recognises.
pub(super) fn at_most_zero(graph: &mut Graph, value: NodeId) -> Result<NodeId> {
    let zero = graph.constant(Const::float(graph.dtype(value), 0.0));
    let above = graph.alu(Op::CmpLt, &[zero, value])?;
    graph.alu(Op::Where, &[above, zero, value])
}

fn is_positive(graph: &Graph, node: NodeId) -> bool {
    graph.as_const(node).and_then(Const::as_float).is_some_and(|value| value > 0.0)
}

/// Whether it is `x - m`, where m is the maximum of values that include x.
fn is_from_greatest(graph: &Graph, node: NodeId) -> bool {
    let (Op::Add, &[a, b]) = (graph.op(node), graph.sources(node)) else { return false };
    [(a, b), (b, a)].into_iter().any(|(x, minus)| {
        let Some(greatest) = negated(graph, minus) else { return false };
        let is_maximum = matches!(graph.arg(greatest), Arg::Reduce { op: Op::Max, .. });
        is_maximum && is_one_of(graph, x, greatest)
    })
}

/// Whether `x` is a term of the Reduce: the same expression, with other Ranges of as many trips.
fn is_one_of(graph: &Graph, x: NodeId, reduce: NodeId) -> bool {
    let Some((&term, ranges)) = graph.sources(reduce).split_first() else { return false };
    let mut same: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut pairs: SmallVec<[(NodeId, NodeId); 8]> = SmallVec::from_elem((term, x), 1);
    while let Some((a, b)) = pairs.pop() {
        match same.insert(a, b) {
            Some(before) if before != b => return false,
            Some(_) => continue,
            None => {}
        }
        let (of_a, of_b) = (graph.sources(a), graph.sources(b));
        if ranges.contains(&a) {
            if graph.op(b) != Op::Range || of_a[0] != of_b[0] {
                return false;
            }
            continue;
        }
        let is_other = graph.op(a) != graph.op(b) || graph.arg(a) != graph.arg(b) || of_a.len() != of_b.len();
        if is_other || graph.op(a) == Op::Range && a != b {
            return false;
        }
        pairs.extend(of_a.iter().copied().zip(of_b.iter().copied()));
    }
    true
}
