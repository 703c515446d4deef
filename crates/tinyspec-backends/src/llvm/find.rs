//! Finds libLLVM: the one that the user named, else the Rust toolchain's, else the system's.

use super::error::{Attempt, Attempts, LlvmError};
use super::fatal;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CString, OsString};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tinyspec_llvm_stubs::{Library, Version};

/// The version for which enum values and the C interface are declared.
const PREFERRED: u32 = 22;
/// The oldest version with the same C interface, as far as it is used here.
const OLDEST: u32 = 19;

/// The variable that names a libLLVM or its folder.
pub const VARIABLE: &str = "TINYSPEC_LLVM";

/// Functions that compiling always needs; others are checked by [`tinyspec_llvm_stubs::has`].
const REQUIRED: &[&str] = &[
    "LLVMContextCreate",
    "LLVMContextSetDiagnosticHandler",
    "LLVMInstallFatalErrorHandler",
    "LLVMModuleCreateWithNameInContext",
    "LLVMCreateTargetMachine",
    "LLVMTargetMachineEmitToMemoryBuffer",
    "LLVMVerifyModule",
    "LLVMGetHostCPUName",
    "LLVMGetHostCPUFeatures",
    "LLVMBuildFCmp",
    "LLVMGetIntrinsicDeclaration",
    "LLVMParseCommandLineOptions",
];

/// Global options of the code generator. Loop strength reduction and the machine scheduler take a third of the time and
/// gain nothing on code whose order and addressing are already chosen. The other disabled passes find nothing to do in
/// kernels, and contribute to the half millisecond that an empty function takes. Innermost loops are aligned to a line
/// of the instruction cache, so that their speed does not depend on the preceding code, which may make a difference of
/// a quarter for a matrix product. LLVM ignores unknown options.
///
/// They are global to the process, so they also apply to code for GPUs. Without them the kernels of the conformance
/// corpus have 3 % fewer instructions on gfx942 and 6 % fewer on gfx1100, but 6 % more registers on both, and take 50 %
/// longer to compile; PTX has 3 % fewer instructions and the same number of registers after ptxas.
const OPTIONS: &[&str] = &[
    "tinyspec",
    "-disable-lsr",
    "-enable-misched=false",
    "-disable-branch-fold",
    "-disable-cgp",
    "-disable-cleanups",
    "-disable-constant-hoisting",
    "-disable-early-ifcvt",
    "-disable-early-taildup",
    "-disable-machine-cse",
    "-disable-machine-dce",
    "-disable-machine-sink",
    "-disable-mergeicmps",
    "-disable-partial-libcall-inlining",
    "-disable-post-ra",
    "-disable-postra-machine-licm",
    "-disable-postra-machine-sink",
    "-disable-replace-with-vec-lib",
    "-disable-select-optimize",
    "-disable-ssc",
    "-disable-tail-duplicate",
    "-disable-x86-domain-reassignment",
    "-disable-x86-lea-opt",
    "-enable-shrink-wrap=false",
    "-no-stack-coloring",
    "-x86-cmov-converter=false",
    "-x86-disable-avoid-SFB",
    "-x86-experimental-pref-innermost-loop-alignment=6",
    "-x86-machine-combiner=false",
];

/// The libLLVM of this process.
#[derive(Debug)]
pub struct Llvm {
    /// Its version.
    pub version: Version,
    /// Where it was found.
    pub path: PathBuf,
}

/// The libLLVM of this process, loaded by the first call.
///
/// # Errors
/// When none is usable; the error lists what was tried.
pub fn llvm() -> Result<&'static Llvm, LlvmError> {
    static LLVM: OnceLock<Result<Llvm, LlvmError>> = OnceLock::new();
    LLVM.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Llvm, LlvmError> {
    let library = search(std::env::var_os(VARIABLE))?;
    let llvm = Llvm { version: library.version(), path: library.path().into() };
    if let Err(error) = library.bind(REQUIRED) {
        let attempt = Attempt { path: llvm.path, reason: error.to_string() };
        return Err(LlvmError::NotFound(Attempts(vec![attempt])));
    }
    let options: Vec<CString> = OPTIONS.iter().filter_map(|option| CString::new(*option).ok()).collect();
    let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: libLLVM is bound, and this runs once, before any other use of it.
    unsafe {
        llvm_sys::support::LLVMParseCommandLineOptions(pointers.len() as _, pointers.as_ptr(), std::ptr::null());
    }
    fatal::listen();
    keep_freed_memory();
    Ok(llvm)
}

/// LLVM frees a few megabytes after every module. glibc would return them to the system, and the next module would
/// fault them in again, which takes a quarter of its time. But glibc adapts its threshold: once a block of this size
/// has been freed, it keeps that much memory. With other allocators this has no effect.
fn keep_freed_memory() {
    const BYTES: usize = 16 << 20;
    let Ok(layout) = Layout::from_size_align(BYTES, 16) else { return };
    // SAFETY: the size is not zero, and the block is freed with the same layout, without being accessed.
    unsafe {
        let block = black_box(System.alloc(layout));
        if !block.is_null() {
            System.dealloc(block, layout);
        }
    }
}

/// Identifies the libLLVM that [`llvm`] will most likely load, without loading it, by its file's name and size. `None`
/// if no file is found: the system's linker may still find one, and programs whose kernels are all cached never need
/// it.
pub fn identity() -> Option<String> {
    let candidates = match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(named) => at(Path::new(&named)),
        None => [running_toolchain, installed_toolchains]
            .iter()
            .map(|step| step())
            .find(|f| !f.is_empty())
            .unwrap_or_default(),
    };
    let file = candidates.first()?;
    let bytes = std::fs::metadata(file).ok()?.len();
    Some(format!("{}/{bytes}", file.file_name().unwrap_or(file.as_os_str()).to_string_lossy()))
}

/// Opens the first usable libLLVM without binding it; `named` is the value of [`VARIABLE`].
///
/// # Errors
/// When none is usable. If one is named, no other is tried.
pub fn search(named: Option<OsString>) -> Result<Library, LlvmError> {
    let mut attempts = Attempts::default();
    if let Some(path) = named.filter(|value| !value.is_empty()).map(PathBuf::from) {
        return match open_any(&at(&path), &mut attempts) {
            Some(library) => Ok(library),
            None => {
                if attempts.0.is_empty() {
                    attempts.0.push(Attempt { path: path.clone(), reason: "no libLLVM in this folder".into() });
                }
                Err(LlvmError::Named { path, attempts })
            }
        };
    }
    // Each step runs only if the previous ones found nothing, since `default_toolchain` starts a process.
    const STEPS: [fn() -> Vec<PathBuf>; 4] = [running_toolchain, installed_toolchains, default_toolchain, system];
    for step in STEPS {
        if let Some(library) = open_any(&step(), &mut attempts) {
            return Ok(library);
        }
    }
    Err(LlvmError::NotFound(attempts))
}

fn open_any(candidates: &[PathBuf], attempts: &mut Attempts) -> Option<Library> {
    for path in candidates {
        if attempts.0.iter().any(|attempt| attempt.path == *path) {
            continue;
        }
        let reason = match tinyspec_llvm_stubs::open(path) {
            Ok(library) if (OLDEST..=PREFERRED).contains(&library.version().major) => return Some(library),
            Ok(library) => format!("LLVM {} is not supported", library.version()),
            Err(error) => error.to_string(),
        };
        attempts.0.push(Attempt { path: path.clone(), reason });
    }
    None
}

/// A file, or the libLLVMs in a folder.
fn at(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() { in_folder(path) } else { vec![path.into()] }
}

/// The libLLVMs in a folder, supported versions first and newest first among them.
///
/// In a toolchain, `libLLVM-22-rust-….so` is a linker script of a few bytes, which is excluded by its size.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let library = name.starts_with("libLLVM") && (name.contains(".so") || name.ends_with(".dylib"));
            let large = || std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.len() > 1 << 20);
            (library && large()).then(|| (version_in(&name), entry.path()))
        })
        .collect();
    found.sort_by_key(|(version, path)| {
        (*version > PREFERRED, std::cmp::Reverse(*version), std::cmp::Reverse(path.clone()))
    });
    found.into_iter().map(|(_, path)| path).collect()
}

/// The first number in a file name such as `libLLVM.so.22.1-rust-1.95.0-stable`.
fn version_in(name: &str) -> u32 {
    name.split(|c: char| !c.is_ascii_digit()).find_map(|number| number.parse().ok()).unwrap_or(0)
}

/// The toolchain whose cargo started this program: `CARGO` is its path.
fn running_toolchain() -> Vec<PathBuf> {
    let Some(cargo) = std::env::var_os("CARGO") else { return Vec::new() };
    let root = Path::new(&cargo).parent().and_then(Path::parent);
    root.map(|root| in_folder(&root.join("lib"))).unwrap_or_default()
}

/// Every toolchain of rustup.
fn installed_toolchains() -> Vec<PathBuf> {
    let home =
        std::env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".rustup")));
    let Some(entries) = home.and_then(|home| std::fs::read_dir(home.join("toolchains")).ok()) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.flatten().flat_map(|entry| in_folder(&entry.path().join("lib"))).collect();
    found.sort_by_key(|path| {
        let version = path.file_name().map_or(0, |name| version_in(&name.to_string_lossy()));
        (version > PREFERRED, std::cmp::Reverse(version))
    });
    found
}

/// The toolchain of the `rustc` in PATH, which need not be rustup's.
fn default_toolchain() -> Vec<PathBuf> {
    let Ok(output) = Command::new("rustc").args(["--print", "sysroot"]).output() else { return Vec::new() };
    let Ok(sysroot) = String::from_utf8(output.stdout) else { return Vec::new() };
    in_folder(&Path::new(sysroot.trim()).join("lib"))
}

/// Bare names, for which the dynamic linker searches.
fn system() -> Vec<PathBuf> {
    ["libLLVM.so.22.1", "libLLVM-22.so", "libLLVM.so.21.1", "libLLVM.so.20.1", "libLLVM.so.19.1"]
        .map(PathBuf::from)
        .into()
}
