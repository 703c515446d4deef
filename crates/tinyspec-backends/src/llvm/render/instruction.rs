//! Single instructions of the processor, which have a separate intrinsic for each width.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use tinyspec_ir::NodeId;
use tinyspec_ir::instruction::Instruction;

/// Use the processor's rounding mode, which is to nearest.
const CURRENT_ROUNDING: i64 = 4;
/// Round to the nearest integer, without fraction bits.
const NEAREST_INTEGER: i64 = 0;
/// Select the greater operand, keeping its sign.
const GREATER: i64 = 0b0101;
/// Select the operand of lesser magnitude, keeping its sign.
const NEARER: i64 = 0b0110;
/// Lanes of the narrowest and widest vectors that have the instructions.
const LEAST_LANES: u32 = 4;
const MOST_LANES: u32 = 16;

/// LLVM's intrinsic for an instruction on vectors.
#[derive(Clone, Copy)]
struct Intrinsic {
    name: &'static str,
    immediate: Option<i64>,
}

impl Intrinsic {
    fn of(instruction: Instruction) -> Option<Intrinsic> {
        let (name, immediate) = match instruction {
            Instruction::Nearest => ("rndscale", Some(NEAREST_INTEGER)),
            Instruction::Scale => ("scalef", None),
            Instruction::Greater => ("range", Some(GREATER)),
            Instruction::Nearer => ("range", Some(NEARER)),
            Instruction::Prefetch | Instruction::PrefetchSecond | Instruction::SchedulingBarrier => return None,
        };
        Some(Intrinsic { name, immediate })
    }
}

impl Renderer<'_, '_> {
    /// Emits an Ins without a value.
    pub(super) fn hint(&mut self, node: NodeId, hint: Instruction) -> Result<()> {
        // LLVM's locality argument, which counts cache levels from memory.
        let caches = match hint {
            Instruction::Prefetch => 3,
            Instruction::PrefetchSecond => 2,
            _ => {
                // LLVM schedules each block separately, so the prefetch keeps its position.
                let next = self.emit.new_block();
                self.emit.jump(next);
                self.emit.enter(next);
                return Ok(());
            }
        };
        let address = self.address(self.graph.source(node, 0))?;
        let [read, caches, data] = [0, caches, 1].map(|number| self.emit.int(Kind::I32, 1, number));
        let arguments = [address.pointer, read, caches, data];
        self.emit.intrinsic("llvm.prefetch", &[(address.pointer.kind, 1)], &arguments, None).map(drop)
    }

    /// Emits an Ins with a value.
    pub(super) fn single(&mut self, node: NodeId) -> Result<Value> {
        let known = Instruction::of(self.graph, node).filter(|it| self.target.instructions.contains(it));
        let Some(intrinsic) = known.and_then(Intrinsic::of) else {
            return Err(self.unsupported(node, "the target has no such instruction"));
        };
        let lanes = self.lanes(node)?;
        let mut operands = Vec::with_capacity(2);
        for &source in self.graph.sources(node) {
            operands.push(self.value_in(source, lanes)?);
        }
        if lanes >= LEAST_LANES {
            return self.of_vector(intrinsic, &operands);
        }
        let mut result = self.emit.undefined(Kind::Float, lanes);
        for lane in 0..lanes {
            let mut wide = Vec::with_capacity(2);
            for &operand in &operands {
                let element = if lanes == 1 { operand } else { self.emit.extract(operand, lane)? };
                wide.push(self.emit.splat(element, LEAST_LANES)?);
            }
            let value = self.of_vector(intrinsic, &wide)?;
            let value = self.emit.extract(value, 0)?;
            result = if lanes == 1 { value } else { self.emit.insert(result, value, lane)? };
        }
        Ok(result)
    }

    fn of_vector(&mut self, intrinsic: Intrinsic, operands: &[Value]) -> Result<Value> {
        let Some(&first) = operands.first() else { return Ok(self.emit.undefined(Kind::Float, LEAST_LANES)) };
        let lanes = first.lanes;
        if lanes > MOST_LANES {
            let (all, half): (Vec<u32>, usize) = ((0..lanes).collect(), lanes as usize / 2);
            let mut halves = [first; 2];
            for (value, lanes) in halves.iter_mut().zip([&all[..half], &all[half..]]) {
                let parts = operands.iter().map(|&operand| self.emit.shuffle(operand, operand, lanes));
                *value = self.of_vector(intrinsic, &parts.collect::<Result<Vec<_>>>()?)?;
            }
            return self.emit.shuffle(halves[0], halves[1], &all);
        }
        let name = format!("llvm.x86.avx512.mask.{}.ps.{}", intrinsic.name, 32 * lanes);
        let mut arguments = operands.to_vec();
        arguments.extend(intrinsic.immediate.map(|immediate| self.emit.int(Kind::I32, 1, immediate)));
        // The value of masked-off lanes, and a mask without any.
        arguments.push(first);
        arguments.push(self.emit.int(if lanes > 8 { Kind::I16 } else { Kind::I8 }, 1, -1));
        if lanes > 8 {
            arguments.push(self.emit.int(Kind::I32, 1, CURRENT_ROUNDING));
        }
        let value = self.emit.intrinsic(&name, &[], &arguments, Some((Kind::Float, lanes)))?;
        Ok(value.unwrap_or(first))
    }
}
