//! Release of memory that the library can give up when a device is short of it.

use std::sync::OnceLock;

static RELEASE: OnceLock<fn() -> bool> = OnceLock::new();

/// Registers a function that is called when an allocation is about to fail. It returns whether it has freed any memory.
pub(crate) fn on_shortage(release: fn() -> bool) {
    let _ = RELEASE.set(release);
}

/// Releases what can be given up; returns whether anything was freed.
pub(super) fn relieve() -> bool {
    RELEASE.get().is_some_and(|release| release())
}
