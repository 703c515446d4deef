//! NumPy's `.npy` files (feature `npy`).

use super::Tensor;
use crate::file::{Durability, folder_of, remove_abandoned_drafts, replace};
use crate::{Error, Result};
use npyz::{NpyFile, Order, WriterBuilder};
use std::borrow::Cow;
use std::path::Path;
use tinyspec_ir::DType;

fn failed(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), reason: reason.to_string() }
}

/// Types of the format, without their byte order, and their dtypes.
macro_rules! by_type {
    ($name:expr, $callback:ident, $otherwise:expr) => {
        match $name {
            "b1" => $callback!(bool),
            "i1" => $callback!(i8),
            "i2" => $callback!(i16),
            "i4" => $callback!(i32),
            "i8" => $callback!(i64),
            "u1" => $callback!(u8),
            "u2" => $callback!(u16),
            "u4" => $callback!(u32),
            "u8" => $callback!(u64),
            "f2" => $callback!(half::f16),
            "f4" => $callback!(f32),
            "f8" => $callback!(f64),
            _ => $otherwise,
        }
    };
}

/// The header's reader multiplies the axes without checking for overflow, so this checks a shape in the form that NumPy writes.
fn has_sound_shape(bytes: &[u8]) -> bool {
    // The reader itself reports a missing header or shape.
    let Some(header) = header(bytes) else { return true };
    let mut parts = header.split("shape").skip(1);
    let Some(rest) = parts.next() else { return true };
    if parts.next().is_some() {
        return false;
    }
    let axes = rest.trim_start_matches(['\'', '"', ':', ' ']).strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let Some((axes, _)) = axes else { return false };
    let mut axes = axes.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let count = axes.try_fold(1u64, |count, axis| {
        let size: u64 = axis.trim_end_matches('L').parse().ok()?;
        count.checked_mul(size.max(1))
    });
    count.is_some_and(|count| count < 1 << 48)
}

/// The text of the header, if there is one.
fn header(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let bytes = bytes.strip_prefix(b"\x93NUMPY")?;
    let (start, length) = match *bytes {
        [1, _, a, b, ..] => (4, u16::from_le_bytes([a, b]).into()),
        [_, _, a, b, c, d, ..] => (6, u32::from_le_bytes([a, b, c, d]) as usize),
        _ => return None,
    };
    Some(String::from_utf8_lossy(bytes.get(start..)?.get(..length)?))
}

impl Tensor {
    /// The array of an `.npy` file, of any byte order and layout, on the default device.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has an unsupported dtype.
    #[track_caller]
    pub fn load_npy(path: impl AsRef<Path>) -> Result<Tensor> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| failed(path, error))?;
        if !has_sound_shape(&bytes) {
            return Err(failed(path, "the shape in its header is not one of NumPy's, or of too many elements"));
        }
        // The reader's own messages are those of a parser.
        let no_header =
            |_| failed(path, "its header is not one of NumPy's: it is not a `.npy` file, or damaged or cut off");
        let file = NpyFile::new(&bytes[..]).map_err(no_header)?;
        let npyz::DType::Plain(kind) = file.dtype() else {
            return Err(failed(path, "it holds records, not numbers"));
        };
        let kind = kind.to_string();
        let name = kind.trim_start_matches(['<', '>', '|', '=']);
        let mut sizes: Vec<i64> = Vec::new();
        for &size in file.shape() {
            sizes.push(i64::try_from(size).map_err(|_| failed(path, format!("an axis of {size}")))?);
        }
        // A damaged header must not cause a huge allocation.
        let count = sizes.iter().try_fold(1i64, |count, &size| count.checked_mul(size));
        if count.is_none_or(|count| count > bytes.len() as i64) {
            return Err(failed(path, format!("{} bytes do not hold {sizes:?}", bytes.len())));
        }
        let is_row_major = file.order() == Order::C;
        macro_rules! read {
            ($type:ty) => {
                file.into_vec::<$type>().map_err(|error| failed(path, error)).map(|data| {
                    if is_row_major {
                        Tensor::from_vec(data, sizes)
                    } else {
                        let axes: Vec<i64> = (0..sizes.len() as i64).rev().collect();
                        Tensor::from_vec(data, sizes.into_iter().rev().collect::<Vec<_>>()).permute(axes)
                    }
                })
            };
        }
        by_type!(name, read, Err(failed(path, format!("its type `{kind}` is not supported"))))
    }

    /// Writes the elements as an `.npy` file, which NumPy reads with `np.load`. It replaces an older file once it is
    /// complete and on disk.
    ///
    /// # Errors
    /// When the tensor carries an error or cannot be computed, its dtype is bf16 or an 8-bit float, which NumPy lacks
    /// (cast it), or the file cannot be written.
    #[track_caller]
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let shape: Vec<u64> = self.sizes()?.iter().map(|&size| size as u64).collect();
        let mut bytes = Vec::new();
        macro_rules! write {
            ($type:ty) => {{
                let data = self.to_vec::<$type>()?;
                let written = || -> std::io::Result<()> {
                    let mut writer =
                        npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd()?;
                    writer.extend(data)?;
                    writer.finish()
                };
                written()
            }};
        }
        let name = match self.dtype() {
            DType::Bool => "b1",
            DType::I8 => "i1",
            DType::I16 => "i2",
            DType::I32 => "i4",
            DType::I64 => "i8",
            DType::U8 => "u1",
            DType::U16 => "u2",
            DType::U32 => "u4",
            DType::U64 => "u8",
            DType::F16 => "f2",
            DType::F32 => "f4",
            DType::F64 => "f8",
            other => {
                let reason = format!("{other} is not written: `.cast(DType::F32)` first");
                return Err(failed(path, reason));
            }
        };
        by_type!(name, write, Ok(())).map_err(|error| failed(path, error))?;
        remove_abandoned_drafts(folder_of(path));
        replace(path, &bytes, Durability::Synced).map_err(|error| failed(path, error))
    }
}
