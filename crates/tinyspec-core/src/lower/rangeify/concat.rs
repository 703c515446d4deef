//! Concatenation in place: each part is computed by a kernel of its own, which writes directly into the buffer of the result, the *whole*. A
//! single kernel would have to select the source of each element among all parts. This applies to stacks, to tensors of any lengths that
//! Pads place next to each other ([`cat`]), and to what a loop fills part by part ([`set`]). A part of a stack is one tensor, or a stack of
//! several if each is too small for a kernel of its own.
//!
//! [`cat`]: tinyspec_ir::ops::movement::cat
//! [`set`]: tinyspec_ir::ops::slice::set

use super::movement::{elements, shape};
use super::split_reduce::replaced;
use super::walk::{Walk, held_in, is_leaf, named};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::masks::repeated;
use tinyspec_ir::ops::movement;
use tinyspec_ir::{Arg, Builder, Const, DType, Dim, Graph, NodeId, Op, Result, Shape};

/// The number of small tensors that form one part of a stack.
const MANY: usize = 16;
/// From this number of parts on, a concatenation is stored even if its reader could compute it.
const SEVERAL: usize = 8;
/// The least number of elements of a part that justifies a kernel of its own.
const LARGE: i64 = 64;
/// The same for a concatenation of fewer parts that is stored in any case.
const LARGE_OF_FEW: i64 = 1024;
/// The least number of elements of a row that justifies a loop of its own.
const LONG: i64 = 32;
/// Alignment of buffers and of the memory passed for each part, in bytes.
const ALIGNMENT: usize = 64;

/// A part of a whole.
#[derive(Clone, Copy)]
struct Part {
    node: NodeId,
    place: Region,
}

/// Where a part lies in the whole, in elements. The memory passed to its kernel starts at an aligned element.
#[derive(Clone, Copy)]
pub(super) struct Region {
    first: i64,
    /// Distance of `first` from the start of the memory passed.
    offset: i64,
    /// Length of a contiguous row.
    row: i64,
    /// Distance between the starts of consecutive rows.
    stride: i64,
    rows: i64,
}

impl Region {
    fn of(first: i64, row: i64, stride: i64, rows: i64, dtype: DType) -> Region {
        Region { first, offset: first % (ALIGNMENT / dtype.size().max(1)) as i64, row, stride, rows }
    }

    /// The element of the whole at which its memory begins.
    pub fn start(&self) -> i64 {
        self.first - self.offset
    }

    /// The length of its memory.
    pub fn length(&self) -> i64 {
        self.offset + (self.rows - 1) * self.stride + self.row
    }

    fn is_contiguous(&self) -> bool {
        self.rows == 1
    }
}

/// Gives each concatenation views of its own of its parts. Returns the new graph and its outputs, or `None` if nothing changed.
///
/// # Errors
/// None for graphs that are verified.
pub fn parted(graph: &Graph, outputs: &[NodeId]) -> Result<Option<(Graph, Vec<NodeId>)>> {
    let live = graph.reachable_outside_bodies(outputs);
    let results: Vec<NodeId> = outputs.iter().map(|&output| held_in(graph, output)).collect();
    let reads = Reads::of(graph, &live, &results);
    let mut joined: FxHashMap<NodeId, Vec<Piece>> = FxHashMap::default();
    // Tensors of one size, and how many form a part.
    let mut stacked: FxHashMap<NodeId, (Vec<NodeId>, usize)> = FxHashMap::default();
    // Intermediate results of a chain of windows.
    let mut inner: FxHashSet<NodeId> = FxHashSet::default();
    for &node in live.iter().rev() {
        let kind = reads.kind(node);
        if graph.op(node) == Op::Stack {
            let count = tensors_of_part(graph, graph.sources(node), kind);
            stacked.extend(count.map(|count| (node, (graph.sources(node).to_vec(), count))));
            continue;
        }
        let Some((_, rest)) = window(graph, node) else { continue };
        inner.insert(rest);
        if inner.contains(&node) {
            continue;
        }
        let Some(pieces) = pieces(graph, node) else { continue };
        let parts: Vec<Part> = pieces.iter().map(|piece| Part { node: piece.source, place: piece.place }).collect();
        if are_worth_it(graph, &parts, kind) {
            joined.insert(node, pieces);
        } else if are_rows(graph, node, &pieces) {
            let rows: Vec<NodeId> = pieces.iter().map(|piece| piece.source).collect();
            let count = tensors_of_part(graph, &rows, kind);
            stacked.extend(count.map(|count| (node, (rows, count))));
        }
    }
    if joined.is_empty() && stacked.is_empty() {
        return Ok(None);
    }
    let replace = |result: &mut Graph, node: NodeId, new: &[NodeId]| {
        if let Some(pieces) = joined.get(&node) {
            return join(graph, result, node, pieces, new).map(Some);
        }
        let Some((sources, count)) = stacked.get(&node) else { return Ok(None) };
        let sources: Vec<NodeId> = sources.iter().map(|source| new[source.index()]).collect();
        stack(result, &sources, *count, &graph.props(node).shape).map(Some)
    };
    replaced(graph, outputs, &live, replace).map(Some)
}

/// A tensor of this shape, stacked of parts of `count` tensors each.
fn stack(graph: &mut Graph, tensors: &[NodeId], count: usize, shape: &Shape) -> Result<NodeId> {
    let one = graph.shape(&shape[1..])?;
    let mut parts = Vec::with_capacity(tensors.len().div_ceil(count));
    for tensors in tensors.chunks(count) {
        let mut part = Vec::with_capacity(count);
        for &tensor in tensors {
            part.push(graph.add(Op::Reshape, &[tensor, one], Arg::None)?);
        }
        let part = if count == 1 { part[0] } else { group(graph, &part, count)? };
        parts.push(view(graph, part)?);
    }
    let stacked = graph.alu(Op::Stack, &parts)?;
    let mut dims = shape.clone();
    dims[0] = Dim::from((parts.len() * count) as i64);
    let all = graph.shape(&dims)?;
    let all = graph.add(Op::Reshape, &[stacked, all], Arg::None)?;
    if dims == *shape {
        return Ok(all);
    }
    let offsets = graph.shape(&Shape::from_elem(Dim::from(0), dims.len()))?;
    let dims = graph.shape(shape)?;
    graph.add(Op::Shrink, &[all, offsets, dims], Arg::None)
}

/// A view of a tensor that only its concatenation uses.
fn view(graph: &mut Graph, tensor: NodeId) -> Result<NodeId> {
    let mut dims: Shape = graph.props(tensor).shape.clone();
    dims.insert(0, Dim::from(1));
    let dims = graph.shape(&dims)?;
    graph.add(Op::Reshape, &[tensor, dims], Arg::None)
}

/// A stack of `count` tensors, padded with repetitions of the last one.
fn group(graph: &mut Graph, tensors: &[NodeId], count: usize) -> Result<NodeId> {
    let last = tensors.last().into_iter().cycle();
    let tensors: Vec<NodeId> = tensors.iter().chain(last).take(count).copied().collect();
    graph.alu(Op::Stack, &tensors)
}

/// The number of tensors in each part of a stack; `None` if the stack is not divided.
fn tensors_of_part(graph: &Graph, sources: &[NodeId], read: Read) -> Option<usize> {
    let first = *sources.first()?;
    // Many small parts are grouped instead.
    let is_large = sources.len() < 2 * MANY
        || is_aligned(graph, first)
        || count(graph, first).is_some_and(|count| count >= LARGE_OF_FEW);
    if is_large && are_worth_it(graph, &stacked(graph, sources)?, read) {
        return Some(1);
    }
    let is_computed = graph.dtype(first) != DType::Index && sources.iter().any(|&source| graph.op(source) != Op::Const);
    let bytes = bytes(graph, first).filter(|_| is_computed)?;
    let count = (MANY..=MANY * ALIGNMENT).step_by(MANY).find(|count| (count * bytes).is_multiple_of(ALIGNMENT))?;
    (sources.len() >= 2 * count).then_some(count)
}

/// The parts of a stack of these tensors.
fn stacked(graph: &Graph, sources: &[NodeId]) -> Option<Vec<Part>> {
    let first = *sources.first()?;
    let length = count(graph, first)?;
    let place = |number: i64| Region::of(number * length, length, length, 1, graph.dtype(first));
    Some((0..).zip(sources).map(|(number, &node)| Part { node, place: place(number) }).collect())
}

/// Whether the pieces are single positions of the first axis of `whole`.
fn are_rows(graph: &Graph, whole: NodeId, pieces: &[Piece]) -> bool {
    let inner = &graph.props(whole).shape[1..];
    let is_row = |shape: &Shape| shape[0].is(1) && shape[1..] == *inner;
    pieces.iter().all(|piece| is_row(&graph.props(piece.source).shape))
}

/// Whether all parts of a stack are stacks of many tensors themselves.
fn has_groups(graph: &Graph, node: NodeId) -> bool {
    let is_group = |&source: &NodeId| {
        let below = (graph.op(source) == Op::Reshape).then(|| graph.source(source, 0));
        below.is_some_and(|below| graph.op(below) == Op::Stack && graph.sources(below).len() >= MANY)
    };
    let sources = graph.sources(node);
    let is_aligned = sources.first().is_some_and(|&source| is_aligned(graph, source));
    graph.op(node) == Op::Stack && is_aligned && sources.iter().all(is_group)
}

/// An operand of a `cat`, or the value of a `set`.
struct Piece {
    /// The Pad of the tensor, or its Where.
    node: NodeId,
    pad: NodeId,
    source: NodeId,
    place: Region,
}

/// The operands of a [`cat`], or the values that calls of [`set`] have written over a whole tensor, ordered by position.
///
/// [`cat`]: tinyspec_ir::ops::movement::cat
/// [`set`]: tinyspec_ir::ops::slice::set
fn pieces(graph: &Graph, whole: NodeId) -> Option<Vec<Piece>> {
    window(graph, whole)?;
    let dims = static_shape(&graph.props(whole).shape)?;
    let mut along: Option<usize> = None;
    // Keyed by their starts. The last one written is visited first.
    let mut pieces: BTreeMap<i64, (i64, Piece)> = BTreeMap::new();
    // An Or combines what overlaps: all other operands must be zero within its window.
    let (mut node, mut filled, mut has_or) = (whole, 0, false);
    loop {
        let (pad, rest) = match window(graph, node) {
            Some((pad, rest)) => (pad, Some(rest)),
            None => (node, None),
        };
        has_or |= graph.op(node) == Op::Or;
        if graph.op(pad) != Op::Pad || graph.props(pad).shape.len() != dims.len() {
            return None;
        }
        let source = graph.source(pad, 0);
        let sizes = static_shape(&graph.props(source).shape)?;
        let offset = static_shape(graph.props(graph.source(pad, 1)).value.as_deref()?)?;
        let axis = match along {
            Some(axis) => axis,
            None => *along.insert((0..dims.len()).find(|&axis| sizes[axis] != dims[axis])?),
        };
        let is_whole = |other: usize| other == axis || sizes[other] == dims[other] && offset[other] == 0;
        if !(0..dims.len()).all(is_whole) || sizes[axis] == 0 {
            return None;
        }
        let (start, end) = (offset[axis], offset[axis] + sizes[axis]);
        match pieces.range(..end).next_back() {
            Some((&from, &(to, _))) if from <= start && end <= to && !has_or => {}
            Some((_, &(to, _))) if to > start => return None,
            _ => {
                let (rows, inner): (i64, i64) = (dims[..axis].iter().product(), dims[axis + 1..].iter().product());
                let [first, row, stride] = [start, sizes[axis], dims[axis]].map(|length| length * inner);
                let place = Region::of(first, row, stride, rows, graph.dtype(whole));
                pieces.insert(start, (end, Piece { node, pad, source, place }));
                filled += sizes[axis];
            }
        }
        if filled == dims[axis] && (!has_or || rest.is_none()) {
            return Some(pieces.into_values().map(|(_, piece)| piece).collect());
        }
        node = rest?;
    }
}

/// If a node overlays another value with a Pad: the Pad and that value.
fn window(graph: &Graph, node: NodeId) -> Option<(NodeId, NodeId)> {
    match (graph.op(node), graph.sources(node)) {
        (Op::Where, &[mask, pad, rest]) if is_inside(graph, mask, pad) => Some((pad, rest)),
        (Op::Or, &[rest, pad]) if graph.op(pad) == Op::Pad => Some((pad, rest)),
        _ => None,
    }
}

/// Whether a mask is true where a Pad has the elements of its source.
fn is_inside(graph: &Graph, mask: NodeId, pad: NodeId) -> bool {
    if graph.op(mask) != Op::Pad || graph.op(pad) != Op::Pad {
        return false;
    }
    let inside = repeated(graph, graph.source(mask, 0));
    let is_true = matches!(graph.arg(inside), Arg::Const(value) if value.bits == 1);
    is_true && graph.sources(mask)[1..] == graph.sources(pad)[1..] && {
        let [inside, source] = [mask, pad].map(|node| &graph.props(graph.source(node, 0)).shape);
        inside == source
    }
}

/// Rebuilds a `cat` over views of its operands.
fn join(graph: &Graph, result: &mut Graph, whole: NodeId, pieces: &[Piece], new: &[NodeId]) -> Result<NodeId> {
    let mut joined: Option<NodeId> = None;
    for &Piece { node, pad, source, .. } in pieces {
        let part = view(result, new[source.index()])?;
        let dims = &graph.props(source).shape;
        let shape = result.shape(dims)?;
        let part = result.add(Op::Reshape, &[part, shape], Arg::None)?;
        let [offset, all] = [1, 2].map(|position| new[graph.source(pad, position).index()]);
        let padded = result.add(Op::Pad, &[part, offset, all], Arg::None)?;
        joined = Some(match (joined, graph.op(node)) {
            (None, _) => padded,
            (Some(joined), Op::Or) => result.alu(Op::Or, &[joined, padded])?,
            (Some(joined), _) => {
                let yes = result.constant(Const::int(DType::Bool, 1));
                let inside = movement::expand(result, yes, dims)?;
                let mask = result.add(Op::Pad, &[inside, offset, all], Arg::None)?;
                result.alu(Op::Where, &[mask, padded, joined])?
            }
        });
    }
    Ok(joined.unwrap_or(new[whole.index()]))
}

/// How a value is used.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    /// It is stored in any case.
    Stored,
    /// All of it is read.
    Whole,
    /// Some user may read only a part of it.
    Partly,
}

/// The values of a graph that are results, and those that are partly read.
struct Reads<'a> {
    results: &'a [NodeId],
    partly: FxHashSet<NodeId>,
}

impl Reads<'_> {
    fn of<'a>(graph: &Graph, live: &[NodeId], results: &'a [NodeId]) -> Reads<'a> {
        let mut partly = FxHashSet::default();
        for &node in live.iter().rev() {
            let op = graph.op(node);
            let narrows =
                matches!(op, Op::Shrink | Op::Index) || partly.contains(&node) && (op.is_view() || op.is_elementwise());
            if narrows {
                let count = if op.is_elementwise() { graph.sources(node).len() } else { 1 };
                partly.extend(&graph.sources(node)[..count]);
            }
        }
        Reads { results, partly }
    }

    fn kind(&self, node: NodeId) -> Read {
        match () {
            () if self.results.contains(&node) => Read::Stored,
            () if self.partly.contains(&node) => Read::Partly,
            () => Read::Whole,
        }
    }
}

/// Whether a kernel for each part costs less than one for all.
fn are_worth_it(graph: &Graph, parts: &[Part], read: Read) -> bool {
    let least = match read {
        Read::Stored | Read::Whole if parts.len() >= SEVERAL => LARGE,
        Read::Stored => LARGE_OF_FEW,
        _ => return false,
    };
    let nodes: Vec<NodeId> = parts.iter().map(|part| part.node).collect();
    let fits = |Part { node, place }: &Part| {
        count(graph, *node).is_some_and(|count| count >= least) && (place.is_contiguous() || place.row >= LONG)
    };
    parts.iter().all(fits) && are_different(graph, &nodes)
}

/// Whether all parts are distinct and none is a constant.
fn are_different(graph: &Graph, parts: &[NodeId]) -> bool {
    let different: FxHashSet<NodeId> = parts.iter().map(|&source| named(graph, source).0).collect();
    different.len() == parts.len() && different.iter().all(|&source| graph.op(source) != Op::Const)
}

/// The number of elements of a tensor.
fn count(graph: &Graph, node: NodeId) -> Option<i64> {
    static_shape(&graph.props(node).shape).map(|dims| dims.iter().product())
}

fn bytes(graph: &Graph, node: NodeId) -> Option<usize> {
    usize::try_from(count(graph, node)?).ok()?.checked_mul(graph.dtype(node).size()).filter(|&bytes| bytes > 0)
}

fn is_aligned(graph: &Graph, part: NodeId) -> bool {
    bytes(graph, part).is_some_and(|bytes| bytes.is_multiple_of(ALIGNMENT))
}

/// The concatenations that are written in place, with their parts.
#[derive(Default)]
pub(super) struct Concats {
    wholes: FxHashMap<NodeId, Vec<NodeId>>,
    /// For each part, the concatenation and the place in it.
    parts: FxHashMap<NodeId, (NodeId, Region)>,
    /// Those whose parts overlap in memory: their rows interleave, or parts start within an aligned line.
    overlapping: FxHashSet<NodeId>,
}

impl Concats {
    /// Those that [`parted`] has left. An output has memory of its own.
    pub(super) fn find(graph: &Graph, live: &[NodeId], outputs: &[NodeId]) -> Concats {
        let mut concats = Concats::default();
        let reads = Reads::of(graph, live, outputs);
        for &node in live.iter().rev() {
            let Some(parts) = parts_of(graph, node, reads.kind(node)) else { continue };
            let is_new = |part: &Part| {
                graph.op(part.node) == Op::Reshape
                    && graph.props(part.node).shape.first().is_some_and(|dim| dim.is(1))
                    && !outputs.contains(&part.node)
                    && !concats.parts.contains_key(&part.node)
                    && !is_leaf(graph, part.node)
            };
            if parts.iter().all(is_new) {
                concats.parts.extend(parts.iter().map(|part| (part.node, (node, part.place))));
                if parts.iter().any(|Part { place, .. }| !place.is_contiguous() || place.offset > 0) {
                    concats.overlapping.insert(node);
                }
                concats.wholes.insert(node, parts.iter().map(|part| part.node).collect());
            }
        }
        concats
    }

    /// The parts of a concatenation.
    pub(super) fn parts(&self, whole: NodeId) -> Option<&[NodeId]> {
        self.wholes.get(&whole).map(Vec::as_slice)
    }

    /// The concatenation that a tensor is part of, and where the tensor lies in it.
    pub(super) fn part(&self, node: NodeId) -> Option<(NodeId, Region)> {
        self.parts.get(&node).copied()
    }

    /// Like [`Concats::part`], for parts that may overlap others in memory.
    pub(super) fn overlapping(&self, node: NodeId) -> Option<(NodeId, Region)> {
        self.part(node).filter(|(whole, _)| self.overlapping.contains(whole))
    }

    /// All concatenations.
    pub(super) fn wholes(&self) -> impl Iterator<Item = NodeId> {
        self.wholes.keys().copied()
    }
}

/// The parts of a node that is to be written in place.
fn parts_of(graph: &Graph, node: NodeId, read: Read) -> Option<Vec<Part>> {
    if graph.op(node) == Op::Stack {
        let parts = stacked(graph, graph.sources(node))?;
        let has_parts =
            are_worth_it(graph, &parts, read) || has_groups(graph, node) && are_different(graph, graph.sources(node));
        return Some(parts).filter(|_| has_parts);
    }
    let view = |piece: Piece| {
        let is_view = graph.op(piece.source) == Op::Reshape;
        is_view.then(|| Part { node: graph.source(piece.source, 0), place: piece.place })
    };
    let parts: Vec<Part> = pieces(graph, node)?.into_iter().map(view).collect::<Option<_>>()?;
    are_worth_it(graph, &parts, read).then_some(parts)
}

impl Walk<'_> {
    /// Maps the flat position of an element of a tensor to its position in memory.
    pub(super) fn placed(&mut self, tensor: NodeId, position: NodeId) -> Result<NodeId> {
        let Some((_, place)) = self.concats.part(tensor) else { return Ok(position) };
        let mut placed = position;
        if !place.is_contiguous() {
            let row = self.indices.divide(position, place.row)?;
            let (start, column) =
                (self.indices.scale(row, place.stride)?, self.indices.remainder(position, place.row)?);
            placed = self.indices.add(start, column)?;
        }
        self.indices.offset(placed, place.offset)
    }

    /// Number of elements of the memory passed for a tensor.
    pub(super) fn length(&self, tensor: NodeId) -> Dim {
        match self.concats.part(tensor) {
            Some((_, place)) => Dim::from(place.length()),
            None => elements(shape(self.tensors, tensor)),
        }
    }
}
