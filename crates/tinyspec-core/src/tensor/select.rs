//! Results whose size depends on data: the data are read first, so these methods compute at once and cannot be part of
//! a Function.

use super::Tensor;
use super::collectives::broadcast;
use crate::Result;
use std::panic::Location;
use tinyspec_ir::dim::show;
use tinyspec_ir::{DType, Device, ErrorKind};

impl Tensor {
    /// The elements where `mask` is true, row by row. The mask is computed at once; the elements stay lazy.
    ///
    /// ```
    /// # use tinyspec_core::Tensor;
    /// let x = Tensor::from_slice(&[3f32, -1.0, 2.0], [3]);
    /// assert_eq!(x.masked_select(&x.gt(0.0)).to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Tensor {
        let location = Location::caller();
        let (dtype, shape, mask_shape) = (mask.dtype(), self.shape(), mask.shape());
        let wrong = |kind, message: String, help: &str| {
            let error = tinyspec_ir::Error::new(kind, "masked_select", message);
            Tensor::failed(error.help(help).at(location))
        };
        if let (Ok(_), Ok(_)) = (self.node(), mask.node()) {
            if dtype != DType::Bool {
                let message = format!("a mask must be bool, found {dtype}");
                return wrong(ErrorKind::DType, message, "comparisons give one, as `x.gt(0.0)` and `x.ne(0.0)`");
            }
            if tinyspec_ir::dim::broadcast(shape, mask_shape).is_none_or(|both| both.as_slice() != shape) {
                let message = format!("a mask of {} for {}", show(mask_shape), show(shape));
                return wrong(ErrorKind::Shape, message, "the mask broadcasts to the shape of the tensor");
            }
        }
        chosen(self, mask).unwrap_or_else(|error| Tensor::failed(error.at(location)))
    }

    /// The positions of nonzero elements: a row of indices (i32) for each of them, computed at once.
    ///
    /// ```
    /// # use tinyspec_core::Tensor;
    /// let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 0.0], [2, 2]);
    /// assert_eq!(x.nonzero().to_vec::<i32>()?, [0, 1, 1, 0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    #[track_caller]
    pub fn nonzero(&self) -> Tensor {
        let location = Location::caller();
        nonzero_indices(self).unwrap_or_else(|error| Tensor::failed(error.at(location)))
    }
}

/// The elements of `x` where `mask` is true.
#[track_caller]
fn chosen(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let sizes: Vec<i64> = x.sizes()?.iter().map(|&size| size as i64).collect();
    let positions = positions(&mask.expand(sizes))?;
    let index = Tensor::from_slice(&positions, [positions.len()]).internal();
    Ok(x.flatten(0, -1).take(on_devices_of(x, index)))
}

/// A row of indices for each nonzero element of `x`.
#[track_caller]
fn nonzero_indices(x: &Tensor) -> Result<Tensor> {
    let sizes = x.sizes()?;
    let positions = positions(&x.cast(DType::Bool))?;
    let mut rows = Vec::with_capacity(positions.len() * sizes.len());
    for position in &positions {
        let mut stride: usize = sizes.iter().product();
        for &size in &sizes {
            stride /= size.max(1);
            rows.push((*position as usize / stride.max(1) % size.max(1)) as i32);
        }
    }
    let rows = Tensor::from_vec(rows, [positions.len(), sizes.len()]);
    Ok(on_devices_of(x, rows))
}

/// `found` on the device of `tensor`, or replicated on its tuple of devices.
#[track_caller]
pub(super) fn on_devices_of(tensor: &Tensor, found: Tensor) -> Tensor {
    match tensor.device() {
        Some(device @ Device::Single(_)) => found.to(device),
        Some(devices) => broadcast(&found, devices),
        None => found,
    }
}

/// The row-major positions of true elements.
#[track_caller]
pub(super) fn positions(mask: &Tensor) -> Result<Vec<i64>> {
    let mask = mask.to_vec::<bool>()?;
    Ok((0..).zip(mask).filter_map(|(position, is_true)| is_true.then_some(position)).collect())
}
