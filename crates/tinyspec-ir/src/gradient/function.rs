//! The gradient of a Function: a Function of its arguments and of a cotangent for each result that has one, so that what is
//! called often is differentiated once. A gradient of the Function's own is inlined, unless it is called like the Function:
//! compiled once for all sizes of a dim with bounds.

use super::gradient_or_none;
use super::total::Cotangents;
use crate::function::{function_values, inline, own_gradient};
use crate::ops::creation::zeros;
use crate::signature::NamedDim;
use crate::{Arg, Builder, DType, Device, Dim, Error, ErrorKind, Graph, NodeId, Op, Result, Shape};
use rustc_hash::FxHashMap;

/// Derived gradients of the Functions of one graph.
#[derive(Default)]
pub(super) struct Functions(FxHashMap<Key, Derived>);

/// The cache key of a derived gradient.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    tuple: NodeId,
    /// The arguments that are dims.
    dims: Vec<NodeId>,
    /// The shapes and devices of the others.
    kinds: Vec<(Shape, Option<Device>)>,
    /// Whether each result has a cotangent.
    given: Vec<bool>,
    /// Whether the gradient of each argument is wanted.
    wanted: Vec<bool>,
}

struct Derived {
    /// The gradients, over the arguments that are not dims and the cotangents.
    tuple: NodeId,
    /// The positions of the arguments that they belong to.
    positions: Vec<usize>,
}

impl Functions {
    /// Adds the contributions of a Function to the gradients of its arguments.
    pub(super) fn differentiate(
        &mut self,
        graph: &mut Graph,
        function: NodeId,
        connected: &[bool],
        cotangents: &mut Cotangents,
    ) -> Result<()> {
        let elements = function_values(graph, function);
        let mut passed: Vec<Option<NodeId>> = Vec::with_capacity(elements.len());
        for (number, &element) in (0u32..).zip(&elements) {
            let result = graph.add(Op::GetTuple, &[function], Arg::Number(number))?;
            passed.push(match graph.dtype(element).is_float() {
                true => cotangents.of(graph, result)?,
                false => None,
            });
        }
        if passed.iter().all(Option::is_none) {
            return Ok(());
        }
        let arguments: Vec<NodeId> = graph.sources(function)[1..].to_vec();
        let (inputs, dims): (Vec<NodeId>, Vec<NodeId>) =
            arguments.into_iter().partition(|&argument| graph.dtype(argument) != DType::Index);
        let contributions = match own_gradient(graph, function) {
            Some(gradients) => by_own(graph, function, gradients, &inputs, &dims, passed, connected)?,
            None => self.by_derived(graph, function, &inputs, dims, &passed, connected)?,
        };
        for (input, contribution) in contributions {
            cotangents.add(input, contribution);
        }
        Ok(())
    }

    fn by_derived(
        &mut self,
        graph: &mut Graph,
        function: NodeId,
        inputs: &[NodeId],
        dims: Vec<NodeId>,
        passed: &[Option<NodeId>],
        connected: &[bool],
    ) -> Result<Vec<(NodeId, NodeId)>> {
        let kind = |&input: &NodeId| {
            let props = graph.props(input);
            (props.shape.clone(), props.device.clone())
        };
        let kinds: Vec<(Shape, Option<Device>)> = inputs.iter().map(kind).collect();
        if !kinds.iter().flat_map(|(shape, _)| shape).all(|dim| dim.as_const().is_some()) {
            let message = "inline Functions of sizes that are not known before taking a gradient";
            return Err(Error::new(ErrorKind::Gradient, "function", message));
        }
        let is_wanted = |&input: &NodeId| connected[input.index()] && graph.dtype(input).is_float();
        let key = Key {
            tuple: graph.source(function, 0),
            dims,
            kinds,
            given: passed.iter().map(Option::is_some).collect(),
            wanted: inputs.iter().map(is_wanted).collect(),
        };
        let derived = match self.0.get(&key) {
            Some(derived) => derived,
            None => {
                let derived = derive(graph, function, inputs, &key)?;
                self.0.entry(key).or_insert(derived)
            }
        };
        if derived.positions.is_empty() {
            return Ok(Vec::new());
        }
        let cotangents: Vec<NodeId> = passed.iter().flatten().copied().collect();
        let call = graph.add(Op::Function, &[&[derived.tuple], inputs, &cotangents].concat(), Arg::None)?;
        let contribution = |(number, &position): (u32, &usize)| {
            Ok((inputs[position], graph.add(Op::GetTuple, &[call], Arg::Number(number))?))
        };
        (0u32..).zip(&derived.positions).map(contribution).collect()
    }
}

/// Differentiates the body of a Function.
fn derive(graph: &mut Graph, function: NodeId, inputs: &[NodeId], key: &Key) -> Result<Derived> {
    let mut body = Graph::new();
    let mut param = |graph: &Graph, slot: usize, like: NodeId| {
        let props = graph.props(like);
        let (dtype, device) = (props.dtype, props.device.clone());
        let shape = body.shape(&props.shape)?;
        body.add(Op::Param, &[shape], Arg::Param { slot: slot as u32, dtype, device, addrspace: None })
    };
    let params: Vec<NodeId> =
        inputs.iter().enumerate().map(|(slot, &input)| param(graph, slot, input)).collect::<Result<_>>()?;
    let mut pairs: Vec<(usize, NodeId)> = Vec::new();
    for (number, _) in key.given.iter().enumerate().filter(|(_, given)| **given) {
        let result = graph.add(Op::GetTuple, &[function], Arg::Number(number as u32))?;
        pairs.push((number, param(graph, inputs.len() + pairs.len(), result)?));
    }
    let dims = body.import(graph, &key.dims, |_, _| Ok(None))?;
    let elements = function_values(graph, function);
    let results = inline(&mut body, graph, &elements, &[&params[..], &dims].concat())?;
    let pairs: Vec<(NodeId, NodeId)> = pairs.into_iter().map(|(number, given)| (results[number], given)).collect();
    let (positions, wanted): (Vec<usize>, Vec<NodeId>) =
        params.iter().copied().enumerate().filter(|&(position, _)| key.wanted[position]).unzip();
    let found = gradient_or_none(&mut body, &pairs, &wanted)?;
    let found = positions.into_iter().zip(found).filter_map(|(position, found)| Some((position, found?)));
    let (positions, gradients): (Vec<usize>, Vec<NodeId>) = found.unzip();
    let gradients = graph.import(&body, &gradients, |_, _| Ok(None))?;
    let tuple = graph.add(Op::Tuple, &gradients, Arg::None)?;
    Ok(Derived { tuple, positions })
}

/// Calls a Function's own gradient: the contributions to its float arguments.
fn by_own(
    graph: &mut Graph,
    function: NodeId,
    gradients: Vec<NodeId>,
    inputs: &[NodeId],
    dims: &[NodeId],
    passed: Vec<Option<NodeId>>,
    connected: &[bool],
) -> Result<Vec<(NodeId, NodeId)>> {
    let mut all = inputs.to_vec();
    let results = graph.props(function).elements.clone().unwrap_or_default();
    for (cotangent, props) in passed.into_iter().zip(&*results).filter(|(_, props)| props.dtype.is_float()) {
        all.push(match cotangent {
            Some(cotangent) => cotangent,
            None => zeros(graph, &props.shape, props.dtype)?,
        });
    }
    all.extend(dims);
    let floats = inputs.iter().copied().filter(|&input| graph.dtype(input).is_float());
    // An index stands for the absence of a gradient.
    let is_asked =
        |(input, gradient): &(NodeId, NodeId)| connected[input.index()] && graph.dtype(*gradient) != DType::Index;
    let (inputs, gradients): (Vec<NodeId>, Vec<NodeId>) = floats.zip(gradients).filter(is_asked).unzip();
    if gradients.is_empty() {
        return Ok(Vec::new());
    }
    let contributions: Vec<NodeId> = if is_ranged(graph, &gradients, dims) {
        let tuple = graph.add(Op::Tuple, &gradients, Arg::None)?;
        let call = graph.add(Op::Function, &[&[tuple], &all[..]].concat(), Arg::None)?;
        let numbers = 0..gradients.len() as u32;
        numbers.map(|number| graph.add(Op::GetTuple, &[call], Arg::Number(number))).collect::<Result<_>>()?
    } else {
        let mut body = Graph::new();
        let gradients = body.import(graph, &gradients, |_, _| Ok(None))?;
        inline(graph, &body, &gradients, &all)?
    };
    Ok(inputs.into_iter().zip(contributions).collect())
}

/// Whether the gradient is compiled once for all sizes of a dim with bounds: then it is called like the function.
fn is_ranged(graph: &Graph, gradients: &[NodeId], dims: &[NodeId]) -> bool {
    let has_bounds = |&node: &NodeId| {
        let value = graph.props(node).value.as_deref().filter(|_| graph.op(node) == Op::Param);
        value.is_some_and(|value| value.iter().flat_map(Dim::names).any(|name| name.max < NamedDim::MAX))
    };
    dims.iter().all(|&dim| graph.as_int(dim).is_some()) && graph.reachable(gradients).iter().any(has_bounds)
}
