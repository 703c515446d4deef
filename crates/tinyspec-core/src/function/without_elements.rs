//! Kernels written by hand, called with a dim of 0. What the macro has proved holds for dims of at least 1, so the kernel is
//! proved again, for the sizes of the call.

use super::Function;
use crate::Result;
use crate::lazy::Body;
use std::sync::Arc;
use tinyspec_ir::address::behind_after;
use tinyspec_ir::kernel::{self, WrittenKernel};
use tinyspec_ir::signature::{Input, Signature};
use tinyspec_ir::verify::access;
use tinyspec_ir::{Arg, Builder, DType, Dim, Error, ErrorKind, Graph, NodeId, Op, Shape};

/// The call of a kernel for inputs of these shapes; `None` if the function is none, or if it writes nothing.
pub(super) fn call(function: &Function, found: &[(DType, Shape)], dims: &[Dim]) -> Result<Option<Function>> {
    let (signature, graph, outputs) = (function.signature(), function.body().graph(), function.body().outputs());
    let Some(call) = called(graph, outputs) else { return Ok(None) };
    let Some(code) = kernel::code(graph, call) else { return Ok(None) };
    let kernel = WrittenKernel::decode(code)?;
    let first = signature.inputs.len() as u32;
    let size = |slot: u32| dims.get(slot.checked_sub(first)? as usize).cloned();
    let shape = |node: NodeId| graph.props(node).shape.iter().map(|dim| dim.substitute(&size)).collect::<Shape>();
    let is_empty = |shape: Shape| shape.iter().any(|dim| dim.bounds().0 <= 0);
    let is_lowered = kernel.graph.op(kernel.sink) != Op::Sink;
    if is_lowered || outputs.iter().all(|&output| is_empty(shape(output))) {
        return Ok(None);
    }
    let arguments = graph.sources(call).get(1 + kernel.buffers.len()..).unwrap_or(&[]);
    let number = |&node: &NodeId| graph.props(node).value.as_ref()?.first()?.substitute(&size).as_const();
    let Some(numbers) = arguments.iter().map(number).collect::<Option<Vec<i64>>>() else { return Ok(None) };
    let bytes: Arc<[u8]> = bound(&kernel, &numbers)?.encode().into();
    let code = graph.source(graph.source(call, 0), 0);
    let mut sized = Graph::new();
    let outputs = sized.import(graph, outputs, |sized, node| match graph.arg(node) {
        _ if node == code => sized.add(Op::Binary, &[], Arg::Bytes(bytes.clone())).map(Some),
        Arg::Param { slot, dtype: DType::Index, .. } if *slot >= first => {
            Ok(size(*slot).and_then(|size| size.as_const()).map(|size| sized.index(size)))
        }
        _ => Ok(None),
    })?;
    let inputs = signature.inputs.iter().zip(found.iter().cloned());
    let inputs = inputs.map(|(input, (dtype, shape))| Input { name: input.name.clone(), dtype, shape }).collect();
    let signature = Signature { name: signature.name.clone(), dims: vec![], inputs };
    Ok(Some(Function::new(signature, Arc::new(Body::new(sized, outputs)))?))
}

/// The Call whose results these are.
fn called(graph: &Graph, outputs: &[NodeId]) -> Option<NodeId> {
    let &output = outputs.first()?;
    graph.sources(output).get(1).copied().filter(|&call| graph.op(output) == Op::After && graph.op(call) == Op::Call)
}

/// The kernel with these numbers for its dims.
fn bound(kernel: &WrittenKernel, numbers: &[i64]) -> tinyspec_ir::Result<WrittenKernel> {
    let mut graph = Graph::new();
    let roots = graph.import(&kernel.graph, &[kernel.sink], |graph, node| match kernel.graph.arg(node) {
        Arg::Param { slot, dtype: DType::Index, .. } => {
            let position = (*slot as usize).checked_sub(kernel.buffers.len());
            Ok(position.and_then(|position| numbers.get(position)).map(|&number| graph.index(number)))
        }
        _ => Ok(None),
    })?;
    let bound = WrittenKernel { graph, sink: roots[0], ..kernel.clone() };
    let problems = access::problems(&bound.graph, bound.sink, &|_| None, &|_| bound.vouched);
    let Some(problem) = problems.first() else { return Ok(bound) };
    let memory = bound.graph.source(bound.graph.source(problem.node, 0), 0);
    let buffer = match bound.graph.arg(behind_after(&bound.graph, memory)) {
        Arg::Param { slot, .. } => bound.buffers.get(*slot as usize).map_or("a buffer", String::as_str),
        _ => "a buffer",
    };
    let message = format!("a dim is 0 in this call, and nothing shows that the kernel stays inside of `{buffer}` then");
    let help = "put the access into an `if`, or check the size before the call";
    Err(Error::new(ErrorKind::Shape, kernel.name.as_str(), message).help(help))
}
