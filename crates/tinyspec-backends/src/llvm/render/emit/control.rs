//! Blocks, and the jumps between them.

use super::{Block, Emitter, Kind, Result, UNNAMED, Value, mismatch};
use llvm_sys::core::*;

// SAFETY of this file: as of `emit`.
impl Emitter<'_> {
    /// The block that instructions go to.
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
    }

    /// Instructions go before the jump that ends `block`, or to its end while it has none.
    pub(in super::super) fn enter_before_end(&self, block: Block) {
        // SAFETY: see above.
        unsafe {
            match LLVMGetBasicBlockTerminator(block.0) {
                end if end.is_null() => LLVMPositionBuilderAtEnd(self.builder, block.0),
                end => LLVMPositionBuilderBefore(self.builder, end),
            }
        }
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

    /// A value that depends on where control comes from; see [`Emitter::arrive`].
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

    pub(in super::super) fn finish(&self) {
        // SAFETY: see above.
        unsafe { LLVMBuildRetVoid(self.builder) };
    }
}
