//! Environment variables. All are read in the same way: surrounding blanks are ignored, an empty value counts as unset,
//! and an unknown value is an error that names the variable and the valid values. A warning names unknown variables
//! once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{LazyLock, Once};
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

/// Variables that only the library's own tests and benches read.
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

/// Variables that decide nothing about the kernels of a program.
const NAMES_OF_RUNS: &[&str] =
    &["CACHE", "CACHE_SIZE", "DEBUG", "DEVICE", "LLVM", "MEMORY", "PERF_MAP", "PLANS", "SCHEDULES", "THREADS"];

/// The variables with our prefix that may decide about kernels, with their values. The number of threads is part of the Target.
pub fn deciding() -> &'static [(String, String)] {
    static DECIDING: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let all = std::env::vars_os().map(|(variable, value)| (text(variable), text(value)));
        let decides = |name: &str| !NAMES_OF_RUNS.contains(&name) && !NAMES_OF_TESTS.contains(&name);
        let mut all: Vec<_> = all.filter(|(variable, _)| variable.strip_prefix(PREFIX).is_some_and(decides)).collect();
        all.sort();
        all
    });
    &DECIDING
}

/// Warns once of variables with our prefix that are unknown, such as misspelt ones.
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

/// A message about a variable, if it has our prefix and is unknown.
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

/// The file or folder that a variable names; `None` if it is unset or empty.
pub fn path(variable: &'static str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The error for a variable with an unknown value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{variable}={value}: expected {expected}")]
pub struct UnknownSetting {
    /// Its name.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The valid values, in words.
    pub expected: String,
}

/// The value of a variable, by `parse`; `None` if it is unset.
///
/// # Errors
/// When `parse` does not accept it; `expected` describes the valid values.
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
/// When `parse` does not accept an item.
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
    /// The default.
    pub usual: bool,
}

impl Switch {
    /// Is it on?
    ///
    /// # Errors
    /// When its value is neither on nor off.
    pub fn read(self) -> Result<bool, UnknownSetting> {
        let parse = |text: &str| match text {
            "1" | "on" => Some(true),
            "0" | "off" => Some(false),
            _ => None,
        };
        Ok(read(self.variable, "`1` or `on`, `0` or `off`", parse)?.unwrap_or(self.usual))
    }

    /// Whether it is on: the default, if the variable is unset or says neither.
    pub fn is_on(self) -> bool {
        self.read().unwrap_or(self.usual)
    }
}

/// Runs the verifiers between stages, and LLVM's, in release builds too.
pub const VERIFY: Switch = Switch { variable: "TINYSPEC_VERIFY", usual: false };
/// Runs every kernel a second time, on a reference device.
pub const VALIDATE: Switch = Switch { variable: "TINYSPEC_VALIDATE", usual: false };
/// Computes sums of products as they are written.
pub const STRICT: Switch = Switch { variable: "TINYSPEC_STRICT", usual: false };
/// Lowers kernels in a simpler way if lowering fails.
pub const FALLBACK: Switch = Switch { variable: "TINYSPEC_FALLBACK", usual: true };
/// Tells `perf` the names of kernels.
pub const PERF_MAP: Switch = Switch { variable: "TINYSPEC_PERF_MAP", usual: false };
