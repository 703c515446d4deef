//! Tells `perf` the names of kernels: with `TINYSPEC_PERF_MAP=1` each loaded function is a line of `/tmp/perf-PID.map`.

use std::io::Write;
use std::sync::LazyLock;

static ENABLED: LazyLock<bool> = LazyLock::new(|| crate::settings::PERF_MAP.is_on());

/// Records functions, given as address, size and name. If the map cannot be written, the profile just lacks names.
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
