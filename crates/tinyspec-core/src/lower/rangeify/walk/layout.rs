//! Chooses the layout of temporaries: if readers move windows along their innermost loop, or stride over short dims,
//! that dim becomes innermost in memory, so that readers and writer can vectorise along it.

use super::super::movement::dims;
use super::{DemandId, Walk};
use smallvec::SmallVec;
use tinyspec_ir::{NodeId, Result};

impl Walk<'_> {
    /// The dims of a node, in the order of memory.
    pub(in super::super) fn layout(&self, node: NodeId, rank: usize) -> SmallVec<[usize; 8]> {
        self.layouts.get(&node).cloned().unwrap_or_else(|| (0..rank).collect())
    }

    /// Chooses the layout, if all readers agree.
    pub(super) fn choose_layout(&mut self, node: NodeId, demands: &[DemandId]) -> Result<()> {
        let Ok(size) = dims(self.tensors, node) else { return Ok(()) };
        let Some(innermost) = (0..size.len()).rev().find(|&axis| size[axis] > 1) else { return Ok(()) };
        let mut layouts = demands.iter().map(|&demand| {
            let moves = self.moves(demand);
            match demands {
                [_] => moves.windows_inside(innermost).or_else(|| moves.long_inside(&size, innermost)),
                _ => moves.long_inside(&size, innermost),
            }
        });
        let first = layouts.next().flatten();
        let wanted = first.filter(|first| layouts.all(|layout| layout.as_ref() == Some(first)));
        if let Some(layout) = wanted {
            self.layouts.insert(node, layout);
        }
        Ok(())
    }

    /// Which loops step along the dims of a value that a kernel reads.
    pub(in super::super) fn moves(&mut self, demand: DemandId) -> Moves {
        let need = &self.needs[demand as usize];
        let (outputs, tuple) = (&self.kernels[need.kernel].ranges, &need.tuple);
        let indices = &mut self.indices;
        let by = tuple.iter().map(|&index| {
            let ranges = indices.ranges_of([index]);
            let loops = ranges.iter().filter_map(|range| outputs.iter().position(|output| output == range));
            (loops.max(), ranges.iter().any(|range| !outputs.contains(range)))
        });
        Moves { by: by.collect(), last: outputs.len().checked_sub(1) }
    }
}

/// For each dim of a value, the innermost loop of its reader that steps along it, and whether a reduction does, too.
#[derive(PartialEq)]
pub(in super::super) struct Moves {
    by: SmallVec<[(Option<usize>, bool); 8]>,
    /// The innermost loop.
    last: Option<usize>,
}

impl Moves {
    /// Puts a dim along which windows move with the innermost loop inside all others; dims that only a reduction steps
    /// along come between the loops and their windows.
    fn windows_inside(&self, innermost: usize) -> Option<SmallVec<[usize; 8]>> {
        let window = self.by.iter().position(|&(by, is_reduced)| is_reduced && by.is_some() && by == self.last)?;
        let mut layout: SmallVec<[usize; 8]> = (0..self.by.len()).collect();
        layout.sort_by_key(|&axis| match self.by[axis] {
            (Some(by), false) => (0, by),
            (None, _) => (1, 0),
            (Some(by), true) => (2, by),
        });
        (window != innermost).then_some(layout)
    }

    /// Puts the longest dim that the innermost loop steps along inside a few short ones, such as the positions of a
    /// pool: otherwise vectors would stride over these.
    fn long_inside(&self, size: &[i64], innermost: usize) -> Option<SmallVec<[usize; 8]>> {
        /// The longest stride that is worth avoiding this way: that of windows.
        const WINDOW: i64 = 32;
        /// The dim has to be longer than this.
        const SHORT: i64 = 8;
        let moved = (0..size.len()).filter(|&axis| self.by[axis].0.is_some() && self.by[axis].0 == self.last);
        let long = moved.max_by_key(|&axis| size[axis])?;
        let inside: i64 = size[long + 1..].iter().product();
        let mut layout: SmallVec<[usize; 8]> = (0..size.len()).filter(|&axis| axis != long).collect();
        layout.push(long);
        (long < innermost && inside <= WINDOW && size[long] > SHORT).then_some(layout)
    }
}
