//! What the library says beside its results, on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// A line on standard error. Where nobody reads it (`program 2>&1 | head`) it is lost, and the program goes on.
#[doc(hidden)]
pub fn tell(text: Arguments) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// As `eprintln!`, which panics where standard error is closed.
#[doc(hidden)]
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::console::tell(::core::format_args!($($text)*)) };
}
