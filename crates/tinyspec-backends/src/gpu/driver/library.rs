//! A driver's library, found at run time.

use crate::gpu::{Attempt, DriverError};
use std::error::Error;
use std::ffi::{CString, OsString};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// An open library. It is never closed, since its threads may run until the process ends.
#[derive(Debug)]
pub(in super::super) struct Library {
    path: PathBuf,
    library: ManuallyDrop<libloading::Library>,
}

/// Where to look for the library of a driver.
#[derive(Debug)]
pub(in super::super) struct Search {
    /// Its name in messages.
    pub driver: &'static str,
    /// The variable that names the library or its folder. If it is set, nothing else is tried.
    pub variable: &'static str,
    /// Names and files to try, in order; the first is the file name within a folder.
    pub names: &'static [&'static str],
    pub help: &'static str,
}

impl Search {
    pub fn open(&self) -> Result<Library, DriverError> {
        let candidates = match std::env::var_os(self.variable).filter(|named| !named.is_empty()) {
            Some(named) => vec![self.named(named)],
            None => self.names.iter().map(PathBuf::from).collect(),
        };
        let mut attempts = Vec::new();
        for path in candidates {
            // SAFETY: loading a driver's library has no side effects that this process relies on. That the file is such a
            // library follows from its well-known name, or from the user who named it.
            match unsafe { libloading::Library::new(&path) } {
                Ok(library) => return Ok(Library { path, library: ManuallyDrop::new(library) }),
                Err(error) => {
                    // The reason is the error's source: no such file, code for another machine, a missing dependency.
                    let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                    attempts.push(Attempt { library: path, reason });
                }
            }
        }
        Err(DriverError::NotFound { driver: self.driver, attempts, help: self.help })
    }

    fn named(&self, named: OsString) -> PathBuf {
        let path = PathBuf::from(named);
        match self.names.first() {
            Some(name) if path.is_dir() => path.join(name),
            _ => path,
        }
    }
}

impl Library {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up an exported function; a name that the library does not export is added to `missing`.
    ///
    /// # Safety
    /// `F` must be a function pointer type with the signature of this function.
    pub unsafe fn function<F: Copy>(&self, name: &'static str, missing: &mut Vec<&'static str>) -> Option<F> {
        let symbol = CString::new(name).ok()?;
        // SAFETY: as the caller promises.
        let found = unsafe { self.library.get::<F>(symbol.as_bytes_with_nul()) };
        match found {
            Ok(function) => Some(*function),
            Err(_) => {
                missing.push(name);
                None
            }
        }
    }
}
