//! Command buffers as graphs: `Tuple(After(buffer, Linear(Call…)) …)` (the spec's "from Tensor programs to Command Buffers").
//!
//! The Linear runs its Calls in order. A Call is `(kernel, buffers…, dims…)`: its kernel is a Sink in range form, or, if somebody
//! wrote it by hand, a CustomFunction with its name over a Sink, a Linear or a Program. Or it calls a
//! [custom function](crate::custom_function), which is told the dtypes and shapes of its arguments:
//! `Bitcast(Reshape(buffer, shape))`, where they differ from the buffer's. A buffer is a Param, which each run binds, a Buffer, a
//! Binary, which holds constants, or a part of one: `Shrink(Reshape(…))`, along its only axis. The results are Buffers, or Params
//! that are overwritten, as they are after the Linear, in the results' shapes; all other Buffers are temporaries.
//!
//! ```
//! use tinyspec_ir::{commands, text, verify};
//! let (graph, roots) = text::parse(
//!     "
//!     %0 = const[index 4]
//!     %1 = stack(%0)
//!     %2 = range[0 loop](%0)
//!     %3 = param[1 f32 global](%1)
//!     %4 = index(%3, %2)
//!     %5 = load[reg](%4)
//!     %6 = add(%5, %5)
//!     %7 = param[0 f32 global](%1)
//!     %8 = index(%7, %2)
//!     %9 = store(%8, %6)
//!     %10 = end(%9, %2)
//!     %11 = sink(%10)
//!     %12 = buffer[0 f32 global](%1)
//!     %13 = buffer[1 f32 global](%1)
//!     %14 = param[0 f32 global](%1)
//!     %15 = call(%11, %12, %14)
//!     %16 = call(%11, %13, %12)
//!     %17 = linear(%15, %16)
//!     %18 = after(%13, %17)
//!     %19 = tuple(%18)
//!     return %19
//! ",
//! )?;
//! verify::commands(&graph, roots[0])?;
//! assert_eq!(graph.sources(commands::linear(&graph, roots[0])?).len(), 2);
//! # Ok::<(), tinyspec_ir::Error>(())
//! ```

use crate::custom_function;
use crate::{Arg, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};
use rustc_hash::FxHashSet;

/// The Linear of a command buffer.
///
/// # Errors
/// When the root is not a Tuple of a Linear's results.
pub fn linear(graph: &Graph, root: NodeId) -> Result<NodeId> {
    let refuse = |why: &str| Err(Error::new(ErrorKind::Verify, "command buffer", why));
    if graph.op(root) != Op::Tuple {
        return refuse("its root is a Tuple of results");
    }
    let mut linears = graph.sources(root).iter().map(|&result| match graph.sources(state(graph, result)) {
        &[_, linear] if graph.op(state(graph, result)) == Op::After && graph.op(linear) == Op::Linear => Some(linear),
        _ => None,
    });
    match linears.next() {
        Some(Some(first)) if linears.all(|other| other == Some(first)) => Ok(first),
        Some(Some(_)) => refuse("its results are buffers after one Linear"),
        Some(None) => refuse("a result is a buffer after a Linear of Calls"),
        None => refuse("it has no result"),
    }
}

/// A result without its shape.
fn state(graph: &Graph, mut result: NodeId) -> NodeId {
    while graph.op(result) == Op::Reshape {
        result = graph.source(result, 0);
    }
    result
}

/// The buffer behind a result, a state or a part.
pub fn base(graph: &Graph, mut node: NodeId) -> NodeId {
    while matches!(graph.op(node), Op::After | Op::Shrink | Op::Reshape | Op::Bitcast) {
        node = graph.source(node, 0);
    }
    node
}

/// The first element of a buffer that a part of it covers; `None` if it is the whole buffer.
pub fn offset(graph: &Graph, mut part: NodeId) -> Option<i64> {
    let mut offset: Option<i64> = None;
    while matches!(graph.op(part), Op::After | Op::Shrink | Op::Reshape | Op::Bitcast) {
        if graph.op(part) == Op::Shrink {
            let own = graph.props(graph.source(part, 1)).value.as_deref().and_then(|value| value.first()?.as_const());
            offset = Some(offset.unwrap_or(0).saturating_add(own.unwrap_or(0)));
        }
        part = graph.source(part, 0);
    }
    offset
}

/// The number of buffers that a kernel or a custom function writes; they come first among its Params or arguments.
pub fn outputs(graph: &Graph, kernel: NodeId) -> usize {
    if let Some(function) = custom_function::of(graph, kernel) {
        return function.written();
    }
    let stores =
        graph.reachable(&[kernel]).into_iter().filter(|&node| matches!(graph.op(node), Op::Store | Op::AtomicAdd));
    let written: FxHashSet<NodeId> = stores.filter_map(|node| graph.memory(graph.source(node, 0))).collect();
    written.into_iter().filter(|&node| matches!(graph.arg(node), Arg::Param { .. })).count()
}
