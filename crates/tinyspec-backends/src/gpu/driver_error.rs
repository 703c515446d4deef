//! Why there is no device behind a driver.

use std::fmt;
use std::path::PathBuf;

/// A library that was tried, and why it is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// A file, or a name that the system's linker looks for.
    pub library: PathBuf,
    /// The linker's words.
    pub reason: String,
}

/// Why a driver, or a device of it, cannot be used. `Debug` gives the same text as `Display`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// None of the candidate libraries is usable.
    #[error("there is no driver {driver} on this machine; tried:{}\nhelp: {help}", Listed(attempts))]
    NotFound {
        /// The driver.
        driver: &'static str,
        /// Everything that was tried, in order.
        attempts: Vec<Attempt>,
        /// Advice.
        help: &'static str,
    },
    /// It lacks functions.
    #[error("{}: the driver lacks {}\nhelp: {help}", library.display(), missing.join(", "))]
    Incomplete {
        /// The loaded library.
        library: PathBuf,
        /// The functions.
        missing: Vec<&'static str>,
        /// Advice.
        help: &'static str,
    },
    /// It is older than what is supported.
    #[error("{}: the driver is for {found}; {needed} is needed\nhelp: {help}", library.display())]
    TooOld {
        /// The loaded library.
        library: PathBuf,
        /// Its version.
        found: String,
        /// The oldest supported version.
        needed: String,
        /// Advice.
        help: &'static str,
    },
    /// It sees no device.
    #[error("{}: the driver finds no GPU ({reason})\nhelp: {help}", library.display())]
    NoDevice {
        /// The loaded library.
        library: PathBuf,
        /// The driver's message.
        reason: String,
        /// Advice.
        help: &'static str,
    },
    /// Fewer devices than asked for.
    #[error("no device `{name}`: the driver sees {count}, counted from 0")]
    TooFew {
        /// The requested device.
        name: String,
        /// How many there are.
        count: usize,
    },
    /// A GPU for which no code can be generated.
    #[error(
        "`{name}` is {device}, a {chip}: no code is made for that chip\nhelp: there is code for {}{}; `cpu` runs everywhere",
        admitted.join(", "),
        if *is_limited { " (TINYSPEC_GPU names no others)" } else { "" }
    )]
    Chip {
        /// The requested device.
        name: String,
        /// The product.
        device: String,
        /// The chip.
        chip: String,
        /// Chips of the same vendor that code can be generated for.
        admitted: Vec<&'static str>,
        /// Whether `TINYSPEC_GPU` excludes some.
        is_limited: bool,
    },
    /// `TINYSPEC_GPU` names an unknown chip.
    #[error(transparent)]
    Setting(#[from] crate::settings::UnknownSetting),
    /// A function of it failed.
    #[error("{}: {call} failed with {text} ({code})", library.display())]
    Failed {
        /// The loaded library.
        library: PathBuf,
        /// The function.
        call: &'static str,
        /// The status that it returned.
        code: i32,
        /// The driver's description of that.
        text: String,
    },
}

impl fmt::Debug for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

struct Listed<'a>(&'a [Attempt]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Attempt { library, reason }| write!(f, "\n  {}: {reason}", library.display()))
    }
}
