//! Gives registers whose lifetimes do not overlap the same storage.

use super::lifetimes::{Lifetimes, Own};
use crate::lower::linear::Instructions;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::{AddrSpace, Arg, Graph, NodeId, Op, Result};

/// A register takes the storage of one that has come to its end, if both have all their accesses in one loop or condition, beginning
/// with a store that stands there directly: so neither keeps a value from trip to trip. That store waits for the other's accesses: it
/// moves to where its register is needed.
pub fn registers(graph: &mut Graph, linear: NodeId, _: &Target) -> Result<NodeId> {
    let Shared { storage, waits } = Shared::of(graph, linear);
    if storage.is_empty() {
        return Ok(linear);
    }
    let list = graph.sources(linear).to_vec();
    let mut instructions = Instructions::default();
    for (&register, &storage) in &storage {
        instructions.replace(register, storage);
    }
    let moved: FxHashSet<NodeId> = waits.values().flatten().map(|(store, _)| *store).collect();
    for (position, node) in list.into_iter().enumerate() {
        for (store, waits) in waits.get(&position).into_iter().flatten() {
            begin(graph, &mut instructions, *store, waits)?;
        }
        if !storage.contains_key(&node) && !moved.contains(&node) {
            instructions.copy(graph, node)?;
        }
    }
    instructions.linear(graph)
}

/// Emits the first store of a register after the last accesses `waits` to the storage that it takes over.
fn begin(graph: &mut Graph, instructions: &mut Instructions, store: NodeId, waits: &[NodeId]) -> Result<()> {
    let mut sources = graph.sources(store).to_vec();
    let place = [sources[0]].iter().chain(waits).map(|&node| instructions.now(node)).collect::<Vec<NodeId>>();
    sources[0] = instructions.push(graph, Op::After, &place, Arg::None)?;
    sources[1] = instructions.now(sources[1]);
    let arg = graph.arg(store).clone();
    instructions.copy_as(graph, store, Op::Store, &sources, arg).map(drop)
}

/// Which registers take whose storage.
#[derive(Default)]
struct Shared {
    /// The first Buffer that has the storage of another.
    storage: FxHashMap<NodeId, NodeId>,
    /// The first stores of registers with another's storage, by the position at which they are needed, and what they wait for.
    waits: FxHashMap<usize, Vec<(NodeId, Vec<NodeId>)>>,
}

/// Storage whose last register has come to its end.
struct Place {
    first: NodeId,
    /// The last position at which it is needed.
    last: usize,
    waits: Vec<NodeId>,
}

impl Shared {
    fn of(graph: &Graph, linear: NodeId) -> Shared {
        let lifetimes = Lifetimes::new(graph, linear, AddrSpace::Reg);
        let mut shared = Shared::default();
        // By scope, dtype and size.
        let mut places: FxHashMap<(usize, NodeId, Arg), Vec<Place>> = FxHashMap::default();
        for own in &lifetimes.buffers {
            let home = lifetimes.home(own.accesses.iter().copied());
            let (first, store) = (own.accesses[0], lifetimes.list[own.accesses[0]]);
            let is_begun = graph.op(store) == Op::Store && graph.sources(store).len() == 2;
            if !is_begun || lifetimes.part(first, home) != (first, first) {
                continue;
            }
            let Some(waits) = ends(&lifetimes, own, home) else { continue };
            let Arg::Buffer { dtype, addrspace, .. } = *graph.arg(own.buffer) else { continue };
            let alike = Arg::Buffer { slot: 0, dtype, device: None, addrspace };
            let places = places.entry((home, graph.source(own.buffer, 0), alike)).or_default();
            let last = lifetimes.span(own, home).1;
            let start = needed(&lifetimes, own, home);
            match places.iter_mut().find(|place| place.last < start) {
                Some(place) => {
                    shared.storage.insert(own.buffer, place.first);
                    let before = std::mem::replace(&mut place.waits, waits);
                    shared.waits.entry(start).or_default().push((store, before));
                    place.last = last;
                }
                None => places.push(Place { first: own.buffer, last, waits }),
            }
        }
        shared
    }
}

/// The position at which the first store of a register is needed: that of the next access, unless something before depends on it.
fn needed(lifetimes: &Lifetimes, own: &Own, home: usize) -> usize {
    let (first, graph) = (own.accesses[0], lifetimes.graph);
    let store = lifetimes.list[first];
    let next = own.accesses.get(1).map_or(first, |&next| lifetimes.part(next, home).0);
    let is_free = |node: &NodeId| !graph.sources(*node).contains(&store);
    let is_movable = lifetimes.list.get(first + 1..next).is_some_and(|between| between.iter().all(is_free));
    if is_movable { next } else { first }
}

/// The nodes of a scope with which all accesses to a register are over; `None` where the graph does not say so.
fn ends(lifetimes: &Lifetimes, own: &Own, home: usize) -> Option<Vec<NodeId>> {
    let graph = lifetimes.graph;
    let mut ends: Vec<NodeId> =
        own.accesses.iter().map(|&access| lifetimes.list[lifetimes.part(access, home).1]).collect();
    ends.dedup();
    // Sources are never after their users, in the numbering, too.
    let first = own.accesses.iter().map(|&access| lifetimes.list[access]).min()?;
    let (mut seen, mut pending) = (FxHashSet::from_iter(ends.iter().copied()), ends.clone());
    while let Some(node) = pending.pop() {
        pending.extend(graph.sources(node).iter().filter(|&&source| source >= first && seen.insert(source)));
    }
    own.accesses.iter().all(|&access| seen.contains(&lifetimes.list[access])).then_some(ends)
}
