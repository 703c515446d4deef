//! Loops over tiles, LOCAL buffers in order, and values at other positions: the helpers that build blocks.

use crate::lower::live::next_range_id;
use crate::lower::loops::closed;
use crate::lower::optimize::local::Local;
use crate::lower::replace::replace;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, AxisType, Builder, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

/// A run of positions along an axis: `start + outer · height + inner`.
#[derive(Clone)]
pub(super) struct Run {
    /// Where it is.
    pub at: Affine,
    /// Its Ranges, outer ones first.
    pub ranges: SmallVec<[NodeId; 2]>,
}

/// The nest while it grows.
pub(super) struct Nest<'a> {
    pub graph: &'a mut Graph,
    /// Lanes of a strip.
    pub width: i64,
    /// The Range that threads share: every trip of it begins anew.
    pub shared: Option<NodeId>,
    next_id: u32,
    next_slot: u32,
}

impl<'a> Nest<'a> {
    pub fn new(graph: &'a mut Graph, width: i64) -> Nest<'a> {
        let next_id = next_range_id(graph, graph.nodes());
        Nest { graph, width, shared: None, next_id, next_slot: 0 }
    }

    pub fn range(&mut self, trips: i64, axis: AxisType) -> Result<NodeId> {
        let bound = self.graph.index(trips);
        self.range_to(bound, axis)
    }

    /// A Range whose trips may depend on others.
    pub fn range_to(&mut self, bound: NodeId, axis: AxisType) -> Result<NodeId> {
        self.next_id += 1;
        self.graph.range(bound, self.next_id, axis)
    }

    /// `start` and so many tiles of a height after it.
    pub fn run(
        &mut self,
        start: &Affine,
        (tiles, loops): (i64, AxisType),
        (height, tile): (i64, AxisType),
    ) -> Result<Run> {
        let mut run = Run { at: start.clone(), ranges: SmallVec::new() };
        for (trips, step, axis) in [(tiles, height, loops), (height, 1, tile)] {
            if trips > 1 {
                let range = self.range(trips, axis)?;
                run.at = run.at.plus(&Affine::atom(range).scale(step));
                run.ranges.push(range);
            }
        }
        Ok(run)
    }

    pub fn local(&mut self, rows: i64) -> Result<Local> {
        self.next_slot += 1;
        let local = Local::new(self.graph, self.next_slot - 1, DType::F32, rows * self.width)?;
        local.after(self.graph, self.shared)
    }

    /// An element of a buffer in which each lane has a column.
    fn element(&self, row: &Affine, lane: NodeId) -> Affine {
        row.scale(self.width).plus(&Affine::atom(lane))
    }

    pub fn load(&mut self, local: &Local, row: &Affine, lane: NodeId) -> Result<NodeId> {
        local.load(self.graph, &self.element(row, lane))
    }

    pub fn store(&mut self, local: &Local, row: &Affine, lane: NodeId, value: NodeId) -> Result<NodeId> {
        local.store(self.graph, &self.element(row, lane), value, None)
    }

    /// The buffer once an effect has happened, or in every trip of a Range.
    pub fn after(&mut self, local: &mut Local, event: NodeId) -> Result<()> {
        *local = local.after(self.graph, [event])?;
        Ok(())
    }

    /// Adds a total to some rows of sums, which are multiplied by `scale` before.
    pub fn accumulate(
        &mut self,
        local: &mut Local,
        rows: &Run,
        lane: NodeId,
        (total, scale): (NodeId, Option<NodeId>),
    ) -> Result<NodeId> {
        let mut so_far = self.load(local, &rows.at, lane)?;
        if let Some(scale) = scale {
            so_far = self.graph.alu(Op::Mul, &[so_far, scale])?;
        }
        let total = self.graph.alu(Op::Add, &[so_far, total])?;
        let store = self.store(local, &rows.at, lane, total)?;
        let done = closed(self.graph, store, &rows.ranges)?;
        self.after(local, done)?;
        Ok(done)
    }

    pub fn reduce(&mut self, op: Op, value: NodeId, ranges: &[NodeId]) -> Result<NodeId> {
        if ranges.is_empty() {
            return Ok(value);
        }
        let sources: SmallVec<[NodeId; 4]> = std::iter::once(value).chain(ranges.iter().copied()).collect();
        self.graph.add(Op::Reduce, &sources, Arg::Reduce { op, axes: SmallVec::new() })
    }

    pub fn number(&mut self, value: f64) -> NodeId {
        self.graph.constant(tinyspec_ir::Const::float(DType::F32, value))
    }
}

/// Where the Ranges of the kernel as it was are in the new one.
#[derive(Clone)]
pub(super) struct Places {
    /// Values and Ranges that others stand for.
    pub known: FxHashMap<NodeId, NodeId>,
    /// The Range that vectors lie along, its position, and where that is inside, if that is a question.
    pub lane: (NodeId, Affine),
    pub inside: Option<NodeId>,
}

impl Places {
    /// The same with a Range at a position.
    pub fn with(&self, graph: &mut Graph, range: NodeId, at: &Affine) -> Result<Places> {
        let mut places = self.clone();
        let at = at.emit(graph)?;
        places.known.insert(range, at);
        Ok(places)
    }

    /// Values of the old kernel in the new one.
    pub fn values(&self, graph: &mut Graph, roots: &[NodeId]) -> Result<Vec<NodeId>> {
        let roots = self.substituted(graph, roots)?;
        let values = replace(graph, &roots, self.lane.0, &self.lane.1, self.inside)?;
        values.ok_or_else(|| Error::new(ErrorKind::Verify, "online", "more than values depend on the lane"))
    }

    pub fn value(&self, graph: &mut Graph, root: NodeId) -> Result<NodeId> {
        Ok(self.values(graph, &[root])?[0])
    }

    /// As [`tinyspec_ir::rewrite::substitute`], but the nodes below a replaced node are left alone: Reduces that are
    /// replaced need their Ranges.
    fn substituted(&self, graph: &mut Graph, roots: &[NodeId]) -> Result<Vec<NodeId>> {
        let (mut live, mut pending) = (FxHashSet::default(), roots.to_vec());
        while let Some(node) = pending.pop() {
            if live.insert(node) && !self.known.contains_key(&node) {
                pending.extend(graph.sources(node));
            }
        }
        let mut order: Vec<NodeId> = live.into_iter().collect();
        order.sort_unstable();
        let mut new = self.known.clone();
        for node in order {
            if !new.contains_key(&node) {
                let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
                let arg = graph.arg(node).clone();
                let made = if sources[..] == *graph.sources(node) {
                    node
                } else {
                    graph.add(graph.op(node), &sources, arg)?
                };
                new.insert(node, made);
            }
        }
        Ok(roots.iter().map(|root| new[root]).collect())
    }
}
