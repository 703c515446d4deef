//! The derived properties of a node.

use crate::{AddrSpace, DType, Device, Dim, Interval, Shape};
use std::sync::Arc;

/// dtype, shape, device, addrspace and min_max of a node ("Derived Properties"), computed only by [`crate::derive`].
#[derive(Clone, PartialEq, Debug)]
pub struct Props {
    /// Type of the elements.
    pub dtype: DType,
    /// Shape; `()` is the empty one.
    pub shape: Shape,
    /// First device among the sources.
    pub device: Option<Device>,
    /// Address space of a buffer or of a view of one.
    pub addrspace: Option<AddrSpace>,
    /// min_max.
    pub interval: Interval,
    /// Axis along which a tuple device shards the value.
    pub axis: Option<u32>,
    /// The value of an index scalar (one dim) or a Stack of them (a shape), if it does not depend on Ranges.
    pub value: Option<Shape>,
    /// Properties of the elements of a Tuple, or of a Function's result.
    pub elements: Option<Arc<[Props]>>,
}

impl Props {
    /// Properties of a void node.
    pub fn void() -> Props {
        Props {
            dtype: DType::Void,
            shape: Shape::new(),
            device: None,
            addrspace: None,
            interval: Interval::None,
            axis: None,
            value: None,
            elements: None,
        }
    }

    /// Number of dims.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn element_count(&self) -> Dim {
        self.shape.iter().cloned().fold(Dim::from(1), |product, dim| product * dim)
    }
}
