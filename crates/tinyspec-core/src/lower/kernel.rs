//! A kernel from range form to what a compiler takes: Optimize, Expand, Select, Linearize, and its part of Plan.

use super::optimize::OptOp;
use super::{expand, linearize, optimize, select};
use std::sync::OnceLock;
use tinyspec_backends::{LinearKernel, Target};
use tinyspec_ir::{AddrSpace, Arg, AxisType, DType, Graph, NodeId, Op, Result, verify};

/// Lowers a kernel by the target's heuristics.
///
/// # Errors
/// When the kernel is not in range form.
pub fn lower_kernel(graph: &mut Graph, sink: NodeId, name: &str, target: &Target) -> Result<LinearKernel> {
    lower_kernel_with_schedule(graph, sink, name, target).map(|(kernel, _)| kernel)
}

/// As [`lower_kernel`], with the schedule that was chosen.
///
/// # Errors
/// As [`lower_kernel`].
pub fn lower_kernel_with_schedule(
    graph: &mut Graph,
    sink: NodeId,
    name: &str,
    target: &Target,
) -> Result<(LinearKernel, Vec<OptOp>)> {
    // Only what this kernel needs: the passes' tables are as long as the graph.
    let mut own = Graph::new();
    let roots = own.import(graph, &[sink], |_, _| Ok(None))?;
    let sink = roots.first().copied().unwrap_or(sink);
    let params = own.reachable(&[sink]).into_iter().filter_map(|node| param_slot(&own, node)).max();
    let (sink, ops) = optimize::optimize(&mut own, sink, target)?;
    if verifying() {
        verify::ranges(&own, sink)?;
    }
    let mut kernel = finish(own, sink, name, target)?;
    kernel.params = params.map_or(0, |slot| slot as usize + 1);
    Ok((kernel, ops))
}

/// Lowers a kernel whose axes have their types already.
///
/// # Errors
/// When the kernel is not in the form that Optimize leaves.
pub fn finish(mut graph: Graph, sink: NodeId, name: &str, target: &Target) -> Result<LinearKernel> {
    let verify = verifying();
    let sink = expand::expand(&mut graph, sink)?;
    if verify {
        verify::tiles(&graph, sink)?;
    }
    let sink = select::select(&mut graph, sink, target)?;
    if verify {
        verify::machine(&graph, sink)?;
    }
    let linear = linearize::linearize(&mut graph, sink)?;
    if verify {
        verify::linear(&graph, linear)?;
    }
    Ok(plan(graph, linear, name))
}

/// Check every stage: in debug builds, and where the environment asks for it.
fn verifying() -> bool {
    static VERIFY: OnceLock<bool> = OnceLock::new();
    *VERIFY.get_or_init(|| cfg!(debug_assertions) || std::env::var_os("TINYSPEC_VERIFY").is_some_and(|set| set == "1"))
}

/// Lays LOCAL buffers out one after the other, each at a multiple of a cache line.
fn plan(graph: Graph, linear: NodeId, name: &str) -> LinearKernel {
    let mut kernel = LinearKernel {
        linear,
        name: name.into(),
        params: 0,
        local_offsets: Vec::new(),
        scratch_bytes: 0,
        global_trips: 1,
        graph: Graph::new(),
    };
    for &node in graph.sources(linear) {
        match graph.arg(node) {
            Arg::Buffer { slot, dtype, addrspace: AddrSpace::Local, .. } => {
                kernel.local_offsets.push((*slot, kernel.scratch_bytes));
                let count = tinyspec_ir::Builder::props(&graph, node).element_count().as_const().unwrap_or(0);
                kernel.scratch_bytes += (count.max(0) as usize * dtype.size()).next_multiple_of(64);
            }
            Arg::Range { axis: AxisType::Global, .. } => {
                kernel.global_trips = graph.as_int(graph.source(node, 0)).map_or(1, |trips| trips as usize);
            }
            _ => {}
        }
        if let Some(slot) = param_slot(&graph, node) {
            kernel.params = kernel.params.max(slot as usize + 1);
        }
    }
    kernel.graph = graph;
    kernel
}

/// The slot of a Param that is memory.
fn param_slot(graph: &Graph, node: NodeId) -> Option<u32> {
    match graph.arg(node) {
        Arg::Param { slot, dtype, .. } if graph.op(node) == Op::Param && *dtype != DType::Index => Some(*slot),
        _ => None,
    }
}
