//! Disassembles machine code of AMD GPUs by LLVM. The simulator reads the text.

use super::{LlvmError, llvm};
use crate::Gpu;
use crate::processor::Architecture;
use llvm_sys::disassembler::{
    LLVMCreateDisasmCPUFeatures, LLVMDisasmContextRef, LLVMDisasmDispose, LLVMDisasmInstruction,
};
use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

unsafe extern "C" {
    // `llvm-sys` does not declare it.
    fn LLVMInitializeAMDGPUDisassembler();
}

const TRIPLE: &CStr = c"amdgcn-amd-amdhsa";
/// The longest text of an instruction.
const MOST_TEXT: usize = 512;

/// Functions that this needs beyond those of the code generator.
const REQUIRED: &[&str] = &[
    "LLVMInitializeAMDGPUTargetInfo",
    "LLVMInitializeAMDGPUTargetMC",
    "LLVMInitializeAMDGPUDisassembler",
    "LLVMCreateDisasmCPUFeatures",
    "LLVMDisasmInstruction",
    "LLVMDisasmDispose",
];

/// A disassembler for one chip.
#[derive(Debug)]
pub struct Disassembler {
    context: LLVMDisasmContextRef,
}

impl Disassembler {
    /// A disassembler for a chip such as `gfx942`; loads libLLVM.
    ///
    /// # Errors
    /// When no libLLVM is found, or it does not know the chip.
    pub fn new(chip: &str) -> Result<Disassembler, LlvmError> {
        let error = |reason: String| LlvmError::Target { triple: TRIPLE.to_string_lossy().into_owned(), reason };
        llvm()?;
        static READY: OnceLock<Result<(), String>> = OnceLock::new();
        let ready = READY.get_or_init(|| {
            if let Some(missing) = REQUIRED.iter().find(|name| !tinyspec_llvm_stubs::has(name)) {
                return Err(format!("this libLLVM has no disassembler for amdgcn: `{missing}` is missing"));
            }
            // SAFETY: libLLVM is bound and has these functions.
            unsafe {
                llvm_sys::target::LLVMInitializeAMDGPUTargetInfo();
                llvm_sys::target::LLVMInitializeAMDGPUTargetMC();
                LLVMInitializeAMDGPUDisassembler();
            }
            Ok(())
        });
        ready.clone().map_err(error)?;
        // LLVM itself treats an unknown name as some old chip.
        let is_known = Gpu::named(chip).is_ok_and(|gpu| gpu.architecture == Architecture::Amdgcn);
        let name = CString::new(chip).ok().filter(|_| is_known);
        let name = name.ok_or_else(|| error(format!("`{chip}` is not a GPU of AMD that code is made for")))?;
        // SAFETY: the strings outlive the call; without callbacks there is nothing else to keep alive.
        let context = unsafe {
            LLVMCreateDisasmCPUFeatures(
                TRIPLE.as_ptr(),
                name.as_ptr(),
                c"".as_ptr(),
                std::ptr::null_mut(),
                0,
                None,
                None,
            )
        };
        match context.is_null() {
            true => Err(error(format!("no disassembler for processor `{chip}`"))),
            false => Ok(Disassembler { context }),
        }
    }

    /// The length and text of the instruction at the start of the bytes; `None` if it is invalid.
    pub fn instruction(&mut self, code: &[u8], address: u64) -> Option<(usize, String)> {
        let mut text = [0 as c_char; MOST_TEXT];
        // A truncated instruction would be read beyond the end.
        let mut bytes = [0u8; 32];
        let given = code.len().min(20);
        bytes[..given].copy_from_slice(&code[..given]);
        // SAFETY: the context is ours; the bytes and the text are as long as stated.
        let length = unsafe {
            LLVMDisasmInstruction(
                self.context,
                bytes.as_mut_ptr(),
                bytes.len() as u64,
                address,
                text.as_mut_ptr(),
                text.len(),
            )
        };
        if length == 0 || length > given {
            return None;
        }
        // SAFETY: LLVM ends the text with a NUL, within its length.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().trim().to_string();
        Some((length, text))
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used again.
        unsafe { LLVMDisasmDispose(self.context) };
    }
}
