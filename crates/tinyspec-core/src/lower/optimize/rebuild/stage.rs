//! Staging: a LOCAL copy of what some axes read, made once outside of them.
//!
//! The axes that walk along one dim of the source form a *group*, such as the positions and the taps of a window. The
//! copy walks the group's extent once, so what windows share is copied once, and what lies outside of the source
//! becomes the zeros of the copy: reads of it need no gate.

mod first;
mod share;

use super::packed_dot::join;
use super::{CHUNK, Rebuild, gated_load, unaliased};
use crate::lower::fold::{both, conjuncts};
use crate::lower::loops::closed;
use crate::lower::optimize::kernel::Access;
use crate::lower::optimize::space::Staged;
use crate::lower::optimize::transforms::Copier;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, gcd, less};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Dim, Graph, NodeId, Op, Result};

/// A row of so many elements is copied at once: where it ends is then a constant.
const ROW: i64 = 4 * CHUNK;

/// Bytes of a line of the caches.
const LINE: i64 = 64;

/// Axes along one dim of the source, each with what a trip adds to the position in it.
struct Group {
    steps: SmallVec<[(usize, i64); 4]>,
    /// Elements from one position to the next.
    unit: i64,
    /// The least position, and how many there are.
    low: i64,
    extent: i64,
}

impl Group {
    fn step(&self, axis: usize) -> i64 {
        self.steps.iter().find(|step| step.0 == axis).map_or(0, |step| step.1)
    }
}

/// In what form a copy keeps what it reads.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// As it is.
    Same,
    /// As the type of this Cast.
    Cast(NodeId),
    /// Each element with the one that lies so many further, in a word.
    Words(i64),
}

/// A part of a group that a copy finishes before the next one.
#[derive(Clone, Copy)]
struct CopyBlock {
    /// The group that the copy is contiguous in, and the one inside of it in the source that is cut.
    across: usize,
    along: usize,
    length: i64,
}

/// `a < b`, as one sum that must be positive.
type Condition = Affine;

impl Rebuild<'_> {
    /// Reads a LOCAL copy of what the axes inside of the staged loop walk over; `None` where that is not regular.
    pub(super) fn stage(
        &mut self,
        graph: &mut Graph,
        access: &Access,
        index: &Affine,
        (alt, gate): (NodeId, Option<NodeId>),
        form: Form,
        staged: Staged,
    ) -> Result<Option<NodeId>> {
        let around = self.space.around(&staged);
        // The trips of a tile axis are there all at once, and those of a workgroup too: they are inside of any copy, as
        // its workgroups are outside.
        let is_inside = |axis: usize| match self.space.axes[axis].kind {
            AxisType::Upcast | AxisType::Unroll => true,
            kind if self.shares && kind.is_within_workgroup() => true,
            AxisType::Global | AxisType::Thread if self.shares => false,
            _ => axis >= around,
        };
        let inside: SmallVec<[usize; 8]> =
            (0..self.axes.len()).filter(|&axis| self.axes[axis].is_some() && is_inside(axis)).collect();
        let conditions = match gate {
            Some(gate) if graph.as_const(alt).is_some() => self.conditions(graph, gate),
            Some(_) => None,
            None => Some(Vec::new()),
        };
        let Some(conditions) = conditions else { return Ok(None) };
        let ranges: SmallVec<[NodeId; 8]> = inside.iter().filter_map(|&axis| self.axes[axis]).collect();
        let regular = |sum: &Affine| sum.atoms().all(|atom| ranges.contains(&atom) || !reaches(graph, atom, &ranges));
        if !regular(index) || !conditions.iter().all(regular) {
            return Ok(None);
        }
        let Some(mut groups) = self.groups(index, &inside, &conditions).filter(|groups| !groups.is_empty()) else {
            return Ok(None);
        };
        if !self.padding_is_apart(access, &groups) {
            return Ok(None);
        }

        let mut layout = self.layout(&groups);
        let turns = !self.shares && !matches!(form, Form::Words(_));
        let mut turned = if turns { turned(&groups, &layout) } else { None };
        // Taps are short, but those of all channels follow each other in memory.
        if turns
            && turned.is_none()
            && let Some(dense) = self.dense(index, &groups)
        {
            let order = self.layout(&dense);
            if let Some(squares) = self::turned(&dense, &order) {
                (groups, layout, turned) = (dense, order, Some(squares));
            }
        }
        // Words of neighbours lie side by side, too.
        let is_of_words = |axis: usize| Some(self.space.axes[axis].origin) == self.space.words;
        let contiguous = groups.iter().map(|group| match form {
            Form::Words(1) if group.steps.iter().any(|step| is_of_words(step.0)) => group.unit == 2,
            _ => group.unit == 1,
        });
        let contiguous: SmallVec<[bool; 8]> = contiguous.collect();
        let (mut strides, mut size) = (vec![0; groups.len()], 1i64);
        for &group in layout.iter().rev() {
            strides[group] = size;
            // Squares are whole.
            let extent = groups[group].extent;
            let is_turned = turned.is_some_and(|(from, _)| from == group);
            size = size.saturating_mul(if is_turned { (extent + CHUNK - 1) / CHUNK * CHUNK } else { extent });
            // Whole vectors along the contiguous axis.
            if strides[group] == 1 && contiguous[group] && size > CHUNK {
                size = (size + CHUNK - 1) / CHUNK * CHUNK;
            }
            // Otherwise panels alias in the cache, and a copy across panels evicts lines that are only partly written.
            size = unaliased(size);
        }

        // The copy walks the source in its own order, the contiguous axis innermost.
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&group| std::cmp::Reverse(groups[group].unit));
        let mut positions: Vec<Affine> = vec![Affine::default(); groups.len()];
        let mut loops: Vec<NodeId> = Vec::new();
        let (mut inside_source, mut inside_copy) = (None, None);
        if self.shares {
            let walk = self.shared_walk(graph, &groups, &order, self.target.lanes(access.dtype) as i64)?;
            (positions, loops, inside_source, inside_copy) = (walk.positions, walk.loops, walk.inside, walk.inside);
        }
        let first = match form {
            Form::Same | Form::Cast(_) if staged.by == Copier::First && !self.shares && turned.is_none() => {
                self.first_trip(graph, &groups, &inside)?
            }
            _ => None,
        };
        let is_first = first.is_some();
        if let Some(first) = first {
            positions = first.positions;
            (inside_source, inside_copy) = (first.holds, first.holds);
        }
        let own = if self.shares || is_first { &[][..] } else { &order[..] };
        let block = if turned.is_none() { self.block_of_copy(access, &groups, &order, &strides) } else { None };
        let mut around_block = 0;
        for &group in own {
            let mut extent = groups[group].extent;
            if block.is_some_and(|block| block.across == group) {
                around_block = loops.len();
            }
            if let Some(block) = block.filter(|block| block.along == group) {
                let bound = graph.index(extent / block.length);
                let range = self.range(graph, bound, AxisType::Loop)?;
                loops.insert(around_block, range);
                positions[group] = Affine::atom(range).scale(block.length);
                extent = block.length;
            }
            let is_turned = turned.is_some_and(|(from, to)| group == from || group == to);
            let chunk = if is_turned {
                CHUNK
            } else if !contiguous[group] || extent <= 1 {
                1
            } else if (CHUNK + 1..=ROW).contains(&extent) {
                (extent + CHUNK - 1) / CHUNK * CHUNK
            } else if extent % (2 * CHUNK) == 0 {
                2 * CHUNK
            } else {
                CHUNK.min(extent)
            };
            let chunks = (extent + chunk - 1) / chunk;
            for (trips, step, kind) in [(chunks, chunk, AxisType::Loop), (chunk, 1, AxisType::Upcast)] {
                if trips > 1 {
                    let bound = graph.index(trips);
                    let range = self.range(graph, bound, kind)?;
                    loops.push(range);
                    positions[group] = positions[group].plus(&Affine::atom(range).scale(step));
                }
            }
            if chunks * chunk != extent {
                let within = less(graph, &positions[group], &Affine::number(extent))?;
                inside_source = both(graph, inside_source, Some(within))?;
                if strides[group] != 1 && !is_turned {
                    inside_copy = both(graph, inside_copy, Some(within))?;
                }
            }
        }
        let moved = |sum: &Affine, rate: &dyn Fn(&Group) -> i64| self.moved(sum, &groups, &positions, rate);
        let source = moved(index, &|group| group.unit);
        for condition in &conditions {
            let rate = |group: &Group| {
                let mut steps = group.steps.iter();
                steps
                    .find_map(|&(axis, step)| self.axes[axis].map(|range| condition.coefficient(range) / step))
                    .unwrap_or(0)
            };
            let condition = moved(condition, &rate);
            let holds = less(graph, &Affine::number(0), &condition)?;
            inside_source = both(graph, inside_source, Some(holds))?;
        }
        if self.hulls(access, &groups, &positions).is_none() {
            return Ok(None);
        }
        let copied = |rebuild: &Self, graph: &mut Graph, source: &Affine| {
            let mut inside = inside_source;
            for bound in rebuild.hulls(access, &groups, &positions).unwrap_or_default() {
                let holds = less(graph, &Affine::number(0), &bound)?;
                inside = both(graph, inside, Some(holds))?;
            }
            gated_load(graph, access.buffer, source, alt, inside)
        };
        let value = match form {
            Form::Same => copied(self, graph, &source)?,
            Form::Cast(cast) => {
                let value = copied(self, graph, &source)?;
                let arg = graph.arg(cast).clone();
                graph.add(Op::Cast, &[value], arg)?
            }
            Form::Words(step) => {
                let halves = self.halves(|rebuild, half| copied(rebuild, graph, &source.offset(half * step)))?;
                join(graph, halves)?
            }
        };
        let target =
            positions.iter().zip(&strides).fold(Affine::default(), |sum, (at, &stride)| sum.plus(&at.scale(stride)));

        let dtype = graph.dtype(value);
        let dims = graph.shape(&[Dim::from(size)])?;
        let arg = Arg::Buffer { slot: self.next_local, dtype, device: None, addrspace: AddrSpace::Local };
        self.next_local += 1;
        let buffer = graph.add(Op::Buffer, &[dims], arg)?;
        let place = target.emit(graph)?;
        let place = graph.add(Op::Index, &[buffer, place], Arg::None)?;
        let copy = match inside_copy.filter(|&gate| graph.as_int(gate).is_none()) {
            Some(gate) => graph.add(Op::Store, &[place, value, gate], Arg::None)?,
            None => graph.add(Op::Store, &[place, value], Arg::None)?,
        };
        let copy = closed(graph, copy, &loops)?;
        let filled = graph.add(Op::After, &[buffer, copy], Arg::None)?;
        if staged.by == Copier::Kernel {
            self.copied_before.push(filled);
        }
        let read = groups.iter().zip(&strides).fold(Affine::default(), |sum, (group, &stride)| {
            let steps = group.steps.iter().filter_map(|&(axis, step)| Some((self.axes[axis]?, step)));
            let at =
                steps.fold(Affine::number(-group.low), |at, (range, step)| at.plus(&Affine::atom(range).scale(step)));
            sum.plus(&at.scale(stride))
        });
        gated_load(graph, filled, &read, alt, None).map(Some)
    }

    /// The order of a copy's groups in memory: output loops, then reductions in the order of their loops, the output tile
    /// inside: what a reduction reads one after the other lies together.
    fn layout(&self, groups: &[Group]) -> Vec<usize> {
        let is_of = |group: &Group, is: &dyn Fn(AxisType) -> bool| {
            group.steps.iter().all(|step| is(self.space.axes[step.0].kind))
        };
        let is_tile = |group: &Group| is_of(group, &|kind| kind == AxisType::Upcast);
        let is_output = |group: &Group| is_of(group, &|kind| !kind.is_reduce());
        let has = |group: &Group, kind: AxisType| group.steps.iter().any(|step| self.space.axes[step.0].kind == kind);
        let tiled = groups.iter().filter(|group| has(group, AxisType::Upcast) && !is_tile(group));
        let nearest = tiled.min_by_key(|group| group.unit);
        // Lines of which a tile takes parts lie apart, each behind all steps of the reduction: side by side they would make
        // a step so long that all of them share a few places of the first cache.
        let lies_apart =
            |group: &Group| nearest.is_some_and(|nearest| nearest.unit < group.unit && has(nearest, AxisType::Loop));
        let is_tiled = |group: &Group| has(group, AxisType::Upcast) && !lies_apart(group);
        let reduction = |group: &Group| {
            let reduced = group.steps.iter().filter(|step| self.space.axes[step.0].kind.is_reduce());
            reduced.map(|step| step.0).max()
        };
        let place = |group: &Group| {
            let unit = std::cmp::Reverse(group.unit);
            (is_tile(group), !is_output(group), is_tiled(group), reduction(group), unit)
        };
        let mut layout: Vec<usize> = (0..groups.len()).collect();
        layout.sort_by_key(|&group| place(&groups[group]));
        layout
    }

    /// The groups with those of reductions joined that lie side by side without gaps in the source: one run in memory.
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

    /// How the copy is made in blocks, so that the lines that one trip of the loop across them begins are in the first cache
    /// when the next trips go on with them.
    fn block_of_copy(&self, access: &Access, groups: &[Group], order: &[usize], strides: &[i64]) -> Option<CopyBlock> {
        let across = order.iter().position(|&group| strides[group] == 1 && groups[group].extent > 1)?;
        let (&along, inner) = order.get(across + 1..)?.split_first()?;
        let lanes = groups[order[across]].extent * access.dtype.size() as i64;
        let lines = (lanes + LINE - 1) / LINE * inner.iter().map(|&group| groups[group].extent).product::<i64>();
        let room = self.target.cache_bytes[0] as i64 / 2 / LINE;
        let extent = groups[along].extent;
        if groups[along].unit == 1 || extent * lines <= room {
            return None;
        }
        let length = (1..=(room / lines).max(1)).rev().find(|length| extent % length == 0)?;
        (length > 1 || lines <= room).then_some(CopyBlock { across: order[across], along, length })
    }

    /// A gate as sums over the new axes that must all be positive; `None` where it is something else.
    fn conditions(&self, graph: &Graph, gate: NodeId) -> Option<Vec<Condition>> {
        let condition = |node: NodeId| match (graph.op(node), graph.sources(node)) {
            (Op::CmpLt, &[a, b]) if super::is_index(graph, a) => Some(self.sum(graph, b).minus(&self.sum(graph, a))),
            _ => None,
        };
        conjuncts(graph, gate).into_iter().map(condition).collect()
    }

    /// The axes that the index walks, by the dim of the source that they walk along. A condition is about one dim;
    /// without conditions axes belong together where their walks overlap.
    fn groups(&self, index: &Affine, inside: &[usize], conditions: &[Condition]) -> Option<Vec<Group>> {
        let coefficient = |sum: &Affine, axis: usize| self.axes[axis].map_or(0, |range| sum.coefficient(range));
        let mut sets: Vec<SmallVec<[usize; 4]>> = Vec::new();
        let mut conditioned = Vec::new();
        for condition in conditions {
            let walked: SmallVec<[usize; 4]> =
                inside.iter().copied().filter(|&axis| coefficient(condition, axis) != 0).collect();
            let (mut joined, rest): (Vec<_>, Vec<_>) =
                sets.into_iter().partition(|set: &SmallVec<[usize; 4]>| set.iter().any(|axis| walked.contains(axis)));
            joined.push(walked);
            let mut set: SmallVec<[usize; 4]> = joined.into_iter().flatten().collect();
            set.sort_unstable();
            set.dedup();
            sets = rest;
            if !set.is_empty() {
                conditioned.extend(set.iter().copied());
                sets.push(set);
            }
        }
        let free = inside.iter().filter(|axis| !conditioned.contains(axis) && coefficient(index, **axis) != 0);
        let count = sets.len();
        sets.extend(free.map(|&axis| SmallVec::from_iter([axis])));
        let mut groups: Vec<Group> = sets.iter().map(|set| self.group(index, set)).collect::<Option<_>>()?;
        for condition in conditions {
            for group in &groups {
                let mut rates = group.steps.iter().map(|&(axis, step)| {
                    let rate = coefficient(condition, axis);
                    (rate % step == 0).then_some(rate / step)
                });
                let first = rates.next()??;
                if !rates.all(|rate| rate == Some(first)) {
                    return None;
                }
            }
        }
        let mut merged: Vec<Group> = groups.drain(..count).collect();
        groups.sort_by_key(|group| group.unit);
        for group in groups {
            let overlaps = |other: &Group| group.unit < self.reach(index, other);
            match merged.get(count..).and_then(|free| free.last()).filter(|last| overlaps(last)) {
                Some(last) => {
                    let axes: SmallVec<[usize; 4]> = last.steps.iter().chain(&group.steps).map(|step| step.0).collect();
                    let both = self.group(index, &axes)?;
                    merged.pop();
                    merged.push(both);
                }
                None => merged.push(group),
            }
        }
        Some(merged)
    }

    /// Elements from the first position of a group to behind its last one; what a schedule runs beyond the bound of a
    /// range does not count.
    fn reach(&self, index: &Affine, group: &Group) -> i64 {
        let whole = group.unit.saturating_mul(group.extent);
        let [(number, _)] = group.steps.as_slice() else { return whole };
        let axis = &self.space.axes[*number];
        let (Some(range), Some(trips)) = (self.axes[*number], self.space.origins[axis.origin].trips) else {
            return whole;
        };
        let step = index.coefficient(range).saturating_abs() / axis.stride;
        whole.min(step.saturating_mul(trips))
    }

    fn group(&self, index: &Affine, axes: &[usize]) -> Option<Group> {
        let mut group = Group { steps: SmallVec::new(), unit: 0, low: 0, extent: 1 };
        for &axis in axes {
            let coefficient = index.coefficient(self.axes[axis]?);
            group.unit = gcd(group.unit, coefficient);
            group.steps.push((axis, coefficient));
        }
        if group.steps.iter().any(|step| step.1 == 0) {
            return None;
        }
        for (axis, step) in &mut group.steps {
            *step /= group.unit;
            let reach = step.checked_mul(self.space.axes[*axis].trips? - 1)?;
            group.low += reach.min(0);
            group.extent = group.extent.checked_add(reach.abs())?;
        }
        Some(group)
    }

    /// A reduction that runs beyond its bound adds zeros, so its part of the copy must end where it does.
    fn padding_is_apart(&self, access: &Access, groups: &[Group]) -> bool {
        let padded = self.space.axes.iter().enumerate().filter(|(_, axis)| {
            let origin = &self.space.origins[axis.origin];
            axis.kind.is_reduce() && origin.padded && access.open & self.kernel.live.bit(origin.range) != 0
        });
        padded.map(|(axis, _)| axis).all(|axis| {
            let group = groups.iter().find(|group| group.step(axis) != 0);
            let origin = |axis: usize| self.space.axes[axis].origin;
            group.is_none_or(|group| group.steps.iter().all(|step| origin(step.0) == origin(axis)))
        })
    }

    /// `sum` with the axes of each group replaced by the position of the copy in it.
    fn moved(&self, sum: &Affine, groups: &[Group], positions: &[Affine], rate: &dyn Fn(&Group) -> i64) -> Affine {
        let is_grouped = |atom: NodeId| {
            let mut steps = groups.iter().flat_map(|group| &group.steps);
            steps.any(|&(axis, _)| self.axes[axis] == Some(atom))
        };
        let outer = sum.filter(|atom| !is_grouped(atom));
        groups.iter().zip(positions).fold(outer, |sum, (group, position)| {
            let position = position.offset(group.low);
            sum.plus(&position.scale(rate(group)))
        })
    }

    /// Where the schedule runs beyond the bound of a range, the copy ends with the last position that a trip within
    /// all bounds reads. Sums that must be positive; `None` where the range is spread over windows.
    fn hulls(&self, access: &Access, groups: &[Group], positions: &[Affine]) -> Option<Vec<Affine>> {
        let mut hulls = Vec::new();
        for (number, origin) in self.space.origins.iter().enumerate() {
            let is_padded = self.kernel.live.bit(origin.range) & access.open & self.padded != 0;
            let Some(trips) = origin.trips.filter(|_| is_padded) else { continue };
            let own = |axis: usize| self.space.axes[axis].origin == number;
            let walked: Vec<usize> =
                (0..groups.len()).filter(|&group| groups[group].steps.iter().any(|step| own(step.0))).collect();
            let rate = |group: &Group| {
                let first = group.steps.iter().find(|step| own(step.0));
                first.map_or(0, |&(axis, step)| step / self.space.axes[axis].stride)
            };
            // What the other ranges of a window reach beyond this one.
            let (mut least, mut most) = (0, 0);
            for &(axis, step) in walked.iter().flat_map(|&group| &groups[group].steps).filter(|step| !own(step.0)) {
                let other = &self.space.axes[axis];
                // Both run beyond their bounds: where the window ends is not one sum.
                if self.space.origins[other.origin].padded {
                    return None;
                }
                let reach = step * (other.trips? - 1);
                (least, most) = (least + reach.min(0), most + reach.max(0));
            }
            let is_window = walked.iter().any(|&group| groups[group].steps.iter().any(|step| !own(step.0)));
            let axes = self.origin(number, &self.axes);
            hulls.push(match walked.as_slice() {
                [window] if is_window => {
                    let rate = rate(&groups[*window]);
                    let at = self.moved(&axes.scale(rate), groups, positions, &|group| {
                        group.steps.iter().any(|step| own(step.0)).into()
                    });
                    let last = rate * (trips - 1);
                    match rate > 0 {
                        true => Affine::number(last + most + 1).minus(&at),
                        false => at.offset(1 - last - least),
                    }
                }
                _ if is_window => return None,
                _ => {
                    let at = self.moved(&axes, groups, positions, &|group| {
                        let first = group.steps.iter().find(|step| own(step.0));
                        first.map_or(0, |&(axis, step)| self.space.axes[axis].stride / step)
                    });
                    Affine::number(trips).minus(&at)
                }
            });
        }
        Some(hulls)
    }
}

/// Groups that the source and the copy are contiguous in, where those are two, and squares of them fill vectors.
fn turned(groups: &[Group], layout: &[usize]) -> Option<(usize, usize)> {
    let to = *layout.last()?;
    let from = (0..groups.len()).find(|&group| group != to && groups[group].unit == 1)?;
    (groups[from].extent >= CHUNK && groups[to].extent % CHUNK == 0).then_some((from, to))
}

/// Whether any of the Ranges is below `node`, also where data are loaded by them.
fn reaches(graph: &Graph, node: NodeId, ranges: &[NodeId]) -> bool {
    graph.reachable(&[node]).iter().any(|node| ranges.contains(node))
}
