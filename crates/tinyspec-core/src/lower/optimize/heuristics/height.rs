//! Heights of register tiles.

use super::Planner;
use smallvec::SmallVec;
use std::ops::RangeInclusive;

/// Ratio of a tile's products to those that hide the latency of an addition, below which any late operand stalls all of
/// them; and the relative speed of such a tile (measured).
const SLACK: f64 = 1.5;
const WITHOUT_SLACK: f64 = 0.85;
/// Slowdown of a tile that tests for the end of the rows in each step (measured).
const ASKING: i64 = 2;
/// The most adjacent image lines in a tile (measured).
const LINES: i64 = 2;

/// Heights of a tile along some axes, the innermost one first.
pub(super) type Heights = SmallVec<[(usize, i64); 2]>;

impl Planner<'_> {
    /// The best height for rows that are copied. The copy is padded, so the loop does not test for the end of the rows. It
    /// packs them in vectors that divide the height; each element is then multiplied by all columns.
    pub(super) fn copied_height(&self, origin: usize, heights: RangeInclusive<i64>, columns: i64) -> i64 {
        let lanes = self.lanes();
        let copy = |height: i64| (2 * lanes) as f64 / ((height & -height).min(lanes) * columns) as f64;
        best(heights, |height| self.share_filled(origin, height) * (1.0 - 0.25 / height as f64) / (1.0 + copy(height)))
    }

    /// The best height for rows that are read in place: only the last tile tests for their end.
    pub(super) fn height_in_place(&self, origin: usize, heights: RangeInclusive<i64>, vectors: i64) -> i64 {
        let trips = self.trips(origin);
        best(heights, |height| {
            let asking = if trips % height == 0 { 0 } else { (ASKING - 1) * height };
            let asking = trips as f64 / (trips + asking) as f64;
            self.share_filled(origin, height) * asking * self.pace((height * vectors) as f64)
        })
    }

    /// The best heights for rows of windows: one that divides them, unless it gives too few sums. Their panels exceed the
    /// first-level cache, so a line of a panel arrives after four rows have been multiplied by the one before. Two image
    /// lines may leave a smaller remainder than one.
    pub(super) fn window_heights(
        &self,
        rows: usize,
        axes: &[usize],
        heights: Heights,
        room: i64,
        vectors: i64,
    ) -> Heights {
        let &[(origin, least)] = &heights[..] else { return heights };
        if self.pace((least * vectors) as f64) >= 1.0 {
            return heights;
        }
        let score = |heights: &Heights| {
            let filled: f64 = heights.iter().map(|&(origin, height)| self.share_filled(origin, height)).product();
            let height: i64 = heights.iter().map(|&(_, height)| height).product();
            filled * self.pace((height * vectors) as f64)
        };
        let one = (least..=room.min(self.trips(origin))).map(|height| Heights::from_slice(&[(origin, height)]));
        let lines = axes.get(1).filter(|&&axis| self.is_windowed(rows, axis));
        let two = lines.into_iter().flat_map(|&lines| {
            (2..=room / LINES).map(move |height| Heights::from_slice(&[(origin, height), (lines, LINES)]))
        });
        one.chain(two).fold(heights, |best, heights| if score(&heights) > score(&best) { heights } else { best })
    }

    /// The relative speed of a tile of this many products, given the latency of their sums.
    fn pace(&self, products: f64) -> f64 {
        if products >= SLACK * self.target.accumulators as f64 { 1.0 } else { WITHOUT_SLACK }
    }

    /// Heights along the first of some axes, for a tile of at most `room`.
    pub(super) fn fill(&self, axes: &[usize], mut room: i64) -> Heights {
        let mut heights = Heights::new();
        for &origin in axes {
            let height = tile_height(self.trips(origin), room.max(1));
            // If no height in the remaining room divides the taps, one may divide the channels.
            if height == 1 && !heights.is_empty() {
                continue;
            }
            heights.push((origin, height));
            room /= height;
            if height < self.trips(origin) || room < 2 {
                break;
            }
        }
        heights
    }

    /// Which share of an axis in tiles is not padding.
    pub(super) fn share_filled(&self, origin: usize, tile: i64) -> f64 {
        let trips = self.trips(origin);
        trips as f64 / ((trips + tile - 1) / tile * tile) as f64
    }
}

/// The first of the heights that has the highest score.
fn best(heights: RangeInclusive<i64>, score: impl Fn(i64) -> f64) -> i64 {
    let first = *heights.start();
    heights.fold(first, |best, height| if score(height) > score(best) { height } else { best })
}

/// The tallest tile that divides the rows, unless that is much lower than the registers allow.
fn tile_height(rows: i64, greatest: i64) -> i64 {
    let divisor = (1..=greatest).rev().find(|height| rows % height == 0).unwrap_or(1);
    if divisor * 2 >= greatest.min(rows).min(8) {
        return divisor;
    }
    let height = greatest.min(8).min(rows);
    // Of the heights that need as many tiles, the lowest.
    let tiles = (rows + height - 1) / height;
    (rows + tiles - 1) / tiles
}
