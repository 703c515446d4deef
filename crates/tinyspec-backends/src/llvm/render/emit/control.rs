//! Blocks, the jumps between them, and calls.

use super::{Block, Emitter, Kind, Result, UNNAMED, Value, mismatch};
use crate::BackendError;
use llvm_sys::core::*;

// SAFETY of this file: as of `emit`.
impl Emitter<'_> {
    /// The current block.
    pub(in super::super) fn block(&self) -> Block {
        // SAFETY: see above.
        Block(unsafe { LLVMGetInsertBlock(self.builder) })
    }

    pub(in super::super) fn new_block(&self) -> Block {
        // SAFETY: see above.
        Block(unsafe { LLVMAppendBasicBlockInContext(self.context, self.function, UNNAMED) })
    }

    pub(in super::super) fn enter(&self, block: Block) {
        // SAFETY: see above.
        unsafe { LLVMPositionBuilderAtEnd(self.builder, block.0) };
        self.keep_location();
    }

    /// Emits the next instructions before the terminator of `block`, or at its end if it has none.
    pub(in super::super) fn enter_before_end(&self, block: Block) {
        // SAFETY: see above.
        unsafe {
            match LLVMGetBasicBlockTerminator(block.0) {
                end if end.is_null() => LLVMPositionBuilderAtEnd(self.builder, block.0),
                end => LLVMPositionBuilderBefore(self.builder, end),
            }
        }
        self.keep_location();
    }

    pub(in super::super) fn jump(&self, to: Block) {
        // SAFETY: see above.
        unsafe { LLVMBuildBr(self.builder, to.0) };
    }

    pub(in super::super) fn branch(&self, condition: Value, then: Block, otherwise: Block) -> Result<()> {
        if condition.kind != Kind::I1 || condition.lanes != 1 {
            return Err(mismatch("branch", condition, condition));
        }
        // SAFETY: see above.
        unsafe { LLVMBuildCondBr(self.builder, condition.raw, then.0, otherwise.0) };
        Ok(())
    }

    /// Emits a phi; see [`Emitter::arrive`].
    pub(in super::super) fn phi(&self, kind: Kind, lanes: u32) -> Value {
        // SAFETY: see above.
        Value { raw: unsafe { LLVMBuildPhi(self.builder, self.type_of(kind, lanes), UNNAMED) }, kind, lanes }
    }

    /// `phi` is `value` when control comes from `block`.
    pub(in super::super) fn arrive(&self, phi: Value, value: Value, block: Block) -> Result<()> {
        if phi.kind != value.kind || phi.lanes != value.lanes {
            return Err(mismatch("join", phi, value));
        }
        let (mut values, mut blocks) = ([value.raw], [block.0]);
        // SAFETY: see above; `phi` came from `Emitter::phi`.
        unsafe { LLVMAddIncoming(phi.raw, values.as_mut_ptr(), blocks.as_mut_ptr(), 1) };
        Ok(())
    }

    /// Calls a function of the module, with a result of `kind` and `lanes`.
    pub(in super::super) fn call_named(
        &self,
        name: &str,
        arguments: &[Value],
        kind: Kind,
        lanes: u32,
    ) -> Result<Value> {
        let unknown = || BackendError::Compile(format!("there is no function `{name}` of these operands"));
        let name = std::ffi::CString::new(name).map_err(|_| unknown())?;
        let mut raw: Vec<_> = arguments.iter().map(|argument| argument.raw).collect();
        // SAFETY: see above. The function's own type is compared with that of the call.
        unsafe {
            let function = LLVMGetNamedFunction(self.module, name.as_ptr());
            if function.is_null() {
                return Err(unknown());
            }
            let of_function = LLVMGlobalGetValueType(function);
            let mut parameters: Vec<_> = raw.iter().map(|&argument| LLVMTypeOf(argument)).collect();
            let result = self.type_of(kind, lanes);
            let of_call = LLVMFunctionType(result, parameters.as_mut_ptr(), parameters.len() as u32, 0);
            if of_function != of_call {
                return Err(unknown());
            }
            let value = LLVMBuildCall2(self.builder, of_call, function, raw.as_mut_ptr(), raw.len() as u32, UNNAMED);
            Ok(Value { raw: value, kind, lanes })
        }
    }

    pub(in super::super) fn finish(&self) {
        // SAFETY: see above.
        unsafe { LLVMBuildRetVoid(self.builder) };
    }
}
