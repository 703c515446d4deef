//! Turns collected values into closed kernels: outputs are stored, Ranges and Params are numbered in walk order, loops
//! are closed.

use super::index::{Indices, Ranges, dim_of, placeholder_of};
use super::values::storage;
use super::walk::{Kernel, Walk};
use crate::lower::loops::{closed, grouped};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::dim::Name;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, DType, Dim, Graph, NodeId, Op, Result, Shape};

/// A kernel in range form, and the tensors behind its Params.
pub(super) struct Closed {
    pub(super) sink: NodeId,
    /// Tensor nodes: the outputs, then the inputs.
    pub(super) slots: Vec<NodeId>,
    /// The named dims of the tensor graph that it needs, by their slots in the kernel.
    pub(super) dims: Vec<Dim>,
}

/// The parts of the values of one kernel, in the order of a walk from its outputs.
pub(super) struct Contents {
    /// Scalars of the kernel, sources first.
    pub(super) order: Vec<NodeId>,
    pub(super) reduces: Vec<Reduction>,
}

/// A Reduce of a kernel.
pub(super) struct Reduction {
    pub(super) ranges: Ranges,
    pub(super) extents: Shape,
    /// Ranges of the loops around it that it depends on.
    pub(super) outer: Ranges,
    /// Length of the longest chain of Reduces below: two of one level do not depend on each other.
    pub(super) level: u32,
    /// Whether each load below is invariant in some of the loops around it, as in a matrix product.
    pub(super) reuses: bool,
}

/// The sources of a scalar, with placeholders resolved to their values.
fn sources<'a>(graph: &'a Graph, values: &'a [NodeId], node: &NodeId) -> &'a [NodeId] {
    match (graph.op(*node), graph.arg(*node)) {
        (Op::Param, arg) => match placeholder_of(arg) {
            Some(demand) => std::slice::from_ref(&values[demand as usize]),
            None => &[],
        },
        _ => graph.sources(*node),
    }
}

/// All scalars below `roots`, sources first.
fn order(graph: &Graph, values: &[NodeId], roots: &[NodeId]) -> Vec<NodeId> {
    let mut done = FxHashSet::default();
    let mut order = Vec::new();
    let mut stack: Vec<(NodeId, usize)> = Vec::new();
    for &root in roots {
        if done.insert(root) {
            stack.push((root, 0));
        }
        while let Some((node, next)) = stack.last_mut() {
            match sources(graph, values, node).get(*next) {
                Some(&source) => {
                    *next += 1;
                    if done.insert(source) {
                        stack.push((source, 0));
                    }
                }
                None => {
                    order.push(*node);
                    stack.pop();
                }
            }
        }
    }
    order
}

/// Collects the contents of a kernel.
pub(super) fn contents(indices: &Indices, kernel: &Kernel, values: &[NodeId]) -> Contents {
    let graph = &indices.graph;
    let roots: Vec<NodeId> = kernel.outputs.iter().map(|&(_, demand)| values[demand as usize]).collect();
    let order = order(graph, values, &roots);
    let mut free: FxHashMap<NodeId, Ranges> = FxHashMap::default();
    let mut level: FxHashMap<NodeId, u32> = FxHashMap::default();
    let mut reduces = Vec::new();
    let mut seen = FxHashSet::default();
    for &node in &order {
        let below = sources(graph, values, &node);
        let mut ranges = Ranges::new();
        let mut deepest = 0;
        for source in below {
            ranges.extend(free.get(source).into_iter().flatten().copied());
            deepest = deepest.max(level.get(source).copied().unwrap_or(0));
        }
        ranges.sort_unstable();
        ranges.dedup();
        match graph.op(node) {
            Op::Range => ranges = Ranges::from_slice(&[node]),
            Op::Reduce => {
                let own: Ranges = below[1..].into();
                let around = ranges.clone();
                ranges.retain(|range| !own.contains(range));
                deepest += 1;
                let direct = loads_below(graph, values, below[0], &mut seen);
                let varies = |load: &NodeId| free.get(load).map_or(0, |seen| seen.len());
                let reuses = direct.len() > 1 && direct.iter().all(|load| varies(load) < around.len());
                let extents = own.iter().map(|&range| extent(graph, range)).collect();
                reduces.push(Reduction { ranges: own, extents, outer: ranges.clone(), level: deepest, reuses });
            }
            _ => {}
        }
        free.insert(node, ranges);
        level.insert(node, deepest);
    }
    Contents { order, reduces }
}

/// Loads between a value and the Reduces below it.
fn loads_below(graph: &Graph, values: &[NodeId], root: NodeId, seen: &mut FxHashSet<NodeId>) -> SmallVec<[NodeId; 2]> {
    seen.clear();
    let mut found = SmallVec::new();
    let mut stack = vec![root];
    while let Some(node) = stack.pop() {
        if !seen.insert(node) {
            continue;
        }
        match graph.op(node) {
            Op::Load => found.push(node),
            Op::Reduce => {}
            _ => stack.extend_from_slice(sources(graph, values, &node)),
        }
    }
    found
}

fn extent(graph: &Graph, range: NodeId) -> Dim {
    dim_of(graph, graph.source(range, 0)).unwrap_or_else(|| Dim::from(0))
}

/// The named dims of a kernel, numbered in order of first use.
#[derive(Default)]
struct NamedDims(Vec<Name>);

impl NamedDims {
    /// The slot in the kernel.
    fn slot(&mut self, name: Name) -> u32 {
        let known = self.0.iter().position(|other| other.slot == name.slot);
        known.unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        }) as u32
    }

    /// The same dim in the kernel.
    fn within(&mut self, dim: &Dim) -> Dim {
        if dim.as_const().is_some() {
            return dim.clone();
        }
        let names: Vec<(Name, u32)> = dim.names().into_iter().map(|name| (name, self.slot(name))).collect();
        dim.substitute(&|slot| {
            let (name, own) = names.iter().find(|(name, _)| name.slot == slot)?;
            Some(Dim::named(*own, name.min, name.max))
        })
    }
}

/// Lets independent Reduces share Ranges if their bounds and enclosing loops agree, so that they become one loop.
/// Returns the representative of each Range.
fn share(reduces: &[Reduction], substitute: &FxHashMap<NodeId, NodeId>) -> FxHashMap<NodeId, NodeId> {
    let mut first: FxHashMap<(u32, Shape, Ranges), &Ranges> = FxHashMap::default();
    let mut shared = FxHashMap::default();
    for reduce in reduces {
        let mut outer: Ranges =
            reduce.outer.iter().map(|range| substitute.get(range).copied().unwrap_or(*range)).collect();
        outer.sort_unstable();
        let leader = *first.entry((reduce.level, reduce.extents.clone(), outer)).or_insert(&reduce.ranges);
        shared.extend(reduce.ranges.iter().copied().zip(leader.iter().copied()));
    }
    shared
}

/// Builds one kernel out of `members`, which have equal extents, in `graph`.
pub(super) fn close(walk: &mut Walk, graph: &mut Graph, members: &[usize], values: &[NodeId]) -> Result<Closed> {
    let leader = members[0];
    let outputs: Vec<(usize, NodeId, u32)> = members
        .iter()
        .flat_map(|&member| walk.kernels[member].outputs.iter().map(move |&(node, demand)| (member, node, demand)))
        .collect();
    // Output Ranges of all members are those of the first.
    let mut stands: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for &member in &members[1..] {
        let pairs = walk.kernels[member].ranges.iter().copied().zip(walk.kernels[leader].ranges.iter().copied());
        stands.extend(pairs);
    }
    let mut all = Vec::new();
    let mut reduces = Vec::new();
    for &member in members {
        let contents = contents(&walk.indices, &walk.kernels[member], values);
        all.extend(contents.order);
        reduces.extend(contents.reduces);
    }
    stands.extend(share(&reduces, &stands));

    let mut named = NamedDims::default();
    let mut next_range = 0;
    let mut ranges: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut loops = Ranges::new();
    for position in 0..walk.kernels[leader].ranges.len() {
        let (old, extent) = (walk.kernels[leader].ranges[position], &walk.kernels[leader].extents[position]);
        let bound = graph.dim(&named.within(extent))?;
        let new = graph.range(bound, next_range, AxisType::Loop)?;
        next_range += 1;
        ranges.insert(old, new);
        loops.push(new);
    }
    let mut slots: Vec<NodeId> = outputs.iter().map(|&(_, node, _)| node).collect();
    let mut places: FxHashMap<NodeId, u32> = FxHashMap::default();
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in all {
        if new.contains_key(&node) {
            continue;
        }
        let from = &walk.indices.graph;
        let made = match (from.op(node), from.arg(node)) {
            (Op::Range, _) => {
                let old = stands.get(&node).copied().unwrap_or(node);
                match ranges.get(&old) {
                    Some(&range) => range,
                    None => {
                        let bound = graph.dim(&named.within(&extent(from, old)))?;
                        let range = graph.range(bound, next_range, AxisType::Reduce)?;
                        next_range += 1;
                        ranges.insert(old, range);
                        range
                    }
                }
            }
            (Op::Param, arg @ Arg::Param { addrspace: None, .. }) => match placeholder_of(arg) {
                Some(demand) => {
                    let value = new[&values[demand as usize]];
                    match graph.dtype(value) {
                        DType::Index => value,
                        _ => graph.add(Op::Cast, &[value], Arg::DType(DType::Index))?,
                    }
                }
                None => graph.dim(&named.within(&dim_of(from, node).unwrap_or_else(|| Dim::from(0))))?,
            },
            (Op::Param, Arg::Param { slot, .. }) => {
                let tensor = NodeId(*slot);
                let place = *places.entry(tensor).or_insert_with(|| {
                    slots.push(tensor);
                    slots.len() as u32 - 1
                });
                parameter(walk, graph, tensor, place, &mut named)?
            }
            (op, arg) => {
                let mapped: SmallVec<[NodeId; 4]> = from.sources(node).iter().map(|source| new[source]).collect();
                graph.add(op, &mapped, arg.clone())?
            }
        };
        new.insert(node, made);
    }
    let mut stores: SmallVec<[NodeId; 4]> = SmallVec::new();
    for (place, &(member, node, demand)) in outputs.iter().enumerate() {
        let size = &walk.kernels[member].extents.clone();
        let own = walk.kernels[member].ranges.clone();
        // All outputs are written in the kernel's own order, so they share the position.
        let position = walk.indices.flat(&own, size)?;
        let position = walk.placed(node, position)?;
        let position = transfer(&walk.indices, graph, position, &stands, &ranges, &mut new, &mut named)?;
        let buffer = parameter(walk, graph, node, place as u32, &mut named)?;
        let address = graph.add(Op::Index, &[buffer, position], Arg::None)?;
        let mut value = new[&values[demand as usize]];
        let stored = storage(graph.dtype(value));
        if stored != graph.dtype(value) {
            value = graph.add(Op::Cast, &[value], Arg::DType(stored))?;
        }
        stores.push(graph.add(Op::Store, &[address, value], Arg::None)?);
    }
    let body = grouped(graph, &stores)?;
    let body = closed(graph, body, &loops)?;
    Ok(Closed {
        sink: graph.add(Op::Sink, &[body], Arg::None)?,
        slots,
        dims: named.0.into_iter().map(Dim::from).collect(),
    })
}

/// An index expression of output Ranges, in the kernel's graph.
fn transfer(
    indices: &Indices,
    graph: &mut Graph,
    root: NodeId,
    stands: &FxHashMap<NodeId, NodeId>,
    ranges: &FxHashMap<NodeId, NodeId>,
    new: &mut FxHashMap<NodeId, NodeId>,
    named: &mut NamedDims,
) -> Result<NodeId> {
    for node in order(&indices.graph, &[], &[root]) {
        if new.contains_key(&node) {
            continue;
        }
        let made = match indices.graph.op(node) {
            Op::Range => ranges[stands.get(&node).unwrap_or(&node)],
            Op::Param => graph.dim(&named.within(&dim_of(&indices.graph, node).unwrap_or_else(|| Dim::from(0))))?,
            op => {
                let mapped: SmallVec<[NodeId; 4]> =
                    indices.graph.sources(node).iter().map(|source| new[source]).collect();
                graph.add(op, &mapped, indices.graph.arg(node).clone())?
            }
        };
        new.insert(node, made);
    }
    Ok(new[&root])
}

/// The Param of a buffer.
fn parameter(walk: &Walk, graph: &mut Graph, tensor: NodeId, slot: u32, named: &mut NamedDims) -> Result<NodeId> {
    let length = named.within(&walk.length(tensor));
    let length = graph.shape(&Shape::from_iter([length]))?;
    let dtype = storage(walk.tensors.dtype(tensor));
    graph.add(Op::Param, &[length], Arg::Param { slot, dtype, device: None, addrspace: Some(AddrSpace::Global) })
}
