//! Kernels of `uop!` as the macro calls them.

use super::EmbeddedFunction;
use crate::device::{default_device, with_default_device};
use crate::tensor::{Element, Tensor, from_bytes};
use crate::{Error, Result};
use std::panic::Location;
use tinyspec_ir::{Const, DType, Device, ErrorKind, Shape};

/// An argument of a kernel: a tensor, or a scalar, which moves to the device of the tensors.
#[doc(hidden)]
pub trait KernelArgument {
    /// Where a tensor is.
    fn device(&self) -> Option<&Device> {
        None
    }

    /// As a tensor; a scalar is created on the default device, for the caller at `location`.
    fn tensor(&self, location: &'static Location<'static>) -> Tensor;
}

impl KernelArgument for Tensor {
    fn device(&self) -> Option<&Device> {
        Tensor::device(self)
    }

    fn tensor(&self, _: &'static Location<'static>) -> Tensor {
        self.clone()
    }
}

macro_rules! scalars {
    ($($type:ty)*) => { $(impl KernelArgument for $type {
        fn tensor(&self, location: &'static Location<'static>) -> Tensor {
            // Data, not a constant: all values share one plan.
            let bytes = <$type>::bytes(std::slice::from_ref(self));
            from_bytes(location, bytes, <$type as Element>::DTYPE, &Shape::new()).map_or_else(Tensor::failed, Tensor::internal)
        }
    })* };
}
scalars!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool);

/// The buffers that a kernel writes, lazily; if the arguments are invalid, each carries the error.
#[doc(hidden)]
#[track_caller]
pub fn call_kernel<const COUNT: usize>(
    function: &'static EmbeddedFunction,
    arguments: &[&dyn KernelArgument],
) -> [Tensor; COUNT] {
    let location = Location::caller();
    let results = match one_device(function.name(), arguments).and_then(|()| tensors(arguments, location)) {
        Ok(tensors) => function.call(&tensors.iter().collect::<Vec<_>>()),
        Err(error) => vec![Tensor::failed(error.at(location))],
    };
    std::array::from_fn(|number| {
        // A kernel that cannot be called has one result: its error.
        let result = results.get(number).or(results.first());
        result.cloned().unwrap_or_else(|| unreachable!("a call has results"))
    })
}

/// The same for a kernel with dtype parameters: the one of these that takes the arguments' dtypes is called.
#[doc(hidden)]
#[track_caller]
pub fn call_kernel_of<const COUNT: usize>(
    functions: &'static [&'static EmbeddedFunction],
    arguments: &[&dyn KernelArgument],
) -> [Tensor; COUNT] {
    let location = Location::caller();
    let error = match chosen(functions, arguments, location) {
        Ok(function) => return call_kernel(function, arguments),
        Err(error) => error.at(location),
    };
    std::array::from_fn(|_| Tensor::failed(error.clone()))
}

/// # Errors
/// When none of the functions takes the arguments' dtypes.
fn chosen(
    functions: &'static [&'static EmbeddedFunction],
    arguments: &[&dyn KernelArgument],
    location: &'static Location<'static>,
) -> Result<&'static EmbeddedFunction> {
    let found: Vec<DType> = tensors(arguments, location)?.iter().map(Tensor::dtype).collect();
    let mut taken = Vec::new();
    for function in functions {
        let wanted: Vec<DType> = function.get()?.signature().inputs.iter().map(|input| input.dtype).collect();
        if wanted == found {
            return Ok(function);
        }
        taken.push(list(&wanted));
    }
    let name = functions.first().map_or("uop", |function| function.name());
    let message = format!("takes {}, found {}", taken.join(" or "), list(&found));
    let error = tinyspec_ir::Error::new(ErrorKind::DType, name, message);
    Err(error.help("cast an argument with `.cast(…)`, or name this dtype where the kernel declares its dtypes").into())
}

fn list(dtypes: &[DType]) -> String {
    let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
    format!("({})", names.join(", "))
}

/// # Errors
/// When two arguments are on different devices. Values on tuples of devices are gathered.
fn one_device(kernel: &str, arguments: &[&dyn KernelArgument]) -> Result<()> {
    let single = |device: &&Device| matches!(device, Device::Single(_));
    let mut devices = arguments.iter().filter_map(|argument| argument.device()).filter(single);
    if let Some(first) = devices.next()
        && let Some(other) = devices.find(|device| *device != first)
    {
        let message = format!("mixes devices {first} and {other}");
        let error = tinyspec_ir::Error::new(ErrorKind::Device, kernel, message);
        return Err(error.help(format!("move one of them with `.to(\"{first}\")`")).into());
    }
    Ok(())
}

fn tensors(arguments: &[&dyn KernelArgument], location: &'static Location<'static>) -> Result<Vec<Tensor>> {
    let all = || arguments.iter().map(|argument| argument.tensor(location)).collect();
    match arguments.iter().find_map(|argument| argument.device()) {
        Some(Device::Single(name)) if **name != *default_device()?.name() => {
            with_default_device(name, || Ok::<_, Error>(all()))
        }
        _ => Ok(all()),
    }
}

/// Types of constants from outside that a kernel may use: whole numbers, since a constant may stand in an index or a bound. A
/// float would lose its fraction.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a kernel takes only integer constants from outside, and this one is `{Self}`",
    label = "pass it as a scalar, `scale: {Self}`, or write the number in the kernel"
)]
pub trait KernelConstant: Copy {
    /// As an index.
    fn index(self) -> Const;
}

macro_rules! whole_constants {
    ($($type:ty)*) => { $(impl KernelConstant for $type {
        fn index(self) -> Const {
            Const::int(DType::Index, self as i128)
        }
    })* };
}
whole_constants!(bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// An outer constant.
#[doc(hidden)]
pub fn kernel_constant(value: impl KernelConstant) -> Const {
    value.index()
}
