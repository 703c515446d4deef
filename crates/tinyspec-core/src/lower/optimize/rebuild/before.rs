//! Copy kernels: each runs before the kernel that reads its copy, and its threads copy a part each.

use super::{Copies, CopyKernel, Rebuild};
use rustc_hash::FxHashMap;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};

impl Rebuild<'_> {
    /// Extracts a kernel for each copy that the schedule assigns to one, and turns the LOCAL Buffers of these copies into
    /// temporaries. Returns the rest of the kernel, and the copy kernels.
    pub(super) fn copies_before(&self, graph: &mut Graph, sink: NodeId) -> Result<(NodeId, Copies)> {
        let (mut sink, mut copies) = (sink, Copies::new());
        for &filled in &self.copied_before {
            let (buffer, copy) = (graph.source(filled, 0), graph.source(filled, 1));
            let (dims, dtype) = (graph.source(buffer, 0), graph.dtype(buffer));
            let slot = self.params + copies.len() as u32;
            let arg = Arg::Param { slot, dtype, device: None, addrspace: Some(AddrSpace::Global) };
            let temporary = graph.add(Op::Param, &[dims], arg)?;
            let mut new: FxHashMap<NodeId, NodeId> = [(buffer, temporary)].into_iter().collect();
            if let (Op::End, &[_, outer, ..]) = (graph.op(copy), graph.sources(copy))
                && let Arg::Range { id, axis: AxisType::Loop } = *graph.arg(outer)
            {
                new.insert(outer, graph.range(graph.source(outer, 0), id, AxisType::Thread)?);
            }
            let copy = substitute(graph, &[copy], &new)?;
            let copy = graph.add(Op::Sink, &copy, Arg::None)?;
            let rest = substitute(graph, &[sink], &[(filled, temporary)].into_iter().collect())?[0];
            // A copy that nothing reads needs no kernel.
            if rest != sink {
                let elements = graph.props(temporary).element_count().as_const().unwrap_or(0);
                copies.push(CopyKernel { sink: copy, bytes: elements as usize * dtype.size() });
                sink = rest;
            }
        }
        Ok((sink, copies))
    }
}
