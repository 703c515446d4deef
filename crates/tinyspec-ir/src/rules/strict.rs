//! The rules of strict functions, which are computed as written (SEMANTICS, "Reduce").

use crate::{Arg, Builder, DType, Graph, NodeId, Op};

rules! {
    /// bf16 is converted to f32 via f64: the value is the same, but no dot product instruction for bf16 matches.
    STRICT (Exact, "strict", g, node) {
        widened_as_written: (Cast x) if (g.dtype(x), g.dtype(node)) == (DType::BF16, DType::F32) => {
            let wide = g.add(Op::Cast, &[x], Arg::DType(DType::F64)).ok()?;
            g.add(Op::Cast, &[wide], Arg::DType(DType::F32)).ok()?
        };
    }
}

/// The operand of such a conversion.
pub fn widened_as_written(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let inner = |node: NodeId, dtype: DType| {
        (graph.op(node) == Op::Cast && graph.dtype(node) == dtype).then(|| graph.source(node, 0))
    };
    let x = inner(inner(node, DType::F32)?, DType::F64)?;
    (graph.dtype(x) == DType::BF16).then_some(x)
}
