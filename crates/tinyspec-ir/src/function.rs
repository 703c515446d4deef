//! A traced function whose callees and outer constants are still unknown, as `#[function]` embeds it.
//!
//! Inputs, named dims, outer constants and results of calls are Params, which are distinguished by their slots.

mod backward;
mod inline;

pub use inline::{function_values, inline, inline_all, inline_known, own_gradient, replace_functions};

use crate::encode::{Reader, Writer, decode, encode};
use crate::ops::Literal;
use crate::signature::{Input, NamedDim, Signature};
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, Graph, Location, NodeId, Op, Result};
use rustc_hash::FxHashMap;

/// Slot of the first outer constant.
pub const FIRST_CONSTANT: u32 = 1 << 16;
/// Slot of the first result of a call.
pub const FIRST_RESULT: u32 = 1 << 20;

/// A function with a gradient of its own, as two closed graphs over Params: inputs, then named dims; for the gradient inputs, a
/// cotangent for each float result, then named dims.
#[derive(Clone, Debug)]
pub struct OwnGradient {
    /// The nodes of the function.
    pub body: Graph,
    /// Its results.
    pub outputs: Vec<NodeId>,
    /// The nodes of the gradient.
    pub backward: Graph,
    /// A gradient for each float input.
    pub gradients: Vec<NodeId>,
}

/// A call whose body is not in the graph.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// Number of the callee in the caller's table.
    pub callee: u32,
    /// Whether it calls the callee's gradient: on its inputs and a cotangent for each of its float results, this gives
    /// a gradient for each of its float inputs.
    pub is_gradient: bool,
    /// Arguments in the callee's order.
    pub arguments: Vec<NodeId>,
    /// Params that stand for the results.
    pub results: Vec<NodeId>,
}

/// A function: its signature, its graph, and its unresolved calls and constants.
///
/// Slots of Params: inputs from 0, then the named dims in the signature's order; outer constants from
/// [`FIRST_CONSTANT`]; results of calls from [`FIRST_RESULT`].
#[derive(Clone, Debug)]
pub struct Traced {
    /// Name, dims and inputs.
    pub signature: Signature,
    /// The nodes.
    pub graph: Graph,
    /// Calls of other functions; arguments come before results.
    pub calls: Vec<CallSite>,
    /// The results.
    pub outputs: Vec<NodeId>,
}

impl Traced {
    /// The bytes that a binary embeds. They include lines of the source, but not its file.
    pub fn encode(&self) -> Vec<u8> {
        let mut roots = self.outputs.clone();
        for call in &self.calls {
            roots.extend(call.arguments.iter().chain(&call.results));
        }
        let mut writer = Writer::default();
        writer.text(&self.signature.name);
        writer.number(self.signature.dims.len() as u64);
        for NamedDim { name, min, max, implied } in &self.signature.dims {
            writer.text(name);
            writer.number(*min as u64);
            writer.number(*max as u64);
            writer.number(*implied as u64);
        }
        // Shapes of the inputs are those of their Params, encoded as roots of a small separate graph.
        let mut shapes = Graph::new();
        let mut inputs = Vec::new();
        writer.number(self.signature.inputs.len() as u64);
        for Input { name, dtype, shape } in &self.signature.inputs {
            writer.text(name);
            writer.byte(*dtype as u8);
            // `derive` has already accepted this shape.
            inputs.push(shapes.shape(shape).unwrap_or_else(|error| unreachable!("{error}")));
        }
        writer.block(&encode(&shapes, &inputs));
        writer.number(self.outputs.len() as u64);
        writer.number(self.calls.len() as u64);
        for CallSite { callee, is_gradient, arguments, results } in &self.calls {
            writer.number(*callee as u64);
            writer.byte(*is_gradient as u8);
            writer.number(arguments.len() as u64);
            writer.number(results.len() as u64);
        }
        writer.block(&encode(&self.graph, &roots));
        // Encoded nodes are numbered in walk order.
        let live = self.graph.reachable(&roots);
        let places: Vec<(usize, &Location)> = live
            .iter()
            .enumerate()
            .filter_map(|(number, &node)| Some((number, self.graph.locations(node).first()?)))
            .collect();
        writer.number(places.len() as u64);
        for (number, location) in places {
            writer.number(number as u64);
            writer.number(location.line as u64);
            writer.number(location.column as u64);
        }
        writer.into_bytes()
    }

    /// The function in `bytes`, written in `file`.
    ///
    /// # Errors
    /// When the bytes are not such a function, or contain something that [`crate::derive()`] refuses.
    pub fn decode(bytes: &[u8], file: &str) -> Result<Traced> {
        let damaged = || Error::new(ErrorKind::Parse, "decode", "the embedded function is damaged");
        let mut reader = Reader::new(bytes);
        let name = reader.text()?;
        let mut dims = vec![];
        for _ in 0..reader.count()? {
            let name = reader.text()?;
            let [min, max, implied] = [reader.number()? as i64, reader.number()? as i64, reader.number()? as i64];
            dims.push(NamedDim { name, min, max, implied });
        }
        let mut named = vec![];
        for _ in 0..reader.count()? {
            let name = reader.text()?;
            named.push((name, DType::from_number(reader.byte()?).ok_or_else(damaged)?));
        }
        let (shapes, shape_roots) = decode(reader.block()?)?;
        let mut inputs = vec![];
        for (position, (name, dtype)) in named.into_iter().enumerate() {
            let root = *shape_roots.get(position).ok_or_else(damaged)?;
            let shape = shapes.props(root).value.clone().ok_or_else(damaged)?;
            inputs.push(Input { name, dtype, shape });
        }
        let output_count = reader.count()?;
        let mut counts = vec![];
        for _ in 0..reader.count()? {
            counts.push((reader.number()? as u32, reader.byte()? != 0, reader.count()?, reader.count()?));
        }
        let (mut graph, roots) = decode(reader.block()?)?;
        let mut roots = roots.into_iter();
        let mut take = |count: usize| -> Result<Vec<NodeId>> {
            let taken: Vec<NodeId> = roots.by_ref().take(count).collect();
            if taken.len() == count { Ok(taken) } else { Err(damaged()) }
        };
        let outputs = take(output_count)?;
        let mut calls = vec![];
        for (callee, is_gradient, arguments, results) in counts {
            calls.push(CallSite { callee, is_gradient, arguments: take(arguments)?, results: take(results)? });
        }
        let file: std::sync::Arc<str> = file.into();
        for _ in 0..reader.count()? {
            let node = NodeId(reader.number()? as u32);
            let (line, column) = (reader.number()? as u32, reader.number()? as u32);
            if node.index() >= graph.len() {
                return Err(damaged());
            }
            graph.locate(node, Location { file: file.clone(), line, column });
        }
        if !reader.is_done() {
            return Err(damaged());
        }
        Ok(Traced { signature: Signature { name, dims, inputs }, graph, calls, outputs })
    }

    /// The signature with the values of outer constants.
    pub fn signature_with(&self, constants: &[Const]) -> Signature {
        let value = |slot: u32| {
            let value = constants.get(slot.checked_sub(FIRST_CONSTANT)? as usize)?;
            i64::try_from(value.as_int()?).ok().map(Dim::from)
        };
        let mut signature = self.signature.clone();
        for input in &mut signature.inputs {
            input.shape = input.shape.iter().map(|dim| dim.substitute(&value)).collect();
        }
        signature
    }

    /// The closed graph and its results: constants get their values, and `call` gives the results of a callee on
    /// arguments.
    ///
    /// # Errors
    /// When `call` refuses, when [`crate::derive()`] refuses the known values, or when a constant is missing or cannot
    /// be represented in the dtype of the other operand.
    pub fn resolve(
        &self,
        constants: &[Const],
        mut call: impl FnMut(&mut Graph, &CallSite, &[NodeId]) -> Result<Vec<NodeId>>,
    ) -> Result<(Graph, Vec<NodeId>)> {
        let mut results_of: FxHashMap<NodeId, (usize, usize)> = FxHashMap::default();
        let mut roots = self.outputs.clone();
        for (number, site) in self.calls.iter().enumerate() {
            roots.extend(&site.arguments);
            results_of.extend(site.results.iter().enumerate().map(|(position, &node)| (node, (number, position))));
        }
        let live = self.graph.reachable(&roots);
        let mut map: Vec<Option<NodeId>> = vec![None; self.graph.len()];
        let mut called: Vec<Option<Vec<NodeId>>> = vec![None; self.calls.len()];
        let mut graph = Graph::new();
        let lost = || Error::new(ErrorKind::Verify, "function", "a result stands before the arguments of its call");
        for node in live {
            let new = match (self.graph.op(node), self.graph.arg(node)) {
                (Op::Param, Arg::Param { slot, .. }) if *slot >= FIRST_RESULT => {
                    let (number, position) = *results_of.get(&node).ok_or_else(lost)?;
                    if called[number].is_none() {
                        let site = &self.calls[number];
                        let arguments: Option<Vec<NodeId>> =
                            site.arguments.iter().map(|node| map[node.index()]).collect();
                        called[number] = Some(call(&mut graph, site, &arguments.ok_or_else(lost)?)?);
                    }
                    *called[number].as_ref().and_then(|results| results.get(position)).ok_or_else(lost)?
                }
                (Op::Param, Arg::Param { slot, dtype, .. }) if *slot >= FIRST_CONSTANT => {
                    let value = constants.get((*slot - FIRST_CONSTANT) as usize);
                    let value =
                        value.ok_or_else(|| Error::new(ErrorKind::Verify, "function", "a constant is missing"))?;
                    let literal = match value.as_float() {
                        Some(float) => Literal::Float(float),
                        None => Literal::Int(value.as_int().unwrap_or_default()),
                    };
                    let value = literal.constant(*dtype).map_err(|error| match self.graph.locations(node).first() {
                        Some(place) => error.at(place.clone()),
                        None => error,
                    })?;
                    graph.constant(value)
                }
                (op, arg) => {
                    let sources: Option<Vec<NodeId>> =
                        self.graph.sources(node).iter().map(|source| map[source.index()]).collect();
                    let sources = sources.ok_or_else(lost)?;
                    let located = |error: Error| match self.graph.locations(node).first() {
                        Some(place) => error.at(place.clone()),
                        None => error,
                    };
                    // A size that is now known becomes a number of the required dtype.
                    let known =
                        sources.first().and_then(|&size| graph.props(size).value.clone()).filter(|_| op == Op::Cast);
                    let new = match (known.as_deref(), arg) {
                        (Some([size]), Arg::DType(dtype)) if size.as_const().is_some() => {
                            crate::ops::creation::size(&mut graph, size, *dtype)?
                        }
                        _ => graph.add(op, &sources, arg.clone()).map_err(located)?,
                    };
                    // Once constants have values, shapes and sizes are emitted as if the trace had known them.
                    let value = graph.props(new).value.clone().filter(|_| !constants.is_empty());
                    match (op, value.as_deref()) {
                        (Op::Stack, Some(shape)) => graph.shape(shape)?,
                        (Op::Add | Op::Mul | Op::Idiv | Op::Mod | Op::Max, Some([size])) => graph.dim(size)?,
                        _ => new,
                    }
                }
            };
            for location in self.graph.locations(node) {
                graph.locate(new, location.clone());
            }
            map[node.index()] = Some(new);
        }
        let outputs: Option<Vec<NodeId>> = self.outputs.iter().map(|node| map[node.index()]).collect();
        Ok((graph, outputs.ok_or_else(lost)?))
    }
}
