//! The one fusion law: a producer is recomputed in its consumers only if that costs less on the Target than the
//! bytes and the launch it saves; never through two Reduces. Every decision can be printed.

use super::choices::{choices, repeats, uncast};
use super::count::counted;
use super::movement::{count, sizes};
use super::tile::{Reuse, operands};
use crate::lower::optimize::scatter::PLACES;
use crate::lower::select::decompose::{Sizes, is_product};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::fmt;
use tinyspec_backends::Target;
use tinyspec_ir::rules::widened_as_written;
use tinyspec_ir::{Arg, Axes, Builder, DType, Graph, NodeId, Op, Result, masks};

/// The costs that the law weighs, in units of one simple vector operation per element.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Operations that take as long as moving one byte to or from memory.
    pub byte: f64,
    /// Operations that take as long as launching a kernel.
    pub launch: f64,
    /// Trips of a kernel below which splitting it among threads gains nothing.
    pub parallel: f64,
    /// How many times longer a sum of products takes if it is not tiled.
    pub untiled: f64,
    /// The greatest trip count of a sum of products whose panels fit in its share of the second-level cache.
    pub cached: i64,
    /// Values per kernel beyond which it is cut, counted after decomposition for the target.
    pub nodes: usize,
    /// The same, counted in demands, because compile time is superlinear in them.
    pub demands: usize,
    /// Reduction loops beyond which a kernel is cut: a set of its loops is a bit mask, and lowering adds more loops.
    pub loops: usize,
    /// The number of values that each op is decomposed into.
    pub sizes: Sizes,
    /// Outputs per kernel beyond which no sibling joins.
    pub outputs: usize,
    /// Floats of a machine vector.
    pub vector: usize,
    /// Bytes that the cache of a core holds.
    pub cache: i64,
    /// Size in bytes of a block that is read twice: the first cache holds one while the next is loaded.
    pub part: i64,
}

impl Costs {
    /// The costs of a device. Wider vectors compute more in the time that memory needs for a byte.
    pub fn of(target: &Target) -> Costs {
        let byte = (target.lanes(DType::F32) as f64 / 2.0).max(1.0);
        // A trip reads two vectors, and its panels get an eighth of the cache.
        let cached = (target.cache_bytes[1] / (16 * target.vector_bytes.max(1))).max(256) as i64;
        Costs {
            byte,
            launch: 2048.0 * byte,
            parallel: 16384.0,
            // An untiled sum loads instead of using registers, and often elements instead of vectors (3 to 15 for 16
            // lanes, measured).
            untiled: 1.0 + target.lanes(DType::F32) as f64 / 2.0,
            cached,
            nodes: 2000,
            demands: 512,
            loops: 48,
            sizes: Sizes::of(target),
            outputs: 12,
            vector: target.lanes(DType::F32),
            cache: target.cache_bytes[1] as i64,
            part: 1 << (target.cache_bytes[0] / 3).max(1024).ilog2(),
        }
    }
}

/// Estimates for every tensor node before the walk: what one element of it costs if everything below is fused.
pub(super) struct Estimates {
    work: Vec<f32>,
    bytes: Vec<f32>,
    /// The last Reduce below, with only elementwise ops in between.
    carried: Vec<Option<NodeId>>,
    reuse: Vec<Reuse>,
    /// Whether the node is stored unconditionally.
    stored: Vec<bool>,
    users: Vec<u32>,
    /// Reduces that have become index arithmetic.
    counts: Vec<bool>,
    /// Values that derive from the indices alone in a few steps, so that recomputing them is cheaper than a load.
    ramps: Vec<bool>,
    /// Comparisons with such values: one step, or none if they select the terms of a sum.
    masks: Vec<bool>,
    /// Scatters: Reduces in which data decide the result that each term is added to. They get a loop of their own.
    scatters: Vec<bool>,
    /// Sums that are used only by another sum, with only views in between.
    summed: Vec<bool>,
    /// Running Reduces, whose windows move with the output, so that each element continues from the previous one.
    windows: Vec<bool>,
}

impl Estimates {
    /// `forced` nodes are stored.
    pub(super) fn new(graph: &Graph, live: &[NodeId], forced: &FxHashMap<NodeId, Reason>, costs: &Costs) -> Estimates {
        let mut estimates = Estimates {
            work: vec![0.0; graph.len()],
            bytes: vec![0.0; graph.len()],
            carried: vec![None; graph.len()],
            reuse: vec![Reuse::None; graph.len()],
            stored: vec![false; graph.len()],
            users: vec![0; graph.len()],
            counts: vec![false; graph.len()],
            ramps: vec![false; graph.len()],
            masks: vec![false; graph.len()],
            scatters: vec![false; graph.len()],
            summed: vec![false; graph.len()],
            windows: vec![false; graph.len()],
        };
        forced.keys().for_each(|node| estimates.stored[node.index()] = true);
        for &node in live {
            value_sources(graph, node).iter().for_each(|source| estimates.users[source.index()] += 1);
        }
        for &node in live.iter().rev() {
            let sums = match graph.op(node) {
                Op::Permute | Op::Flip | Op::Reshape | Op::Shrink | Op::Pad => estimates.summed[node.index()],
                Op::Reduce => is_float_sum(graph, node),
                _ => false,
            };
            if let (true, Some(source)) = (sums, value_sources(graph, node).first()) {
                estimates.summed[source.index()] = estimates.users[source.index()] == 1;
            }
        }
        for &node in live {
            estimates.add(graph, node, costs.byte as f32);
        }
        estimates
    }

    /// Whether the Reduce is computed by a loop over its terms, in a kernel of its own.
    pub(super) fn scatters(&self, node: NodeId) -> bool {
        self.scatters[node.index()]
    }

    /// The Reduce that a value is, or that it depends on by elementwise ops alone as its only user.
    pub(super) fn sum(&self, graph: &Graph, node: NodeId) -> Option<NodeId> {
        if graph.op(node) == Op::Reduce { Some(node) } else { self.carried[node.index()] }
    }

    /// Which operands of a sum of products are reused by other results.
    pub(super) fn reuse(&self, node: NodeId) -> Reuse {
        self.reuse[node.index()]
    }

    /// An upper bound on the operations for one element if everything below is fused: a shared subexpression counts on
    /// each path to it.
    pub(super) fn work(&self, node: NodeId) -> f64 {
        self.work[node.index()] as f64
    }

    /// As [`Estimates::work`], but a shared subexpression counts once for each index at which it is read: elementwise
    /// ops read their sources at the same index, each view at another one.
    fn work_once(&self, graph: &Graph, node: NodeId) -> f64 {
        /// The most visits; the rest counts as in [`Estimates::work`].
        const MOST: usize = 1024;
        let mut met: FxHashSet<(NodeId, u64)> = FxHashSet::default();
        // A node, the views on the way to it, and how many of its elements one result needs.
        let mut open = vec![(node, 0u64, 1f32)];
        let mut total = 0f32;
        while let Some((node, views, share)) = open.pop() {
            if !met.insert((node, views)) {
                continue;
            }
            if met.len() > MOST {
                total += share * self.work[node.index()];
                continue;
            }
            total += share * operation(graph, node);
            let views = if graph.op(node).is_view() { views.rotate_left(7) ^ (u64::from(node.0) + 1) } else { views };
            let elements = elements(graph, node);
            for &source in value_sources(graph, node) {
                let share = share * per_element(graph.op(node), elements, self::elements(graph, source));
                if graph.op(node) == Op::Reduce {
                    total += share;
                }
                match graph.op(source) {
                    op if is_in_memory(op) => {}
                    _ if self.is_read(graph, source) => total += share,
                    _ => open.push((source, views, share)),
                }
            }
        }
        total as f64
    }

    /// The cost of recomputing an element of a node from smaller values that it broadcasts, such as the weight of a pair that all of
    /// its features share. `None` if it broadcasts nothing expensive, or depends on a Reduce of its own size.
    fn above_broadcasts(&self, graph: &Graph, node: NodeId) -> Option<AboveBroadcasts> {
        /// The most visits.
        const MOST: usize = 64;
        let elements = elements(graph, node);
        let mut above = AboveBroadcasts { work: 0.0, bytes: 0.0, broadcast: SmallVec::new() };
        let (mut open, mut met) = (vec![node], FxHashSet::from_iter([node]));
        while let Some(node) = open.pop() {
            above.work += f64::from(operation(graph, node));
            for &source in value_sources(graph, node) {
                if !met.insert(source) {
                    continue;
                }
                let share = self::elements(graph, source) / elements;
                let is_stored = is_in_memory(graph.op(source));
                let is_broadcast = !is_stored && share <= 0.5 && self.work[source.index()] > RAMP;
                if is_stored || is_broadcast {
                    above.work += 1.0;
                    above.bytes += f64::from(share.min(1.0)) * graph.dtype(source).size() as f64;
                    above.broadcast.extend(is_broadcast.then_some(source));
                } else if graph.op(source) == Op::Reduce || met.len() > MOST {
                    return None;
                } else {
                    open.push(source);
                }
            }
        }
        (!above.broadcast.is_empty()).then_some(above)
    }

    /// Whether the source counts as a load: a Reduce is decided upon separately, unless it becomes part of the sum that
    /// reads it.
    fn is_read(&self, graph: &Graph, source: NodeId) -> bool {
        graph.op(source) == Op::Reduce && !self.counts[source.index()] && !self.summed[source.index()]
    }

    /// Whether this is a masked load: a value where a condition on positions holds, and a constant elsewhere.
    pub(super) fn is_masked_read(&self, graph: &Graph, node: NodeId) -> bool {
        let &[condition, yes, no] = graph.sources(node) else { return false };
        let is_constant = |side: NodeId| graph.as_const(masks::repeated(graph, side)).is_some();
        let is_read = |mut side: NodeId| {
            while graph.op(side).is_view() {
                side = graph.source(side, 0);
            }
            matches!(graph.op(side), Op::Param | Op::Buffer | Op::Contiguous) || self.is_stored(side)
        };
        graph.op(node) == Op::Where
            && (self.ramps[condition.index()] || self.masks[condition.index()])
            && (is_constant(no) && is_read(yes) || is_constant(yes) && is_read(no))
    }

    /// The number of uses of a node.
    pub(super) fn users(&self, node: NodeId) -> u32 {
        self.users[node.index()]
    }

    /// Whether it is stored unconditionally.
    pub(super) fn is_stored(&self, node: NodeId) -> bool {
        self.stored[node.index()]
    }

    /// Whether the Reduce grows along the output, so that a loop can carry it.
    pub(super) fn runs(&self, node: NodeId) -> bool {
        self.windows[node.index()]
    }

    /// Whether this is a scatter: a Reduce over data of terms selected by comparing the data with a ramp along other
    /// axes.
    fn is_scatter(&self, graph: &Graph, node: NodeId) -> bool {
        let Arg::Reduce { op, axes } = graph.arg(node) else { return false };
        let terms = graph.source(node, 0);
        let dims = sizes(graph, terms);
        let along = |value: NodeId| masks::varying_axes(graph, value, dims.len());
        let is_place = |ramp: NodeId, data: NodeId| {
            let (places, terms) = (along(ramp), along(data));
            let size = places.iter().fold(1i64, |size, &axis| size.saturating_mul(dims[axis as usize]));
            let most = graph.dtype(ramp).whole_range().map_or(0, |(_, most)| most);
            self.ramps[ramp.index()]
                && !self.ramps[data.index()]
                && !places.iter().any(|axis| axes.contains(axis))
                && terms.iter().any(|axis| axes.contains(axis))
                && size >= PLACES
                && (graph.dtype(ramp).is_int() || size as i128 <= most)
        };
        choices(graph, *op, terms).0.iter().any(|&(condition, holds)| {
            match (graph.op(condition), graph.sources(condition)) {
                (Op::CmpNe, &[a, b]) if !holds => is_place(a, b) || is_place(b, a),
                _ => false,
            }
        })
    }

    /// Whether a node compares data with positions.
    fn is_mask(&self, graph: &Graph, node: NodeId) -> bool {
        let is_ramp = |source: &NodeId| self.ramps[source.index()];
        let sources = graph.sources(node);
        match graph.op(node) {
            Op::CmpNe | Op::CmpLt if !graph.sources(node).iter().all(is_ramp) => {
                sources.iter().any(|source| is_ramp(source) && count(&sizes(graph, *source)) > 1)
                    || sources.iter().any(|source| self.masks[source.index()])
            }
            Op::And | Op::Or | Op::Xor if graph.dtype(node) == DType::Bool => {
                sources.iter().all(|source| self.masks[source.index()] || is_ramp(source))
            }
            _ => false,
        }
    }

    /// Whether this is a Reduce of terms selected by a comparison of positions, or of views that pad and repeat.
    fn is_windowed(&self, graph: &Graph, node: NodeId) -> bool {
        let Arg::Reduce { op, axes } = graph.arg(node) else { return false };
        let terms = graph.source(node, 0);
        let rank = graph.props(terms).rank();
        let along = |value: NodeId| masks::varying_axes(graph, value, rank);
        let (conditions, value) = choices(graph, *op, terms);
        let of_value = value.map_or_else(Axes::new, along);
        // A running Reduce along an axis of the output needs terms that do not vary along that axis.
        let is_window = |steps: NodeId, ends: NodeId| {
            let (steps, ends) = (along(steps), along(ends));
            let is_reduced = |axis: &u32| axes.contains(axis);
            steps.iter().any(is_reduced)
                && !ends.iter().any(is_reduced)
                && !ends.iter().any(|axis| of_value.contains(axis))
        };
        conditions.iter().any(|&(condition, _)| match (graph.op(condition), graph.sources(condition)) {
            (Op::CmpLt, &[a, b]) if self.ramps[a.index()] && self.ramps[b.index()] => {
                is_window(a, b) || is_window(b, a)
            }
            _ => false,
        }) || repeats(graph, uncast(graph, terms))
    }

    fn add(&mut self, graph: &Graph, node: NodeId, byte: f32) {
        let elements = elements(graph, node);
        let op = graph.op(node);
        if is_in_memory(op) {
            self.bytes[node.index()] = graph.dtype(node).size() as f32;
            return;
        }
        if op == Op::Reduce && counted(graph, node).is_some() {
            self.counts[node.index()] = true;
            self.ramps[node.index()] = true;
            self.work[node.index()] = 1.0;
            return;
        }
        self.reuse[node.index()] = Reuse::of(graph, node);
        self.scatters[node.index()] = self.is_scatter(graph, node);
        self.windows[node.index()] = self.is_windowed(graph, node);
        let (mut work, mut bytes) = (operation(graph, node), 0.0);
        for &source in value_sources(graph, node) {
            let from = self::elements(graph, source);
            let share = per_element(op, elements, from);
            // A value that several kernels would rather load than recompute costs the bytes of a load.
            let size = graph.dtype(source).size() as f32;
            let again = self.bytes[source.index()] + self.work[source.index()] / byte;
            let is_stored =
                self.users[source.index()] > 1 && (self.carried[source.index()].is_some() || again > 4.0 * size);
            let is_read = self.is_read(graph, source);
            let own = if is_read { 1.0 } else { self.work[source.index()] };
            let read = if is_read || is_stored { size } else { self.bytes[source.index()] };
            work += share * own;
            bytes += share * read;
            if op == Op::Reduce {
                work += share;
            }
            // With several users the source itself is stored, and elementwise ops on it are cheap.
            if from == elements && self.users[source.index()] == 1 && !self.counts[source.index()] {
                let tiled = |sum: &Option<NodeId>| sum.is_some_and(|sum| self.reuse(sum) == Reuse::Both);
                let sums = [self.carried[node.index()], self.sum(graph, source)];
                self.carried[node.index()] = sums.into_iter().max_by_key(|sum| (tiled(sum), *sum)).flatten();
            }
        }
        self.ramps[node.index()] = work <= RAMP
            && (op == Op::Const || !matches!(op, Op::Reduce | Op::Range) && !value_sources(graph, node).is_empty())
            && value_sources(graph, node).iter().all(|source| self.ramps[source.index()]);
        self.masks[node.index()] = self.is_mask(graph, node);
        self.work[node.index()] = work.min(1e30);
        self.bytes[node.index()] = bytes.min(1e30);
    }
}

/// What an element costs if the values that it broadcasts are stored.
struct AboveBroadcasts {
    /// Operations.
    work: f64,
    /// Bytes that are read.
    bytes: f64,
    /// The values to store.
    broadcast: SmallVec<[NodeId; 2]>,
}

/// The most operations on an index that cost less than loading the result.
const RAMP: f32 = 8.0;

/// Whether a value of this op is loaded: it is in memory, or the user or a rule wants it stored.
fn is_in_memory(op: Op) -> bool {
    matches!(op, Op::Param | Op::Buffer | Op::Binary | Op::Contiguous)
}

/// Whether a node adds or multiplies by a constant and none of its operands does: longer chains may be cut.
fn is_step(graph: &Graph, node: NodeId) -> bool {
    let is_constant = |&source: &NodeId| graph.as_const(masks::repeated(graph, source)).is_some();
    let has_constant =
        |&node: &NodeId| matches!(graph.op(node), Op::Add | Op::Mul) && graph.sources(node).iter().any(is_constant);
    has_constant(&node) && !graph.sources(node).iter().any(has_constant)
}

fn elements(graph: &Graph, node: NodeId) -> f32 {
    count(&sizes(graph, node)).max(1) as f32
}

/// How many of the `from` elements of a source one of the `elements` of an op needs. If there are fewer, each is
/// computed once and reused.
fn per_element(op: Op, elements: f32, from: f32) -> f32 {
    if op == Op::Reduce { from / elements } else { (from / elements).min(1.0) }
}

/// Whether this is a float sum that is not rounded at the end.
fn is_float_sum(graph: &Graph, node: NodeId) -> bool {
    let dtype = graph.dtype(node);
    matches!(graph.arg(node), Arg::Reduce { op: Op::Add, .. }) && dtype.is_float() && dtype.accumulator() == dtype
}

/// The sources that hold values, as opposed to shapes and offsets.
pub(super) fn value_sources(graph: &Graph, node: NodeId) -> &[NodeId] {
    let sources = graph.sources(node);
    match graph.op(node) {
        Op::Param | Op::Buffer | Op::Range => &[],
        Op::Reshape | Op::Expand | Op::Pad | Op::Shrink | Op::Reduce | Op::Load => &sources[..1],
        _ => sources,
    }
}

/// The number of vector operations for one element of an op.
fn operation(graph: &Graph, node: NodeId) -> f32 {
    match graph.op(node) {
        Op::Pow if is_product(graph, node) => 5.0,
        Op::Div | Op::Recip => 4.0,
        Op::Sqrt => 5.0,
        Op::Idiv | Op::Mod | Op::Exp2 | Op::Log2 => 10.0,
        Op::Sin => 20.0,
        Op::Pow => 40.0,
        Op::Threefry => 80.0,
        Op::Const | Op::Permute | Op::Flip | Op::Reshape | Op::Expand | Op::Shrink => 0.0,
        _ => 1.0,
    }
}

/// One consumer's demand on a producer.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// Number of the consuming kernel.
    pub(super) kernel: usize,
    /// How often the consumer evaluates it.
    pub(super) trips: f64,
    /// Whether it depends on the Range of a Reduce.
    pub(super) inside_reduce: bool,
    /// If it depends on exactly the outermost output Ranges of the kernel, how many they are.
    pub(super) prefix: Option<usize>,
    /// Trips of the whole output space of the consuming kernel.
    pub(super) space: f64,
    /// Whether the consuming kernel has reached its limits.
    pub(super) full: bool,
    /// Whether each axis is one whole loop of the consuming kernel, in either direction.
    pub(super) whole: bool,
    /// Whether a sum of products would lose its register tile as part of the consumer's sum.
    pub(super) breaks_tile: bool,
    /// Operations that the consuming kernel loses because a sum of products in it is not tiled.
    pub(super) untiled: f64,
    /// Bytes that its inner loops reread from the cache.
    pub(super) shared: f64,
}

/// Why a value is, or is not, written to memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// An output of the schedule.
    Output,
    /// The user asked for a layout or a move: a boundary between kernels.
    Contiguous,
    /// A composition or an earlier pass wants it stored, whichever kernel writes it.
    Stored,
    /// A kernel written by hand reads it.
    Call,
    /// A Reduce inside another Reduce's loop would run once per trip of it.
    ThroughReduces,
    /// A sum of sums, each of which is used once, is one sum.
    SumOfSums,
    /// The Reduce would run again in an inner loop that it does not depend on.
    NotPrefix,
    /// A maximum is compared with its terms, which depend on it: rounded in two ways, none would be the greatest.
    Compared,
    /// One value that a large kernel would compute once per thread.
    Scalar,
    /// The kernel reached its limit of nodes.
    Full,
    /// An addition of or multiplication by a constant, such as the scaling of an exponent.
    Step,
    /// Its Reduce is needed several times, so it is stored with the operations after it.
    AfterReduce,
    /// A view moves no data; the decision is about its source.
    View,
    /// It follows from the indices alone.
    Ramp,
    /// It compares with values that follow from the indices.
    Mask,
    /// Narrow numbers take less memory, and a kernel that reads them repeatedly packs them first.
    Widened,
    /// Its windows would not follow the loops of its consumer.
    Window,
    /// One loop cannot carry both this and another running Reduce of its kernel.
    Direction,
    /// A kernel that contained it could not be lowered.
    Unfused,
    /// Each kernel of a part writes it where it belongs.
    Parts,
    /// Its data decide where each term goes.
    Scatter,
    /// Kernels over blocks compute it where they sum it.
    Online,
    /// Recomputing costs more than storing.
    Dear {
        /// Cost of recomputing.
        recompute: f64,
        /// Cost of storing.
        store: f64,
    },
    /// Recomputing costs less than storing.
    Cheap {
        /// Cost of recomputing.
        recompute: f64,
        /// Cost of storing.
        store: f64,
    },
}

/// A decision of the law about one node of the tensor graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The producer, in the tensor graph.
    pub node: NodeId,
    /// Its op.
    pub op: Op,
    /// Written to memory, rather than recomputed in its consumers.
    pub materialised: bool,
    /// Number of kernels that read it.
    pub consumers: usize,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.materialised { "not fused" } else { "fused" };
        write!(f, "%{} {} ({} consumers): {verdict}: ", self.node.0, self.op, self.consumers)?;
        match &self.reason {
            Reason::Output => f.write_str("an output"),
            Reason::Contiguous => f.write_str("the user asked for memory"),
            Reason::Stored => f.write_str("kept in memory for what follows"),
            Reason::Call => f.write_str("a kernel written by hand reads it"),
            Reason::ThroughReduces => f.write_str("a Reduce inside another Reduce's loop"),
            Reason::SumOfSums => f.write_str("a sum of sums"),
            Reason::NotPrefix => f.write_str("a Reduce would repeat in a loop it does not depend on"),
            Reason::Compared => f.write_str("a maximum that is compared with its terms depends on it"),
            Reason::Scalar => f.write_str("one value, used by a large kernel"),
            Reason::Full => f.write_str("the kernel is at its limit of nodes"),
            Reason::Step => f.write_str("arithmetic with a constant"),
            Reason::AfterReduce => f.write_str("its Reduce is needed several times"),
            Reason::View => f.write_str("a view"),
            Reason::Ramp => f.write_str("index arithmetic"),
            Reason::Mask => f.write_str("a comparison with index arithmetic"),
            Reason::Widened => f.write_str("narrower in memory"),
            Reason::Window => f.write_str("a running Reduce that is read elsewhere"),
            Reason::Direction => f.write_str("a running Reduce whose kernel carries another one differently"),
            Reason::Unfused => f.write_str("a kernel with it could not be lowered"),
            Reason::Parts => f.write_str("its parts are written side by side"),
            Reason::Scatter => f.write_str("data say where its terms go"),
            Reason::Online => f.write_str("made in blocks where it is summed"),
            Reason::Dear { recompute, store } => write!(f, "recomputing costs {recompute:.0}, storing {store:.0}"),
            Reason::Cheap { recompute, store } => write!(f, "recomputing costs {recompute:.0}, storing {store:.0}"),
        }
    }
}

/// Whether this is a Cast to a wider type that takes one instruction.
fn widens(graph: &Graph, node: NodeId) -> bool {
    if graph.op(node) != Op::Cast {
        return false;
    }
    let source = widened_as_written(graph, node).unwrap_or_else(|| graph.source(node, 0));
    let (from, to) = (graph.dtype(source), graph.dtype(node));
    let is_simple = from.size() > 1 && from.is_float() && to.is_float() || from.is_int() && to.is_int();
    is_simple && to.size() > from.size() && to != DType::Index && from != DType::Bool
}

/// How many times [`Estimates::work`] may exceed [`Estimates::work_once`] before that replaces it: shared subexpressions can make it
/// grow exponentially. A smaller excess makes up for costs that neither counts, such as lanes that short rows leave empty (measured).
const OVERCOUNT: f64 = 4.0;

/// The costs, in operations, of recomputing a value in its consumers (beyond computing it once) and of storing it.
struct Tradeoff {
    recompute: f64,
    store: f64,
}

impl Tradeoff {
    fn of(graph: &Graph, node: NodeId, estimates: &Estimates, costs: &Costs, demands: &[Demand]) -> Tradeoff {
        let elements = count(&sizes(graph, node)).max(1) as f64;
        let mut kernels: Vec<usize> = demands.iter().map(|demand| demand.kernel).collect();
        kernels.sort_unstable();
        kernels.dedup();
        let trips: f64 = demands.iter().map(|demand| demand.trips).sum();
        let again = (kernels.len() - 1) as f64 * elements;
        let untiled: f64 = demands.iter().map(|demand| demand.untiled).sum();
        let reread = again * estimates.bytes[node.index()] as f64 * costs.byte;
        let computed = |work: f64| (trips - elements).max(0.0) * work + untiled;
        let recomputed = |work: f64| computed(work) + reread;
        // A write moves each line twice: it is read before it is written.
        let moved = |node: NodeId| {
            let bytes = count(&sizes(graph, node)).max(1) as f64 * graph.dtype(node).size() as f64;
            bytes * (2 + kernels.len()) as f64 * costs.byte + costs.launch
        };
        let shared: f64 = demands.iter().map(|demand| demand.shared).sum();
        let store = moved(node) + shared * costs.byte;
        let mut recompute = recomputed(estimates.work(node));
        if recompute > store && recomputed(1.0) <= store {
            let exact = recomputed(estimates.work_once(graph, node));
            if recompute > OVERCOUNT * exact {
                recompute = exact;
            }
        }
        if recompute > store
            && kernels.len() > 1
            && let Some(above) = estimates.above_broadcasts(graph, node)
        {
            let stored: f64 = above.broadcast.into_iter().map(moved).sum();
            recompute = recompute.min(computed(above.work) + again * above.bytes * costs.byte + stored);
        }
        Tradeoff { recompute, store }
    }
}

/// The fusion law. `demands` is not empty.
pub(super) fn decide(
    graph: &Graph,
    node: NodeId,
    estimates: &Estimates,
    costs: &Costs,
    demands: &[Demand],
) -> Result<(bool, Reason)> {
    let op = graph.op(node);
    if matches!(op, Op::Permute | Op::Flip | Op::Reshape | Op::Expand | Op::Shrink | Op::Pad | Op::After) {
        return Ok((false, Reason::View));
    }
    if (estimates.ramps[node.index()] && op != Op::Reduce) || op == Op::Param {
        return Ok((false, Reason::Ramp));
    }
    if estimates.masks[node.index()] {
        return Ok((false, Reason::Mask));
    }
    if estimates.scatters(node) {
        return Ok((true, Reason::Scatter));
    }
    if estimates.windows[node.index()] && demands.iter().any(|demand| !demand.whole) {
        return Ok((true, Reason::Window));
    }
    let elements = count(&sizes(graph, node)).max(1) as f64;
    if demands.iter().any(|demand| demand.full) {
        // Cutting before the step is no worse, and keeps the exponent of a power in the same kernel as the power, for
        // Select.
        return Ok(if is_step(graph, node) { (false, Reason::Step) } else { (true, Reason::Full) });
    }
    if widens(graph, node) {
        return Ok((false, Reason::Widened));
    }
    let barrier = demands.iter().find_map(|demand| match demand.prefix {
        _ if demand.inside_reduce => Some(Reason::ThroughReduces),
        None => Some(Reason::NotPrefix),
        Some(0) if demand.space > costs.parallel => Some(Reason::Scalar),
        Some(_) => None,
    });
    let carries = estimates.carried[node.index()].is_some();
    if let (Some(Reason::ThroughReduces), [demand]) = (&barrier, demands)
        && estimates.summed[node.index()]
        && !estimates.scatters[node.index()]
        && is_float_sum(graph, node)
        && !demand.breaks_tile
    {
        // One sum of both keeps the tile. Sums among its own terms are decided upon separately.
        let work = match operands(graph, node) {
            Some(_) => estimates.work(node),
            None => 2.0 * count(&sizes(graph, graph.source(node, 0))) as f64 / elements,
        };
        let Tradeoff { store, .. } = Tradeoff::of(graph, node, estimates, costs, demands);
        if (demand.trips - elements) * work <= store {
            return Ok((false, Reason::SumOfSums));
        }
    }
    match barrier {
        Some(reason) if op == Op::Reduce => return Ok((true, reason)),
        // The Reduce below would have to be stored anyway: store the value derived from it instead.
        Some(_) if carries => return Ok((true, Reason::AfterReduce)),
        None if carries && op != Op::Reduce && elements > 1.0 && demands.len() > 1 => {
            return Ok((true, Reason::AfterReduce));
        }
        _ => {}
    }
    let Tradeoff { recompute, store } = Tradeoff::of(graph, node, estimates, costs, demands);
    Ok(if recompute > store {
        (true, Reason::Dear { recompute, store })
    } else {
        (false, Reason::Cheap { recompute, store })
    })
}
