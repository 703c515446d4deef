//! The wrappers that `llvm-sys` compiles from C, because LLVM's headers define them as macros.
//!
//! All of them exist, since inkwell refers to all; each covers the processors that this project compiles for.

use std::ffi::c_int;

macro_rules! initializers {
    ($($(#[$doc:meta])* $all:ident: $($function:ident)*;)*) => {
        unsafe extern "C" { $($(fn $function();)*)* }
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            extern "C" fn $all() {
                // SAFETY: registration functions of LLVM-C take nothing and may run more than once.
                $(unsafe { $function() };)*
            }
        )*
    };
}

initializers! {
    LLVM_InitializeAllTargetInfos: LLVMInitializeX86TargetInfo LLVMInitializeAArch64TargetInfo LLVMInitializeNVPTXTargetInfo LLVMInitializeAMDGPUTargetInfo;
    LLVM_InitializeAllTargets: LLVMInitializeX86Target LLVMInitializeAArch64Target LLVMInitializeNVPTXTarget LLVMInitializeAMDGPUTarget;
    LLVM_InitializeAllTargetMCs: LLVMInitializeX86TargetMC LLVMInitializeAArch64TargetMC LLVMInitializeNVPTXTargetMC LLVMInitializeAMDGPUTargetMC;
    LLVM_InitializeAllAsmPrinters: LLVMInitializeX86AsmPrinter LLVMInitializeAArch64AsmPrinter LLVMInitializeNVPTXAsmPrinter LLVMInitializeAMDGPUAsmPrinter;
    LLVM_InitializeAllAsmParsers: LLVMInitializeX86AsmParser LLVMInitializeAArch64AsmParser LLVMInitializeAMDGPUAsmParser;
    LLVM_InitializeAllDisassemblers: LLVMInitializeX86Disassembler LLVMInitializeAArch64Disassembler;
}

macro_rules! native {
    ($($all:ident: $x86:ident $aarch64:ident;)*) => {
        $(
            fn $all() {
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                unsafe { $x86() };
                // SAFETY: as above.
                #[cfg(target_arch = "aarch64")]
                unsafe { $aarch64() };
            }
        )*
    };
}

native! {
    target_info: LLVMInitializeX86TargetInfo LLVMInitializeAArch64TargetInfo;
    target: LLVMInitializeX86Target LLVMInitializeAArch64Target;
    target_mc: LLVMInitializeX86TargetMC LLVMInitializeAArch64TargetMC;
    asm_printer: LLVMInitializeX86AsmPrinter LLVMInitializeAArch64AsmPrinter;
    asm_parser: LLVMInitializeX86AsmParser LLVMInitializeAArch64AsmParser;
    disassembler: LLVMInitializeX86Disassembler LLVMInitializeAArch64Disassembler;
}

#[unsafe(no_mangle)]
extern "C" fn LLVM_InitializeNativeTarget() -> c_int {
    target_info();
    target();
    target_mc();
    0
}

#[unsafe(no_mangle)]
extern "C" fn LLVM_InitializeNativeAsmPrinter() -> c_int {
    asm_printer();
    0
}

#[unsafe(no_mangle)]
extern "C" fn LLVM_InitializeNativeAsmParser() -> c_int {
    asm_parser();
    0
}

#[unsafe(no_mangle)]
extern "C" fn LLVM_InitializeNativeDisassembler() -> c_int {
    disassembler();
    0
}
