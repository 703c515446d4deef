//! `TINYSPEC_BEAM`.

use crate::{Error, Result};
use std::sync::OnceLock;
use std::time::Duration;
use tinyspec_ir::ErrorKind;

/// Is `TINYSPEC_BEAM` set?
pub(crate) fn is_asked_for() -> bool {
    matches!(seconds(), Ok(Some(_)))
}

/// How long a kernel may be searched; none where nobody asks.
///
/// # Errors
/// When it is no number of seconds.
pub(super) fn seconds() -> Result<Option<Duration>> {
    static SECONDS: OnceLock<std::result::Result<Option<Duration>, String>> = OnceLock::new();
    let read = || match std::env::var("TINYSPEC_BEAM") {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => {
            let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            seconds.map(Some).ok_or(text)
        }
        Err(_) => Ok(None),
    };
    SECONDS.get_or_init(read).clone().map_err(|text| {
        let message = format!("TINYSPEC_BEAM is `{text}`");
        let error = tinyspec_ir::Error::new(ErrorKind::Value, "search", message);
        Error::Graph(error.help("it is the number of seconds that each kernel may be searched for, such as 10"))
    })
}
