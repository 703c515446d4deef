//! Rust types of tensor elements.

use crate::Result;
use tinyspec_ir::DType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type with a dtype.
pub trait Element: Copy + Send + Sync + std::fmt::Debug + sealed::Sealed + 'static {
    /// The dtype of such elements.
    const DTYPE: DType;

    /// Memory of a slice.
    #[doc(hidden)]
    fn bytes(data: &[Self]) -> &[u8];

    /// `count` elements, whose memory `read` fills.
    #[doc(hidden)]
    fn collect(count: usize, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<Vec<Self>>;

    /// Memory as elements, if it is aligned for them.
    #[doc(hidden)]
    fn elements(bytes: &[u8]) -> Option<&[Self]>;

    /// The same, to be written.
    #[doc(hidden)]
    fn elements_mut(bytes: &mut [u8]) -> Option<&mut [Self]>;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => { $(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn bytes(data: &[Self]) -> &[u8] {
                bytemuck::cast_slice(data)
            }

            fn collect(count: usize, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<Vec<Self>> {
                let mut data: Vec<Self> = bytemuck::zeroed_vec(count);
                read(bytemuck::cast_slice_mut(&mut data))?;
                Ok(data)
            }

            fn elements(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice(bytes).ok()
            }

            fn elements_mut(bytes: &mut [u8]) -> Option<&mut [Self]> {
                bytemuck::try_cast_slice_mut(bytes).ok()
            }
        }
    )* };
}

elements! {
    f32 => F32, f64 => F64, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    half::f16 => F16, half::bf16 => BF16, super::F8E4M3 => F8E4M3, super::F8E5M2 => F8E5M2,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
}

impl sealed::Sealed for bool {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn bytes(data: &[Self]) -> &[u8] {
        bytemuck::cast_slice(data)
    }

    fn collect(count: usize, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<Vec<Self>> {
        // Not every byte is a bool.
        let mut data = vec![0u8; count];
        read(&mut data)?;
        Ok(data.into_iter().map(|byte| byte != 0).collect())
    }

    fn elements(bytes: &[u8]) -> Option<&[bool]> {
        bytemuck::checked::try_cast_slice(bytes).ok()
    }

    fn elements_mut(bytes: &mut [u8]) -> Option<&mut [bool]> {
        bytemuck::checked::try_cast_slice_mut(bytes).ok()
    }
}
