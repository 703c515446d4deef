//! 32-bit offsets. A GPU has no 64-bit integers: each takes two registers, and an addition two instructions. Only sums
//! that may be larger are as wide as a pointer.

use super::super::emit::{Kind, Result, Value};
use super::super::{Placed, Renderer};
use llvm_sys::LLVMOpcode::{LLVMAdd, LLVMMul, LLVMSExt, LLVMTrunc, LLVMZExt};
use tinyspec_ir::{Builder, DType, NodeId};

impl Renderer<'_, '_> {
    /// The depth of loops and conditions at which a multiple of a node can be computed.
    pub(in super::super) fn depth_of_term(&mut self, node: NodeId, factor: i64) -> Result<usize> {
        if self.is_gpu() { Ok(self.placed(node)?.depth) } else { Ok(self.scaled(node, factor)?.depth) }
    }

    /// The byte offset of a sum of terms, for elements of `size` bytes: as wide as a pointer, but computed in 32 bits.
    /// `None` if 32 bits are not enough, and on a CPU.
    pub(in super::super) fn narrow_offset(
        &mut self,
        terms: &[(usize, NodeId, i64)],
        size: i64,
    ) -> Result<Option<Placed>> {
        if !self.is_gpu() {
            return Ok(None);
        }
        let Some(least) = self.least_narrow(terms, size) else { return Ok(None) };
        let key: Vec<(NodeId, i64)> = terms.iter().map(|(_, node, factor)| (*node, factor * size)).collect();
        if let Some(known) = self.addresses.narrow_sums.get(&key) {
            return Ok(Some(*known));
        }
        let depth = terms.iter().map(|term| term.0).max().unwrap_or(0);
        let mut operands = Vec::with_capacity(key.len());
        for (node, bytes) in &key {
            operands.push((self.in_32_bits(*node)?.value, *bytes));
        }
        let extension = if least < 0 { LLVMSExt } else { LLVMZExt };
        let value = self.at_depth(depth, |renderer| {
            let mut total: Option<Value> = None;
            for (value, bytes) in operands {
                let bytes = renderer.emit.int(Kind::I32, 1, bytes);
                let term = renderer.emit.binary(LLVMMul, value, bytes)?;
                total = Some(match total {
                    Some(total) => renderer.emit.binary(LLVMAdd, total, term)?,
                    None => term,
                });
            }
            let total = total.unwrap_or(renderer.emit.int(Kind::I32, 1, 0));
            renderer.emit.convert(extension, total, Kind::I64)
        })?;
        let placed = Placed { value, depth };
        self.addresses.narrow_sums.insert(key, placed);
        Ok(Some(placed))
    }

    /// The trip count of a loop: in 32 bits on a GPU, if that is enough.
    pub(in super::super) fn bound(&mut self, bound: NodeId) -> Result<Value> {
        let fits = |number: i128| i32::try_from(number).is_ok();
        let interval = self.graph.props(bound).interval.int();
        let is_narrow = self.is_gpu() && interval.is_some_and(|(least, most)| fits(least) && fits(most));
        Ok(if is_narrow { self.in_32_bits(bound)?.value } else { self.wide(bound)?.value })
    }

    /// The loop index in 64 bits, for use in values; addresses use the counter itself.
    pub(in super::super) fn counted(&mut self, range: NodeId, index: Value) -> Result<Value> {
        if index.kind == Kind::I64 {
            return Ok(index);
        }
        self.addresses.narrow.insert(range, Placed { value: index, depth: self.levels.len() });
        self.emit.convert(LLVMZExt, index, Kind::I64)
    }

    /// The lower bound of a sum, if it and all of its terms fit in 32 bits.
    fn least_narrow(&self, terms: &[(usize, NodeId, i64)], size: i64) -> Option<i128> {
        let fits = |number: i128| i32::try_from(number).is_ok();
        let (mut least, mut greatest) = (0i128, 0i128);
        for (_, node, factor) in terms {
            if self.graph.dtype(*node) == DType::Bool {
                return None;
            }
            let (low, high) = self.graph.props(*node).interval.int().filter(|(low, high)| fits(*low) && fits(*high))?;
            let bytes = i128::from(*factor) * i128::from(size);
            let (low, high) = (low * bytes, high * bytes);
            least += low.min(high);
            greatest += low.max(high);
        }
        (fits(least) && fits(greatest)).then_some(least)
    }

    /// Truncates an integer that fits in 32 bits.
    fn in_32_bits(&mut self, node: NodeId) -> Result<Placed> {
        if let Some(known) = self.addresses.narrow.get(&node) {
            return Ok(*known);
        }
        let Placed { value, depth } = self.placed(node)?;
        let bits = value.kind.bits();
        let dtype = self.graph.dtype(node);
        let value = self.at_depth(depth, |renderer| match bits {
            32 => Ok(value),
            64 => renderer.emit.convert(LLVMTrunc, value, Kind::I32),
            _ => renderer.emit.convert(if dtype.is_unsigned() { LLVMZExt } else { LLVMSExt }, value, Kind::I32),
        })?;
        let placed = Placed { value, depth };
        self.addresses.narrow.insert(node, placed);
        Ok(placed)
    }
}
