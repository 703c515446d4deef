//! Vectorises kernels written by hand: the loops stay in the user's order, and one of them is strip-mined.
//!
//! A parallel loop with contiguous accesses becomes a loop over tiles and a remainder loop; if there is none, reduce
//! loops do. Iterations of a parallel loop are independent, and a reduction is unordered, so both are legal.

use crate::lower::live::{next_range_id, trips};
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::address::{behind_after, is_register};
use tinyspec_ir::affine::Affine;
use tinyspec_ir::rewrite::{substitute, transform};
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op, Result};

/// Vectors in a tile: independent work that hides the latency of arithmetic.
const VECTORS: i64 = 4;
/// The most vectors in which the tiles of a loop's registers are held; the others are for what is computed.
const HELD: i64 = 24;

pub(crate) fn vectorize(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    if target.vector_bytes == 0 || target.watches_races || target.workgroups.is_some() {
        return Ok(sink);
    }
    let mut sink = sink;
    // Inner loops end first. This terminates because each cut leaves fewer trips to cut.
    while let Some((end, tile)) = {
        let kernel = Kernel::new(graph, sink, target);
        kernel.live.iter().find_map(|&end| Some((end, kernel.tile(graph, end)?)))
    } {
        sink = cut_loop(graph, sink, end, tile)?;
    }
    let kernel = Kernel::new(graph, sink, target);
    let mut ranges: Vec<NodeId> = Vec::new();
    for &node in &kernel.live {
        if let (Op::Reduce, [_, range]) = (graph.op(node), graph.sources(node))
            && !ranges.contains(range)
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
    wait_for_loops(graph, sink)
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

struct Kernel {
    live: Vec<NodeId>,
    lanes: i64,
    /// Accesses to memory.
    accesses: Vec<NodeId>,
}

impl Kernel {
    fn new(graph: &Graph, sink: NodeId, target: &Target) -> Kernel {
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
        matches!(axis(graph, range), Some(AxisType::Global | AxisType::Thread | AxisType::Local))
    }

    /// Trips of a tile of the loop, if it can become one.
    fn tile(&self, graph: &Graph, end: NodeId) -> Option<i64> {
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
        let is_held = |size: &i64| registers.len() as i64 * (size / self.lanes) <= HELD || *size == self.lanes;
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

    /// Trips of a tile of a reduce loop, if it can become one.
    fn reduction_tile(&self, graph: &Graph, range: NodeId) -> Option<i64> {
        let depends = depends(graph, &self.live, range);
        let mut contiguous = false;
        let is_lane = |node: &NodeId| axis(graph, *node) == Some(AxisType::Upcast);
        let mut reduces = self.live.iter().filter(|&&node| graph.sources(node)[..].get(1) == Some(&range));
        if reduces.any(|&reduce| graph.reachable(&[graph.source(reduce, 0)]).iter().any(is_lane)) {
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

fn axis(graph: &Graph, range: NodeId) -> Option<AxisType> {
    match graph.arg(range) {
        Arg::Range { axis, .. } => Some(*axis),
        _ => None,
    }
}

/// Nodes inside the loop.
fn depends(graph: &Graph, live: &[NodeId], range: NodeId) -> FxHashSet<NodeId> {
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

fn new_range(graph: &mut Graph, trips: i64, axis: AxisType) -> Result<NodeId> {
    let bound = graph.index(trips);
    bounded_range(graph, bound, axis)
}

fn bounded_range(graph: &mut Graph, bound: NodeId, axis: AxisType) -> Result<NodeId> {
    let id = next_range_id(graph, graph.nodes());
    graph.range(bound, id, axis)
}

/// `first + size · outer + inner`.
fn position(graph: &mut Graph, outer: Option<(NodeId, i64)>, inner: NodeId, first: i64) -> Result<NodeId> {
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

/// Cuts a parallel loop into a loop over tiles and a scalar remainder loop.
fn cut_loop(graph: &mut Graph, sink: NodeId, end: NodeId, tile: i64) -> Result<NodeId> {
    let (body, range) = (graph.source(end, 0), graph.source(end, 1));
    let (Some(all), Some(axis)) = (trips(graph, range), axis(graph, range)) else { return Ok(sink) };
    let (count, left) = (all / tile, all % tile);
    // Nothing may be outside the loop that threads share, so its last iteration is the remainder.
    let is_last_iteration = axis == AxisType::Global && left != 0;
    let outer = new_range(graph, if is_last_iteration { count + 1 } else { count }, axis)?;
    let inner = new_range(graph, tile, AxisType::Upcast)?;
    let at = position(graph, Some((outer, tile)), inner, 0)?;
    let mut tiles = substitute(graph, &[body], &FxHashMap::from_iter([(range, at)]))?[0];
    let mut whole = if is_last_iteration {
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
        graph.add(Op::End, &[tiles, outer], Arg::None)?
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
    let outer = new_range(graph, all / tile, AxisType::Reduce)?;
    let inner = new_range(graph, tile, AxisType::Unroll)?;
    let lanes = position(graph, Some((outer, tile)), inner, 0)?;
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
        let mut total = graph.add(Op::Reduce, &[tiles, outer, inner], arg.clone())?;
        if let Some((rest, at)) = rest {
            let value = substitute(graph, &[value], &FxHashMap::from_iter([(range, at)]))?[0];
            let left = graph.add(Op::Reduce, &[value, rest], arg)?;
            total = graph.alu(op, &[total, left])?;
        }
        replacements.insert(reduce, total);
    }
    Ok(substitute(graph, &[sink], &replacements)?[0])
}
