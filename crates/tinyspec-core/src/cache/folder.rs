//! The cache folder. It must be private to the user, since code from it is executed.

use crate::file::remove_abandoned_drafts;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use tinyspec_backends::settings;
use tinyspec_ir::ContentHash;

/// `TINYSPEC_CACHE` (`off` for none), else `tinyspec` in the user's cache folder; `None` where others could write to it.
pub(crate) fn private() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(open).as_deref()
}

/// The folder for the output of one code generator, which need not exist yet; `None` if others could write to it.
pub(super) fn of_generator(folder: &Path, generator: Option<&str>) -> Option<PathBuf> {
    let own = folder.join(ContentHash::of(&generator).to_string());
    let is_new = fs::symlink_metadata(&own).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if !is_new && !is_private(&own) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| warn(&own, NOT_PRIVATE));
        return None;
    }
    Some(own)
}

/// Removes what killed writers left in a folder, once per process. Listing a large cache takes longer than loading a kernel, so
/// only processes that write to it do this.
pub(super) fn sweep(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf()) {
        remove_abandoned_drafts(folder);
    }
}

/// The folders of all code generators, most recently used first, as this process found them.
pub(super) fn generators() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let Some(entries) = private().and_then(|folder| fs::read_dir(folder).ok()) else { return Vec::new() };
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.sort_by_key(|folder| Reverse(fs::metadata(folder).and_then(|folder| folder.modified()).ok()));
        found
    })
}

fn open() -> Option<PathBuf> {
    let chosen = std::env::var_os(VARIABLE).map(PathBuf::from);
    let folder = match &chosen {
        Some(chosen) if chosen.as_os_str() == "off" || chosen.as_os_str().is_empty() => return None,
        Some(chosen) => chosen.clone(),
        None => match settings::path("XDG_CACHE_HOME") {
            Some(base) => base.join("tinyspec"),
            None => settings::path("HOME")?.join(".cache").join("tinyspec"),
        },
    };
    // A symbolic link that the user made is followed.
    match create(&folder).and_then(|()| fs::canonicalize(&folder)) {
        Ok(folder) if is_private(&folder) => return Some(folder),
        Ok(folder) => warn(&folder, NOT_PRIVATE),
        // Without a home folder, and unless one was chosen, there is no cache and no warning.
        Err(error) if chosen.is_some() => warn(&folder, &error.to_string()),
        Err(_) => {}
    }
    None
}

const VARIABLE: &str = "TINYSPEC_CACHE";

const NOT_PRIVATE: &str = "it must be a folder of this user that nobody else can write to, for what is in it is run";

/// Says why compiled kernels are not kept.
fn warn(folder: &Path, reason: &str) {
    let folder = folder.display();
    tinyspec_backends::tell!(
        "tinyspec: warning: compiled kernels are not kept in {folder}: {reason}; {VARIABLE} names a folder, or says `off`"
    );
}

/// Creates a folder that only its owner can access, unless it exists.
#[cfg(unix)]
pub(super) fn create(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a folder unless it exists.
#[cfg(not(unix))]
pub(super) fn create(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)
}

/// Whether this is a folder, not a link to one, that belongs to the user of this process and that nobody else can write
/// to.
#[cfg(unix)]
pub(super) fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = fs::symlink_metadata(folder) else { return false };
    // The owner of our own process, where the system shows it.
    let ours = fs::metadata("/proc/self").map_or(true, |process| process.uid() == found.uid());
    found.is_dir() && ours && found.mode() & 0o022 == 0
}

#[cfg(not(unix))]
pub(super) fn is_private(folder: &Path) -> bool {
    folder.is_dir()
}
