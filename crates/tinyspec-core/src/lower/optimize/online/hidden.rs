//! Terms that are masked off, such as those of later keys in causal attention.

use super::form::Form;
use crate::lower::live;
use crate::lower::optimize::partition::{Bound, Bounds, Candidates, Copied, everywhere, is_zero_or_nan, simplified};
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Builder, Const, DType, Graph, NodeId, Op, Result};

/// The least share of masked-off terms for which blocks are skipped.
const LEAST_SHARE: f64 = 0.25;

/// The value that remains of a matrix where the scores are masked off.
#[derive(Clone, Copy)]
pub(super) enum Rest {
    /// A value that depends on no lane.
    Terms(NodeId),
    /// A value that is the same for all terms, and 0 or a nan.
    Lanes(NodeId),
}

/// The remaining value of each matrix.
type Values = Vec<Rest>;

/// The share of terms that are masked off; 0 if too few for blocks to be skipped.
pub(super) fn share(graph: &mut Graph, form: &Form) -> Result<f64> {
    let share = bounds(graph, form, everywhere)?.map_or(0.0, |bounds| bounds.share(graph));
    Ok(if share < LEAST_SHARE { 0.0 } else { share })
}

/// The bounds of the terms that are not masked off.
pub(super) fn bounds(
    graph: &mut Graph,
    form: &Form,
    extremes: impl FnMut(&Graph, NodeId, i64) -> Option<(Affine, Affine)>,
) -> Result<Option<Bounds<Values>>> {
    let [range] = form.streamed[..] else { return Ok(None) };
    let Some(trips) = live::trips(graph, range) else { return Ok(None) };
    let scores = form.greatest.iter().map(|greatest| greatest.score);
    let made: SmallVec<[NodeId; 4]> = scores.chain(form.matrices.iter().copied().flatten()).collect();
    let candidates = Candidates::of(graph, &made, &Copied::default(), (range, trips), extremes)?;
    candidates.choose(graph, |graph, bound| hidden(graph, form, bound)).map(Some)
}

/// `None` where the terms beyond a bound are no simpler.
fn hidden(graph: &mut Graph, form: &Form, bound: &Bound) -> Result<Option<Values>> {
    let zero = graph.constant(Const::float(DType::F32, 0.0));
    if let Some(greatest) = &form.greatest {
        let score = simplified(graph, greatest.score, &Copied::default(), &bound.gates)?;
        if graph.as_const(score).and_then(Const::as_float) != Some(f64::NEG_INFINITY) {
            return Ok(None);
        }
    }
    let mut values = Vec::new();
    for matrix in &form.matrices {
        let value = matrix.map(|matrix| simplified(graph, matrix, &Copied::default(), &bound.gates)).transpose()?;
        // The power beside it is 0.
        values.push(match (value, &form.greatest) {
            (Some(value), Some(_)) => graph.alu(Op::Mul, &[value, zero])?,
            (Some(value), None) => value,
            (None, _) => zero,
        });
    }
    let depends = |value: NodeId, on: &dyn Fn(NodeId) -> bool| graph.reachable(&[value]).into_iter().any(on);
    let is_product = |node: NodeId| form.products.iter().any(|product| product.node == node);
    let rest = |value: NodeId| match depends(value, &|node| node == form.lane) {
        _ if depends(value, &is_product) => None,
        false => Some(Rest::Terms(value)),
        true if depends(value, &|node| form.streamed.contains(&node)) => None,
        true => is_zero_or_nan(graph, value).then_some(Rest::Lanes(value)),
    };
    let weights = form.sums.iter().filter_map(|sum| sum.weight);
    let are_weights_alike = weights.into_iter().all(|(weight, _)| !depends(weight, &|node| node == form.lane));
    Ok(values.into_iter().map(rest).collect::<Option<Values>>().filter(|_| are_weights_alike))
}
