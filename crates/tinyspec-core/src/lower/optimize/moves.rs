//! The neighbours of a schedule: one more op, one op changed, or one left out.

use super::{Axis, Blocking, OptOp, Scheduler, Space};
use tinyspec_ir::AxisType;

/// Trips that register tiles may have along an axis.
const TILES: [i64; 17] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64, 96, 128];
/// Trips of the blocks that loops are cut into.
const BLOCKS: [i64; 7] = [8, 16, 32, 64, 128, 256, 512];
/// Vectors of the strips that sums in blocks are made for, rows of their tiles, and tiles of their blocks.
const STRIPS: [i64; 5] = [1, 2, 3, 4, 6];
const ROWS: [i64; 8] = [2, 3, 4, 6, 8, 10, 12, 14];
const IN_A_BLOCK: [i64; 6] = [2, 4, 8, 16, 32, 64];

/// A schedule and the axes it leads to.
pub(crate) struct Candidate {
    pub ops: Vec<OptOp>,
    pub space: Space,
}

/// All schedules that are one step away and fit.
pub(crate) fn neighbours(scheduler: &Scheduler, ops: &[OptOp]) -> Vec<Candidate> {
    let Ok(space) = scheduler.space(ops) else { return Vec::new() };
    let mut lists: Vec<Vec<OptOp>> = Vec::new();
    // Once loops are staggered the axes stay as they are: what changes them comes before.
    let is_last = |op: &OptOp| matches!(op, OptOp::Stagger { .. });
    let (before, last) = ops.split_at(ops.iter().position(is_last).unwrap_or(ops.len()));
    let before_last = if last.is_empty() { Some(space) } else { scheduler.space(before).ok() };
    for more in before_last.iter().flat_map(|space| extensions(scheduler, space)) {
        lists.push(before.iter().cloned().chain(more).chain(last.iter().cloned()).collect());
    }
    for position in 0..ops.len() {
        for other in variations(&ops[position]) {
            let mut list = ops.to_vec();
            list.splice(position..=position, other);
            lists.push(list);
        }
    }
    lists.into_iter().filter_map(|ops| candidate(scheduler, ops)).collect()
}

/// Shares the outermost loop among threads where nothing is shared yet; none where the ops do not fit.
pub(crate) fn candidate(scheduler: &Scheduler, ops: Vec<OptOp>) -> Option<Candidate> {
    let (ops, space) = scheduler.shared(ops).ok()?;
    Some(Candidate { ops, space })
}

/// Ops that could come next.
fn extensions(scheduler: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
    let mut more = Vec::new();
    if space.blocks.is_some() {
        return more;
    }
    let is_loop = |axis: &Axis| matches!(axis.kind, AxisType::Loop | AxisType::Reduce) && axis.trips != Some(1);
    let loops: Vec<usize> = (0..space.axes.len()).filter(|&axis| is_loop(&space.axes[axis])).collect();
    let walks_several_times = scheduler.kernel().reductions.len() > 1;
    for &axis in &loops {
        let Some(trips) = space.axes[axis].trips else { continue };
        let (tile, block) = match space.axes[axis].kind.is_reduce() {
            true => (AxisType::Unroll, AxisType::Reduce),
            false => (AxisType::Upcast, AxisType::Loop),
        };
        for factor in TILES.into_iter().filter(|&factor| factor <= trips) {
            let split = OptOp::Split { axis, factor, target: tile, top: false };
            match trips % factor {
                0 => more.push(vec![split]),
                // Padding that computes an eighth more can still pay.
                rest if (factor - rest) * 8 <= trips => {
                    more.push(vec![OptOp::Padto { axis, multiple: factor }, split]);
                }
                _ => {}
            }
        }
        for factor in BLOCKS.into_iter().filter(|&factor| factor < trips && trips % factor == 0) {
            more.push(vec![OptOp::Split { axis, factor, target: block, top: false }]);
        }
        if walks_several_times && space.axes[axis].kind == AxisType::Loop {
            more.push(vec![OptOp::Stagger { axis }]);
        }
        let later = loops.iter().filter(|&&other| other > axis);
        more.extend(later.map(|&other| vec![OptOp::Swap(axis, other)]));
    }
    if !space.nontemporal {
        more.push(vec![OptOp::Nontemporal]);
    }
    for &slot in space.params() {
        let around = (0..space.axes.len()).filter(|&axis| !space.axes[axis].is_tile());
        if !space.is_staged(slot) {
            more.extend(around.map(|at| vec![OptOp::Stage { slot, at, first: false }]));
        }
    }
    more
}

/// What may stand in the place of an op: nothing, or the same with another number.
fn variations(op: &OptOp) -> Vec<Vec<OptOp>> {
    let mut others = vec![Vec::new()];
    match *op {
        OptOp::Split { axis, factor, target, top } if target != AxisType::Global => {
            let tiled = matches!(target, AxisType::Upcast | AxisType::Unroll);
            let factors: &[i64] = if tiled { &TILES } else { &BLOCKS };
            let other = factors.iter().filter(|&&other| other != factor);
            others.extend(other.map(|&factor| vec![OptOp::Split { axis, factor, target, top }]));
        }
        OptOp::Padto { axis, multiple } => {
            let other = TILES.into_iter().filter(|&other| other != multiple);
            others.extend(other.map(|multiple| vec![OptOp::Padto { axis, multiple }]));
        }
        OptOp::Block(blocking) => {
            let blocks = STRIPS.map(|vectors| Blocking { vectors, ..blocking }).into_iter();
            let blocks = blocks.chain(ROWS.map(|rows| Blocking { rows, ..blocking }));
            let blocks = blocks.chain(IN_A_BLOCK.map(|tiles| Blocking { tiles, ..blocking }));
            return blocks.map(|blocking| vec![OptOp::Block(blocking)]).collect();
        }
        OptOp::Stage { slot, at, first } => {
            others.extend((0..at + 3).filter(|&other| other != at).map(|at| vec![OptOp::Stage { slot, at, first }]));
            others.push(vec![OptOp::Stage { slot, at, first: !first }]);
        }
        _ => {}
    }
    others
}
