//! Atomic replacement of files, with several writers, and if a writer is killed at any point.
//!
//! Contents go into a draft next to the file, which is renamed once it is complete. A writer holds a lock on its draft, so a
//! draft without one belongs to a process that is gone, and the next writer in the folder removes it.

use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How the names of drafts end. They begin with a dot.
const DRAFT: &str = ".tinyspec-draft";

/// The guarantee for a file's contents after a crash of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The old contents or the new ones, on disk before the call returns.
    Synced,
    /// Any contents: for files with a checksum that can be made again.
    Unsynced,
}

/// Writes a file, or replaces it: readers find the old contents or the new ones.
///
/// Follows symbolic links and preserves the permissions of an existing file. Anything that is not a regular file, such as a pipe
/// or `/dev/null`, is written to directly.
///
/// # Errors
/// As creating, writing or renaming a file; the old contents are untouched then.
pub(crate) fn replace(path: &Path, contents: &[u8], durability: Durability) -> Result<()> {
    let old = match fs::metadata(path) {
        Ok(old) if old.is_dir() => return Err(Error::new(ErrorKind::IsADirectory, "it is a folder")),
        Ok(old) if !old.is_file() => return OpenOptions::new().write(true).open(path)?.write_all(contents),
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let target = followed(path);
    let mut draft = Draft::next_to(&target)?;
    if let Some(old) = old {
        draft.file.set_permissions(old.permissions())?;
    }
    draft.file.write_all(contents)?;
    if durability == Durability::Synced {
        draft.file.sync_all()?;
    }
    fs::rename(&draft.path, &target)?;
    draft.is_in_place = true;
    if durability == Durability::Synced {
        sync_folder(folder_of(&target))?;
    }
    Ok(())
}

/// The file that a path leads to, whether or not it exists.
fn followed(path: &Path) -> PathBuf {
    /// The limit of most systems.
    const MOST_LINKS: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if let Ok(found) = fs::canonicalize(&target) {
            return found;
        }
        match fs::read_link(&target) {
            Ok(next) => target = folder_of(&target).join(next),
            Err(_) => break,
        }
    }
    target
}

/// Removes the drafts of processes that were killed.
pub(crate) fn remove_abandoned_drafts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_draft = name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(DRAFT));
        if is_draft
            && let Ok(draft) = File::open(entry.path())
            && draft.try_lock().is_ok()
        {
            // Another process may have removed it already.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The folder that a file lies in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A locked file that is to be renamed; it is removed if that fails.
struct Draft {
    path: PathBuf,
    file: File,
    is_in_place: bool,
}

impl Draft {
    fn next_to(target: &Path) -> Result<Draft> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if target.file_name().is_none() {
            return Err(Error::new(ErrorKind::InvalidInput, "it names no file"));
        }
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            // The target's name is not part of it, since that may already have the maximum length.
            let path = target.with_file_name(format!(".{}-{number}{DRAFT}", std::process::id()));
            let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            // Some file systems have no locks: there nobody removes drafts.
            let _ = file.lock();
            // Otherwise it was removed as abandoned just before it was locked.
            if path.exists() {
                return Ok(Draft { path, file, is_in_place: false });
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_in_place {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A renamed file survives a crash once its folder is on disk too.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Not every file system can.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        // The folder may be writable but not readable.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<()> {
    Ok(())
}
