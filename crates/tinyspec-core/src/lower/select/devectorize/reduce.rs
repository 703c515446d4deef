//! Reduces across tile axes: parts first, lanes last.

use super::{Cut, New, dims, extract, malformed, splat};
use crate::lower::select::accumulate::update;
use crate::lower::select::tile::{Dims, Parts};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Axes, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};

impl Cut {
    /// Reduces across tile axes: parts first, pairwise; then the lanes of the remaining vector.
    pub(super) fn reduce(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let Arg::Reduce { op, axes } = graph.arg(node).clone() else { return Err(malformed(graph, node)) };
        let source = graph.source(node, 0);
        let from = self.layout(dims(graph, source)?);
        let to = self.layout(dims(graph, node)?);
        let across_lanes = from.lane.is_some_and(|lane| axes.contains(&(lane as u32)));
        // The parts of each result, keyed by the coordinates of its first lane.
        let mut gathered: FxHashMap<Dims, Vec<NodeId>> = FxHashMap::default();
        for at in from.starts() {
            let part = self.part(graph, source, &from, &at)?;
            let mut kept = at.clone();
            for &axis in &axes {
                *kept.get_mut(axis as usize).ok_or_else(|| malformed(graph, node))? = 0;
            }
            let parts = gathered.entry(kept).or_default();
            // A constant 0, as from a closed gate, adds nothing.
            if op == Op::Add && !parts.is_empty() && graph.as_const(part).is_some_and(|zero| zero.bits == 0) {
                continue;
            }
            let part = splat(graph, part, from.width)?;
            parts.push(part);
        }
        let mut results: FxHashMap<Dims, NodeId> = FxHashMap::default();
        let chains = self.chains.div_ceil(gathered.len().max(1));
        for (at, parts) in gathered {
            let mut total = total(graph, op, parts, chains)?;
            if across_lanes {
                let arg = Arg::Reduce { op, axes: Axes::from_iter([0]) };
                let single = graph.add(Op::Reduce, &[total], arg)?;
                total = extract(graph, single, 0)?;
            }
            results.insert(at, total);
        }
        let mut parts = Vec::with_capacity(to.count());
        for at in to.starts() {
            // The result may be vectorised along another axis than the source, so its vectors are built lane by lane.
            let lane_of = |lane: i64| {
                let mut at = at.clone();
                if let Some(axis) = to.lane {
                    at[axis] += lane;
                }
                results.get(&at).copied()
            };
            let part = match (lane_of(0), to.lane) {
                (Some(_), Some(lane)) if from.lane != Some(lane) => {
                    let elements: Option<SmallVec<[NodeId; 16]>> = (0..to.width).map(lane_of).collect();
                    elements.map(|elements| graph.add(Op::Stack, &elements, Arg::None)).transpose()?
                }
                (part, _) => part,
            };
            parts.push(part.ok_or_else(|| malformed(graph, node))?);
        }
        Ok(New::Value(Parts { layout: to, parts }))
    }
}

/// Adds up a sum of products in a few chains of multiply-adds, and anything else in a tree.
fn total(graph: &mut Graph, op: Op, parts: Vec<NodeId>, chains: usize) -> Result<NodeId> {
    let is_product = |&part: &NodeId| graph.op(part) == Op::Mul && graph.dtype(part).is_float();
    if op != Op::Add || !parts.iter().any(is_product) {
        return pairwise(graph, op, parts);
    }
    let chains = chains.clamp(1, parts.len().div_ceil(2));
    let mut totals: Vec<NodeId> = Vec::with_capacity(chains);
    for (position, &part) in parts.iter().enumerate() {
        match totals.get(position % chains) {
            Some(&before) => totals[position % chains] = update(graph, op, part, before)?,
            None => totals.push(part),
        }
    }
    pairwise(graph, op, totals)
}

/// A chain of products that starts with `before`; `None` for other sums.
pub(super) fn continued(graph: &mut Graph, before: NodeId, chain: NodeId) -> Result<Option<NodeId>> {
    let (mut factors, mut first) = (Vec::new(), chain);
    while let (Op::Mulacc, &[a, b, rest]) = (graph.op(first), graph.sources(first)) {
        factors.push((a, b));
        first = rest;
    }
    if graph.op(first) != Op::Mul || !graph.dtype(first).is_float() {
        return Ok(None);
    }
    let mut sum = update(graph, Op::Add, first, before)?;
    for (a, b) in factors.into_iter().rev() {
        sum = graph.alu(Op::Mulacc, &[a, b, sum])?;
    }
    Ok(Some(sum))
}

/// A balanced tree, for the sake of latency and rounding.
fn pairwise(graph: &mut Graph, op: Op, mut values: Vec<NodeId>) -> Result<NodeId> {
    while values.len() > 1 {
        let mut next = Vec::with_capacity(values.len().div_ceil(2));
        for pair in values.chunks(2) {
            next.push(match *pair {
                [a, b] => graph.alu(op, &[a, b])?,
                [a] => a,
                _ => continue,
            });
        }
        values = next;
    }
    values.first().copied().ok_or_else(|| Error::new(ErrorKind::Verify, op.name(), "a reduction of nothing"))
}
