//! Loads whose lanes are a few elements apart, or in reverse order: whole vectors are loaded, and the lanes are picked
//! from these.

use super::interleave::deinterleaved;
use super::{Cut, gathered, splat};
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// The largest lane stride that is read in whole vectors: stride n loads n vectors to fill one.
pub(crate) const MAX_STRIDE: i64 = 8;

/// Whether lanes at this stride are read in whole vectors.
pub(crate) fn is_near(stride: i64, width: i64) -> bool {
    stride == -1 && width > 1 || (2..=MAX_STRIDE.min(width / 2)).contains(&stride.abs())
}

/// The access of a Load whose lanes are a constant stride apart.
pub(super) struct Strided<'a> {
    pub buffer: NodeId,
    /// The index of the whole tile.
    pub index: &'a Affine,
    /// The index of the first lane.
    pub base: &'a Affine,
    /// Elements from one lane to the next.
    pub stride: i64,
    /// Lanes.
    pub width: i64,
}

impl Strided<'_> {
    /// The position within each group of `stride` elements that the lanes read, if the buffer consists of such groups.
    fn number_in_group(&self, graph: &Graph) -> Option<i64> {
        let length = graph.props(self.buffer).shape.first().and_then(|dim| dim.as_const())?;
        let (low, high) = self.index.bounds(graph);
        let stride = i128::from(self.stride);
        let is_group = self.stride > 1 && self.base.terms().iter().all(|term| term.1 % self.stride == 0);
        let is_inside = low >= 0 && high - high % stride + stride <= length.into();
        (is_group && is_inside).then_some(self.base.constant().rem_euclid(self.stride))
    }
}

impl Cut {
    /// Whether lanes at this stride are read in whole vectors when each lane has its own gate. Without masked loads, each of these
    /// vectors would take a branch per lane, while a gather takes one set of branches for all.
    pub(super) fn is_near_under_gates(&self, stride: i64, width: i64, dtype: DType) -> bool {
        is_near(stride, width) && (stride == -1 || self.masked || dtype.size() >= size_of::<i32>())
    }

    /// The vector of elements `stride` apart from `base` on; masked-off lanes get the alternative.
    pub(super) fn load_near(
        &mut self,
        graph: &mut Graph,
        strided: &Strided<'_>,
        gated: Option<(NodeId, NodeId)>,
        arg: &Arg,
    ) -> Result<NodeId> {
        let &Strided { buffer, base, stride, width, .. } = strided;
        if let Some(number) = strided.number_in_group(graph).filter(|_| gated.is_none()) {
            // Loads at other positions in the groups share these vectors.
            let groups = base.offset(-number);
            let mut vectors: SmallVec<[NodeId; 8]> = SmallVec::new();
            for vector in 0..stride {
                let place = self.contiguous(graph, buffer, &groups.offset(vector * width), width)?;
                vectors.push(graph.add(Op::Load, &[place], arg.clone())?);
            }
            return deinterleaved(graph, &vectors, number as usize);
        }
        let reach = stride.abs() * (width - 1);
        let first = base.offset(if stride < 0 { -reach } else { 0 });
        // The last vector ends with the last element, so that nothing beyond it is read.
        let starts = (0..=reach / width).map(|number| (number * width).min(reach + 1 - width));
        // The lane that reads an element, or for an element between two lanes, both of them.
        let lane_of = |element: i64| {
            let element = if stride < 0 { reach - element } else { element };
            let (lane, rest) = (element / stride.abs(), element % stride.abs());
            (lane, lane + i64::from(rest > 0))
        };
        let mut vectors: SmallVec<[(i64, NodeId); 4]> = SmallVec::new();
        for start in starts {
            let place = self.contiguous(graph, buffer, &first.offset(start), width)?;
            let mut operands: SmallVec<[NodeId; 3]> = SmallVec::from_iter([place]);
            if let Some((alt, gate)) = gated {
                let elements = start..start + width;
                let alt = picked(graph, alt, elements.clone().map(|element| lane_of(element).0))?;
                operands.extend([splat(graph, alt, width)?, gate_of(graph, gate, elements.map(lane_of))?]);
            }
            vectors.push((start, graph.add(Op::Load, &operands, arg.clone())?));
        }
        let lane = |number: i64| {
            let element = if stride < 0 { reach + stride * number } else { stride * number };
            let (start, vector) = vectors[(element / width) as usize];
            (vector, element - start)
        };
        let lanes: SmallVec<[(NodeId, i64); 16]> = (0..width).map(lane).collect();
        gathered(graph, &lanes)
    }
}

/// These lanes of a vector; of a scalar, the scalar.
fn picked(graph: &mut Graph, vector: NodeId, lanes: impl Iterator<Item = i64>) -> Result<NodeId> {
    if graph.props(vector).shape.is_empty() {
        return Ok(vector);
    }
    let lanes: SmallVec<[(NodeId, i64); 16]> = lanes.map(|lane| (vector, lane)).collect();
    gathered(graph, &lanes)
}

/// The gates of elements, each given by the lanes on both sides of it. Both have to be open: memory is only known to exist between
/// places that are read.
fn gate_of(graph: &mut Graph, gate: NodeId, lanes: impl Iterator<Item = (i64, i64)> + Clone) -> Result<NodeId> {
    let before = picked(graph, gate, lanes.clone().map(|(before, _)| before))?;
    let after = picked(graph, gate, lanes.map(|(_, after)| after))?;
    if before == after { Ok(before) } else { graph.alu(Op::And, &[before, after]) }
}
