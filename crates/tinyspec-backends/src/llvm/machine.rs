//! The code generator: a target machine per thread, which turns modules into objects.

use super::{LlvmError, llvm, sign_masks};
use crate::processor::{Architecture, Isa, Processor};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};
use llvm_sys::LLVMDiagnosticSeverity::LLVMDSError;
use llvm_sys::prelude::LLVMDiagnosticInfoRef;
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// LLVM's name of the processor, and the instruction sets to enable and disable.
fn name_and_features(isa: &Isa) -> (String, String) {
    if isa.cpu == Processor::native().isa.cpu {
        return (
            TargetMachine::get_host_cpu_name().to_string_lossy().into_owned(),
            TargetMachine::get_host_cpu_features().to_string_lossy().into_owned(),
        );
    }
    let unlisted = match isa.architecture {
        Architecture::X86_64 => UNLISTED,
        Architecture::Amdgcn => WAITS_AT_BARRIERS,
        _ => "",
    };
    (isa.cpu.clone(), unlisted.into())
}

/// Instruction sets that [`Isa::features`] never lists, but that LLVM would use on some processors.
const UNLISTED: &str = "-sse4a,-avx512fp16";

/// LLVM waits at the fence before a barrier, but drops that wait at the top of a loop if no accesses are pending when
/// the loop is entered, even if the loop's trips leave some pending. For chips without this feature, it waits at the
/// barrier itself.
const WAITS_AT_BARRIERS: &str = "-back-off-barrier";

/// Kernels for a CPU are ELF on every system, because our loader reads that.
fn triple(architecture: Architecture) -> String {
    let rest = match architecture {
        Architecture::X86_64 | Architecture::Aarch64 => "unknown-linux-gnu",
        Architecture::Nvptx64 => "nvidia-cuda",
        Architecture::Amdgcn => "amd-amdhsa",
    };
    format!("{}-{rest}", architecture.name())
}

/// The oldest LLVM whose code for GPUs meets the renderer's expectations.
const OLDEST_FOR_GPUS: u32 = 22;

/// Registers LLVM's code generator for an architecture, if this libLLVM has it.
fn initialize(architecture: Architecture) -> Result<(), String> {
    static X86_64: OnceLock<Result<(), String>> = OnceLock::new();
    static AARCH64: OnceLock<Result<(), String>> = OnceLock::new();
    static NVPTX: OnceLock<Result<(), String>> = OnceLock::new();
    static AMDGPU: OnceLock<Result<(), String>> = OnceLock::new();
    let config = InitializationConfig::default();
    let has = |function: &str| match tinyspec_llvm_stubs::has(function) {
        true => Ok(()),
        false => Err(format!("this libLLVM has no code generator for {}", architecture.name())),
    };
    let outcome =
        match architecture {
            Architecture::X86_64 => {
                X86_64.get_or_init(|| has("LLVMInitializeX86Target").map(|()| LlvmTarget::initialize_x86(&config)))
            }
            Architecture::Aarch64 => AARCH64
                .get_or_init(|| has("LLVMInitializeAArch64Target").map(|()| LlvmTarget::initialize_aarch64(&config))),
            Architecture::Nvptx64 => {
                NVPTX.get_or_init(|| has("LLVMInitializeNVPTXTarget").map(|()| LlvmTarget::initialize_nvptx(&config)))
            }
            Architecture::Amdgcn => AMDGPU
                .get_or_init(|| has("LLVMInitializeAMDGPUTarget").map(|()| LlvmTarget::initialize_amd_gpu(&config))),
        };
    outcome.clone()
}

/// A thread's code generator. Creating one takes 0.06 ms, or some 10 ms for AMD GPUs, so threads keep theirs.
pub struct Machine {
    isa: Isa,
    target_machine: TargetMachine,
}

impl Machine {
    /// A code generator for this instruction set; loads libLLVM if necessary.
    ///
    /// # Errors
    /// When no libLLVM is found, or it has no target for this architecture.
    pub fn new(isa: &Isa) -> Result<Machine, LlvmError> {
        Ok(Machine { isa: isa.clone(), target_machine: target_machine(isa, "")? })
    }

    /// Generates code for the module that `build` makes: an object, or assembler text.
    ///
    /// # Errors
    /// The errors of `build`, of the verifier (in debug builds, or under `TINYSPEC_VERIFY=1`), and of the code
    /// generator.
    pub fn generate<E: From<LlvmError>>(
        &self,
        name: &str,
        output: Output,
        build: impl for<'context> Fn(&'context Context, &Module<'context>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let code = generate(&self.target_machine, name, output, &build)?;
        match sign_masks::to_avoid(&self.isa, llvm()?.version.major, output, &code) {
            Some(features) => generate(&target_machine(&self.isa, features)?, name, output, &build),
            None => Ok(code),
        }
    }
}

/// LLVM's code generator for `isa`; `without` lists features to disable.
fn target_machine(isa: &Isa, without: &str) -> Result<TargetMachine, LlvmError> {
    let version = llvm()?.version;
    let is_gpu = isa.architecture.is_gpu();
    let triple = triple(isa.architecture);
    let error = |reason: String| LlvmError::Target { triple: triple.clone(), reason };
    if is_gpu && version.major < OLDEST_FOR_GPUS {
        return Err(error(format!("code for GPUs needs LLVM {OLDEST_FOR_GPUS}, this is {version}")));
    }
    initialize(isa.architecture).map_err(error)?;
    let target_triple = TargetTriple::create(&triple);
    let target = LlvmTarget::from_triple(&target_triple).map_err(|message| error(message.to_string()))?;
    let (name, features) = name_and_features(isa);
    let target_machine = target
        .create_target_machine(
            &target_triple,
            &name,
            &[features.as_str(), without].join(","),
            if is_gpu { OptimizationLevel::Default } else { OptimizationLevel::Less },
            RelocMode::PIC,
            CodeModel::Default,
        )
        .ok_or_else(|| error(format!("no code generator for processor `{name}`")))?;
    // FastISel for AArch64 crashes on some address computations.
    if isa.architecture == Architecture::X86_64 {
        // SAFETY: the target machine is alive.
        unsafe { llvm_sys::target_machine::LLVMSetTargetMachineFastISel(target_machine.as_mut_ptr(), 1) };
    }
    Ok(target_machine)
}

fn generate<E: From<LlvmError>>(
    target_machine: &TargetMachine,
    name: &str,
    output: Output,
    build: impl for<'context> Fn(&'context Context, &Module<'context>) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let reported: Reported = Cell::new(None);
    // Contexts are cheap and keep all constants alive, so each module has its own.
    let context = Context::create();
    // SAFETY: `reported` outlives the context, and the handler runs on this thread only.
    unsafe {
        let place = std::ptr::from_ref(&reported).cast_mut().cast();
        llvm_sys::core::LLVMContextSetDiagnosticHandler(context.raw(), Some(report), place);
    }
    let module = context.create_module(name);
    module.set_triple(&target_machine.get_triple());
    module.set_data_layout(&target_machine.get_target_data().get_data_layout());
    build(&context, &module)?;
    let error = |reason: String| LlvmError::Module { name: name.into(), reason };
    // Code generation of a malformed module may end the process. The renderer should make none; this finds its bugs.
    if cfg!(debug_assertions) || verifies() {
        module.verify().map_err(|message| error(message.to_string()))?;
    }
    let bytes = match output {
        Output::Source => module.print_to_string().to_bytes().to_vec(),
        Output::Object | Output::Assembly => {
            let kind = if output == Output::Object { FileType::Object } else { FileType::Assembly };
            let buffer = target_machine.write_to_memory_buffer(&module, kind);
            buffer.map_err(|message| error(message.to_string()))?.as_slice().to_vec()
        }
    };
    match reported.take() {
        Some(reason) => Err(error(reason).into()),
        None => Ok(bytes),
    }
}

/// Whether `TINYSPEC_VERIFY` enables the verifier.
fn verifies() -> bool {
    static VERIFIES: OnceLock<bool> = OnceLock::new();
    *VERIFIES.get_or_init(|| crate::settings::VERIFY.is_on())
}

/// The output of [`Machine::generate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// An ELF object.
    Object,
    /// Assembler text.
    Assembly,
    /// LLVM IR.
    Source,
}

/// The first error of a module.
type Reported = Cell<Option<String>>;

/// Keeps the first error that LLVM reports; without a handler it would end the process.
extern "C" fn report(info: LLVMDiagnosticInfoRef, place: *mut c_void) {
    // SAFETY: LLVM passes a live diagnostic, and the cell that `generate` registered.
    unsafe {
        if llvm_sys::core::LLVMGetDiagInfoSeverity(info) != LLVMDSError {
            return;
        }
        let message = llvm_sys::core::LLVMGetDiagInfoDescription(info);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        llvm_sys::core::LLVMDisposeMessage(message);
        let reported = &*place.cast::<Reported>();
        reported.set(reported.take().or(Some(text)));
    }
}
