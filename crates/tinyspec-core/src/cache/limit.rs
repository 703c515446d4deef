//! The size of the cache on disk: beyond a limit, the least recently used objects are removed.

use super::folder;
use crate::Result;
use crate::device::size_of_environment;
use std::fs::{self, DirEntry, File};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

const VARIABLE: &str = "TINYSPEC_CACHE_SIZE";

/// The default limit in bytes: some 50,000 kernels.
const USUAL: u64 = 1 << 30;

/// How often the cache is measured, by all processes together: examining 50,000 files takes a tenth of a second.
const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// A file whose modification time records when the cache was last measured.
const MEASURED: &str = "measured";

/// Reads the limit.
///
/// # Errors
/// When `TINYSPEC_CACHE_SIZE` is not a size.
pub(crate) fn check() -> Result<()> {
    size_of_environment(VARIABLE).map(drop)
}

/// Removes what is beyond the limit, if no process that added to the cache has measured it for a day.
pub(super) fn enforce() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(root) = folder() else { return };
        // A limit that cannot be read has been refused. If the mark cannot be written, neither can objects be removed.
        if let Ok(limit) = size_of_environment(VARIABLE)
            && is_due(root)
            && File::create(root.join(MEASURED)).is_ok()
        {
            shrink(root, limit.unwrap_or(USUAL));
        }
    });
}

/// Whether this cache was last measured longer ago than a period, or never.
fn is_due(root: &Path) -> bool {
    let last = fs::metadata(root.join(MEASURED)).and_then(|mark| mark.modified()).ok();
    last.and_then(|last| last.elapsed().ok()).is_none_or(|age| age >= PERIOD)
}

/// Removes the least recently used objects until a quarter of the limit is free.
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
        // Another process may have removed it already.
        let _ = fs::remove_file(file);
        bytes -= size;
    }
}

/// When an object was last used, and its size.
fn object(entry: &DirEntry) -> Option<(SystemTime, u64, PathBuf)> {
    let facts = entry.metadata().ok().filter(|facts| facts.is_file())?;
    // Some file systems do not record reads.
    let used = facts.modified().ok().max(facts.accessed().ok())?;
    Some((used, facts.len(), entry.path()))
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}
