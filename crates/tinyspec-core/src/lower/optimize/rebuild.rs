//! Rebuilds a kernel over the axes of a schedule, in one sweep.

mod before;
mod packed_dot;
mod pipeline;
mod recomputation;
mod stage;
mod sums;

use super::kernel::{Access, Kernel, is_index, slot};
use super::local::Local;
use super::nans;
use super::partition::{self, Copied};
use super::space::Space;
use super::transforms::Stage;
use crate::lower::fold::{self, both, identity};
use crate::lower::live::RangeSet;
use crate::lower::loops::closed;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use stage::Form;
use tinyspec_backends::Target;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::ops::arithmetic;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, DType, Graph, NodeId, Op, Result};

/// A kernel that fills a temporary for another one. The temporaries are Params behind those of the kernel that reads them, in
/// the order of the kernels that fill them.
pub struct CopyKernel {
    /// Its root, in the graph of the kernel that reads the temporary.
    pub sink: NodeId,
    /// The size of the temporary.
    pub bytes: usize,
}

/// Elements of a vector of the widest machines, which is also copied at once.
const CHUNK: i64 = 16;

/// Elements; rows or panels that lie a multiple of them apart alias: they compete for a few sets of the cache.
const CACHE_ALIAS_STRIDE: i64 = 512;

/// The distance of rows, or panels, of so many elements: a vector more where they would alias.
fn unaliased(size: i64) -> i64 {
    if size % CACHE_ALIAS_STRIDE == 0 { size + CHUNK } else { size }
}

/// Copy kernels.
pub(super) type Copies = SmallVec<[CopyKernel; 1]>;

/// The new Sink, and its copy kernels.
pub(super) fn rebuild(graph: &mut Graph, kernel: &Kernel, space: &Space, target: &Target) -> Result<(NodeId, Copies)> {
    let slots = kernel.order.iter().filter_map(|&node| slot(graph, node));
    let mut rebuild = Rebuild {
        new: vec![None; graph.len()],
        sums: vec![None; graph.len()],
        vanishes: vec![0; graph.len()],
        axes: Vec::new(),
        origins: Vec::new(),
        padded: 0,
        next_range: 0,
        next_local: 0,
        params: slots.max().map_or(0, |slot| slot + 1),
        copied_before: Vec::new(),
        masked: FxHashMap::default(),
        done: vec![false; graph.len()],
        part: 0,
        excess: None,
        shares: target.workgroups.is_some(),
        target,
        accesses: kernel.accesses.iter().map(|access| (access.node, access)).collect(),
        kernel,
        space,
    };
    rebuild.make_axes(graph)?;
    for &node in &kernel.order {
        rebuild.visit(graph, node)?;
    }
    let sink = rebuild.sink(graph)?;
    let (sink, copies) = rebuild.copies_before(graph, sink)?;
    let sink = rebuild.with_loops(graph, sink)?;
    let sink = match space.partitioned.and_then(|axis| rebuild.axes[axis]) {
        Some(range) => partition::partition(graph, sink, range, &rebuild.masked)?,
        None => sink,
    };
    Ok((sink, copies))
}

struct Rebuild<'k> {
    kernel: &'k Kernel,
    space: &'k Space,
    /// New node of an old one.
    new: Vec<Option<NodeId>>,
    /// New normal form of an old index scalar.
    sums: Vec<Option<Affine>>,
    /// Padded ranges beyond whose bound a value is 0.
    vanishes: Vec<RangeSet>,
    /// The Range of each axis; none where it has one trip.
    axes: Vec<Option<NodeId>>,
    /// Each original range over the axes.
    origins: Vec<Affine>,
    padded: RangeSet,
    next_range: u32,
    next_local: u32,
    /// Params of the kernel.
    params: u32,
    /// Filled LOCAL Buffers that separate copy kernels fill instead.
    copied_before: Vec<NodeId>,
    /// The Loads from copies of gated Loads.
    masked: Copied,
    /// Nodes that were visited.
    done: Vec<bool>,
    /// The element of a packed word that is being built: an offset along the range that is packed.
    part: i64,
    /// The amount that biased factors add to each term of the kernel's only sum; subtracted from the result.
    excess: Option<NodeId>,
    /// Whether threads of a workgroup share LOCAL memory.
    shares: bool,
    target: &'k Target,
    accesses: FxHashMap<NodeId, &'k Access>,
}

impl Rebuild<'_> {
    /// Applies the transforms of whole loops: pipelining, reduction interchange, epilogue fission.
    fn with_loops(&self, graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
        if self.shares {
            return Ok(sink);
        }
        if let Some(row) = self.space.pipelined.and_then(|axis| self.axes[axis]) {
            return pipeline::pipeline(graph, sink, row);
        }
        let axes: Vec<NodeId> = self.axes.iter().copied().flatten().collect();
        let epilogue = self.space.epilogue().filter(|_| self.space.staged.contains(&Stage::Sums));
        let tile = epilogue.and_then(|epilogue| Some((self.axes[epilogue.row]?, self.axes[epilogue.lane]?)));
        sums::stage(graph, sink, &axes, tile, self.next_local)
    }

    fn range(&mut self, graph: &mut Graph, bound: NodeId, kind: AxisType) -> Result<NodeId> {
        let range = graph.range(bound, self.next_range, kind)?;
        self.next_range += 1;
        Ok(range)
    }

    /// A LOCAL buffer in the next slot.
    fn local(&mut self, graph: &mut Graph, dtype: DType, elements: i64) -> Result<Local> {
        self.next_local += 1;
        Local::new(graph, self.next_local - 1, dtype, elements)
    }

    fn make_axes(&mut self, graph: &mut Graph) -> Result<()> {
        for axis in &self.space.axes {
            let bound = match axis.trips {
                Some(1) => None,
                Some(trips) => Some(graph.index(trips)),
                None => Some(graph.source(self.space.origins[axis.origin].range, 0)),
            };
            let range = match bound {
                Some(bound) => Some(self.range(graph, bound, axis.kind)?),
                None => None,
            };
            self.axes.push(range);
        }
        self.origins = (0..self.space.origins.len()).map(|origin| self.origin(origin, &self.axes)).collect();
        for origin in self.space.origins.iter().filter(|origin| origin.padded) {
            self.padded |= self.kernel.live.bit(origin.range);
        }
        Ok(())
    }

    /// An original range over the given Ranges of the axes.
    fn origin(&self, origin: usize, axes: &[Option<NodeId>]) -> Affine {
        let parts = self.space.axes.iter().zip(axes).filter(|(axis, _)| axis.origin == origin);
        let part = if self.space.words == Some(origin) { self.part } else { 0 };
        parts.fold(Affine::number(part), |sum, (axis, range)| match range {
            Some(range) => sum.plus(&Affine::atom(*range).scale(axis.stride)),
            None => sum,
        })
    }

    /// As [`Rebuild::origin`], but rounded down to whole blocks if blocks divide the range: so all lanes of a vector that a GPU's
    /// thread accesses have the same gate.
    fn place(&self, origin: usize, trips: i64, axes: &[Option<NodeId>]) -> Affine {
        // A loop with a single trip does not count as a block, so a padded axis may be nested in it.
        let own = || self.space.axes.iter().filter(|axis| axis.origin == origin && axis.trips != Some(1));
        let is_block =
            |&block: &i64| trips % block == 0 && own().all(|axis| axis.stride % block == 0 || axis.stride < block);
        let block = own().map(|axis| axis.stride).filter(is_block).max().filter(|_| self.shares).unwrap_or(1);
        let axes = self.space.axes.iter().zip(axes).map(|(axis, range)| range.filter(|_| axis.stride >= block));
        self.origin(origin, &axes.collect::<Vec<_>>())
    }

    /// Once a node, sources first.
    fn visit(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        if std::mem::replace(&mut self.done[node.index()], true) {
            return Ok(());
        }
        let kernel = self.kernel;
        let repeat = self.space.kept().map(|kept| &kernel.recomputed[kept]).find(|repeat| repeat.again == node);
        if let Some(kept) = repeat.map(|repeat| self.keep(graph, repeat)).transpose()?.flatten() {
            self.new[node.index()] = Some(kept);
            return Ok(());
        }
        match kernel.product.as_ref().filter(|_| self.space.words.is_some()) {
            Some(product) if product.covers(node) => Ok(()),
            Some(product) if product.node == node => self.product(graph, product),
            _ => self.node(graph, node),
        }
    }

    fn node(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        let op = graph.op(node);
        match op {
            Op::Range => {
                let origin = self.space.origin(node);
                self.sums[node.index()] = origin.map(|origin| self.origins[origin].clone());
            }
            Op::Load if self.accesses.contains_key(&node) => self.load(graph, node)?,
            Op::Store if self.accesses.contains_key(&node) => self.store(graph, node)?,
            Op::Reduce => self.reduce(graph, node)?,
            Op::Index if graph.props(graph.source(node, 0)).addrspace.is_some() => {}
            Op::End | Op::Sink => {}
            _ if let Some(sum) = self.substituted(graph, node)? => self.sums[node.index()] = Some(sum),
            Op::Add | Op::Mul | Op::Idiv | Op::Mod if is_index(graph, node) => {
                let sources: SmallVec<[NodeId; 2]> = graph.sources(node).into();
                let sources: SmallVec<[Affine; 2]> = sources.iter().map(|&source| self.sum(graph, source)).collect();
                self.sums[node.index()] = Some(Affine::combine(graph, op, &sources)?);
            }
            Op::CmpLt if is_index(graph, graph.source(node, 0)) => {
                let (a, b) = (graph.source(node, 0), graph.source(node, 1));
                let (a, b) = (self.sum(graph, a), self.sum(graph, b));
                self.new[node.index()] = Some(less(graph, &a, &b)?);
            }
            _ => {
                let sources = self.sources(graph, node)?;
                let arg = graph.arg(node).clone();
                let new = if op.is_elementwise() {
                    self.vanishes[node.index()] = self.vanishing(graph, op, node);
                    fold::elementwise(graph, op, &sources, arg)?
                } else {
                    graph.add(op, &sources, arg)?
                };
                self.new[node.index()] = Some(new);
            }
        }
        Ok(())
    }

    /// An index scalar by its normal form, where that has other atoms than itself. Ranges that are merged or padded go
    /// beyond the bounds by which the form was found, so made of its sources anew it might be another one.
    fn substituted(&mut self, graph: &mut Graph, node: NodeId) -> Result<Option<Affine>> {
        let kernel = self.kernel;
        let Some(form) = kernel.sums.get(&node).filter(|form| **form != Affine::atom(node)) else { return Ok(None) };
        for atom in form.atoms() {
            self.visit_with_sources(graph, atom)?;
        }
        Ok(Some(form.substitute(|atom| self.sum(graph, atom))))
    }

    /// An atom may be a node that only the normal form has made.
    fn visit_with_sources(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        if self.done[node.index()] {
            return Ok(());
        }
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        for source in sources {
            self.visit_with_sources(graph, source)?;
        }
        self.visit(graph, node)
    }

    fn sources(&mut self, graph: &mut Graph, node: NodeId) -> Result<SmallVec<[NodeId; 4]>> {
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        for source in &mut sources {
            *source = self.value(graph, *source)?;
        }
        Ok(sources)
    }

    /// The new node of an old value.
    fn value(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        if let Some(new) = self.new[node.index()] {
            return Ok(new);
        }
        let new = match &self.sums[node.index()] {
            Some(sum) => sum.clone().emit(graph)?,
            None => node,
        };
        self.new[node.index()] = Some(new);
        Ok(new)
    }

    fn sum(&self, graph: &Graph, node: NodeId) -> Affine {
        match (&self.sums[node.index()], self.new[node.index()]) {
            (Some(sum), _) => sum.clone(),
            (None, new) => Affine::leaf(graph, new.unwrap_or(node)),
        }
    }

    fn vanishing(&self, graph: &Graph, op: Op, node: NodeId) -> RangeSet {
        let of = |source: &NodeId| self.vanishes[source.index()];
        let sources = graph.sources(node);
        match op {
            Op::Cast => of(&sources[0]),
            // 0 times an unknown float may be nan.
            Op::Mul if !graph.dtype(node).is_float() => of(&sources[0]) | of(&sources[1]),
            Op::Add | Op::Mul => of(&sources[0]) & of(&sources[1]),
            Op::Where => of(&sources[1]) & of(&sources[2]),
            _ => 0,
        }
    }

    /// All of the padded ranges in `set` are within their bounds; `axes` may be others than the schedule's.
    fn valid(&self, graph: &mut Graph, set: RangeSet, axes: &[Option<NodeId>]) -> Result<Option<NodeId>> {
        let mut valid = None;
        for (position, origin) in self.space.origins.iter().enumerate() {
            if self.kernel.live.bit(origin.range) & set & self.padded != 0
                && let Some(trips) = origin.trips
            {
                let inside = less(graph, &self.place(position, trips, axes), &Affine::number(trips))?;
                valid = both(graph, valid, Some(inside))?;
            }
        }
        Ok(valid)
    }

    fn load(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        let Some(&access) = self.accesses.get(&node) else { return Ok(()) };
        let old: SmallVec<[NodeId; 3]> = graph.sources(node).into();
        let buffer = access.buffer;
        let index = self.sum(graph, graph.source(old[0], 1));
        let dtype = graph.dtype(node);
        if old.len() < 2 || graph.as_const(old[1]).is_some_and(|alt| alt.bits == 0) {
            self.vanishes[node.index()] = access.open & self.padded;
        }
        let alt = match old.get(1) {
            Some(&alt) => self.value(graph, alt)?,
            None => identity(graph, Op::Add, dtype),
        };
        let gate = match old.get(2) {
            Some(&gate) => Some(self.value(graph, gate)?),
            None => None,
        };
        let packing = slot(graph, buffer).and_then(|slot| self.space.packing(slot));
        if let Some(packing) = packing {
            // Converted while it is copied: once an element, not once a use.
            let cast = self.kernel.widened(graph, node);
            let form = cast.map_or(Form::Same, Form::Cast);
            if let Some(new) = self.stage(graph, access, &index, (alt, old.get(2).copied()), form, packing)? {
                self.new[node.index()] = Some(new);
                let gate = gate.filter(|_| graph.dtype(new) == graph.dtype(alt));
                self.masked.extend(gate.map(|gate| (new, (gate, alt))));
                if let Some(cast) = cast {
                    self.new[cast.index()] = Some(new);
                    self.vanishes[cast.index()] = self.vanishes[node.index()];
                    self.done[cast.index()] = true;
                }
                return Ok(());
            }
        }
        let axes = std::mem::take(&mut self.axes);
        let valid = self.valid(graph, access.open, &axes)?;
        self.axes = axes;
        let gate = both(graph, gate, valid)?;
        self.new[node.index()] = Some(gated_load(graph, buffer, &index, alt, gate)?);
        Ok(())
    }

    fn store(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        let Some(&access) = self.accesses.get(&node) else { return Ok(()) };
        let old: SmallVec<[NodeId; 3]> = graph.sources(node).into();
        let index = self.sum(graph, graph.source(old[0], 1)).emit(graph)?;
        let place = graph.add(Op::Index, &[access.buffer, index], Arg::None)?;
        let value = self.value(graph, old[1])?;
        let gate = match old.get(2) {
            Some(&gate) => Some(self.value(graph, gate)?),
            None => None,
        };
        let axes = std::mem::take(&mut self.axes);
        let valid = self.valid(graph, access.open, &axes)?;
        self.axes = axes;
        let bypasses = self.space.nontemporal && !self.kernel.loads_from(access.buffer);
        let arg = if bypasses { Arg::Nontemporal } else { graph.arg(node).clone() };
        let new = match both(graph, gate, valid)? {
            Some(gate) if graph.as_int(gate) == Some(0) => graph.add(Op::Group, &[], Arg::None)?,
            Some(gate) if graph.as_int(gate).is_none() => graph.add(Op::Store, &[place, value, gate], arg)?,
            _ => graph.add(Op::Store, &[place, value], arg)?,
        };
        self.new[node.index()] = Some(new);
        Ok(())
    }

    fn reduce(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        let old: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(()) };
        let mut value = self.value(graph, old[0])?;
        let set = old[1..].iter().fold(0, |set, &range| set | self.kernel.live.bit(range));
        let origins: SmallVec<[usize; 4]> = old[1..].iter().filter_map(|&range| self.space.origin(range)).collect();
        if origins.iter().any(|&origin| self.space.origins[origin].trips == Some(0)) {
            self.new[node.index()] = Some(identity(graph, op, graph.dtype(node)));
            return Ok(());
        }
        let loops = self.loops_over(&origins);
        let padded = set & self.padded;
        if padded & !(if op == Op::Add { self.vanishes[old[0].index()] } else { 0 }) != 0 {
            let axes = std::mem::take(&mut self.axes);
            let valid = self.valid(graph, padded, &axes)?;
            self.axes = axes;
            if let Some(valid) = valid {
                let identity = identity(graph, op, graph.dtype(value));
                value = fold::elementwise(graph, Op::Where, &[valid, value, identity], Arg::None)?;
            }
        }
        if self.kernel.without_nans.contains(&node) {
            value = nans::dropped(graph, value, self.target)?;
        }
        let arg = graph.arg(node).clone();
        let sum = reduced(graph, value, &loops, arg.clone())?;
        let sum = match self.excess {
            Some(excess) => {
                let excess = reduced(graph, excess, &loops, arg)?;
                arithmetic::sub(graph, sum, excess)?
            }
            None => sum,
        };
        self.new[node.index()] = Some(sum);
        Ok(())
    }

    fn sink(&mut self, graph: &mut Graph) -> Result<NodeId> {
        let mut effects: SmallVec<[NodeId; 4]> = SmallVec::new();
        for nest in &self.kernel.nests {
            let origins: SmallVec<[usize; 4]> =
                nest.ranges.iter().filter_map(|&range| self.space.origin(range)).collect();
            if origins.iter().any(|&origin| self.space.origins[origin].trips == Some(0)) {
                continue;
            }
            let effect = self.value(graph, nest.body)?;
            let loops = self.loops_over(&origins);
            effects.push(closed(graph, effect, &loops)?);
        }
        graph.add(Op::Sink, &effects, Arg::None)
    }

    /// The Ranges of the axes of some original ranges, in the order of the schedule.
    fn loops_over(&self, origins: &[usize]) -> Vec<NodeId> {
        let axes = self.space.axes.iter().zip(&self.axes);
        axes.filter(|(axis, _)| origins.contains(&axis.origin)).filter_map(|(_, &range)| range).collect()
    }
}

/// Reduces a value over these loops. Without loops it is the only term, and the result.
fn reduced(graph: &mut Graph, value: NodeId, loops: &[NodeId], arg: Arg) -> Result<NodeId> {
    if loops.is_empty() {
        return Ok(value);
    }
    let sources: SmallVec<[NodeId; 4]> = std::iter::once(value).chain(loops.iter().copied()).collect();
    graph.add(Op::Reduce, &sources, arg)
}

/// A load that leaves memory alone where `gate` is false.
fn gated_load(graph: &mut Graph, buffer: NodeId, index: &Affine, alt: NodeId, gate: Option<NodeId>) -> Result<NodeId> {
    let arg = Arg::Load { device: None, addrspace: AddrSpace::Reg };
    let index = index.emit(graph)?;
    let place = graph.add(Op::Index, &[buffer, index], Arg::None)?;
    match gate {
        Some(gate) if graph.as_int(gate) == Some(0) => Ok(alt),
        Some(gate) if graph.as_int(gate).is_none() => graph.add(Op::Load, &[place, alt, gate], arg),
        _ => graph.add(Op::Load, &[place], arg),
    }
}
