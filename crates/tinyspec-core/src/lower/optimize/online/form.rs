//! The form of a kernel whose sums can be computed block by block.

use crate::lower::live::{self, Live};
use crate::lower::optimize::kernel::Nest;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::ops::elementwise::isinf;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op, Result};

/// A kernel whose Reduces run over Ranges of their own, `streamed`, and, inside of those, over `inner` ones.
#[derive(Clone)]
pub(super) struct Form {
    /// The Stores, in terms of the canonical Ranges.
    pub stores: Vec<NodeId>,
    /// Output Ranges that every sum has for itself, outer ones first.
    pub batch: Vec<NodeId>,
    /// The output Range that vectors lie along.
    pub lane: NodeId,
    /// The Ranges of the sums, outer ones first.
    pub streamed: SmallVec<[NodeId; 2]>,
    /// The products that the matrices are made of.
    pub products: Vec<Product>,
    /// The greatest element that all matrices rescale with.
    pub greatest: Option<Greatest>,
    /// The values that are summed over the streamed Ranges, without the rescaling power if there is one; `None` for the
    /// power alone.
    pub matrices: Vec<Option<NodeId>>,
    /// The sums.
    pub sums: Vec<Sum>,
    /// The output Range that no matrix depends on: weights do, or only what follows the sums.
    pub row: Option<NodeId>,
}

/// `Σ rows · lanes` over inner Ranges.
#[derive(Clone)]
pub(super) struct Product {
    /// The Reduce.
    pub node: NodeId,
    /// The factor with the streamed Ranges.
    pub rows: NodeId,
    /// The factor with the lane.
    pub lanes: NodeId,
    /// The Ranges.
    pub inner: SmallVec<[NodeId; 2]>,
}

/// The Reduce-Max of the scores.
#[derive(Clone)]
pub(super) struct Greatest {
    /// The Reduce.
    pub node: NodeId,
    /// The power that rescales with it.
    pub power: NodeId,
    /// The score that it is the maximum of.
    pub score: NodeId,
    /// The factor in `exp2(factor · (score - greatest))`.
    pub factor: NodeId,
}

/// `Σ matrix · weight`, with the common factors and divisors of all terms taken out.
#[derive(Clone)]
pub(super) struct Sum {
    /// The Reduce.
    pub node: NodeId,
    /// Number of the matrix.
    pub matrix: usize,
    /// The other factor, and the output Range that only it has.
    pub weight: Option<(NodeId, NodeId)>,
    /// Ops on the sum, first to last, each with its second operand.
    pub after: Vec<(Op, NodeId)>,
}

/// Steps of a product from which on it is cheaper to keep the matrix in memory.
const STEPS: i64 = 512;
/// Terms of a sum below which a block is not worth its loops.
const TERMS: i64 = 16;

impl Form {
    /// Matches a kernel of this form; `None` for any other.
    pub fn of(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<Option<Form>> {
        if target.vector_bytes == 0 || target.workgroups.is_some() {
            return Ok(None);
        }
        let &[root] = graph.sources(sink) else { return Ok(None) };
        let Nest { body, mut ranges } = Nest::of(graph, root);
        ranges.reverse();
        let stores: Vec<NodeId> = match graph.op(body) {
            Op::Group => graph.sources(body).to_vec(),
            _ => vec![body],
        };
        let plain = |&store: &NodeId| graph.op(store) == Op::Store && graph.sources(store).len() == 2;
        if !stores.iter().all(plain) {
            return Ok(None);
        }
        match Canonical::of(graph, &stores)? {
            Some(canonical) => canonical.form(graph, ranges, target),
            None => Ok(None),
        }
    }
}

/// The Stores with one Range in place of all equivalent ones, so that equal values are one node.
struct Canonical {
    stores: Vec<NodeId>,
    streamed: SmallVec<[NodeId; 2]>,
    /// Reduces over streamed Ranges, and Reduces inside of them.
    outer: Vec<NodeId>,
    inner: Vec<NodeId>,
}

impl Canonical {
    fn of(graph: &mut Graph, stores: &[NodeId]) -> Result<Option<Canonical>> {
        let order = graph.reachable(stores);
        let live = Live::new(graph, &order)?;
        let is_reduced = |range: NodeId| matches!(graph.arg(range), Arg::Range { axis, .. } if axis.is_reduce());
        let reduces: Vec<NodeId> = order.into_iter().filter(|&node| graph.op(node) == Op::Reduce).collect();
        let (inner, outer): (Vec<NodeId>, Vec<NodeId>) =
            reduces.into_iter().partition(|&node| live.members(live.of(node)).any(is_reduced));
        if inner.is_empty() || outer.is_empty() {
            return Ok(None);
        }
        let mut map: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        // By whether it is inside, its position, and its trips.
        let mut known: FxHashMap<(bool, usize, i64), NodeId> = FxHashMap::default();
        let mut id = live::next_range_id(graph, graph.nodes());
        for (is_inner, reduces) in [(false, &outer), (true, &inner)] {
            for &reduce in reduces {
                let ranges: SmallVec<[NodeId; 4]> = graph.sources(reduce)[1..].into();
                for (position, range) in ranges.into_iter().enumerate() {
                    let Some(trips) = live::trips(graph, range) else { return Ok(None) };
                    let canonical = match known.get(&(is_inner, position, trips)) {
                        Some(&range) => range,
                        None => {
                            let bound = graph.index(trips);
                            id += 1;
                            graph.range(bound, id, AxisType::Reduce)?
                        }
                    };
                    known.insert((is_inner, position, trips), canonical);
                    if map.insert(range, canonical).is_some_and(|other| other != canonical) {
                        return Ok(None);
                    }
                }
            }
        }
        let stores = substitute(graph, stores, &map)?;
        let is_streamed = |&range: &NodeId| known.iter().any(|(key, &other)| !key.0 && other == range);
        let reduces = graph.reachable(&stores).into_iter().filter(|&node| graph.op(node) == Op::Reduce);
        let (outer, inner): (Vec<NodeId>, Vec<NodeId>) =
            reduces.partition(|&node| graph.sources(node)[1..].iter().any(is_streamed));
        let streamed: SmallVec<[NodeId; 2]> = graph.sources(outer[0])[1..].into();
        let alike = outer.iter().all(|&node| graph.sources(node)[1..] == streamed[..]);
        Ok(alike.then_some(Canonical { stores, streamed, outer, inner }))
    }

    fn form(self, graph: &mut Graph, ranges: Vec<NodeId>, target: &Target) -> Result<Option<Form>> {
        let Canonical { stores, streamed, outer, inner } = self;
        let live = Live::new(graph, &graph.reachable(&stores))?;
        let has = |node: NodeId, range: NodeId| live.of(node) & live.bit(range) != 0;
        let streams = |node: NodeId| streamed.iter().any(|&range| has(node, range));
        let trips = |graph: &Graph, ranges: &[NodeId]| -> Option<i64> {
            ranges.iter().try_fold(1i64, |all, &range| all.checked_mul(live::trips(graph, range)?))
        };
        if trips(graph, &streamed).is_none_or(|terms| terms < TERMS) {
            return Ok(None);
        }

        let mut products = Vec::new();
        for node in inner {
            let (Arg::Reduce { op: Op::Add, .. }, product) = (graph.arg(node), graph.source(node, 0)) else {
                return Ok(None);
            };
            let inner: SmallVec<[NodeId; 2]> = graph.sources(node)[1..].into();
            let is_small = trips(graph, &inner).is_some_and(|steps| steps <= STEPS);
            let (Op::Mul, &[a, b]) = (graph.op(product), graph.sources(product)) else { return Ok(None) };
            let (rows, lanes) = if streams(a) { (a, b) } else { (b, a) };
            if !is_small || streams(lanes) || graph.dtype(node) != DType::F32 {
                return Ok(None);
            }
            products.push(Product { node, rows, lanes, inner });
        }
        // A lane occurs in only one factor of every product.
        let is_lane = |range: NodeId| {
            products.iter().all(|product| has(product.lanes, range) && !has(product.rows, range))
                && live::trips(graph, range).is_some_and(|trips| trips >= target.lanes(DType::F32) as i64)
        };
        let lane = ranges.iter().copied().filter(|&range| is_lane(range));
        let Some(lane) = lane.max_by_key(|&range| live::trips(graph, range)) else { return Ok(None) };

        let maxima: Vec<NodeId> = outer.iter().copied().filter(|&node| !is_sum(graph, node)).collect();
        let greatest = match maxima[..] {
            [] => None,
            [node] if matches!(graph.arg(node), Arg::Reduce { op: Op::Max, .. }) => Some(node),
            _ => return Ok(None),
        };
        let greatest = match greatest {
            None => None,
            Some(node) => {
                let powers =
                    graph.reachable(&outer).into_iter().find_map(|power| rescaled(graph, power, node).transpose());
                let Some(found) = powers.transpose()? else { return Ok(None) };
                Some(found)
            }
        };
        let mut form = Form {
            batch: Vec::new(),
            lane,
            greatest,
            matrices: Vec::new(),
            sums: Vec::new(),
            row: None,
            stores,
            streamed: streamed.clone(),
            products,
        };
        let mut rows: SmallVec<[NodeId; 1]> = SmallVec::new();
        let is_greatest = |node: NodeId| form.greatest.as_ref().is_some_and(|greatest| greatest.node == node);
        for &node in outer.iter().filter(|&&node| !is_greatest(node)) {
            let (mut factors, mut after) = (Vec::new(), Vec::new());
            apart(graph, graph.source(node, 0), &streams, &mut factors, &mut after);
            let (mut weights, mut others): (Vec<NodeId>, Vec<NodeId>) =
                factors.iter().partition(|&&factor| !has(factor, lane));
            let is_own = |range: &NodeId| {
                weights.iter().any(|&node| has(node, *range)) && !others.iter().any(|&node| has(node, *range))
            };
            let own: SmallVec<[NodeId; 2]> = ranges.iter().copied().filter(is_own).collect();
            let row = match own.as_slice() {
                &[row] => Some(row),
                _ => {
                    (weights, others) = (Vec::new(), factors);
                    None
                }
            };
            // A factor that depends on neither the lane nor the row is applied once per term instead of once per weight.
            if let Some(row) = row {
                others.extend(weights.extract_if(.., |weight| !has(*weight, row)));
            }
            if let Some(greatest) = &form.greatest {
                let Some(power) = others.iter().position(|&factor| factor == greatest.power) else { return Ok(None) };
                others.remove(power);
            }
            let matrix = multiplied(graph, &others)?;
            let matrix = form.matrices.iter().position(|&known| known == matrix).unwrap_or_else(|| {
                form.matrices.push(matrix);
                form.matrices.len() - 1
            });
            let weight = multiplied(graph, &weights)?.zip(row);
            rows.extend(row);
            form.sums.push(Sum { node, matrix, weight, after });
        }
        rows.dedup();
        if rows.len() > 1 || rows.contains(&lane) || form.sums.is_empty() {
            return Ok(None);
        }
        if rows.is_empty() {
            let own = form.products.iter().map(|product| product.node).chain(form.matrices.iter().copied().flatten());
            let own: Vec<NodeId> = own.chain(form.greatest.iter().map(|greatest| greatest.node)).collect();
            let is_row = |&range: &NodeId| range != lane && !own.iter().any(|&node| has(node, range));
            rows.extend(ranges.iter().copied().filter(is_row).max_by_key(|&range| live::trips(graph, range)));
        }
        form.row = rows.first().copied();
        form.batch = ranges.into_iter().filter(|&range| range != lane && !rows.contains(&range)).collect();
        // No value in a loop may depend on a result of the loop.
        let scores = form.greatest.iter().map(|greatest| greatest.score);
        let within: Vec<NodeId> = scores.chain(form.matrices.iter().copied().flatten()).collect();
        let mut below = graph.reachable(&within);
        below.retain(|node| outer.contains(node));
        let weights = form.sums.iter().filter_map(|sum| sum.weight.map(|weight| weight.0));
        let loads = graph.reachable(&weights.collect::<Vec<_>>());
        let is_closed = |store: &NodeId| {
            let row = rows.first().copied();
            // Its address depends on the row if its value does.
            let (place, value) = (graph.source(*store, 0), graph.source(*store, 1));
            row.is_none_or(|row| !has(value, row) || has(place, row))
        };
        let is_alone = loads.iter().all(|&node| graph.op(node) != Op::Reduce);
        let are_made = form.greatest.is_some() || form.matrices.iter().all(Option::is_some);
        Ok((below.is_empty() && is_alone && are_made && form.stores.iter().all(is_closed)).then_some(form))
    }
}

fn is_sum(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.arg(node), Arg::Reduce { op: Op::Add, .. }) && graph.dtype(node) == DType::F32
}

/// The factors of a value that vary from term to term, and those that do not, which apply `after` the sum.
fn apart(
    graph: &Graph,
    value: NodeId,
    varies: &dyn Fn(NodeId) -> bool,
    factors: &mut Vec<NodeId>,
    after: &mut Vec<(Op, NodeId)>,
) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match (graph.op(value), graph.sources(value)) {
            _ if !varies(value) => after.push((Op::Mul, value)),
            (Op::Mul, &[a, b]) => pending.extend([b, a]),
            (Op::Div, &[a, b]) if !varies(b) => {
                after.push((Op::Div, b));
                pending.push(a);
            }
            _ => factors.push(value),
        }
    }
}

fn multiplied(graph: &mut Graph, factors: &[NodeId]) -> Result<Option<NodeId>> {
    let Some((&first, others)) = factors.split_first() else { return Ok(None) };
    others.iter().try_fold(first, |product, &factor| graph.alu(Op::Mul, &[product, factor])).map(Some)
}

/// `exp2(factor · (score - greatest))`, where an infinite `greatest` may count as 0.
fn rescaled(graph: &mut Graph, power: NodeId, node: NodeId) -> Result<Option<Greatest>> {
    let score = graph.source(node, 0);
    let (Op::Exp2, &[exponent]) = (graph.op(power), graph.sources(power)) else { return Ok(None) };
    let (Op::Mul, &[shifted, factor]) = (graph.op(exponent), graph.sources(exponent)) else { return Ok(None) };
    let (Op::Add, &[first, minus]) = (graph.op(shifted), graph.sources(shifted)) else { return Ok(None) };
    let (Op::Mul, &[shift, one]) = (graph.op(minus), graph.sources(minus)) else { return Ok(None) };
    let number = |node: NodeId| graph.as_const(node).and_then(|number| number.as_float());
    let grows = number(factor).is_some_and(|factor| factor > 0.0 && factor.is_finite());
    if first != score || !grows || number(one) != Some(-1.0) {
        return Ok(None);
    }
    let is_shift = match (graph.op(shift), graph.sources(shift)) {
        (Op::Where, &[is_infinite, zero, greatest]) => {
            number(zero) == Some(0.0) && greatest == node && isinf(graph, node)? == is_infinite
        }
        _ => shift == node,
    };
    Ok(is_shift.then_some(Greatest { node, power, score, factor }))
}
