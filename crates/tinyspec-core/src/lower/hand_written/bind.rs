//! Replaces named dims and outer constants by numbers, and removes loops without trips.

use crate::lower::fold::identity;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::address::{behind_after, is_register};
use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::rules::simplify;
use tinyspec_ir::{AddrSpace, Arg, Builder, Category, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

pub(super) fn bind(kernel: &WrittenKernel, dims: &[i64]) -> Result<(Graph, NodeId)> {
    let mut graph = Graph::new();
    let roots = graph.import(&kernel.graph, &[kernel.sink], |graph, node| {
        match (kernel.graph.op(node), kernel.graph.arg(node)) {
            (Op::Param, Arg::Param { slot, dtype: DType::Index, .. }) => {
                let position = (*slot as usize).checked_sub(kernel.buffers.len());
                let Some(&value) = position.and_then(|position| dims.get(position)) else {
                    return refuse(kernel, format!("the dim of slot {slot} is missing"));
                };
                let bounds = kernel.graph.props(node).interval.int();
                if bounds.is_some_and(|(low, high)| (value as i128) < low || high < value as i128) {
                    return refuse(kernel, format!("a dim or constant is {value}, which is out of bounds"));
                }
                Ok(Some(graph.constant(Const::int(DType::Index, value as i128))))
            }
            _ => Ok(None),
        }
    })?;
    let (mut graph, sink) = without_loops_of_one_trip(&graph, roots[0])?;
    let roots = simplify(&mut graph, &[sink])?;
    without_empty_loops(&graph, roots[0])
}

fn refuse<T>(kernel: &WrittenKernel, message: String) -> Result<T> {
    Err(Error::new(ErrorKind::Value, kernel.name.as_str(), message))
}

/// A loop that runs at most once becomes a condition: its variable can only be 0, so nothing would depend on it.
fn without_loops_of_one_trip(graph: &Graph, sink: NodeId) -> Result<(Graph, NodeId)> {
    let mut left = Graph::new();
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    // The condition under which such a loop runs, and for each node the conditions of the loops around it.
    let mut runs: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut around: FxHashMap<NodeId, SmallVec<[NodeId; 2]>> = FxHashMap::default();
    for node in graph.reachable(&[sink]) {
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
        let mut loops: SmallVec<[NodeId; 2]> =
            graph.sources(node).iter().filter_map(|source| around.get(source)).flatten().copied().collect();
        loops.sort_unstable();
        loops.dedup();
        let (op, arg) = (graph.op(node), graph.arg(node).clone());
        let closed: SmallVec<[NodeId; 2]> = match op {
            Op::End | Op::Reduce => {
                graph.sources(node)[1..].iter().filter(|range| runs.contains_key(range)).copied().collect()
            }
            _ => SmallVec::new(),
        };
        loops.retain(|range| !closed.contains(range));
        let made = match op {
            Op::Range if runs_once_or_not(graph, node) => {
                let zero = left.index(0);
                runs.insert(node, left.alu(Op::CmpLt, &[zero, sources[0]])?);
                loops.push(node);
                zero
            }
            // A register always exists, so it can be read without a gate.
            Op::Load if is_register(graph, node) => left.add(op, &sources, arg)?,
            Op::Store if is_register(graph, node) && !loops.is_empty() => {
                let kept = value_before(graph, node, &mut left, &new)?;
                for range in &loops {
                    sources[1] = left.alu(Op::Where, &[runs[range], sources[1], kept])?;
                }
                left.add(op, &sources, arg)?
            }
            Op::Load | Op::Store | Op::AtomicAdd if !loops.is_empty() => {
                if op == Op::Load && sources.len() == 1 {
                    sources.push(identity(&mut left, Op::Add, graph.dtype(node)));
                }
                for range in &loops {
                    match sources.get(2).copied() {
                        Some(gate) => sources[2] = left.alu(Op::And, &[gate, runs[range]])?,
                        None => sources.push(runs[range]),
                    }
                }
                left.add(op, &sources, arg)?
            }
            Op::End if !closed.is_empty() => sources[0],
            Op::Reduce if !closed.is_empty() => {
                let old = &graph.sources(node)[1..];
                let mut position = 0;
                sources.retain(|_| {
                    position += 1;
                    position == 1 || !closed.contains(&old[position - 2])
                });
                let Arg::Reduce { op: reduce, .. } = arg else { unreachable!("a Reduce says what it does") };
                let mut value = if sources.len() == 1 { sources[0] } else { left.add(op, &sources, arg)? };
                let nothing = identity(&mut left, reduce, graph.dtype(node));
                for range in &closed {
                    value = left.alu(Op::Where, &[runs[range], value, nothing])?;
                }
                value
            }
            op => left.add(op, &sources, arg)?,
        };
        around.insert(node, loops);
        new.insert(node, made);
    }
    Ok((left, new[&sink]))
}

/// The value of a register after all stores that this one depends on, in the new graph.
fn value_before(graph: &Graph, store: NodeId, left: &mut Graph, new: &FxHashMap<NodeId, NodeId>) -> Result<NodeId> {
    let register = memory(graph, store);
    let before = graph.reachable(&[store]).into_iter().filter(|&other| other != store);
    let before = before.filter(|&other| graph.op(other) == Op::Store && memory(graph, other) == register);
    let place: Vec<NodeId> = std::iter::once(register).chain(before).map(|node| new[&node]).collect();
    let place = left.add(Op::After, &place, Arg::None)?;
    left.add(Op::Load, &[place], Arg::Load { device: None, addrspace: AddrSpace::Reg })
}

/// The register that is accessed.
fn memory(graph: &Graph, access: NodeId) -> NodeId {
    behind_after(graph, graph.source(access, 0))
}

fn runs_once_or_not(graph: &Graph, range: NodeId) -> bool {
    let trips = graph.props(graph.source(range, 0)).interval.int();
    trips.is_some_and(|(least, greatest)| least < 1 && greatest <= 1)
}

/// Removes loops without trips, accesses that never happen, and markers, which mean nothing within kernels.
fn without_empty_loops(graph: &Graph, sink: NodeId) -> Result<(Graph, NodeId)> {
    let is_empty = |range: NodeId| {
        graph.op(range) == Op::Range && graph.as_int(graph.source(range, 0)).is_some_and(|trips| trips <= 0)
    };
    let is_never = |node: NodeId| graph.sources(node).get(2).is_some_and(|&gate| graph.as_int(gate) == Some(0));
    let live = graph.reachable(&[sink]);
    let mut left = Graph::new();
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for &node in &live {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
        // An effect that does not happen is replaced by those that it waited for.
        let nothing = |left: &mut Graph, waited: Vec<NodeId>| {
            let waited: Vec<NodeId> = waited.iter().map(|effect| new[effect]).collect();
            left.add(Op::Group, &waited, Arg::None)
        };
        let made = match (graph.op(node), graph.arg(node)) {
            (Op::End, _) if is_empty(graph.source(node, 1)) => {
                let waited = waited_for(graph, &live, graph.source(node, 0), graph.source(node, 1));
                nothing(&mut left, waited)?
            }
            (Op::Store | Op::AtomicAdd, _) if is_never(node) => {
                let effects = nearest_effects(graph, graph.source(node, 0));
                nothing(&mut left, effects)?
            }
            (Op::Load, _) if is_never(node) => sources[1],
            (Op::Reduce, Arg::Reduce { op, .. }) if graph.sources(node)[1..].iter().any(|&range| is_empty(range)) => {
                identity(&mut left, *op, graph.dtype(node))
            }
            // The variable of a loop of one trip is a constant.
            (Op::After, _) => {
                let is_number = |source: &NodeId| left.dtype(*source) == DType::Index && left.as_int(*source).is_some();
                let sources: SmallVec<[NodeId; 4]> = sources.into_iter().filter(|source| !is_number(source)).collect();
                match sources.as_slice() {
                    [alone] => *alone,
                    sources => left.add(Op::After, sources, Arg::None)?,
                }
            }
            (op, _) if op.category() == Category::Marker => sources[0],
            (op, arg) => left.add(op, &sources, arg.clone())?,
        };
        new.insert(node, made);
    }
    Ok((left, new[&sink]))
}

fn is_effect(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.op(node), Op::Store | Op::AtomicAdd | Op::End | Op::Barrier | Op::Group)
}

/// The effects that an address waits for directly. Those that they wait for in turn may be in loops of their own.
fn nearest_effects(graph: &Graph, place: NodeId) -> Vec<NodeId> {
    let (mut found, mut pending) = (Vec::new(), vec![place]);
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    while let Some(node) = pending.pop() {
        if !seen.insert(node) {
            continue;
        }
        match is_effect(graph, node) {
            true => found.push(node),
            false => pending.extend(graph.sources(node)),
        }
    }
    found.sort_unstable();
    found
}

/// The effects before a loop that its body waits for.
fn waited_for(graph: &Graph, live: &[NodeId], body: NodeId, range: NodeId) -> Vec<NodeId> {
    let mut inside: FxHashSet<NodeId> = FxHashSet::from_iter([range]);
    inside.extend([body]);
    for &node in live {
        if graph.sources(node).iter().any(|source| inside.contains(source)) {
            inside.insert(node);
        }
    }
    let below = graph.reachable(&[body]);
    let mut waited = Vec::new();
    for &node in below.iter().filter(|node| inside.contains(node)) {
        for &source in graph.sources(node) {
            if !inside.contains(&source) && is_effect(graph, source) && !waited.contains(&source) {
                waited.push(source);
            }
        }
    }
    waited
}
