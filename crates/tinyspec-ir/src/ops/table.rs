//! The method table: one row a method. From it come the `Tensor` methods, the dynamic dispatch of the macros and the
//! corpus runner, "did you mean", and the docs.
//!
//! [`for_each_method!`](crate::for_each_method) hands all rows to a callback macro, each as
//! `#[doc] #[doc(alias(…))] name(param: kind, …) -> result = path;` with `kind` one of those in [`ParamKind`], spelt as its variant (the
//! name of a struct of options is one), and `result` one of
//!
//! * `tensor`,
//! * `array[n]`: always `n` tensors,
//! * `tensors[n]`: as many as the parameters say,
//! * `tensors`: as many as the operands have.
//!
//! The function behind a row takes `&mut dyn Builder` and the parameters in their order.

mod arguments;
mod near;
mod rows;

pub use near::{nearest, nearest_of};

use super::options::{self, Options, for_each_options};
use crate::for_each_method;
use crate::{Builder, DType, Error, ErrorKind, NodeId, Result, Shape};
use arguments::Arguments;

macro_rules! param_kind {
    ($($name:ident $(= $options:ident<$axes:literal>)?,)*) => {
        /// The kind of a method's parameter.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[allow(non_camel_case_types)]
        pub enum ParamKind {
            /// A tensor.
            tensor,
            /// Several tensors.
            tensors,
            /// A tensor, or none.
            optional,
            /// A whole number.
            int,
            /// Whole numbers.
            ints,
            /// A float.
            float,
            /// True or false.
            flag,
            /// A dtype.
            dtype,
            /// A shape or an offset.
            shape,
            /// The size of an axis.
            size,
            /// A list of axes, or all of them.
            axes,
            /// A word, such as a reduction.
            text,
            $(#[doc = concat!("Options: a struct [`", stringify!($name), "`](crate::ops::options::", stringify!($name), ").")]
            $name,)*
        }

        impl ParamKind {
            /// The fields, if it is a struct of options; its name is that of the variant.
            pub fn fields(self) -> Option<&'static [&'static str]> {
                match self {
                    $(ParamKind::$name => Some(<options::$name as Options>::FIELDS),)*
                    _ => None,
                }
            }
        }
    };
}

for_each_options!(param_kind);

/// An argument of a dynamic call.
#[derive(Clone, PartialEq, Debug)]
pub enum MethodArg {
    /// A tensor.
    Tensor(NodeId),
    /// Several tensors.
    Tensors(Vec<NodeId>),
    /// A whole number.
    Int(i64),
    /// Whole numbers: also axes and a shape of numbers.
    Ints(Vec<i64>),
    /// A float.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// A dtype.
    DType(DType),
    /// A shape with named dims; one of them is the size of an axis.
    Shape(Shape),
    /// All axes.
    AllAxes,
    /// A word.
    Text(String),
    /// An omitted argument.
    Nothing,
    /// A struct of options: the fields that are given, by name.
    Options(Vec<(String, MethodArg)>),
}

/// Takes the arguments of a method and calls it.
type Call = fn(&mut dyn Builder, &mut Arguments) -> Result<Vec<NodeId>>;

/// A row of the table.
#[derive(Debug)]
pub struct Method {
    /// Name of the method.
    pub name: &'static str,
    /// Names and kinds of the parameters; the first tensor is `self`.
    pub params: &'static [(&'static str, ParamKind)],
    /// Gives several tensors.
    pub is_list: bool,
    /// Its documentation.
    pub doc: &'static str,
    /// Its names in other libraries.
    pub aliases: &'static [&'static str],
    /// A function of its own: a single one that calls all methods takes seconds to compile.
    call: Call,
}

/// The row of a method.
pub fn method(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

macro_rules! table {
    ($($(#[doc = $doc:literal])* $(#[doc(alias($($alias:literal),*))])? $name:ident($($param:ident: $kind:ident),*) -> $result:ident $([$count:expr])? = $($path:ident)::+;)*) => {
        /// Every method.
        pub const METHODS: &[Method] = &[$(Method {
            name: stringify!($name),
            params: &[$((stringify!($param), ParamKind::$kind)),*],
            is_list: table!(@is_list $result),
            doc: concat!($($doc, "\n"),*),
            aliases: &[$($($alias),*)?],
            call: |builder, args| {
                $(let $param = table!(@take $kind args stringify!($param));)*
                args.finish()?;
                table!(@result $result super::$($path)::+(builder, $(table!(@pass $kind $param)),*))
            },
        },)*];
    };
    (@is_list tensor) => { false };
    (@is_list $several:ident) => { true };
    (@result tensor $call:expr) => { $call.map(|node| vec![node]) };
    (@result $several:ident $call:expr) => { $call };
    (@take $kind:ident $args:ident $param:expr) => { $args.$kind($param)? };
    (@pass tensors $param:ident) => { &$param };
    (@pass ints $param:ident) => { &$param };
    (@pass shape $param:ident) => { &$param };
    (@pass size $param:ident) => { &$param };
    (@pass axes $param:ident) => { $param.as_deref() };
    (@pass $kind:ident $param:ident) => { $param };
}

for_each_method!(table);

/// Calls a method by name. Errors name the method, not the ops that it is composed of.
///
/// # Errors
/// When there is no such method (with the nearest one), when the arguments do not fit its parameters, or what the method itself refuses.
pub fn call(name: &str, builder: &mut dyn Builder, args: &[MethodArg]) -> Result<Vec<NodeId>> {
    let Some(method) = method(name) else {
        let error = Error::new(ErrorKind::Unsupported, name, "there is no such method");
        return Err(match nearest(name) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        });
    };
    let mut args = Arguments { name, args, next: 0 };
    (method.call)(builder, &mut args).map_err(|error| error.in_op(name))
}
