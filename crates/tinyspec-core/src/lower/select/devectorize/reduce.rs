//! Reduces across tile axes: parts first, lanes last.

use super::{Cut, New, dims, extract, gathered, lanes, malformed, splat};
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
        let mut parts_of: FxHashMap<Dims, Vec<NodeId>> = FxHashMap::default();
        for at in from.starts() {
            let part = self.part(graph, source, &from, &at)?;
            let mut kept = at.clone();
            for &axis in &axes {
                *kept.get_mut(axis as usize).ok_or_else(|| malformed(graph, node))? = 0;
            }
            let parts = parts_of.entry(kept).or_default();
            // A constant 0, as from a closed gate, adds nothing.
            if op == Op::Add && !parts.is_empty() && graph.as_const(part).is_some_and(|zero| zero.bits == 0) {
                continue;
            }
            let part = splat(graph, part, from.width)?;
            parts.push(part);
        }
        let chains = self.chains.div_ceil(parts_of.len().max(1));
        let mut totals: Vec<(Dims, NodeId)> = Vec::with_capacity(parts_of.len());
        for (at, parts) in parts_of {
            totals.push((at, total(graph, op, parts, chains)?));
        }
        if across_lanes {
            // Neighbours are reduced together.
            totals.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            for together in totals.chunks_mut(from.width as usize) {
                let vectors: SmallVec<[NodeId; 16]> = together.iter().map(|total| total.1).collect();
                for (total, result) in together.iter_mut().zip(across(graph, op, &vectors)?) {
                    total.1 = result;
                }
            }
        }
        let results: FxHashMap<Dims, NodeId> = totals.into_iter().collect();
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

/// Horizontal reductions of several vectors, at most as many as they have lanes. Each step combines two vectors into one that holds
/// partial results of both, in halves as long, until a single vector holds all results.
fn across(graph: &mut Graph, op: Op, vectors: &[NodeId]) -> Result<Vec<NodeId>> {
    let width = vectors.first().map_or(1, |&vector| lanes(graph, vector)) as usize;
    if vectors.len() < 2 || !width.is_power_of_two() {
        let arg = Arg::Reduce { op, axes: Axes::from_iter([0]) };
        let single = |&vector: &NodeId| {
            let single = graph.add(Op::Reduce, &[vector], arg.clone())?;
            extract(graph, single, 0)
        };
        return vectors.iter().map(single).collect();
    }
    // Vectors, and the inputs whose partial results they hold, in runs of equal length.
    let numbers = (0..vectors.len().next_power_of_two()).map(|number| number.min(vectors.len() - 1));
    let mut open: Vec<(NodeId, Vec<usize>)> = numbers.map(|number| (vectors[number], vec![number])).collect();
    while open.len() > 1 {
        let others = open.split_off(open.len() / 2);
        for ((vector, numbers), (other, of_other)) in open.iter_mut().zip(others) {
            let run = width / numbers.len();
            let mut half = |upper: usize| {
                let pieces = (0..numbers.len()).flat_map(|number| [(*vector, number), (other, number)]);
                let picked: SmallVec<[(NodeId, i64); 16]> = pieces
                    .flat_map(|(vector, number)| (0..run / 2).map(move |lane| (vector, number, lane)))
                    .map(|(vector, number, lane)| (vector, (number * run + upper * run / 2 + lane) as i64))
                    .collect();
                gathered(graph, &picked)
            };
            let halves = [half(0)?, half(1)?];
            *vector = graph.alu(op, &halves)?;
            *numbers = numbers.iter().zip(of_other).flat_map(|(&number, other)| [number, other]).collect();
        }
    }
    let Some((mut vector, numbers)) = open.pop() else { return Ok(Vec::new()) };
    let mut run = width / numbers.len();
    while run > 1 {
        let mut half = |upper: usize| {
            let lanes = (0..numbers.len() * run).filter(|lane| lane % run / (run / 2) == upper);
            let picked: SmallVec<[(NodeId, i64); 16]> = lanes.map(|lane| (vector, lane as i64)).collect();
            gathered(graph, &picked)
        };
        let halves = [half(0)?, half(1)?];
        vector = graph.alu(op, &halves)?;
        run /= 2;
    }
    let lane = |number: usize| numbers.iter().position(|&other| other == number).unwrap_or_default();
    (0..vectors.len()).map(|number| extract(graph, vector, lane(number) as i64)).collect()
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
