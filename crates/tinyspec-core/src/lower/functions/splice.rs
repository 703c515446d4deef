//! Puts the schedules of bodies in the places of their opaque Calls.

use super::body::Body;
use super::opaque;
use crate::lower::rangeify::{KernelCall, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// New nodes by old ones.
type Map = FxHashMap<NodeId, NodeId>;

/// The schedule with the Calls of `bodies` instead of the opaque ones.
pub(super) fn spliced(bodies: &[Body], schedule: Schedule) -> Result<Schedule> {
    let from = &schedule.graph;
    let slots = schedule.buffers.iter().filter_map(|&buffer| slot(from, buffer));
    let mut splicer = Splicer {
        graph: Graph::new(),
        next_slot: slots.min().unwrap_or(0),
        buffers: vec![],
        calls: vec![],
        kernels: bodies.iter().map(|_| Map::default()).collect(),
        uses: FxHashMap::default(),
    };
    let opaque_calls = || schedule.calls.iter().filter(|call| opaque(from, call.kernel).is_some());
    // The bodies' own Buffers replace those.
    let replaced: FxHashSet<NodeId> =
        opaque_calls().flat_map(|call| &from.sources(call.node)[1..=call.outputs]).copied().collect();
    let (mut new, mut kernels) = (Map::default(), Map::default());
    for &buffer in schedule.buffers.iter().filter(|buffer| !replaced.contains(buffer)) {
        splicer.buffer(from, buffer, &mut new)?;
    }
    let states = States::of(from);
    for call in &schedule.calls {
        match opaque(from, call.kernel) {
            Some((body, part, one)) => {
                splicer.splice(from, call, &bodies[body], (body, part, one), &mut new, &states)?
            }
            None => splicer.call(from, call, &mut new, &mut kernels, &[])?,
        }
    }
    let Splicer { mut graph, buffers, mut calls, .. } = splicer;
    let mut outputs = Vec::with_capacity(schedule.outputs.len());
    for &output in &schedule.outputs {
        outputs.push(copied(&mut graph, from, output, &mut new)?);
    }
    let root = graph.add(Op::Sink, &outputs, Arg::None)?;
    // A result that one use of a body needs, another one may not.
    let live: FxHashSet<NodeId> = graph.reachable_outside_bodies(&[root]).into_iter().collect();
    calls.retain(|call| live.contains(&call.node));
    Ok(Schedule { graph, root, outputs, calls, buffers, ..schedule })
}

fn slot(graph: &Graph, buffer: NodeId) -> Option<u32> {
    match graph.arg(buffer) {
        Arg::Buffer { slot, .. } => Some(*slot),
        _ => None,
    }
}

/// The states of Buffers after a Call.
struct States(FxHashMap<NodeId, Vec<NodeId>>);

impl States {
    fn of(graph: &Graph) -> States {
        let mut states: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for node in graph.nodes().filter(|&node| graph.op(node) == Op::After) {
            graph.sources(node)[1..].iter().for_each(|&call| states.entry(call).or_default().push(node));
        }
        States(states)
    }
}

/// The new schedule while it grows.
struct Splicer {
    graph: Graph,
    next_slot: u32,
    buffers: Vec<NodeId>,
    calls: Vec<KernelCall>,
    /// The new kernels of each body.
    kernels: Vec<Map>,
    /// The new nodes of each use of a body.
    uses: FxHashMap<(usize, usize), Map>,
}

impl Splicer {
    /// A Buffer with a slot of its own.
    fn buffer(&mut self, from: &Graph, buffer: NodeId, new: &mut Map) -> Result<()> {
        let mut arg = from.arg(buffer).clone();
        if let Arg::Buffer { slot, .. } = &mut arg {
            *slot = self.next_slot;
        }
        self.next_slot += 1;
        let shape = copied(&mut self.graph, from, from.source(buffer, 0), new)?;
        let made = self.graph.add(Op::Buffer, &[shape], arg)?;
        self.buffers.push(made);
        new.insert(buffer, made);
        Ok(())
    }

    /// The Calls of one part of a body.
    fn splice(
        &mut self,
        from: &Graph,
        call: &KernelCall,
        body: &Body,
        (number, part, one): (usize, usize, usize),
        new: &mut Map,
        states: &States,
    ) -> Result<()> {
        let inner = &body.schedule.graph;
        let mut own = self.uses.remove(&(number, one)).unwrap_or_default();
        // The results of earlier parts come last: this Call only waits for them.
        let earlier: usize = body.parts[..part].iter().map(|part| part.results.len()).sum();
        let arguments = &from.sources(call.node)[1 + call.outputs..];
        let arguments = &arguments[..arguments.len() - earlier];
        for ((&place, &given), &argument) in body.places.iter().zip(&body.given).zip(arguments) {
            if let Entry::Vacant(entry) = own.entry(place) {
                let argument = copied(&mut self.graph, from, argument, new)?;
                entry.insert(argument);
                // Nothing is left of the holes.
                own.insert(given, argument);
            }
        }
        if part == 0 {
            for &buffer in body.schedule.buffers.iter().filter(|buffer| !body.places.contains(buffer)) {
                self.buffer(inner, buffer, &mut own)?;
            }
        }
        let mut kernels = std::mem::take(&mut self.kernels[number]);
        for (inner_call, &of_part) in body.schedule.calls.iter().zip(&body.part_of) {
            if of_part == Some(part) {
                self.call(inner, inner_call, &mut own, &mut kernels, &call.locations)?;
            }
        }
        self.kernels[number] = kernels;
        for (result, &buffer) in body.parts[part].results.iter().zip(&from.sources(call.node)[1..]) {
            let state = copied(&mut self.graph, inner, result.state, &mut own)?;
            let of_result = states.0.get(&call.node).into_iter().flatten();
            new.extend(of_result.filter(|&&after| from.source(after, 0) == buffer).map(|&after| (after, state)));
        }
        self.uses.insert((number, one), own);
        Ok(())
    }

    /// A Call on a kernel, which belongs to `lines` too.
    fn call(
        &mut self,
        from: &Graph,
        call: &KernelCall,
        new: &mut Map,
        kernels: &mut Map,
        lines: &[tinyspec_ir::Location],
    ) -> Result<()> {
        let kernel = match kernels.get(&call.kernel) {
            Some(&kernel) => kernel,
            None => self.graph.import(from, &[call.kernel], |_, _| Ok(None))?[0],
        };
        kernels.insert(call.kernel, kernel);
        let mut sources = vec![kernel];
        for &argument in &from.sources(call.node)[1..] {
            sources.push(copied(&mut self.graph, from, argument, new)?);
        }
        let node = self.graph.add(Op::Call, &sources, Arg::None)?;
        let mut locations = call.locations.clone();
        locations.extend(lines.iter().filter(|line| !call.locations.contains(line)).cloned());
        for location in &locations {
            self.graph.locate(node, location.clone());
        }
        new.insert(call.node, node);
        self.calls.push(KernelCall { node, kernel, locations, ..call.clone() });
        Ok(())
    }
}

/// Copies a node outside of the kernels; Calls before it are known.
fn copied(graph: &mut Graph, from: &Graph, node: NodeId, new: &mut Map) -> Result<NodeId> {
    if let Some(&known) = new.get(&node) {
        return Ok(known);
    }
    let mut sources = Vec::with_capacity(from.sources(node).len());
    for &source in from.sources(node) {
        sources.push(copied(graph, from, source, new)?);
    }
    let made = graph.add(from.op(node), &sources, from.arg(node).clone())?;
    new.insert(node, made);
    Ok(made)
}
