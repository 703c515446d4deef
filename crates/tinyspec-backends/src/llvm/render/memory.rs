//! Loads and stores: contiguous, masked, gathered, non-temporal.

use super::address::Address;
use super::emit::{Block, Kind, Result, Value};
use super::{Placed, Renderer};
use crate::processor::Isa;
use llvm_sys::LLVMIntPredicate::{LLVMIntNE, LLVMIntSLT};
use llvm_sys::LLVMOpcode::LLVMZExt;
use std::ops::Range;
use tinyspec_ir::address::{base_and_index, register};
use tinyspec_ir::instructions::{greatest_bound, open_lanes};
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op};

/// The largest access through a scalar gate: a vector of AVX-512.
const DUMMY_BYTES: u32 = 64;

/// The shortest vector that has a non-temporal store.
const LEAST_NONTEMPORAL: u32 = 16;
impl Renderer<'_, '_> {
    pub(super) fn load(&mut self, node: NodeId) -> Result<()> {
        let value = self.loaded(node)?;
        self.values[node.index()] = Some(Placed { value, depth: self.levels.len() });
        Ok(())
    }

    fn loaded(&mut self, node: NodeId) -> Result<Value> {
        let sources = self.graph.sources(node);
        let (place, lanes) = (sources[0], self.lanes(node)?);
        if let Some((slot, buffer)) = register(self.graph, place) {
            // An accumulator that was never written has no defined value.
            let undefined = self.emit.undefined(self.kind(buffer), lanes);
            return Ok(self.registers.read(slot).unwrap_or(undefined));
        }
        let address = self.address(place)?;
        let kind = Kind::of(address.dtype);
        let (alt, gate) = match *sources {
            [_, alt, gate] => (self.value_in(alt, lanes)?, self.value(gate)?),
            [_] => {
                let value = if self.is_gpu() {
                    self.load_lanes(&address, kind.in_memory(), lanes)?
                } else {
                    self.load_all(&address, kind.in_memory(), lanes)?
                };
                return self.read_bools(kind, value);
            }
            _ => return Err(self.unsupported(node, "an alternative value needs a gate")),
        };
        if self.is_gpu() {
            let alt = self.write_bools(kind, alt)?;
            let value = self.load_behind(gate, &address, alt)?;
            return self.read_bools(kind, value);
        }
        if address.pointer.lanes == 1 && gate.lanes == 1 && kind.in_memory().bits() / 8 * lanes <= DUMMY_BYTES {
            // The load is unconditional: where the gate is false, it reads the dummy.
            let dummy = self.dummy();
            let pointer = self.emit.select(gate, address.pointer, dummy)?;
            let value = self.emit.load(pointer, kind.in_memory(), lanes, kind.in_memory().bits() / 8)?;
            let value = self.read_bools(kind, value)?;
            return self.emit.select(gate, value, alt);
        }
        let alt = self.write_bools(kind, alt)?;
        let gate = self.emit.splat(gate, lanes)?;
        let value = if lanes > 1 && self.is_per_lane(&address) {
            let all = self.all(sources[2])?;
            let ways = self.either(
                all,
                |renderer| renderer.load_all(&address, kind.in_memory(), lanes),
                |renderer| renderer.masked_load(place, &address, (sources[2], gate), alt),
            )?;
            let joined = self.emit.phi(alt.kind, lanes);
            for (value, from) in ways {
                self.emit.arrive(joined, value, from)?;
            }
            joined
        } else {
            self.masked_load(place, &address, (sources[2], gate), alt)?
        };
        self.read_bools(kind, value)
    }

    /// Stack memory that accesses with closed gates use instead.
    pub(super) fn dummy(&mut self) -> Value {
        *self.dummy.get_or_insert_with(|| self.emit.scratch(self.entry, Kind::I8, DUMMY_BYTES))
    }

    /// All lanes of a vector, without a gate.
    fn load_all(&mut self, address: &Address, kind: Kind, lanes: u32) -> Result<Value> {
        if address.pointer.lanes == 1 {
            return self.emit.load(address.pointer, kind, lanes, address.alignment);
        }
        let (all, any) = (self.emit.int(Kind::I1, lanes, 1), self.emit.undefined(kind, lanes));
        self.masked_read("llvm.masked.gather", address, all, any)
    }

    fn masked_load(
        &mut self,
        place: NodeId,
        address: &Address,
        (condition, gate): (NodeId, Value),
        alt: Value,
    ) -> Result<Value> {
        let lanes = alt.lanes;
        let bytes = alt.kind.bits() / 8 * lanes;
        let mut address = Address { ..*address };
        if address.pointer.lanes == 1 && bytes <= DUMMY_BYTES && self.is_far(place, lanes) {
            // Masked-off lanes do not fault, but if their page is not mapped, the processor takes hundreds of cycles to
            // suppress the fault.
            let any = self.any(gate)?;
            let dummy = self.dummy();
            address.pointer = self.emit.select(any, address.pointer, dummy)?;
        }
        if address.pointer.lanes > 1 {
            return match self.lacks_mask(&address, gate) {
                true => self.gather_lanes(place, &address, gate, alt),
                false => self.masked_read("llvm.masked.gather", &address, gate, alt),
            };
        }
        let Some(vectors) = self.open_vectors(condition, alt) else {
            return self.masked_read("llvm.masked.load", &address, gate, alt);
        };
        let mut whole = alt;
        for Range { start, end } in vectors {
            let part = |value: Value| self.emit.shuffle(value, value, &(start..end).collect::<Vec<u32>>());
            let (gate, alt) = (part(gate)?, part(alt)?);
            let read = self.masked_read("llvm.masked.load", &self.at_lane(&address, alt.kind, start)?, gate, alt)?;
            let is_read = |lane: &u32| (start..end).contains(lane);
            let widened: Vec<u32> = (0..lanes).map(|lane| if is_read(&lane) { lane - start } else { 0 }).collect();
            let widened = self.emit.shuffle(read, read, &widened)?;
            let joined: Vec<u32> = (0..lanes).map(|lane| if is_read(&lane) { lanes + lane } else { lane }).collect();
            whole = self.emit.shuffle(whole, widened, &joined)?;
        }
        Ok(whole)
    }

    /// The lanes of the machine vectors that a contiguous access must touch, if constants close all lanes of another
    /// one.
    ///
    /// LLVM (seen in 22.1) mistakes the mask of such a vector for one that is all open when it legalises the access,
    /// and reads or writes the whole vector.
    fn open_vectors(&self, condition: NodeId, value: Value) -> Option<Vec<Range<u32>>> {
        let vector_bytes = self.target.isa.as_ref().map_or(self.target.vector_bytes, Isa::vector_bytes);
        let width = (vector_bytes as u32 * 8 / value.kind.bits()).max(1);
        if value.lanes <= width || value.lanes > u128::BITS {
            return None;
        }
        let open = open_lanes(self.graph, condition);
        let vectors = (0..value.lanes).step_by(width as usize).map(|start| start..(start + width).min(value.lanes));
        let is_open = |vector: &Range<u32>| vector.clone().any(|lane| open >> lane & 1 == 1);
        let (open, closed): (Vec<_>, Vec<_>) = vectors.partition(is_open);
        (!closed.is_empty()).then_some(open)
    }

    /// The address of a lane of a contiguous access.
    pub(super) fn at_lane(&self, address: &Address, kind: Kind, lane: u32) -> Result<Address> {
        let offset = self.emit.int(Kind::I64, 1, lane.into());
        Ok(Address { pointer: self.emit.offset(address.pointer, offset, kind)?, ..*address })
    }

    /// Whether any lane of a gate is open.
    fn any(&self, gate: Value) -> Result<Value> {
        self.joined("llvm.vector.reduce.or", gate)
    }

    /// Whether a gate is open for all lanes, computed once, next to the gate. If its lanes are picked from another
    /// gate, tests whether that one is open for all lanes, which implies it.
    pub(super) fn all(&mut self, gate: NodeId) -> Result<Value> {
        let gate = picked_from(self.graph, gate);
        if let Some(placed) = self.whole.get(&gate) {
            return Ok(placed.value);
        }
        let (value, depth) = match greatest_bound(self.graph, gate) {
            Some((bound, number)) => {
                let Placed { value: number, depth } = self.placed(number)?;
                let bound = self.value(bound)?;
                (self.at_depth(depth, |renderer| renderer.emit.compare_ints(LLVMIntSLT, bound, number))?, depth)
            }
            None => {
                let Placed { value, depth } = self.placed(gate)?;
                (self.at_depth(depth, |renderer| renderer.joined("llvm.vector.reduce.and", value))?, depth)
            }
        };
        self.whole.insert(gate, Placed { value, depth });
        Ok(value)
    }

    /// One bool for all lanes of a gate.
    pub(super) fn joined(&self, name: &str, gate: Value) -> Result<Value> {
        if gate.lanes == 1 {
            return Ok(gate);
        }
        let joined = self.emit.intrinsic(name, &[(Kind::I1, gate.lanes)], &[gate], Some((Kind::I1, 1)))?;
        Ok(joined.unwrap_or(gate))
    }

    /// Whether the address may often be far outside its buffer, in unmapped memory, rather than occasionally and near
    /// its ends.
    fn is_far(&self, place: NodeId, lanes: u32) -> bool {
        /// The most elements beyond an end: as a fraction of the buffer, and in total.
        const NEAR: (i128, i128) = (16, 1024);
        let Some((base, Some(index))) = base_and_index(self.graph, place) else { return false };
        let length = self.graph.props(base).shape.first().and_then(|length| length.as_const()).map(i128::from);
        match (self.graph.props(index).interval.int(), length) {
            (Some((low, high)), Some(length)) => {
                let near = (length / NEAR.0).min(NEAR.1).max(lanes.into());
                low < -near || high + i128::from(lanes) > length + near
            }
            _ => true,
        }
    }

    pub(super) fn masked_read(&mut self, name: &str, address: &Address, mask: Value, alt: Value) -> Result<Value> {
        let (kind, lanes) = (alt.kind, alt.lanes);
        if self.lacks_mask(address, mask) {
            return self.read_lanes(address, mask, alt);
        }
        let overloads = [(kind, lanes), (address.pointer.kind, address.pointer.lanes)];
        // Up to LLVM 21, the alignment was an operand.
        let alignment = self.emit.int(Kind::I32, 1, (kind.bits() / 8).into());
        let arguments = [address.pointer, alignment, mask, alt];
        let arguments = if self.emit.parameters_of(name, &overloads) == 4 {
            arguments.to_vec()
        } else {
            vec![address.pointer, mask, alt]
        };
        let value = self.emit.intrinsic(name, &overloads, &arguments, Some((kind, lanes)))?;
        Ok(value.unwrap_or(alt))
    }

    pub(super) fn store(&mut self, node: NodeId) -> Result<()> {
        let sources = self.graph.sources(node);
        let (place, source) = (sources[0], sources[1]);
        if let Some((slot, buffer)) = register(self.graph, place) {
            let lanes = self.lanes(buffer)?;
            let mut value = self.value_in(source, lanes)?;
            if let Some(gate) = sources.get(2) {
                let gate = self.value(*gate)?;
                let old = self.registers.read(slot).unwrap_or(self.emit.undefined(value.kind, lanes));
                value = self.emit.select(gate, value, old)?;
            }
            self.registers.write(slot, value);
            return Ok(());
        }
        let address = self.address(place)?;
        let kind = Kind::of(address.dtype);
        let lanes = self.lanes(source)?.max(self.lanes(place)?);
        let value = self.value_in(source, lanes)?;
        let value = self.write_bools(kind, value)?;
        let gate = match sources.get(2) {
            Some(gate) => Some(self.value(*gate)?),
            None => None,
        };
        if self.is_gpu() {
            return self.store_behind(gate, &address, value);
        }
        match gate {
            Some(gate) if gate.lanes > 1 || address.pointer.lanes > 1 => {
                let gate = self.emit.splat(gate, lanes)?;
                if address.pointer.lanes > 1 || self.target.masked_access {
                    return self.masked_store(&address, (sources[2], gate), value);
                }
                // Without native masks, a masked store takes as long as ten whole ones.
                let all = self.all(sources[2])?;
                self.either(
                    all,
                    |renderer| renderer.emit.store(address.pointer, value, address.alignment, false),
                    |renderer| {
                        let any = renderer.any(gate)?;
                        renderer.only_if(any, |renderer| renderer.masked_store(&address, (sources[2], gate), value))
                    },
                )
                .map(drop)
            }
            None if address.pointer.lanes > 1 => {
                let all = self.emit.int(Kind::I1, lanes, 1);
                self.masked_write(&address, all, value)
            }
            Some(gate) => {
                self.only_if(gate, |renderer| renderer.emit.store(address.pointer, value, address.alignment, false))
            }
            None => {
                // The instructions require aligned vectors: a vector aligned to half of its size is written in halves.
                let bytes = kind.in_memory().bits() / 8 * lanes;
                let piece = bytes.min(address.alignment);
                let is_whole = bytes.is_power_of_two() && piece >= LEAST_NONTEMPORAL.max(bytes / 2);
                let streams = *self.graph.arg(node) == Arg::Nontemporal && is_whole;
                if !streams {
                    return self.emit.store(address.pointer, value, address.alignment, false);
                }
                self.streams = true;
                let lanes_of_piece = lanes / (bytes / piece);
                for first in (0..lanes).step_by(lanes_of_piece as usize) {
                    let mut part = value;
                    if lanes_of_piece < lanes {
                        let places: Vec<u32> = (first..first + lanes_of_piece).collect();
                        part = self.emit.shuffle(value, value, &places)?;
                    }
                    let offset = self.emit.int(Kind::I64, 1, first.into());
                    let pointer = self.emit.offset(address.pointer, offset, kind.in_memory())?;
                    self.emit.store(pointer, part, piece, true)?;
                }
                Ok(())
            }
        }
    }

    fn masked_store(&mut self, address: &Address, (condition, gate): (NodeId, Value), value: Value) -> Result<()> {
        let vectors = if address.pointer.lanes > 1 { None } else { self.open_vectors(condition, value) };
        let Some(vectors) = vectors else { return self.masked_write(address, gate, value) };
        for Range { start, end } in vectors {
            let part = |value: Value| self.emit.shuffle(value, value, &(start..end).collect::<Vec<u32>>());
            let (gate, value) = (part(gate)?, part(value)?);
            self.masked_write(&self.at_lane(address, value.kind, start)?, gate, value)?;
        }
        Ok(())
    }

    pub(super) fn masked_write(&mut self, address: &Address, mask: Value, value: Value) -> Result<()> {
        // LLVM turns a masked store with a single open lane into a scalar store. With AVX-512 it ignores a truncation of the lane and
        // overwrites the next element.
        if address.pointer.lanes == 1
            && let Some(lane) = self.emit.only_lane(mask)
        {
            let pointer = self.at_lane(address, value.kind, lane)?.pointer;
            return self.emit.store(pointer, self.emit.extract(value, lane)?, value.kind.bits() / 8, false);
        }
        if self.lacks_mask(address, mask) {
            return self.write_lanes(address, mask, value);
        }
        let name = if address.pointer.lanes > 1 { "llvm.masked.scatter" } else { "llvm.masked.store" };
        let overloads = [(value.kind, value.lanes), (address.pointer.kind, address.pointer.lanes)];
        let alignment = self.emit.int(Kind::I32, 1, (value.kind.bits() / 8).into());
        let arguments = if self.emit.parameters_of(name, &overloads) == 4 {
            vec![value, address.pointer, alignment, mask]
        } else {
            vec![value, address.pointer, mask]
        };
        self.emit.intrinsic(name, &overloads, &arguments, None).map(drop)
    }

    pub(super) fn only_if(&mut self, gate: Value, effect: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let (then, after) = (self.emit.new_block(), self.emit.new_block());
        self.emit.branch(gate, then, after)?;
        self.emit.enter(then);
        effect(self)?;
        self.emit.jump(after);
        self.emit.enter(after);
        Ok(())
    }

    /// Emits a branch with two arms; returns the result of each arm and the block that it ends in.
    fn either<T>(
        &mut self,
        gate: Value,
        way: impl FnOnce(&mut Self) -> Result<T>,
        other: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<[(T, Block); 2]> {
        let (then, otherwise, after) = (self.emit.new_block(), self.emit.new_block(), self.emit.new_block());
        self.emit.branch(gate, then, otherwise)?;
        self.emit.enter(then);
        let first = (way(self)?, self.emit.block());
        self.emit.jump(after);
        self.emit.enter(otherwise);
        let second = (other(self)?, self.emit.block());
        self.emit.jump(after);
        self.emit.enter(after);
        Ok([first, second])
    }

    /// A bool is a byte in memory, and one bit in registers.
    fn read_bools(&self, kind: Kind, value: Value) -> Result<Value> {
        if kind != Kind::I1 {
            return Ok(value);
        }
        let zero = self.emit.int(Kind::I8, value.lanes, 0);
        self.emit.compare_ints(LLVMIntNE, value, zero)
    }

    pub(super) fn write_bools(&self, kind: Kind, value: Value) -> Result<Value> {
        if kind == Kind::I1 { self.emit.convert(LLVMZExt, value, Kind::I8) } else { Ok(value) }
    }
}

/// The gate from which all lanes of this one are picked.
fn picked_from(graph: &Graph, gate: NodeId) -> NodeId {
    match (graph.op(gate), graph.sources(gate)) {
        (Op::Index, &[vector, _]) => picked_from(graph, vector),
        (Op::And, &[a, b]) if picked_from(graph, a) == picked_from(graph, b) => picked_from(graph, a),
        _ => gate,
    }
}
