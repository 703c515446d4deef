//! Sums over a register tile: matrix products, convolutions, distances.
//!
//! One operand, the *panel*, is read in vectors along the *lane* axis; of the other, the *rows*, single elements are
//! multiplied into all of them. Which output axis becomes the lane is a matter of cost.

mod blocks;

use super::super::axis::Axis;
use super::super::kernel::slot;
use super::Planner;
use super::dot::{Dot, NEAR_CYCLES};
use super::height::Heights;
use crate::lower::optimize::transforms::{Copier, Padto, Stage, Tc};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, AxisType, NodeId, Op, words};

/// `out[…] = Σ rows[…] · panel[…, lane]`, or another function of both, with a register tile. Axes are positions of original ranges.
pub(super) struct Contraction {
    /// The access that vectors are read from.
    panel: usize,
    /// The access that single elements are read from.
    rows: usize,
    /// The axis that vectors lie along, or the outermost of several that the copy of the panel merges into one.
    lane: usize,
    /// The other merged axes, the innermost first. All of their trips are in a tile.
    inside: SmallVec<[usize; 2]>,
    /// Vectors of a tile.
    vectors: i64,
    /// Height of the tile along axes that only the rows have, the innermost axis first.
    heights: Heights,
    /// Whether all panels are copied at once and exceed half of the second-level cache.
    is_far: bool,
}

impl Contraction {
    /// The axis along which the lanes of a vector are neighbours.
    fn innermost(&self) -> usize {
        self.inside.first().copied().unwrap_or(self.lane)
    }
}

/// How a sum of products is tiled.
pub(super) enum Tile {
    Panel(Contraction),
    Dot(Dot),
}

/// Fraction of the best cost along the same lane that a tile of more or fewer vectors than two must get below: it fills
/// the registers, or loads more (measured).
const WIDER: f64 = 0.95;
/// Least slowdown of tiles whose vectors are stored against the order of memory (measured).
const ACROSS: f64 = 1.05;
/// Cycles per element for packing a panel against the order of memory (measured).
const PACKING_CYCLES: f64 = 0.4;
/// The same if the elements of a packed vector map to the same L1 sets (measured).
const CROWDED_CYCLES: f64 = 8.0;
/// Cycles for a line from the second-level cache, several being under way.
const LINE_CYCLES: f64 = 2.0;
/// Slowdown of fetching a cache line from a row too short for the hardware prefetcher (measured).
const SHORT_ROW_FACTOR: f64 = 6.0;
/// Rows of fewer bytes are that short.
const SHORT_ROW_BYTES: f64 = 512.0;
/// Slowdown of tiles whose panels come from the last-level cache.
const FAR: f64 = 1.05;

impl Planner<'_> {
    /// The cheapest tile of each kind for a sum whose terms are made of two operands.
    pub(super) fn contraction(&self, [a, b]: [usize; 2]) -> Vec<Tile> {
        let [reduction] = self.kernel.reductions.as_slice() else { return Vec::new() };
        // A tile along a loop that the sum does not follow would compute it again for each trip.
        let follows = |&origin: &usize| reduction.outer & self.kernel.live.bit(self.space.origins[origin].range) != 0;
        let follows = self.outputs().iter().all(|origin| self.trips(*origin) <= 1 || follows(origin));
        if self.target.vector_bytes == 0 || !follows {
            return Vec::new();
        }
        if self.is_stream(a) || self.is_stream(b) || self.is_for_few() {
            return Vec::new();
        }
        let panel = self.panel(a, b).map(Tile::Panel);
        panel.into_iter().chain(self.shared_dot([a, b]).map(Tile::Dot)).collect()
    }

    /// The cheapest register tile with lanes along an output axis.
    fn panel(&self, a: usize, b: usize) -> Option<Contraction> {
        let mut best: Option<(f64, Contraction)> = None;
        for lane in self.outputs() {
            let (panel, rows) = match (self.depends(a, lane), self.depends(b, lane)) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                _ => continue,
            };
            for vectors in [2, 3, 1] {
                let joined = self.joined_lanes(panel, rows, lane, vectors * self.lanes());
                for lanes in std::iter::once(SmallVec::from_iter([lane])).chain(joined) {
                    let Some(tile) = self.tile_of(panel, rows, lanes, vectors) else { continue };
                    let cost = self.cost(&tile);
                    let is_wider = best.as_ref().is_some_and(|(_, other)| other.innermost() == lane);
                    let worth = if is_wider { WIDER } else { 1.0 };
                    if best.as_ref().is_none_or(|(least, _)| cost < worth * least) {
                        best = Some((cost, tile));
                    }
                }
            }
        }
        best.map(|(_, tile)| tile)
    }

    /// The operands of a sum of products, perhaps converted.
    pub(super) fn factors(&self) -> Option<[usize; 2]> {
        let [reduction] = self.kernel.reductions.as_slice() else { return None };
        let Arg::Reduce { op: Op::Add, .. } = self.graph.arg(reduction.node) else { return None };
        let product = self.graph.source(reduction.node, 0);
        let &[a, b] = self.graph.sources(product) else { return None };
        (self.graph.op(product) == Op::Mul).then_some([self.loaded(a)?, self.loaded(b)?])
    }

    /// The two accesses that a sum's terms are made of by any elementwise function, as in a distance, if results share their elements.
    /// Float maxima are left out: propagating nans costs more than a tile saves (measured).
    pub(super) fn operands(&self) -> Option<[usize; 2]> {
        let [reduction] = self.kernel.reductions.as_slice() else { return None };
        let dtype = self.graph.dtype(reduction.node);
        if dtype.is_float() && matches!(self.graph.arg(reduction.node), Arg::Reduce { op: Op::Max, .. }) {
            return None;
        }
        let terms = self.graph.reachable(&[self.graph.source(reduction.node, 0)]);
        let outputs = self.outputs();
        let is_shared = |&access: &usize| {
            let varies = outputs.iter().any(|&origin| self.trips(origin) > 1 && self.depends(access, origin));
            varies && terms.contains(&self.kernel.accesses[access].node)
        };
        let shared: SmallVec<[usize; 4]> = (0..self.kernel.accesses.len()).filter(is_shared).collect();
        shared[..].try_into().ok()
    }

    /// Axes that every access but the panel walks as one, from `innermost` outwards, until they fill a tile of `width`
    /// lanes: a copy of the panel makes them contiguous. None where one axis fills it, or all together do not.
    fn joined_lanes(&self, panel: usize, rows: usize, innermost: usize, width: i64) -> Option<SmallVec<[usize; 2]>> {
        let follows = |outer: usize, inner: usize| {
            let is_one = |access: usize| {
                let step = self.coefficient(access, inner).saturating_mul(self.trips(inner));
                self.coefficient(access, outer) == step
            };
            let (far, near) = (self.coefficient(panel, outer), self.coefficient(panel, inner));
            self.trips(outer) > 1
                && self.depends(panel, outer)
                && !self.depends(rows, outer)
                && near > 0
                && far > near.saturating_mul(self.trips(inner))
                && (0..self.kernel.accesses.len()).all(|access| access == panel || is_one(access))
        };
        let mut axes: SmallVec<[usize; 2]> = SmallVec::from_iter([innermost]);
        let mut inside = 1;
        loop {
            let last = *axes.last()?;
            let trips = self.trips(last);
            // The tile must be a whole number of runs along the merged axes.
            if trips < 2 || width % (inside * trips) != 0 {
                break;
            }
            inside *= trips;
            if inside == width {
                break;
            }
            let Some(outer) = self.outputs().into_iter().find(|&outer| follows(outer, last)) else { break };
            axes.push(outer);
        }
        let is_windowed = !self.windows(panel).is_empty();
        (axes.len() > 1 && !is_windowed && self.is_read_once(panel)).then_some(axes)
    }

    /// A tile of vectors along these axes, the innermost first.
    fn tile_of(
        &self,
        panel: usize,
        rows: usize,
        mut inside: SmallVec<[usize; 2]>,
        vectors: i64,
    ) -> Option<Contraction> {
        let lane = inside.pop()?;
        let (lanes, columns) = (self.lanes(), self.columns(lane, &inside));
        let padded = columns * 4 < lanes * 3 && !self.target.masked_access;
        // Rows are read one element at a time and may be irregular, but the panel must be regular.
        let regular = self.kernel.accesses[panel].is_regular(self.graph);
        if padded || columns < 2 || !regular || (vectors - 1) * lanes >= columns {
            return None;
        }
        let is_copied = !self.windows(rows).is_empty() || self.coefficient(panel, lane) != 1;
        // Along any other axis of its own, the panel would be packed again for each tile of rows.
        let is_own = |origin: usize| {
            origin != lane && !inside.contains(&origin) && self.depends(panel, origin) && !self.depends(rows, origin)
        };
        let moves = self.outputs().into_iter().any(|origin| is_own(origin) && self.trips(origin) > 1);
        let is_gathered = (moves || !self.windows(panel).is_empty()) && self.coefficient(panel, lane) != 1;
        if is_gathered || is_copied && !(self.is_read_once(panel) && self.is_read_once(rows)) {
            return None;
        }
        let mut row_axes: SmallVec<[usize; 4]> = self.outputs().into_iter().collect();
        row_axes
            .retain(|&mut origin| self.depends(rows, origin) && !self.depends(panel, origin) && self.trips(origin) > 1);
        row_axes.sort_by_key(|&origin| self.coefficient(rows, origin).unsigned_abs());
        if self.coefficient(panel, lane) == 1 {
            // The innermost one in the order of the output.
            row_axes.sort_by_key(|&origin| std::cmp::Reverse(origin));
        }
        let spare = self.target.vector_registers as i64 - 1 - vectors;
        let room = (spare / vectors).clamp(1, if vectors == 1 { 24 } else { 14 });
        let mut heights = self.fill(&row_axes, room);
        if !self.windows(rows).is_empty() {
            heights = self.window_heights(rows, &row_axes, heights, room, vectors);
        }
        if let [(origin, height), rest @ ..] = &mut heights[..] {
            let heights = *height..=room.min(self.trips(*origin));
            match () {
                () if !self.windows(rows).is_empty() => {}
                () if self.is_turned(rows, *origin) => *height = self.copied_height(*origin, heights, columns),
                () if rest.is_empty() => *height = self.height_in_place(*origin, heights, vectors),
                () => {}
            }
        }
        // Panels of windows are copied at once.
        let panels = self.footprint(panel, 0, None, &self.shared(panel, rows));
        let is_far = !self.windows(rows).is_empty() && panels > self.target.cache_bytes[1] as i64 / 2;
        (!heights.is_empty()).then_some(Contraction { panel, rows, lane, inside, vectors, heights, is_far })
    }

    /// Trips of the axes that vectors lie along.
    fn columns(&self, lane: usize, inside: &[usize]) -> i64 {
        inside.iter().map(|&origin| self.trips(origin)).product::<i64>() * self.trips(lane)
    }

    /// Output ranges that both operands depend on, such as the images of a batch or the parts of a sum: each of their
    /// trips is a separate product.
    pub(super) fn shared(&self, panel: usize, rows: usize) -> SmallVec<[usize; 4]> {
        let mut shared: SmallVec<[usize; 4]> = self.outputs().into_iter().collect();
        shared.retain(|&mut origin| self.depends(panel, origin) && self.depends(rows, origin));
        shared
    }

    /// Cycles for each vector of useful products.
    fn cost(&self, tile: &Contraction) -> f64 {
        let Contraction { panel, vectors, ref heights, .. } = *tile;
        let (lane, lanes) = (tile.innermost(), self.lanes());
        let height: i64 = heights.iter().map(|&(_, height)| height).product();
        let products = (height * vectors) as f64;
        // Vectors of overlapping windows cross cache lines.
        let vector_loads = if self.windows(panel).is_empty() { vectors } else { 2 * vectors };
        let loads = (height + vector_loads) as f64;
        let step = products.max(loads).max(self.target.accumulators as f64) / 2.0;
        let step = step.max(height as f64 * self.lines_of_rows(tile) * LINE_CYCLES);
        let steps: i64 = self.reduced().map(|origin| self.trips(origin)).product();
        let store = self.kernel.accesses.iter().position(|access| access.is_store);
        let scattered = store.is_some_and(|store| self.coefficient(store, lane) != 1);
        // Square blocks are transposed in registers, where the tile is long enough in the order of memory.
        let is_turned = |&(origin, height): &(usize, i64)| {
            height >= 4 && store.is_some_and(|store| self.coefficient(store, origin) == 1)
        };
        let stored = match () {
            () if !scattered => products,
            () if heights.iter().any(is_turned) => products * 24.0,
            () if store.is_some_and(|store| self.shares_sets(store, lane)) => products * lanes as f64 * CROWDED_CYCLES,
            () => products * lanes as f64,
        };
        let filled = heights.iter().map(|&(origin, height)| self.share_filled(origin, height)).product::<f64>()
            * self.share_filled(tile.lane, self.width(tile));
        // A partial vector costs as many cycles as a full one.
        let filled = filled * self.lanes_of(tile) as f64 / lanes as f64;
        // The counts ignore that stores go against the order of memory.
        let across = if scattered { ACROSS } else { 1.0 };
        let far = if tile.is_far { FAR } else { 1.0 };
        let packing = match self.coefficient(panel, lane) {
            1 => 0.0,
            _ if self.shares_sets(panel, lane) => CROWDED_CYCLES * lanes as f64 / self.sharing(panel).1 as f64,
            _ => PACKING_CYCLES * lanes as f64 / self.sharing(panel).1 as f64,
        };
        packing + far * across * (step + stored / steps.max(1) as f64) / (products * filled)
    }

    /// Lines of the caches that a step of the reduction reads of each row, where rows are read in place.
    fn lines_of_rows(&self, tile: &Contraction) -> f64 {
        const LINE: f64 = 64.0;
        let access = &self.kernel.accesses[tile.rows];
        let bytes = |origin: usize| self.coefficient(tile.rows, origin).abs() * access.dtype.size() as i64;
        // Rows may lie side by side in the same lines.
        if self.copies_rows(tile) || tile.heights.iter().any(|&(origin, _)| (bytes(origin) as f64) < LINE) {
            return 0.0;
        }
        // Each row's line has been evicted by the others, so every step loads all of them from the second-level cache, in parallel.
        if let Some(&(origin, height)) = tile.heights.first()
            && height > self.ways()
            && self.shares_sets(tile.rows, origin)
        {
            return NEAR_CYCLES / LINE_CYCLES;
        }
        // The loops over windows are outside of all others.
        let windows = self.windows(tile.panel);
        let inner = self.reduced().filter(|origin| self.trips(*origin) > 1 && !windows.contains(origin)).last();
        let lines = (inner.map_or(0, bytes) as f64 / LINE).min(1.0);
        let length = inner.map_or(0, |origin| bytes(origin).saturating_mul(self.trips(origin))) as f64;
        if length < SHORT_ROW_BYTES { lines * SHORT_ROW_FACTOR } else { lines }
    }

    /// Reduction ranges.
    pub(super) fn reduced(&self) -> impl Iterator<Item = usize> {
        let ranges = self.kernel.reductions.iter().flat_map(|reduction| &reduction.ranges);
        ranges.filter_map(|&range| self.space.origin(range)).filter(|&origin| !self.space.origins[origin].merged)
    }

    /// A copy replaces all reads of a buffer.
    pub(super) fn is_read_once(&self, access: usize) -> bool {
        let buffer = self.kernel.accesses[access].buffer;
        self.kernel.accesses.iter().filter(|access| access.buffer == buffer).count() == 1
    }

    /// How much of the lane axis is in a tile.
    fn width(&self, tile: &Contraction) -> i64 {
        let inside: i64 = tile.inside.iter().map(|&origin| self.trips(origin)).product();
        tile.vectors * self.lanes_of(tile) / inside
    }

    /// Lanes of a tile's vectors.
    fn lanes_of(&self, tile: &Contraction) -> i64 {
        let is_single = tile.vectors == 1 && tile.inside.is_empty();
        if is_single { self.lanes_along(tile.lane, self.lanes()) } else { self.lanes() }
    }

    /// A register tile of rows × vectors, over a packed panel.
    pub(super) fn tile(mut self, tile: &Contraction) -> Self {
        let width = tile.vectors * self.lanes_of(tile);
        if self.are_tiled(tile) {
            self.words(self.are_read_once(tile));
        }
        for &origin in &tile.inside {
            self.split(origin, self.trips(origin), AxisType::Upcast);
        }
        self.split(tile.lane, self.width(tile), AxisType::Upcast);
        for &(origin, height) in &tile.heights {
            self.split(origin, height, AxisType::Upcast);
        }
        let products = tile.heights.iter().map(|&(_, height)| height).product::<i64>() * tile.vectors;
        if let Some(origin) = self.windows_beside(tile.panel, tile.lane, products, tile.vectors) {
            self.split(origin, 2, AxisType::Upcast);
        }
        if self.copies_rows(tile) {
            self.rows_inside(tile)
        } else {
            self.panels_outside(tile, width)
        }
        self
    }

    /// Rows are copied where windows share them, where they are turned, and where they are converted.
    fn copies_rows(&self, tile: &Contraction) -> bool {
        let are_read_once = self.are_read_once(tile);
        let are_tiled = self.are_tiled(tile);
        let is_turned = || tile.heights.first().is_some_and(|&(origin, _)| self.is_turned(tile.rows, origin));
        let is_converted = || {
            self.space.words.is_some()
                || self.kernel.widened(self.graph, self.kernel.accesses[tile.rows].node).is_some()
        };
        !self.windows(tile.rows).is_empty() || are_read_once && are_tiled && (is_turned() || is_converted())
    }

    fn are_read_once(&self, tile: &Contraction) -> bool {
        self.is_read_once(tile.panel) && self.is_read_once(tile.rows)
    }

    /// There is more than one tile of rows.
    fn are_tiled(&self, tile: &Contraction) -> bool {
        let is_own = |&origin: &usize| self.depends(tile.rows, origin) && !self.depends(tile.panel, origin);
        let rows: i64 = self.outputs().into_iter().filter(is_own).map(|origin| self.trips(origin)).product();
        rows > tile.heights.iter().map(|&(_, height)| height).product()
    }

    /// As many terms at once as a word holds, where the target has an instruction for them: along the range that is contiguous in
    /// memory, if there is one. `are_copied`: both operands are packed.
    fn words(&mut self, are_copied: bool) {
        let Some(product) = self.kernel.product.as_ref() else { return };
        let Some(trips) = product.on(self.target).map(|numbers| words::count(numbers) as i64) else { return };
        let accesses = self.kernel.accesses.iter().filter(|access| product.loads.contains(&access.node));
        let accesses: SmallVec<[_; 2]> = accesses.collect();
        let ranges = product.ranges.iter().copied().filter(|&range| {
            self.space.origin(range).is_some_and(|origin| self.trips(origin) > 1 && !self.space.origins[origin].merged)
        });
        // If a contiguous range does not divide into words, its last word takes scalar loads, which only packing makes up for.
        let is_whole = |range: NodeId| self.space.origin(range).is_some_and(|origin| self.trips(origin) % trips == 0);
        let is_apart = |range: NodeId| accesses.iter().all(|access| access.index.coefficient(range).abs() != 1);
        let ranges = ranges.filter(|&range| are_copied || is_whole(range) || is_apart(range));
        let nearest =
            ranges.min_by_key(|&range| accesses.iter().map(|access| access.index.coefficient(range).abs()).min());
        let axis = nearest.and_then(|range| self.space.origin(range)).and_then(|origin| self.axis(origin));
        if let Some(axis) = axis {
            self.apply(Padto { axis: self.space.name(axis), multiple: trips });
            self.apply(Tc { axis: self.space.name(axis) });
        }
    }

    /// The kernel with words along a range in which both operands are contiguous, so that vectors of words are plain loads.
    pub(super) fn in_words(&self, [a, b]: [usize; 2]) -> Option<Self> {
        let mut planner = self.clone();
        planner.words(self.target.masked_access);
        let along = planner.space.words?;
        [a, b].iter().all(|&access| self.coefficient(access, along) == 1).then_some(planner)
    }

    /// Whether each step of the reduction reads from a few lines, other ones than the step before.
    fn is_turned(&self, rows: usize, origin: usize) -> bool {
        const LINE: i64 = 64;
        let size = self.kernel.accesses[rows].dtype.size() as i64;
        let jumps = |origin: usize| self.coefficient(rows, origin).abs().saturating_mul(size) >= LINE;
        !jumps(origin) && self.coefficient(rows, origin) > 0 && self.reduced().all(jumps)
    }

    /// Column panels outside, so that each is packed once; rows walk over it.
    fn panels_outside(&mut self, tile: &Contraction, width: i64) {
        let columns = self.columns(tile.lane, &tile.inside);
        let panels = (columns + width - 1) / width;
        let tiles = |&(origin, height): &(usize, i64)| (self.trips(origin) + height - 1) / height;
        let row_tiles: i64 = tile.heights.iter().map(tiles).product();
        let windows = self.windows(tile.panel);
        // Lanes that other axes lie inside of are only neighbours in a copy.
        let is_contiguous = self.coefficient(tile.panel, tile.lane) == 1;
        // Packed, an element would be copied for every window that it lies in.
        let pack = windows.is_empty()
            && (row_tiles >= 8 && !self.lies_well(tile) || !is_contiguous)
            && self.is_read_once(tile.panel);
        let parallel = self.target.threads as i64;
        let rows = tile.heights.first().and_then(|&(origin, _)| self.outermost(origin));
        if (pack || windows.is_empty() && panels >= parallel)
            && let (Some(a), Some(b)) = (rows, self.outermost(tile.lane))
            && panels > 1
            && a < b
        {
            self.swap(a, b);
        }
        self.outside(&windows);
        let shares_rows = pack && self.are_rows_far(tile);
        if pack && (!is_contiguous || shares_rows) {
            self.block_panels(tile);
        }
        if shares_rows {
            self.block_inside(tile);
        }
        self.share();
        if pack && let Some(at) = self.outermost(tile.lane) {
            // Trips that a mask leaves out copy nothing.
            let is_whole = self.kernel.bounded().next().is_none();
            let by = if is_contiguous && is_whole { Copier::First } else { Copier::Loops };
            self.copy(tile.panel, at + 1, by);
        }
        self.copy_windows(tile.panel, tile.lane);
    }

    /// Whether a panel is read in place: it consists of pairs of lines that the second-level cache has room for, and too
    /// few rows read it to repay a copy.
    fn lies_well(&self, tile: &Contraction) -> bool {
        const LINE: i64 = 64;
        /// Lines so far apart share a few sets of the caches.
        const CACHE_ALIAS_STRIDE: i64 = 1024;
        /// Vectors that a copied one is multiplied with, so that the copy takes 1 % of the time.
        const ROWS: i64 = 256;
        let access = &self.kernel.accesses[tile.panel];
        let size = access.dtype.size() as i64;
        let rows: i64 = tile.heights.iter().map(|&(origin, _)| self.trips(origin)).product();
        let steps = |origin: usize| self.coefficient(tile.panel, origin).saturating_mul(size);
        let is_spread = |step: i64| step % LINE == 0 && step % CACHE_ALIAS_STRIDE != 0;
        let panel =
            self.reduced().map(|origin| self.trips(origin)).product::<i64>() * tile.vectors * self.lanes() * size;
        rows < ROWS
            && tile.vectors * self.lanes() * size >= 2 * LINE
            && self.space.words.is_none()
            && self.kernel.widened(self.graph, access.node).is_none()
            && self.reduced().map(steps).all(|step| step == 0 || is_spread(step))
            && panel <= self.target.cache_bytes[1] as i64 / 8
    }

    /// All panels of a product are packed at once; the elements that some rows read are copied once for all panels.
    fn rows_inside(&mut self, tile: &Contraction) {
        let Some(&(inner, _)) = tile.heights.first() else { return };
        self.longest_inside();
        let shared = self.shared(tile.panel, tile.rows);
        for (around, &origin) in shared.iter().enumerate() {
            for axis in (around..self.outermost(origin).unwrap_or(around)).rev() {
                self.swap(axis, axis + 1);
            }
        }
        // Panels are the last but one loop.
        if let (Some(mut panels), Some(rows)) = (self.outermost(tile.lane), self.outermost(inner)) {
            while panels + 1 < rows {
                self.swap(panels, panels + 1);
                panels += 1;
            }
            while panels > rows {
                self.swap(panels, panels - 1);
                panels -= 1;
            }
        }
        let panels = self.outermost(tile.lane).unwrap_or(0);
        let is_plain = shared.is_empty() && self.windows(tile.rows).is_empty();
        let is_loop = |axis: &Axis| axis.trips != Some(1) && axis.kind == AxisType::Loop;
        let is_of_rows = |axis: &Axis| !is_loop(axis) || !self.depends(tile.panel, axis.origin);
        if is_plain && self.space.axes[..panels].iter().all(is_of_rows) {
            for axis in (0..panels).rev() {
                self.swap(axis, axis + 1);
            }
            return self.rows_around_panels(tile);
        }
        self.block_rows(tile);
        self.share();
        // Each trip along an axis of the panels alone, such as images, has its own panels.
        let is_apart = self.windows(tile.panel).is_empty();
        let is_lane = |origin: usize| origin == tile.lane || tile.inside.contains(&origin);
        let is_own = |origin: usize| is_apart && !is_lane(origin) && self.depends(tile.panel, origin);
        let is_around = |axis: &&Axis| axis.trips == Some(1) || shared.contains(&axis.origin) || is_own(axis.origin);
        self.stage(tile.panel, self.space.axes.iter().take_while(is_around).count());
        if let Some(at) = self.outermost(tile.lane) {
            self.stage(tile.rows, at);
        }
    }

    /// Rows are copied once for all; each thread packs its own panels, as many at once as stay in its cache while the
    /// rows walk by.
    fn rows_around_panels(&mut self, tile: &Contraction) {
        self.block_panels(tile);
        self.block_inside(tile);
        self.share();
        if let Some(at) = self.outermost(tile.lane) {
            self.stage(tile.panel, at + 1);
            self.stage(tile.rows, at);
        }
    }

    /// About how many bytes an access walks over inside of the first `around` axes, with only `part.1` trips of the
    /// axis `part.0` among them, and of the ranges `without` only one.
    pub(super) fn footprint(&self, access: usize, around: usize, part: Option<(usize, i64)>, without: &[usize]) -> i64 {
        let mut steps: Vec<(i64, i64)> = Vec::new();
        for (position, axis) in self.space.axes.iter().enumerate() {
            if without.contains(&axis.origin) {
                continue;
            }
            let is_tile = matches!(axis.kind, AxisType::Upcast | AxisType::Unroll);
            let trips = match part {
                Some((part, trips)) if part == position => trips,
                _ if position >= around || is_tile => axis.trips.unwrap_or(1),
                _ => continue,
            };
            let step = self.coefficient(access, axis.origin).saturating_mul(axis.stride).saturating_abs();
            if step != 0 {
                steps.push((step, trips));
            }
        }
        steps.sort_unstable();
        // Elements of the innermost dim so far, their distance, and how many of those there are.
        let (mut reach, mut unit, mut count) = (1i64, 1i64, 1i64);
        for (step, trips) in steps {
            if step < unit.saturating_mul(reach) {
                reach += step / unit * (trips - 1);
            } else {
                count = count.saturating_mul(reach);
                (unit, reach) = (step, trips);
            }
        }
        count.saturating_mul(reach).saturating_mul(self.kernel.accesses[access].dtype.size() as i64)
    }

    /// Copies the elements of an access that the axes from `at` on read, before they run.
    pub(super) fn stage(&mut self, access: usize, at: usize) {
        self.copy(access, at, Copier::Loops);
    }

    /// Copies the elements of an access that the axes from `at` on read.
    fn copy(&mut self, access: usize, at: usize, by: Copier) {
        if let Some(slot) = slot(self.graph, self.kernel.accesses[access].buffer) {
            self.apply(Stage::Param { slot, at: self.space.innermost_loop(at), by });
        }
    }

    /// Position of the outermost loop over an original range.
    pub(super) fn outermost(&self, origin: usize) -> Option<usize> {
        let is_loop = |kind: AxisType| kind == AxisType::Loop || kind.is_parallel();
        self.space.axes.iter().position(|axis| axis.origin == origin && is_loop(axis.kind))
    }

    /// Moves the longest reduction range inside of all others: the setup and teardown of a loop cost least there.
    fn longest_inside(&mut self) {
        let places: Vec<usize> =
            (0..self.space.axes.len()).filter(|&axis| self.space.axes[axis].kind == AxisType::Reduce).collect();
        let longest = places
            .iter()
            .rposition(|&axis| places.iter().all(|&other| self.space.axes[other].trips <= self.space.axes[axis].trips));
        for step in longest.unwrap_or(places.len())..places.len().saturating_sub(1) {
            self.swap(places[step], places[step + 1]);
        }
    }

    /// Moves reduction ranges outside of all others: values that depend on them, such as the gates of a padded window,
    /// are then computed once for a whole loop.
    pub(super) fn outside(&mut self, ranges: &[usize]) {
        let places: Vec<usize> =
            (0..self.space.axes.len()).filter(|&axis| self.space.axes[axis].kind.is_reduce()).collect();
        for position in 0..places.len() {
            // One step at a time, so that the others keep their order.
            let is_first = |&other: &usize| ranges.contains(&self.space.axes[places[other]].origin);
            let Some(from) = (position..places.len()).find(is_first) else { return };
            for step in (position..from).rev() {
                self.swap(places[step], places[step + 1]);
            }
        }
    }
}
