//! Words of two numbers, multiplied and added to a sum by one instruction.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use tinyspec_ir::{DType, NodeId};

/// Lanes of the narrowest vector that has the instructions; the widest one is the target's.
const LEAST_LANES: u32 = 4;

impl Renderer<'_, '_> {
    /// A Wmma.
    pub(super) fn wmma(&mut self, node: NodeId) -> Result<Value> {
        let lanes = self.lanes(node)?;
        let &[a, b, sum] = self.graph.sources(node) else {
            return Err(self.unsupported(node, "it takes two words and a sum"));
        };
        let operands = [self.value_in(a, lanes)?, self.value_in(b, lanes)?, self.value_in(sum, lanes)?];
        self.of_words(operands)
    }

    fn of_words(&mut self, operands: [Value; 3]) -> Result<Value> {
        let lanes = operands[2].lanes;
        let most_lanes = self.target.lanes(DType::F32) as u32;
        let part = |renderer: &Self, lanes: &[u32]| -> Result<[Value; 3]> {
            let [a, b, sum] = operands.map(|value| renderer.emit.shuffle(value, value, lanes));
            Ok([a?, b?, sum?])
        };
        match lanes {
            1 => {
                let [a, b, sum] = operands.map(|value| self.emit.splat(value, LEAST_LANES));
                let wide = self.instruction_of_words([a?, b?, sum?])?;
                self.emit.extract(wide, 0)
            }
            _ if lanes < LEAST_LANES => {
                let wide: Vec<u32> = (0..LEAST_LANES).map(|lane| lane % lanes).collect();
                let value = self.instruction_of_words(part(self, &wide)?)?;
                let narrow: Vec<u32> = (0..lanes).collect();
                self.emit.shuffle(value, value, &narrow)
            }
            _ if lanes > most_lanes => {
                let (all, half): (Vec<u32>, usize) = ((0..lanes).collect(), lanes as usize / 2);
                let low = self.of_words(part(self, &all[..half])?)?;
                let high = self.of_words(part(self, &all[half..])?)?;
                self.emit.shuffle(low, high, &all)
            }
            _ => self.instruction_of_words(operands),
        }
    }

    fn instruction_of_words(&mut self, [a, b, sum]: [Value; 3]) -> Result<Value> {
        let (lanes, kind) = (sum.lanes, sum.kind);
        let pairs = |kind: Kind| -> Result<[Value; 3]> {
            Ok([sum, self.emit.reinterpret(a, kind, 2 * lanes)?, self.emit.reinterpret(b, kind, 2 * lanes)?])
        };
        let result = Some((kind, lanes));
        let value = match (kind.is_float(), self.is_x86()) {
            (true, true) => {
                let name = format!("llvm.x86.avx512bf16.dpbf16ps.{}", 32 * lanes);
                self.emit.intrinsic(&name, &[], &pairs(Kind::BFloat)?, result)?
            }
            (true, false) => {
                // Rounds the sum of both products once, in its own way: in the last place it may differ from `eval_op`.
                let types = [(Kind::Float, lanes), (Kind::BFloat, 2 * lanes)];
                self.emit.intrinsic("llvm.aarch64.neon.bfdot", &types, &pairs(Kind::BFloat)?, result)?
            }
            (false, _) => {
                let call = |arguments: &[Value]| {
                    let name = format!("llvm.x86.avx512.vpdpwssd.{}", 32 * lanes);
                    self.emit.intrinsic(&name, &[], arguments, result)
                };
                // What its operands are has changed from one LLVM to the next.
                call(&[sum, a, b]).or_else(|_| call(&pairs(Kind::I16)?))?
            }
        };
        Ok(value.unwrap_or(sum))
    }
}
