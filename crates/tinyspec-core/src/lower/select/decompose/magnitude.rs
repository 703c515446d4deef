//! Magnitudes of floats by clearing the sign bit: one instruction, where a nan-propagating maximum takes six.

use super::Emit;
use tinyspec_ir::ops::arithmetic::negated;
use tinyspec_ir::{DType, Graph, NodeId, Op, Result};

/// The float `x` of `max(x, -x)`.
pub(super) fn of(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let (Op::Max, &[a, b]) = (graph.op(node), graph.sources(node)) else { return None };
    bits(graph.dtype(node))?;
    [(a, b), (b, a)].into_iter().find_map(|(x, minus)| (negated(graph, minus) == Some(x)).then_some(x))
}

/// The magnitude of `x`.
pub(super) fn magnitude(emit: &mut Emit, x: NodeId) -> Result<NodeId> {
    let dtype = emit.graph.dtype(x);
    let Some(unsigned) = bits(dtype) else { return Ok(x) };
    let number = emit.bitcast(x, unsigned)?;
    let number = emit.mask(number, (1 << (8 * unsigned.size() - 1)) - 1)?;
    emit.bitcast(number, dtype)
}

/// The integer type whose highest bit is a float's sign. (In some 8-bit floats, negative zero is the nan.)
fn bits(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 | DType::BF16 => Some(DType::U16),
        DType::F32 => Some(DType::U32),
        DType::F64 => Some(DType::U64),
        _ => None,
    }
}
