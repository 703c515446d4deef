//! Divides kernels over named dims into parts of known size: loops over whole blocks, whose insides the other stages
//! vectorise and tile, and remainder loops.
//!
//! A Reduce over `n` terms is `op(Σ over n / b blocks of b terms, Σ over n mod b terms)` within its kernel. An output
//! loop becomes several kernels, for ever smaller blocks; those without a block in a call are not launched. A loop that
//! carries a scan stays one loop over blocks, the last of which may be partial.

mod cut;

use super::kernel;
use super::live::next_range_id;
use super::loops::closed;
use super::optimize::{scatter, windows};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, AxisType, Builder, Dim, Graph, NodeId, Op, Result};

/// Terms of a Reduce in a block, and elements of a contiguous output.
const RUN: i64 = 64;
/// Rows of an output in a block, and in a block of the remainder.
const ROWS: [i64; 2] = [64, 8];

/// A kernel, and its number of blocks in a call. If there are none, it does nothing.
pub(crate) struct Part {
    pub sink: NodeId,
    pub blocks: Dim,
}

/// The parts of a kernel; a kernel without named dims is its only part.
///
/// # Errors
/// When it is not in range form.
pub(crate) fn parts(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<SmallVec<[Part; 1]>> {
    let kernels = kernel::split(graph, sink, target)?;
    let mut parts = SmallVec::new();
    for sink in kernels {
        parts.extend(blocks(graph, sink, target)?);
    }
    Ok(parts)
}

fn blocks(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<SmallVec<[Part; 1]>> {
    let whole = |sink| SmallVec::from_iter([Part { sink, blocks: Dim::from(1) }]);
    let is_named = |node: &NodeId| graph.op(*node) == Op::Range && length(graph, *node).is_some();
    if !graph.reachable(&[sink]).iter().any(is_named) {
        return Ok(whole(sink));
    }
    if kernel::is_ordered(graph, sink) || scatter::loops(graph, sink, target)?.is_some() {
        return Ok(whole(sink));
    }
    let sink = windows::simplify(graph, sink)?;
    // A loop-carried value needs the trips in order.
    let mut reduces = Reduces::new(graph, sink);
    let mut along: SmallVec<[NodeId; 2]> = SmallVec::new();
    for node in graph.reachable(&[sink]) {
        if graph.op(node) == Op::Reduce
            && let Some(carried) = windows::carried(graph, node)?
        {
            along.extend(carried.place.atoms());
            reduces.whole.push(carried.range);
        }
    }
    let sink = reduces.split(graph, sink)?;
    let Some((nest, position)) = Nest::of(graph, sink) else { return Ok(whole(sink)) };
    let range = nest.ranges[position];
    let Some(total) = length(graph, range) else { return Ok(whole(sink)) };
    if along.contains(&range) {
        let is_contiguous = position + 1 == nest.ranges.len();
        return Ok(whole(if is_contiguous { nest.cut(graph, position, &total, RUN)? } else { sink }));
    }
    let blocks: &[i64] = if position + 1 == nest.ranges.len() { &[RUN, 1] } else { &[ROWS[0], ROWS[1], 1] };
    // Threads share the outermost loop. Not so workgroups, whose number must be known when a kernel is compiled.
    let axis = if position == 0 && target.workgroups.is_none() { AxisType::Thread } else { AxisType::Loop };
    let (mut parts, mut before) = (SmallVec::new(), None);
    for &block in blocks {
        let (start, left) = match before {
            None => (Dim::from(0), total.clone()),
            Some(larger) => (total.idiv(&Dim::from(larger)) * Dim::from(larger), total.modulo(&Dim::from(larger))),
        };
        before = Some(block);
        let blocks = left.idiv(&Dim::from(block));
        let sink = nest.part(graph, position, &start, (&blocks, block), axis)?;
        parts.push(Part { sink, blocks });
    }
    Ok(parts)
}

/// The trips of a Range, if named dims decide them.
fn length(graph: &Graph, range: NodeId) -> Option<Dim> {
    let dim = graph.props(graph.source(range, 0)).value.as_deref()?.first()?;
    dim.as_const().is_none().then(|| dim.clone())
}

/// `start + block · outer + inner`, without the parts that are absent.
fn place(graph: &mut Graph, start: &Dim, outer: Option<(NodeId, i64)>, inner: Option<NodeId>) -> Result<NodeId> {
    let mut sum: Option<NodeId> = None;
    let outer = match outer {
        Some((range, block)) if block > 1 => {
            let block = graph.index(block);
            Some(graph.alu(Op::Mul, &[range, block])?)
        }
        outer => outer.map(|(range, _)| range),
    };
    let start = if start.is(0) { None } else { Some(graph.dim(start)?) };
    for term in [start, outer, inner].into_iter().flatten() {
        sum = Some(match sum {
            Some(sum) => graph.alu(Op::Add, &[sum, term])?,
            None => term,
        });
    }
    Ok(sum.unwrap_or_else(|| graph.index(0)))
}

/// The replacements for the Ranges of Reduces. Reduces that share a loop continue to do so.
struct Reduces {
    next_range: u32,
    /// By old Range: the Range over blocks, the one within a block, and the one over the remainder.
    ranges: FxHashMap<NodeId, [NodeId; 3]>,
    /// The copies of other Ranges of a Reduce for its remainder, by those for its blocks.
    copies: FxHashMap<NodeId, NodeId>,
    /// Ranges that are left unchanged.
    whole: SmallVec<[NodeId; 2]>,
}

/// The number of terms in a block of a Reduce, if it may have several blocks. Invariants of a loop with at most one
/// trip would be hoisted, and evaluated even if the loop has none.
fn run(total: &Dim) -> Option<i64> {
    const LEAST: i64 = 4;
    let most = total.bounds().1;
    std::iter::successors(Some(RUN), |run| Some(run / 2)).take_while(|&run| run >= LEAST).find(|run| most / run >= 2)
}

impl Reduces {
    fn new(graph: &Graph, sink: NodeId) -> Reduces {
        Reduces {
            next_range: next_range_id(graph, graph.reachable(&[sink])),
            ranges: FxHashMap::default(),
            copies: FxHashMap::default(),
            whole: SmallVec::new(),
        }
    }

    fn split(&mut self, graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
        let order = graph.reachable(&[sink]);
        let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for node in order {
            let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
            let (op, arg) = (graph.op(node), graph.arg(node).clone());
            let made = match arg {
                _ if sources[..] == *graph.sources(node) && op != Op::Reduce => node,
                Arg::Reduce { op: combined, .. } => {
                    let is_long = |range: &NodeId| {
                        !self.whole.contains(range) && length(graph, *range).is_some_and(|total| run(&total).is_some())
                    };
                    let named = sources[1..].iter().rposition(is_long);
                    match named {
                        Some(position) => self.reduce(graph, combined, &sources, position + 1)?,
                        None => graph.add(op, &sources, arg)?,
                    }
                }
                _ => graph.add(op, &sources, arg)?,
            };
            new.insert(node, made);
        }
        Ok(new[&sink])
    }

    fn reduce(&mut self, graph: &mut Graph, op: Op, sources: &[NodeId], position: usize) -> Result<NodeId> {
        let (value, range) = (sources[0], sources[position]);
        let total = length(graph, range).unwrap_or_else(|| Dim::from(0));
        let run = run(&total).unwrap_or(RUN);
        let [blocks, within, left] = self.ranges_of(graph, range, &total, run)?;
        let start = total.idiv(&Dim::from(run)) * Dim::from(run);
        let in_block = place(graph, &Dim::from(0), Some((blocks, run)), Some(within))?;
        let behind = place(graph, &start, Some((left, 1)), None)?;
        let arg = Arg::Reduce { op, axes: SmallVec::new() };
        let value_of = |graph: &mut Graph, map: FxHashMap<NodeId, NodeId>| substitute(graph, &[value], &map);
        let first = value_of(graph, [(range, in_block)].into_iter().collect())?[0];
        let first = [&[first], &sources[1..position], &[blocks, within], &sources[position + 1..]].concat();
        let first = graph.add(Op::Reduce, &first, arg.clone())?;
        let mut map: FxHashMap<NodeId, NodeId> = [(range, behind)].into_iter().collect();
        let mut second: SmallVec<[NodeId; 4]> = SmallVec::from_iter([value]);
        for &other in &sources[1..] {
            let own = if other == range { left } else { self.copy_of(graph, other)? };
            second.push(own);
            if other != range {
                map.insert(other, own);
            }
        }
        second[0] = value_of(graph, map)?[0];
        let second = graph.add(Op::Reduce, &second, arg)?;
        graph.alu(op, &[first, second])
    }

    /// A copy of a loop.
    fn copy_of(&mut self, graph: &mut Graph, range: NodeId) -> Result<NodeId> {
        if let Some(&known) = self.copies.get(&range) {
            return Ok(known);
        }
        let made = graph.range(graph.source(range, 0), self.next_range, AxisType::Reduce)?;
        self.next_range += 1;
        self.copies.insert(range, made);
        Ok(made)
    }

    fn ranges_of(&mut self, graph: &mut Graph, range: NodeId, total: &Dim, run: i64) -> Result<[NodeId; 3]> {
        if let Some(&known) = self.ranges.get(&range) {
            return Ok(known);
        }
        let run = Dim::from(run);
        let mut made = [range; 3];
        for (made, bound) in made.iter_mut().zip([total.idiv(&run), run.clone(), total.modulo(&run)]) {
            let bound = graph.dim(&bound)?;
            *made = graph.range(bound, self.next_range, AxisType::Reduce)?;
            self.next_range += 1;
        }
        self.ranges.insert(range, made);
        Ok(made)
    }
}

/// The loops of a kernel, outer ones first, and their body.
struct Nest {
    body: NodeId,
    ranges: SmallVec<[NodeId; 4]>,
}

impl Nest {
    /// The nest, and the position of the loop to cut: the innermost, along which stores are contiguous, or else the
    /// outermost whose bound contains named dims.
    fn of(graph: &Graph, sink: NodeId) -> Option<(Nest, usize)> {
        let &[end] = graph.sources(sink) else { return None };
        let mut nest = Nest { body: end, ranges: SmallVec::new() };
        while graph.op(nest.body) == Op::End {
            nest.ranges.push(graph.source(nest.body, 1));
            nest.body = graph.source(nest.body, 0);
        }
        let is_named = |range: &NodeId| length(graph, *range).is_some();
        let position = match nest.ranges.last() {
            Some(last) if is_named(last) => nest.ranges.len() - 1,
            _ => nest.ranges.iter().position(is_named)?,
        };
        Some((nest, position))
    }

    fn next_range(&self, graph: &Graph) -> u32 {
        next_range_id(graph, graph.reachable(&[&[self.body], &self.ranges[..]].concat()))
    }

    /// The kernel from `start` on, over `count` blocks of one size.
    fn part(
        &self,
        graph: &mut Graph,
        position: usize,
        start: &Dim,
        (blocks, block): (&Dim, i64),
        axis: AxisType,
    ) -> Result<NodeId> {
        let next = self.next_range(graph);
        let bound = graph.dim(blocks)?;
        let outer = graph.range(bound, next, axis)?;
        let inner = match block {
            1 => None,
            _ => {
                let bound = graph.index(block);
                Some(graph.range(bound, next + 1, AxisType::Loop)?)
            }
        };
        let here = place(graph, start, Some((outer, block)), inner)?;
        let old = self.ranges[position];
        let body = substitute(graph, &[self.body], &[(old, here)].into_iter().collect())?[0];
        self.closed(graph, body, position, (outer, inner))
    }

    /// The kernel with this body, and two loops instead of one.
    fn closed(
        &self,
        graph: &mut Graph,
        body: NodeId,
        position: usize,
        (outer, inner): (NodeId, Option<NodeId>),
    ) -> Result<NodeId> {
        let (around, inside) = (&self.ranges[..position], &self.ranges[position + 1..]);
        let loops = [around, &[outer], inner.as_slice(), inside].concat();
        let body = closed(graph, body, &loops)?;
        graph.add(Op::Sink, &[body], Arg::None)
    }
}
