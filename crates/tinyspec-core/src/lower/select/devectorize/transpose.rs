//! Accesses that are contiguous along an axis of the tile that is not vectorised: square blocks are loaded and stored
//! in memory order, and transposed in registers.

use super::access::{store, undecided};
use super::address::Address;
use super::gate::Lane;
use super::shift::Read;
use super::{Cut, extract, gathered, malformed, splat};
use crate::lower::select::tile::{Dims, Layout};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

impl Cut {
    /// The parts of such a load; `None` for any other, or if its gates contain anything but comparisons of sums.
    pub(super) fn load_turned(&mut self, graph: &mut Graph, read: Read<'_>) -> Result<Option<Vec<NodeId>>> {
        let Read { buffer, index: sum, layout, gated, arg } = read;
        if gated.is_some_and(|(alt, _)| graph.as_const(alt).is_none()) {
            return Ok(None);
        }
        let width = layout.width;
        let along = self.across(sum, layout).and_then(|run| run.axes.first().copied());
        let Some((along, _)) = along.filter(|&(_, size)| size % width == 0) else { return Ok(None) };
        self.turned(graph, layout, along, |cut, graph, start| {
            let Address { base, .. } = cut.address(graph, sum, layout, start)?;
            let mut gate = None;
            if let Some((_, own)) = gated {
                let mut at = start.clone();
                let open = (0..width).map(|place| {
                    at[along] = start[along] + place;
                    cut.lane_of(graph, own, &at)
                });
                let Some(open) = open.collect::<Option<Vec<Lane>>>() else { return Ok(None) };
                gate = cut.gate_of_lanes(graph, &open)?;
            }
            let place = cut.contiguous(graph, buffer, &base, width)?;
            let mut operands: SmallVec<[NodeId; 3]> = SmallVec::from_iter([place]);
            if let (Some((alt, _)), Some(gate)) = (gated, gate) {
                operands.extend([splat(graph, alt, width)?, gate]);
            }
            graph.add(Op::Load, &operands, arg.clone()).map(Some)
        })
    }

    /// The parts of a tile whose lanes are rows of vectors along another axis: `row` loads the vector that starts at an element,
    /// and `None` is passed on.
    pub(super) fn turned(
        &mut self,
        graph: &mut Graph,
        layout: &Layout,
        along: usize,
        mut row: impl FnMut(&mut Cut, &mut Graph, &Dims) -> Result<Option<NodeId>>,
    ) -> Result<Option<Vec<NodeId>>> {
        let (Some(lane), width) = (layout.lane, layout.width) else { return Ok(None) };
        // Blocks by their first element.
        let mut blocks: FxHashMap<Dims, Vec<Option<NodeId>>> = FxHashMap::default();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let mut start = at.clone();
            start[along] -= start[along] % width;
            if !blocks.contains_key(&start) {
                let mut rows = Vec::with_capacity(width as usize);
                for number in 0..width {
                    let mut at = start.clone();
                    at[lane] += number;
                    let Some(row) = row(self, graph, &at)? else { return Ok(None) };
                    rows.push(Some(row));
                }
                blocks.insert(start.clone(), turn(graph, rows)?);
            }
            let row = (at[along] % width) as usize;
            parts.extend(blocks.get(&start).and_then(|block| block.get(row).copied().flatten()));
        }
        Ok((parts.len() == layout.count()).then_some(parts))
    }

    /// The run of elements that are adjacent in memory, if the lanes of an access are a cache line or more apart.
    pub(super) fn across(&self, sum: &Affine, layout: &Layout) -> Option<Run> {
        let step = |axis: usize| self.step(sum, axis);
        // Other parts of the index may vary irregularly within the tile.
        let is_regular = |&(atom, _): &(NodeId, i64)| self.axes.contains_key(&atom) || self.is_uniform(atom);
        layout.lane.filter(|&lane| !matches!(step(lane), 0 | 1) && sum.terms().iter().all(is_regular))?;
        let mut run = Run { axes: SmallVec::new(), length: 1 };
        let next = |run: &Run| {
            let mut others = (0..layout.dims.len()).filter(|&axis| Some(axis) != layout.lane);
            others.find(|&axis| layout.dims[axis] > 1 && step(axis) == run.length)
        };
        while let Some(axis) = next(&run) {
            run.axes.push((axis, layout.dims[axis]));
            run.length *= layout.dims[axis];
        }
        (run.length > 1).then_some(run)
    }

    /// Stores of such a tile, each with its gate; `None` if lanes are stored one by one.
    pub(super) fn store_turned(
        &mut self,
        graph: &mut Graph,
        (buffer, sum): (NodeId, &Affine),
        layout: &Layout,
        (value, gate): (NodeId, Option<NodeId>),
        arg: &Arg,
    ) -> Result<Option<Vec<NodeId>>> {
        // With fewer rows than this, storing lanes is as fast.
        const ROWS: i64 = 4;
        let run = self.across(sum, layout).filter(|run| run.length >= ROWS);
        let (Some(run), Some(lane), width) = (run, layout.lane, layout.width) else { return Ok(None) };
        let mut effects = Vec::new();
        for start in layout.starts().into_iter().filter(|start| run.starts_at(start)) {
            for first in (0..run.length).step_by(width as usize) {
                let places = first..run.length.min(first + width);
                let mut rows = vec![None; width as usize];
                for (row, place) in rows.iter_mut().zip(places.clone()) {
                    let part = self.part(graph, value, layout, &run.at(&start, place))?;
                    *row = Some(splat(graph, part, width)?);
                }
                for (place, row) in (0..width).zip(turn(graph, rows)?) {
                    let (Some(row), mut start) = (row, start.clone()) else { continue };
                    start[lane] += place;
                    let count = places.end - places.start;
                    if self.masked && gate.is_none() && count.count_ones() > 1 {
                        let first = first_lanes(graph, count, width)?;
                        let at = run.at(&start, places.start);
                        let Address { base, .. } = self.address(graph, sum, layout, &at)?;
                        let target = self.contiguous(graph, buffer, &base, width)?;
                        effects.push(store(graph, Op::Store, target, row, Some(first), arg.clone())?);
                        continue;
                    }
                    for (places, piece) in pieces(graph, row, places.clone())? {
                        let gate = gate.map(|gate| self.gate_of(graph, gate, &run, &start, &places)).transpose()?;
                        let Some(gate) = undecided(graph, gate) else { continue };
                        let Address { base, .. } = self.address(graph, sum, layout, &run.at(&start, places.start))?;
                        let target = self.contiguous(graph, buffer, &base, places.end - places.start)?;
                        effects.push(store(graph, Op::Store, target, piece, gate, arg.clone())?);
                    }
                }
            }
        }
        Ok(Some(effects))
    }

    /// The vector that holds an element of a tile, and the lane in it.
    pub(super) fn element(&self, graph: &Graph, node: NodeId, at: &[i64]) -> Result<(NodeId, i64)> {
        let value = self.parts(graph, node)?;
        let (part, lane) = value.layout.find(at).ok_or_else(|| malformed(graph, node))?;
        Ok((*value.parts.get(part).ok_or_else(|| malformed(graph, node))?, lane))
    }

    /// The gate of some elements of a run.
    fn gate_of(
        &self,
        graph: &mut Graph,
        gate: NodeId,
        run: &Run,
        start: &[i64],
        places: &Range<i64>,
    ) -> Result<NodeId> {
        let lanes = places.clone().map(|place| self.element(graph, gate, &run.at(start, place)));
        let lanes: SmallVec<[(NodeId, i64); 16]> = lanes.collect::<Result<_>>()?;
        gathered(graph, &lanes)
    }
}

/// Elements of a tile that are adjacent in memory.
pub(super) struct Run {
    /// The axes and their sizes, innermost first.
    axes: SmallVec<[(usize, i64); 2]>,
    pub length: i64,
}

impl Run {
    /// Whether a run starts here.
    pub fn starts_at(&self, at: &[i64]) -> bool {
        self.axes.iter().all(|&(axis, _)| at[axis] == 0)
    }

    /// The position in the run of the element at these coordinates.
    pub fn place(&self, at: &[i64]) -> i64 {
        self.axes.iter().rev().fold(0, |place, &(axis, size)| place * size + at[axis])
    }

    /// The coordinates at which the run of this element begins.
    pub fn start(&self, at: &[i64]) -> Dims {
        let mut start: Dims = at.into();
        self.axes.iter().for_each(|&(axis, _)| start[axis] = 0);
        start
    }

    /// The coordinates of a position in the run that begins at `start`.
    pub fn at(&self, start: &[i64], place: i64) -> Dims {
        let (mut at, mut rest): (Dims, i64) = (start.into(), place);
        for &(axis, size) in &self.axes {
            at[axis] += rest % size;
            rest /= size;
        }
        at
    }
}

/// A gate of the first lanes of a vector.
fn first_lanes(graph: &mut Graph, count: i64, width: i64) -> Result<NodeId> {
    let mut number = |number: i64| graph.constant(Const::int(DType::I32, number.into()));
    let (lanes, count): (SmallVec<[NodeId; 16]>, NodeId) = ((0..width).map(&mut number).collect(), number(count));
    let lanes = graph.add(Op::Stack, &lanes, Arg::None)?;
    let count = splat(graph, count, width)?;
    graph.alu(Op::CmpLt, &[lanes, count])
}

/// Vectors, each for some positions of a run.
type Pieces = SmallVec<[(Range<i64>, NodeId); 4]>;

/// The first lanes of a vector, for these positions, divided into machine vectors.
fn pieces(graph: &mut Graph, vector: NodeId, places: Range<i64>) -> Result<Pieces> {
    let mut pieces = SmallVec::new();
    let mut first = places.start;
    while first < places.end {
        let count = 1 << (places.end - first).ilog2();
        let lanes = (first..first + count).map(|place| (vector, place - places.start));
        let lanes: SmallVec<[(NodeId, i64); 16]> = lanes.collect();
        let is_whole = lanes.len() as i64 == super::lanes(graph, vector);
        let piece = if is_whole { vector } else { gathered(graph, &lanes)? };
        pieces.push((first..first + count, piece));
        first += count;
    }
    Ok(pieces)
}

/// The columns of a square block, given its rows. Lanes of missing rows are never used.
fn turn(graph: &mut Graph, rows: Vec<Option<NodeId>>) -> Result<Vec<Option<NodeId>>> {
    match rows.iter().copied().collect::<Option<Vec<NodeId>>>() {
        Some(rows) => Ok(turn_whole(graph, rows)?.into_iter().map(Some).collect()),
        None => turn_some(graph, rows),
    }
}

/// Bytes of the pieces within which vector instructions shuffle lanes.
const PIECE: usize = 16;

/// Transposes in `log2(n)` rounds of pairs of rows, by instructions that every processor with such vectors has: within
/// pieces of 16 bytes, lanes and then pairs of lanes are interleaved; then even-numbered and odd-numbered pieces are
/// gathered.
fn turn_whole(graph: &mut Graph, mut rows: Vec<NodeId>) -> Result<Vec<NodeId>> {
    let count = rows.len();
    let piece = rows.first().map_or(1, |&row| PIECE / graph.dtype(row).size().clamp(1, PIECE)).clamp(1, count.max(1));
    let mut distance = 1;
    while distance < count {
        for upper in (0..count).filter(|row| row & distance == 0) {
            let pair = [rows[upper], rows[upper + distance]];
            for half in 0..2 {
                let lane = |place: usize| match distance < piece {
                    // Interleaved: the lower or the upper half of each piece.
                    true => {
                        let (start, within) = (place - place % piece, place % piece);
                        let run = within / distance;
                        (run % 2, start + half * piece / 2 + run / 2 * distance + within % distance)
                    }
                    false => {
                        let (number, within) = (place / piece, place % piece);
                        let pieces = count / piece;
                        (number * 2 / pieces, (number * 2 % pieces + half) * piece + within)
                    }
                };
                let mut lanes: SmallVec<[NodeId; 16]> = SmallVec::new();
                for place in 0..count {
                    let (of, lane) = lane(place);
                    lanes.push(extract(graph, pair[of], lane as i64)?);
                }
                rows[upper + half * distance] = graph.add(Op::Stack, &lanes, Arg::None)?;
            }
        }
        distance *= 2;
    }
    // The column that each row has become: within a piece, they are in bit-reversed order.
    let bits = piece.ilog2();
    let column = |row: usize| {
        let within = if bits == 0 { 0 } else { (row % piece).reverse_bits() >> (usize::BITS - bits) };
        row - row % piece + within
    };
    // Bit reversal is its own inverse.
    Ok((0..count).map(|row| rows[column(row)]).collect())
}

/// Pairs of rows exchange lanes, then pairs of lanes, up to halves. If one row of a pair is missing, the other stays.
fn turn_some(graph: &mut Graph, mut rows: Vec<Option<NodeId>>) -> Result<Vec<Option<NodeId>>> {
    let mut distance = 1;
    while distance < rows.len() {
        for upper in (0..rows.len()).filter(|row| row & distance == 0) {
            let (low, high) = (rows[upper], rows[upper + distance]);
            let Some(either) = low.or(high) else { continue };
            let (a, b) = (low.unwrap_or(either), high.unwrap_or(either));
            for (row, shift, whole) in [(upper, 0, high.is_none()), (upper + distance, distance, low.is_none())] {
                if whole {
                    rows[row] = Some(either);
                    continue;
                }
                let lanes = (0..rows.len()).map(|lane| match lane & distance == 0 {
                    true => extract(graph, a, (lane + shift) as i64),
                    false => extract(graph, b, (lane + shift - distance) as i64),
                });
                let lanes: SmallVec<[NodeId; 16]> = lanes.collect::<Result<_>>()?;
                rows[row] = Some(graph.add(Op::Stack, &lanes, Arg::None)?);
            }
        }
        distance *= 2;
    }
    Ok(rows)
}
