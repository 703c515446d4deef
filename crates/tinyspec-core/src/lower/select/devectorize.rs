//! Cuts tiles into machine vectors, lowers index arithmetic to machine integers, and selects contiguous, gathered or
//! scalar accesses by the coefficient of the lane axis in their index.

mod access;
mod address;
mod gate;
mod interleave;
mod reduce;
mod shift;
pub(crate) mod stride;
mod transpose;
mod words;

use self::stride::MAX_STRIDE;
use super::tile::{Dims, Layout, Parts};
use crate::lower::fold;
use crate::lower::loops::grouped;
use address::unify_integers;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::dim::{shape, static_shape};
use tinyspec_ir::instructions::lanes;
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

/// The approximate number of machine nodes per part of a tile: its value and its address.
const EACH: usize = 2;
/// The most parts to reserve memory for.
const MOST: usize = 1 << 14;

pub(in super::super) fn devectorize(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let mut cut = Cut::new(graph, &order, target)?;
    graph.reserve(EACH * cut.parts_of(graph, &order));
    for &node in &order {
        let new = cut.node(graph, node)?;
        cut.new[node.index()] = new;
    }
    match &cut.new[sink.index()] {
        Some(New::Effects(effects)) if effects.len() == 1 => Ok(effects[0]),
        _ => Err(malformed(graph, sink)),
    }
}

/// How tiles of these sizes are cut.
pub(super) fn layouts<'a>(
    graph: &mut Graph,
    order: &[NodeId],
    target: &Target,
    tiles: impl Iterator<Item = &'a Dims>,
) -> Result<Vec<Layout>> {
    let cut = Cut::new(graph, order, target)?;
    Ok(tiles.map(|dims| cut.layout(dims.clone())).collect())
}

/// The lowered form of a node.
#[derive(Clone, Debug)]
enum New {
    /// A value, in parts.
    Value(Parts),
    /// Effects: one per part of a Store, or one for all parts.
    Effects(Vec<NodeId>),
    /// The loop variable.
    Range(NodeId),
}

struct Cut {
    /// Normal forms of index arithmetic, over tile axes and other atoms.
    sums: FxHashMap<NodeId, Affine>,
    /// Sums of machine integers that exist already, by their terms.
    offsets: FxHashMap<Affine, NodeId>,
    /// Tile axes: the node that counts along one.
    axes: FxHashMap<NodeId, usize>,
    /// Which tile axes may be vectorised.
    lanes: SmallVec<[bool; 4]>,
    greatest: i64,
    /// Whether the target has masked accesses.
    masked: bool,
    /// The number of independent chains in which a sum is added up.
    chains: usize,
    new: Vec<Option<New>>,
    next_register: u32,
}

fn malformed(graph: &Graph, node: NodeId) -> Error {
    Error::new(ErrorKind::Verify, graph.op(node).name(), "is not in the form that instruction selection takes")
}

fn dims(graph: &Graph, node: NodeId) -> Result<Dims> {
    static_shape(&graph.props(node).shape).ok_or_else(|| malformed(graph, node))
}

impl Cut {
    /// Chooses the vectorised axes; nothing has been cut yet.
    fn new(graph: &mut Graph, order: &[NodeId], target: &Target) -> Result<Cut> {
        let mut cut = Cut {
            sums: FxHashMap::default(),
            offsets: FxHashMap::default(),
            axes: FxHashMap::default(),
            lanes: SmallVec::new(),
            greatest: 1,
            chains: target.accumulators,
            masked: target.masked_access,
            new: vec![None; graph.len()],
            next_register: 0,
        };
        let dtypes = order.iter().filter(|&&node| matches!(graph.op(node), Op::Load | Op::Store));
        let dtypes = dtypes.map(|&node| graph.dtype(graph.source(node, 0)));
        cut.greatest = crate::lower::lanes(target, dtypes) as i64;
        for &node in order {
            cut.index_sum(graph, node)?;
        }
        cut.choose_lanes(graph, order);
        Ok(cut)
    }

    fn sum(&self, node: NodeId) -> Affine {
        self.sums.get(&node).cloned().unwrap_or_else(|| Affine::atom(node))
    }

    /// Vectorises axes along which some access is contiguous, or along which some access is interleaved and none needs
    /// a gather.
    fn choose_lanes(&mut self, graph: &Graph, order: &[NodeId]) {
        let rank = order.iter().map(|&node| graph.props(node).rank()).max().unwrap_or(0);
        let none = || SmallVec::<[bool; 4]>::from_elem(false, rank);
        let (mut contiguous, mut interleaved, mut strided) = (none(), none(), none());
        for &node in order {
            if let Some(word) = self.word(graph, node) {
                let dims = static_shape(&graph.props(node).shape).unwrap_or_default();
                (0..dims.len().min(rank))
                    .for_each(|axis| contiguous[axis] |= self.step(word.index(), axis) == word.count());
            }
            let (Op::Index, [_, index]) = (graph.op(node), graph.sources(node)) else { continue };
            let sum = self.sum(*index);
            let Some(dims) = static_shape(&graph.props(*index).shape) else { continue };
            for axis in 0..dims.len().min(rank) {
                let layout = || Layout { dims: dims.clone(), lane: Some(axis), width: self.greatest };
                match self.step(&sum, axis) {
                    0 => {}
                    1 => contiguous[axis] = true,
                    _ if dims[axis] % self.greatest != 0 => {}
                    _ if self.interleaves(&sum, &layout()).is_some() => interleaved[axis] = true,
                    step => strided[axis] |= step.abs() > MAX_STRIDE,
                }
            }
        }
        self.lanes = contiguous;
        for axis in 0..rank {
            self.lanes[axis] |= interleaved[axis] && !strided[axis];
        }
        // Prefers the axes of a tile with longer vectors.
        for &node in order {
            let Some(dims) = static_shape(&graph.props(node).shape) else { continue };
            let width = |axis: usize| (dims[axis] & dims[axis].wrapping_neg()).min(self.greatest);
            let lanes = |axis: &usize| dims[*axis] > 1 && self.lanes.get(*axis) == Some(&true);
            let Some(widest) = (0..dims.len()).filter(lanes).map(width).max() else { continue };
            let narrow: SmallVec<[usize; 4]> =
                (0..dims.len()).filter(lanes).filter(|&axis| width(axis) < widest).collect();
            narrow.into_iter().for_each(|axis| self.lanes[axis] = false);
        }
        // A reduction without contiguous accesses is still vectorised.
        if !self.lanes.contains(&true)
            && let Some(last) = self.lanes.last_mut()
        {
            *last = true;
        }
    }

    /// The stride of an index along an axis of the tile.
    fn step(&self, sum: &Affine, axis: usize) -> i64 {
        let along = sum.terms().iter().filter(|(atom, _)| self.axes.get(atom) == Some(&axis));
        along.map(|&(_, coefficient)| coefficient).sum()
    }

    /// The total number of parts of all tiles.
    fn parts_of(&self, graph: &Graph, order: &[NodeId]) -> usize {
        // Memory is no tile.
        let values = order.iter().map(|&node| graph.props(node)).filter(|props| props.addrspace.is_none());
        let dims = values.filter_map(|props| static_shape(&props.shape));
        dims.map(|dims| self.layout(dims).count()).sum::<usize>().min(MOST)
    }

    fn layout(&self, dims: Dims) -> Layout {
        Layout::new(dims, &self.lanes, self.greatest)
    }

    fn node(&mut self, graph: &mut Graph, node: NodeId) -> Result<Option<New>> {
        let op = graph.op(node);
        if graph.dtype(node) == DType::Index && !matches!(op, Op::Range | Op::Special | Op::Param) {
            return match op {
                Op::Cast | Op::Idiv | Op::Mod | Op::Max | Op::Where | Op::Mul | Op::Shl | Op::Shr | Op::And
                    if self.sum(node) == Affine::atom(node) =>
                {
                    self.elementwise(graph, node).map(Some)
                }
                // Sums are computed where they are used.
                _ => Ok(None),
            };
        }
        Ok(Some(match op {
            Op::Const => New::Value(self.scalar(node)),
            Op::Range => New::Range(self.range(graph, node)?),
            Op::Special => New::Range(node),
            Op::Param if graph.dtype(node) == DType::Index => {
                let value = cast(graph, node, DType::I64)?;
                New::Value(self.scalar(value))
            }
            Op::Param => New::Value(self.scalar(node)),
            Op::Buffer => self.buffer(graph, node)?,
            Op::Index if graph.props(graph.source(node, 0)).addrspace.is_none() => self.permuted(graph, node)?,
            Op::Index | Op::Stack => return Ok(None),
            Op::After => self.after(graph, node)?,
            Op::Load => self.load(graph, node)?,
            Op::Store | Op::AtomicAdd => self.store(graph, node)?,
            Op::Reduce => self.reduce(graph, node)?,
            Op::Expand | Op::Reshape => self.broadcast(graph, node)?,
            Op::End => {
                let sources: SmallVec<[NodeId; 2]> = graph.sources(node).into();
                let body = self.effects(graph, sources[0])?;
                let body = grouped(graph, &body)?;
                let range = self.range_of(sources[1]);
                New::Effects(vec![graph.add(Op::End, &[body, range], Arg::None)?])
            }
            Op::Group | Op::Sink => {
                let mut effects = Vec::new();
                for source in SmallVec::<[NodeId; 4]>::from(graph.sources(node)) {
                    effects.extend(self.effects(graph, source)?);
                }
                match op {
                    Op::Group => New::Effects(effects),
                    _ => New::Effects(vec![graph.add(op, &effects, Arg::None)?]),
                }
            }
            Op::Barrier => {
                let mut waits = Vec::new();
                for source in SmallVec::<[NodeId; 4]>::from(graph.sources(node)) {
                    waits.extend(self.waits(graph, source)?);
                }
                New::Effects(vec![graph.add(op, &waits, Arg::None)?])
            }
            Op::Or if let Some(words) = self.words(graph, node)? => words,
            _ if op.is_elementwise() || matches!(op, Op::Bitcast | Op::Ins) => self.elementwise(graph, node)?,
            _ => return Err(malformed(graph, node)),
        }))
    }

    /// A loop bound that depends on other loops or named dims becomes a machine integer.
    fn range(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let bound = graph.source(node, 0);
        let &Arg::Range { id, axis } = graph.arg(node) else { return Err(malformed(graph, node)) };
        if graph.as_int(bound).is_some() {
            return Ok(node);
        }
        let layout = self.layout(Dims::new());
        let trips = self.part(graph, bound, &layout, &[])?;
        let trips = graph.add(Op::Cast, &[trips], Arg::DType(DType::Index))?;
        graph.range(trips, id, axis)
    }

    /// The replacement of an old Range.
    fn range_of(&self, node: NodeId) -> NodeId {
        match self.new.get(node.index()) {
            Some(Some(New::Range(range))) => *range,
            _ => node,
        }
    }

    fn scalar(&self, node: NodeId) -> Parts {
        Parts { layout: self.layout(Dims::new()), parts: vec![node] }
    }

    fn effects(&self, graph: &Graph, node: NodeId) -> Result<Vec<NodeId>> {
        match &self.new[node.index()] {
            Some(New::Effects(effects)) => Ok(effects.clone()),
            _ => Err(malformed(graph, node)),
        }
    }

    /// The nodes to wait for in place of an old node.
    fn waits(&self, graph: &Graph, node: NodeId) -> Result<Vec<NodeId>> {
        match &self.new[node.index()] {
            Some(New::Effects(effects)) => Ok(effects.clone()),
            Some(New::Range(range)) => Ok(vec![*range]),
            // A value that must have been loaded before.
            Some(New::Value(value)) => Ok(value.parts.clone()),
            None => Err(malformed(graph, node)),
        }
    }

    fn parts(&self, graph: &Graph, node: NodeId) -> Result<&Parts> {
        match &self.new[node.index()] {
            Some(New::Value(parts)) => Ok(parts),
            _ => Err(malformed(graph, node)),
        }
    }

    /// A buffer in memory: one part.
    fn memory(&self, graph: &Graph, buffer: NodeId) -> Result<NodeId> {
        self.parts(graph, buffer)?.parts.first().copied().ok_or_else(|| malformed(graph, buffer))
    }

    /// A REG Buffer becomes one register per part; memory stays whole.
    fn buffer(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let Arg::Buffer { dtype, addrspace: AddrSpace::Reg, .. } = *graph.arg(node) else {
            return Ok(New::Value(self.scalar(node)));
        };
        let layout = self.layout(dims(graph, node)?);
        let dims = if layout.lane.is_some() { shape(&[layout.width]) } else { shape(&[]) };
        let dims = graph.shape(&dims)?;
        let mut parts = Vec::with_capacity(layout.count());
        for _ in 0..layout.count() {
            let slot = self.next_register;
            self.next_register += 1;
            let arg = Arg::Buffer { slot, dtype, device: None, addrspace: AddrSpace::Reg };
            parts.push(graph.add(Op::Buffer, &[dims], arg)?);
        }
        Ok(New::Value(Parts { layout, parts }))
    }

    fn after(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        let mut value = self.parts(graph, sources[0])?.clone();
        let mut after: Vec<SmallVec<[NodeId; 4]>> =
            value.parts.iter().map(|&part| SmallVec::from_iter([part])).collect();
        for &dependency in &sources[1..] {
            let effects = self.waits(graph, dependency)?;
            for (part, after) in after.iter_mut().enumerate() {
                // A part of a register tile waits for its own Store only.
                match effects.get(part) {
                    Some(&effect) if effects.len() == value.parts.len() => after.push(effect),
                    _ => after.extend(effects.iter().copied()),
                }
            }
        }
        for (part, sources) in value.parts.iter_mut().zip(&after) {
            *part = graph.add(Op::After, sources, Arg::None)?;
        }
        Ok(New::Value(value))
    }

    /// The machine value of `node` for the part of `layout` that starts at `at`: a vector, or a scalar if it is
    /// uniform.
    fn part(&mut self, graph: &mut Graph, node: NodeId, layout: &Layout, at: &[i64]) -> Result<NodeId> {
        if graph.dtype(node) == DType::Index && !self.has_parts(node) {
            return self.index_part(graph, node, layout, at);
        }
        let value = self.parts(graph, node)?;
        let (part, lane) = value.layout.find(at).ok_or_else(|| malformed(graph, node))?;
        let found = *value.parts.get(part).ok_or_else(|| malformed(graph, node))?;
        let same_axis = value.layout.lane == layout.lane;
        if value.layout.lane.is_none() || same_axis || graph.props(found).shape.is_empty() {
            return Ok(found);
        }
        extract(graph, found, lane)
    }

    fn has_parts(&self, node: NodeId) -> bool {
        matches!(self.new.get(node.index()), Some(Some(New::Value(_))))
    }

    /// Whether the value is the same for the whole tile.
    fn is_uniform(&self, node: NodeId) -> bool {
        match self.new.get(node.index()) {
            Some(Some(New::Value(value))) => value.layout.dims.iter().all(|&size| size == 1),
            _ => true,
        }
    }

    fn elementwise(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let (op, arg) = (graph.op(node), machine_arg(graph.arg(node)));
        let layout = self.layout(dims(graph, node)?);
        let sources: SmallVec<[NodeId; 3]> = graph.sources(node).into();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let mut operands: SmallVec<[NodeId; 3]> = SmallVec::new();
            for &source in &sources {
                operands.push(self.part(graph, source, &layout, &at)?);
            }
            unify_integers(graph, op, &mut operands)?;
            let width = operands.iter().map(|&operand| lanes(graph, operand)).max().unwrap_or(1);
            for operand in &mut operands {
                *operand = splat(graph, *operand, width)?;
            }
            let chained = match (&sources[..], &operands[..]) {
                (&[_, sum], &[before, chain]) if graph.op(sum) == Op::Reduce => {
                    reduce::continued(graph, before, chain)?
                }
                _ => None,
            };
            parts.push(match chained {
                Some(chained) if op == Op::Add => chained,
                _ => fold::elementwise(graph, op, &operands, arg.clone())?,
            });
        }
        Ok(New::Value(Parts { layout, parts }))
    }

    /// A tile with elements permuted along some axes: lanes are shuffled within a vector, or gathered from several.
    fn permuted(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let (from, to) = (graph.source(node, 0), self.layout(dims(graph, node)?));
        let mut places: SmallVec<[Dims; 4]> = SmallVec::new();
        for &index in &graph.sources(node)[1..] {
            let numbers = graph.props(index).value.as_deref().and_then(static_shape);
            places.push(numbers.ok_or_else(|| malformed(graph, node))?);
        }
        let value = self.parts(graph, from)?.clone();
        let mut parts = Vec::with_capacity(to.count());
        for at in to.starts() {
            let mut lanes: SmallVec<[(NodeId, i64); 16]> = SmallVec::new();
            for lane in 0..to.width {
                let mut at = at.clone();
                if let Some(axis) = to.lane {
                    at[axis] += lane;
                }
                for (place, numbers) in at.iter_mut().zip(&places) {
                    *place = *numbers.get(*place as usize).ok_or_else(|| malformed(graph, node))?;
                }
                let (part, lane) = value.layout.find(&at).ok_or_else(|| malformed(graph, node))?;
                lanes.push((*value.parts.get(part).ok_or_else(|| malformed(graph, node))?, lane));
            }
            parts.push(gathered(graph, &lanes)?);
        }
        Ok(New::Value(Parts { layout: to, parts }))
    }

    fn broadcast(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let layout = self.layout(dims(graph, node)?);
        let source = graph.source(node, 0);
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            parts.push(self.part(graph, source, &layout, &at)?);
        }
        Ok(New::Value(Parts { layout, parts }))
    }
}

/// The same node for casts to `index`, which has become i64.
fn machine_arg(arg: &Arg) -> Arg {
    match arg {
        Arg::DType(DType::Index) => Arg::DType(DType::I64),
        other => other.clone(),
    }
}

fn splat(graph: &mut Graph, value: NodeId, width: i64) -> Result<NodeId> {
    if width == 1 || !graph.props(value).shape.is_empty() {
        return Ok(value);
    }
    let dims = graph.shape(&shape(&[width]))?;
    graph.add(Op::Expand, &[value, dims], Arg::None)
}

fn extract(graph: &mut Graph, value: NodeId, lane: i64) -> Result<NodeId> {
    if graph.props(value).shape.is_empty() {
        return Ok(value);
    }
    let lane = graph.index(lane);
    graph.add(Op::Index, &[value, lane], Arg::None)
}

/// A vector of lanes from other vectors.
fn gathered(graph: &mut Graph, lanes: &[(NodeId, i64)]) -> Result<NodeId> {
    let Some(&(first, lane)) = lanes.first() else {
        return Err(Error::new(ErrorKind::Verify, Op::Index.name(), "a vector without lanes"));
    };
    let is_scalar = graph.props(first).shape.is_empty();
    if lanes.iter().all(|&(vector, _)| vector == first) {
        match lanes {
            _ if is_scalar => return Ok(first),
            [_] => return extract(graph, first, lane),
            _ => {
                let order: Dims = lanes.iter().map(|&(_, lane)| lane).collect();
                let order = graph.shape(&shape(&order))?;
                return graph.add(Op::Index, &[first, order], Arg::None);
            }
        }
    }
    if let Some(vectors) = few_vectors(graph, lanes) {
        return of_several(graph, &vectors, lanes);
    }
    let mut elements: SmallVec<[NodeId; 16]> = SmallVec::new();
    for &(vector, lane) in lanes {
        elements.push(extract(graph, vector, lane)?);
    }
    graph.add(Op::Stack, &elements, Arg::None)
}

/// The source vectors of these lanes, if there are more than two but at most half as many as lanes.
fn few_vectors(graph: &Graph, lanes: &[(NodeId, i64)]) -> Option<SmallVec<[NodeId; 8]>> {
    let mut vectors: SmallVec<[NodeId; 8]> = SmallVec::new();
    for &(vector, _) in lanes {
        if !vectors.contains(&vector) {
            vectors.push(vector);
        }
    }
    let is_whole = |&vector: &NodeId| self::lanes(graph, vector) == lanes.len() as i64;
    (vectors.len() > 2 && vectors.len() * 2 <= lanes.len() && vectors.iter().all(is_whole)).then_some(vectors)
}

/// Picks lanes of several vectors. A shuffle has two operands, so each vector beyond the second takes another shuffle.
fn of_several(graph: &mut Graph, vectors: &[NodeId], lanes: &[(NodeId, i64)]) -> Result<NodeId> {
    let mut all = vectors[0];
    for &next in &vectors[1..] {
        let is_first = all == vectors[0];
        let picked =
            (0..).zip(lanes).map(|(lane, &(vector, from))| match vector == next || is_first && vector == all {
                true => (vector, from),
                // Already in place, or filled in by a later shuffle.
                false => (all, lane),
            });
        let picked: SmallVec<[(NodeId, i64); 16]> = picked.collect();
        all = gathered(graph, &picked)?;
    }
    Ok(all)
}

fn cast(graph: &mut Graph, value: NodeId, dtype: DType) -> Result<NodeId> {
    if graph.dtype(value) == dtype {
        return Ok(value);
    }
    if let Some(number) = graph.as_int(value) {
        return Ok(graph.constant(Const::int(dtype, number)));
    }
    graph.add(Op::Cast, &[value], Arg::DType(dtype))
}
