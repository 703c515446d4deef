//! Loads that are contiguous along another axis of the tile than its vectors lie along: square blocks are loaded as they
//! lie, and turned in registers.

use super::address::{Address, contiguous};
use super::{Cut, extract};
use crate::lower::select::tile::{Dims, Layout};
use crate::lower::sum::Sum;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

impl Cut {
    /// The parts of such a load; `None` of any other.
    pub(super) fn load_turned(
        &mut self,
        graph: &mut Graph,
        buffer: NodeId,
        sum: &Sum,
        layout: &Layout,
        arg: &Arg,
    ) -> Result<Option<Vec<NodeId>>> {
        let Some(lane) = layout.lane else { return Ok(None) };
        let width = layout.width;
        let step = |axis: usize| -> i64 {
            let atoms = sum.terms.iter().filter(|(atom, _)| self.axes.get(atom) == Some(&axis));
            atoms.map(|&(_, coefficient)| coefficient).sum()
        };
        let along = (0..layout.dims.len())
            .find(|&axis| axis != lane && layout.dims[axis] % width == 0 && layout.dims[axis] > 0 && step(axis) == 1);
        let Some(along) = along.filter(|_| !matches!(step(lane), 0 | 1) && width.count_ones() == 1) else {
            return Ok(None);
        };
        // What else the index is made of may change from place to place in the tile.
        let is_regular = |&(atom, _): &(NodeId, i64)| self.axes.contains_key(&atom) || !self.has_parts(atom);
        if !sum.terms.iter().all(is_regular) {
            return Ok(None);
        }
        // Blocks by where they start.
        let mut blocks: FxHashMap<Dims, Vec<NodeId>> = FxHashMap::default();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let mut start = at.clone();
            start[along] -= start[along] % width;
            if !blocks.contains_key(&start) {
                let mut rows = Vec::with_capacity(width as usize);
                for row in 0..width {
                    let mut at = start.clone();
                    at[lane] += row;
                    let Address { base, .. } = self.address(graph, sum, layout, &at)?;
                    let place = contiguous(graph, buffer, &base, width)?;
                    rows.push(graph.add(Op::Load, &[place], arg.clone())?);
                }
                blocks.insert(start.clone(), turn(graph, rows)?);
            }
            let row = (at[along] % width) as usize;
            parts.extend(blocks.get(&start).and_then(|block| block.get(row)).copied());
        }
        Ok((parts.len() == layout.count()).then_some(parts))
    }
}

/// Columns of a square block from its rows: pairs of rows exchange halves, then quarters, down to lanes.
fn turn(graph: &mut Graph, mut rows: Vec<NodeId>) -> Result<Vec<NodeId>> {
    let mut distance = rows.len() / 2;
    while distance > 0 {
        for upper in (0..rows.len()).filter(|row| row & distance == 0) {
            let pair = [rows[upper], rows[upper + distance]];
            for (row, shift) in [(upper, 0), (upper + distance, distance)] {
                let lanes = (0..rows.len()).map(|lane| match lane & distance == 0 {
                    true => extract(graph, pair[0], (lane + shift) as i64),
                    false => extract(graph, pair[1], (lane + shift - distance) as i64),
                });
                let lanes: SmallVec<[NodeId; 16]> = lanes.collect::<Result<_>>()?;
                rows[row] = graph.add(Op::Stack, &lanes, Arg::None)?;
            }
        }
        distance /= 2;
    }
    Ok(rows)
}
