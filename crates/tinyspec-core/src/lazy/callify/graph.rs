//! The graph of a walk: for its values, for a history, or opened for gradients.

use super::{Entry, Walk, called};
use crate::lazy::{Body, Identity, Node, Opening, Program, moved};
use crate::lower::functions::LEAST_USES;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use tinyspec_ir::{AddrSpace, Arg, Builder, ContentHash, Device, Graph, NodeId, Op, Props, Result};

/// The approximate growth of a graph by its gradients.
const WITH_GRADIENTS: usize = 3;

/// The stateless graph of a walk.
pub(crate) struct Callified {
    pub graph: Graph,
    /// One per root.
    pub outputs: Vec<NodeId>,
}

/// The graph of a walk for gradients.
#[derive(Default)]
pub(crate) struct Opened {
    pub graph: Graph,
    /// One per root.
    pub outputs: Vec<NodeId>,
    /// One per entry of the walk.
    pub entries: Vec<NodeId>,
    /// The lazy or computed tensor behind a node.
    pub origins: FxHashMap<NodeId, Arc<Node>>,
    /// Copies of tensors that may no longer exist.
    pub copies: FxHashMap<NodeId, Identity>,
    /// Params whose values are gone.
    pub gone: Vec<NodeId>,
    /// Numbers that the program may change, of runs in the past.
    pub numbers: Vec<NodeId>,
    /// Whether it calls a function that is compiled once for all sizes.
    pub has_ranged: bool,
    /// The bodies whose calls were inlined.
    pub inlined: Vec<ContentHash>,
}

/// Which nodes of a walk are nodes of their own in its graph.
enum Apart<'a> {
    /// None: equal nodes are merged.
    Nothing,
    /// All that may be tensors of the program: floats.
    Floats,
    /// All that are tensors of the program. The slice says which entries gradients flow through.
    Tensors(&'a mut Opening, &'a [bool]),
}

impl Walk {
    /// The graph of the walk. What is called often is a Function.
    pub fn build(&self) -> Result<Callified> {
        self.build_with(&self.staying([]))
    }

    /// As [`Walk::build`], where only Functions with a gradient of their own stay.
    pub fn build_inlined(&self) -> Result<Callified> {
        self.build_with(&FxHashSet::default())
    }

    fn build_with(&self, staying: &FxHashSet<ContentHash>) -> Result<Callified> {
        let mut graph = Graph::new();
        graph.reserve(self.entries.len());
        let nodes = self.add_to(&mut graph, Apart::Nothing, staying)?;
        Ok(Callified { outputs: self.outputs(&nodes), graph })
    }

    /// As [`Walk::build`], for a history: there is a node for each entry that may be a tensor of the program.
    pub fn program(&self) -> Result<Program> {
        let mut graph = Graph::new();
        graph.reserve(self.entries.len());
        // Gradients of any input may be wanted later.
        let is_input = |entry: &Entry| entry.leaf.is_some() && entry.node.props.dtype.is_float();
        let inputs = (0..).zip(&self.entries).filter(|(_, entry)| is_input(entry)).map(|(position, _)| position);
        let nodes = self.add_to(&mut graph, Apart::Floats, &self.staying(inputs))?;
        Ok(Program::new(graph, self.outputs(&nodes), nodes))
    }

    /// As [`Walk::build`], with the histories of computed values that depend on one of `wanted`.
    pub fn open(&self, wanted: &[Arc<Node>]) -> Result<Opened> {
        let mut graph = Graph::new();
        graph.reserve(WITH_GRADIENTS * self.entries.len());
        let mut opening = Opening::new(wanted, self.leaf_count);
        let staying = self.staying(self.roots.iter().skip(1).copied());
        let nodes = self.add_to(&mut graph, Apart::Tensors(&mut opening, &self.flows()), &staying)?;
        // An inlined Function has no node of its own.
        let entries = nodes.iter().zip(&self.entries).filter(|(_, entry)| entry.node.op != Op::Function);
        let mut origins: FxHashMap<NodeId, Arc<Node>> = opening.origins.into_iter().collect();
        origins.extend(entries.map(|(&node, entry)| (node, entry.node.clone())));
        let Opening { copies, gone, numbers, has_ranged, .. } = opening;
        let (copies, outputs) = (copies.into_iter().collect(), self.outputs(&nodes));
        let inlined = self.functions().map(|(_, body)| body.hash()).filter(|hash| !staying.contains(hash)).collect();
        Ok(Opened { outputs, entries: nodes, graph, origins, copies, gone, numbers, has_ranged, inlined })
    }

    /// The calls of functions other than methods, and their bodies.
    fn functions(&self) -> impl Iterator<Item = (&Entry, Arc<Body>)> {
        self.entries.iter().filter_map(|entry| {
            let body = called(&entry.node).filter(|body| !body.is_method())?;
            Some((entry, body))
        })
    }

    /// The bodies whose calls stay Functions, since there are many of them. Gradients of the entries `wanted` will be taken: a sum of
    /// products, one for each call, becomes one product if the calls are inlined, as those of a recurrent cell.
    fn staying(&self, wanted: impl IntoIterator<Item = u32>) -> FxHashSet<ContentHash> {
        let mut calls: FxHashMap<ContentHash, (usize, FxHashSet<u32>)> = FxHashMap::default();
        let mut inlined: FxHashSet<ContentHash> = FxHashSet::default();
        let wanted: FxHashSet<u32> = wanted.into_iter().collect();
        for (entry, body) in self.functions() {
            inlined.extend(body.inlined());
            let is_many = matches!(entry.node.device(), Some(Device::Many(_)));
            let inputs = entry.sources.iter().flat_map(|&source| &self.entries[source as usize].node.props.shape);
            let is_sized = inputs.into_iter().all(|dim| dim.as_const().is_some());
            let (count, met) = calls.entry(body.hash()).or_default();
            *count += 1;
            let mut passed = entry.sources.iter().filter(|source| wanted.contains(source));
            let is_shared = passed.any(|&source| !met.insert(source));
            if is_many || is_shared || !is_sized || !body.ranged().is_empty() {
                inlined.insert(body.hash());
            }
        }
        let stays = |(hash, (count, _)): (ContentHash, (usize, _))| {
            (count >= LEAST_USES && !inlined.contains(&hash)).then_some(hash)
        };
        calls.into_iter().filter_map(stays).collect()
    }

    fn outputs(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        self.roots.iter().map(|&root| nodes[root as usize]).collect()
    }

    /// Calls of the bodies `staying` are Functions.
    fn add_to(&self, graph: &mut Graph, mut apart: Apart, staying: &FxHashSet<ContentHash>) -> Result<Vec<NodeId>> {
        let mut nodes: Vec<NodeId> = Vec::with_capacity(self.entries.len());
        // The results of each inlined Function, keyed by its position.
        let mut results: FxHashMap<u32, Vec<NodeId>> = FxHashMap::default();
        let mut tuples: FxHashMap<ContentHash, NodeId> = FxHashMap::default();
        for (position, entry) in self.entries.iter().enumerate() {
            let Entry { node, sources, leaf, is_moved, .. } = entry;
            let of = |position: u32| nodes[position as usize];
            let is_apart = match &apart {
                Apart::Nothing => false,
                Apart::Floats => node.props.dtype.is_float(),
                Apart::Tensors(opening, _) => {
                    let is_tensor = node.identity().is_tensor();
                    if let Some(known) = opening.known(node).filter(|_| is_tensor || leaf.is_some()) {
                        nodes.push(known);
                        continue;
                    }
                    // Kept apart from an equal constant of a gradient rule: a number of the program may change.
                    is_tensor || node.literal().is_some()
                }
            };
            // A node for the value of another one.
            let standing = |graph: &mut Graph, value: NodeId| if is_apart { twin(graph, value) } else { Ok(value) };
            let new = match (node.op, &node.arg, leaf) {
                (.., &Some(slot)) => match &mut apart {
                    Apart::Tensors(opening, flows) if flows[position] => opening.open(graph, node, slot)?,
                    Apart::Nothing if self.literals.contains_key(&(position as u32)) => {
                        graph.constant(self.literals[&(position as u32)])
                    }
                    _ => param(graph, &node.props, slot)?,
                },
                _ if *is_moved => {
                    let (x, offsets, shape) = (of(sources[0]), of(sources[1]), &node.props.shape);
                    match apart {
                        Apart::Nothing => moved::window(graph, node.op, x, offsets, shape)?,
                        _ => {
                            let shape = graph.shape(shape)?;
                            graph.add_unmerged(node.op, &[x, offsets, shape], Arg::None)?
                        }
                    }
                }
                (Op::After, ..) if sources.len() == 1 => standing(graph, of(sources[0]))?,
                (Op::Function, ..) => {
                    let arguments: Vec<NodeId> = sources.iter().map(|&source| of(source)).collect();
                    let body = called(node);
                    if let Some(body) = body.as_ref().filter(|body| staying.contains(&body.hash()))
                        && !tuples.contains_key(&body.hash())
                    {
                        tuples.insert(body.hash(), body.tuple_in(graph)?);
                    }
                    let first = graph.len();
                    let elements = match (body, &mut apart) {
                        (Some(body), _) if staying.contains(&body.hash()) => {
                            body.call(graph, tuples[&body.hash()], &arguments)
                        }
                        (Some(body), Apart::Tensors(opening, _)) => {
                            opening.has_ranged |= !body.ranged().is_empty();
                            body.open(graph, &arguments)
                        }
                        (Some(body), _) => body.inline(graph, &arguments),
                        (None, _) => Ok(vec![]),
                    };
                    // The arguments cause an error inside the body, so it is reported at the call.
                    let elements = elements.map_err(|error| error.at_known(node.location))?;
                    if let Some(location) = node.location {
                        graph.locate_from(first, location.into());
                    }
                    results.insert(position as u32, elements);
                    // A placeholder: GetTuple takes its element from `results`.
                    graph.index(0)
                }
                (Op::GetTuple, Arg::Number(number), _) if sources.first().is_some_and(|f| results.contains_key(f)) => {
                    let elements = &results[&sources[0]];
                    let element = elements.get(*number as usize);
                    standing(graph, *element.unwrap_or_else(|| unreachable!("derive checks the number")))?
                }
                _ => {
                    let sources: SmallVec<[NodeId; 4]> = sources.iter().map(|&source| of(source)).collect();
                    let new = match is_apart {
                        true => graph.add_unmerged(node.op, &sources, node.arg.clone()),
                        false => graph.add(node.op, &sources, node.arg.clone()),
                    };
                    new.map_err(|error| error.at_known(node.location))?
                }
            };
            if let Some(location) = node.location.filter(|_| leaf.is_none()) {
                graph.locate(new, location.into());
            }
            // Histories may lead to the same tensor on a path that a gradient flows through.
            if let Apart::Tensors(opening, flows) = &mut apart
                && flows[position]
            {
                opening.meet(node, new);
            }
            nodes.push(new);
        }
        Ok(nodes)
    }
}

/// A separate node with the same value.
pub(crate) fn twin(graph: &mut Graph, value: NodeId) -> Result<NodeId> {
    let shape = graph.props(value).shape.clone();
    let shape = graph.shape(&shape)?;
    graph.add_unmerged(Op::Reshape, &[value, shape], Arg::None)
}

/// The Param that stands for a tensor in memory.
pub(crate) fn param(graph: &mut Graph, props: &Props, slot: u32) -> Result<NodeId> {
    let Props { shape, dtype, device, .. } = props;
    let shape = graph.shape(shape)?;
    let arg = Arg::Param { slot, dtype: *dtype, device: device.clone(), addrspace: Some(AddrSpace::Global) };
    graph.add(Op::Param, &[shape], arg)
}
