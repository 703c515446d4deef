//! Vectorises kernels written by hand: the loops stay in the user's order, and some of them are strip-mined.
//!
//! A parallel loop with contiguous accesses becomes a loop over tiles and a remainder loop; if there is none, reduce
//! loops do. Two parallel loops, one directly in the other, become tiles of both if each access is contiguous along one of them:
//! such a tile is transposed in registers. Iterations of a parallel loop are independent, and a reduction is unordered, so all of
//! this is legal.

use super::{nontemporal, running};
use crate::lower::live::{next_range_id, trips};
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::address::{behind_after, is_register};
use tinyspec_ir::affine::Affine;
use tinyspec_ir::rewrite::{substitute, transform};
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op, Result};

/// Vectors in a tile: independent work that hides the latency of arithmetic.
const VECTORS: i64 = 4;
/// The most vectors in which the tiles of a loop's registers or sums are held; the other registers hold intermediate
/// values.
const HELD: i64 = 24;

pub(crate) fn vectorize(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    if target.vector_bytes == 0 || target.watches_races || target.workgroups.is_some() {
        return Ok(sink);
    }
    let (mut sink, running) = running::in_order(graph, sink, target)?;
    // Inner loops end first. This terminates because each cut leaves fewer trips to cut.
    while let Some((end, cut)) = {
        let kernel = Kernel::new(graph, sink, target);
        kernel.live.iter().find_map(|&end| Some((end, kernel.cut(graph, end)?)))
    } {
        sink = match cut {
            Cut::Loop { tile } => cut_loop(graph, sink, end, tile)?,
            Cut::Nest { side } => cut_nest(graph, sink, end, side)?,
        };
    }
    let kernel = Kernel::new(graph, sink, target);
    let mut ranges: Vec<NodeId> = Vec::new();
    for &node in &kernel.live {
        if let (Op::Reduce, [_, range]) = (graph.op(node), graph.sources(node))
            && !ranges.contains(range)
            && !running.contains(range)
        {
            ranges.push(*range);
        }
    }
    for range in ranges {
        let kernel = Kernel::new(graph, sink, target);
        if let Some(tile) = kernel.reduction_tile(graph, range) {
            sink = cut_reduction(graph, sink, range, tile)?;
        }
    }
    let sink = joined(graph, sink)?;
    let sink = wait_for_loops(graph, sink)?;
    nontemporal::nontemporal(graph, sink, target)
}

/// Reductions of reductions by the same op are one, so that their vectors are reduced once in the end. All that share a loop take
/// part, or none.
fn joined(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let live = graph.reachable(&[sink]);
    let mut loops: FxHashMap<&[NodeId], Vec<NodeId>> = FxHashMap::default();
    for &node in live.iter().filter(|&&node| graph.op(node) == Op::Reduce) {
        loops.entry(&graph.sources(node)[1..]).or_default().push(node);
    }
    let users = |node: NodeId| live.iter().filter(|&&user| graph.sources(user).contains(&node)).count();
    let inner = |node: NodeId| {
        let inner = graph.source(node, 0);
        let is_bound = |range: &NodeId| {
            let below = graph.reachable(&[*range]);
            graph.sources(node)[1..].iter().any(|outer| below.contains(outer))
        };
        let is_same = graph.op(inner) == Op::Reduce && graph.arg(inner) == graph.arg(node) && users(inner) == 1;
        (is_same && !graph.sources(inner)[1..].iter().any(is_bound)).then(|| &graph.sources(inner)[1..])
    };
    let is_joined = |&node: &NodeId| {
        let Some(within) = inner(node) else { return false };
        let beside = &loops[&graph.sources(node)[1..]];
        beside.iter().all(|&other| inner(other) == Some(within)) && beside.len() == loops[within].len()
    };
    let found: FxHashSet<NodeId> = loops.values().flatten().copied().filter(is_joined).collect();
    let roots = transform(graph, &[sink], |graph, old, new| {
        if !found.contains(&old) {
            return Ok(new);
        }
        let (outer, inner) = (graph.sources(new), graph.sources(graph.source(new, 0)));
        let sources: Vec<NodeId> = [&inner[..1], &outer[1..], &inner[1..]].concat();
        let arg = graph.arg(new).clone();
        graph.add(Op::Reduce, &sources, arg)
    })?;
    Ok(roots[0])
}

/// Nodes that waited for a loop that was cut wait for the resulting loops.
pub(super) fn wait_for_loops(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in graph.reachable(&[sink]) {
        let mut sources: Vec<NodeId> = Vec::new();
        for &source in graph.sources(node) {
            let is_sum = graph.op(node) == Op::After && graph.dtype(source) == DType::Index;
            if is_sum && graph.op(source) != Op::Range {
                sources.extend(graph.reachable(&[source]).into_iter().filter(|&below| graph.op(below) == Op::Range));
            } else {
                sources.push(new.get(&source).copied().unwrap_or(source));
            }
        }
        if sources != graph.sources(node) {
            let (op, arg) = (graph.op(node), graph.arg(node).clone());
            new.insert(node, graph.add(op, &sources, arg)?);
        }
    }
    Ok(new.get(&sink).copied().unwrap_or(sink))
}

/// How a loop is strip-mined.
enum Cut {
    Loop {
        /// Trips of a tile.
        tile: i64,
    },
    /// Together with the loop that is all of its body, in square tiles.
    Nest { side: i64 },
}

pub(super) struct Kernel {
    pub live: Vec<NodeId>,
    pub lanes: i64,
    /// Accesses to memory.
    accesses: Vec<NodeId>,
}

impl Kernel {
    pub fn new(graph: &Graph, sink: NodeId, target: &Target) -> Kernel {
        let live = graph.reachable(&[sink]);
        let is_access = |node: &NodeId| {
            matches!(graph.op(*node), Op::Load | Op::Store | Op::AtomicAdd)
                && graph.op(graph.source(*node, 0)) == Op::Index
        };
        let accesses: Vec<NodeId> = live.iter().copied().filter(is_access).collect();
        let dtypes = accesses.iter().map(|&access| graph.dtype(graph.source(access, 0)));
        let lanes = crate::lower::lanes(target, dtypes) as i64;
        Kernel { live, lanes, accesses }
    }

    fn is_parallel(&self, graph: &Graph, range: NodeId) -> bool {
        axis(graph, range).is_some_and(|axis| axis.is_parallel() || axis == AxisType::Local)
    }

    fn cut(&self, graph: &Graph, end: NodeId) -> Option<Cut> {
        let of_loop = self.tile(graph, end).map(|tile| Cut::Loop { tile });
        of_loop.or_else(|| self.is_transposed(graph, end).then_some(Cut::Nest { side: self.lanes }))
    }

    /// Whether each access in a loop and the one that is all of its body is contiguous along one of them.
    fn is_transposed(&self, graph: &Graph, end: NodeId) -> bool {
        let nest = |end: NodeId| match (graph.op(end), graph.sources(end)) {
            (Op::End, &[body, range]) if self.is_parallel(graph, range) => Some((body, range)),
            _ => None,
        };
        let Some((body, outer)) = nest(end) else { return false };
        let Some((_, inner)) = nest(body) else { return false };
        let is_whole = |range: NodeId| trips(graph, range).is_some_and(|trips| trips > 0 && trips % self.lanes == 0);
        if self.lanes == 1 || !is_whole(outer) || !is_whole(inner) {
            return false;
        }
        let mut inside = depends(graph, &self.live, outer);
        inside.extend(depends(graph, &self.live, inner));
        let is_simple = |&&node: &&NodeId| match graph.op(node) {
            Op::AtomicAdd | Op::Barrier | Op::Reduce => false,
            Op::Range => node == outer || node == inner,
            Op::End => node == body || node == end,
            _ => !is_access_to_register(graph, node),
        };
        let is_contiguous = |&&access: &&NodeId| {
            let index = graph.source(graph.source(access, 0), 1);
            let steps = [outer, inner].map(|range| coefficient(graph, index, range));
            steps == [Some(0); 2] || steps.contains(&Some(1)) && !steps.contains(&None)
        };
        self.live.iter().filter(|&node| inside.contains(node)).all(|node| is_simple(&node))
            && self.accesses.iter().filter(|&node| inside.contains(node)).all(|access| is_contiguous(&access))
    }

    /// Trips of a tile of the loop, if it can become one.
    pub fn tile(&self, graph: &Graph, end: NodeId) -> Option<i64> {
        let range = *graph.sources(end).get(1).filter(|_| graph.op(end) == Op::End)?;
        if !self.is_parallel(graph, range) {
            return None;
        }
        let depends = depends(graph, &self.live, range);
        let is_cut = |node: &&NodeId| {
            graph.op(**node) == Op::End && axis(graph, graph.source(**node, 1)) == Some(AxisType::Upcast)
        };
        if depends.iter().any(|node| is_cut(&node)) {
            return None;
        }
        let mut stores = 0;
        for &node in &self.live {
            if !depends.contains(&node) {
                continue;
            }
            match graph.op(node) {
                Op::AtomicAdd | Op::Barrier => return None,
                Op::Range if node != range => return None,
                _ => {}
            }
        }
        let registers = self.registers(graph, &depends)?;
        for &access in self.accesses.iter().filter(|access| depends.contains(access)) {
            let coefficient = coefficient(graph, graph.source(graph.source(access, 0), 1), range)?;
            match (graph.op(access), coefficient) {
                (Op::Store, 1) => stores += 1,
                (Op::Load, 0 | 1) => {}
                _ => return None,
            }
        }
        let trips = trips(graph, range)?;
        let sizes = [self.lanes * VECTORS, self.lanes * 2, self.lanes];
        let held = registers.len().max(self.sums(graph, &depends)) as i64;
        let is_held = |size: &i64| held * (size / self.lanes) <= HELD || *size == self.lanes;
        let mut sizes = sizes.into_iter().filter(is_held);
        sizes.find(|&size| size > 1 && trips >= size).filter(|_| stores > 0)
    }

    /// The registers of a loop's iterations; `None` if one of them is used outside as well.
    fn registers(&self, graph: &Graph, depends: &FxHashSet<NodeId>) -> Option<Vec<NodeId>> {
        let mut found: Vec<NodeId> = Vec::new();
        let accesses = || self.live.iter().filter(|&&node| is_access_to_register(graph, node));
        for &access in accesses().filter(|access| depends.contains(access)) {
            let register = behind_after(graph, graph.source(access, 0));
            if !found.contains(&register) {
                found.push(register);
            }
        }
        let is_outside = |&&access: &&NodeId| {
            !depends.contains(&access) && found.contains(&behind_after(graph, graph.source(access, 0)))
        };
        accesses().find(is_outside).is_none().then_some(found)
    }

    /// The most sums of a loop's iterations that one reduce loop adds up.
    fn sums(&self, graph: &Graph, depends: &FxHashSet<NodeId>) -> usize {
        let mut count: FxHashMap<&[NodeId], usize> = FxHashMap::default();
        for &node in self.live.iter().filter(|&&node| graph.op(node) == Op::Reduce && depends.contains(&node)) {
            *count.entry(&graph.sources(node)[1..]).or_default() += 1;
        }
        count.into_values().max().unwrap_or(0)
    }

    /// Trips of a tile of a reduce loop, if it can become one.
    fn reduction_tile(&self, graph: &Graph, range: NodeId) -> Option<i64> {
        let depends = depends(graph, &self.live, range);
        let mut contiguous = false;
        // Lanes of loops that have ended, whose results its values read, do not count.
        let is_lane = |node: &&NodeId| axis(graph, **node) == Some(AxisType::Upcast);
        let mut lanes = self.live.iter().filter(is_lane).map(|&lane| self::depends(graph, &self.live, lane));
        let is_sum = |node: &&NodeId| graph.op(**node) == Op::Reduce && graph.source(**node, 1) == range;
        let values: Vec<NodeId> = self.live.iter().filter(is_sum).map(|&reduce| graph.source(reduce, 0)).collect();
        if lanes.any(|inside| values.iter().any(|value| inside.contains(value))) {
            // Its values are already vectors.
            return None;
        }
        for &node in self.live.iter().filter(|node| depends.contains(node)) {
            match graph.op(node.to_owned()) {
                // Inside another reduction, or dependent on memory that changes: left as it is.
                Op::Reduce if !graph.sources(node.to_owned()).contains(&range) => return None,
                Op::Store | Op::AtomicAdd | Op::After => return None,
                _ => {}
            }
        }
        for &access in self.accesses.iter().filter(|access| depends.contains(access)) {
            match coefficient(graph, graph.source(graph.source(access, 0), 1), range)? {
                0 => {}
                1 => contiguous = true,
                _ => return None,
            }
        }
        let trips = trips(graph, range)?;
        let sizes = [self.lanes * VECTORS, self.lanes];
        sizes.into_iter().find(|&size| size > 1 && trips >= size).filter(|_| contiguous)
    }
}

fn is_access_to_register(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.op(node), Op::Load | Op::Store) && is_register(graph, node)
}

pub(super) fn axis(graph: &Graph, range: NodeId) -> Option<AxisType> {
    match graph.arg(range) {
        Arg::Range { axis, .. } => Some(*axis),
        _ => None,
    }
}

/// Nodes inside the loop.
pub(super) fn depends(graph: &Graph, live: &[NodeId], range: NodeId) -> FxHashSet<NodeId> {
    let mut inside: FxHashSet<NodeId> = FxHashSet::from_iter([range]);
    for &node in live {
        let sources = graph.sources(node);
        let closes = matches!(graph.op(node), Op::End | Op::Reduce) && sources[1..].contains(&range);
        if !closes && sources.iter().any(|source| inside.contains(source)) {
            inside.insert(node);
        }
    }
    inside
}

/// The stride of an index in the loop, if it is constant.
fn coefficient(graph: &Graph, index: NodeId, range: NodeId) -> Option<i64> {
    Affine::of(graph, index).isolate(graph, range).map(|(coefficient, _)| coefficient)
}

pub(super) fn new_range(graph: &mut Graph, trips: i64, axis: AxisType) -> Result<NodeId> {
    let bound = graph.index(trips);
    bounded_range(graph, bound, axis)
}

pub(super) fn bounded_range(graph: &mut Graph, bound: NodeId, axis: AxisType) -> Result<NodeId> {
    let id = next_range_id(graph, graph.nodes());
    graph.range(bound, id, axis)
}

/// `first + size · outer + inner`.
pub(super) fn position(graph: &mut Graph, outer: Option<(NodeId, i64)>, inner: NodeId, first: i64) -> Result<NodeId> {
    let mut sum = inner;
    if let Some((outer, size)) = outer {
        let size = graph.index(size);
        let start = graph.alu(Op::Mul, &[outer, size])?;
        sum = graph.alu(Op::Add, &[start, inner])?;
    }
    if first != 0 {
        let first = graph.index(first);
        sum = graph.alu(Op::Add, &[sum, first])?;
    }
    Ok(sum)
}

/// Cuts a loop and the one that is all of its body into loops over square tiles.
fn cut_nest(graph: &mut Graph, sink: NodeId, end: NodeId, side: i64) -> Result<NodeId> {
    let inner_end = graph.source(end, 0);
    let ranges = [graph.source(end, 1), graph.source(inner_end, 1)];
    let (mut over, mut within): (Vec<NodeId>, Vec<NodeId>) = (vec![], vec![]);
    let mut replacements: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for range in ranges {
        let (Some(all), Some(axis)) = (trips(graph, range), axis(graph, range)) else { return Ok(sink) };
        let lane = new_range(graph, side, AxisType::Upcast)?;
        let outer = outer_loop(graph, all / side, axis)?;
        replacements.insert(range, position(graph, outer.map(|outer| (outer, side)), lane, 0)?);
        over.extend(outer);
        within.push(lane);
    }
    let mut new = substitute(graph, &[graph.source(inner_end, 0)], &replacements)?[0];
    for range in over.into_iter().chain(within).rev() {
        new = graph.add(Op::End, &[new, range], Arg::None)?;
    }
    Ok(substitute(graph, &[sink], &FxHashMap::from_iter([(end, new)]))?[0])
}

/// The loop over tiles, unless there is one tile. The loop that threads share is one in any case.
fn outer_loop(graph: &mut Graph, tiles: i64, axis: AxisType) -> Result<Option<NodeId>> {
    if tiles == 1 && axis != AxisType::Thread {
        return Ok(None);
    }
    new_range(graph, tiles, axis).map(Some)
}

/// Cuts a parallel loop into a loop over tiles and a scalar remainder loop.
fn cut_loop(graph: &mut Graph, sink: NodeId, end: NodeId, tile: i64) -> Result<NodeId> {
    let (body, range) = (graph.source(end, 0), graph.source(end, 1));
    let (Some(all), Some(axis)) = (trips(graph, range), axis(graph, range)) else { return Ok(sink) };
    let (count, left) = (all / tile, all % tile);
    // Nothing may be outside the loop that threads share, so its last iteration is the remainder.
    let is_last_iteration = axis == AxisType::Thread && left != 0;
    let outer = outer_loop(graph, if is_last_iteration { count + 1 } else { count }, axis)?;
    let inner = new_range(graph, tile, AxisType::Upcast)?;
    let at = position(graph, outer.map(|outer| (outer, tile)), inner, 0)?;
    let mut tiles = substitute(graph, &[body], &FxHashMap::from_iter([(range, at)]))?[0];
    let mut whole = if let Some(outer) = outer.filter(|_| is_last_iteration) {
        let before_last = graph.index(count);
        let is_whole = graph.alu(Op::CmpLt, &[outer, before_last])?;
        let (none, one, some) = (graph.index(0), graph.index(1), graph.index(left));
        let once = graph.alu(Op::Where, &[is_whole, one, none])?;
        let once = bounded_range(graph, once, AxisType::Loop)?;
        tiles = inside(graph, tiles, inner, once)?;
        let tiles = graph.add(Op::End, &[tiles, inner], Arg::None)?;
        let tiles = graph.add(Op::End, &[tiles, once], Arg::None)?;
        let rest = graph.alu(Op::Where, &[is_whole, none, some])?;
        let rest = bounded_range(graph, rest, AxisType::Loop)?;
        let rest = cut_off(graph, body, range, rest, count * tile)?;
        let both = graph.add(Op::Group, &[tiles, rest], Arg::None)?;
        graph.add(Op::End, &[both, outer], Arg::None)?
    } else {
        let tiles = graph.add(Op::End, &[tiles, inner], Arg::None)?;
        match outer {
            Some(outer) => graph.add(Op::End, &[tiles, outer], Arg::None)?,
            None => tiles,
        }
    };
    if left != 0 && !is_last_iteration {
        let rest = new_range(graph, left, axis)?;
        let rest = cut_off(graph, body, range, rest, count * tile)?;
        whole = graph.add(Op::Group, &[whole, rest], Arg::None)?;
    }
    Ok(substitute(graph, &[sink], &FxHashMap::from_iter([(end, whole)]))?[0])
}

/// The trips of a loop from `first` on, as a separate loop.
fn cut_off(graph: &mut Graph, body: NodeId, range: NodeId, rest: NodeId, first: i64) -> Result<NodeId> {
    let at = position(graph, None, rest, first)?;
    let mut replacements = FxHashMap::from_iter([(range, at)]);
    // The loops inside are duplicated, too.
    for inside in closed_inside(graph, body, range) {
        if let Some(axis) = axis(graph, inside) {
            let own = bounded_range(graph, graph.source(inside, 0), axis)?;
            replacements.insert(inside, own);
        }
    }
    // Its registers hold scalars.
    for register in registers_of(graph, body, range) {
        let (shape, arg) = (graph.source(register, 0), graph.arg(register).clone());
        if let Arg::Buffer { dtype, device, addrspace, .. } = arg {
            let arg = Arg::Buffer { slot: next_slot(graph), dtype, device, addrspace };
            let own = graph.add(Op::Buffer, &[shape], arg)?;
            replacements.insert(register, own);
        }
    }
    let body = substitute(graph, &[body], &replacements)?[0];
    graph.add(Op::End, &[body, rest], Arg::None)
}

/// The registers of the iterations of a loop.
fn registers_of(graph: &Graph, body: NodeId, range: NodeId) -> Vec<NodeId> {
    let live = graph.reachable(&[body]);
    let depends = depends(graph, &live, range);
    let accesses = live.iter().filter(|&&node| depends.contains(&node) && is_access_to_register(graph, node));
    let mut registers: Vec<NodeId> = accesses.map(|&node| behind_after(graph, graph.source(node, 0))).collect();
    registers.sort_unstable();
    registers.dedup();
    registers
}

/// A slot that no Buffer has.
fn next_slot(graph: &Graph) -> u32 {
    let slots = graph.nodes().filter_map(|node| match graph.arg(node) {
        Arg::Buffer { slot, .. } => Some(*slot),
        _ => None,
    });
    slots.max().map_or(0, |slot| slot + 1)
}

/// Moves accesses that depend on `lane`, and those that others wait for, into the loop `once`.
fn inside(graph: &mut Graph, body: NodeId, lane: NodeId, once: NodeId) -> Result<NodeId> {
    let live = graph.reachable(&[body]);
    let depends = depends(graph, &live, lane);
    let registers = registers_of(graph, body, lane);
    let bodies = transform(graph, &[body], |graph, old, new| {
        if registers.contains(&old) {
            return graph.add(Op::After, &[new, once], Arg::None);
        }
        if graph.op(old) != Op::Index || graph.props(old).addrspace.is_none() || !depends.contains(&old) {
            return Ok(new);
        }
        let (buffer, index) = (graph.source(new, 0), graph.source(new, 1));
        let buffer = graph.add(Op::After, &[buffer, once], Arg::None)?;
        graph.add(Op::Index, &[buffer, index], Arg::None)
    })?;
    Ok(bodies[0])
}

/// Ranges that begin and end inside a loop, including those nested in inner loops that alone depend on it. Effects that
/// its body waits for end before the loop begins.
fn closed_inside(graph: &Graph, body: NodeId, range: NodeId) -> Vec<NodeId> {
    let live = graph.reachable(&[body]);
    let (mut found, mut next) = (vec![range], 0);
    while let Some(&around) = found.get(next) {
        let depends = depends(graph, &live, around);
        for &node in &live {
            if matches!(graph.op(node), Op::End | Op::Reduce) && depends.contains(&graph.source(node, 0)) {
                for &range in graph.sources(node)[1..].iter().filter(|range| graph.op(**range) == Op::Range) {
                    if !found.contains(&range) {
                        found.push(range);
                    }
                }
            }
        }
        next += 1;
    }
    found.split_off(1)
}

/// Cuts all Reduces over a Range into tiles and a scalar remainder.
fn cut_reduction(graph: &mut Graph, sink: NodeId, range: NodeId, tile: i64) -> Result<NodeId> {
    let Some(all) = trips(graph, range) else { return Ok(sink) };
    let outer = outer_loop(graph, all / tile, AxisType::Reduce)?;
    let inner = new_range(graph, tile, AxisType::Unroll)?;
    let lanes = position(graph, outer.map(|outer| (outer, tile)), inner, 0)?;
    let ranges: Vec<NodeId> = outer.into_iter().chain([inner]).collect();
    let rest = match all % tile {
        0 => None,
        rest => {
            let rest = new_range(graph, rest, AxisType::Reduce)?;
            Some((rest, position(graph, None, rest, all / tile * tile)?))
        }
    };
    let reduces: Vec<NodeId> = graph
        .reachable(&[sink])
        .into_iter()
        .filter(|&node| graph.op(node) == Op::Reduce && graph.sources(node)[1..] == [range])
        .collect();
    let mut replacements: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for reduce in reduces {
        let (value, arg) = (graph.source(reduce, 0), graph.arg(reduce).clone());
        let Arg::Reduce { op, .. } = arg else { continue };
        // Earlier Reduces that the value depends on have been cut already.
        let value = substitute(graph, &[value], &replacements)?[0];
        let tiles = substitute(graph, &[value], &FxHashMap::from_iter([(range, lanes)]))?[0];
        let sources: Vec<NodeId> = std::iter::once(tiles).chain(ranges.iter().copied()).collect();
        let mut total = graph.add(Op::Reduce, &sources, arg.clone())?;
        if let Some((rest, at)) = rest {
            let value = substitute(graph, &[value], &FxHashMap::from_iter([(range, at)]))?[0];
            let left = graph.add(Op::Reduce, &[value, rest], arg)?;
            total = graph.alu(op, &[total, left])?;
        }
        replacements.insert(reduce, total);
    }
    Ok(substitute(graph, &[sink], &replacements)?[0])
}
