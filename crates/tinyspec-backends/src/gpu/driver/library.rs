//! A driver's library, found at run time.

use crate::gpu::{Attempt, DriverError};
use std::ffi::{CString, OsString};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// An open library. It stays open: code of it may run until the process has ended.
#[derive(Debug)]
pub(in super::super) struct Library {
    path: PathBuf,
    library: ManuallyDrop<libloading::Library>,
}

/// How the library of a driver is found.
pub(in super::super) struct Search {
    /// What it is called in messages.
    pub driver: &'static str,
    /// The variable that names the library, or its folder; what it names is never replaced by another.
    pub variable: &'static str,
    /// Names and files, in their order; the first is that of the file in a folder.
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
            // SAFETY: a driver's library does nothing when it is loaded that a process could not bear; that the file is
            // one is the user's word, or its well-known name's.
            match unsafe { libloading::Library::new(&path) } {
                Ok(library) => return Ok(Library { path, library: ManuallyDrop::new(library) }),
                Err(error) => attempts.push(Attempt { library: path, reason: error.to_string() }),
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

    /// A function of it; one that it lacks is noted.
    ///
    /// # Safety
    /// `F` is the type of a function pointer, with this function's signature.
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

/// Declares a table of a driver's functions, each of which returns a number, 0 where it did what it should.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($function:ident($($argument:ident: $type:ty),*);)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[allow(non_snake_case)]
        pub(super) struct $table {
            $(pub $function: unsafe extern "C" fn($($argument: $type),*) -> i32,)*
        }

        impl $table {
            /// All of them; else the names of those that the library lacks.
            #[allow(non_snake_case)]
            pub fn of(library: &Library) -> Result<$table, Vec<&'static str>> {
                let mut missing = Vec::new();
                // SAFETY: the signatures are those of the vendor's headers.
                $(let $function = unsafe { library.function(stringify!($function), &mut missing) };)*
                let table = || Some($table { $($function: $function?,)* });
                table().ok_or(missing)
            }
        }
    };
}
pub(in super::super) use functions;
