//! Addresses, loads and stores.

use super::{Block, Emitter, Kind, Result, Space, UNNAMED, Value, mismatch};
use llvm_sys::LLVMAtomicOrdering::*;
use llvm_sys::LLVMAtomicRMWBinOp::{self, *};
use llvm_sys::core::*;

// SAFETY of this file: as of `emit`.
impl Emitter<'_> {
    /// `base` moved by `index` elements of `element`; a vector of indices gives a vector of addresses.
    pub(in super::super) fn offset(&self, base: Value, index: Value, element: Kind) -> Result<Value> {
        if !base.kind.is_pointer() || !index.kind.is_int() || base.lanes != 1 {
            return Err(mismatch("address", base, index));
        }
        // Not `inbounds`: a gated access, or a partial sum, may point out of bounds.
        let (element, mut indices) = (self.type_of(element, 1), [index.raw]);
        // SAFETY: see above.
        let raw = unsafe { LLVMBuildGEP2(self.builder, element, base.raw, indices.as_mut_ptr(), 1, UNNAMED) };
        Ok(Value { raw, kind: base.kind, lanes: index.lanes })
    }

    pub(in super::super) fn load(&self, from: Value, kind: Kind, lanes: u32, alignment: u32) -> Result<Value> {
        if !from.kind.is_pointer() || from.lanes != 1 {
            return Err(mismatch("load", from, from));
        }
        // SAFETY: see above.
        unsafe {
            let raw = LLVMBuildLoad2(self.builder, self.type_of(kind, lanes), from.raw, UNNAMED);
            LLVMSetAlignment(raw, alignment);
            Ok(Value { raw, kind, lanes })
        }
    }

    /// A store; `nontemporal` ones bypass the caches.
    pub(in super::super) fn store(&self, to: Value, value: Value, alignment: u32, nontemporal: bool) -> Result<()> {
        if !to.kind.is_pointer() || to.lanes != 1 {
            return Err(mismatch("store", to, value));
        }
        // SAFETY: see above.
        unsafe {
            let store = LLVMBuildStore(self.builder, value.raw, to.raw);
            LLVMSetAlignment(store, alignment);
            if nontemporal {
                let mut one = [LLVMValueAsMetadata(self.int(Kind::I32, 1, 1).raw)];
                let node = LLVMMDNodeInContext2(self.context, one.as_mut_ptr(), 1);
                let name = "nontemporal";
                let kind = LLVMGetMDKindIDInContext(self.context, name.as_ptr().cast(), name.len() as u32);
                LLVMSetMetadata(store, kind, LLVMMetadataAsValue(self.context, node));
            }
        }
        Ok(())
    }

    /// Adds to memory atomically.
    pub(in super::super) fn atomic_add(&self, to: Value, value: Value) -> Result<()> {
        let is_float = value.kind.is_float();
        self.atomic(if is_float { LLVMAtomicRMWBinOpFAdd } else { LLVMAtomicRMWBinOpAdd }, to, value)
    }

    /// Sets bits in memory atomically.
    pub(in super::super) fn atomic_or(&self, to: Value, value: Value) -> Result<()> {
        self.atomic(LLVMAtomicRMWBinOpOr, to, value)
    }

    fn atomic(&self, operation: LLVMAtomicRMWBinOp, to: Value, value: Value) -> Result<()> {
        check_atomic(to, value)?;
        let order = LLVMAtomicOrderingMonotonic;
        // SAFETY: see above.
        unsafe {
            match self.scope {
                None => drop(LLVMBuildAtomicRMW(self.builder, operation, to.raw, value.raw, order, 0)),
                Some(scope) => {
                    let id = self.scope_id(scope.name);
                    let done = LLVMBuildAtomicRMWSyncScope(self.builder, operation, to.raw, value.raw, order, id);
                    self.annotate(done, scope);
                }
            }
        }
        Ok(())
    }

    /// Loads atomically.
    pub(in super::super) fn atomic_load(&self, from: Value, kind: Kind) -> Result<Value> {
        let value = self.load(from, kind, 1, kind.bits() / 8)?;
        // SAFETY: see above; the value is a load.
        unsafe {
            LLVMSetOrdering(value.raw, LLVMAtomicOrderingMonotonic);
            if let Some(scope) = self.scope {
                LLVMSetAtomicSyncScopeID(value.raw, self.scope_id(scope.name));
            }
        }
        Ok(value)
    }

    /// Compare-and-swap: returns the old value, and whether it was `old`.
    pub(in super::super) fn compare_exchange(&self, to: Value, old: Value, new: Value) -> Result<(Value, Value)> {
        check_atomic(to, old)?;
        if old.kind != new.kind || new.lanes != 1 || !old.kind.is_int() {
            return Err(mismatch("exchange", old, new));
        }
        let order = LLVMAtomicOrderingMonotonic;
        // SAFETY: see above.
        let (found, done) = unsafe {
            let pair = match self.scope {
                None => LLVMBuildAtomicCmpXchg(self.builder, to.raw, old.raw, new.raw, order, order, 0),
                Some(scope) => {
                    let id = self.scope_id(scope.name);
                    LLVMBuildAtomicCmpXchgSyncScope(self.builder, to.raw, old.raw, new.raw, order, order, id)
                }
            };
            let part = |index| LLVMBuildExtractValue(self.builder, pair, index, UNNAMED);
            (part(0), part(1))
        };
        Ok((Value { raw: found, ..old }, Value { raw: done, kind: Kind::I1, lanes: 1 }))
    }

    /// Allocates stack memory in the entry block.
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
            self.enter(current);
            Value { raw, kind: Kind::Pointer(Space::Flat), lanes: 1 }
        }
    }

    /// Orders non-temporal stores before the end of this kernel becomes visible to other threads.
    pub(in super::super) fn fence(&self, is_x86: bool) -> Result<()> {
        if is_x86 {
            self.intrinsic("llvm.x86.sse.sfence", &[], &[], None)?;
        } else {
            // SAFETY: see above.
            unsafe { LLVMBuildFence(self.builder, LLVMAtomicOrderingSequentiallyConsistent, 0, UNNAMED) };
        }
        Ok(())
    }
}

fn check_atomic(to: Value, value: Value) -> Result<()> {
    let fits = to.kind.is_pointer() && to.lanes == 1 && value.lanes == 1 && !value.kind.is_pointer();
    if fits { Ok(()) } else { Err(mismatch("atomic operation", to, value)) }
}
