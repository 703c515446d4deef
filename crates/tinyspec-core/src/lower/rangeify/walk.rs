//! The walk from the outputs down: every tensor node receives from its consumers the indices at which they read it.
//! All consumers precede a node here, so the fusion law decides once, with all demands known.

mod layout;
mod sources;

use super::concat::Concats;
use super::count::Count;
use super::depends::{depend, depends_on};
use super::fusion::{self, Costs, Decision, Estimates, Reason};
use super::hand_written::HandWrittenCalls;
use super::index::{Indices, Ranges, Tuple};
use super::movement::{elements, estimate, shape};
use super::online::Online;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, AxisType, Builder, DType, Device, Dim, Graph, NodeId, Op, Result, Shape};

/// Number of a demand.
pub(super) type DemandId = u32;

/// How a demand is met.
#[derive(Clone, Copy)]
pub(super) enum Met {
    /// Computed in the kernel, from the demands on the sources.
    Inline,
    /// Read from memory.
    Load,
    /// Out of bounds: 0.
    Zero,
    /// By a number of trips, times a constant.
    Count(Count),
}

/// A consumer kernel needs the element `tuple` of `node`, where `gate` holds.
pub(super) struct Need {
    pub(super) node: NodeId,
    pub(super) kernel: usize,
    pub(super) tuple: Tuple,
    pub(super) gate: Option<NodeId>,
    pub(super) met: Met,
    /// Demands on the sources, in order (for a Stack, in the order of `picks`).
    pub(super) sources: SmallVec<[DemandId; 3]>,
    /// Ranges of a Reduce.
    pub(super) ranges: Ranges,
    /// Elements of a Stack that the index may pick.
    pub(super) picks: SmallVec<[i64; 2]>,
    /// Gate of the sources, if it differs from that of this demand.
    pub(super) inner_gate: Option<NodeId>,
}

/// A kernel under construction.
pub(super) struct Kernel {
    /// Extents of the output Ranges; none is 1.
    pub(super) extents: Shape,
    pub(super) ranges: Ranges,
    /// Row-major position of the output Ranges.
    flat: NodeId,
    pub(super) space: f64,
    pub(super) device: Option<Device>,
    /// The tensor nodes that it stores, with their values.
    pub(super) outputs: Vec<(NodeId, DemandId)>,
    /// Tensor nodes that are read from memory.
    pub(super) inputs: Vec<NodeId>,
    /// Kernels whose outputs are read.
    pub(super) depends: Vec<usize>,
    /// Greater than that of each kernel that reads its outputs.
    pub(super) depth: u32,
    /// Number of demands.
    pub(super) demands: usize,
    /// Number of values: one per demand, plus what decompositions add.
    pub(super) size: usize,
    /// Nodes that carry a user's line.
    pub(super) located: Vec<NodeId>,
    /// Reduces that it computes.
    pub(super) reduces: Vec<NodeId>,
    /// The number of their loops, one per axis.
    pub(super) loops: usize,
    /// The Call of a kernel written by hand that this one represents.
    pub(super) hand_written: Option<NodeId>,
    /// Whether nothing may be fused into it, because its loops differ from those of its output or it could not be
    /// lowered together with others.
    pub(super) is_alone: bool,
    /// The matrices that it sums over in blocks.
    pub(super) online: Option<usize>,
    /// Its running Reduces.
    pub(super) running: SmallVec<[NodeId; 1]>,
    /// The sum of products that it is tiled for.
    pub(super) tile: Option<NodeId>,
    /// Reduces that it computes.
    pub(super) sums: usize,
}

type Key = (NodeId, usize, Tuple, Option<NodeId>);

impl Kernel {
    /// Whether it exceeds a limit on size.
    fn is_large(&self, costs: &Costs) -> bool {
        self.size > costs.nodes || self.demands > costs.demands
    }
}

/// The node whose buffer holds an output: the output itself, or a stored value that it only reshapes.
pub(super) fn held_in(graph: &Graph, output: NodeId) -> NodeId {
    let result = named(graph, output).0;
    let mut node = result;
    while keeps_order(graph, node) {
        let (source, reason) = named(graph, graph.source(node, 0));
        if reason.is_some() {
            return if is_leaf(graph, source) { result } else { source };
        }
        node = source;
    }
    result
}

/// Whether its elements are those of its source, in the same order.
fn keeps_order(graph: &Graph, node: NodeId) -> bool {
    match (graph.op(node), graph.arg(node)) {
        (Op::Reshape, _) => true,
        (Op::Permute, Arg::Axes(axes)) => axes.is_sorted(),
        _ => false,
    }
}

/// State of the walk.
pub(super) struct Walk<'a> {
    pub(super) tensors: &'a Graph,
    pub(super) indices: Indices,
    pub(super) needs: Vec<Need>,
    pub(super) kernels: Vec<Kernel>,
    pub(super) decisions: Vec<Decision>,
    /// Demands of each tensor node.
    pub(super) of_node: Vec<SmallVec<[DemandId; 1]>>,
    /// Kernel that writes each materialised node.
    pub(super) writer: FxHashMap<NodeId, usize>,
    /// The order of the dims in memory, outermost first, of nodes whose layout differs from their shape.
    layouts: FxHashMap<NodeId, SmallVec<[usize; 8]>>,
    /// Kernels written by hand, by their Call.
    pub(super) calls: &'a HandWrittenCalls,
    pub(super) costs: &'a Costs,
    pub(super) estimates: Estimates,
    pub(super) online: Online,
    pub(super) concats: Concats,
    keys: FxHashMap<Key, DemandId>,
    /// Trips from the outermost loop down to this Range, inclusive.
    trips: FxHashMap<NodeId, f64>,
}

/// Whether a node is in memory before the schedule runs.
pub(super) fn is_leaf(graph: &Graph, node: NodeId) -> bool {
    match graph.op(node) {
        Op::Buffer | Op::Binary => true,
        Op::Param => !(graph.dtype(node) == DType::Index && graph.props(node).value.is_some()),
        _ => false,
    }
}

/// The node that `node` is only another name for, and the reason to store it, if a name asks for that.
pub(super) fn named(graph: &Graph, mut node: NodeId) -> (NodeId, Option<Reason>) {
    let mut forced = None;
    loop {
        node = match (graph.op(node), graph.arg(node)) {
            (Op::Detach | Op::ContiguousBackward, _) => graph.source(node, 0),
            (Op::Contiguous, Arg::Stored) => {
                forced = forced.or(Some(Reason::Stored));
                graph.source(node, 0)
            }
            (Op::Contiguous | Op::Load, _) => {
                forced = Some(Reason::Contiguous);
                graph.source(node, 0)
            }
            (Op::GetTuple, Arg::Number(element)) if graph.op(graph.source(node, 0)) == Op::Tuple => {
                graph.source(graph.source(node, 0), *element as usize)
            }
            _ => return (node, forced),
        }
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        tensors: &'a Graph,
        live: &[NodeId],
        forced: &FxHashMap<NodeId, Reason>,
        costs: &'a Costs,
        calls: &'a HandWrittenCalls,
        online: Online,
        concats: Concats,
    ) -> Walk<'a> {
        Walk {
            tensors,
            indices: Indices::default(),
            needs: Vec::new(),
            kernels: Vec::new(),
            decisions: Vec::new(),
            of_node: vec![SmallVec::new(); tensors.len()],
            writer: FxHashMap::default(),
            layouts: FxHashMap::default(),
            calls,
            costs,
            estimates: Estimates::new(tensors, live, forced, costs),
            online,
            concats,
            keys: FxHashMap::default(),
            trips: FxHashMap::default(),
        }
    }

    /// Visits all nodes, consumers first. `forced` nodes are written to memory for the given reason.
    pub(super) fn run(&mut self, live: &[NodeId], forced: &FxHashMap<NodeId, Reason>) -> Result<()> {
        for &node in live.iter().rev() {
            let reason = forced.get(&node);
            if reason.is_some() || !self.of_node[node.index()].is_empty() {
                self.visit(node, reason).map_err(|error| self.tensors.located(node, error))?;
            }
        }
        Ok(())
    }

    fn visit(&mut self, node: NodeId, forced: Option<&Reason>) -> Result<()> {
        let demands = self.of_node[node.index()].clone();
        let leaf = is_leaf(self.tensors, node);
        if elements(shape(self.tensors, node)).is(0) {
            return self.meet(&demands, Met::Zero);
        }
        if let Some((call, _)) = call_result(self.tensors, node) {
            let kernel = self.hand_written(call)?;
            self.writer.insert(node, kernel);
            return self.meet(&demands, Met::Load);
        }
        if leaf {
            self.meet(&demands, Met::Load)?;
            if forced == Some(&Reason::Output) {
                let root = self.new_kernel(node)?;
                self.meet(&[root], Met::Load)?;
            }
            return Ok(());
        }
        if let Some(parts) = self.concats.parts(node).map(<[NodeId]>::to_vec) {
            // Readers of the whole wait for the kernels of its parts.
            for part in parts {
                let root = self.new_kernel(part)?;
                let kernel = self.needs[root as usize].kernel;
                self.kernels[kernel].is_alone = self.concats.overlapping(part).is_some();
                self.writer.insert(part, self.needs[root as usize].kernel);
            }
            let consumers = demands.len();
            let op = self.tensors.op(node);
            self.decisions.push(Decision { node, op, materialised: true, consumers, reason: Reason::Parts });
            return self.meet(&demands, Met::Load);
        }
        if self.concats.part(node).is_some() {
            for demand in demands {
                let is_root = self.kernels[self.needs[demand as usize].kernel].outputs.contains(&(node, demand));
                self.meet(&[demand], if is_root { Met::Inline } else { Met::Load })?;
            }
            return Ok(());
        }
        let demands = if forced.is_none() { self.meet_by_counting(node, demands)? } else { demands };
        if demands.is_empty() && forced.is_none() {
            return Ok(());
        }
        let (materialised, reason) = match forced {
            Some(reason) => (true, reason.clone()),
            None if self.tensors.op(node) == Op::Const => (false, Reason::Contiguous),
            None if self.online.is_inside(node) => (false, Reason::Online),
            None if self.online.is_stored(node) => (true, Reason::ThroughReduces),
            None => {
                let seen: Vec<fusion::Demand> = demands.iter().map(|&demand| self.weigh(demand)).collect();
                fusion::decide(self.tensors, node, &self.estimates, self.costs, &seen)?
            }
        };
        if materialised || self.tensors.op(node) == Op::Reduce || demands.len() > 1 {
            let mut consumers: Vec<usize> = demands.iter().map(|&demand| self.needs[demand as usize].kernel).collect();
            consumers.sort_unstable();
            consumers.dedup();
            let (op, consumers) = (self.tensors.op(node), consumers.len());
            if op != Op::Const {
                self.decisions.push(Decision { node, op, materialised, consumers, reason });
            }
        }
        if !materialised {
            return self.meet(&demands, Met::Inline);
        }
        let is_alone = self.estimates.scatters(node) || forced == Some(&Reason::Unfused);
        // A kernel that reads the value would be on the far side of the user's boundary.
        let is_separate = matches!(forced, Some(Reason::Direction | Reason::Contiguous | Reason::Unfused));
        let is_apart = is_alone || is_separate;
        // In another kernel's loop order, each window would be summed from its start for each element.
        let is_windowed = self.estimates.runs(node);
        let on_the_way = demands.iter().position(|&demand| {
            let follows = !is_apart && (!is_windowed || self.is_whole(demand));
            follows && self.can_store_from(demand, &demands)
        });
        let root = match on_the_way {
            Some(position) => {
                let root = demands[position];
                let tile = self.tile(node);
                let kernel = &mut self.kernels[self.needs[root as usize].kernel];
                kernel.outputs.push((node, root));
                kernel.tile = kernel.tile.or(tile);
                root
            }
            None => {
                if forced.is_none() {
                    self.choose_layout(node, &demands)?;
                }
                let sum = self.estimates.sum(self.tensors, node);
                for &demand in &demands {
                    let tile = &mut self.kernels[self.needs[demand as usize].kernel].tile;
                    *tile = tile.filter(|&tile| Some(tile) != sum);
                }
                let root = self.new_kernel(node)?;
                self.kernels[self.needs[root as usize].kernel].is_alone = is_alone;
                root
            }
        };
        self.writer.insert(node, self.needs[root as usize].kernel);
        for demand in demands {
            if demand != root {
                self.meet(&[demand], Met::Load)?;
            }
        }
        self.meet(&[root], Met::Inline)
    }

    /// Meets the demands that index arithmetic can meet; returns the others.
    fn meet_by_counting(&mut self, node: NodeId, demands: SmallVec<[DemandId; 1]>) -> Result<SmallVec<[DemandId; 1]>> {
        if self.tensors.op(node) != Op::Reduce {
            return Ok(demands);
        }
        let mut left = SmallVec::new();
        for demand in demands {
            match self.count(demand)? {
                Some(count) => self.meet(&[demand], Met::Count(count))?,
                None => left.push(demand),
            }
        }
        Ok(left)
    }

    /// Describes a demand to the fusion law.
    fn weigh(&mut self, demand: DemandId) -> fusion::Demand {
        let ranges = self.ranges_of(demand);
        let whole = self.is_whole(demand);
        let breaks_tile = self.breaks_tile(demand);
        let need = &self.needs[demand as usize];
        let kernel = &self.kernels[need.kernel];
        let inside_reduce = ranges.iter().any(|range| !kernel.ranges.contains(range));
        let prefix = kernel.ranges.get(..ranges.len()).filter(|outer| **outer == ranges[..]).map(|outer| outer.len());
        let trips = self.trips_of(&ranges);
        fusion::Demand {
            kernel: need.kernel,
            trips: self.evaluated(demand, trips),
            inside_reduce,
            prefix,
            space: kernel.space,
            full: kernel.is_large(self.costs) || kernel.loops >= self.costs.loops,
            whole,
            breaks_tile,
            untiled: self.untiled(demand, &ranges, trips),
            shared: self.shared(demand, &ranges, trips),
        }
    }

    /// Whether each axis of the node is one whole loop of the demanding kernel.
    fn is_whole(&self, demand: DemandId) -> bool {
        let need = &self.needs[demand as usize];
        let kernel = &self.kernels[need.kernel];
        let is_loop = |(&place, size): (&NodeId, &Dim)| {
            let range = self.indices.walked(place);
            let position = kernel.ranges.iter().position(|&own| Some(own) == range);
            size.is(1) || position.is_some_and(|position| kernel.extents[position] == *size)
        };
        need.gate.is_none() && need.tuple.iter().zip(shape(self.tensors, need.node)).all(is_loop)
    }

    fn ranges_of(&mut self, demand: DemandId) -> Ranges {
        let need = &self.needs[demand as usize];
        self.indices.ranges_of(need.tuple.iter().copied().chain(need.gate))
    }

    fn trips_of(&self, ranges: &[NodeId]) -> f64 {
        ranges.iter().filter_map(|range| self.trips.get(range)).fold(1.0, |most, &trips| most.max(trips))
    }

    /// Whether the kernel of `root` can store the node along the way: it computes all elements in its own order, and no
    /// other consumer runs before it.
    fn can_store_from(&mut self, root: DemandId, demands: &[DemandId]) -> bool {
        let need = &self.needs[root as usize];
        let home = need.kernel;
        let size = shape(self.tensors, need.node);
        let kernel = &self.kernels[home];
        if need.gate.is_some()
            || kernel.hand_written.is_some()
            || kernel.is_alone
            || elements(size) != elements(&kernel.extents)
            || kernel.outputs.len() >= self.costs.outputs
            || kernel.is_large(self.costs)
        {
            return false;
        }
        let tuple = need.tuple.clone();
        let flat = kernel.flat;
        if self.indices.flat(&tuple, size).ok() != Some(flat) {
            return false;
        }
        let others: Vec<usize> =
            demands.iter().filter(|&&other| other != root).map(|&other| self.needs[other as usize].kernel).collect();
        !others.contains(&home)
            && !depends_on(&self.kernels, &[home], &others)
            && self.keeps_tile(home, self.needs[root as usize].node)
    }

    fn new_kernel(&mut self, node: NodeId) -> Result<DemandId> {
        let size = shape(self.tensors, node);
        let number = self.kernels.len();
        let (mut ranges, mut extents) = (Ranges::new(), Shape::new());
        let mut tuple: Tuple = size.iter().map(|_| self.indices.number(0)).collect();
        let mut trips = 1.0;
        for axis in self.layout(node, size.len()) {
            if size[axis].is(1) {
                continue;
            }
            let range = self.indices.fresh_range(&size[axis], AxisType::Loop)?;
            trips *= estimate(&size[axis]) as f64;
            self.trips.insert(range, trips);
            tuple[axis] = range;
            ranges.push(range);
            extents.push(size[axis].clone());
        }
        let flat = self.indices.flat(&ranges, &extents)?;
        let root = self.needs.len() as DemandId;
        self.kernels.push(Kernel {
            extents,
            ranges,
            flat,
            space: trips,
            device: self.tensors.props(node).device.clone(),
            outputs: vec![(node, root)],
            inputs: Vec::new(),
            depends: Vec::new(),
            depth: 0,
            demands: 0,
            size: 0,
            located: Vec::new(),
            reduces: Vec::new(),
            loops: 0,
            hand_written: None,
            is_alone: false,
            online: None,
            running: SmallVec::new(),
            tile: self.tile(node),
            sums: 0,
        });
        self.demand(node, number, tuple, None)
    }

    /// The kernel that represents a Call; all of its arguments are read from memory.
    fn hand_written(&mut self, call: NodeId) -> Result<usize> {
        if let Some(kernel) = self.kernels.iter().position(|kernel| kernel.hand_written == Some(call)) {
            return Ok(kernel);
        }
        let number = self.kernels.len();
        self.kernels.push(Kernel {
            extents: Shape::new(),
            ranges: Ranges::new(),
            flat: self.indices.number(0),
            space: 1.0,
            device: self.tensors.props(call).device.clone(),
            outputs: Vec::new(),
            inputs: Vec::new(),
            depends: Vec::new(),
            depth: 0,
            demands: 0,
            size: 0,
            located: vec![call],
            reduces: Vec::new(),
            loops: 0,
            hand_written: Some(call),
            is_alone: false,
            online: None,
            running: SmallVec::new(),
            tile: None,
            sums: 0,
        });
        for argument in self.calls[&call].inputs(self.tensors, call) {
            // The kernel takes the buffer, so any element will do.
            let tuple = (0..self.tensors.props(argument).rank()).map(|_| self.indices.number(0)).collect();
            self.demand(argument, number, tuple, None)?;
        }
        Ok(number)
    }

    fn demand(&mut self, node: NodeId, kernel: usize, tuple: Tuple, gate: Option<NodeId>) -> Result<DemandId> {
        let node = named(self.tensors, node).0;
        let key = (node, kernel, tuple, gate);
        if let Some(&demand) = self.keys.get(&key) {
            return Ok(demand);
        }
        let demand = self.needs.len() as DemandId;
        self.needs.push(Need {
            node,
            kernel,
            tuple: key.2.clone(),
            gate,
            met: Met::Inline,
            sources: SmallVec::new(),
            ranges: Ranges::new(),
            picks: SmallVec::new(),
            inner_gate: None,
        });
        self.kernels[kernel].demands += 1;
        self.kernels[kernel].size += 1;
        self.keys.insert(key, demand);
        self.of_node[node.index()].push(demand);
        Ok(demand)
    }

    fn meet(&mut self, demands: &[DemandId], met: Met) -> Result<()> {
        for &demand in demands {
            let need = &mut self.needs[demand as usize];
            need.met = met;
            let (node, kernel) = (need.node, need.kernel);
            match met {
                Met::Zero | Met::Count(_) => {}
                Met::Load => {
                    let written = self.concats.parts(node).unwrap_or(std::slice::from_ref(&node));
                    if !self.kernels[kernel].inputs.contains(&node) {
                        self.kernels[kernel].inputs.push(node);
                        for &writer in written.iter().filter_map(|node| self.writer.get(node)) {
                            depend(&mut self.kernels, kernel, writer);
                        }
                    }
                }
                Met::Inline => {
                    if let Some(family) = self.online.summed(node) {
                        self.kernels[kernel].online = Some(family);
                    }
                    if self.estimates.runs(node) && !self.kernels[kernel].running.contains(&node) {
                        self.kernels[kernel].running.push(node);
                    }
                    if self.tensors.op(node) == Op::Reduce {
                        let ranges = self.ranges_of(demand);
                        self.add_sum(node, kernel, &ranges);
                    }
                    self.kernels[kernel].size += self.costs.sizes.size(self.tensors, node) - 1;
                    if let Arg::Reduce { axes, .. } = self.tensors.arg(node) {
                        self.kernels[kernel].loops += axes.len();
                        self.kernels[kernel].reduces.push(node);
                    }
                    if !self.tensors.locations(node).is_empty() {
                        self.kernels[kernel].located.push(node);
                    }
                    self.expand(demand)?;
                }
            }
        }
        Ok(())
    }
}

/// The Call of a kernel written by hand or of a custom function whose result a node is, and the number of the result.
pub(super) fn call_result(graph: &Graph, node: NodeId) -> Option<(NodeId, usize)> {
    let &[_, call, number] = graph.sources(node) else { return None };
    let is_result = graph.op(node) == Op::After && tinyspec_ir::kernel::is_opaque(graph, call);
    is_result.then_some(())?;
    Some((call, usize::try_from(graph.as_int(number)?).ok()?))
}
