//! The size of the cache on disk: beyond a limit, objects that nobody has read for the longest time are removed.

use super::folder;
use crate::device::size_of_environment;
use std::fs::{self, DirEntry, File};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

const VARIABLE: &str = "TINYSPEC_CACHE_SIZE";

/// Bytes of objects where nobody says otherwise: some 50,000 kernels.
const USUAL: u64 = 1 << 30;

/// How often all processes together measure the cache: looking at 50,000 files takes a tenth of a second.
const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// A file whose time says when that was.
const MEASURED: &str = "measured";

/// Removes what is beyond the limit, if this is the first process for a day that adds to the cache.
pub(super) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(root) = folder() else { return };
        match size_of_environment(VARIABLE) {
            Ok(limit) if is_due(root) => shrink(root, limit.unwrap_or(USUAL)),
            Ok(_) => {}
            Err(error) => tinyspec_backends::tell!("tinyspec: warning: the cache on disk is not limited: {error}"),
        }
    });
}

/// Whether nobody has measured this cache for a day; then this process is the one that does.
fn is_due(root: &Path) -> bool {
    let mark = root.join(MEASURED);
    let last = fs::metadata(&mark).and_then(|mark| mark.modified()).ok();
    let is_recent = last.and_then(|last| last.elapsed().ok()).is_some_and(|age| age < PERIOD);
    // Where the mark cannot be written, objects cannot be removed either.
    !is_recent && File::create(mark).is_ok()
}

/// Removes the objects that were read or written the longest time ago. A quarter of the limit is left free for what comes next.
fn shrink(root: &Path, limit: u64) {
    let mut objects: Vec<(SystemTime, u64, PathBuf)> =
        entries(root).flat_map(|generator| entries(&generator.path())).filter_map(|entry| object(&entry)).collect();
    let mut bytes: u64 = objects.iter().map(|(_, bytes, _)| bytes).sum();
    if bytes <= limit {
        return;
    }
    objects.sort();
    for (_, size, file) in objects {
        if bytes <= limit - limit / 4 {
            return;
        }
        // What another process has removed is gone too.
        let _ = fs::remove_file(file);
        bytes -= size;
    }
}

/// When an object was last used, and its size.
fn object(entry: &DirEntry) -> Option<(SystemTime, u64, PathBuf)> {
    let facts = entry.metadata().ok().filter(|facts| facts.is_file())?;
    // Some file systems do not note when a file is read.
    let used = facts.modified().ok().max(facts.accessed().ok())?;
    Some((used, facts.len(), entry.path()))
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}
