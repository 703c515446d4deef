//! Reduces across tile axes: parts first, lanes last.

use super::{Cut, New, dims, extract, malformed, splat};
use crate::lower::select::tile::{Dims, Parts};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Axes, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};

impl Cut {
    /// Across tile axes: parts first, pairwise; the lanes of what is left come last.
    pub(super) fn reduce(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let Arg::Reduce { op, axes } = graph.arg(node).clone() else { return Err(malformed(graph, node)) };
        let source = graph.source(node, 0);
        let from = self.layout(dims(graph, source)?);
        let to = self.layout(dims(graph, node)?);
        let across_lanes = from.lane.is_some_and(|lane| axes.contains(&(lane as u32)));
        // Results are numbered by where their first lane starts.
        let mut gathered: FxHashMap<Dims, Vec<NodeId>> = FxHashMap::default();
        for at in from.starts() {
            let part = self.part(graph, source, &from, &at)?;
            let part = splat(graph, part, from.width)?;
            let mut kept = at.clone();
            for &axis in &axes {
                *kept.get_mut(axis as usize).ok_or_else(|| malformed(graph, node))? = 0;
            }
            gathered.entry(kept).or_default().push(part);
        }
        let mut results: FxHashMap<Dims, NodeId> = FxHashMap::default();
        for (at, parts) in gathered {
            let mut total = pairwise(graph, op, parts)?;
            if across_lanes {
                let arg = Arg::Reduce { op, axes: Axes::from_iter([0]) };
                let single = graph.add(Op::Reduce, &[total], arg)?;
                total = extract(graph, single, 0)?;
            }
            results.insert(at, total);
        }
        let mut parts = Vec::with_capacity(to.count());
        for at in to.starts() {
            // The result may lie along another axis than the source did: build its vectors lane by lane.
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
