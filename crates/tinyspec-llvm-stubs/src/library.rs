//! Opening a libLLVM, and binding the table to it.

use crate::table;
use std::ffi::{CString, c_uint};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// Why a libLLVM cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dynamic linker refused the file.
    #[error("{message}")]
    Open {
        /// The file that was tried.
        path: PathBuf,
        /// The dynamic linker's words.
        message: String,
    },
    /// The file is no libLLVM, or one before 16.
    #[error("it has no function `LLVMGetVersion`: not a libLLVM, or older than 16")]
    NotLlvm {
        /// The opened file.
        path: PathBuf,
    },
    /// Functions that the caller cannot do without are missing.
    #[error("{} (LLVM {version}) lacks {}", path.display(), names.join(", "))]
    Missing {
        /// The opened library.
        path: PathBuf,
        /// Its version.
        version: Version,
        /// The functions.
        names: Vec<String>,
    },
    /// The table is bound once per process.
    #[error("LLVM functions are already bound to {bound}")]
    AlreadyBound {
        /// Path and version of that library.
        bound: String,
    },
}

/// Version of a libLLVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The release, such as 22.
    pub major: u32,
    /// 1 since LLVM 18.
    pub minor: u32,
    /// Bug fixes.
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// An opened libLLVM that no stub jumps to yet. It stays in the process: LLVM cannot be unloaded.
#[derive(Debug)]
pub struct Library {
    library: ManuallyDrop<libloading::Library>,
    path: PathBuf,
    version: Version,
}

/// Path and version of the bound library.
static BOUND: OnceLock<String> = OnceLock::new();

/// Opens `path` (or a bare name, which the dynamic linker searches) and asks its version.
///
/// # Errors
/// When the file cannot be loaded, or is no libLLVM.
pub fn open(path: &Path) -> Result<Library, Error> {
    // SAFETY: a shared library's initialisers run; libLLVM's only fill its own tables.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        Error::Open { path: path.into(), message: source.unwrap_or_else(|| error.to_string()) }
    })?;
    let library = ManuallyDrop::new(library);
    type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
    // SAFETY: the signature is LLVM-C's.
    let Ok(get_version) = (unsafe { library.get::<GetVersion>(b"LLVMGetVersion\0") }) else {
        return Err(Error::NotLlvm { path: path.into() });
    };
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three valid places; the function only writes to them.
    unsafe { get_version(&mut major, &mut minor, &mut patch) };
    Ok(Library { path: path.into(), version: Version { major, minor, patch }, library })
}

impl Library {
    /// Version of this libLLVM.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Points every stub at this library's function of its name.
    ///
    /// # Errors
    /// When one of `required` is missing, or the table is bound already.
    pub fn bind(self, required: &[&str]) -> Result<(), Error> {
        let find = |name: &str| {
            let name = CString::new(name).ok()?;
            // SAFETY: only the address is taken; the stub's caller knows the signature.
            let symbol = unsafe { self.library.get::<*mut ()>(name.as_bytes_with_nul()) }.ok()?;
            // SAFETY: the library is never unloaded.
            Some(unsafe { symbol.into_raw() }.as_raw_ptr().cast::<()>())
        };
        let names: Vec<String> = required.iter().filter(|name| find(name).is_none()).map(ToString::to_string).collect();
        if !names.is_empty() {
            return Err(Error::Missing { path: self.path.clone(), version: self.version, names });
        }
        if BOUND.set(format!("{} (LLVM {})", self.path.display(), self.version)).is_err() {
            return Err(Error::AlreadyBound { bound: BOUND.get().cloned().unwrap_or_default() });
        }
        table::keep();
        for (name, slot) in table::NAMES.iter().zip(&table::TABLE) {
            if let Some(address) = find(name) {
                slot.store(address, Ordering::Release);
            }
        }
        Ok(())
    }
}

/// Path and version of the library that the stubs jump to, if there is one.
pub fn is_bound() -> Option<&'static str> {
    BOUND.get().map(String::as_str)
}

/// Is this function bound?
pub fn has(name: &str) -> bool {
    let Ok(index) = table::NAMES.binary_search(&name) else { return false };
    table::TABLE[index].load(Ordering::Acquire) != table::unbound_address()
}
