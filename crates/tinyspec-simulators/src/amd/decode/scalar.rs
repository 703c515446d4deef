//! Scalar instructions.

use super::super::table::{Scalar, ScalarKind};
use super::super::text::{Flag, Line, Operand, register};
use super::super::wave::Span;
use super::{Action, Context, Modifiers, Refusal, Step, bare};
use crate::amd::kind::Kind;
use smallvec::SmallVec;

/// Where a scalar operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ScalarFrom {
    Register { first: u16, count: u16 },
    Value(u64),
    Flag(Flag),
}

/// A scalar instruction.
pub(in super::super) struct ScalarStep {
    pub row: Scalar,
    /// The first register, and how many.
    pub to: Option<(u16, u16)>,
    pub from: SmallVec<[ScalarFrom; 3]>,
}

/// Registers of a scalar operand.
pub(super) fn span(from: ScalarFrom) -> Option<Span> {
    match from {
        ScalarFrom::Register { first, count } => Some(Span::new(first, count)),
        _ => None,
    }
}

pub(super) fn operand(context: &Context, operand: &Operand, kind: ScalarKind) -> Result<ScalarFrom, Refusal> {
    let count = kind.count();
    match *operand {
        Operand::Scalar { first, .. } => {
            context.scalar(operand, count)?;
            Ok(ScalarFrom::Register { first, count })
        }
        Operand::Flag(flag) => Ok(ScalarFrom::Flag(flag)),
        _ => {
            let kind = match kind {
                ScalarKind::B32 => Kind::B32,
                ScalarKind::I32 => Kind::I32,
                ScalarKind::B64 => Kind::B64,
                ScalarKind::I64 => Kind::U64,
                ScalarKind::F32 => Kind::F32,
                ScalarKind::F16 => Kind::F16,
                ScalarKind::Immediate => return immediate(operand),
            };
            Ok(ScalarFrom::Value(kind.constant(operand)?))
        }
    }
}

/// 16 bits, with their sign.
fn immediate(operand: &Operand) -> Result<ScalarFrom, Refusal> {
    let value = match *operand {
        Operand::Integer(value) => value,
        Operand::Bits(bits) => bits as i64,
        _ => return Err("a number is expected".into()),
    };
    let bits = u16::try_from(value & 0xffff_ffff_ffff).or_else(|_| i16::try_from(value).map(|value| value as u16));
    let bits = bits.map_err(|_| "a number of 16 bits is expected".to_string())?;
    Ok(ScalarFrom::Value((bits as i16 as i64) as u64))
}

pub(super) fn decode(context: &Context, line: &Line, row: &Scalar) -> Result<Step, Refusal> {
    Modifiers::new(line).end()?;
    let mut operands = line.operands.iter();
    let mut next = || operands.next().ok_or_else(|| "an operand is missing".to_string()).and_then(bare);
    let mut writes: SmallVec<[Span; 2]> = SmallVec::new();
    let mut to = None;
    let mut accumulated = None;
    if let Some(kind) = row.to {
        let count = kind.count();
        let operand = next()?;
        let first = context.scalar(operand, count)?;
        writes.push(Span::new(first, count));
        to = Some((first, count));
        accumulated = Some(ScalarFrom::Register { first, count });
    }
    let mut from: SmallVec<[ScalarFrom; 3]> = SmallVec::new();
    for (number, &kind) in row.from.iter().enumerate() {
        if row.accumulates && number + 1 == row.from.len() {
            from.extend(accumulated);
        } else if row.saves_active && number == 1 {
            let active = Span::new(register::EXEC, kind.count());
            writes.push(active);
            from.push(ScalarFrom::Register { first: active.first, count: active.count });
        } else {
            from.push(operand(context, next()?, kind)?);
        }
    }
    if operands.next().is_some() {
        return Err("it has more operands than are known".into());
    }
    let reads = from.iter().filter_map(|&from| span(from)).collect();
    Ok(Step { action: Action::Scalar(Box::new(ScalarStep { row: *row, to, from })), reads, writes })
}
