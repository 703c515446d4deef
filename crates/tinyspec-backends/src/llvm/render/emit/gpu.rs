//! Features of GPUs: workgroup memory, thread index registers, memory scopes.

use super::{Emitter, Kind, Result, Space, UNNAMED, Value};
use crate::BackendError;
use llvm_sys::LLVMAtomicOrdering;
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMValueRef;

/// The alignment of LOCAL buffers, the same as in GLOBAL memory.
const LOCAL_ALIGNMENT: u32 = 64;
const LOCAL: &std::ffi::CStr = c"local";

/// The threads for which an operation is atomic, and metadata about the memory.
#[derive(Clone, Copy)]
pub(in super::super) struct Scope {
    pub(in super::super) name: &'static str,
    pub(in super::super) metadata: &'static [&'static str],
}

// SAFETY of this file: as of `emit`.
impl Emitter<'_> {
    /// Declares the workgroup's memory of this size. There is only one.
    pub(in super::super) fn local_memory(&self, bytes: usize) -> Value {
        let kind = Kind::Pointer(Space::Local);
        // SAFETY: see above.
        unsafe {
            let mut memory = LLVMGetNamedGlobal(self.module, LOCAL.as_ptr());
            if memory.is_null() {
                let bytes = LLVMArrayType2(LLVMInt8TypeInContext(self.context), bytes.max(1) as u64);
                memory = LLVMAddGlobalInAddressSpace(self.module, bytes, LOCAL.as_ptr(), Space::Local.number());
                LLVMSetLinkage(memory, llvm_sys::LLVMLinkage::LLVMInternalLinkage);
                LLVMSetInitializer(memory, LLVMGetPoison(bytes));
                LLVMSetAlignment(memory, LOCAL_ALIGNMENT);
            }
            Value { raw: memory, kind, lanes: 1 }
        }
    }

    /// Reads a special register, which is below `bound`.
    pub(in super::super) fn special_register(&self, name: &str, bound: u32) -> Result<Value> {
        let value = self.intrinsic(name, &[], &[], Some((Kind::I32, 1)))?;
        let value = value.ok_or_else(|| BackendError::Compile(format!("`{name}` has no value")))?;
        // SAFETY: see above; the value is a call whose result has 32 bits.
        unsafe {
            let range = "range";
            let kind = LLVMGetEnumAttributeKindForName(range.as_ptr().cast(), range.len());
            let (least, bound) = ([0u64], [u64::from(bound)]);
            let range = LLVMCreateConstantRangeAttribute(self.context, kind, 32, least.as_ptr(), bound.as_ptr());
            LLVMAddCallSiteAttribute(value.raw, llvm_sys::LLVMAttributeReturnIndex, range);
        }
        Ok(value)
    }

    /// Emits a `freeze` of the value.
    pub(in super::super) fn freeze(&self, value: Value) -> Value {
        // SAFETY: see above.
        Value { raw: unsafe { LLVMBuildFreeze(self.builder, value.raw, UNNAMED) }, ..value }
    }

    /// Emits a fence for the threads of a scope.
    pub(in super::super) fn fence_in(&self, scope: &str, ordering: LLVMAtomicOrdering) {
        // SAFETY: see above.
        unsafe { LLVMBuildFenceSyncScope(self.builder, ordering, self.scope_id(scope), UNNAMED) };
    }

    pub(super) fn scope_id(&self, scope: &str) -> u32 {
        // SAFETY: see above.
        unsafe { LLVMGetSyncScopeID(self.context, scope.as_ptr().cast(), scope.len()) }
    }

    /// Adds the metadata of `scope` to an atomic operation.
    pub(super) fn annotate(&self, operation: LLVMValueRef, scope: Scope) {
        // SAFETY: see above.
        unsafe {
            let empty = LLVMMetadataAsValue(self.context, LLVMMDNodeInContext2(self.context, std::ptr::null_mut(), 0));
            for name in scope.metadata {
                let kind = LLVMGetMDKindIDInContext(self.context, name.as_ptr().cast(), name.len() as u32);
                LLVMSetMetadata(operation, kind, empty);
            }
        }
    }
}
