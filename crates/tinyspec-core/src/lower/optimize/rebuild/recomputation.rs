//! Values that the loop of a Reduce leaves in LOCAL memory for a later loop.

use super::Rebuild;
use crate::lower::loops::closed;
use crate::lower::optimize::Recomputed;
use tinyspec_ir::{AxisType, Graph, NodeId, Result};

impl Rebuild<'_> {
    /// The replacement of the repeated value: a Load of the value that the Reduce's loop stores. `None` where that loop
    /// does not have exactly one Range.
    pub(super) fn keep(&mut self, graph: &mut Graph, repeat: &Recomputed) -> Result<Option<NodeId>> {
        let (Some(from), Some(to)) = (self.space.origin(repeat.from), self.space.origin(repeat.to)) else {
            return Ok(None);
        };
        let axes: Vec<usize> = (0..self.axes.len()).filter(|&axis| self.space.axes[axis].origin == from).collect();
        let loops =
            axes.iter().filter(|&&axis| self.axes[axis].is_some() && self.space.axes[axis].kind == AxisType::Reduce);
        let merged = self.space.origins[from].merged || self.space.origins[to].merged;
        let same = self.space.origins[from].trips == self.space.origins[to].trips;
        // Trips of a tile would all use the same places.
        let live = self.kernel.live.of(repeat.value);
        let is_tiled = self.space.axes.iter().any(|axis| {
            let is_tile = matches!(axis.kind, AxisType::Upcast | AxisType::Unroll) && axis.trips != Some(1);
            is_tile && axis.origin != from && live & self.kernel.live.bit(self.space.origins[axis.origin].range) != 0
        });
        if loops.count() != 1 || merged || !same || is_tiled {
            return Ok(None);
        }
        for node in graph.reachable(&[repeat.value]) {
            self.visit(graph, node)?;
        }
        let value = self.value(graph, repeat.value)?;
        // Either walk may be padded.
        let size = |origin: usize| {
            let axes = self.space.axes.iter().filter(|axis| axis.origin == origin);
            axes.map(|axis| axis.trips.unwrap_or(1)).product::<i64>()
        };
        let kept = self.local(graph, graph.dtype(value), size(from).max(size(to)))?;
        let stored = kept.store(graph, &self.origins[from], value, None)?;
        let loops: Vec<NodeId> = axes.iter().filter_map(|&axis| self.axes[axis]).collect();
        let stored = closed(graph, stored, &loops)?;
        kept.after(graph, [stored])?.load(graph, &self.origins[to]).map(Some)
    }
}
