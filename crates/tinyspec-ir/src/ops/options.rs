//! Options of methods that have many, written as struct literals: `Conv2d { stride: [2, 2], ..default() }`.
//!
//! Each is declared once; the method table, dynamic calls and the docs derive from the declaration.

use super::MethodArg;
use crate::{Error, ErrorKind, Result};
use std::hash::{Hash, Hasher};

/// The default of a type, short enough for `Conv2d { stride: [2, 2], ..default() }`.
pub fn default<T: Default>() -> T {
    T::default()
}

/// The interface of all structs of options.
pub trait Options: Default {
    /// Names of the fields.
    const FIELDS: &'static [&'static str];

    /// Sets a field by name.
    ///
    /// # Errors
    /// When there is no such field, or the value is of another kind.
    fn set(&mut self, method: &str, field: &str, value: &MethodArg) -> Result<()>;
}

/// The type of a field.
trait Field: Sized {
    const EXPECTED: &'static str;

    fn read(value: &MethodArg) -> Option<Self>;

    fn hash_to<H: Hasher>(&self, state: &mut H);
}

impl Field for i64 {
    const EXPECTED: &'static str = "a whole number";

    fn read(value: &MethodArg) -> Option<i64> {
        if let MethodArg::Int(number) = value { Some(*number) } else { None }
    }

    fn hash_to<H: Hasher>(&self, state: &mut H) {
        self.hash(state);
    }
}

impl Field for f64 {
    const EXPECTED: &'static str = "a number";

    fn read(value: &MethodArg) -> Option<f64> {
        match value {
            MethodArg::Float(number) => Some(*number),
            MethodArg::Int(number) => Some(*number as f64),
            _ => None,
        }
    }

    fn hash_to<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.to_bits());
    }
}

impl Field for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(value: &MethodArg) -> Option<bool> {
        if let MethodArg::Flag(flag) = value { Some(*flag) } else { None }
    }

    fn hash_to<H: Hasher>(&self, state: &mut H) {
        self.hash(state);
    }
}

/// One number stands for all axes.
impl<const N: usize> Field for [i64; N] {
    const EXPECTED: &'static str = "a whole number for each axis";

    fn read(value: &MethodArg) -> Option<[i64; N]> {
        match value {
            MethodArg::Int(number) => Some([*number; N]),
            MethodArg::Ints(numbers) => per_axis(numbers),
            _ => None,
        }
    }

    fn hash_to<H: Hasher>(&self, state: &mut H) {
        self.hash(state);
    }
}

impl<T: Field> Field for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(value: &MethodArg) -> Option<Option<T>> {
        if *value == MethodArg::Nothing { Some(None) } else { T::read(value).map(Some) }
    }

    fn hash_to<H: Hasher>(&self, state: &mut H) {
        self.is_some().hash(state);
        if let Some(value) = self {
            value.hash_to(state);
        }
    }
}

/// A number for each of N axes; a single one stands for all.
pub(crate) fn per_axis<const N: usize>(numbers: &[i64]) -> Option<[i64; N]> {
    match *numbers {
        [number] => Some([number; N]),
        _ => numbers.try_into().ok(),
    }
}

macro_rules! options {
    ($($(#[doc = $doc:literal])* $name:ident $(<$axes:ident>)? {
        $($(#[doc = $field_doc:literal])* $field:ident: $type:ty = $default:expr,)*
    })*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $name $(<const $axes: usize>)? {
            $($(#[doc = $field_doc])* pub $field: $type,)*
        }

        impl $(<const $axes: usize>)? Default for $name $(<$axes>)? {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $(<const $axes: usize>)? Hash for $name $(<$axes>)? {
            fn hash<H: Hasher>(&self, state: &mut H) {
                $(self.$field.hash_to(state);)*
            }
        }

        impl $(<const $axes: usize>)? Options for $name $(<$axes>)? {
            const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn set(&mut self, method: &str, field: &str, value: &MethodArg) -> Result<()> {
                match field {
                    $(stringify!($field) => self.$field = <$type as Field>::read(value).ok_or_else(|| {
                        let expected = <$type as Field>::EXPECTED;
                        let message = format!("`{field}` must be {expected}, found {value:?}");
                        Error::new(ErrorKind::Arity, method, message)
                    })?,)*
                    _ => {
                        let fields = Self::FIELDS.join("`, `");
                        return Err(Error::new(ErrorKind::Arity, method, format!("there is no option `{field}`"))
                            .help(format!("the options are `{fields}`")));
                    }
                }
                Ok(())
            }
        }
    )* };
}

options! {
    /// Options of a convolution over N axes.
    Conv<N> {
        /// Steps between windows.
        stride: [i64; N] = [1; N],
        /// Zeros before and after each axis.
        padding: [i64; N] = [0; N],
        /// Zeros after each axis, where they differ from those before.
        padding_end: Option<[i64; N]> = None,
        /// As many zeros, half of them before, as let each axis keep its length; the windows are 1 apart then.
        same: bool = false,
        /// Distance between the elements of a window.
        dilation: [i64; N] = [1; N],
        /// Groups of channels that do not see each other.
        groups: i64 = 1,
    }
    /// Options of a transposed convolution over N axes.
    ConvTranspose<N> {
        /// Steps between the places that neighbouring inputs are added at.
        stride: [i64; N] = [1; N],
        /// Elements cut off the result at both ends of each axis.
        padding: [i64; N] = [0; N],
        /// Elements cut off the far end of each axis, where they differ from those at the near end.
        padding_end: Option<[i64; N]> = None,
        /// Zeros appended to the result.
        output_padding: [i64; N] = [0; N],
        /// Distance between the elements of a window.
        dilation: [i64; N] = [1; N],
        /// Groups of channels that do not see each other.
        groups: i64 = 1,
    }
    /// Options of a maximum over windows of N axes.
    MaxPool<N> {
        /// Steps between windows; windows beside each other if nothing is said.
        stride: Option<[i64; N]> = None,
        /// Elements before and after each axis that are never the maximum; at most half a window.
        padding: [i64; N] = [0; N],
        /// Elements after each axis, where they differ from those before; both are then less than a window.
        padding_end: Option<[i64; N]> = None,
        /// Distance between the elements of a window.
        dilation: [i64; N] = [1; N],
        /// Counts a last window that is only partly inside.
        ceil_mode: bool = false,
    }
    /// Options of a mean over windows of N axes.
    AvgPool<N> {
        /// Steps between windows; windows beside each other if nothing is said.
        stride: Option<[i64; N]> = None,
        /// Zeros before and after each axis; at most half a window.
        padding: [i64; N] = [0; N],
        /// Zeros after each axis, where they differ from those before; both are then less than a window.
        padding_end: Option<[i64; N]> = None,
        /// Counts a last window that is only partly inside.
        ceil_mode: bool = false,
        /// Divides by the padding too.
        count_include_pad: bool = true,
    }
    /// Options of attention.
    Attention {
        /// Hides later keys.
        causal: bool = false,
        /// The factor applied to scores; by default 1 over the root of the width.
        scale: Option<f64> = None,
        /// The share of the weights that is taken away.
        dropout: f64 = 0.0,
        /// Queries have a multiple of the heads of keys and values, which several of theirs, beside each other, share.
        grouped: bool = false,
    }
}

/// Hands the name of every struct of options to a callback macro.
macro_rules! for_each_options {
    ($callback:ident) => {
        $callback! {
            Conv1d = Conv<1>,
            Conv2d = Conv<2>,
            Conv3d = Conv<3>,
            ConvTranspose1d = ConvTranspose<1>,
            ConvTranspose2d = ConvTranspose<2>,
            ConvTranspose3d = ConvTranspose<3>,
            MaxPool1d = MaxPool<1>,
            MaxPool2d = MaxPool<2>,
            MaxPool3d = MaxPool<3>,
            AvgPool1d = AvgPool<1>,
            AvgPool2d = AvgPool<2>,
            AvgPool3d = AvgPool<3>,
            Attention,
        }
    };
}
pub(crate) use for_each_options;

macro_rules! names {
    ($($name:ident $(= $options:ident<$axes:literal>)?,)*) => { $($(
        #[doc = concat!("[`", stringify!($options), "`] over ", stringify!($axes), " axes.")]
        pub type $name = $options<$axes>;
    )?)* };
}

for_each_options!(names);
