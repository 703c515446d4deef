//! Functions as text: the graphs of their bodies.

use super::Function;
use crate::custom_function::find;
use crate::lazy::Body;
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tinyspec_ir::custom_function;
use tinyspec_ir::dim::Name;
use tinyspec_ir::kernel::{WrittenKernel, code};
use tinyspec_ir::signature::{Input, NamedDim, Signature};
use tinyspec_ir::{Arg, Builder, DType, Dim, ErrorKind, Graph, NodeId, Op, Shape, text, verify};

/// The graph of the body over Params, which are numbered like the inputs; behind those come the named dims. It returns the Tuple of
/// results, and then the Params that the body does not use.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut graph, outputs) = (self.body.graph().clone(), self.body.outputs());
        let used = params(&graph, outputs);
        let all = |graph: &mut Graph| -> tinyspec_ir::Result<Vec<NodeId>> {
            let mut roots = vec![graph.add(Op::Tuple, outputs, Arg::None)?];
            let mut params = self.signature.params(graph)?;
            for (slot, dim) in (params.len() as u32..).zip(&self.signature.dims) {
                params.push(graph.dim(&dim.at(slot))?);
            }
            let unused = (0..).zip(params).filter(|(slot, _)| !used.contains_key(slot));
            roots.extend(unused.map(|(_, param)| param));
            Ok(roots)
        };
        let roots = all(&mut graph).map_err(|_| fmt::Error)?;
        f.write_str(&text::print(&graph, &roots))
    }
}

/// The Params outside of bodies, by slot.
pub(super) fn params(graph: &Graph, roots: &[NodeId]) -> FxHashMap<u32, NodeId> {
    let slot = |node| match *graph.arg(node) {
        Arg::Param { slot, .. } => Some((slot, node)),
        _ => None,
    };
    graph.reachable_outside_bodies(roots).into_iter().filter_map(slot).collect()
}

/// Reads a tensor graph: one that a function was printed as, or any whose Params are numbered from 0 on, such as those of
/// `TINYSPEC_DEBUG=5`. Named dims are numbered behind the other Params.
///
/// ```
/// # use tinyspec_core::{Function, Tensor};
/// let double: Function = "
///     %0 = const[index 3]
///     %1 = stack(%0)
///     %2 = param[0 f32](%1)
///     %3 = add(%2, %2)
///     return %3
/// ".parse()?;
/// assert_eq!(double.call(&[&Tensor::from_slice(&[1f32, 2.0, 3.0], [3])])[0].to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// # Errors
/// When the text is not a tensor graph, a Param is missing, or it holds kernels written by hand that are not proved to stay within
/// their buffers.
impl FromStr for Function {
    type Err = Error;

    fn from_str(text: &str) -> Result<Function> {
        let (graph, roots) = text::parse(text)?;
        let outputs = match roots.first() {
            Some(&tuple) if graph.op(tuple) == Op::Tuple => graph.sources(tuple).to_vec(),
            _ => roots.clone(),
        };
        verify::tensor(&graph, &outputs)?;
        proved(&graph, &outputs)?;
        let signature = signature(&graph, &roots)?;
        Ok(Function::new(signature, Arc::new(Body::new(graph, outputs)))?)
    }
}

/// Checks the code in a graph that anybody may have written.
fn proved(graph: &Graph, roots: &[NodeId]) -> Result<()> {
    for node in graph.reachable(roots) {
        if let Some(code) = code(graph, node) {
            verify::hand_written(&WrittenKernel::decode(code)?)?;
        } else if let Some(function) = custom_function::of_call(graph, node) {
            // Its shapes are checked when it is planned.
            find(&function.name)?;
        } else if matches!(graph.op(node), Op::Custom | Op::Call) {
            let error =
                tinyspec_ir::Error::new(ErrorKind::Unsupported, graph.op(node).name(), "is code that nothing checks");
            return Err(error.help("leave it out, or call it from the program that reads the text").into());
        }
    }
    Ok(())
}

/// Inputs and dims, as the Params say.
fn signature(graph: &Graph, roots: &[NodeId]) -> Result<Signature> {
    let refuse = |why: String| Err(Error::refused(ErrorKind::Arity, "function", why));
    let found = params(graph, roots);
    let is_dim = |node: NodeId| graph.dtype(node) == DType::Index;
    let count = found.values().filter(|&&node| !is_dim(node)).count() as u32;
    let slot_of = |slot: u32| slot.checked_sub(count);
    let mut signature = Signature { name: "function".into(), dims: Vec::new(), inputs: Vec::new() };
    for slot in 0..found.len() as u32 {
        let Some(&param) = found.get(&slot) else {
            return refuse(format!(
                "Param {slot} is missing: return it behind the Tuple of results if nothing uses it"
            ));
        };
        let props = graph.props(param);
        match is_dim(param) {
            true if slot < count => return refuse(format!("Param {slot} is a named dim: those come last")),
            true => {
                let name = props.value.as_deref().and_then(|value| value.first()?.names().into_iter().next());
                let Some(Name { min, max, .. }) = name else {
                    return refuse(format!(
                        "Param {slot} is an index without bounds: a named dim is `param[{slot} index](shape, min, max)`"
                    ));
                };
                signature.dims.push(NamedDim { min, max, ..NamedDim::new(format!("d{}", slot - count)) });
            }
            false => {
                let own = |dim: &Dim| dim.substitute(&|slot| named(graph, &found, slot, slot_of(slot)?));
                let shape: Shape = props.shape.iter().map(own).collect();
                signature.inputs.push(Input { name: format!("argument {slot}"), dtype: props.dtype, shape });
            }
        }
    }
    Ok(signature)
}

/// A dim of the graph by its position among the dims.
fn named(graph: &Graph, params: &FxHashMap<u32, NodeId>, slot: u32, position: u32) -> Option<Dim> {
    let value = graph.props(*params.get(&slot)?).value.as_deref()?.first()?;
    let Name { min, max, .. } = value.names().into_iter().next()?;
    Some(Dim::named(position, min, max))
}
