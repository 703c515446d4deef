//! Messages on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line on standard error. If that is closed (`program 2>&1 | head`), the line is lost, and the program
/// continues.
#[doc(hidden)]
pub fn tell(text: Arguments) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// As `eprintln!`, which panics if standard error is closed.
#[doc(hidden)]
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::console::tell(::core::format_args!($($text)*)) };
}
