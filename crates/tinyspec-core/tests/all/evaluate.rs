//! What programs and kernels compute before and after a stage, on the interpreter of their level.

use crate::native;
use std::collections::BTreeMap;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_backends::interpreter::simt::{self, SimtCompiler, SimtRuntime};
use tinyspec_backends::interpreter::{self, array::Array};
use tinyspec_backends::{Grid, LinearKernel};
use tinyspec_core::lower::rangeify::Schedule;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId};

/// Contents of the Params, by slot.
pub type Memory = Vec<Vec<Const>>;

/// The contents of an input: its slot, dtype and length.
pub type Inputs<'a> = &'a dyn Fn(u32, DType, usize) -> Vec<Const>;

fn array(shape: &[usize], values: &[Const], dtype: DType) -> Array {
    Array::new(dtype, shape, values.iter().map(|value| value.bits).collect()).unwrap()
}

/// Values as they lie in memory.
pub fn bytes(values: &[Const]) -> Vec<u8> {
    values.first().map_or(vec![], |first| array(&[values.len()], values, first.dtype).to_bytes())
}

/// What lies in memory as values.
pub fn values(dtype: DType, bytes: &[u8]) -> Vec<Const> {
    Array::from_bytes(dtype, &[bytes.len() / dtype.size()], bytes).unwrap().constants().collect()
}

fn contents(arrays: Vec<Array>) -> Memory {
    arrays.iter().map(|array| array.constants().collect()).collect()
}

/// The Params among some nodes, by slot.
fn params(graph: &Graph, order: &[NodeId]) -> BTreeMap<u32, NodeId> {
    let slot = |node: &NodeId| match graph.arg(*node) {
        Arg::Param { slot, .. } => Some((*slot, *node)),
        _ => None,
    };
    order.iter().filter_map(slot).collect()
}

/// An array a slot; a slot that nothing names has one nobody reads.
fn arrays(graph: &Graph, order: &[NodeId], inputs: Inputs) -> Vec<Array> {
    let params = params(graph, order);
    let count = params.last_key_value().map_or(0, |(&slot, _)| slot + 1);
    let of = |slot: u32| {
        let Some(&node) = params.get(&slot) else { return Array::scalar(Const::int(DType::F32, 0)) };
        let shape: Vec<usize> =
            static_shape(&graph.props(node).shape).unwrap().iter().map(|&dim| dim as usize).collect();
        let dtype = graph.dtype(node);
        array(&shape, &inputs(slot, dtype, shape.iter().product()), dtype)
    };
    (0..count).map(of).collect()
}

/// The elements of the outputs of a tensor graph.
pub fn tensors(graph: &Graph, outputs: &[NodeId], inputs: Inputs) -> Memory {
    let arrays = arrays(graph, &graph.reachable(outputs), inputs);
    contents(interpreter::tensor::evaluate(graph, outputs, &arrays).unwrap())
}

/// The same after Rangeify.
pub fn schedule(schedule: &Schedule, inputs: Inputs) -> Memory {
    let graph = &schedule.graph;
    let arrays = arrays(graph, &graph.reachable_outside_bodies(&[schedule.root]), inputs);
    contents(interpreter::ranges::run_schedule(graph, schedule.root, &arrays).unwrap())
}

/// Runs a kernel in range form.
pub fn ranges(graph: &Graph, sink: NodeId, memory: &mut Memory) {
    let inputs = |slot: u32, _, _| memory[slot as usize].clone();
    let mut buffers = arrays(graph, &graph.reachable(&[sink]), &inputs);
    interpreter::ranges::run_kernel(graph, sink, &mut buffers).unwrap();
    memory.iter_mut().zip(contents(buffers)).for_each(|(before, after)| *before = after);
}

/// Runs a linear kernel, whatever target it was lowered for: the interpreters have every op.
pub fn linear(kernel: &LinearKernel, memory: &mut Memory) {
    if kernel.grid != Grid::default() {
        return native::launch(&SimtRuntime, &SimtCompiler, &simt::target(), kernel, memory, 1.0);
    }
    native::launch(&InterpreterRuntime, &InterpreterCompiler, &interpreter::target(), kernel, memory, 1.0);
}
