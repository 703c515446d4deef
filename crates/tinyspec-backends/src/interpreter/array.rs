//! Arrays, and the tensor ops on them.

mod apply;
mod movement;

pub use apply::apply;
pub(super) use movement::index_positions;

use tinyspec_ir::eval::{from_storage, to_storage};
use tinyspec_ir::{Const, DType, Error, ErrorKind, Op, Result};

/// A dense array in row-major order. A lane holds the bits of a [`Const`].
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    lanes: Vec<u64>,
}

impl Array {
    /// An array of these lanes.
    ///
    /// # Errors
    /// When their number differs from that of the shape's elements.
    pub fn new(dtype: DType, shape: &[usize], lanes: Vec<u64>) -> Result<Array> {
        let count = element_count(shape)?;
        if count != lanes.len() {
            return Err(value_error("array", format!("{shape:?} has {count} elements, {} were given", lanes.len())));
        }
        Ok(Array { dtype, shape: shape.to_vec(), lanes })
    }

    /// An array of one value.
    ///
    /// # Errors
    /// When the shape is too large.
    pub fn filled(shape: &[usize], value: Const) -> Result<Array> {
        let mut lanes = lanes_for(element_count(shape)?)?;
        lanes.fill(value.bits);
        Ok(Array { dtype: value.dtype, shape: shape.to_vec(), lanes })
    }

    /// A scalar.
    pub fn scalar(value: Const) -> Array {
        Array { dtype: value.dtype, shape: Vec::new(), lanes: vec![value.bits] }
    }

    /// An array of numbers, each converted to the dtype as [`Const::float`] does.
    ///
    /// # Errors
    /// As [`Array::new`].
    pub fn from_floats(dtype: DType, shape: &[usize], values: &[f64]) -> Result<Array> {
        Array::new(dtype, shape, values.iter().map(|&value| Const::float(dtype, value).bits).collect())
    }

    /// An array of integers, each converted to the dtype as [`Const::int`] does.
    ///
    /// # Errors
    /// As [`Array::new`].
    pub fn from_ints(dtype: DType, shape: &[usize], values: &[i64]) -> Result<Array> {
        Array::new(dtype, shape, values.iter().map(|&value| Const::int(dtype, value as i128).bits).collect())
    }

    /// An array from its bytes in memory.
    ///
    /// # Errors
    /// When their number differs from the array's size.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Array> {
        let size = dtype.size().max(1);
        if !bytes.len().is_multiple_of(size) {
            return Err(value_error("array", format!("{} bytes are not a whole number of {dtype}", bytes.len())));
        }
        let lane = |element: &[u8]| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(element);
            from_storage(dtype, u64::from_le_bytes(word))
        };
        Array::new(dtype, shape, bytes.chunks_exact(size).map(lane).collect())
    }

    /// The bytes of the array in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = self.dtype.size();
        self.lanes.iter().flat_map(|&lane| to_storage(self.dtype, lane).to_le_bytes().into_iter().take(size)).collect()
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, in row-major order.
    pub fn lanes(&self) -> &[u64] {
        &self.lanes
    }

    /// The elements as numbers; integers beyond 53 bits are rounded.
    pub fn to_floats(&self) -> Vec<f64> {
        let value = |constant: Const| constant.as_float().or(constant.as_int().map(|value| value as f64));
        self.constants().map(|constant| value(constant).unwrap_or(f64::NAN)).collect()
    }

    /// The elements as constants.
    pub fn constants(&self) -> impl Iterator<Item = Const> {
        self.lanes.iter().map(|&bits| Const { dtype: self.dtype, bits })
    }

    /// The elements of an array of index, as sizes.
    pub(super) fn sizes(&self, op: Op) -> Result<Vec<usize>> {
        let size = |&lane: &u64| {
            usize::try_from(lane as i64).map_err(|_| value_error(op.name(), format!("{} is not a size", lane as i64)))
        };
        self.lanes.iter().map(size).collect()
    }

    /// The same elements in another shape of the same size.
    pub(super) fn reshaped(&self, shape: &[usize]) -> Result<Array> {
        Array::new(self.dtype, shape, self.lanes.clone())
    }

    /// Elements of another array, by position; `None` is 0.
    pub(super) fn gathered(&self, shape: &[usize], positions: &[Option<usize>]) -> Result<Array> {
        let lane =
            |position: &Option<usize>| position.and_then(|position| self.lanes.get(position)).copied().unwrap_or(0);
        Array::new(self.dtype, shape, positions.iter().map(lane).collect())
    }

    /// Writes lanes at positions within the array.
    pub(super) fn scatter(&mut self, positions: impl IntoIterator<Item = (usize, u64)>) {
        for (position, value) in positions {
            if let Some(lane) = self.lanes.get_mut(position) {
                *lane = value;
            }
        }
    }
}

pub(super) fn value_error(op: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Value, op, message)
}

pub(super) fn element_count(shape: &[usize]) -> Result<usize> {
    let count = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
    count.ok_or_else(|| value_error("array", format!("{shape:?} is too large")))
}

/// An empty list with room for this many elements, or an error if memory is short.
pub(super) fn room_for<T>(count: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| value_error("array", format!("no memory for {count} elements")))?;
    Ok(room)
}

/// Zeros.
pub(super) fn lanes_for(count: usize) -> Result<Vec<u64>> {
    let mut lanes = room_for(count)?;
    lanes.resize(count, 0);
    Ok(lanes)
}
