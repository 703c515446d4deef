//! Sums of loop-invariant terms: `Σr [a <= r <= b] · x`, where x does not depend on r, is `(b - a + 1) · x`.

use super::partition::positive;
use super::windows::{depends, without};
use crate::lower::fold::elementwise;
use crate::lower::live;
use crate::lower::terms::{Condition, Terms, constraints, under};
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, Domain};
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// The sum without one of its Ranges, if the terms within the bounds do not depend on it.
///
/// # Errors
/// When the kernel is not in range form.
pub(super) fn counted(graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
    let Arg::Reduce { op: Op::Add, .. } = *graph.arg(node) else { return Ok(None) };
    let terms = Terms::of(graph, Op::Add, graph.source(node, 0))?;
    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
    for &range in &ranges {
        let Some(trips) = live::trips(graph, range) else { continue };
        let Some((count, said)) = count(graph, &terms, (range, trips))? else { continue };
        let value = terms.emit(graph, Op::Add, &said)?;
        let is_exact = graph.dtype(value).whole_range().is_some_and(|(_, most)| i128::from(trips) <= most);
        if !is_exact || depends(graph, value, range) {
            continue;
        }
        let dtype = graph.dtype(value);
        let factor = graph.add(Op::Cast, &[count], Arg::DType(dtype))?;
        let product = elementwise(graph, Op::Mul, &[value, factor], Arg::None)?;
        // 0 times an infinity or nan would be a nan.
        let none = graph.index(0);
        let is_any = elementwise(graph, Op::CmpLt, &[none, count], Arg::None)?;
        let product = under(graph, Op::Add, product, Some(is_any))?;
        return without(graph, node, range, product).map(Some);
    }
    Ok(None)
}

/// The number of trips that the conditions on a Range leave, and these conditions. `None` if there are none, or others than bounds.
fn count(graph: &mut Graph, terms: &Terms, (range, trips): (NodeId, i64)) -> Result<Option<(NodeId, Vec<usize>)>> {
    let domain = Domain::of(graph, range, constraints(&terms.conditions));
    let limits = domain.lows.iter().chain(&domain.highs);
    let said: Vec<usize> = limits.map(|&(_, position)| position).collect();
    let is_bound = |(position, condition): (usize, &Condition)| {
        !depends(graph, condition.node, range) || condition.is_equivalent && said.contains(&position)
    };
    if said.is_empty() || !terms.conditions.iter().enumerate().all(is_bound) {
        return Ok(None);
    }
    let (mut low, mut end) = (Affine::number(0), Affine::number(trips));
    for (limit, _) in &domain.lows {
        low = low.plus(&positive(graph, &limit.minus(&low))?);
    }
    for (limit, _) in &domain.highs {
        end = end.minus(&positive(graph, &end.minus(limit).offset(-1))?);
    }
    let count = positive(graph, &end.minus(&low))?.emit(graph)?;
    Ok((!depends(graph, count, range)).then_some((count, said)))
}
