//! Magnitudes of floats, which are their bits without the sign: one instruction, where a maximum that keeps nans takes six.

use super::Emit;
use tinyspec_ir::{Const, DType, Graph, NodeId, Op, Result};

/// The float `x` of `max(x, -x)`.
pub(super) fn of(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let (Op::Max, &[a, b]) = (graph.op(node), graph.sources(node)) else { return None };
    let is_minus = |node: NodeId, x: NodeId| {
        let (Op::Mul, &[factor, number]) = (graph.op(node), graph.sources(node)) else { return false };
        let number = if graph.op(number) == Op::Expand { graph.source(number, 0) } else { number };
        factor == x && graph.as_const(number).and_then(Const::as_float) == Some(-1.0)
    };
    bits(graph.dtype(node))?;
    if is_minus(b, a) { Some(a) } else { is_minus(a, b).then_some(b) }
}

/// The magnitude of `x`.
pub(super) fn magnitude(emit: &mut Emit, x: NodeId) -> Result<NodeId> {
    let dtype = emit.graph.dtype(x);
    let Some(unsigned) = bits(dtype) else { return Ok(x) };
    let number = emit.bitcast(x, unsigned)?;
    let number = emit.mask(number, (1 << (8 * unsigned.size() - 1)) - 1)?;
    emit.bitcast(number, dtype)
}

/// The integer that a float's sign is the highest bit of. (Of some floats of eight bits minus zero is the nan.)
fn bits(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 | DType::BF16 => Some(DType::U16),
        DType::F32 => Some(DType::U32),
        DType::F64 => Some(DType::U64),
        _ => None,
    }
}
