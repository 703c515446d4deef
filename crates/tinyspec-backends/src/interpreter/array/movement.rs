//! Movement ops, by strides and positions.

use super::{Array, element_count, lanes_for, room_for, value_error};
use tinyspec_ir::{Op, Result};

/// A strided view of an array: an offset, and a stride per axis.
struct View {
    shape: Vec<usize>,
    offset: isize,
    strides: Vec<isize>,
}

fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis] as isize);
    }
    strides
}

impl View {
    fn over(shape: &[usize]) -> View {
        View { shape: shape.to_vec(), offset: 0, strides: row_major(shape) }
    }

    /// Positions in row-major order of the view's shape.
    fn positions(&self) -> Result<Vec<usize>> {
        let count = element_count(&self.shape)?;
        let mut positions = room_for(count)?;
        let mut counters = vec![0usize; self.shape.len()];
        let mut position = self.offset;
        for _ in 0..count {
            positions.push(position as usize);
            for axis in (0..self.shape.len()).rev() {
                counters[axis] += 1;
                position += self.strides[axis];
                if counters[axis] < self.shape[axis] {
                    break;
                }
                position -= self.strides[axis] * self.shape[axis] as isize;
                counters[axis] = 0;
            }
        }
        Ok(positions)
    }
}

impl Array {
    fn viewed(&self, view: &View) -> Result<Array> {
        let lanes = view.positions()?.into_iter().map(|position| self.lanes.get(position).copied().unwrap_or(0));
        Array::new(self.dtype, &view.shape, lanes.collect())
    }

    pub(super) fn permuted(&self, order: &[u32]) -> Result<Array> {
        let mut view = View::over(&self.shape);
        let of = |axis: &u32| (*axis as usize).min(self.shape.len().saturating_sub(1));
        let strides: Vec<isize> = order.iter().map(|axis| view.strides[of(axis)]).collect();
        view.shape = order.iter().map(|axis| self.shape[of(axis)]).collect();
        view.strides = strides;
        self.viewed(&view)
    }

    pub(super) fn flipped(&self, flags: &[bool]) -> Result<Array> {
        let mut view = View::over(&self.shape);
        for (axis, _) in flags.iter().enumerate().filter(|(axis, flag)| **flag && self.shape.get(*axis) > Some(&0)) {
            view.offset += view.strides[axis] * (self.shape[axis] as isize - 1);
            view.strides[axis] *= -1;
        }
        self.viewed(&view)
    }

    /// Right-aligned broadcast to `shape`.
    pub(in crate::interpreter) fn expanded(&self, op: Op, shape: &[usize]) -> Result<Array> {
        if self.shape == shape {
            return Ok(self.clone());
        }
        let misfit = || value_error(op.name(), format!("cannot expand {:?} to {shape:?}", self.shape));
        let lead = shape.len().checked_sub(self.shape.len()).ok_or_else(misfit)?;
        let mut view = View::over(&self.shape);
        for (axis, stride) in view.strides.iter_mut().enumerate() {
            if self.shape[axis] != shape[lead + axis] {
                if self.shape[axis] != 1 {
                    return Err(misfit());
                }
                *stride = 0;
            }
        }
        view.strides = std::iter::repeat_n(0, lead).chain(view.strides).collect();
        view.shape = shape.to_vec();
        self.viewed(&view)
    }

    /// The window of `shape` that begins at `offset` in an array of shape `outer`.
    fn window(op: Op, outer: &[usize], offset: &[usize], shape: &[usize]) -> Result<View> {
        let fits = offset.len() == outer.len()
            && shape.len() == outer.len()
            && (0..outer.len()).all(|axis| shape[axis].checked_add(offset[axis]).is_some_and(|end| end <= outer[axis]));
        if !fits {
            let message = format!("a window of {shape:?} at {offset:?} does not fit into {outer:?}");
            return Err(value_error(op.name(), message));
        }
        let mut view = View::over(outer);
        view.offset = view.strides.iter().zip(offset).map(|(stride, &offset)| stride * offset as isize).sum();
        view.shape = shape.to_vec();
        Ok(view)
    }

    pub(super) fn shrunk(&self, offset: &[usize], shape: &[usize]) -> Result<Array> {
        self.viewed(&Array::window(Op::Shrink, &self.shape, offset, shape)?)
    }

    pub(super) fn padded(&self, offset: &[usize], shape: &[usize]) -> Result<Array> {
        let view = Array::window(Op::Pad, shape, offset, &self.shape)?;
        let mut result = Array::new(self.dtype, shape, lanes_for(element_count(shape)?)?)?;
        result.scatter(view.positions()?.into_iter().zip(self.lanes.iter().copied()));
        Ok(result)
    }

    /// `(T, i0, i1, …)`: outside an axis is 0.
    pub(super) fn indexed(&self, indices: &[&Array]) -> Result<Array> {
        let (shape, positions) = index_positions(&self.shape, indices)?;
        self.gathered(&shape, &positions)
    }

    pub(super) fn stacked(sources: &[&Array]) -> Result<Array> {
        let Some(first) = sources.first() else { return Array::new(tinyspec_ir::DType::Index, &[0], Vec::new()) };
        if let Some(other) = sources.iter().find(|source| source.shape != first.shape) {
            return Err(value_error(Op::Stack.name(), format!("{:?} and {:?} differ", first.shape, other.shape)));
        }
        let shape: Vec<usize> = std::iter::once(sources.len()).chain(first.shape.iter().copied()).collect();
        Array::new(first.dtype, &shape, sources.iter().flat_map(|source| source.lanes.iter().copied()).collect())
    }
}

/// Shape of an Index, and the position of each of its elements in an array of shape `inner`.
pub(in crate::interpreter) fn index_positions(
    inner: &[usize],
    indices: &[&Array],
) -> Result<(Vec<usize>, Vec<Option<usize>>)> {
    if indices.len() > inner.len() {
        return Err(value_error(Op::Index.name(), format!("{} indices into {inner:?}", indices.len())));
    }
    let mut shape = Vec::new();
    let mut positions = vec![Some(0usize)];
    for (&dim, index) in inner.iter().zip(indices) {
        shape.extend_from_slice(&index.shape);
        // Unsigned lanes beyond i64 are negative here, which is out of bounds either way.
        let inside = |lane: u64| usize::try_from(lane as i64).ok().filter(|&value| value < dim);
        positions = positions
            .iter()
            .flat_map(|&outer| index.lanes.iter().map(move |&lane| Some(outer? * dim + inside(lane)?)))
            .collect();
    }
    let rest = &inner[indices.len()..];
    let block = element_count(rest)?;
    shape.extend_from_slice(rest);
    if !rest.is_empty() {
        positions = positions
            .iter()
            .flat_map(|&outer| (0..block).map(move |position| Some(outer? * block + position)))
            .collect();
    }
    Ok((shape, positions))
}
