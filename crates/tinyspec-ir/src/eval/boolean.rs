//! Bools: `+` and max are or, `*` is and.

use super::{binary, ternary, unary};
use crate::Op;

pub(super) fn lanes(op: Op, sources: &[&[u64]], result: &mut [u64]) -> bool {
    match op {
        Op::Add | Op::Max | Op::Or => binary(sources, result, |a, b| a | b),
        Op::Mul | Op::And => binary(sources, result, |a, b| a & b),
        Op::Xor | Op::CmpNe => binary(sources, result, |a, b| a ^ b),
        Op::CmpLt => binary(sources, result, |a, b| !a & b & 1),
        Op::Mulacc => ternary(sources, result, |a, b, c| a & b | c),
        Op::Trunc => unary(sources, result, |a| a),
        _ => false,
    }
}
