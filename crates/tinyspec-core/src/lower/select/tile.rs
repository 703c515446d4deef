//! How a register tile is cut into machine vectors: along its last lane axis; the other axes are unrolled.

use smallvec::SmallVec;
use tinyspec_ir::NodeId;

/// Sizes of a tile's axes; empty for a scalar.
pub(super) type Dims = SmallVec<[i64; 4]>;

/// The cut of one tile shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub dims: Dims,
    /// The vectorised axis.
    pub lane: Option<usize>,
    /// Lanes of a vector; 1 without a lane axis.
    pub width: i64,
}

impl Layout {
    /// Splits `dims` into vectors of at most `greatest` elements; `lanes` marks the axes that may be vectorised.
    pub fn new(dims: Dims, lanes: &[bool], greatest: i64) -> Layout {
        let lane = (0..dims.len()).rev().find(|&axis| dims[axis] > 1 && lanes.get(axis) == Some(&true));
        // The largest power of two that divides the axis.
        let width = lane.map_or(1, |axis| (dims[axis] & dims[axis].wrapping_neg()).min(greatest));
        let lane = lane.filter(|_| width > 1);
        Layout { dims, lane, width: if lane.is_some() { width } else { 1 } }
    }

    /// Number of parts.
    pub fn count(&self) -> usize {
        (self.dims.iter().product::<i64>() / self.width) as usize
    }

    /// The axes, the lane axis innermost, which shortens the live ranges of values that all lanes share.
    fn order(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let lane = self.lane;
        (0..self.dims.len()).filter(move |&axis| Some(axis) != lane).chain(lane)
    }

    /// Coordinates of the first lane of every part, in order.
    pub fn starts(&self) -> Vec<Dims> {
        let mut starts = Vec::with_capacity(self.count());
        let mut at: Dims = SmallVec::from_elem(0, self.dims.len());
        'parts: while starts.len() < self.count() {
            starts.push(at.clone());
            for axis in self.order().rev() {
                at[axis] += if Some(axis) == self.lane { self.width } else { 1 };
                if at[axis] < self.dims[axis] {
                    continue 'parts;
                }
                at[axis] = 0;
            }
        }
        starts
    }

    /// The part that holds these coordinates of a tile that this one broadcasts to, and the lane in it; `None` if it
    /// does not broadcast to that tile.
    pub fn find(&self, at: &[i64]) -> Option<(usize, i64)> {
        let (mut part, mut lane) = (0, 0);
        for axis in self.order() {
            let size = self.dims[axis];
            let coordinate = if size == 1 { 0 } else { *at.get(axis)? };
            if Some(axis) == self.lane {
                part = part * (size / self.width) + coordinate / self.width;
                lane = coordinate % self.width;
            } else {
                part = part * size + coordinate;
            }
        }
        Some((part as usize, lane))
    }
}

/// A tile cut into machine values, one per part: a vector of the layout's width, or a scalar that all its lanes share.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub layout: Layout,
    pub parts: Vec<NodeId>,
}
