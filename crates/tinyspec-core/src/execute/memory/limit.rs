//! Sizes that the environment sets, such as `TINYSPEC_MEMORY`: how much memory a device may hold.

use crate::{Error, Result};
use bytesize::ByteSize;

/// The limit of `TINYSPEC_MEMORY` in bytes.
///
/// # Errors
/// When it is no size.
pub(crate) fn from_environment() -> Result<Option<u64>> {
    size_of_environment("TINYSPEC_MEMORY")
}

/// What a variable says in bytes, such as `512MB`, `2 GiB` or a plain number.
///
/// # Errors
/// When it is no size.
pub(crate) fn size_of_environment(variable: &'static str) -> Result<Option<u64>> {
    let Some(text) = std::env::var_os(variable) else { return Ok(None) };
    let text = text.to_string_lossy();
    match text.trim() {
        "" => Ok(None),
        size => size.parse::<ByteSize>().map(|size| Some(size.as_u64())).map_err(|_| Error::Setting {
            variable,
            value: size.into(),
            expected: "a size, such as `512MB`, `2GiB` or a number of bytes".into(),
        }),
    }
}
