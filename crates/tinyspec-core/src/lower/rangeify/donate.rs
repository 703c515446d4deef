//! Buffer donation: results in the memory of the inputs that they replace.
//!
//! An assigned state whose old value is not referenced elsewhere may be overwritten. A result gets an input's memory if
//! each kernel that reads the old value can run before the one that writes, and that one reads each element only to
//! compute the same element. Then unchanged elements are neither read nor written: setting a part costs no more than
//! the part, and a kernel written by hand updates the input itself instead of a copy.

use super::narrow::only_what_differs;
use super::{KernelCall, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_ir::address::behind_after;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// A result that may take the memory of an input, whose value is not needed afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Donation {
    /// Position of the result.
    pub output: usize,
    /// Slot of the input, which has the result's dtype and shape.
    pub slot: u32,
    /// Granted only if the result is the input with a part replaced, or updated by a kernel written by hand.
    pub only_part: bool,
}

/// The least size of a state, in bytes, for which avoiding a second buffer is worth the analysis.
const LARGE: usize = 1 << 20;

/// The schedule with those of the wanted donations that are possible; with none, if they save little.
pub(super) fn donate(mut schedule: Schedule, wanted: &[Donation]) -> Result<Schedule> {
    // Dims are no buffers.
    if schedule.calls.iter().any(|call| call.takes_dims(&schedule.graph)) {
        return Ok(schedule);
    }
    let mut granted: Vec<Donation> = Vec::new();
    let mut is_worth_it = false;
    let before = Order::of(&schedule);
    for &wish in wanted {
        if granted.iter().any(|other| other.slot == wish.slot || other.output == wish.output) {
            continue;
        }
        if let Some(saves) = one(&mut schedule, wish)? {
            granted.push(wish);
            is_worth_it |= saves;
        }
    }
    if !is_worth_it {
        before.restore(&mut schedule);
        granted.clear();
    }
    schedule.donations = granted;
    Ok(schedule)
}

/// A snapshot of a schedule without its nodes. After restoring it, the other nodes stay in the graph, unused.
struct Order {
    root: NodeId,
    outputs: Vec<NodeId>,
    calls: Vec<KernelCall>,
    buffers: Vec<NodeId>,
}

impl Order {
    fn of(schedule: &Schedule) -> Order {
        let Schedule { root, outputs, calls, buffers, .. } = schedule;
        Order { root: *root, outputs: outputs.clone(), calls: calls.clone(), buffers: buffers.clone() }
    }

    fn restore(self, schedule: &mut Schedule) {
        let Order { root, outputs, calls, buffers } = self;
        (schedule.root, schedule.outputs, schedule.calls, schedule.buffers) = (root, outputs, calls, buffers);
    }
}

fn arguments(schedule: &Schedule, call: &KernelCall) -> Vec<NodeId> {
    schedule.graph.sources(call.node)[1..].iter().map(|&buffer| behind_after(&schedule.graph, buffer)).collect()
}

/// Lets one result overwrite an input, if possible; returns whether that saves much.
fn one(schedule: &mut Schedule, wish: Donation) -> Result<Option<bool>> {
    let graph = &schedule.graph;
    let Some(&output) = schedule.outputs.get(wish.output) else { return Ok(None) };
    let buffer = behind_after(graph, output);
    let arguments: Vec<Vec<NodeId>> = schedule.calls.iter().map(|call| arguments(schedule, call)).collect();
    let writes = |call: usize, node: NodeId| arguments[call][..schedule.calls[call].outputs].contains(&node);
    let Some(writer) = (0..arguments.len()).find(|&call| writes(call, buffer)) else { return Ok(None) };
    let is_input = |node: NodeId| matches!(graph.arg(node), Arg::Param { slot, .. } if *slot == wish.slot);
    let Some(&input) = arguments.iter().flatten().find(|&&node| graph.op(node) == Op::Param && is_input(node)) else {
        return Ok(None);
    };
    let fits = graph.dtype(input) == graph.dtype(buffer) && graph.props(input).shape == graph.props(buffer).shape;
    let readers: Vec<usize> = (0..arguments.len()).filter(|&call| arguments[call].contains(&input)).collect();
    let after = dependents(graph, schedule, writer);
    if !fits || readers.iter().any(|&reader| after.contains(&reader) || writes(reader, input)) {
        return Ok(None);
    }
    let position = |node: NodeId| arguments[writer].iter().position(|&argument| argument == node);
    let Some(place) = position(buffer) else { return Ok(None) };
    let is_by_hand = schedule.calls[writer].hand_written.is_some();
    let is_updated = (writer + 1..arguments.len()).any(|call| writes(call, buffer));
    let kernel = match position(input) {
        Some(read) => match in_place(graph, schedule.calls[writer].kernel, place as u32, read as u32, !is_by_hand)? {
            Some(kernel) if wish.only_part && !(kernel.is_partial || is_by_hand || is_updated && kernel.is_copy) => {
                return Ok(None);
            }
            Some(kernel) => Some((kernel, read)),
            None => return Ok(None),
        },
        None if wish.only_part => return Ok(None),
        None => None,
    };
    let readers: Vec<usize> = readers.into_iter().filter(|&reader| reader != writer).collect();
    let bytes = graph.props(input).element_count().as_const().unwrap_or(0).max(0) as usize * graph.dtype(input).size();
    let is_copied = is_updated && kernel.as_ref().is_some_and(|(kernel, _)| kernel.is_copy);
    let saves = bytes >= LARGE || is_copied || kernel.as_ref().is_some_and(|(kernel, _)| kernel.is_partial);
    Rebuild { writer, is_copied, buffer, input, kernel, readers, after }.run(schedule)?;
    Ok(Some(saves))
}

/// The Calls that depend on `writer`.
fn dependents(graph: &Graph, schedule: &Schedule, writer: usize) -> FxHashSet<usize> {
    let mut nodes: FxHashSet<NodeId> = [schedule.calls[writer].node].into_iter().collect();
    let mut found = FxHashSet::default();
    // They follow it, since Calls are in dependence order.
    for (number, call) in schedule.calls.iter().enumerate().skip(writer + 1) {
        let needs = |mut state: NodeId| {
            while graph.op(state) == Op::After {
                if graph.sources(state)[1..].iter().any(|before| nodes.contains(before)) {
                    return true;
                }
                state = graph.source(state, 0);
            }
            false
        };
        if graph.sources(call.node)[1..].iter().any(|&state| needs(state)) {
            nodes.insert(call.node);
            found.insert(number);
        }
    }
    found
}

/// A kernel of its own graph.
struct Kernel {
    graph: Graph,
    sink: NodeId,
    /// Whether it writes only part of the result.
    is_partial: bool,
    /// Whether it only writes back the old contents.
    is_copy: bool,
}

/// The kernel with its Params `place`, which it writes, and `read` merged; `None` if it might read what it has written.
/// Its loops may be narrowed to what it writes, unless the kernel was written by hand.
fn in_place(schedule: &Graph, kernel: NodeId, place: u32, read: u32, may_be_narrow: bool) -> Result<Option<Kernel>> {
    let mut graph = Graph::new();
    let sink = graph.import(schedule, &[kernel], |_, _| Ok(None))?[0];
    let live = graph.reachable(&[sink]);
    let param = |graph: &Graph, wanted: u32| {
        let is = |node: &&NodeId| {
            graph.op(**node) == Op::Param && matches!(graph.arg(**node), Arg::Param { slot, .. } if *slot == wanted)
        };
        live.iter().find(is).copied()
    };
    let (Some(to), Some(from)) = (param(&graph, place), param(&graph, read)) else { return Ok(None) };
    let Some(store) = store_to(&graph, &live, to) else { return Ok(None) };
    let position = graph.source(graph.source(store, 0), 1);
    let stored = Affine::of(&graph, position);
    // Whether a node reads the old contents of the stored element.
    let old = |graph: &Graph, node: NodeId| {
        let node = if graph.op(node) == Op::Cast { graph.source(node, 0) } else { node };
        let &[address] = graph.sources(node) else { return false };
        graph.op(node) == Op::Load
            && matches!(graph.sources(address), &[memory, index] if memory == from
                && (index == position || Affine::of(graph, index) == stored))
    };
    let is_copy = old(&graph, graph.source(store, 1));
    let mut found = None;
    if may_be_narrow
        && let Some(partial) = only_what_differs(&mut graph, sink, store, old)?
        && is_safe(&graph, partial, to, from)
    {
        found = Some(partial);
    }
    if found.is_none() && is_safe(&graph, sink, to, from) {
        found = Some(sink);
    }
    let Some(found) = found else { return Ok(None) };
    let (is_partial, sink) = (found != sink, found);
    // The Params after the removed one move up.
    let mut renamed: FxHashMap<NodeId, NodeId> = [(from, to)].into_iter().collect();
    for node in graph.reachable(&[sink]) {
        if let (Op::Param, Arg::Param { slot, dtype, device, addrspace }) = (graph.op(node), graph.arg(node))
            && *slot > read
        {
            let arg = Arg::Param { slot: slot - 1, dtype: *dtype, device: device.clone(), addrspace: *addrspace };
            let shape = graph.source(node, 0);
            let moved = graph.add(Op::Param, &[shape], arg)?;
            renamed.insert(node, moved);
        }
    }
    let sink = substitute(&mut graph, &[sink], &renamed)?[0];
    Ok(Some(Kernel { graph, sink, is_partial, is_copy }))
}

/// The one Store into a Param.
fn store_to(graph: &Graph, live: &[NodeId], param: NodeId) -> Option<NodeId> {
    let is_store = |node: &&NodeId| {
        graph.op(**node) == Op::Store && graph.sources(graph.source(**node, 0)).first() == Some(&param)
    };
    let mut stores = live.iter().filter(is_store);
    let store = stores.next().copied()?;
    let is_place = graph.op(graph.source(store, 0)) == Op::Index && graph.sources(graph.source(store, 0)).len() == 2;
    (stores.next().is_none() && is_place).then_some(store)
}

/// Whether every read of `from` is of the element that the Store into `to` writes, happens before it, and is not in a
/// loop of its own.
fn is_safe(graph: &Graph, sink: NodeId, to: NodeId, from: NodeId) -> bool {
    let live = graph.reachable(&[sink]);
    let Some(store) = store_to(graph, &live, to) else { return false };
    let place = graph.source(graph.source(store, 0), 1);
    let stored = Affine::of(graph, place);
    let before: FxHashSet<NodeId> = graph.reachable(&[store]).into_iter().collect();
    let reduces: Vec<NodeId> = live.iter().copied().filter(|&node| graph.op(node) == Op::Reduce).collect();
    let reduced: FxHashSet<NodeId> = graph.reachable(&reduces).into_iter().collect();
    let addresses: FxHashSet<NodeId> =
        live.iter().copied().filter(|&node| graph.sources(node).contains(&from)).collect();
    let is_same = |&address: &NodeId| {
        graph.op(address) == Op::Index
            && matches!(graph.sources(address), &[_, index] if index == place || Affine::of(graph, index) == stored)
            && !reduced.contains(&address)
    };
    // Another store may read the same element by a separate Load.
    let mut readers = live.iter().filter(|&&node| graph.sources(node).iter().any(|source| addresses.contains(source)));
    addresses.iter().all(is_same) && readers.all(|reader| before.contains(reader))
}

/// Rebuilds the schedule so that one Call writes an input.
struct Rebuild {
    writer: usize,
    /// Whether it only copies the input, for a Call that updates the copy.
    is_copied: bool,
    /// The buffer that it wrote so far.
    buffer: NodeId,
    input: NodeId,
    /// Its kernel, and the position of the removed argument; `None` if it does not read the input.
    kernel: Option<(Kernel, usize)>,
    /// Other Calls that read the input.
    readers: Vec<usize>,
    /// Calls that need the result.
    after: FxHashSet<usize>,
}

impl Rebuild {
    /// Makes the new Calls in the schedule's own graph, whose kernels are unchanged.
    fn run(self, schedule: &mut Schedule) -> Result<()> {
        let graph = &mut schedule.graph;
        let mut order: Vec<usize> = (0..schedule.calls.len()).collect();
        if self.readers.iter().any(|&reader| reader > self.writer) {
            order.sort_by_key(|&call| match () {
                () if call == self.writer => 1,
                () if self.after.contains(&call) => 2,
                () => 0,
            });
        }
        // The new node of each Call and each state of a buffer. A removed copy has none.
        let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        let mut calls = Vec::with_capacity(order.len());
        for number in order {
            let call = &schedule.calls[number];
            let mut kernel = call.kernel;
            let mut buffers = graph.sources(call.node)[1..].to_vec();
            if number == self.writer {
                let before = self.readers.iter().map(|&reader| new[&schedule.calls[reader].node]);
                let before: Vec<NodeId> = [self.input].into_iter().chain(before).collect();
                let place = if before.len() == 1 { self.input } else { graph.add(Op::After, &before, Arg::None)? };
                new.insert(self.buffer, place);
                if self.is_copied {
                    continue;
                }
                if let Some((own, read)) = &self.kernel {
                    buffers.remove(*read);
                    kernel = graph.import(&own.graph, &[own.sink], |_, _| Ok(None))?[0];
                }
            }
            let mut sources = vec![kernel];
            for buffer in buffers {
                sources.push(renewed(graph, buffer, &mut new)?);
            }
            let node = graph.add(Op::Call, &sources, Arg::None)?;
            for location in &call.locations {
                graph.locate(node, location.clone());
            }
            new.insert(call.node, node);
            let mut hand_written = call.hand_written.clone();
            if let (Some(hand_written), Some((_, read)), true) =
                (&mut hand_written, &self.kernel, number == self.writer)
            {
                hand_written.buffers.remove(*read);
            }
            calls.push(KernelCall { node, kernel, hand_written, ..call.clone() });
        }
        for output in &mut schedule.outputs {
            *output = renewed(graph, *output, &mut new)?;
        }
        schedule.root = graph.add(Op::Sink, &schedule.outputs, Arg::None)?;
        schedule.buffers.retain(|&buffer| buffer != self.buffer);
        schedule.calls = calls;
        Ok(())
    }
}

/// The state of a buffer over the new Calls.
fn renewed(graph: &mut Graph, state: NodeId, new: &mut FxHashMap<NodeId, NodeId>) -> Result<NodeId> {
    if let Some(&known) = new.get(&state) {
        return Ok(known);
    }
    let sources = graph.sources(state).to_vec();
    if graph.op(state) == Op::Shrink {
        let whole = renewed(graph, sources[0], new)?;
        return if whole == sources[0] {
            Ok(state)
        } else {
            graph.add(Op::Shrink, &[whole, sources[1], sources[2]], Arg::None)
        };
    }
    if graph.op(state) != Op::After {
        return Ok(state);
    }
    let mut after = vec![renewed(graph, sources[0], new)?];
    after.extend(sources[1..].iter().filter_map(|call| new.get(call)));
    let renewed = if after.len() == 1 { after[0] } else { graph.add(Op::After, &after, Arg::None)? };
    new.insert(state, renewed);
    Ok(renewed)
}
