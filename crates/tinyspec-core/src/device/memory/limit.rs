//! Sizes that the environment sets, such as `TINYSPEC_MEMORY`: how much memory a device may hold.

use crate::Result;
use bytesize::ByteSize;
use tinyspec_backends::settings;

/// The limit of `TINYSPEC_MEMORY` in bytes.
///
/// # Errors
/// When it is not a size.
pub(crate) fn from_environment() -> Result<Option<u64>> {
    size_of_environment("TINYSPEC_MEMORY")
}

/// The value of a variable in bytes, such as `512MB`, `2 GiB` or a plain number.
///
/// # Errors
/// When it is not a size.
pub(crate) fn size_of_environment(variable: &'static str) -> Result<Option<u64>> {
    let parse = |text: &str| text.parse::<ByteSize>().ok();
    let size = settings::read(variable, "a size, such as `512MB`, `2GiB` or a number of bytes", parse)?;
    Ok(size.map(|size| size.as_u64()))
}
