//! Sizes of strips, blocks and tiles.

use super::form::Form;
use crate::lower::live;
use crate::lower::optimize::partition::between;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{DType, Graph, NodeId, Result};

/// Sizes of strips of lanes and of blocks of terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Blocking {
    /// Vectors of a strip, at most.
    pub vectors: i64,
    /// Rows of a register tile, at most.
    pub rows: i64,
    /// Tiles of a block, at most.
    pub tiles: i64,
}

impl Default for Blocking {
    fn default() -> Blocking {
        Blocking { vectors: 2, rows: 8, tiles: 16 }
    }
}

/// The lengths of a kernel's axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lengths {
    /// Elements of a vector, and registers for them.
    pub lanes: i64,
    pub registers: i64,
    /// Of the axis that vectors lie along.
    pub lane: i64,
    /// How often its strips are computed.
    pub batch: i64,
    /// Terms of a sum: of the innermost Range, and of those around it.
    pub terms: i64,
    pub around: i64,
    /// The average number of terms of the innermost Range that are masked off.
    pub hidden: i64,
    /// Steps of each product.
    pub inner: SmallVec<[i64; 2]>,
    /// Sums beside each other, where there are weights.
    pub rows: i64,
}

impl Lengths {
    pub(super) fn of(graph: &Graph, form: &Form, hidden: f64, target: &Target) -> Lengths {
        let trips = |range: NodeId| live::trips(graph, range).unwrap_or(1);
        let all = |ranges: &[NodeId]| ranges.iter().map(|&range| trips(range)).product();
        let (last, others) = form.streamed.split_last().map_or((form.lane, &[][..]), |(&last, others)| (last, others));
        Lengths {
            lanes: target.lanes(DType::F32) as i64,
            registers: target.vector_registers as i64,
            lane: trips(form.lane),
            batch: all(&form.batch),
            terms: trips(last),
            hidden: (hidden * trips(last) as f64) as i64,
            around: all(others),
            inner: form.products.iter().map(|product| all(&product.inner)).collect(),
            rows: form.row.map_or(1, trips),
        }
    }

    /// The blocking, reduced to fit the axes and the registers.
    pub fn fitted(&self, Blocking { vectors, rows, tiles }: Blocking) -> Blocking {
        let vectors = vectors.min((self.lane + self.lanes - 1) / self.lanes).max(1);
        let rows = ((self.registers - 1 - vectors) / vectors).clamp(1, rows.max(1));
        Blocking { vectors, rows, tiles: tiles.min(self.terms / height(self.terms, rows)).max(1) }
    }
}

/// Tiles of one height, in blocks.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub start: i64,
    pub blocks: i64,
    pub tiles: i64,
    pub height: i64,
}

impl Piece {
    pub fn rows(&self) -> i64 {
        self.tiles * self.height
    }

    /// The first block that reaches into the terms from `low` to `high`, and the one behind the last.
    pub fn blocks_of(&self, graph: &mut Graph, low: &Affine, high: &Affine) -> Result<(Affine, Affine)> {
        let (none, all) = (Affine::number(0), Affine::number(self.blocks));
        let first = low.offset(-self.start).quotient(graph, self.rows())?;
        let first = between(graph, &first, (&none, &all))?;
        let end = high.offset(self.rows() - 1 - self.start).quotient(graph, self.rows())?;
        let end = between(graph, &end, (&first, &all))?;
        Ok((first, end))
    }
}

/// The tile height: the greatest above half of `most` that leaves no remainder, else `most`.
fn height(trips: i64, most: i64) -> i64 {
    (most / 2 + 1..=most).rev().find(|height| trips % height == 0).unwrap_or(most)
}

/// The number of tiles in a block: fewer than `most` if they then divide `all`, because a remainder is separate code.
fn even(all: i64, most: i64) -> i64 {
    (most / 2..=most).rev().find(|&tiles| tiles > 0 && all % tiles == 0).unwrap_or(most)
}

/// Divides an axis into full blocks, then full tiles, then a remainder.
pub(super) fn pieces(trips: i64, rows: i64, tiles: i64) -> SmallVec<[Piece; 3]> {
    let height = height(trips, rows);
    let tiles = even(trips / height, tiles.min(trips / height).max(1));
    let mut all = SmallVec::new();
    let mut start = 0;
    for (tiles, height) in [(tiles, height), ((trips % (tiles * height)) / height, height), (1, trips % height)] {
        let blocks = if tiles * height > 0 { (trips - start) / (tiles * height) } else { 0 };
        if blocks > 0 {
            all.push(Piece { start, blocks, tiles, height });
            start += blocks * tiles * height;
        }
    }
    all
}
