//! The memory layout of a copy: elements that are read together are adjacent.

use super::{Form, Group, unaliased};
use crate::lower::optimize::rebuild::{CHUNK, Rebuild};
use crate::lower::select::devectorize::stride::MAX_STRIDE;
use smallvec::SmallVec;
use tinyspec_ir::AxisType;
use tinyspec_ir::affine::Affine;

/// The longest row that is copied as a single tile, whose masks are constants.
const ROW: i64 = 4 * CHUNK;

/// The memory layout of a copy.
pub(super) struct Layout {
    pub groups: Vec<Group>,
    /// Elements from one position of a group to the next, and of the whole copy.
    pub strides: Vec<i64>,
    pub size: i64,
    /// The groups along which the source is contiguous.
    contiguous: SmallVec<[bool; 8]>,
    /// The two groups between which square blocks are transposed, or short rows are deinterleaved.
    pub turned: Option<(usize, usize)>,
}

impl Layout {
    pub(super) fn is_turned(&self, group: usize) -> bool {
        self.turned.is_some_and(|(from, to)| group == from || group == to)
    }

    /// The tile of a copy along a group of `extent` elements.
    pub(super) fn chunk(&self, group: usize, extent: i64) -> i64 {
        match extent {
            _ if self.is_turned(group) => CHUNK.min(extent),
            _ if !self.contiguous[group] || extent <= 1 => 1,
            _ if (CHUNK + 1..=ROW).contains(&extent) => (extent + CHUNK - 1) / CHUNK * CHUNK,
            _ if extent % (2 * CHUNK) == 0 => 2 * CHUNK,
            _ => CHUNK.min(extent),
        }
    }
}

impl Rebuild<'_> {
    /// The layout of a copy of these groups.
    pub(super) fn arrange(&self, index: &Affine, mut groups: Vec<Group>, form: Form) -> Layout {
        let mut order = self.order_in_memory(&groups);
        // A word holds several neighbours, which are as many units from the next word.
        let is_of_words = |axis: usize| Some(self.space.axes[axis].origin) == self.space.words;
        let is_contiguous = |group: &Group| match form {
            Form::Words(word) if word.is_contiguous() && group.steps.iter().any(|step| is_of_words(step.0)) => {
                group.unit == word.count()
            }
            _ => group.unit == 1,
        };
        let mut turned = if self.shares { None } else { turned(&groups, &order, is_contiguous) };
        // Taps are short, but those of all channels follow each other in memory.
        if !self.shares
            && turned.is_none()
            && !matches!(form, Form::Words(_))
            && let Some(dense) = self.dense(index, &groups)
        {
            let dense_order = self.order_in_memory(&dense);
            if let Some(squares) = self::turned(&dense, &dense_order, is_contiguous) {
                (groups, order, turned) = (dense, dense_order, Some(squares));
            }
        }
        let contiguous: SmallVec<[bool; 8]> = groups.iter().map(is_contiguous).collect();
        let (mut strides, mut size) = (vec![0; groups.len()], 1i64);
        for &group in order.iter().rev() {
            strides[group] = size;
            // Squares are whole.
            let extent = groups[group].extent;
            let is_turned = turned.is_some_and(|(from, _)| from == group) && extent > CHUNK;
            size = size.saturating_mul(if is_turned { (extent + CHUNK - 1) / CHUNK * CHUNK } else { extent });
            // Whole vectors along the contiguous axis.
            if strides[group] == 1 && contiguous[group] && size > CHUNK {
                size = (size + CHUNK - 1) / CHUNK * CHUNK;
            }
            // Otherwise panels alias in the cache, and a copy across panels evicts lines that are only partly written.
            size = unaliased(size);
        }
        Layout { groups, strides, size, contiguous, turned }
    }

    /// The order of a copy's groups in memory: output loops, then reductions in the order of their loops, the output tile
    /// inside: elements that a reduction reads consecutively are adjacent. Where vectors lie along a reduction, it is
    /// innermost.
    fn order_in_memory(&self, groups: &[Group]) -> Vec<usize> {
        let is_of = |group: &Group, is: &dyn Fn(AxisType) -> bool| {
            group.steps.iter().all(|step| is(self.space.axes[step.0].kind))
        };
        let is_tile = |group: &Group| is_of(group, &|kind| kind == AxisType::Upcast);
        let is_output = |group: &Group| is_of(group, &|kind| !kind.is_reduce());
        let has = |group: &Group, kind: AxisType| group.steps.iter().any(|step| self.space.axes[step.0].kind == kind);
        let tiled = groups.iter().filter(|group| has(group, AxisType::Upcast) && !is_tile(group));
        let nearest = tiled.min_by_key(|group| group.unit);
        // Lines that a tile uses only in part are laid out apart, each after all steps of the reduction. Side by side, they would
        // make the stride of a step so large that all steps map to a few sets of the first-level cache.
        let lies_apart =
            |group: &Group| nearest.is_some_and(|nearest| nearest.unit < group.unit && has(nearest, AxisType::Loop));
        let is_tiled = |group: &Group| has(group, AxisType::Upcast) && !lies_apart(group);
        let reduction = |group: &Group| {
            let reduced = group.steps.iter().filter(|step| self.space.axes[step.0].kind.is_reduce());
            reduced.map(|step| step.0).max()
        };
        // The largest power of two that divides an axis bounds the vectors along it.
        let lanes = |of: AxisType| {
            let steps = groups.iter().flat_map(|group| &group.steps).map(|step| &self.space.axes[step.0]);
            let trips = steps.filter(|axis| axis.kind == of).filter_map(|axis| axis.trips);
            trips.map(|trips| 1i64 << trips.trailing_zeros()).max().unwrap_or(1)
        };
        let is_along_terms = lanes(AxisType::Unroll) > lanes(AxisType::Upcast);
        // If windows along rows and along lanes are copied, the lanes are innermost, whatever the order of the taps.
        let has_lanes = |group: &Group| group.steps.iter().any(|step| self.space.is_lane(step.0));
        let place = |group: &Group| {
            let unit = std::cmp::Reverse(group.unit);
            let is_inside = is_tile(group) && !is_along_terms;
            let holds_lanes = is_tiled(group) && has_lanes(group) && !is_along_terms;
            (is_inside, !is_output(group), is_tiled(group), holds_lanes, reduction(group), unit)
        };
        let mut layout: Vec<usize> = (0..groups.len()).collect();
        layout.sort_by_key(|&group| place(&groups[group]));
        layout
    }

    /// The groups, with those of reductions merged that are contiguous in the source.
    fn dense(&self, index: &Affine, groups: &[Group]) -> Option<Vec<Group>> {
        let is_whole = |step: &(usize, i64)| {
            let axis = &self.space.axes[step.0];
            axis.kind.is_reduce() && !self.space.origins[axis.origin].padded && step.1 > 0
        };
        let is_run = |group: &Group| group.steps.iter().all(is_whole);
        let mut order: Vec<&Group> = groups.iter().collect();
        order.sort_by_key(|group| group.unit);
        let mut dense: Vec<Group> = Vec::new();
        for group in order {
            let follows = |last: &Group| last.unit * last.extent == group.unit && is_run(last) && is_run(group);
            let mut axes: SmallVec<[usize; 4]> = group.steps.iter().map(|step| step.0).collect();
            if let Some(last) = dense.pop_if(|last| follows(last)) {
                axes.extend(last.steps.iter().map(|step| step.0));
            }
            dense.push(self.group(index, &axes)?);
        }
        (dense.len() < groups.len()).then_some(dense)
    }
}

/// The groups along which the source and the copy are contiguous, if they differ and blocks of them fill vectors.
fn turned(groups: &[Group], layout: &[usize], is_contiguous: impl Fn(&Group) -> bool) -> Option<(usize, usize)> {
    let to = *layout.last()?;
    let from = (0..groups.len()).find(|&group| group != to && is_contiguous(&groups[group]))?;
    let is_square = groups[from].extent >= CHUNK;
    let is_interleaved =
        groups[from].extent * groups[from].unit == groups[to].unit && groups[from].extent <= MAX_STRIDE;
    (groups[to].extent % CHUNK == 0 && (is_square || is_interleaved)).then_some((from, to))
}
