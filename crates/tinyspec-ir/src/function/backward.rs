//! The gradient of a function, as a function from inputs and cotangents to a gradient for each float input.

use super::inline::import_params;
use super::{CallSite, FIRST_CONSTANT, FIRST_RESULT, Traced};
use crate::dim::Atom;
use crate::gradient::gradient_or_none;
use crate::ops::creation::zeros;
use crate::signature::{Input, Signature};
use crate::{Arg, Builder, DType, Dim, Error, ErrorKind, Graph, NodeId, Op, Result};

impl Traced {
    /// The signature of the backward function: the inputs, and a cotangent for each float result.
    pub fn backward_signature(&self) -> Signature {
        let mut signature = self.signature.clone();
        let first = signature.inputs.len() as u32;
        let floats: Vec<NodeId> =
            self.outputs.iter().copied().filter(|&node| self.graph.dtype(node).is_float()).collect();
        for (number, &output) in floats.iter().enumerate() {
            let name = if floats.len() == 1 { "cotangent".to_string() } else { format!("cotangent {number}") };
            let position = |slot: u32| Some(signature.dim(slot.checked_sub(first)? as usize));
            let position = |slot: u32| if slot < FIRST_CONSTANT { position(slot) } else { None };
            let shape = self.graph.props(output).shape.iter().map(|dim| dim.substitute(&position)).collect();
            signature.inputs.push(Input { name, dtype: self.graph.dtype(output), shape });
        }
        signature
    }

    /// The backward function ("Gradients" in the spec's sense of graph to graph).
    ///
    /// Its inputs are those of this function and a cotangent for each float result, its results a gradient for each float
    /// input (zeros where nothing depends on it). A call's gradient is a call of the callee's.
    ///
    /// # Errors
    /// When an op on the way has no gradient.
    pub fn backward(&self) -> Result<Traced> {
        let inputs = self.signature.inputs.len() as u32;
        let outputs: Vec<NodeId> =
            self.outputs.iter().copied().filter(|&node| self.graph.dtype(node).is_float()).collect();
        let cotangents = outputs.len() as u32;
        let mut roots = outputs.clone();
        for call in &self.calls {
            roots.extend(call.arguments.iter().chain(&call.results));
        }
        // Cotangents come between the inputs and the named dims.
        let mut graph = Graph::new();
        let roots = import_params(&mut graph, &self.graph, &roots, |graph, node| match self.graph.arg(node) {
            Arg::Param { slot, dtype, device, addrspace } if (inputs..FIRST_CONSTANT).contains(slot) => {
                let Atom::Named { min, max, .. } = named(&self.graph, node)? else { return Ok(None) };
                let (shape, min, max) = (graph.shape(&[])?, graph.index(min), graph.index(max));
                let (device, addrspace) = (device.clone(), *addrspace);
                let arg = Arg::Param { slot: slot + cotangents, dtype: *dtype, device, addrspace };
                graph.add(Op::Param, &[shape, min, max], arg).map(Some)
            }
            _ => Ok(None),
        })?;
        let mut roots = roots.into_iter();
        let outputs: Vec<NodeId> = roots.by_ref().take(outputs.len()).collect();
        let mut calls: Vec<CallSite> = vec![];
        for call in &self.calls {
            let arguments = roots.by_ref().take(call.arguments.len()).collect();
            let results = roots.by_ref().take(call.results.len()).collect();
            calls.push(CallSite { arguments, results, ..call.clone() });
        }
        let signature = self.backward_signature();
        let mut wanted = signature.params(&mut graph)?;
        let cotangents = wanted.split_off(inputs as usize);
        wanted.retain(|&input| graph.dtype(input).is_float());
        let pairs: Vec<(NodeId, NodeId)> = outputs.into_iter().zip(cotangents).collect();
        let mut sweep = Sweep { graph, wanted, gradients: vec![], results: 0 };
        sweep.gradients = vec![None; sweep.wanted.len()];
        sweep.results = calls.iter().map(|call| call.results.len() as u32).sum();
        let (graph, outputs) = sweep.run(&pairs, &mut calls)?;
        Ok(Traced { signature, graph, calls, outputs })
    }
}

/// One backward sweep from the outputs, and one from the arguments of each call, last call first.
struct Sweep {
    graph: Graph,
    /// Float inputs.
    wanted: Vec<NodeId>,
    gradients: Vec<Option<NodeId>>,
    /// The number of results of calls so far.
    results: u32,
}

impl Sweep {
    fn run(mut self, outputs: &[(NodeId, NodeId)], calls: &mut Vec<CallSite>) -> Result<(Graph, Vec<NodeId>)> {
        let forward = calls.len();
        // Cotangents of the calls' results.
        let mut cotangents: Vec<Vec<Option<NodeId>>> =
            calls.iter().map(|call| vec![None; call.results.len()]).collect();
        self.from(outputs, &calls[..forward], &mut cotangents)?;
        for number in (0..forward).rev() {
            if cotangents[number].iter().all(Option::is_none) {
                continue;
            }
            let CallSite { callee, arguments, results, .. } = calls[number].clone();
            let floats: Vec<NodeId> =
                arguments.iter().copied().filter(|&node| self.graph.dtype(node).is_float()).collect();
            let mut passed = arguments.clone();
            for (&result, cotangent) in results.iter().zip(&cotangents[number]) {
                let props = self.graph.props(result).clone();
                if props.dtype.is_float() {
                    passed.push(match cotangent {
                        Some(cotangent) => *cotangent,
                        None => zeros(&mut self.graph, &props.shape, props.dtype)?,
                    });
                }
            }
            let mut pairs = vec![];
            for &argument in &floats {
                let props = self.graph.props(argument).clone();
                let gradient = param(&mut self.graph, FIRST_RESULT + self.results, props.dtype, &props.shape)?;
                self.results += 1;
                pairs.push((argument, gradient));
            }
            let results = pairs.iter().map(|(_, gradient)| *gradient).collect();
            calls.push(CallSite { callee, is_gradient: true, arguments: passed, results });
            let (earlier, _) = calls.split_at(number);
            self.from(&pairs, earlier, &mut cotangents)?;
        }
        let Sweep { mut graph, wanted, gradients, .. } = self;
        let mut outputs = vec![];
        for (gradient, input) in gradients.into_iter().zip(wanted) {
            let props = graph.props(input).clone();
            outputs.push(match gradient {
                Some(gradient) => gradient,
                None => zeros(&mut graph, &props.shape, props.dtype)?,
            });
        }
        Ok((graph, outputs))
    }

    /// Adds the contributions of `pairs` of nodes and cotangents to the inputs and to the results of `calls`.
    fn from(
        &mut self,
        pairs: &[(NodeId, NodeId)],
        calls: &[CallSite],
        cotangents: &mut [Vec<Option<NodeId>>],
    ) -> Result<()> {
        let mut wanted = self.wanted.clone();
        let mut places = vec![];
        for (number, call) in calls.iter().enumerate() {
            for (position, &result) in call.results.iter().enumerate() {
                if self.graph.dtype(result).is_float() {
                    wanted.push(result);
                    places.push((number, position));
                }
            }
        }
        let found = gradient_or_none(&mut self.graph, pairs, &wanted)?;
        let (inputs, results) = found.split_at(self.wanted.len());
        for (sum, found) in self.gradients.iter_mut().zip(inputs) {
            add(&mut self.graph, sum, *found)?;
        }
        for ((number, position), found) in places.into_iter().zip(results) {
            add(&mut self.graph, &mut cotangents[number][position], *found)?;
        }
        Ok(())
    }
}

fn add(graph: &mut Graph, sum: &mut Option<NodeId>, more: Option<NodeId>) -> Result<()> {
    *sum = match (*sum, more) {
        (Some(sum), Some(more)) => Some(graph.alu(Op::Add, &[sum, more])?),
        (sum, more) => sum.or(more),
    };
    Ok(())
}

fn param(graph: &mut Graph, slot: u32, dtype: DType, shape: &[Dim]) -> Result<NodeId> {
    let shape = graph.shape(shape)?;
    graph.add(Op::Param, &[shape], Arg::Param { slot, dtype, device: None, addrspace: None })
}

fn named(graph: &Graph, node: NodeId) -> Result<Atom> {
    let dim = graph.props(node).value.as_ref().and_then(|value| value.first()?.as_atom().cloned());
    dim.ok_or_else(|| Error::new(ErrorKind::Verify, "gradient", "a Param that is neither input nor dim"))
}
