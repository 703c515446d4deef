//! Tensor methods: generated from the one method table of the language.

use super::Tensor;
use crate::lazy::{LazyBuilder, Method, Results};
use crate::tensor::create::{IntoShape, Scalar};
use crate::{Error, Result};
use std::hash::Hash;
use std::panic::Location;
use tinyspec_ir::ops::LiteralKind;
use tinyspec_ir::{Builder, DType, Dim, NodeId, for_each_method};

/// An operand: a tensor, or a number, which takes the dtype of the other operand.
#[diagnostic::on_unimplemented(
    message = "expected a tensor or a number, found `{Self}`",
    label = "expected a tensor or a number"
)]
pub trait Operand {
    /// The node; a number becomes a constant of the dtype `like` if that can hold its kind, and must then represent its
    /// value.
    #[doc(hidden)]
    fn import(&self, builder: &mut LazyBuilder, like: DType) -> Result<NodeId>;

    /// If this is a tensor, the dtype that a number as the other operand takes.
    #[doc(hidden)]
    fn own_dtype(&self) -> Option<DType> {
        None
    }
}

impl Operand for Tensor {
    fn import(&self, builder: &mut LazyBuilder, _: DType) -> Result<NodeId> {
        Ok(builder.import(self.node()?.clone()))
    }

    fn own_dtype(&self) -> Option<DType> {
        Some(self.dtype())
    }
}

impl Operand for Dim {
    fn import(&self, builder: &mut LazyBuilder, like: DType) -> Result<NodeId> {
        Ok(tinyspec_ir::ops::creation::size(builder, self, LiteralKind::Int.beside(like))?)
    }
}

impl<T: Operand> Operand for &T {
    fn import(&self, builder: &mut LazyBuilder, like: DType) -> Result<NodeId> {
        T::import(self, builder, like)
    }

    fn own_dtype(&self) -> Option<DType> {
        T::own_dtype(self)
    }
}

macro_rules! numbers {
    ($($type:ty)*) => { $(impl Operand for $type {
        fn import(&self, builder: &mut LazyBuilder, like: DType) -> Result<NodeId> {
            let literal = self.literal();
            let constant = match like {
                DType::Void => literal.constant_of(<$type as Scalar>::DTYPE)?,
                like => literal.beside(like)?,
            };
            Ok(builder.number(constant))
        }
    })* };
}
numbers!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool);

/// An iteration count, as in `for (i, part) in parts.iter().enumerate()`.
impl Operand for usize {
    fn import(&self, builder: &mut LazyBuilder, like: DType) -> Result<NodeId> {
        (*self as i64).import(builder, like)
    }
}

/// An argument that names axes: `-1`, `[0, 2]`, or `..` for all of them.
#[diagnostic::on_unimplemented(
    message = "expected an axis, axes such as `[0, 1]`, or `..` for all, found `{Self}`",
    label = "expected axes"
)]
pub trait IntoAxes {
    /// The axes, or `None` for all.
    fn into_axes(self) -> Option<Vec<i64>>;
}

impl IntoAxes for i64 {
    fn into_axes(self) -> Option<Vec<i64>> {
        Some(vec![self])
    }
}

impl IntoAxes for i32 {
    fn into_axes(self) -> Option<Vec<i64>> {
        Some(vec![self.into()])
    }
}

impl IntoAxes for usize {
    fn into_axes(self) -> Option<Vec<i64>> {
        Some(vec![self as i64])
    }
}

impl IntoAxes for std::ops::RangeFull {
    fn into_axes(self) -> Option<Vec<i64>> {
        None
    }
}

impl<const N: usize> IntoAxes for [i64; N] {
    fn into_axes(self) -> Option<Vec<i64>> {
        Some(self.into())
    }
}

impl IntoAxes for &[i64] {
    fn into_axes(self) -> Option<Vec<i64>> {
        Some(self.into())
    }
}

/// No type implements it. Without [`Tensor::clamp`], rustc would find `Ord::clamp` and report that instead.
#[doc(hidden)]
#[diagnostic::on_unimplemented(message = "tensors have no method `clamp`: it is called `clip`", label = "write `clip`")]
pub trait NotClip {}

impl Tensor {
    #[doc(hidden)]
    pub fn clamp<N: NotClip>(&self, _: N, _: N) {}
}

/// A method call: collects its arguments, and the first error among them.
pub(super) struct Call {
    builder: LazyBuilder,
    op: &'static str,
    location: &'static Location<'static>,
    /// Of a row of the method table.
    method: Option<Method>,
    error: Option<Error>,
    /// The number of results of a call that fails.
    results: usize,
}

impl Call {
    /// A call of the method `op`, which errors name, rather than the ops that it is composed of.
    pub fn new(op: &'static str, location: &'static Location<'static>) -> Call {
        Call { builder: LazyBuilder::new(location), op, location, method: None, error: None, results: 1 }
    }

    /// A call of a row of the method table: its name and the parameters other than tensors determine what it computes.
    pub fn of_row(op: &'static str, location: &'static Location<'static>) -> Call {
        Call { method: Some(Method::new(op)), ..Call::new(op, location) }
    }

    /// Adds a non-tensor parameter of a row. `may_change` is set for values that a loop may change in each step.
    pub fn parameter(&mut self, parameter: impl Hash, may_change: bool) {
        if let Some(method) = &mut self.method {
            method.parameter(&parameter, may_change);
        }
    }

    /// The node of an argument; after an error, an arbitrary number.
    pub fn operand(&mut self, operand: impl Operand, like: DType) -> NodeId {
        match operand.import(&mut self.builder, like) {
            Ok(node) => node,
            Err(error) => {
                // An error with a line is from an earlier call.
                let error = if error.location().is_none() { error.in_op(self.op) } else { error };
                self.error.get_or_insert(error.at(self.location));
                NodeId(0)
            }
        }
    }

    fn operands(&mut self, tensors: &[&Tensor]) -> Vec<NodeId> {
        tensors.iter().map(|tensor| self.operand(tensor, DType::Void)).collect()
    }

    fn build<T>(&mut self, build: impl FnOnce(&mut LazyBuilder) -> tinyspec_ir::Result<T>) -> Result<T> {
        match self.error.take() {
            Some(error) => Err(error),
            None => {
                let result = self.builder.place_numbers().and_then(|()| build(&mut self.builder));
                result.map_err(|error| error.in_op(self.op).at(self.location).into())
            }
        }
    }

    /// As [`Call::build`], with a body that later calls of the method share.
    fn compose(&mut self, build: impl FnOnce(&mut LazyBuilder) -> tinyspec_ir::Result<Results>) -> Result<Results> {
        match self.method.take() {
            Some(method) => self.build(|builder| builder.compose(&method, build)),
            None => self.build(build),
        }
    }

    /// Inspects the operands.
    pub fn look<T>(&mut self, look: impl FnOnce(&mut LazyBuilder) -> tinyspec_ir::Result<T>) -> Result<T> {
        self.build(look)
    }

    /// The one result.
    pub fn tensor(mut self, build: impl FnOnce(&mut LazyBuilder) -> tinyspec_ir::Result<NodeId>) -> Tensor {
        match self.compose(|builder| Ok(Results::from_iter([build(builder)?]))) {
            Ok(nodes) => Tensor::from_node(self.builder.node(nodes[0])),
            Err(error) => Tensor::failed(error),
        }
    }

    /// Sets the number of results of a call that fails: a caller may index any of them.
    fn set_results(&mut self, results: i64) {
        /// An invalid number of pieces must not exhaust memory.
        const MOST: usize = 1 << 10;
        self.results = usize::try_from(results).unwrap_or(1).clamp(1, MOST);
    }

    /// Several results, each of which carries the error of a call that fails.
    fn tensors(mut self, build: impl FnOnce(&mut LazyBuilder) -> tinyspec_ir::Result<Vec<NodeId>>) -> Vec<Tensor> {
        match self.compose(|builder| Ok(Results::from_vec(build(builder)?))) {
            Ok(nodes) => nodes.into_iter().map(|node| Tensor::from_node(self.builder.node(node))).collect(),
            Err(error) => vec![Tensor::failed(error); self.results],
        }
    }

    /// As many results as the row of the method says.
    fn array<const N: usize>(
        self,
        build: impl FnOnce(&mut LazyBuilder) -> tinyspec_ir::Result<Vec<NodeId>>,
    ) -> [Tensor; N] {
        let op = self.op;
        let mut tensors = self.tensors(build).into_iter();
        std::array::from_fn(|_| tensors.next().unwrap_or_else(|| unreachable!("{op} has {N} results by its row")))
    }
}

macro_rules! method {
    // Hand-written in `create` and `random`, since their dtype and key have defaults.
    ($(#[$meta:meta])* full $($rest:tt)*) => {};
    ($(#[$meta:meta])* zeros $($rest:tt)*) => {};
    ($(#[$meta:meta])* ones $($rest:tt)*) => {};
    ($(#[$meta:meta])* arange $($rest:tt)*) => {};
    ($(#[$meta:meta])* uniform $($rest:tt)*) => {};
    ($(#[$meta:meta])* randn $($rest:tt)*) => {};
    // A number takes the dtype of the other choice, or of its own type if both are numbers; the condition's dtype does
    // not matter.
    ($(#[$meta:meta])* where_($condition:ident: tensor, $x:ident: tensor, $y:ident: tensor) -> tensor = $($path:ident)::+) => {
        $(#[$meta])*
        #[track_caller]
        pub fn where_(&self, $x: impl Operand, $y: impl Operand) -> Tensor {
            let mut call = Call::new("where_", Location::caller());
            let $condition = call.operand(self, DType::Void);
            let [x_like, y_like] = [$y.own_dtype(), $x.own_dtype()].map(|dtype| dtype.unwrap_or(DType::Void));
            let ($x, $y) = (call.operand($x, x_like), call.operand($y, y_like));
            call.tensor(|builder| tinyspec_ir::ops::$($path)::+(builder, $condition, $x, $y))
        }
    };
    ($(#[$meta:meta])* $name:ident($receiver:ident: tensor $(, $param:ident: $kind:ident)*) -> $result:ident $([$count:expr])? = $($path:ident)::+) => {
        $(#[$meta])*
        #[track_caller]
        pub fn $name(&self $(, $param: method!(@type $kind))*) -> method!(@result $result $([$count])?) {
            #[allow(unused_mut, reason = "not every method has more operands")]
            let mut call = Call::of_row(stringify!($name), Location::caller());
            let $receiver = call.operand(self, DType::Void);
            $(let $param = method!(@prepare $kind, call, $param, self.dtype());)*
            $(method!(@parameter $param: $kind, call, $param);)*
            $(call.set_results($count);)?
            call.$result(|builder| tinyspec_ir::ops::$($path)::+(builder, $receiver $(, method!(@pass $kind, $param))*))
        }
    };
    ($(#[$meta:meta])* $name:ident($($param:ident: $kind:ident),*) -> $result:ident $([$count:expr])? = $($path:ident)::+) => {
        $(#[$meta])*
        #[track_caller]
        pub fn $name($($param: method!(@type $kind)),*) -> method!(@result $result $([$count])?) {
            #[allow(unused_mut, reason = "not every method has operands")]
            let mut call = Call::of_row(stringify!($name), Location::caller());
            $(let $param = method!(@prepare $kind, call, $param, DType::Void);)*
            $(method!(@parameter $param: $kind, call, $param);)*
            $(call.set_results($count);)?
            call.$result(|builder| tinyspec_ir::ops::$($path)::+(builder $(, method!(@pass $kind, $param))*))
        }
    };
    (@type tensor) => { impl Operand };
    (@type tensors) => { &[&Tensor] };
    (@type optional) => { Option<&Tensor> };
    (@type int) => { i64 };
    (@type ints) => { impl AsRef<[i64]> };
    (@type float) => { f64 };
    (@type flag) => { bool };
    (@type dtype) => { DType };
    (@type shape) => { impl IntoShape };
    (@type size) => { impl Into<Dim> };
    (@type axes) => { impl IntoAxes };
    (@type text) => { &str };
    (@type $options:ident) => { tinyspec_ir::ops::options::$options };
    (@result tensor) => { Tensor };
    (@result tensors $([$count:expr])?) => { Vec<Tensor> };
    (@result array [$count:expr]) => { [Tensor; $count] };
    (@prepare tensor, $call:ident, $param:ident, $like:expr) => { $call.operand($param, $like) };
    (@prepare tensors, $call:ident, $param:ident, $like:expr) => { $call.operands($param) };
    (@prepare optional, $call:ident, $param:ident, $like:expr) => {
        $param.map(|tensor| $call.operand(tensor, $like))
    };
    (@prepare shape, $call:ident, $param:ident, $like:expr) => { $param.into_shape() };
    (@prepare size, $call:ident, $param:ident, $like:expr) => { Into::<Dim>::into($param) };
    (@prepare axes, $call:ident, $param:ident, $like:expr) => { $param.into_axes() };
    (@prepare $kind:ident, $call:ident, $param:ident, $like:expr) => { $param };
    (@parameter $name:ident: tensor, $call:ident, $param:ident) => {};
    (@parameter $name:ident: tensors, $call:ident, $param:ident) => { $call.parameter($param.len(), false) };
    (@parameter $name:ident: optional, $call:ident, $param:ident) => { $call.parameter($param.is_some(), false) };
    (@parameter $name:ident: float, $call:ident, $param:ident) => { $call.parameter($param.to_bits(), true) };
    (@parameter axis: int, $call:ident, $param:ident) => { $call.parameter($param, false) };
    (@parameter axes: int, $call:ident, $param:ident) => { $call.parameter($param, false) };
    (@parameter $name:ident: int, $call:ident, $param:ident) => { $call.parameter($param, true) };
    (@parameter $name:ident: ints, $call:ident, $param:ident) => { $call.parameter($param.as_ref(), true) };
    (@parameter $name:ident: shape, $call:ident, $param:ident) => { $call.parameter(&$param, true) };
    (@parameter $name:ident: $kind:ident, $call:ident, $param:ident) => { $call.parameter(&$param, true) };
    (@pass tensors, $param:ident) => { &$param };
    (@pass ints, $param:ident) => { $param.as_ref() };
    (@pass shape, $param:ident) => { &$param };
    (@pass size, $param:ident) => { &$param };
    (@pass axes, $param:ident) => { $param.as_deref() };
    (@pass $kind:ident, $param:ident) => { $param };
}

macro_rules! methods {
    ($($(#[$meta:meta])* $name:ident($($param:ident: $kind:ident),*) -> $result:ident $([$count:expr])? = $($path:ident)::+;)*) => {
        /// The methods of the table.
        #[allow(clippy::should_implement_trait, clippy::too_many_arguments, reason = "the table's names; operators exist too")]
        impl Tensor {
            $(method! { $(#[$meta])* $name($($param: $kind),*) -> $result $([$count])? = $($path)::+ })*
        }
    };
}

for_each_method!(methods);
