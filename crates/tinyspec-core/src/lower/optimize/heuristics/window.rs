//! Reductions over a few taps for every element: depthwise convolutions, pools, blurs, and the gradients of strided windows.
//!
//! Some of the taps are in the register tile, so elements that neighbours share are loaded once, and the gates of taps that a
//! stride never meets are constants. The cost model chooses among the tiles that fit the registers.

use super::super::axis::Axis;
use super::super::kernel::Reduction;
use super::Planner;
use crate::lower::optimize::transforms::{Padto, Split};
use crate::lower::select::devectorize::stride::MAX_STRIDE;
use smallvec::SmallVec;
use tinyspec_ir::{AxisType, Op};

/// Taps of one element in a tile, at most.
const TAPS: i64 = 32;
/// The most products of a tile of two Reduces, or of positions that meet taps in turn.
const PRODUCTS: i64 = 96;
/// The same for strided windows, before the gates of taps that the stride never meets become constants.
const PRODUCTS_WITH_GATES: i64 = 4 * PRODUCTS;
/// The most products of any other tile, which limits the code size of one loop.
const PRODUCTS_OF_TILE: i64 = 144;
/// The most adjacent vectors of a tile, and its greatest height.
const WIDEST: i64 = 4;
const TALLEST: i64 = 16;
/// Padding may be at most one part in this many of an axis.
const PADDING: i64 = 8;
/// The largest stride between lanes; `MAX_STRIDE` if the lanes step over all taps and nothing else reads them.
pub(super) const MAX_TAP_STRIDE: i64 = 4;
/// Bytes of a line of the caches.
const LINE: usize = 64;

/// A register tile over taps of a window. Axes are positions of original ranges.
#[derive(Clone)]
pub(super) struct Window {
    /// The output range that vectors lie along.
    lane: usize,
    /// Output ranges along which positions meet different taps periodically, and the period.
    turns: SmallVec<[(usize, i64); 2]>,
    /// Another output range that the windows overlap along, and the height of the tile there.
    height: Option<(usize, i64)>,
    /// The access to copy: gated, with elements that neighbours share.
    copied: Option<usize>,
    /// Vectors side by side; those of a tile of whole rows are written in the order of memory.
    vectors: i64,
    /// Reduction ranges whose taps are in the tile.
    taps: SmallVec<[usize; 4]>,
}

impl Planner<'_> {
    /// Tiles to choose from; none if the kernel is no such reduction.
    pub(super) fn window_tiles(&self) -> Vec<Window> {
        self.find_windows().unwrap_or_default()
    }

    fn find_windows(&self) -> Option<Vec<Window>> {
        let lane = self.contiguous_output().filter(|_| self.lanes() > 1)?;
        let turns: SmallVec<[(usize, i64); 2]> = self
            .outputs()
            .into_iter()
            .filter_map(|origin| Some((origin, self.turn_of(origin, MAX_TAP_STRIDE)?)))
            .collect();
        let places: i64 = turns.iter().map(|turn| turn.1).product();
        // Each place meets its share of the taps.
        let (inside, taps) = self.taps_inside(TAPS * places)?;
        let is_whole = self.reduced().all(|origin| inside.contains(&origin));
        let tile = Window { lane, turns, height: None, copied: None, vectors: 1, taps: inside };
        if places > 1 {
            return Some(vec![self.in_turn_over_taps(tile, taps, places).filter(|_| is_whole)?]);
        }
        let (windowed, is_strided) = self.windowed(lane, taps)?;
        if !is_whole && !self.is_all_windows(windowed) {
            return None;
        }
        let overlapped = |&origin: &usize| origin != lane && !self.windows_along(windowed, origin).is_empty();
        let overlapped = self.outputs().into_iter().rev().find(overlapped);
        match overlapped {
            None if is_strided => return Some(vec![tile]),
            Some(origin) if is_whole => {
                if let Some((height, vectors, copied)) = self.rows_of_tile(windowed, lane, origin, taps) {
                    return Some(vec![Window { height: Some((origin, height)), vectors, copied, ..tile }]);
                }
            }
            _ => {}
        }
        Some(self.tiles_of(windowed, overlapped, &tile))
    }

    /// A tile whose positions meet their taps in turn, if that is not too much code.
    fn in_turn_over_taps(&self, tile: Window, taps: i64, places: i64) -> Option<Window> {
        let rest = self.rest_of(&tile);
        let lanes = self.lanes_for(rest, self.lanes());
        let fits = taps <= PRODUCTS && taps * places <= PRODUCTS_WITH_GATES && rest * 2 >= lanes;
        // The end of a row is then a constant, too.
        let vectors = (rest + lanes - 1) / lanes;
        let is_row = rest % lanes != 0 && taps * places * vectors <= PRODUCTS_OF_TILE;
        fits.then(|| Window { vectors: if is_row { vectors } else { 1 }, ..tile })
    }

    /// The number of positions along the lane axis that meet the same taps.
    fn rest_of(&self, tile: &Window) -> i64 {
        let turn = tile.turns.iter().find(|turn| turn.0 == tile.lane).map_or(1, |turn| turn.1);
        (self.trips(tile.lane) + turn - 1) / turn
    }

    /// The access that reads windows along the lanes, and whether the lanes stride over adjacent taps.
    fn windowed(&self, lane: usize, taps: i64) -> Option<(usize, bool)> {
        let lanes = self.lanes();
        let is_row = taps <= MAX_STRIDE * self.kernel.reductions.len() as i64;
        let is_stepped_over = |access: &usize| {
            let is_read_once = || self.sharing(*access).1 == 1;
            let most = if is_row && is_read_once() { MAX_STRIDE } else { MAX_TAP_STRIDE };
            let steps = (2..=most).contains(&self.coefficient(*access, lane));
            steps && self.reduced().any(|origin| self.coefficient(*access, origin) == 1)
        };
        let mut accesses = 0..self.kernel.accesses.len();
        // Most lanes may be empty: the alternative is gathers.
        let stepped_over = accesses.clone().find(is_stepped_over).filter(|_| self.trips(lane) * 4 >= lanes);
        if let Some(access) = stepped_over {
            return Some((access, true));
        }
        let is_windowed = |&access: &usize| {
            !self.kernel.accesses[access].is_store
                && self.coefficient(access, lane) == 1
                && !self.windows(access).is_empty()
        };
        let windowed = accesses.find(is_windowed)?;
        (self.trips(lane) * 2 >= self.lanes_along(lane, lanes)).then_some((windowed, false))
    }

    /// Height, vectors and the copied access of a tile of whole rows, for savings that the model does not count: constant gates,
    /// and lines that are written at once.
    fn rows_of_tile(
        &self,
        windowed: usize,
        lane: usize,
        origin: usize,
        taps: i64,
    ) -> Option<(i64, i64, Option<usize>)> {
        let rows: i64 = self.windows_along(windowed, origin).into_iter().map(|tap| self.trips(tap)).product();
        let whole = self.whole_rows(lane, origin, taps).filter(|tile| self.is_gated(windowed) && tile.0 >= rows);
        let written = || self.written_rows(lane, origin, taps);
        let whole = whole.map(|(height, vectors)| (height, vectors, None));
        whole.or_else(|| written().map(|(height, vectors)| (height, vectors, self.padded(windowed))))
    }

    fn is_gated(&self, access: usize) -> bool {
        self.graph.sources(self.kernel.accesses[access].node).len() > 1
    }

    /// The access, if a padded copy could replace the gate of each read.
    fn padded(&self, access: usize) -> Option<usize> {
        (self.is_gated(access) && self.is_read_once(access)).then_some(access)
    }

    /// Tiles of all heights and widths, with different taps inside.
    fn tiles_of(&self, windowed: usize, overlapped: Option<usize>, tile: &Window) -> Vec<Window> {
        let copied = self.padded(windowed).filter(|_| !self.target.masked_access);
        let rows = overlapped.map(|origin| self.windows_along(windowed, origin)).unwrap_or_default();
        let mut inside: SmallVec<[SmallVec<[usize; 4]>; 3]> = SmallVec::from_iter([tile.taps.clone()]);
        if self.kernel.reductions.len() == 1 {
            for taps in [rows, SmallVec::new()] {
                if !inside.contains(&taps) {
                    inside.push(taps);
                }
            }
        }
        let mut tiles = Vec::new();
        for taps in inside {
            for (height, vectors) in self.sizes(tile.lane, overlapped, &taps) {
                let height = overlapped.filter(|_| height > 1).map(|origin| (origin, height));
                let tile = |copied| Window { height, copied, vectors, taps: taps.clone(), ..tile.clone() };
                tiles.push(tile(None));
                tiles.extend(copied.map(|copied| tile(Some(copied))));
            }
        }
        tiles
    }

    /// Heights and vectors of the tiles with these taps that the registers hold.
    fn sizes(&self, lane: usize, along: Option<usize>, taps: &[usize]) -> Vec<(i64, i64)> {
        let taps: i64 = taps.iter().map(|&origin| self.trips(origin)).product();
        // Two registers hold a loaded vector and a factor.
        let room = (self.target.vector_registers as i64 - 2).min(PRODUCTS_OF_TILE / taps);
        let lanes = self.lanes_along(lane, self.lanes());
        let fits = |trips: i64, size: i64| {
            let padded = (trips + size - 1) / size * size;
            size == 1 || size <= trips && (padded - trips) * PADDING <= trips
        };
        let rows = along.map_or(1, |origin| self.trips(origin));
        // Select would prefer longer vectors across the rows.
        let is_short = |height: i64| lanes == self.lanes() || height & -height <= lanes;
        let heights = (1..=TALLEST.min(room)).filter(|&height| fits(rows, height) && is_short(height));
        let columns = (self.trips(lane) + lanes - 1) / lanes;
        let widths = |height: i64| (1..=WIDEST.min(room / height)).filter(|&vectors| columns % vectors == 0);
        heights.flat_map(|height| widths(height).map(move |vectors| (height, vectors))).collect()
    }

    /// Reduction ranges that an access walks along an output range.
    fn windows_along(&self, access: usize, output: usize) -> SmallVec<[usize; 4]> {
        let of = |origin: usize| (self.coefficient(access, origin).abs(), self.trips(origin));
        self.reduced().filter(|&origin| overlap(of(origin), of(output))).collect()
    }

    /// The reduction ranges whose taps are in a tile, and the number of these taps: all ranges, or for one large window as
    /// many of the innermost as there is room for.
    fn taps_inside(&self, most: i64) -> Option<(SmallVec<[usize; 4]>, i64)> {
        let of = |reduction: &Reduction| -> SmallVec<[usize; 4]> {
            let origins = reduction.ranges.iter().filter_map(|&range| self.space.origin(range));
            origins.filter(|&origin| !self.space.origins[origin].merged).collect()
        };
        let taps = |origins: &[usize]| origins.iter().map(|&origin| self.trips(origin)).product::<i64>();
        if let [reduction] = self.kernel.reductions.as_slice() {
            let all = of(reduction);
            let start = (0..all.len()).find(|&start| taps(&all[start..]) <= most)?;
            let inside = &all[start..];
            return (taps(inside) >= 2).then(|| (inside.into(), taps(inside)));
        }
        // Such as a maximum, and the number of taps that attain it.
        let (mut inside, mut total) = (SmallVec::<[usize; 4]>::new(), 0);
        for reduction in &self.kernel.reductions {
            let own = of(reduction);
            if !(2..=most).contains(&taps(&own)) {
                return None;
            }
            total += taps(&own);
            inside.extend(own);
        }
        inside.sort_unstable();
        inside.dedup();
        (!inside.is_empty() && total <= PRODUCTS).then_some((inside, total))
    }

    /// Every reduction range walks along windows of an access.
    fn is_all_windows(&self, access: usize) -> bool {
        let windows = self.windows(access);
        self.reduced().all(|origin| self.trips(origin) <= 1 || windows.contains(&origin))
    }

    /// Height and vectors of a tile of whole rows of the output, if the registers hold some of them beside the taps:
    /// neighbours along a row are shifted in registers, and positions beyond its ends are not in memory.
    fn whole_rows(&self, lane: usize, origin: usize, taps: i64) -> Option<(i64, i64)> {
        let lanes = self.lanes();
        let vectors = (self.trips(lane) + lanes - 1) / lanes;
        // Registers also hold one input row beside the sums and the taps.
        let room = self.target.vector_registers as i64 - taps - vectors - 1;
        let most = (room / vectors).min(PRODUCTS_OF_TILE / (taps * vectors)).min(8);
        let height = (2..=most).rev().find(|height| self.trips(origin) % height == 0)?;
        self.follows(lane, origin).then_some((height, vectors))
    }

    /// Height and vectors of a tile of whole rows of the output: non-temporal stores of vectors shorter than a line fill
    /// whole lines only if adjacent vectors are written consecutively.
    fn written_rows(&self, lane: usize, origin: usize, taps: i64) -> Option<(i64, i64)> {
        let (lanes, trips) = (self.lanes(), self.trips(lane));
        if !self.space.nontemporal
            || self.target.vector_bytes >= LINE
            || trips % lanes != 0
            || !self.follows(lane, origin)
        {
            return None;
        }
        let vectors = trips / lanes;
        // Three registers hold a loaded vector and two factors.
        let room = self.target.vector_registers as i64 - 3;
        let most = (room / vectors).min(PRODUCTS_OF_TILE / (taps * vectors)).min(8);
        let height = (1..=most).rev().find(|height| self.trips(origin) % height == 0)?;
        Some((height, vectors))
    }

    /// Whether the rows of the output are adjacent in memory.
    fn follows(&self, lane: usize, origin: usize) -> bool {
        self.kernel.accesses.iter().position(|access| access.is_store).is_some_and(|store| {
            self.coefficient(store, lane) == 1 && self.coefficient(store, origin) == self.trips(lane)
        })
    }

    /// The period, at most `most`, after which positions along an output range meet the same taps again.
    pub(super) fn turn_of(&self, origin: usize, most: i64) -> Option<i64> {
        let range = self.space.origins[origin].range;
        let trips = self.trips(origin);
        self.kernel.order.iter().find_map(|&node| {
            let &[value, divisor] = self.graph.sources(node) else { return None };
            let divisor = i64::try_from(self.graph.as_int(divisor)?).ok()?;
            let sum = self.kernel.sums.get(&value).filter(|_| matches!(self.graph.op(node), Op::Idiv | Op::Mod))?;
            let is_turn = (2..=most).contains(&divisor) && trips > divisor && sum.coefficient(range).abs() == 1;
            is_turn.then_some(divisor)
        })
    }

    /// Whether windows of an access overlap along an output range.
    pub(super) fn is_windowed(&self, access: usize, output: usize) -> bool {
        self.outputs().contains(&output) && !self.windows_along(access, output).is_empty()
    }

    /// Reduction ranges that an access walks in steps of which those of an output range are a few, or the other way
    /// round: overlapping windows.
    pub(super) fn windows(&self, access: usize) -> SmallVec<[usize; 4]> {
        let of = |origin: usize| (self.coefficient(access, origin).abs(), self.trips(origin));
        let outputs = self.outputs();
        self.reduced().filter(|&origin| outputs.iter().any(|&output| overlap(of(origin), of(output)))).collect()
    }

    /// The kernel under one of these tiles.
    pub(super) fn tile_window(mut self, window: &Window) -> Self {
        let own = self.lanes_for(self.rest_of(window), self.lanes());
        let mut lanes = own * window.vectors;
        // Only whole vectors bypass the caches.
        if self.space.nontemporal
            && window.vectors == 1
            && window.height.is_none()
            && window.turns.is_empty()
            && self.trips(window.lane) % lanes == lanes / 2
        {
            lanes /= 2;
        }
        for &(origin, turn) in &window.turns {
            self.split(origin, turn, AxisType::Upcast);
        }
        if let Some((origin, height)) = window.height {
            self.split(origin, height, AxisType::Upcast);
        }
        if let Some(axis) = self.outermost(window.lane) {
            if self.space.axes[axis].trips.is_some_and(|trips| trips % lanes != 0) {
                self.apply(Padto { axis: self.space.name(axis), multiple: lanes });
            }
            self.apply(Split { axis: self.space.name(axis), factor: lanes, target: AxisType::Upcast, top: false });
        }
        for &origin in &window.taps {
            self.split(origin, self.trips(origin), AxisType::Unroll);
        }
        self.share();
        let inner = window.height.map(|height| height.0).into_iter().chain([window.lane]);
        let at = inner.filter_map(|origin| self.outermost(origin)).min();
        if let (Some(access), Some(at)) = (window.copied, at)
            && self.footprint(access, at, None, &[]) <= self.target.cache_bytes[1] as i64 / 4
        {
            self.stage(access, at);
        }
        self
    }

    /// An output range that the windows of a contraction's panel overlap along, where its `products` leave half of the
    /// registers free: two of its trips share the elements read of the rows.
    pub(super) fn windows_beside(&self, panel: usize, lane: usize, products: i64, vectors: i64) -> Option<usize> {
        let is_room = (products + vectors) * 2 < self.target.vector_registers as i64;
        let is_whole =
            |&origin: &usize| origin != lane && self.trips(origin) % 2 == 0 && self.is_windowed(panel, origin);
        self.outputs().into_iter().rfind(is_whole).filter(|_| is_room)
    }

    /// Copies the elements that gated windows along both dims of an image read, if they stay in the first-level cache: no
    /// position lies outside of a copy, so no gate is left in the loop of the products.
    pub(super) fn copy_windows(&mut self, panel: usize, lane: usize) {
        let is_around = |axis: &Axis| axis.origin != lane && self.is_windowed(panel, axis.origin);
        let around = self.space.axes.iter().position(is_around);
        if let Some(at) = around.filter(|_| self.padded(panel).is_some())
            && self.footprint(panel, at, None, &[]) <= self.target.cache_bytes[0] as i64 / 2
        {
            self.stage(panel, at);
        }
    }
}

/// Two walks, each of a step and a number of trips, meet at some elements again and again.
fn overlap(a: (i64, i64), b: (i64, i64)) -> bool {
    let ((low, trips), (high, others)) = (a.min(b), a.max(b));
    low > 0 && trips > 1 && others > 1 && high % low == 0 && high / low < trips
}
