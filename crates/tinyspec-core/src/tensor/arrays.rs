//! Arrays of the crate `ndarray` as tensors, and back (feature `ndarray`).

use super::{Element, Tensor};
use crate::{Error, Result};
use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};
use std::panic::Location;
use tinyspec_ir::ErrorKind;

impl Tensor {
    /// A tensor of an array's elements, whatever its layout is, on the default device.
    ///
    /// ```
    /// # use tinyspec_core::Tensor;
    /// let array = ndarray::array![[1f32, 2.0], [3.0, 4.0]];
    /// let x = Tensor::from_ndarray(&array.t());
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// assert_eq!(x.to_ndarray::<f32>()?, array.t().into_dyn());
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    #[track_caller]
    pub fn from_ndarray<T: Element, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Tensor {
        match array.as_slice() {
            Some(data) => Tensor::from_slice(data, array.shape()),
            None => Tensor::from_vec(array.iter().copied().collect(), array.shape()),
        }
    }

    /// The elements as an array.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let location = Location::caller();
        let (data, sizes) = (self.to_vec::<T>()?, self.sizes()?);
        ArrayD::from_shape_vec(IxDyn(&sizes), data)
            .map_err(|error| Error::refused(ErrorKind::Shape, "to_ndarray", error.to_string()).at(location))
    }
}
