//! Kernels written by hand and custom functions, in a tensor graph: `After(buffer, Call(CustomFunction, buffers…, dims…), number)`.
//!
//! A call is a kernel of its own. A buffer that it updates is a value like any other, so the kernel works on a copy,
//! unless the value has no other use or the kernel overwrites all of it.

use super::movement::{count, dims, elements, shape};
use super::walk::{DemandId, Walk, call_result, named};
use super::{Assembly, HandWritten, KernelCall};
use crate::lower::hand_written::{Before, Specialised, specialise, stores_nothing};
use rustc_hash::FxHashMap;
use tinyspec_ir::custom_function::{self, CustomFunction};
use tinyspec_ir::{
    AddrSpace, Arg, AxisType, Builder, DType, Error, ErrorKind, Graph, Location, NodeId, Op, Result, Shape, kernel,
};

/// A kernel with its dims bound, or a custom function.
pub(super) struct WrittenCall {
    name: String,
    /// For each written buffer, how its old contents are used.
    before: Vec<Before>,
    /// The names of its buffers; the written ones come first.
    buffers: Vec<String>,
    /// The kernel and its root; a custom function has none.
    kernel: Option<(Graph, NodeId)>,
}

/// By the Call.
pub(super) type HandWrittenCalls = FxHashMap<NodeId, WrittenCall>;

/// All calls of a tensor graph.
pub(super) fn calls(graph: &Graph, live: &[NodeId]) -> Result<HandWrittenCalls> {
    let mut calls = HandWrittenCalls::default();
    for &call in live {
        if let Some(function) = custom_function::of_call(graph, call) {
            calls.insert(call, WrittenCall::custom(&function, graph.sources(call).len() - 1));
            continue;
        }
        let Some(code) = kernel::code(graph, call) else { continue };
        let hand_written = call_of(graph, call, code).map_err(|error| {
            let place = results_of(graph, call).find(|&(result, _)| !graph.locations(result).is_empty());
            graph.located(place.map_or(call, |(result, _)| result), error)
        })?;
        calls.insert(call, hand_written);
    }
    Ok(calls)
}

fn call_of(graph: &Graph, call: NodeId, code: &[u8]) -> Result<WrittenCall> {
    let kernel = kernel::WrittenKernel::decode(code)?;
    let arguments = graph.sources(call).get(1 + kernel.buffers.len()..).unwrap_or(&[]);
    let number = |&argument: &NodeId| graph.props(argument).value.as_ref()?.first()?.as_const();
    let numbers: Option<Vec<i64>> = arguments.iter().map(number).collect();
    let numbers = numbers.ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, kernel.name.as_str(), "has named dims whose values are not known")
    })?;
    let Specialised { graph, sink, before, buffers } = specialise(code, &numbers)?;
    Ok(WrittenCall { name: kernel.name, before, buffers, kernel: Some((graph, sink)) })
}

/// The results of a call, each with its number.
fn results_of(graph: &Graph, call: NodeId) -> impl Iterator<Item = (NodeId, usize)> {
    graph.nodes().filter_map(move |node| {
        let (of, number) = call_result(graph, node)?;
        (of == call).then_some((node, number))
    })
}

impl WrittenCall {
    fn custom(function: &CustomFunction, buffers: usize) -> WrittenCall {
        let mut before = vec![Before::Ignored; function.made];
        before.resize(function.written(), Before::Kept);
        let buffers = (0..buffers).map(|number| format!("buffer {number}")).collect();
        WrittenCall { name: function.name.to_string(), before, buffers, kernel: None }
    }

    /// The values that the kernel reads.
    pub(super) fn inputs(&self, graph: &Graph, call: NodeId) -> Vec<NodeId> {
        let buffers = &graph.sources(call)[1..=self.buffers.len()];
        let needed = buffers.iter().enumerate().filter(|(slot, _)| self.before.get(*slot) != Some(&Before::Ignored));
        needed.map(|(_, &buffer)| named(graph, buffer).0).collect()
    }
}

impl Assembly<'_> {
    /// The Calls for a kernel written by hand: copies of the buffers that it updates, then the kernel.
    pub(super) fn hand_written(&mut self, walk: &Walk, call: NodeId) -> Result<Vec<KernelCall>> {
        let WrittenCall { name, before, buffers, kernel } = &walk.calls[&call];
        let arguments: Vec<NodeId> = self.tensors.sources(call)[1..=buffers.len()].to_vec();
        let (from, root) = match kernel {
            Some((graph, sink)) => (graph, *sink),
            None => (self.tensors, self.tensors.source(call, 0)),
        };
        let sink = self.graph.import(from, &[root], |_, _| Ok(None))?[0];
        let described = |&argument: &NodeId| (self.tensors.dtype(argument), Shape::from(shape(self.tensors, argument)));
        let told: Vec<(DType, Shape)> =
            if kernel.is_none() { arguments.iter().map(described).collect() } else { Vec::new() };
        let results: Vec<(NodeId, usize)> = results_of(self.tensors, call).collect();
        // Results carry the lines of the calls, the Call that of the kernel's definition.
        let mut locations: Vec<Location> = Vec::new();
        for location in results.iter().flat_map(|&(result, _)| self.tensors.locations(result)) {
            if !locations.contains(location) {
                locations.push(location.clone());
            }
        }
        let definition = self.tensors.locations(call).iter().find(|&place| !locations.contains(place)).cloned();
        // Two buffers with the same initial value are separate buffers.
        let is_once = |tensors: &Graph, tensor: NodeId| {
            arguments.iter().filter(|&&argument| named(tensors, argument).0 == tensor).count() == 1
        };
        let mut calls = Vec::new();
        let (mut sources, mut read) = (vec![sink], vec![]);
        for (slot, &argument) in arguments.iter().enumerate() {
            let tensor = named(self.tensors, argument).0;
            let buffer = match before.get(slot) {
                None => self.value(tensor)?,
                Some(Before::Ignored) => self.buffer(tensor)?,
                Some(Before::Read(_)) => {
                    read.push(self.value(tensor)?);
                    self.buffer(tensor)?
                }
                Some(Before::Kept) if is_once(self.tensors, tensor) && self.is_private(walk, tensor) => {
                    self.value(tensor)?
                }
                Some(Before::Kept) => {
                    let copy = self.copy(tensor)?;
                    let after = self.graph.add(Op::After, &[self.graph.source(copy, 1), copy], Arg::None)?;
                    let kernel = self.graph.source(copy, 0);
                    calls.push(KernelCall {
                        node: copy,
                        kernel,
                        outputs: 1,
                        locations: locations.clone(),
                        reduces: vec![],
                        hand_written: None,
                        told: vec![],
                        definition: None,
                    });
                    after
                }
            };
            sources.push(buffer);
        }
        if kernel.as_ref().is_some_and(|(graph, sink)| stores_nothing(graph, *sink)) {
            // Every result is the old contents of its buffer.
            self.places.extend(results.into_iter().map(|(result, number)| (result, sources[1 + number])));
            return Ok(calls);
        }
        // Old contents of buffers come last, by slot.
        sources.extend(read);
        let node = self.graph.add(Op::Call, &sources, Arg::None)?;
        for location in &locations {
            self.graph.locate(node, location.clone());
        }
        for (result, number) in results {
            let after = self.graph.add(Op::After, &[sources[1 + number], node], Arg::None)?;
            self.places.insert(result, after);
        }
        let outputs = before.len();
        let mut names = buffers.clone();
        for (slot, before) in before.iter().enumerate() {
            if matches!(before, Before::Read(_)) {
                names.push(buffers[slot].clone());
            }
        }
        let hand_written = Some(HandWritten { name: name.clone(), buffers: names });
        calls.push(KernelCall {
            node,
            kernel: sink,
            outputs,
            locations,
            reduces: vec![],
            hand_written,
            told,
            definition,
        });
        Ok(calls)
    }

    /// The buffer of a value; an empty value has none yet.
    fn value(&mut self, tensor: NodeId) -> Result<NodeId> {
        if elements(shape(self.tensors, tensor)).is(0) && !self.places.contains_key(&tensor) {
            return self.buffer(tensor);
        }
        self.place(tensor)
    }

    /// Whether this is a temporary that only its writer uses: no other kernel and no root.
    fn is_private(&self, walk: &Walk, tensor: NodeId) -> bool {
        let writer = walk.writer.get(&tensor);
        let looks = |&&demand: &&DemandId| Some(&walk.needs[demand as usize].kernel) != writer;
        let readers = walk.of_node[tensor.index()].iter().filter(looks).count();
        self.places.contains_key(&tensor) && readers == 1 && !self.results.contains(&tensor)
    }

    /// The Call that copies a value to a new Buffer.
    fn copy(&mut self, tensor: NodeId) -> Result<NodeId> {
        let (from, to) = (self.value(tensor)?, self.buffer(tensor)?);
        let size = count(&dims(self.tensors, tensor)?);
        let graph = &mut self.graph;
        let shape = graph.shape(&Shape::from_iter([size.into()]))?;
        let dtype = graph.dtype(to);
        let mut param = |slot: u32| {
            let arg = Arg::Param { slot, dtype, device: None, addrspace: Some(AddrSpace::Global) };
            graph.add(Op::Param, &[shape], arg)
        };
        let (target, source) = (param(0)?, param(1)?);
        let bound = graph.index(size);
        let range = graph.range(bound, 0, AxisType::Loop)?;
        let place = graph.add(Op::Index, &[source, range], Arg::None)?;
        let value = graph.add(Op::Load, &[place], Arg::Load { device: None, addrspace: AddrSpace::Reg })?;
        let place = graph.add(Op::Index, &[target, range], Arg::None)?;
        let store = graph.add(Op::Store, &[place, value], Arg::None)?;
        let end = graph.add(Op::End, &[store, range], Arg::None)?;
        let sink = graph.add(Op::Sink, &[end], Arg::None)?;
        graph.add(Op::Call, &[sink, to, from], Arg::None)
    }
}
