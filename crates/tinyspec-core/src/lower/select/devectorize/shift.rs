//! Loads whose vectors overlap, like those of the taps of a window: memory is loaded once, in adjacent vectors, and the
//! others are shifted from these, or deinterleaved if windows are a few elements apart. A load that crosses a cache
//! line takes as long as two, and a gather as long as its lanes.

use super::address::Address;
use super::gate::{Lane, Open, implies};
use super::stride::MAX_STRIDE;
use super::{Cut, gathered, splat};
use crate::lower::select::tile::{Dims, Layout};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Adjacent vectors in memory, and the gates of their lanes.
struct Row {
    vectors: Vec<NodeId>,
    lanes: Vec<Lane>,
}

/// The operands of a Load: the buffer, the index, the tile, and the gate.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    pub buffer: NodeId,
    pub index: &'a Affine,
    pub layout: &'a Layout,
    /// The value for closed lanes, and the gate.
    pub gated: Option<(NodeId, NodeId)>,
    pub arg: &'a Arg,
}

/// How the vectors of a row overlap.
struct Overlap {
    /// Elements from one lane to the next.
    stride: i64,
    /// The axis of the taps, their number, and the distance between them in elements.
    taps: Option<usize>,
    size: i64,
    step: i64,
    /// The first element of the first vector, and the number of vectors; an element is 0 at the first lane of tap 0.
    first: i64,
    count: i64,
}

impl Overlap {
    /// The coordinates in a tile of a lane and a tap.
    fn at(&self, at: &[i64], lane: usize, number: i64, tap: i64) -> Dims {
        let mut at: Dims = at.into();
        at[lane] = number;
        self.taps.into_iter().for_each(|taps| at[taps] = tap);
        at
    }

    /// The element of a row that a lane reads for a tap.
    fn place(&self, lane: i64, tap: i64) -> i64 {
        self.stride * lane + self.step * tap - self.first
    }
}

impl Cut {
    /// The parts of such a load; `None` for any other.
    pub(super) fn load_overlapping(&mut self, graph: &mut Graph, read: Read<'_>) -> Result<Option<Vec<NodeId>>> {
        let Read { index, layout, gated, .. } = read;
        let Some(lane) = layout.lane.filter(|_| self.masked) else { return Ok(None) };
        let is_constant = gated.is_none_or(|(alt, _)| graph.as_const(alt).is_some());
        let Some(overlap) = self.overlap(index, layout, lane).filter(|_| is_constant) else { return Ok(None) };
        // Without gates and taps, fewer vectors suffice.
        if overlap.taps.is_none() && gated.is_none() {
            return Ok(None);
        }
        let width = layout.width;
        let mut rows: FxHashMap<Dims, Row> = FxHashMap::default();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let start = overlap.at(&at, lane, 0, 0);
            if !rows.contains_key(&start) {
                let Some(row) = self.row(graph, read, &start, &overlap)? else {
                    return Ok(None);
                };
                rows.insert(start.clone(), row);
            }
            let Some(row) = rows.get(&start) else { return Ok(None) };
            let tap = overlap.taps.map_or(0, |taps| at[taps]);
            let from = overlap.place(at[lane], tap);
            let places: SmallVec<[i64; 16]> = (0..width).map(|number| from + overlap.stride * number).collect();
            let lanes: SmallVec<[(NodeId, i64); 16]> =
                places.iter().map(|place| (row.vectors[(place / width) as usize], place % width)).collect();
            let is_whole = overlap.stride == 1 && from % width == 0;
            let mut part = if is_whole { lanes[0].0 } else { gathered(graph, &lanes)? };
            if let Some((alt, gate)) = gated {
                // The lanes that this vector leaves out but its neighbours load.
                let mut left = SmallVec::<[Lane; 16]>::new();
                for (number, &place) in (0..).zip(&places) {
                    let Some(own) = self.lane_of(graph, gate, &overlap.at(&at, lane, at[lane] + number, tap)) else {
                        return Ok(None);
                    };
                    left.push(own.beyond(&row.lanes[place as usize]));
                }
                if let Some(gate) = self.gate_of_lanes(graph, &left)? {
                    let (gate, alt) = (splat(graph, gate, width)?, splat(graph, alt, width)?);
                    part = splat(graph, part, width)?;
                    part = graph.alu(Op::Where, &[gate, part, alt])?;
                }
            }
            parts.push(part);
        }
        Ok(Some(parts))
    }

    /// The overlap of a load, if at most one axis other than the lanes has a stride shorter than a vector, and a row
    /// has fewer vectors than loads: at most half as many, unless the loads are gathers.
    fn overlap(&self, sum: &Affine, layout: &Layout, lane: usize) -> Option<Overlap> {
        let step = |axis: usize| self.step(sum, axis);
        let is_regular = |&(atom, _): &(NodeId, i64)| self.axes.contains_key(&atom) || !self.has_parts(atom);
        let (stride, width) = (step(lane), layout.width);
        if !(1..=MAX_STRIDE).contains(&stride) || 2 * stride > width || !sum.terms().iter().all(is_regular) {
            return None;
        }
        let is_near = |&axis: &usize| axis != lane && layout.dims[axis] > 1 && (1..width).contains(&step(axis).abs());
        let near: SmallVec<[usize; 2]> = (0..layout.dims.len()).filter(is_near).collect();
        let (taps, step, size) = match near[..] {
            [taps] => (Some(taps), step(taps), layout.dims[taps]),
            [] if stride > 1 => (None, 0, 1),
            _ => return None,
        };
        let (reach, last) = (step * (size - 1), stride * (layout.dims[lane] - 1));
        if reach.abs() > width * stride {
            return None;
        }
        let (low, high) = (reach.min(0), last + 1 + reach.max(0));
        if stride > 1 {
            let count = |first: i64| (high - first + width - 1) / width;
            let aligned = low - sum.constant().wrapping_add(low).rem_euclid(width);
            let first = if count(aligned) == count(low) { aligned } else { low };
            return Some(Overlap { stride, taps, size, step, first, count: count(first) });
        }
        // The aligned tap is not shifted; if there is none, the middle one.
        let aligned = |tap: &i64| {
            let zeros = sum.constant().wrapping_add(step * tap).trailing_zeros().min(width.trailing_zeros());
            (zeros, -(2 * tap - size + 1).abs())
        };
        let still = step * (0..size).max_by_key(aligned)?;
        let before = (still - low + width - 1) / width;
        let after = (high - still + width - 1) / width;
        let overlap = Overlap { stride, taps, size, step, first: still - before * width, count: before + after };
        (layout.dims[lane] / width * size >= 2 * (overlap.count - 1)).then_some(overlap)
    }

    /// The vectors of the row that starts at `start`; `None` if its gates differ in more than constants.
    fn row(&mut self, graph: &mut Graph, read: Read<'_>, start: &[i64], overlap: &Overlap) -> Result<Option<Row>> {
        let Read { buffer, index, layout, gated, arg } = read;
        let Some(lane) = layout.lane else { return Ok(None) };
        let width = layout.width;
        let mut lanes = vec![Lane::Closed; (overlap.count * width) as usize];
        for tap in 0..overlap.size {
            for place in 0..layout.dims[lane] {
                let own = match gated {
                    Some((_, gate)) => self.lane_of(graph, gate, &overlap.at(start, lane, place, tap)),
                    None => Some(Lane::Open(Open::new())),
                };
                let Some(own) = own else { return Ok(None) };
                let known = &mut lanes[overlap.place(place, tap) as usize];
                match () {
                    () if implies(&own, known) => {}
                    () if implies(known, &own) => *known = own,
                    () => return Ok(None),
                }
            }
        }
        let Address { base, .. } = self.address(graph, index, layout, start)?;
        let nothing = match gated {
            Some((alt, _)) => alt,
            None => crate::lower::fold::identity(graph, Op::Add, graph.dtype(buffer)),
        };
        let mut vectors = Vec::with_capacity(overlap.count as usize);
        for (number, lanes) in (0..).zip(lanes.chunks(width as usize)) {
            let alt = splat(graph, nothing, width)?;
            if lanes.iter().all(|lane| *lane == Lane::Closed) {
                vectors.push(alt);
                continue;
            }
            let gate = self.gate_of_lanes(graph, lanes)?;
            let base = base.offset(overlap.first + number * width);
            let place = self.contiguous(graph, buffer, &base, width)?;
            vectors.push(match gate {
                Some(gate) => graph.add(Op::Load, &[place, alt, gate], arg.clone())?,
                None => graph.add(Op::Load, &[place], arg.clone())?,
            });
        }
        Ok(Some(Row { vectors, lanes }))
    }
}
