//! `TINYSPEC_BEAM`.

use crate::Result;
use std::sync::OnceLock;
use std::time::Duration;
use tinyspec_backends::settings::{self, UnknownSetting};

/// Whether `TINYSPEC_BEAM` is set.
pub(crate) fn is_asked_for() -> bool {
    matches!(seconds(), Ok(Some(_)))
}

/// How long to search for each kernel; `None` without a search.
///
/// # Errors
/// When it is not a number of seconds.
pub(super) fn seconds() -> Result<Option<Duration>> {
    static SECONDS: OnceLock<std::result::Result<Option<Duration>, UnknownSetting>> = OnceLock::new();
    let expected = "the number of seconds that each kernel may be searched for, such as 10";
    let parse = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    Ok(SECONDS.get_or_init(|| settings::read("TINYSPEC_BEAM", expected, parse)).clone()?)
}
