//! The loops that fill a copy.

use super::layout::Layout;
use super::{Form, Group};
use crate::lower::fold::both;
use crate::lower::optimize::kernel::Access;
use crate::lower::optimize::rebuild::Rebuild;
use crate::lower::optimize::space::Packing;
use crate::lower::optimize::transforms::Copier;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{AxisType, Builder, Graph, NodeId, Result};

/// Bytes of a line of the caches.
const LINE: i64 = 64;

/// The loops of a copy.
pub(super) struct CopyWalk {
    /// Of each group.
    pub positions: Vec<Affine>,
    pub loops: Vec<NodeId>,
    /// The conditions under which a trip reads the source and writes the copy.
    pub inside_source: Option<NodeId>,
    pub inside_copy: Option<NodeId>,
}

/// Cache blocking of a copy.
#[derive(Clone, Copy)]
struct CopyBlock {
    /// The group along which the copy is contiguous, and the group inside it that is split into blocks of `length`.
    across: usize,
    along: usize,
    length: i64,
}

impl Rebuild<'_> {
    /// The loops that fill a copy: the workgroup's threads, the first trip of a loop that reads it, or loops of its own.
    pub(super) fn walk(
        &mut self,
        graph: &mut Graph,
        access: &Access,
        layout: &Layout,
        inside: &[usize],
        form: Form,
        packing: Packing,
    ) -> Result<CopyWalk> {
        let groups = &layout.groups;
        // The copy walks the source in its own order, the contiguous axis innermost.
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&group| std::cmp::Reverse(groups[group].unit));
        if self.shares {
            return self.shared_walk(graph, groups, &order, self.target.lanes(access.dtype) as i64);
        }
        let is_by_first = packing.by == Copier::First && layout.turned.is_none() && !matches!(form, Form::Words(_));
        if is_by_first && let Some(first) = self.first_trip(graph, groups, inside)? {
            return Ok(first);
        }
        self.own_walk(graph, access, layout, &order)
    }

    /// A loop nest for the copy alone, in the given order of groups.
    fn own_walk(&mut self, graph: &mut Graph, access: &Access, layout: &Layout, order: &[usize]) -> Result<CopyWalk> {
        let Layout { groups, strides, .. } = layout;
        let mut positions: Vec<Affine> = vec![Affine::default(); groups.len()];
        let mut loops: Vec<NodeId> = Vec::new();
        let (mut inside_source, mut inside_copy) = (None, None);
        let block = if layout.turned.is_none() { self.block_of_copy(access, groups, order, strides) } else { None };
        let mut around_block = 0;
        for &group in order {
            let mut extent = groups[group].extent;
            if block.is_some_and(|block| block.across == group) {
                around_block = loops.len();
            }
            if let Some(block) = block.filter(|block| block.along == group) {
                let bound = graph.index(extent / block.length);
                let range = self.range(graph, bound, AxisType::Loop)?;
                loops.insert(around_block, range);
                positions[group] = Affine::atom(range).scale(block.length);
                extent = block.length;
            }
            let chunk = layout.chunk(group, extent);
            let chunks = (extent + chunk - 1) / chunk;
            for (trips, step, kind) in [(chunks, chunk, AxisType::Loop), (chunk, 1, AxisType::Upcast)] {
                if trips > 1 {
                    let bound = graph.index(trips);
                    let range = self.range(graph, bound, kind)?;
                    loops.push(range);
                    positions[group] = positions[group].plus(&Affine::atom(range).scale(step));
                }
            }
            if chunks * chunk != extent {
                let within = less(graph, &positions[group], &Affine::number(extent))?;
                inside_source = both(graph, inside_source, Some(within))?;
                if strides[group] != 1 && !layout.is_turned(group) {
                    inside_copy = both(graph, inside_copy, Some(within))?;
                }
            }
        }
        Ok(CopyWalk { positions, loops, inside_source, inside_copy })
    }

    /// Blocks that keep the lines which a trip of the outer loop begins to write in the first-level cache until the next trips
    /// continue them.
    fn block_of_copy(&self, access: &Access, groups: &[Group], order: &[usize], strides: &[i64]) -> Option<CopyBlock> {
        let across = order.iter().position(|&group| strides[group] == 1 && groups[group].extent > 1)?;
        let (&along, inner) = order.get(across + 1..)?.split_first()?;
        let lanes = groups[order[across]].extent * access.dtype.size() as i64;
        let lines = (lanes + LINE - 1) / LINE * inner.iter().map(|&group| groups[group].extent).product::<i64>();
        let room = self.target.cache_bytes[0] as i64 / 2 / LINE;
        let extent = groups[along].extent;
        if groups[along].unit == 1 || extent * lines <= room {
            return None;
        }
        let length = (1..=(room / lines).max(1)).rev().find(|length| extent % length == 0)?;
        (length > 1 || lines <= room).then_some(CopyBlock { across: order[across], along, length })
    }
}
