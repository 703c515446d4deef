//! Greatest common divisors, by Euclid's remainders.

use super::arithmetic::{eq, mul};
use super::elementwise::abs;
use super::{cast, dtype_of, like, promote};
use crate::{Builder, DType, Error, ErrorKind, NodeId, Op, Result};

/// Both as magnitudes in an unsigned type of their width, where that of the least number fits too.
fn magnitudes(b: &mut dyn Builder, op: &str, x: NodeId, y: NodeId) -> Result<[NodeId; 2]> {
    let (x, y) = promote(b, op, x, y)?;
    let dtype = dtype_of(b, x);
    let unsigned = match dtype {
        DType::I8 | DType::U8 => DType::U8,
        DType::I16 | DType::U16 => DType::U16,
        DType::I32 | DType::U32 => DType::U32,
        DType::I64 | DType::U64 => DType::U64,
        _ => {
            let message = format!("{dtype} has no divisors");
            return Err(
                Error::new(ErrorKind::DType, op, message).help("whole numbers have; `.cast(DType::I64)` makes some")
            );
        }
    };
    let (x, y) = (abs(b, x)?, abs(b, y)?);
    Ok([cast(b, x, unsigned)?, cast(b, y, unsigned)?])
}

/// The greatest common divisor, without a sign; of 0 and x it is |x|.
pub fn gcd(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let dtype = promote(b, "gcd", x, y).map(|(x, _)| dtype_of(b, x))?;
    let both = magnitudes(b, "gcd", x, y)?;
    let divisor = of_magnitudes(b, both)?;
    cast(b, divisor, dtype)
}

/// The least common multiple, without a sign; of 0 and x it is 0.
pub fn lcm(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let dtype = promote(b, "lcm", x, y).map(|(x, _)| dtype_of(b, x))?;
    let both = magnitudes(b, "lcm", x, y)?;
    let divisor = of_magnitudes(b, both)?;
    // By 0 it is 0.
    let share = b.alu(Op::Idiv, &[both[0], divisor])?;
    let multiple = mul(b, share, both[1])?;
    cast(b, multiple, dtype)
}

/// Rounds of Euclid's algorithm between tests for completion. Once all lanes are done, a branch skips the remaining rounds.
const ROUNDS_OF_A_STEP: usize = 4;

fn of_magnitudes(b: &mut dyn Builder, [mut x, mut y]: [NodeId; 2]) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    // Numbers that need n remainders are at least the n-th of Fibonacci's, so n grows by 1.44 a bit.
    let rounds = dtype_of(b, x).size() * 8 * 3 / 2 + 1;
    let mut done_before: Vec<(NodeId, NodeId)> = Vec::new();
    for round in 0..rounds {
        let done = eq(b, y, zero)?;
        if round % ROUNDS_OF_A_STEP == 0 {
            done_before.push((done, x));
        }
        let rest = b.alu(Op::Mod, &[x, y])?;
        (x, y) = (b.alu(Op::Where, &[done, x, y])?, b.alu(Op::Where, &[done, zero, rest])?);
    }
    done_before.into_iter().rev().try_fold(x, |value, (done, x)| b.alu(Op::Where, &[done, x, value]))
}
