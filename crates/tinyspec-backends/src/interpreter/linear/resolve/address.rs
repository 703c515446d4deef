//! Resolves the elements of an access.

use super::super::instruction::{Address, Length, Register, Space};
use super::Resolver;
use crate::BackendError;
use tinyspec_ir::{AddrSpace, Arg, Builder, NodeId, Op};

impl Resolver<'_> {
    /// The elements that a Param, a LOCAL Buffer or a view of one stands for.
    pub fn address(&mut self, node: NodeId) -> Result<Address, BackendError> {
        let graph = self.graph;
        let base = self.base(node)?;
        match graph.op(base) {
            Op::Index if graph.sources(base).len() == 2 => {
                let index = self.value(graph.source(base, 1))?;
                self.elements(graph.source(base, 0), index, index.lanes)
            }
            Op::Shrink => {
                let index = self.offset(base)?;
                let lanes = self.lanes(base)?;
                self.elements(graph.source(base, 0), index, lanes)
            }
            Op::Param | Op::Buffer => {
                // Constants start as zero lanes.
                let index = self.allocate(base, 1)?;
                let lanes = self.lanes(base)?;
                self.elements(base, index, lanes)
            }
            _ => Err(self.refuse(base, "it is not an address")),
        }
    }

    fn elements(&mut self, buffer: NodeId, index: Register, lanes: u32) -> Result<Address, BackendError> {
        let buffer = self.base(buffer)?;
        let length = self.length(buffer)?;
        let dtype = self.graph.dtype(buffer);
        let space = match self.graph.arg(buffer) {
            Arg::Param { slot, .. } if (*slot as usize) < self.kernel.params => Space::Param(*slot),
            Arg::Param { slot, .. } => {
                let count = self.kernel.params;
                return Err(self.refuse(buffer, format!("slot {slot} of a kernel with {count} buffers")));
            }
            Arg::Buffer { slot, addrspace: AddrSpace::Local, .. } => {
                let offsets = &self.kernel.local_offsets;
                let offset = offsets.iter().find(|(local, _)| local == slot).map(|(_, offset)| *offset);
                let Length::Number(count) = length else {
                    return Err(self.refuse(buffer, "scratch has a size of its own"));
                };
                let end = offset.and_then(|offset| offset.checked_add(count.checked_mul(dtype.size())?));
                match (offset, end) {
                    (Some(offset), Some(end)) if end <= self.kernel.scratch_bytes => Space::Local(offset),
                    _ => return Err(self.refuse(buffer, format!("slot {slot} has no place in the scratch"))),
                }
            }
            _ => return Err(self.refuse(buffer, "only Params and LOCAL Buffers have addresses")),
        };
        Ok(Address { space, dtype, length, index, lanes })
    }

    fn length(&mut self, buffer: NodeId) -> Result<Length, BackendError> {
        let [length] = self.graph.props(buffer).shape.as_slice() else {
            return self.elements_of(buffer).map(Length::Number);
        };
        if length.as_const().is_some() {
            return self.elements_of(buffer).map(Length::Number);
        }
        let known = self.code.lengths.iter().position(|known| known == length);
        Ok(Length::Named(known.unwrap_or_else(|| {
            self.code.lengths.push(length.clone());
            self.code.lengths.len() - 1
        })))
    }

    /// Skips nodes that do not change an address.
    fn base(&self, mut node: NodeId) -> Result<NodeId, BackendError> {
        // Sources are older than users, so this ends.
        while matches!(self.graph.op(node), Op::After | Op::Reshape) {
            node = self.graph.source(node, 0);
        }
        Ok(node)
    }

    /// The register of a Shrink's offset along its one axis.
    fn offset(&mut self, node: NodeId) -> Result<Register, BackendError> {
        let offsets = self.graph.source(node, 1);
        let offset = match self.graph.sources(offsets) {
            [offset] if self.graph.op(offsets) == Op::Stack => self.value(*offset)?,
            _ => self.value(offsets)?,
        };
        if offset.lanes == 1 { Ok(offset) } else { Err(self.refuse(node, "only one axis is shrunk")) }
    }

    pub(super) fn constant_offset(&self, node: NodeId) -> Result<u32, BackendError> {
        let value = self.graph.props(self.graph.source(node, 1)).value.as_ref();
        value
            .filter(|value| value.len() == 1)
            .and_then(|value| u32::try_from(value[0].as_const()?).ok())
            .ok_or_else(|| self.refuse(node, "the offset into a vector must be constant"))
    }
}
