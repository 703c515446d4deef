//! Checks custom code for GPUs. LLVM aborts the process if a chip has no instruction for something, so only what is
//! tested for every chip is accepted: arithmetic, comparisons, conversions, branches and the intrinsics of
//! [`Intrinsic::ALL`], on machine numbers and short vectors of them.

use crate::gpu::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue, InstructionOpcode, InstructionValue};
use llvm_sys::LLVMTypeKind::*;
use llvm_sys::core::*;
use llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};

type Refused<T> = std::result::Result<T, String>;

/// Accepts the functions of a module, or reports what GPUs do not support.
pub(in super::super) fn code(module: &Module) -> Refused<()> {
    for function in module.get_functions() {
        if function.get_intrinsic_id() != 0 {
            intrinsic(function)?;
            continue;
        }
        for block in function.get_basic_blocks() {
            for instruction in block.get_instructions() {
                operation(instruction)?;
            }
        }
    }
    Ok(())
}

fn intrinsic(function: FunctionValue) -> Refused<()> {
    let name = function.get_name().to_string_lossy().into_owned();
    // SAFETY: the function is alive, and its type that of a function.
    let result = unsafe { LLVMGetReturnType(LLVMGlobalGetValueType(function.as_value_ref())) };
    let element = element(result);
    match Intrinsic::of(&name) {
        Some(known) if element.is_some_and(|of| of == Element { is_float: known.is_of_floats, is_bool: false }) => {
            Ok(())
        }
        _ => Err(format!("a GPU may have no `{name}`; there are: {}", names())),
    }
}

fn names() -> String {
    Intrinsic::ALL.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

/// Instructions that every chip supports, for all machine numbers. The float remainder is not among them: LLVM rounds
/// the quotient, and miscompiles narrow ones.
const KNOWN: &[InstructionOpcode] = {
    use InstructionOpcode::*;
    &[
        Add,
        FAdd,
        Sub,
        FSub,
        Mul,
        FMul,
        UDiv,
        SDiv,
        FDiv,
        URem,
        SRem,
        FNeg,
        Shl,
        LShr,
        AShr,
        And,
        Or,
        Xor,
        ICmp,
        FCmp,
        Select,
        Freeze,
        Trunc,
        ZExt,
        SExt,
        FPToUI,
        FPToSI,
        UIToFP,
        SIToFP,
        FPTrunc,
        FPExt,
        BitCast,
        ExtractElement,
        InsertElement,
        ShuffleVector,
        Phi,
        Br,
        Switch,
        Return,
        Call,
    ]
};

fn operation(instruction: InstructionValue) -> Refused<()> {
    let opcode = instruction.get_opcode();
    let is_known = KNOWN.contains(&opcode);
    if !is_known {
        return Err(format!("a GPU's kernel takes no `{}`", format!("{opcode:?}").to_lowercase()));
    }
    // SAFETY: the instruction is alive.
    unsafe {
        let value = instruction.as_value_ref();
        if opcode == InstructionOpcode::Call && !LLVMIsAInlineAsm(LLVMGetCalledValue(value)).is_null() {
            return Err("a GPU's kernel takes no inline assembler".into());
        }
        let place_of_lane = match opcode {
            InstructionOpcode::ExtractElement => Some(1),
            InstructionOpcode::InsertElement => Some(2),
            _ => None,
        };
        if place_of_lane.is_some_and(|place| LLVMIsAConstantInt(LLVMGetOperand(value, place)).is_null()) {
            return Err("a GPU's kernel takes a lane by a constant: by a variable it needs a stack".into());
        }
        let operands = (0..LLVMGetNumOperands(value).unsigned_abs()).map(|number| LLVMGetOperand(value, number));
        let are_no_numbers = |value| LLVMIsABasicBlock(value).is_null() && LLVMIsAFunction(value).is_null();
        operands.filter(|&operand| are_no_numbers(operand)).chain([value]).try_for_each(|value| number(value))
    }
}

/// Checks that every chip supports the type of an operand or a result.
///
/// # Safety
/// The value is alive.
unsafe fn number(value: LLVMValueRef) -> Refused<()> {
    // SAFETY: the value is alive, and LLVM's text is disposed of once.
    unsafe {
        if !LLVMIsAConstantExpr(value).is_null() {
            return Err("a GPU's kernel takes no constant expression".into());
        }
        let of = LLVMTypeOf(value);
        if LLVMGetTypeKind(of) == LLVMVoidTypeKind || element(of).is_some() {
            return Ok(());
        }
        let text = LLVMPrintTypeToString(of);
        let name = std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        Err(format!(
            "a GPU's kernel takes no value of the type `{name}`, only numbers of 8 to 64 bits, and up to {} of them",
            Intrinsic::MOST_LANES
        ))
    }
}

/// The type of a machine number, or of the elements of a vector.
#[derive(PartialEq)]
struct Element {
    is_float: bool,
    is_bool: bool,
}

fn element(of: LLVMTypeRef) -> Option<Element> {
    // SAFETY: the type is alive and of this kind.
    unsafe {
        let mut of = of;
        if LLVMGetTypeKind(of) == LLVMVectorTypeKind {
            if LLVMGetVectorSize(of) > Intrinsic::MOST_LANES {
                return None;
            }
            of = LLVMGetElementType(of);
        }
        match LLVMGetTypeKind(of) {
            LLVMIntegerTypeKind => match LLVMGetIntTypeWidth(of) {
                1 => Some(Element { is_float: false, is_bool: true }),
                8 | 16 | 32 | 64 => Some(Element { is_float: false, is_bool: false }),
                _ => None,
            },
            LLVMHalfTypeKind | LLVMFloatTypeKind | LLVMDoubleTypeKind => {
                Some(Element { is_float: true, is_bool: false })
            }
            _ => None,
        }
    }
}
