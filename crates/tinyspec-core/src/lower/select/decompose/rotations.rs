//! Threefry-2x32 with 20 rounds, on u32.

use super::emit::Emit;
use tinyspec_ir::{DType, NodeId, Op, Result};

const ROTATIONS: [[i128; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// Makes an all-zero key harmless.
const PARITY: i128 = 0x1bd1_1bda;

/// Both halves of a u64, the low one first.
fn halves(emit: &mut Emit, value: NodeId) -> Result<(NodeId, NodeId)> {
    let high = emit.shift_right(value, 32)?;
    Ok((emit.cast(value, DType::U32)?, emit.cast(high, DType::U32)?))
}

pub(super) fn threefry(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let (mut a, mut b) = halves(emit, sources[0])?;
    let (low, high) = halves(emit, sources[1])?;
    let parity = emit.int(DType::U32, PARITY);
    let third = emit.op(Op::Xor, low, high)?;
    let third = emit.op(Op::Xor, third, parity)?;
    let keys = [low, high, third];
    a = emit.add(a, keys[0])?;
    b = emit.add(b, keys[1])?;
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            a = emit.add(a, b)?;
            let (left, right) = (emit.shift_left(b, rotation)?, emit.shift_right(b, 32 - rotation)?);
            let rotated = emit.op(Op::Or, left, right)?;
            b = emit.op(Op::Xor, rotated, a)?;
        }
        a = emit.add(a, keys[(group + 1) % 3])?;
        let injected = emit.int(DType::U32, group as i128 + 1);
        b = emit.add(b, keys[(group + 2) % 3])?;
        b = emit.add(b, injected)?;
    }
    let (low, high) = (emit.cast(a, DType::U64)?, emit.cast(b, DType::U64)?);
    let high = emit.shift_left(high, 32)?;
    emit.op(Op::Or, low, high)
}
