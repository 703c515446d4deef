//! Addresses, loads and stores.

use super::{Block, Emitter, Kind, Result, UNNAMED, Value, mismatch};
use llvm_sys::core::*;
use llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp};

// SAFETY of this file: as of `emit`.
impl Emitter<'_> {
    /// `base` moved by `index` elements of `element`; a vector of indices gives a vector of addresses.
    pub(in super::super) fn offset(&self, base: Value, index: Value, element: Kind) -> Result<Value> {
        if base.kind != Kind::Pointer || !index.kind.is_int() || base.lanes != 1 {
            return Err(mismatch("address", base, index));
        }
        // Not `inbounds`: a gated access, or a part of a sum, may point outside.
        let (element, mut indices) = (self.type_of(element, 1), [index.raw]);
        // SAFETY: see above.
        let raw = unsafe { LLVMBuildGEP2(self.builder, element, base.raw, indices.as_mut_ptr(), 1, UNNAMED) };
        Ok(Value { raw, kind: Kind::Pointer, lanes: index.lanes })
    }

    pub(in super::super) fn load(&self, from: Value, kind: Kind, lanes: u32, alignment: u32) -> Result<Value> {
        if from.kind != Kind::Pointer || from.lanes != 1 {
            return Err(mismatch("load", from, from));
        }
        // SAFETY: see above.
        unsafe {
            let raw = LLVMBuildLoad2(self.builder, self.type_of(kind, lanes), from.raw, UNNAMED);
            LLVMSetAlignment(raw, alignment);
            Ok(Value { raw, kind, lanes })
        }
    }

    /// A store; `streaming` ones bypass the caches.
    pub(in super::super) fn store(&self, to: Value, value: Value, alignment: u32, streaming: bool) -> Result<()> {
        if to.kind != Kind::Pointer || to.lanes != 1 {
            return Err(mismatch("store", to, value));
        }
        // SAFETY: see above.
        unsafe {
            let store = LLVMBuildStore(self.builder, value.raw, to.raw);
            LLVMSetAlignment(store, alignment);
            if streaming {
                let mut one = [LLVMValueAsMetadata(self.int(Kind::I32, 1, 1).raw)];
                let node = LLVMMDNodeInContext2(self.context, one.as_mut_ptr(), 1);
                let name = "nontemporal";
                let kind = LLVMGetMDKindIDInContext(self.context, name.as_ptr().cast(), name.len() as u32);
                LLVMSetMetadata(store, kind, LLVMMetadataAsValue(self.context, node));
            }
        }
        Ok(())
    }

    /// Adds to memory in one step that other threads do not divide.
    pub(in super::super) fn atomic_add(&self, to: Value, value: Value) -> Result<()> {
        if to.kind != Kind::Pointer || to.lanes != 1 || value.lanes != 1 || value.kind == Kind::Pointer {
            return Err(mismatch("atomic addition", to, value));
        }
        let operation = if value.kind.is_float() {
            LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd
        } else {
            LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd
        };
        let order = LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic;
        // SAFETY: see above.
        unsafe { LLVMBuildAtomicRMW(self.builder, operation, to.raw, value.raw, order, 0) };
        Ok(())
    }

    /// Room on the stack, in the entry block.
    pub(in super::super) fn scratch(&self, entry: Block, kind: Kind, lanes: u32) -> Value {
        let current = self.block();
        // SAFETY: see above.
        unsafe {
            let first = LLVMGetFirstInstruction(entry.0);
            if first.is_null() {
                LLVMPositionBuilderAtEnd(self.builder, entry.0);
            } else {
                LLVMPositionBuilderBefore(self.builder, first);
            }
            let raw = LLVMBuildAlloca(self.builder, self.type_of(kind, lanes), UNNAMED);
            LLVMPositionBuilderAtEnd(self.builder, current.0);
            Value { raw, kind: Kind::Pointer, lanes: 1 }
        }
    }

    /// Orders streaming stores before whatever another thread sees of this kernel's end.
    pub(in super::super) fn fence(&self) -> Result<()> {
        if cfg!(target_arch = "x86_64") {
            self.intrinsic("llvm.x86.sse.sfence", &[], &[], None)?;
        } else {
            // SAFETY: see above.
            unsafe {
                LLVMBuildFence(self.builder, LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent, 0, UNNAMED)
            };
        }
        Ok(())
    }
}
