//! Words of two numbers, multiplied and added to a sum by one instruction.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use tinyspec_ir::NodeId;

/// Lanes of the narrowest and widest vectors that have the instructions.
const LEAST_LANES: u32 = 4;
const MOST_LANES: u32 = 16;

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
            _ if lanes > MOST_LANES => {
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
        let call = |name: &str, arguments: &[Value]| {
            self.emit.intrinsic(&format!("llvm.x86.{name}.{}", 32 * lanes), &[], arguments, Some((kind, lanes)))
        };
        let value = if kind.is_float() {
            call("avx512bf16.dpbf16ps", &pairs(Kind::BFloat)?)?
        } else {
            // What its operands are has changed from one LLVM to the next.
            call("avx512.vpdpwssd", &[sum, a, b]).or_else(|_| call("avx512.vpdpwssd", &pairs(Kind::I16)?))?
        };
        Ok(value.unwrap_or(sum))
    }
}
