//! What all threads of a kernel would copy, each for itself, before its GLOBAL range begins, is copied once, by a kernel
//! that goes before: its threads copy a part each, into a temporary that the others read.

use super::loops;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// Bytes of a copy that take about ten times as long as it takes to begin one more kernel.
const LEAST_BYTES: usize = 1 << 17;

/// A kernel in range form, and the copies that others make for it.
pub(crate) struct Shared {
    pub sink: NodeId,
    pub copies: SmallVec<[Copy; 1]>,
}

/// A kernel that fills a temporary.
pub(crate) struct Copy {
    pub sink: NodeId,
    /// Of the temporary.
    pub bytes: usize,
}

/// Takes large copies out of a kernel whose schedule is made. The temporaries are Params behind the kernel's own, in the
/// order of the copies.
///
/// # Errors
/// When the kernel is not in range form.
pub(crate) fn shared(graph: &mut Graph, sink: NodeId, params: usize, target: &Target) -> Result<Shared> {
    let mut shared = Shared { sink, copies: SmallVec::new() };
    let order = graph.reachable(&[sink]);
    // Behind the buffers of a kernel over named dims come their values.
    let is_shared = target.threads > 1
        && target.workgroups.is_none()
        && order.iter().any(|&node| is_global(graph, node))
        && !loops::has_dims(graph, sink);
    for filled in order.into_iter().filter(|_| is_shared) {
        let Some((bytes, range)) = copied_before(graph, filled, target) else { continue };
        let (buffer, copy) = (graph.source(filled, 0), graph.source(filled, 1));
        let (dims, dtype) = (graph.source(buffer, 0), graph.dtype(buffer));
        let slot = (params + shared.copies.len()) as u32;
        let arg = Arg::Param { slot, dtype, device: None, addrspace: Some(AddrSpace::Global) };
        let temporary = graph.add(Op::Param, &[dims], arg)?;
        let id = match graph.arg(range) {
            Arg::Range { id, .. } => *id,
            _ => continue,
        };
        let global = graph.range(graph.source(range, 0), id, AxisType::Global)?;
        let copy = substitute(graph, &[copy], &[(buffer, temporary), (range, global)].into_iter().collect())?;
        let copy = graph.add(Op::Sink, &copy, Arg::None)?;
        shared.sink = substitute(graph, &[shared.sink], &[(filled, temporary)].into_iter().collect())?[0];
        shared.copies.push(Copy { sink: copy, bytes });
    }
    Ok(shared)
}

/// The bytes of a LOCAL Buffer that loops of their own fill before the GLOBAL range, and the outermost of these loops, if
/// there is something for every thread.
fn copied_before(graph: &Graph, filled: NodeId, target: &Target) -> Option<(usize, NodeId)> {
    let &[buffer, copy] = graph.sources(filled) else { return None };
    let is_local = matches!(graph.arg(buffer), Arg::Buffer { addrspace: AddrSpace::Local, .. });
    if graph.op(filled) != Op::After || graph.op(copy) != Op::End || !is_local {
        return None;
    }
    let range = graph.source(copy, 1);
    let trips = graph.as_int(graph.source(range, 0)).filter(|_| is_loop(graph, range))?;
    let elements = graph.props(buffer).element_count().as_const().and_then(|count| usize::try_from(count).ok())?;
    let bytes = elements.saturating_mul(graph.dtype(buffer).size());
    let is_before = graph.reachable(&[copy]).into_iter().all(|node| {
        node == buffer || graph.op(node) != Op::Buffer && graph.op(node) != Op::After && !is_global(graph, node)
    });
    (is_before && bytes >= LEAST_BYTES && trips >= target.threads as i128).then_some((bytes, range))
}

fn is_loop(graph: &Graph, range: NodeId) -> bool {
    matches!(graph.arg(range), Arg::Range { axis: AxisType::Loop, .. })
}

fn is_global(graph: &Graph, node: NodeId) -> bool {
    graph.op(node) == Op::Range && matches!(graph.arg(node), Arg::Range { axis: AxisType::Global, .. })
}
