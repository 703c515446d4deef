//! Loads whose lanes are a few elements apart, or in reverse: what lies in memory is read in whole vectors, and the lanes are
//! picked from these.

use super::{Cut, gathered, splat};
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Elements from one lane to the next, at most: as many vectors are read for one, and fewer than it has lanes.
pub(super) const STEP: i64 = 4;

/// May lanes so many elements apart be read like this, under as many gates?
pub(crate) fn is_near(stride: i64, width: i64, gates: i64) -> bool {
    match stride {
        -1 => width > 1,
        _ => gates == 1 && (2..=STEP.min(width / 2)).contains(&stride.abs()),
    }
}

impl Cut {
    /// The vector of elements `stride` apart from `base` on; of closed gates the alternative.
    pub(super) fn load_near(
        &mut self,
        graph: &mut Graph,
        (buffer, base): (NodeId, &Affine),
        (stride, width): (i64, i64),
        gated: Option<(NodeId, NodeId)>,
        arg: &Arg,
    ) -> Result<NodeId> {
        let reach = stride.abs() * (width - 1);
        let first = base.offset(if stride < 0 { -reach } else { 0 });
        // The last vector ends with the last element, so that nothing beyond it is read.
        let starts = (0..=reach / width).map(|number| (number * width).min(reach + 1 - width));
        let mut vectors: SmallVec<[(i64, NodeId); 4]> = SmallVec::new();
        for start in starts {
            let place = self.contiguous(graph, buffer, &first.offset(start), width)?;
            let mut operands: SmallVec<[NodeId; 3]> = SmallVec::from_iter([place]);
            if let Some((alt, gate)) = gated {
                // Several gates are those of lanes in reverse.
                let (alt, gate) = (reversed(graph, alt, width)?, reversed(graph, gate, width)?);
                operands.extend([splat(graph, alt, width)?, gate]);
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

fn reversed(graph: &mut Graph, vector: NodeId, width: i64) -> Result<NodeId> {
    if graph.props(vector).shape.is_empty() {
        return Ok(vector);
    }
    let lanes: SmallVec<[(NodeId, i64); 16]> = (0..width).rev().map(|lane| (vector, lane)).collect();
    gathered(graph, &lanes)
}
