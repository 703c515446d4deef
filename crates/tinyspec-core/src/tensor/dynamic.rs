//! Methods called by name, for programs that read them from data.

use super::{Tensor, apply_many, create};
use crate::Result;
use std::panic::Location;
use tinyspec_ir::ops::MethodArg;
use tinyspec_ir::{DType, Dim, ErrorKind, NodeId, Shape, ops};

/// An argument of [`Tensor::call`].
#[derive(Clone, Debug)]
pub enum Argument {
    /// A tensor.
    Tensor(Tensor),
    /// Several tensors.
    Tensors(Vec<Tensor>),
    /// A whole number.
    Int(i64),
    /// Whole numbers, such as axes and shapes.
    Ints(Vec<i64>),
    /// A float.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// A dtype.
    DType(DType),
    /// All axes.
    AllAxes,
    /// A word.
    Text(String),
    /// An omitted argument.
    Nothing,
    /// A struct of options: the fields that are given, by name. They hold no tensors.
    Options(Vec<(String, Argument)>),
}

impl Argument {
    /// Converts it for the method table; tensors become the next of `nodes`.
    fn lowered(&self, nodes: &mut impl Iterator<Item = NodeId>) -> MethodArg {
        match self {
            Argument::Tensor(_) => nodes.next().map_or(MethodArg::Nothing, MethodArg::Tensor),
            Argument::Tensors(tensors) => MethodArg::Tensors(nodes.take(tensors.len()).collect()),
            Argument::Int(number) => MethodArg::Int(*number),
            Argument::Ints(numbers) => MethodArg::Ints(numbers.clone()),
            Argument::Float(number) => MethodArg::Float(*number),
            Argument::Flag(flag) => MethodArg::Flag(*flag),
            Argument::DType(dtype) => MethodArg::DType(*dtype),
            Argument::AllAxes => MethodArg::AllAxes,
            Argument::Text(text) => MethodArg::Text(text.clone()),
            Argument::Nothing => MethodArg::Nothing,
            Argument::Options(fields) => {
                let none = &mut std::iter::empty();
                MethodArg::Options(fields.iter().map(|(name, value)| (name.clone(), value.lowered(none))).collect())
            }
        }
    }
}

impl Tensor {
    /// Calls a method of the table ([`tinyspec_ir::ops::METHODS`]) by its name; the tensor itself is the first argument.
    ///
    /// ```
    /// # use tinyspec_core::{Argument, Tensor};
    /// let x = Tensor::from_slice(&[3f32, -1.0], [2]);
    /// let y = Tensor::call("relu", &[Argument::Tensor(x)])?;
    /// assert_eq!(y[0].shape().len(), 1);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such method (the error suggests the nearest one), the arguments do not fit, or the method
    /// refuses them.
    #[track_caller]
    pub fn call(name: &str, arguments: &[Argument]) -> Result<Vec<Tensor>> {
        let tensors: Vec<&Tensor> = arguments
            .iter()
            .flat_map(|argument| match argument {
                Argument::Tensor(tensor) => std::slice::from_ref(tensor),
                Argument::Tensors(tensors) => tensors.as_slice(),
                _ => &[],
            })
            .collect();
        apply_many(Location::caller(), &tensors, |builder, nodes| {
            let mut nodes = nodes.iter().copied();
            let arguments: Vec<MethodArg> = arguments.iter().map(|argument| argument.lowered(&mut nodes)).collect();
            ops::call(name, builder, &arguments)
        })
    }

    /// A tensor of raw bytes, little-endian and row-major, on the default device.
    #[track_caller]
    pub fn from_bytes(dtype: DType, bytes: &[u8], shape: &[i64]) -> Tensor {
        let location = Location::caller();
        let refused = |kind, message| Tensor::refused(location, kind, "from_bytes", message);
        if matches!(dtype, DType::Void | DType::Index) {
            return refused(ErrorKind::DType, format!("{dtype} has no form in memory"));
        }
        let size = shape.iter().try_fold(dtype.size() as i64, |size, &dim| size.checked_mul(dim));
        if shape.iter().any(|&dim| dim < 0) || size != i64::try_from(bytes.len()).ok() {
            let message = format!("{} bytes do not fill {dtype} {shape:?}", bytes.len());
            let error = tinyspec_ir::Error::new(ErrorKind::Shape, "from_bytes", message);
            let help =
                format!("{} bytes for each element, of which the product of the sizes says how many", dtype.size());
            return Tensor::failed(error.help(help).at(location));
        }
        let shape: Shape = shape.iter().map(|&dim| Dim::from(dim)).collect();
        create::written(location, "from_bytes", bytes, dtype, &shape)
    }
}
