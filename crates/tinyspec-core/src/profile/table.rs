//! The table of kernels (`TINYSPEC_DEBUG=2`): a row when a kernel runs for the first time, and at the end of the
//! program the totals of each, greatest first.

use crate::error::size;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ffi::c_int;
use std::fmt::Write;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// Launches of one kernel for one line of the program.
#[derive(Clone, Default)]
struct Total {
    launches: u64,
    time: Duration,
    /// The time of the fastest launch: on a busy machine the sum says little.
    least: Duration,
    work: u64,
    bytes: u64,
    arena: u64,
}

/// The key of a row. Kernels of one shape share a name, so those of one line are distinguished by their work.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Row {
    kernel: String,
    axes: String,
    line: String,
    /// Operations and bytes of a launch.
    work: u64,
    bytes: u64,
}

static TOTALS: Mutex<Option<FxHashMap<Row, Total>>> = Mutex::new(None);

/// A kernel that ran.
pub(crate) struct Launched<'a> {
    pub kernel: &'a str,
    /// Its loops; see [`super::axes`].
    pub axes: &'a str,
    /// The user's line.
    pub line: &'a str,
    /// Operations.
    pub work: u64,
    /// Bytes that it reads and writes.
    pub bytes: u64,
    /// Bytes of temporaries of its program.
    pub arena: u64,
}

/// Counts a launch.
pub(crate) fn kernel(launched: Launched, time: Duration) {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        unsafe extern "C" {
            fn atexit(call: extern "C" fn()) -> c_int;
        }
        // SAFETY: this is C's function of this name, and the callback neither unwinds nor needs anything that may be
        // gone by then.
        unsafe { atexit(print_totals) };
        tinyspec_backends::tell!("── kernels as they run for the first time\n{}", heading(""));
    });
    let Launched { kernel, axes, line, work, bytes, arena } = launched;
    let one = Total { launches: 1, time, least: time, work, bytes, arena };
    let name = Row { kernel: kernel.into(), axes: axes.into(), line: line.into(), work, bytes };
    let is_new = {
        let mut totals = TOTALS.lock().unwrap_or_else(PoisonError::into_inner);
        let total = totals.get_or_insert_default().entry(name.clone()).or_default();
        total.launches += 1;
        total.time += one.time;
        total.least = if total.launches == 1 { time } else { total.least.min(time) };
        total.work = total.work.saturating_add(one.work);
        total.bytes = total.bytes.saturating_add(one.bytes);
        total.arena = total.arena.max(one.arena);
        total.launches == 1
    };
    if is_new {
        tinyspec_backends::tell!("{}", row("", &name, &one));
    }
}

extern "C" fn print_totals() {
    let Some(totals) = TOTALS.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let mut rows: Vec<(Row, Total)> = totals.into_iter().collect();
    rows.sort_by_key(|(name, total)| (Reverse(total.time), name.clone()));
    let all: Duration = rows.iter().map(|(_, total)| total.time).sum();
    let launches: u64 = rows.iter().map(|(_, total)| total.launches).sum();
    let heading = heading(&format!("{:>6} {:>8} {:>9} ", "share", "launches", "least µs"));
    let mut text = format!("── totals: {launches} launches, {:.3} ms\n{heading}\n", all.as_secs_f64() * 1e3);
    for (name, total) in &rows {
        let share = 100.0 * total.time.as_secs_f64() / all.as_secs_f64().max(1e-9);
        let _ = writeln!(
            text,
            "{}",
            row(&format!("{share:>5.1}% {:>8} {:>9.1} ", total.launches, total.least.as_secs_f64() * 1e6), name, total)
        );
    }
    let mut passes: Vec<_> = super::passes().into_iter().collect();
    passes.sort_by_key(|&(name, time)| (Reverse(time), name));
    let passes: Vec<String> =
        passes.iter().map(|(name, time)| format!("{name} {:.2}", time.as_secs_f64() * 1e3)).collect();
    if !passes.is_empty() {
        let _ = writeln!(text, "── passes, ms: {}", passes.join(", "));
    }
    // Standard error may be closed by now.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}

fn heading(before: &str) -> String {
    format!(
        "{:>11} {before}{:>9} {:>8} {:>10} {:>10}  {:<32} {:<28} line",
        "time", "GFLOP/s", "GB/s", "touched", "arena", "kernel", "axes"
    )
}

fn row(before: &str, Row { kernel, axes, line, .. }: &Row, total: &Total) -> String {
    let seconds = total.time.as_secs_f64().max(1e-9);
    format!(
        "{:>8.1} µs {before}{:>9.2} {:>8.2} {:>10} {:>10}  {kernel:<32} {axes:<28} {line}",
        seconds * 1e6,
        total.work as f64 / seconds / 1e9,
        total.bytes as f64 / seconds / 1e9,
        size(total.bytes),
        size(total.arena),
    )
}
