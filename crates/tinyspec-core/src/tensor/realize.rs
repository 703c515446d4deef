//! Computes lazy tensors, scheduling all requested values as one graph.

use super::{Element, Tensor};
use crate::device::Storage;
use crate::execute::realize;
use crate::lazy::part;
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Device, ErrorKind};

/// Computes several tensors as one graph: common subexpressions are computed once, and kernels may be shared.
///
/// # Errors
/// The first error that a tensor carries, or that of planning or running.
pub fn realize_all(tensors: &[&Tensor]) -> Result<()> {
    let nodes = tensors.iter().map(|tensor| tensor.node().cloned()).collect::<Result<Vec<_>>>()?;
    realize(&nodes)
}

impl Tensor {
    /// Computes the value; this tensor and all its clones then share its buffer.
    ///
    /// # Errors
    /// The error that the tensor carries, or that of planning or running.
    pub fn realize(&self) -> Result<&Tensor> {
        realize_all(&[self])?;
        Ok(self)
    }

    /// The elements, in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::realize`], and when `T` is not the tensor's dtype.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let location = Location::caller();
        let node = self.node()?;
        if node.props.dtype != T::DTYPE {
            return Err(tinyspec_ir::Error::new(
                ErrorKind::DType,
                "to_vec",
                format!("the tensor is {}, not {}", node.props.dtype, T::DTYPE),
            )
            .help(format!("`.cast(DType::{})` first", T::DTYPE.name().to_uppercase()))
            .at(location)
            .into());
        }
        let count: usize = self.sizes().map_err(|error| error.at(location))?.iter().product();
        let (storage, start) = self.memory()?;
        T::collect(count, &mut |data| storage.read(start, data))
    }

    /// Memory of the elements.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (storage, start) = self.memory()?;
        let mut data = vec![0; self.sizes()?.iter().product::<usize>() * self.dtype().size()];
        storage.read(start, &mut data)?;
        Ok(data)
    }

    /// The memory that holds the value, and the offset of its first byte. Computes the value if necessary; a part of a computed tensor is
    /// read in place. A value on a tuple of devices is collected on the first one.
    fn memory(&self) -> Result<(Arc<Storage>, usize)> {
        let node = self.node()?;
        let node = match node.device() {
            Some(Device::Many(names)) if !names.is_empty() => self.to(&names[0]).node()?.clone(),
            _ => node.clone(),
        };
        if let Some(memory) = part(&node) {
            return Ok(memory);
        }
        realize(std::slice::from_ref(&node))?;
        let storage =
            node.storage().ok_or_else(|| Error::refused(ErrorKind::Value, "read", "the tensor has no value"))?;
        Ok((storage, 0))
    }

    /// The element of a tensor of one element.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`], and when there is not exactly one element.
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        let location = Location::caller();
        match self.to_vec::<T>()?.as_slice() {
            [element] => Ok(*element),
            elements => {
                let shape = tinyspec_ir::dim::show(self.shape());
                let message = format!("{shape} has {} elements, not one", elements.len());
                let error = tinyspec_ir::Error::new(ErrorKind::Shape, "item", message);
                Err(error.help("`to_vec` reads all, `.at(…)` takes a part").at(location).into())
            }
        }
    }
}
