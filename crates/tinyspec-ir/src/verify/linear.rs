//! Linear form: an order in which every source comes before its use and inside its loop.

use super::order::{order, registers};
use super::{bounds::bounds, machine::check, refuse, threads::threads};
use crate::{Arg, AxisType, Builder, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;

/// The instruction sequence of a kernel.
///
/// # Errors
/// Names the first instruction that is out of place.
pub fn linear(graph: &Graph, linear: NodeId) -> Result<()> {
    let stage = "verify linear";
    if graph.op(linear) != Op::Linear {
        return refuse(stage, graph, linear, "the root is a Linear");
    }
    // For each instruction, the enclosing loops and conditions.
    let mut scope: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    let mut open: Vec<NodeId> = Vec::new();
    for &node in graph.sources(linear) {
        check(stage, graph, node)?;
        for &source in graph.sources(node) {
            match scope.get(&source) {
                Some(loops) => {
                    // Effects can be waited for after their loop; values are only live inside it.
                    let is_value = graph.props(source).dtype != crate::DType::Void;
                    if is_value && !open.starts_with(loops) && graph.op(node) != Op::End {
                        return refuse(stage, graph, node, format!("uses %{} outside its loop", source.0));
                    }
                }
                // Constants, and shapes of constants, are not listed.
                None if is_static(graph, source) => {}
                None => {
                    return refuse(
                        stage,
                        graph,
                        node,
                        format!("comes before its source, %{} `{}`", source.0, graph.op(source)),
                    );
                }
            }
        }
        match graph.op(node) {
            Op::Range => {
                if is_shared(graph, node) && open.iter().any(|&outer| !is_shared(graph, outer)) {
                    return refuse(stage, graph, node, "is a THREAD loop inside of a serial one");
                }
                open.push(node);
            }
            Op::If => open.push(node),
            Op::End | Op::Endif => {
                let opened = graph.source(node, (graph.op(node) == Op::End) as usize);
                if open.pop() != Some(opened) {
                    return refuse(stage, graph, node, "does not close the innermost open Range or If");
                }
            }
            _ => {}
        }
        scope.insert(node, open.clone());
    }
    match open.first() {
        Some(&opened) => refuse(stage, graph, opened, "is never closed"),
        None => {
            let live = graph.reachable(&[linear]);
            bounds(stage, graph, linear, &live)?;
            registers(stage, graph, &live, &scope)?;
            order(stage, graph, linear, &live)?;
            threads(stage, graph, linear, &live)
        }
    }
}

fn is_shared(graph: &Graph, range: NodeId) -> bool {
    matches!(graph.arg(range), Arg::Range { axis: AxisType::Thread, .. })
}

fn is_static(graph: &Graph, node: NodeId) -> bool {
    let is_const = |node: NodeId| graph.op(node) == Op::Const;
    is_const(node)
        || graph.props(node).value.is_some()
        || (graph.op(node) == Op::Stack && graph.sources(node).iter().all(|&source| is_const(source)))
}
