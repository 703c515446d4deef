//! The 8-bit floats as Rust types, which the standard library lacks.

use std::fmt;
use tinyspec_ir::{DType, float};

macro_rules! eight_bits {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The float with these bits.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// Its bits.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// `value` rounded to the nearest, ties to even.
            pub fn from_f32(value: f32) -> $name {
                $name::from_f64(value.into())
            }

            /// `value` rounded to the nearest, ties to even.
            pub fn from_f64(value: f64) -> $name {
                $name(float::to_bits(DType::$name, value) as u8)
            }

            /// Its value, exactly.
            pub fn to_f32(self) -> f32 {
                self.to_f64() as f32
            }

            /// Its value, exactly.
            pub fn to_f64(self) -> f64 {
                float::from_bits(DType::$name, self.0.into())
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> f32 {
                value.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.to_f64()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<std::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )* };
}

eight_bits! {
    /// An 8-bit float with 4 bits of exponent and 3 of mantissa, up to 448, without infinities: larger numbers become nan
    /// (Micikevicius and others, "FP8 formats for deep learning", 2022).
    ///
    /// ```
    /// use tinyspec_core::{F8E4M3, Tensor};
    ///
    /// let x = Tensor::from_slice(&[0.3, 100.0, 448.0].map(F8E4M3::from_f32), [3]);
    /// assert_eq!(x.to_vec::<F8E4M3>()?.iter().map(|x| x.to_f32()).collect::<Vec<_>>(), [0.3125, 96.0, 448.0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    F8E4M3
    /// An 8-bit float with 5 bits of exponent and 2 of mantissa, up to 57,344, with infinities.
    ///
    /// ```
    /// use tinyspec_core::F8E5M2;
    ///
    /// assert_eq!(F8E5M2::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(F8E5M2::from_f32(1e6).to_f32(), f32::INFINITY);
    /// ```
    F8E5M2
}
