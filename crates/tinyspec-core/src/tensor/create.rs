//! Tensors from data, and tensors of constants.

use super::{Element, Tensor, apply};
use crate::Result;
use crate::device::{Owner, Storage, default_device};
use crate::lazy::{Node, Tracing};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::eval::from_storage;
use tinyspec_ir::ops::{Literal, movement};
use tinyspec_ir::{Arg, Builder, Const, DType, Dim, ErrorKind, Op, Shape};

/// The most bytes of a constant in the body of a function, since the body is hashed and printed with all of them.
const MOST_CONSTANT: usize = 1 << 20;

/// A shape argument: `[2, 3]`, `&sizes[..]`, `()` for a scalar, or a number for one axis.
#[diagnostic::on_unimplemented(
    message = "expected a shape such as `[2, 3]`, found `{Self}`",
    label = "expected a shape"
)]
pub trait IntoShape {
    /// The dims.
    fn into_shape(self) -> Shape;
}

impl<D: Into<Dim>, const N: usize> IntoShape for [D; N] {
    fn into_shape(self) -> Shape {
        self.into_iter().map(Into::into).collect()
    }
}

impl<D: Into<Dim> + Clone> IntoShape for &[D] {
    fn into_shape(self) -> Shape {
        self.iter().cloned().map(Into::into).collect()
    }
}

impl<D: Into<Dim> + Clone> IntoShape for &Vec<D> {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

impl<D: Into<Dim> + Clone, const N: usize> IntoShape for &[D; N] {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

impl<D: Into<Dim>> IntoShape for Vec<D> {
    fn into_shape(self) -> Shape {
        self.into_iter().map(Into::into).collect()
    }
}

impl IntoShape for () {
    fn into_shape(self) -> Shape {
        Shape::new()
    }
}

impl IntoShape for Shape {
    fn into_shape(self) -> Shape {
        self
    }
}

macro_rules! one_axis {
    ($($type:ty)*) => { $(impl IntoShape for $type {
        fn into_shape(self) -> Shape {
            Shape::from_iter([Dim::from(self)])
        }
    })* };
}
one_axis!(i32 i64 usize Dim &Dim);

/// A value that a tensor can be filled with.
pub trait Scalar: Copy {
    /// The value.
    #[doc(hidden)]
    fn literal(self) -> Literal;

    /// The default dtype of a tensor filled with it.
    const DTYPE: DType;
}

macro_rules! scalars {
    ($($type:ty, $dtype:ident, $kind:ident;)*) => { $(impl Scalar for $type {
        fn literal(self) -> Literal {
            Literal::$kind(self.into())
        }
        const DTYPE: DType = DType::$dtype;
    })* };
}
scalars! {
    f32, F32, Float; f64, F32, Float;
    i8, I8, Int; i16, I16, Int; i32, I32, Int; i64, I64, Int;
    u8, U8, Int; u16, U16, Int; u32, U32, Int; u64, U64, Int;
    bool, Bool, Bool;
}

impl Tensor {
    /// A tensor of `data` in row-major order, on the default device.
    #[track_caller]
    pub fn from_slice<T: Element>(data: &[T], shape: impl IntoShape) -> Tensor {
        from_elements(Location::caller(), "from_slice", data, shape.into_shape())
    }

    /// A tensor of `data` in row-major order, on the default device.
    #[track_caller]
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl IntoShape) -> Tensor {
        from_elements(Location::caller(), "from_vec", &data, shape.into_shape())
    }

    /// A tensor of one value, of the value's own dtype (f32 for float literals).
    #[track_caller]
    pub fn full<S: Scalar>(shape: impl IntoShape, value: S) -> Tensor {
        filled("full", shape, value, S::DTYPE)
    }

    /// A tensor of one value in the given dtype.
    #[track_caller]
    pub fn full_of(shape: impl IntoShape, value: impl Scalar, dtype: DType) -> Tensor {
        filled("full_of", shape, value, dtype)
    }

    /// Zeros, f32.
    #[track_caller]
    pub fn zeros(shape: impl IntoShape) -> Tensor {
        filled("zeros", shape, 0f32, DType::F32)
    }

    /// Ones, f32.
    #[track_caller]
    pub fn ones(shape: impl IntoShape) -> Tensor {
        filled("ones", shape, 1f32, DType::F32)
    }

    /// A tensor of shape `()` with one value, which is data: kernels do not depend on it. An exception is a sum of
    /// nothing but views of it, as in the specification's `arange`: it is compiled for the number, until this line of
    /// the program has produced more than three. It combines with tensors on any device.
    #[track_caller]
    pub fn scalar<T: Element>(value: T) -> Tensor {
        let (location, bytes) = (Location::caller(), T::bytes(std::slice::from_ref(&value)));
        if Tracing::is_under_way() {
            return constant(location, "scalar", bytes, T::DTYPE, &Shape::new());
        }
        literal(location, bytes, T::DTYPE).unwrap_or_else(Tensor::failed)
    }

    /// A tensor of this tensor's shape and dtype, filled with one value.
    #[track_caller]
    pub fn full_like(&self, value: impl Scalar) -> Tensor {
        match self.node() {
            Ok(node) => filled("full_like", node.props.shape.clone(), value, node.props.dtype),
            Err(error) => Tensor::failed(error),
        }
    }

    /// Zeros of this tensor's shape and dtype.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        self.full_like(0)
    }

    /// Ones of this tensor's shape and dtype.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        self.full_like(1)
    }

    /// `0, 1, … n - 1` as i32, or as i64 if i32 cannot hold them.
    #[track_caller]
    pub fn arange(n: impl Into<Dim>) -> Tensor {
        let n = n.into();
        apply(Location::caller(), &[], |builder, _| tinyspec_ir::ops::creation::count(builder, &n))
    }
}

fn from_elements<T: Element>(location: &'static Location<'static>, op: &str, data: &[T], shape: Shape) -> Tensor {
    let count = shape.iter().try_fold(1i64, |count, dim| count.checked_mul(dim.as_const()?.max(0)));
    if count != Some(data.len() as i64) {
        let message = format!("{} elements do not fill {}", data.len(), tinyspec_ir::dim::show(&shape));
        let error = tinyspec_ir::Error::new(ErrorKind::Shape, op, message);
        return Tensor::failed(error.help("the product of the dims is the number of elements").at(location));
    }
    written(location, op, T::bytes(data), T::DTYPE, &shape)
}

#[track_caller]
fn filled(op: &str, shape: impl IntoShape, value: impl Scalar, dtype: DType) -> Tensor {
    let shape = shape.into_shape();
    apply(Location::caller(), &[], |builder, _| {
        let value = value.literal().constant_of(dtype).map_err(|error| error.in_op(op))?;
        let (value, shape) = (builder.number(value), builder.shape(&shape)?);
        builder.add(Op::Expand, &[value, shape], Arg::None).map_err(|error| error.in_op(op))
    })
}

fn literal(location: &'static Location<'static>, bytes: &[u8], dtype: DType) -> Result<Tensor> {
    let storage = stored(location, bytes, dtype, &Shape::new())?;
    Ok(Tensor::from_node(Node::literal_buffer(Arc::new(storage), number(bytes, dtype), location)?))
}

/// The number that an element's bytes are.
fn number(bytes: &[u8], dtype: DType) -> Const {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    Const { dtype, bits: from_storage(dtype, u64::from_le_bytes(word)) }
}

/// Elements that the program writes: data, or a constant of the body that is being traced.
pub(super) fn written(
    location: &'static Location<'static>,
    op: &str,
    bytes: &[u8],
    dtype: DType,
    shape: &Shape,
) -> Tensor {
    if Tracing::is_under_way() {
        return constant(location, op, bytes, dtype, shape);
    }
    from_bytes(location, bytes, dtype, shape).unwrap_or_else(Tensor::failed)
}

/// Elements that are part of the graph.
fn constant(location: &'static Location<'static>, op: &str, bytes: &[u8], dtype: DType, shape: &Shape) -> Tensor {
    if bytes.len() > MOST_CONSTANT {
        let message = format!("{} bytes of data in the body of a function", bytes.len());
        let error = tinyspec_ir::Error::new(ErrorKind::Unsupported, op, message);
        let help = "a function holds at most 1 MiB for each constant: make the tensor outside, and pass it as an input";
        return Tensor::failed(error.help(help).at(location));
    }
    apply(location, &[], |builder, _| {
        let elements = if bytes.len() == dtype.size() {
            // Unlike bytes, a number is folded.
            builder.constant(number(bytes, dtype))
        } else {
            let bytes = builder.add(Op::Binary, &[], Arg::Bytes(bytes.into()))?;
            if dtype == DType::U8 { bytes } else { builder.add(Op::Bitcast, &[bytes], Arg::DType(dtype))? }
        };
        movement::reshape(builder, elements, shape)
    })
}

/// Copies host bytes into a new buffer on the default device.
pub(crate) fn from_bytes(
    location: &'static Location<'static>,
    bytes: &[u8],
    dtype: DType,
    shape: &Shape,
) -> Result<Tensor> {
    let storage = stored(location, bytes, dtype, shape)?;
    Ok(Tensor::from_node(Node::buffer(Arc::new(storage), dtype, shape, Some(location))?))
}

fn stored(location: &'static Location<'static>, bytes: &[u8], dtype: DType, shape: &Shape) -> Result<Storage> {
    let device = default_device()?;
    let storage = Storage::allocate(&device, bytes.len(), &Owner::tensor(dtype, shape, Some(location)))?;
    storage.write(bytes)?;
    Ok(storage)
}
