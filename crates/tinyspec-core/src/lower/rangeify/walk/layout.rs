//! The order in which the dims of a temporary lie in memory: where its reader walks windows along its own innermost
//! loop, the dim under them lies innermost, so that reader and writer have vectors along it.

use super::super::movement::dims;
use super::{DemandId, Walk};
use smallvec::SmallVec;
use tinyspec_ir::{NodeId, Result};

impl Walk<'_> {
    /// The dims of a node, in the order of memory.
    pub(in super::super) fn layout(&self, node: NodeId, rank: usize) -> SmallVec<[usize; 8]> {
        self.layouts.get(&node).cloned().unwrap_or_else(|| (0..rank).collect())
    }

    /// Chooses that order for what one kernel reads in windows.
    pub(super) fn choose_layout(&mut self, node: NodeId, demands: &[DemandId]) -> Result<()> {
        let &[demand] = demands else { return Ok(()) };
        let (kernel, tuple) = {
            let need = &self.needs[demand as usize];
            (need.kernel, need.tuple.clone())
        };
        let outputs = self.kernels[kernel].ranges.clone();
        // The innermost loop of the reader that moves a dim, and whether a reduction does as well.
        let mut moved: SmallVec<[(Option<usize>, bool); 8]> = SmallVec::new();
        for &index in &tuple {
            let ranges = self.indices.ranges_of([index]);
            let loops = ranges.iter().filter_map(|range| outputs.iter().position(|output| output == range));
            moved.push((loops.max(), ranges.iter().any(|range| !outputs.contains(range))));
        }
        let Ok(size) = dims(self.tensors, node) else { return Ok(()) };
        let innermost = (0..size.len()).rev().find(|&axis| size[axis] > 1);
        let window =
            moved.iter().position(|&(by, is_reduced)| is_reduced && by.is_some_and(|by| by + 1 == outputs.len()));
        if window.is_none() || window == innermost {
            return Ok(());
        }
        // What is reduced alone comes between the loops and their windows.
        let mut layout: SmallVec<[usize; 8]> = (0..size.len()).collect();
        layout.sort_by_key(|&axis| match moved[axis] {
            (Some(by), false) => (0, by),
            (None, _) => (1, 0),
            (Some(by), true) => (2, by),
        });
        self.layouts.insert(node, layout);
        Ok(())
    }
}
