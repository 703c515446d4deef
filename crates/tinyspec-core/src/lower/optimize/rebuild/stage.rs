//! Staging: a LOCAL copy of the elements that some axes read, made once outside of them.
//!
//! The axes that walk along one dim of the source form a *group*, such as the positions and the taps of a window. The
//! copy walks the group's extent once, so elements that windows share are copied once, and positions outside of the
//! source become zeros of the copy: reads of it need no gate.

mod first;
mod groups;
mod layout;
mod share;
mod walk;

use self::groups::Region;
use self::layout::Layout;
use self::walk::CopyWalk;
use super::packed_dot::Word;
use super::{Rebuild, gated_load, unaliased};
use crate::lower::fold::both;
use crate::lower::loops::closed;
use crate::lower::optimize::kernel::Access;
use crate::lower::optimize::space::Packing;
use crate::lower::optimize::transforms::Copier;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{Builder, Graph, NodeId, Op, Result};

/// Axes along one dim of the source, each with the amount that a trip adds to the position in it.
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

/// The form in which a copy holds the elements.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// As it is.
    Same,
    /// As the type of this Cast.
    Cast(NodeId),
    /// Several elements in a word.
    Words(Word),
}

/// `a < b`, as one sum that must be positive.
type Condition = Affine;

impl Rebuild<'_> {
    /// Reads a LOCAL copy of the elements that the axes inside of the staged loop access; `None` where that is not
    /// regular.
    pub(super) fn stage(
        &mut self,
        graph: &mut Graph,
        access: &Access,
        index: &Affine,
        (alt, gate): (NodeId, Option<NodeId>),
        form: Form,
        packing: Packing,
    ) -> Result<Option<NodeId>> {
        let Some(Region { inside, groups, conditions }) = self.region(graph, access, index, (alt, gate), packing)
        else {
            return Ok(None);
        };
        let layout = self.arrange(index, groups, form);
        let mut walk = self.walk(graph, access, &layout, &inside, form, packing)?;
        let source = self.moved(index, &layout.groups, &walk.positions, &|group| group.unit);
        for condition in &conditions {
            let rate = |group: &Group| {
                let mut steps = group.steps.iter();
                steps
                    .find_map(|&(axis, step)| self.axes[axis].map(|range| condition.coefficient(range) / step))
                    .unwrap_or(0)
            };
            let condition = self.moved(condition, &layout.groups, &walk.positions, &rate);
            let holds = less(graph, &Affine::number(0), &condition)?;
            walk.inside_source = both(graph, walk.inside_source, Some(holds))?;
        }
        if self.hulls(access, &layout.groups, &walk.positions).is_none() {
            return Ok(None);
        }
        let value = self.copied(graph, access, &source, alt, (&layout, &walk), form)?;
        let filled = self.filled(graph, value, &layout, &walk)?;
        if packing.by == Copier::Kernel {
            self.copied_before.push(filled);
        }
        let read = layout.groups.iter().zip(&layout.strides).fold(Affine::default(), |sum, (group, &stride)| {
            let steps = group.steps.iter().filter_map(|&(axis, step)| Some((self.axes[axis]?, step)));
            let at =
                steps.fold(Affine::number(-group.low), |at, (range, step)| at.plus(&Affine::atom(range).scale(step)));
            sum.plus(&at.scale(stride))
        });
        gated_load(graph, filled, &read, alt, None).map(Some)
    }

    /// The value that a copy stores at each position.
    fn copied(
        &mut self,
        graph: &mut Graph,
        access: &Access,
        source: &Affine,
        alt: NodeId,
        (layout, walk): (&Layout, &CopyWalk),
        form: Form,
    ) -> Result<NodeId> {
        let element = |rebuild: &Self, graph: &mut Graph, source: &Affine| {
            let mut inside = walk.inside_source;
            for bound in rebuild.hulls(access, &layout.groups, &walk.positions).unwrap_or_default() {
                let holds = less(graph, &Affine::number(0), &bound)?;
                inside = both(graph, inside, Some(holds))?;
            }
            gated_load(graph, access.buffer, source, alt, inside)
        };
        match form {
            Form::Same => element(self, graph, source),
            Form::Cast(cast) => {
                let value = element(self, graph, source)?;
                let arg = graph.arg(cast).clone();
                graph.add(Op::Cast, &[value], arg)
            }
            Form::Words(word) => {
                self.joined(graph, word, |rebuild, graph, offset| element(rebuild, graph, &source.offset(offset)))
            }
        }
    }

    /// Fills the buffer of a copy: the buffer, after its stores.
    fn filled(&mut self, graph: &mut Graph, value: NodeId, layout: &Layout, walk: &CopyWalk) -> Result<NodeId> {
        let places = walk.positions.iter().zip(&layout.strides);
        let target = places.fold(Affine::default(), |sum, (at, &stride)| sum.plus(&at.scale(stride)));
        let local = self.local(graph, graph.dtype(value), layout.size)?;
        let gate = walk.inside_copy.filter(|&gate| graph.as_int(gate).is_none());
        let copy = local.store(graph, &target, value, gate)?;
        let copy = closed(graph, copy, &walk.loops)?;
        Ok(local.after(graph, [copy])?.node())
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
            // The reach of the other ranges of a window beyond this one.
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
