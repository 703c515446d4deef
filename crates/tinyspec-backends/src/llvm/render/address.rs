//! Addresses: a sum of terms, each computed in the outermost loop that has its operands.
//!
//! `base + row * width + k + 3` becomes a pointer to the row, made before the loop over k, indexed by k, with the
//! constant as the displacement of the instruction.

use super::emit::{Kind, Result, Value};
use super::{Placed, Renderer};
use llvm_sys::LLVMOpcode::{LLVMAdd, LLVMMul, LLVMSExt, LLVMZExt};
use rustc_hash::FxHashMap;
use tinyspec_ir::address::base_and_index;
use tinyspec_ir::affine::{Affine, gcd};
use tinyspec_ir::{AddrSpace, Arg, DType, NodeId, Op};

/// Parts of addresses that have been computed.
#[derive(Clone, Default)]
pub(super) struct Addresses {
    wide: FxHashMap<NodeId, Placed>,
    scaled: FxHashMap<(NodeId, i64), Placed>,
    pointers: FxHashMap<(NodeId, Vec<(NodeId, i64)>), Placed>,
    /// 32-bit integers, and sums of them as offsets, for GPUs, where such arithmetic takes half as long.
    pub(super) narrow: FxHashMap<NodeId, Placed>,
    pub(super) narrow_sums: FxHashMap<Vec<(NodeId, i64)>, Placed>,
}

/// The address of a Load or Store.
pub(super) struct Address {
    /// A pointer, or a vector of them.
    pub(super) pointer: Value,
    /// The alignment in bytes.
    pub(super) alignment: u32,
    pub(super) dtype: DType,
}

/// The alignment of buffers, which is part of the kernel's calling convention.
const BUFFER_ALIGNMENT: i64 = 64;

impl Renderer<'_, '_> {
    /// Loads the address of every buffer, and the values of the named dims.
    pub(super) fn load_bases(&mut self, instructions: &[NodeId]) -> Result<()> {
        let is_gpu = self.is_gpu();
        for node in self.graph.reachable(instructions) {
            let base = match self.graph.arg(node) {
                Arg::Param { slot, dtype: DType::Index, .. } if self.graph.op(node) == Op::Param => {
                    if self.kernel.params == 0 {
                        return Err(self.unsupported(node, "the kernel is given no dims"));
                    }
                    let value = if is_gpu { self.dim_parameter(*slot)? } else { self.dim_of_table(*slot)? };
                    self.values[node.index()] = Some(Placed { value, depth: 0 });
                    continue;
                }
                Arg::Param { slot, .. } if self.graph.op(node) == Op::Param => {
                    if *slot as usize >= self.kernel.params {
                        return Err(self.unsupported(node, "the kernel has fewer parameters"));
                    }
                    if is_gpu { self.buffer_parameter(*slot)? } else { self.buffer_of_table(*slot)? }
                }
                Arg::Buffer { slot, addrspace: AddrSpace::Local, .. } => {
                    let offset = self.kernel.local_offsets.iter().find(|(local, _)| local == slot);
                    let Some(&(_, offset)) = offset else {
                        return Err(self.unsupported(node, "the plan gives it no place"));
                    };
                    if is_gpu { self.local_memory(offset)? } else { self.scratch_of_table(offset)? }
                }
                _ => continue,
            };
            self.bases.insert(node, base);
        }
        Ok(())
    }

    /// The address that an Index or Shrink of a buffer stands for.
    pub(super) fn address(&mut self, place: NodeId) -> Result<Address> {
        match base_and_index(self.graph, place) {
            Some((base, Some(index))) if self.lanes(index)? > 1 => self.gathered(base, index, None),
            Some((base, Some(index))) => self.address_of(base, &Affine::of(self.graph, index)),
            Some((base, None)) => self.address_of(base, &Affine::default()),
            None => Err(self.unsupported(place, "it is not a place in a buffer of one axis")),
        }
    }

    /// The values that an address is computed from.
    pub(super) fn parts_of_address(&self, place: NodeId) -> Result<Vec<NodeId>> {
        let Some((_, Some(index))) = base_and_index(self.graph, place) else { return Ok(Vec::new()) };
        if self.lanes(index)? > 1 {
            return Ok(vec![index]);
        }
        Ok(Affine::of(self.graph, index).atoms().collect())
    }

    pub(super) fn base(&self, base: NodeId) -> Result<Value> {
        let found = self.bases.get(&base).copied();
        found.ok_or_else(|| self.unsupported(base, "registers have no address"))
    }

    /// One address for each lane of the index; masked-off lanes get the start of the buffer.
    pub(super) fn gathered(&mut self, base: NodeId, index: NodeId, mask: Option<Value>) -> Result<Address> {
        let (start, dtype) = (self.base(base)?, self.graph.dtype(base));
        let kind = Kind::of(dtype).in_memory();
        let mut lanes = self.value(index)?;
        if let Some(mask) = mask {
            lanes = self.emit.select(mask, lanes, self.emit.int(lanes.kind, lanes.lanes, 0))?;
        }
        // Addresses sign-extend their indices.
        if self.graph.dtype(index).is_unsigned() && lanes.kind != Kind::I64 {
            lanes = self.emit.convert(LLVMZExt, lanes, Kind::I64)?;
        }
        let pointer = self.emit.offset(start, lanes, kind)?;
        Ok(Address { pointer, alignment: kind.bits() / 8, dtype })
    }

    fn address_of(&mut self, base: NodeId, sum: &Affine) -> Result<Address> {
        let dtype = self.graph.dtype(base);
        let kind = Kind::of(dtype).in_memory();
        let size = i64::from(kind.bits() / 8);
        let mut terms: Vec<(usize, NodeId, i64)> = Vec::new();
        for (node, factor) in sum.terms() {
            terms.push((self.depth_of_term(*node, *factor)?, *node, *factor));
        }
        terms.sort_unstable();
        let mut pointer = Placed { value: self.base(base)?, depth: 0 };
        let mut prefix: Vec<(NodeId, i64)> = Vec::new();
        // Terms of the same depth are added up first, into an index register.
        for group in terms.chunk_by(|a, b| a.0 == b.0) {
            prefix.extend(group.iter().map(|(_, node, factor)| (*node, *factor)));
            let key = (base, prefix.clone());
            if let Some(known) = self.addresses.pointers.get(&key) {
                pointer = *known;
                continue;
            }
            if let Some(offset) = self.narrow_offset(group, size)? {
                let (start, depth) = (pointer.value, pointer.depth.max(offset.depth));
                let value = self.at_depth(depth, |renderer| renderer.emit.offset(start, offset.value, Kind::I8))?;
                pointer = Placed { value, depth };
                self.addresses.pointers.insert(key, pointer);
                continue;
            }
            let depth = group.iter().fold(pointer.depth, |depth, term| depth.max(term.0));
            let mut total: Option<Value> = None;
            for (_, node, factor) in group {
                let term = self.scaled(*node, *factor)?.value;
                total = Some(match total {
                    Some(total) => self.at_depth(depth, |renderer| renderer.emit.binary(LLVMAdd, total, term))?,
                    None => term,
                });
            }
            if let Some(total) = total {
                let start = pointer.value;
                let value = self.at_depth(depth, |renderer| renderer.emit.offset(start, total, kind))?;
                pointer = Placed { value, depth };
            }
            self.addresses.pointers.insert(key, pointer);
        }
        // The displacement is added next to the access, so that it is folded into the instruction.
        let mut value = pointer.value;
        if sum.constant() != 0 {
            let constant = self.emit.int(Kind::I64, 1, sum.constant());
            value = self.emit.offset(value, constant, kind)?;
        }
        let divisor = sum.terms().iter().fold(sum.constant(), |divisor, term| gcd(divisor, term.1));
        let alignment = match divisor.saturating_mul(size) {
            0 => BUFFER_ALIGNMENT,
            bytes => 1 << bytes.trailing_zeros().min(BUFFER_ALIGNMENT.trailing_zeros()),
        };
        // LOCAL buffers are aligned like Params.
        Ok(Address { pointer: value, alignment: alignment as u32, dtype })
    }

    /// An integer scalar in 64 bits.
    pub(super) fn wide(&mut self, node: NodeId) -> Result<Placed> {
        if let Some(wide) = self.addresses.wide.get(&node) {
            return Ok(*wide);
        }
        let Placed { value, depth } = self.placed(node)?;
        let dtype = self.graph.dtype(node);
        let wide = if value.kind == Kind::I64 {
            value
        } else {
            let extension = if dtype.is_unsigned() { LLVMZExt } else { LLVMSExt };
            self.at_depth(depth, |renderer| renderer.emit.convert(extension, value, Kind::I64))?
        };
        let placed = Placed { value: wide, depth };
        self.addresses.wide.insert(node, placed);
        Ok(placed)
    }

    /// A multiple of a node; of a condition, the factor where it holds.
    pub(super) fn scaled(&mut self, node: NodeId, factor: i64) -> Result<Placed> {
        let is_condition = self.graph.dtype(node) == DType::Bool;
        if factor == 1 && !is_condition {
            return self.wide(node);
        }
        if let Some(scaled) = self.addresses.scaled.get(&(node, factor)) {
            return Ok(*scaled);
        }
        let Placed { value, depth } = if is_condition { self.placed(node)? } else { self.wide(node)? };
        let [nothing, number] = [0, factor].map(|number| self.emit.int(Kind::I64, 1, number));
        let value = self.at_depth(depth, |renderer| match is_condition {
            true => renderer.emit.select(value, number, nothing),
            false => renderer.emit.binary(LLVMMul, value, number),
        })?;
        let placed = Placed { value, depth };
        self.addresses.scaled.insert((node, factor), placed);
        Ok(placed)
    }
}
