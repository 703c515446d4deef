//! Decomposes packed dot products for targets without such an instruction.

use super::Emit;
use tinyspec_ir::{Arg, Builder, DType, Error, ErrorKind, NodeId, Op, Result};

/// Extracts the bytes by shifts, zero-extending those of the first word and sign-extending those of the second.
pub fn wmma_u8(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let [a, b, mut total] = three(sources)?;
    for part in 0..4 {
        let unsigned = emit.shift_right(a, 8 * part)?;
        let unsigned = emit.mask(unsigned, 0xff)?;
        let signed = emit.shift_left(b, 24 - 8 * part)?;
        let signed = emit.shift_right(signed, 24)?;
        let product = emit.op(Op::Mul, unsigned, signed)?;
        total = emit.op(Op::Add, total, product)?;
    }
    Ok(total)
}

/// Extracts the halves by arithmetic shifts.
pub fn wmma_i16(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let [a, b, sum] = three(sources)?;
    let (a, b) = (emit.bitcast(a, DType::I32)?, emit.bitcast(b, DType::I32)?);
    let mut total = sum;
    for lower in [false, true] {
        let mut halves = [a, b];
        for half in &mut halves {
            if lower {
                *half = emit.shift_left(*half, 16)?;
            }
            *half = emit.shift_right(*half, 16)?;
        }
        let product = emit.op(Op::Mul, halves[0], halves[1])?;
        total = emit.op(Op::Add, total, product)?;
    }
    Ok(total)
}

/// A bf16 is the upper half of an f32. Subnormal numbers are preserved.
pub fn wmma_bf16(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let [a, b, sum] = three(sources)?;
    let mut total = sum;
    for lower in [false, true] {
        let mut halves = [a, b];
        for half in &mut halves {
            let bits = match lower {
                true => emit.shift_left(*half, 16)?,
                false => emit.mask(*half, 0xffff_0000)?,
            };
            *half = emit.bitcast(bits, DType::F32)?;
        }
        total = emit.graph.add(Op::Mulacc, &[halves[0], halves[1], total], Arg::None)?;
    }
    Ok(total)
}

fn three(sources: &[NodeId]) -> Result<[NodeId; 3]> {
    let refuse = |_| Error::new(ErrorKind::Arity, Op::Wmma.name(), "takes two words and a sum");
    sources.try_into().map_err(refuse)
}
