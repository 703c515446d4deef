//! Which axes inside a staged loop walk along which dim of the source.

use super::{Condition, Group};
use crate::lower::fold::conjuncts;
use crate::lower::optimize::kernel::Access;
use crate::lower::optimize::rebuild::{Rebuild, is_index};
use crate::lower::optimize::space::Packing;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, gcd};
use tinyspec_ir::{AxisType, Graph, NodeId, Op};

/// The part of the source that the axes inside a staged loop walk over.
pub(super) struct Region {
    /// The axes inside the copy.
    pub inside: SmallVec<[usize; 8]>,
    pub groups: Vec<Group>,
    /// The conditions under which an element is inside the source.
    pub conditions: Vec<Condition>,
}

impl Rebuild<'_> {
    /// The region that a copy at this level covers; `None` if it is not regular.
    pub(super) fn region(
        &self,
        graph: &Graph,
        access: &Access,
        index: &Affine,
        (alt, gate): (NodeId, Option<NodeId>),
        packing: Packing,
    ) -> Option<Region> {
        let around = self.space.around(&packing);
        // All trips of a tile axis, or of the threads of a workgroup, run at once: they are inside any copy, and workgroups are
        // outside.
        let is_inside = |axis: usize| match self.space.axes[axis].kind {
            AxisType::Upcast | AxisType::Unroll => true,
            kind if self.shares && kind.is_within_workgroup() => true,
            AxisType::Global if self.shares => false,
            _ => axis >= around,
        };
        let inside: SmallVec<[usize; 8]> =
            (0..self.axes.len()).filter(|&axis| self.axes[axis].is_some() && is_inside(axis)).collect();
        let conditions = match gate {
            Some(gate) if graph.as_const(alt).is_some() => self.conditions(graph, gate)?,
            Some(_) => return None,
            None => Vec::new(),
        };
        let ranges: SmallVec<[NodeId; 8]> = inside.iter().filter_map(|&axis| self.axes[axis]).collect();
        let regular = |sum: &Affine| sum.atoms().all(|atom| ranges.contains(&atom) || !reaches(graph, atom, &ranges));
        if !regular(index) || !conditions.iter().all(regular) {
            return None;
        }
        let groups = self.groups(index, &inside, &conditions).filter(|groups| !groups.is_empty())?;
        self.padding_is_apart(access, &groups).then_some(Region { inside, groups, conditions })
    }

    /// A gate as sums over the new axes that must all be positive; `None` where it is something else.
    fn conditions(&self, graph: &Graph, gate: NodeId) -> Option<Vec<Condition>> {
        let condition = |node: NodeId| match (graph.op(node), graph.sources(node)) {
            (Op::CmpLt, &[a, b]) if is_index(graph, a) => Some(self.sum(graph, b).minus(&self.sum(graph, a))),
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

    /// Elements from the first position of a group to just past its last one, without the trips that a schedule pads a range by.
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

    pub(super) fn group(&self, index: &Affine, axes: &[usize]) -> Option<Group> {
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

    /// A padded reduction adds zeros beyond its bound, so the copy must end at that bound: no other range may share the group.
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
}

/// Whether any of the Ranges is below `node`, also where data are loaded by them.
fn reaches(graph: &Graph, node: NodeId, ranges: &[NodeId]) -> bool {
    graph.reachable(&[node]).iter().any(|node| ranges.contains(node))
}
