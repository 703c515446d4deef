//! Packed dot products: words of two or four numbers, multiplied and added to a sum by one instruction.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use tinyspec_ir::{DType, NodeId, words};

/// Lanes of the narrowest vector that has the instructions; the widest is the target's vector.
const LEAST_LANES: u32 = 4;

impl Renderer<'_, '_> {
    /// A Wmma.
    pub(super) fn wmma(&mut self, node: NodeId) -> Result<Value> {
        let lanes = self.lanes(node)?;
        let &[a, b, sum] = self.graph.sources(node) else {
            return Err(self.unsupported(node, "it takes two words and a sum"));
        };
        let operands = [self.value_in(a, lanes)?, self.value_in(b, lanes)?, self.value_in(sum, lanes)?];
        let numbers = words::of(self.graph, node).ok_or_else(|| self.unsupported(node, "no words of such numbers"))?;
        self.of_words(numbers, operands)
    }

    fn of_words(&mut self, numbers: DType, operands: [Value; 3]) -> Result<Value> {
        let lanes = operands[2].lanes;
        let most_lanes = self.target.lanes(DType::F32) as u32;
        let part = |renderer: &Self, lanes: &[u32]| -> Result<[Value; 3]> {
            let [a, b, sum] = operands.map(|value| renderer.emit.shuffle(value, value, lanes));
            Ok([a?, b?, sum?])
        };
        match lanes {
            1 => {
                let [a, b, sum] = operands.map(|value| self.emit.splat(value, LEAST_LANES));
                let wide = self.instruction_of_words(numbers, [a?, b?, sum?])?;
                self.emit.extract(wide, 0)
            }
            _ if lanes < LEAST_LANES => {
                let wide: Vec<u32> = (0..LEAST_LANES).map(|lane| lane % lanes).collect();
                let value = self.instruction_of_words(numbers, part(self, &wide)?)?;
                let narrow: Vec<u32> = (0..lanes).collect();
                self.emit.shuffle(value, value, &narrow)
            }
            _ if lanes > most_lanes => {
                let (all, half): (Vec<u32>, usize) = ((0..lanes).collect(), lanes as usize / 2);
                let low = self.of_words(numbers, part(self, &all[..half])?)?;
                let high = self.of_words(numbers, part(self, &all[half..])?)?;
                self.emit.shuffle(low, high, &all)
            }
            _ => self.instruction_of_words(numbers, operands),
        }
    }

    fn instruction_of_words(&mut self, numbers: DType, [a, b, sum]: [Value; 3]) -> Result<Value> {
        let (lanes, kind) = (sum.lanes, sum.kind);
        let of = match numbers {
            DType::U8 => Kind::I8,
            DType::BF16 => Kind::BFloat,
            _ => Kind::I16,
        };
        let count = words::count(numbers) as u32 * lanes;
        let parts = || -> Result<[Value; 3]> {
            Ok([sum, self.emit.reinterpret(a, of, count)?, self.emit.reinterpret(b, of, count)?])
        };
        let result = Some((kind, lanes));
        let value = match (of, self.is_x86()) {
            (Kind::BFloat, true) => {
                let name = format!("llvm.x86.avx512bf16.dpbf16ps.{}", 32 * lanes);
                self.emit.intrinsic(&name, &[], &parts()?, result)?
            }
            (Kind::BFloat, false) => {
                // Rounds the sum of both products once, in its own way: it may differ from `eval_op` in the last place.
                let types = [(Kind::Float, lanes), (Kind::BFloat, count)];
                self.emit.intrinsic("llvm.aarch64.neon.bfdot", &types, &parts()?, result)?
            }
            (Kind::I8, false) => {
                let types = [(kind, lanes), (of, count)];
                self.emit.intrinsic("llvm.aarch64.neon.usdot", &types, &parts()?, result)?
            }
            _ => {
                let name = if of == Kind::I8 { "vpdpbusd" } else { "vpdpwssd" };
                let call = |arguments: &[Value]| {
                    let name = format!("llvm.x86.avx512.{name}.{}", 32 * lanes);
                    self.emit.intrinsic(&name, &[], arguments, result)
                };
                // The types of its operands differ between versions of LLVM.
                call(&[sum, a, b]).or_else(|_| call(&parts()?))?
            }
        };
        Ok(value.unwrap_or(sum))
    }
}
