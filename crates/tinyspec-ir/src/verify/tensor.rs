//! The tensor graph: no Ranges, no kernels, no machine ops.

use super::refuse;
use crate::custom_function;
use crate::dim::{broadcast, show};
use crate::views::View;
use crate::{Arg, Builder, Category, Graph, NodeId, Op, Result};

/// Checks a tensor graph, as users and traces build it.
///
/// # Errors
/// When a node is not allowed at this stage; the error names the first one.
pub fn tensor(graph: &Graph, roots: &[NodeId]) -> Result<()> {
    let refuse = |node, why: &str| refuse("verify tensor", graph, node, why);
    for node in graph.reachable(roots) {
        match (graph.op(node), graph.arg(node)) {
            (Op::Call, _) if crate::kernel::is_opaque(graph, node) => {}
            (Op::After, _) if !is_result(graph, node) => return refuse(node, "is no result of its Call"),
            (Op::CustomFunction | Op::Custom, _) => {}
            (Op::Range | Op::End | Op::Linear | Op::Call, _) => return refuse(node, "belongs to kernels"),
            (Op::Reduce, Arg::Reduce { axes, .. }) if axes.is_empty() => return refuse(node, "reduces no axis"),
            (Op::Store, _) => {
                let [place, others @ ..] = graph.sources(node) else { continue };
                if let Err(through) = View::of(graph, *place) {
                    let why = match graph.op(through) {
                        Op::Expand => "repeats elements: store to the tensor before it".to_string(),
                        op => {
                            format!("is no view that takes values: store to the tensor before the {op}, under a gate")
                        }
                    };
                    return refuse(node, &format!("stores through %{}, which {why}", through.0));
                }
                let shape = &graph.props(*place).shape;
                let fits =
                    |&other: &NodeId| broadcast(shape, &graph.props(other).shape).is_some_and(|both| both == *shape);
                if let Some(&other) = others.iter().find(|other| !fits(other)) {
                    let what = if other == others[0] { "a value" } else { "a gate" };
                    let (found, wanted) = (show(&graph.props(other).shape), show(shape));
                    let why = format!("stores {what} of shape {found} in {wanted}: it must broadcast to that shape");
                    return refuse(node, &why);
                }
            }
            (op, _) if op.category() == Category::Codegen => return refuse(node, "belongs to generated code"),
            _ => {}
        }
    }
    Ok(())
}

/// Whether an After for a Call is like the buffer with its number, which the Call writes.
fn is_result(graph: &Graph, node: NodeId) -> bool {
    let &[before, call, number] = graph.sources(node) else { return true };
    if !crate::kernel::is_opaque(graph, call) {
        return true;
    }
    let number = graph.as_int(number).and_then(|number| usize::try_from(number).ok());
    let Some((number, &buffer)) = number.and_then(|number| Some((number, graph.sources(call).get(1 + number)?))) else {
        return false;
    };
    let (is, wants) = (graph.props(before), graph.props(buffer));
    let is_written = custom_function::of_call(graph, call).is_none_or(|function| number < function.written());
    is_written && is.dtype == wants.dtype && is.shape == wants.shape
}
