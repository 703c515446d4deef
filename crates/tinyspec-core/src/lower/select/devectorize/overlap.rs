//! Loads whose vectors overlap, as those of the taps of a window do: memory is read once, in vectors beside each other,
//! and the others are their lanes, shifted. A load that crosses a line of the cache takes as long as two.

use super::address::Address;
use super::gate::{Lane, Open, mask};
use super::{Cut, gathered, splat};
use crate::lower::select::tile::{Dims, Layout};
use crate::lower::sum::Sum;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Vectors that lie beside each other in memory, and the gates of their lanes.
struct Row {
    vectors: Vec<NodeId>,
    lanes: Vec<Lane>,
}

/// What a Load reads: the buffer and the index in it, by which tile, and where lanes are left out by what gate.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    pub buffer: NodeId,
    pub index: &'a Sum,
    pub layout: &'a Layout,
    /// What stands for a lane that is left out, and the gate.
    pub gated: Option<(NodeId, NodeId)>,
    pub arg: &'a Arg,
}

/// How the vectors of a row overlap.
struct Overlap {
    /// The axis of the taps, and elements from one to the next.
    taps: usize,
    step: i64,
    /// The first element of the first vector, and the number of vectors; an element is 0 at the first lane of tap 0.
    first: i64,
    count: i64,
}

impl Cut {
    /// The parts of such a load; `None` of any other.
    pub(super) fn load_overlapping(&mut self, graph: &mut Graph, read: Read<'_>) -> Result<Option<Vec<NodeId>>> {
        let Read { index, layout, gated, .. } = read;
        let Some(lane) = layout.lane.filter(|_| self.masked) else { return Ok(None) };
        let is_constant = gated.is_none_or(|(alt, _)| graph.as_const(alt).is_some());
        let Some(overlap) = self.overlap(index, layout, lane).filter(|_| is_constant) else { return Ok(None) };
        let width = layout.width;
        let mut rows: FxHashMap<Dims, Row> = FxHashMap::default();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let mut start = at.clone();
            (start[lane], start[overlap.taps]) = (0, 0);
            if !rows.contains_key(&start) {
                let Some(row) = self.row(graph, read, &start, &overlap)? else {
                    return Ok(None);
                };
                rows.insert(start.clone(), row);
            }
            let Some(row) = rows.get(&start) else { return Ok(None) };
            let from = at[lane] + overlap.step * at[overlap.taps] - overlap.first;
            let places = from..from + width;
            let lanes: SmallVec<[(NodeId, i64); 16]> =
                places.clone().map(|place| (row.vectors[(place / width) as usize], place % width)).collect();
            let mut part = if from % width == 0 { lanes[0].0 } else { gathered(graph, &lanes)? };
            if let Some((alt, gate)) = gated {
                // What this vector leaves out, though its neighbours read it.
                let mut open = SmallVec::<[bool; 16]>::new();
                for (number, place) in (0..width).zip(places) {
                    let mut at = at.clone();
                    at[lane] += number;
                    let Some(own) = self.lane_of(graph, gate, &at) else { return Ok(None) };
                    open.push(own != Lane::Closed || row.lanes[place as usize] == Lane::Closed);
                }
                if open.contains(&false) {
                    let (mask, alt) = (mask(graph, &open)?, splat(graph, alt, width)?);
                    part = splat(graph, part, width)?;
                    part = graph.alu(Op::Where, &[mask, part, alt])?;
                }
            }
            parts.push(part);
        }
        Ok(Some(parts))
    }

    /// Of the axes beside the lanes just one steps over fewer elements than a vector has, and so the vectors of a row
    /// are at most half as many as its loads.
    fn overlap(&self, sum: &Sum, layout: &Layout, lane: usize) -> Option<Overlap> {
        let step = |axis: usize| -> i64 {
            let atoms = sum.terms.iter().filter(|(atom, _)| self.axes.get(atom) == Some(&axis));
            atoms.map(|&(_, coefficient)| coefficient).sum()
        };
        let is_regular = |&(atom, _): &(NodeId, i64)| self.axes.contains_key(&atom) || !self.has_parts(atom);
        if step(lane) != 1 || !sum.terms.iter().all(is_regular) {
            return None;
        }
        let width = layout.width;
        let is_near = |&axis: &usize| axis != lane && layout.dims[axis] > 1 && (1..width).contains(&step(axis).abs());
        let near: SmallVec<[usize; 2]> = (0..layout.dims.len()).filter(is_near).collect();
        let [taps] = near[..] else { return None };
        let (step, size) = (step(taps), layout.dims[taps]);
        let reach = step * (size - 1);
        if reach.abs() > width {
            return None;
        }
        let (low, high) = (reach.min(0), layout.dims[lane] + reach.max(0));
        // The tap that lies best in memory is not shifted; else one in the middle.
        let aligned = |tap: &i64| {
            let zeros = sum.constant.wrapping_add(step * tap).trailing_zeros().min(width.trailing_zeros());
            (zeros, -(2 * tap - size + 1).abs())
        };
        let still = step * (0..size).max_by_key(aligned)?;
        let before = (still - low + width - 1) / width;
        let after = (high - still + width - 1) / width;
        let overlap = Overlap { taps, step, first: still - before * width, count: before + after };
        (layout.dims[lane] / width * size >= 2 * (overlap.count - 1)).then_some(overlap)
    }

    /// The vectors of the row that starts at `start`; `None` where its gates differ in more than constants.
    fn row(&mut self, graph: &mut Graph, read: Read<'_>, start: &[i64], overlap: &Overlap) -> Result<Option<Row>> {
        let Read { buffer, index, layout, gated, arg } = read;
        let Some(lane) = layout.lane else { return Ok(None) };
        let (width, size) = (layout.width, layout.dims[overlap.taps]);
        let mut lanes = vec![Lane::Closed; (overlap.count * width) as usize];
        for tap in 0..size {
            for place in 0..layout.dims[lane] {
                let mut at: Dims = start.into();
                (at[lane], at[overlap.taps]) = (place, tap);
                let own = match gated {
                    Some((_, gate)) => self.lane_of(graph, gate, &at),
                    None => Some(Lane::Open(Open::new())),
                };
                let Some(own) = own else { return Ok(None) };
                let known = &mut lanes[(place + overlap.step * tap - overlap.first) as usize];
                match (&*known, own) {
                    (Lane::Closed, own) => *known = own,
                    (known, own) if own != Lane::Closed && own != *known => return Ok(None),
                    _ => {}
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
            let open: SmallVec<[bool; 16]> = lanes.iter().map(|lane| *lane != Lane::Closed).collect();
            let mut conditions = lanes.iter().filter(|lane| **lane != Lane::Closed);
            let alt = splat(graph, nothing, width)?;
            let Some(condition) = conditions.next() else {
                vectors.push(alt);
                continue;
            };
            if conditions.any(|other| other != condition) {
                return Ok(None);
            }
            let mut gate = self.condition(graph, condition)?;
            if open.contains(&false) {
                let mask = mask(graph, &open)?;
                gate = Some(match gate {
                    Some(gate) => {
                        let gate = splat(graph, gate, width)?;
                        graph.alu(Op::And, &[gate, mask])?
                    }
                    None => mask,
                });
            }
            let base = base.plus(&Sum::constant(overlap.first + number * width));
            let place = self.contiguous(graph, buffer, &base, width)?;
            vectors.push(match gate {
                Some(gate) => graph.add(Op::Load, &[place, alt, gate], arg.clone())?,
                None => graph.add(Op::Load, &[place], arg.clone())?,
            });
        }
        Ok(Some(Row { vectors, lanes }))
    }
}
