//! Masked accesses that the processor has no instruction for. LLVM would emit a branch per lane, and take longer to compile these
//! branches than the rest of the kernel.

use super::Renderer;
use super::address::Address;
use super::emit::{Kind, Result, Value};
use llvm_sys::LLVMIntPredicate::LLVMIntNE;
use llvm_sys::LLVMOpcode::{LLVMAnd, LLVMSub, LLVMZExt};
use tinyspec_ir::address::base_and_index;
use tinyspec_ir::{Builder, NodeId};

/// The most lanes that are accessed one after the other; for more, a loop takes less code.
const FEW: u32 = 4;

impl Renderer<'_, '_> {
    /// Whether a masked load takes several instructions per lane. No target gathers elements narrower than a word.
    pub(super) fn is_per_lane(&self, address: &Address) -> bool {
        let is_gather = address.pointer.lanes > 1;
        !self.target.masks_loads(address.dtype) || is_gather && address.dtype.size() < size_of::<i32>()
    }

    /// Whether LLVM would emit a branch per lane of an access under this mask, which fits into an integer.
    pub(super) fn lacks_mask(&self, address: &Address, mask: Value) -> bool {
        let is_scalarized = self.is_per_lane(address) || address.pointer.lanes > 1 && !self.target.masked_access;
        is_scalarized && !self.emit.is_constant(mask) && mask.lanes <= u64::BITS
    }

    /// Gathers the open lanes, and takes the others from `alt`. Closed lanes read the buffer's first element, if it has
    /// one.
    pub(super) fn gather_lanes(&mut self, place: NodeId, address: &Address, mask: Value, alt: Value) -> Result<Value> {
        let has_first = |&(base, _): &(NodeId, _)| {
            self.graph.props(base).shape.first().and_then(|length| length.as_const()).is_some_and(|length| length > 0)
        };
        let read = match base_and_index(self.graph, place).filter(has_first) {
            Some((base, Some(index))) => self.gathered(base, index, Some(mask))?,
            _ => self.diverted(address, mask)?,
        };
        let all = self.emit.int(Kind::I1, alt.lanes, 1);
        let value = self.masked_read("llvm.masked.gather", &read, all, alt)?;
        self.emit.select(mask, value, alt)
    }

    /// The open lanes of a contiguous access from memory, the others from `alt`.
    pub(super) fn read_lanes(&mut self, address: &Address, mask: Value, alt: Value) -> Result<Value> {
        let (kind, lanes) = (alt.kind, alt.lanes);
        let alignment = kind.bits() / 8;
        if lanes <= FEW {
            let mut value = alt;
            for lane in 0..lanes {
                let pointer = self.lane_or_dummy(address, mask, lane, kind)?;
                value = self.emit.insert(value, self.emit.load(pointer, kind, 1, alignment)?, lane)?;
            }
            return self.emit.select(mask, value, alt);
        }
        let read = self.emit.scratch(self.entry, kind, lanes);
        self.emit.store(read, alt, alignment, false)?;
        self.copy_open_lanes(mask, address.pointer, read, kind)?;
        self.emit.load(read, kind, lanes, alignment)
    }

    /// Writes the open lanes.
    pub(super) fn write_lanes(&mut self, address: &Address, mask: Value, value: Value) -> Result<()> {
        let (kind, lanes) = (value.kind, value.lanes);
        if address.pointer.lanes > 1 {
            let all = self.emit.int(Kind::I1, lanes, 1);
            let diverted = self.diverted(address, mask)?;
            return self.masked_write(&diverted, all, value);
        }
        let alignment = kind.bits() / 8;
        if lanes <= FEW {
            for lane in 0..lanes {
                let pointer = self.lane_or_dummy(address, mask, lane, kind)?;
                self.emit.store(pointer, self.emit.extract(value, lane)?, alignment, false)?;
            }
            return Ok(());
        }
        let written = self.emit.scratch(self.entry, kind, lanes);
        self.emit.store(written, value, alignment, false)?;
        self.copy_open_lanes(mask, written, address.pointer, kind)
    }

    /// The address of each lane; closed lanes access the dummy instead.
    fn diverted(&mut self, address: &Address, mask: Value) -> Result<Address> {
        let dummy = self.dummy();
        let pointer = self.emit.select(mask, address.pointer, self.emit.splat(dummy, mask.lanes)?)?;
        Ok(Address { pointer, ..*address })
    }

    /// The address of one lane of a contiguous access, or the dummy if the lane is closed.
    fn lane_or_dummy(&mut self, address: &Address, mask: Value, lane: u32, kind: Kind) -> Result<Value> {
        let dummy = self.dummy();
        let is_open = self.emit.extract(mask, lane)?;
        self.emit.select(is_open, self.at_lane(address, kind, lane)?.pointer, dummy)
    }

    /// Copies the open lanes of a vector in memory, in a loop over the bits of the mask.
    fn copy_open_lanes(&mut self, mask: Value, from: Value, to: Value, element: Kind) -> Result<()> {
        let (kind, lanes) = match mask.lanes {
            ..=8 => (Kind::I8, 8),
            9..=16 => (Kind::I16, 16),
            17..=32 => (Kind::I32, 32),
            _ => (Kind::I64, 64),
        };
        let mut bits = mask;
        if mask.lanes < lanes {
            let closed = self.emit.int(Kind::I1, mask.lanes, 0);
            let widened: Vec<u32> = (0..lanes).map(|lane| lane.min(mask.lanes)).collect();
            bits = self.emit.shuffle(mask, closed, &widened)?;
        }
        let bits = self.emit.reinterpret(bits, kind, 1)?;
        let (zero, one) = (self.emit.int(kind, 1, 0), self.emit.int(kind, 1, 1));
        let is_open = self.emit.compare_ints(LLVMIntNE, bits, zero)?;
        self.only_if(is_open, |renderer| {
            let (before, body, after) = (renderer.emit.block(), renderer.emit.new_block(), renderer.emit.new_block());
            renderer.emit.jump(body);
            renderer.emit.enter(body);
            let open = renderer.emit.phi(kind, 1);
            renderer.emit.arrive(open, bits, before)?;
            // The operand is never zero.
            let known = renderer.emit.int(Kind::I1, 1, 1);
            let lane = renderer.emit.intrinsic("llvm.cttz", &[(kind, 1)], &[open, known], Some((kind, 1)))?;
            let lane = lane.unwrap_or(zero);
            let lane = if kind == Kind::I64 { lane } else { renderer.emit.convert(LLVMZExt, lane, Kind::I64)? };
            let (alignment, emit) = (element.bits() / 8, &renderer.emit);
            let value = emit.load(emit.offset(from, lane, element)?, element, 1, alignment)?;
            emit.store(emit.offset(to, lane, element)?, value, alignment, false)?;
            let less = renderer.emit.binary(LLVMSub, open, one)?;
            let rest = renderer.emit.binary(LLVMAnd, open, less)?;
            renderer.emit.arrive(open, rest, renderer.emit.block())?;
            let goes_on = renderer.emit.compare_ints(LLVMIntNE, rest, zero)?;
            renderer.emit.branch(goes_on, body, after)?;
            renderer.emit.enter(after);
            Ok(())
        })
    }
}
