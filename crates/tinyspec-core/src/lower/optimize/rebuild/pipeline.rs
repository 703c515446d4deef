//! Software pipelining of a loop over rows. A kernel that walks along each row several times, as a softmax does, stalls between
//! its loops: until the lanes of a sum are added, the next loop cannot start. Here the loops of one trip belong to different
//! rows: while the last loop stores a row, the one before it works on the next row, and so on. Values that pass from one loop of
//! a row to another are in LOCAL memory. The prologue computes the first rows, the epilogue the last ones.
//!
//! The last two loops of a row are fused, so that its stores overlap with the sums of a later row.

use super::{CHUNK, unaliased};
use crate::lower::live::{self, Live, RangeSet};
use crate::lower::optimize::kernel::Nest;
use crate::lower::optimize::local::Local;
use crate::lower::replace::Replacement;
use rustc_hash::FxHashSet;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Dim, Graph, NodeId, Op, Result};

/// Rows that have kept values at a time: the one that is computed, and the one that is read.
const KEPT_ROWS: i64 = 2;

/// The kernel with the loop over `row` software-pipelined; unchanged where it has no stages.
pub(super) fn pipeline(graph: &mut Graph, sink: NodeId, row: NodeId) -> Result<NodeId> {
    let Some(stages) = Stages::of(graph, sink, row)? else { return Ok(sink) };
    let count = stages.levels.len() as i64;
    let mut build = Build {
        next_id: live::next_range_id(graph, graph.nodes()),
        graph,
        stages: &stages,
        counter: None,
        last: None,
        outside: None,
    };
    for trip in -count..0 {
        build.trip(&Affine::number(trip))?;
    }
    let bound = build.graph.index(stages.trips - count);
    let counter = build.range(bound, AxisType::Loop)?;
    build.counter = Some(counter);
    build.trip(&Affine::atom(counter))?;
    build.counter = None;
    build.close(&[counter])?;
    for trip in stages.trips - count..stages.trips {
        build.trip(&Affine::number(trip))?;
    }
    build.close(&stages.outer)?;
    let effects = build.last;
    graph.add(Op::Sink, effects.as_slice(), Arg::None)
}

/// The pipeline stages that compute the rows of a kernel.
struct Stages {
    /// Loops around that over rows, outer ones first.
    outer: Vec<NodeId>,
    row: NodeId,
    trips: i64,
    /// Loops around the stores of a row.
    columns: Vec<NodeId>,
    /// The stores.
    body: NodeId,
    /// Reduces to one number per row, by level: those that depend on no other, those that depend only on these, and so
    /// on.
    levels: Vec<Vec<Cut>>,
    kept: Vec<Kept>,
}

/// A Reduce, and the buffer of its results for all rows.
struct Cut {
    node: NodeId,
    local: Local,
}

/// Values that the loop of the last Reduces leaves for the stores.
struct Kept {
    /// The old buffer, once it is filled.
    filled: NodeId,
    at: NodeId,
    value: NodeId,
    /// The new buffer, and the stride between its rows.
    local: Local,
    size: i64,
}

impl Stages {
    fn of(graph: &mut Graph, sink: NodeId, row: NodeId) -> Result<Option<Stages>> {
        let &[root] = graph.sources(sink) else { return Ok(None) };
        let Nest { body, ranges: mut outer } = Nest::of(graph, root);
        let (Some(position), Some(trips)) = (outer.iter().position(|&range| range == row), live::trips(graph, row))
        else {
            return Ok(None);
        };
        let columns = outer.split_off(position + 1);
        let is_around =
            |&range: &NodeId| kind(graph, range).is_some_and(|kind| kind == AxisType::Loop || kind.is_parallel());
        if !outer.iter().all(is_around) || columns.is_empty() {
            return Ok(None);
        }
        outer.pop();
        let order = graph.reachable(&[body]);
        let live = Live::new(graph, &order)?;
        // A store that never happens would be dropped with the effects that it waits for.
        let is_chosen = |&node: &NodeId| {
            let gate = graph.sources(node).get(2).filter(|_| graph.op(node) == Op::Store);
            gate.is_some_and(|&gate| live.of(gate) & live.bit(row) != 0)
        };
        if order.iter().any(is_chosen) {
            return Ok(None);
        }
        let around = outer.iter().fold(live.bit(row), |set, &range| set | live.bit(range));
        let levels = levels(graph, &order, &live, (live.bit(row), around));
        let Some(last) = levels.last() else { return Ok(None) };
        let walked = graph.sources(last[0])[1..].to_vec();
        let is_alike = |&node: &NodeId| graph.sources(node)[1..] == walked;
        let bounds = |ranges: &[NodeId]| ranges.iter().map(|&range| live::trips(graph, range)).collect::<Vec<_>>();
        if !last.iter().all(is_alike) || bounds(&walked) != bounds(&columns) || trips <= levels.len() as i64 {
            return Ok(None);
        }
        let all: Vec<NodeId> = levels.iter().flatten().copied().collect();
        let Some(kept) = kept(graph, &order, &walked, &all)? else { return Ok(None) };
        let mut slot = kept.len() as u32;
        let mut cuts = Vec::with_capacity(levels.len());
        for level in levels {
            let mut cut = Vec::with_capacity(level.len());
            for node in level {
                cut.push(Cut { node, local: Local::new(graph, slot, graph.dtype(node), trips)? });
                slot += 1;
            }
            cuts.push(cut);
        }
        Ok(Some(Stages { outer, row, trips, columns, body, levels: cuts, kept }))
    }

    fn walked<'g>(&self, graph: &'g Graph) -> &'g [NodeId] {
        self.levels.last().and_then(|level| level.first()).map_or(&[], |cut| &graph.sources(cut.node)[1..])
    }

    fn cut(&self, node: NodeId) -> Option<&Cut> {
        self.levels.iter().flatten().find(|cut| cut.node == node)
    }
}

fn kind(graph: &Graph, range: NodeId) -> Option<AxisType> {
    match graph.arg(range) {
        Arg::Range { axis, .. } => Some(*axis),
        _ => None,
    }
}

/// The Reduces that give one number per row, by the length of the chain of others that they depend on.
fn levels(graph: &Graph, order: &[NodeId], live: &Live, (row, around): (RangeSet, RangeSet)) -> Vec<Vec<NodeId>> {
    let mut level_of = vec![0usize; graph.len()];
    let mut levels: Vec<Vec<NodeId>> = Vec::new();
    for &node in order {
        let sources = graph.sources(node);
        let below = sources.iter().map(|source| level_of[source.index()]).max().unwrap_or(0);
        let open = live.of(node);
        let is_cut = graph.op(node) == Op::Reduce && sources.len() > 1 && open & row != 0 && open & !around == 0;
        level_of[node.index()] = below + is_cut as usize;
        if is_cut {
            levels.resize_with(levels.len().max(below + 1), Vec::new);
            levels[below].push(node);
        }
    }
    levels
}

/// The LOCAL buffers of a kernel, if all are filled by the loop over `walked` and read by the stores alone.
fn kept(graph: &mut Graph, order: &[NodeId], walked: &[NodeId], cuts: &[NodeId]) -> Result<Option<Vec<Kept>>> {
    let mut kept = Vec::new();
    let early: FxHashSet<NodeId> = graph.reachable(cuts).into_iter().collect();
    let is_local = |&node: &NodeId| matches!(graph.arg(node), Arg::Buffer { addrspace: AddrSpace::Local, .. });
    let buffers: Vec<NodeId> = order.iter().copied().filter(is_local).collect();
    for buffer in buffers {
        let users: Vec<NodeId> = order.iter().copied().filter(|&user| graph.sources(user).contains(&buffer)).collect();
        let Some(&filled) = users.iter().find(|&&user| graph.op(user) == Op::After) else { return Ok(None) };
        let &[_, stores] = graph.sources(filled) else { return Ok(None) };
        let Nest { body: store, ranges } = Nest::of(graph, stores);
        let (Op::Store, &[place, value]) = (graph.op(store), graph.sources(store)) else { return Ok(None) };
        let (Op::Index, &[stored, at]) = (graph.op(place), graph.sources(place)) else { return Ok(None) };
        let mut readers = order.iter().filter(|&&user| graph.sources(user).contains(&filled));
        let is_read = readers.all(|&user| graph.op(user) == Op::Index && graph.sources(user).len() == 2);
        let size = graph.props(buffer).shape.first().and_then(Dim::as_const);
        let (Some(size), 2, true, true, false) =
            (size, users.len(), stored == buffer && ranges == walked, is_read, early.contains(&filled))
        else {
            return Ok(None);
        };
        let size = unaliased((size + CHUNK - 1) / CHUNK * CHUNK);
        let local = Local::new(graph, kept.len() as u32, graph.dtype(value), KEPT_ROWS * size)?;
        kept.push(Kept { filled, at, value, local, size });
    }
    Ok(Some(kept))
}

struct Build<'a> {
    graph: &'a mut Graph,
    stages: &'a Stages,
    next_id: u32,
    /// The loop that is being filled.
    counter: Option<NodeId>,
    /// The last effect so far: every effect waits for the one before.
    last: Option<NodeId>,
    /// The same without the effects in the loops over columns that are being filled.
    outside: Option<NodeId>,
}

impl Build<'_> {
    fn range(&mut self, bound: NodeId, kind: AxisType) -> Result<NodeId> {
        self.next_id += 1;
        self.graph.range(bound, self.next_id, kind)
    }

    /// One trip of the loop over rows: each stage has a row of its own, if there is one.
    fn trip(&mut self, trip: &Affine) -> Result<()> {
        let stages = self.stages;
        let exists = |row: &Affine| row.as_number().is_none_or(|row| (0..stages.trips).contains(&row));
        let count = stages.levels.len();
        let mut stores = exists(trip);
        for (level, cuts) in stages.levels.iter().enumerate() {
            let row = trip.offset((count - level) as i64);
            if exists(&row) {
                let joins = level + 1 == count && stores;
                self.reduce(cuts, level + 1 == count, &row, joins.then_some(trip))?;
                stores &= !joins;
            }
        }
        if stores {
            let mut ranges = Vec::new();
            for &column in &stages.columns {
                ranges.push(self.again(column)?);
            }
            self.store(trip, &stages.columns, &ranges)?;
        }
        Ok(())
    }

    /// The Reduces of a level for one row, and in the same loop the stores of another.
    fn reduce(&mut self, cuts: &[Cut], is_last: bool, row: &Affine, stored: Option<&Affine>) -> Result<()> {
        let stages = self.stages;
        let mut roots: Vec<NodeId> = cuts.iter().map(|cut| cut.node).collect();
        let kept = if is_last { &stages.kept[..] } else { &[] };
        roots.extend(kept.iter().flat_map(|kept| [kept.at, kept.value]));
        let walked = stages.walked(self.graph).to_vec();
        let mut ranges = Vec::new();
        if is_last {
            for &range in &walked {
                ranges.push(self.again(range)?);
            }
        }
        let known = if is_last { &walked[..] } else { &[] };
        let mut copy = self.copy(&roots, row, known, &ranges)?;
        for kept in kept {
            let at = copy.sum(self.graph, kept.at);
            let (local, at) = self.kept_place(kept, at, row)?;
            let value = copy.value(self.graph, kept.value)?;
            self.last = Some(local.store(self.graph, &at, value, None)?);
        }
        match stored {
            Some(trip) => self.store(trip, &stages.columns, &ranges)?,
            None if self.last != self.outside => self.close(&ranges)?,
            None => {}
        }
        for cut in cuts {
            let local = self.after(cut.local, self.outside)?;
            let value = copy.value(self.graph, cut.node)?;
            self.last = Some(local.store(self.graph, row, value, None)?);
            self.outside = self.last;
        }
        Ok(())
    }

    /// The stores of a row, in a loop over `ranges`.
    fn store(&mut self, row: &Affine, columns: &[NodeId], ranges: &[NodeId]) -> Result<()> {
        let body = self.stages.body;
        let mut copy = self.copy(&[body], row, columns, ranges)?;
        self.last = Some(copy.value(self.graph, body)?);
        self.close(ranges)
    }

    /// Ends loops around all effects in them.
    fn close(&mut self, ranges: &[NodeId]) -> Result<()> {
        for &range in ranges.iter().rev() {
            if let Some(last) = self.last {
                self.last = Some(self.graph.add(Op::End, &[last, range], Arg::None)?);
            }
        }
        self.outside = self.last;
        Ok(())
    }

    /// A Range like another.
    fn again(&mut self, range: NodeId) -> Result<NodeId> {
        let bound = self.graph.source(range, 0);
        let kind = kind(self.graph, range).unwrap_or(AxisType::Loop);
        self.range(bound, kind)
    }

    /// A buffer in this trip, after something.
    fn after(&mut self, local: Local, after: Option<NodeId>) -> Result<Local> {
        let outer = if after.is_none() { &self.stages.outer[..] } else { &[] };
        local.after(self.graph, after.into_iter().chain(outer.iter().copied()).chain(self.counter))
    }

    /// Where a kept value of a row is.
    fn kept_place(&mut self, kept: &Kept, at: Affine, row: &Affine) -> Result<(Local, Affine)> {
        let which = row.remainder(self.graph, KEPT_ROWS)?;
        Ok((self.after(kept.local, self.last)?, which.scale(kept.size).plus(&at)))
    }

    /// Copies `roots` for one row: the results of its Reduces are loaded, Ranges are fresh, and the `known` ones become
    /// those `given`.
    fn copy(&mut self, roots: &[NodeId], row: &Affine, known: &[NodeId], given: &[NodeId]) -> Result<Replacement> {
        let stages = self.stages;
        let mut copy = Replacement::new(stages.row, row, None);
        for (&old, &new) in known.iter().zip(given) {
            copy.insert_sum(old, Affine::atom(new));
        }
        let is_filled = |node: NodeId| stages.kept.iter().find(|kept| kept.filled == node);
        let (mut live, mut pending) = (FxHashSet::default(), roots.to_vec());
        while let Some(node) = pending.pop() {
            if live.insert(node) {
                let is_known = is_filled(node).is_some() || stages.cut(node).is_some() && !roots.contains(&node);
                pending.extend(if is_known { &[] } else { self.graph.sources(node) });
            }
        }
        let mut order: Vec<NodeId> = live.into_iter().collect();
        order.sort_unstable();
        for node in order {
            let sources = self.graph.sources(node).to_vec();
            match self.graph.op(node) {
                Op::Range if node != stages.row && !stages.outer.contains(&node) && !known.contains(&node) => {
                    let range = self.again(node)?;
                    copy.insert_sum(node, Affine::atom(range));
                }
                Op::Reduce if !roots.contains(&node) && stages.cut(node).is_some() => {
                    let Some(cut) = stages.cut(node) else { continue };
                    let number = self.after(cut.local, self.outside)?.load(self.graph, row)?;
                    copy.insert(node, number);
                }
                Op::Index if is_filled(sources[0]).is_some() => {
                    let Some(kept) = is_filled(sources[0]) else { continue };
                    let at = copy.sum(self.graph, sources[1]);
                    let (local, at) = self.kept_place(kept, at, row)?;
                    let place = local.at(self.graph, &at)?;
                    copy.insert(node, place);
                }
                Op::After if is_filled(node).is_some() => {}
                _ => copy.node(self.graph, node)?,
            }
        }
        Ok(copy)
    }
}
