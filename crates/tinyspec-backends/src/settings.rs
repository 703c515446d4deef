//! Variables of the environment. All are read in one way: blanks around a value do not count, an empty one is none, and one
//! that says nothing we know is an error that names the variable and what it might say. A variable that nobody reads is
//! named once.

use std::path::PathBuf;
use std::sync::Once;
use tinyspec_ir::ops::nearest_of;

const PREFIX: &str = "TINYSPEC_";

/// All variables that the library reads, without their prefix.
const NAMES: &[&str] = &[
    "BEAM",
    "CACHE",
    "CACHE_SIZE",
    "CPU",
    "CUDA",
    "DEBUG",
    "DEVICE",
    "FALLBACK",
    "FAULT",
    "GPU",
    "HIP",
    "LLVM",
    "MEMORY",
    "PASSES",
    "PERF_MAP",
    "PLANS",
    "PTXAS",
    "SCHEDULES",
    "STRICT",
    "THREADS",
    "VALIDATE",
    "VERIFY",
];

/// Those that only the library's own tests and benches read.
const NAMES_OF_TESTS: &[&str] = &[
    "ASSIGNMENTS",
    "BENCH_KERNELS",
    "BLESS",
    "CASES",
    "CHIP",
    "CORPUS",
    "DEVICES",
    "FIRST",
    "FUZZ",
    "LONG",
    "MUTANTS",
    "PEERS",
    "PROGRAMS",
    "RANDOM_SCHEDULES",
    "RUST_ANALYZER",
    "SEED",
    "SHAPES",
    "STEPS",
    "SURVIVORS",
    "TEST_FOLDER",
    "ULP",
];

/// Says once which variables of our prefix nobody reads, such as a misspelt one.
pub fn warn_of_unknown() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (variable, _) in std::env::vars_os() {
            if let Some(warning) = variable.to_str().and_then(unknown) {
                crate::tell!("tinyspec: warning: {warning}");
            }
        }
    });
}

/// What is wrong with the name of a variable, if it has our prefix and nobody reads it.
fn unknown(variable: &str) -> Option<String> {
    let name = variable.strip_prefix(PREFIX)?;
    if NAMES.contains(&name) || NAMES_OF_TESTS.contains(&name) {
        return None;
    }
    Some(match nearest_of(name, NAMES.iter().copied()) {
        Some(near) => format!("there is no variable {variable}; did you mean {PREFIX}{near}?"),
        None => format!("there is no variable {variable}; there are {PREFIX}{{{}}}", NAMES.join(", ")),
    })
}

/// The file or folder that a variable names; none where it is not set or empty.
pub fn path(variable: &'static str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A variable whose value says nothing we know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{variable}={value}: expected {expected}")]
pub struct UnknownSetting {
    /// Its name.
    pub variable: &'static str,
    /// What it says.
    pub value: String,
    /// What it might say.
    pub expected: String,
}

/// What a variable says, by `parse`; none where it is not set.
///
/// # Errors
/// When `parse` makes nothing of it: `expected` is what it might say.
pub fn read<T>(
    variable: &'static str,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, UnknownSetting> {
    let Some(value) = std::env::var_os(variable) else { return Ok(None) };
    let text = value.to_string_lossy();
    match text.trim() {
        "" => Ok(None),
        text => parse(text).map(Some).ok_or_else(|| UnknownSetting {
            variable,
            value: text.into(),
            expected: expected.into(),
        }),
    }
}

/// As [`read`], for a list whose items are separated by commas or blanks.
///
/// # Errors
/// When `parse` makes nothing of an item.
pub fn read_list<T>(
    variable: &'static str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<Vec<T>>, UnknownSetting> {
    read(variable, expected, |text| text.split([' ', ',']).filter(|item| !item.is_empty()).map(parse).collect())
}

/// A variable that is on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// Its name.
    pub variable: &'static str,
    /// What holds where it is not set.
    pub usual: bool,
}

impl Switch {
    /// Is it on?
    ///
    /// # Errors
    /// When it says neither.
    pub fn read(self) -> Result<bool, UnknownSetting> {
        let parse = |text: &str| match text {
            "1" | "on" => Some(true),
            "0" | "off" => Some(false),
            _ => None,
        };
        Ok(read(self.variable, "`1` or `on`, `0` or `off`", parse)?.unwrap_or(self.usual))
    }

    /// Is it on? Where it says neither, what holds where it is not set.
    pub fn is_on(self) -> bool {
        self.read().unwrap_or(self.usual)
    }
}

/// The verifiers between stages, and LLVM's, in release builds too.
pub const VERIFY: Switch = Switch { variable: "TINYSPEC_VERIFY", usual: false };
/// Every kernel runs a second time, on a device to compare with.
pub const VALIDATE: Switch = Switch { variable: "TINYSPEC_VALIDATE", usual: false };
/// Sums of products are computed as they are written.
pub const STRICT: Switch = Switch { variable: "TINYSPEC_STRICT", usual: false };
/// What cannot be lowered as planned is lowered in another way.
pub const FALLBACK: Switch = Switch { variable: "TINYSPEC_FALLBACK", usual: true };
/// `perf` is told the names of kernels.
pub const PERF_MAP: Switch = Switch { variable: "TINYSPEC_PERF_MAP", usual: false };
