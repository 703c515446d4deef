//! Tells `perf` the names of kernels: with `TINYSPEC_PERF_MAP=1` each placed function is a line of `/tmp/perf-PID.map`.

use std::io::Write;
use std::sync::LazyLock;

static ENABLED: LazyLock<bool> = LazyLock::new(|| crate::settings::PERF_MAP.is_on());

/// Notes functions, given as address, size and name. A map that cannot be written only leaves a profile without names.
pub(super) fn note<'a>(functions: impl Iterator<Item = (usize, usize, &'a str)>) {
    if !*ENABLED {
        return;
    }
    let path = format!("/tmp/perf-{}.map", std::process::id());
    let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path) else { return };
    for (address, size, name) in functions {
        let _ = writeln!(file, "{address:x} {size:x} {name}");
    }
}
