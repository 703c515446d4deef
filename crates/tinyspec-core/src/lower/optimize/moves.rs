//! The neighbours of a schedule: one more op, one op replaced, or one left out.

use super::transforms::{Order, Padto, Split, additions};
use super::{OptOp, Scheduler, Space};

/// A schedule and the axes it leads to.
pub(crate) struct Candidate {
    pub ops: Vec<OptOp>,
    pub space: Space,
}

/// All schedules that are one step away and fit.
pub(crate) fn neighbours(scheduler: &Scheduler, ops: &[OptOp]) -> Vec<Candidate> {
    let mut lists: Vec<Vec<OptOp>> = Vec::new();
    let is_alone = ops.iter().any(|op| op.order() == Order::Alone);
    // Ops that change axes come before those that fix them.
    let (before, behind) = ops.split_at(ops.iter().position(|op| op.order() == Order::FixesAxes).unwrap_or(ops.len()));
    if let Some(space) = scheduler.space(before).ok().filter(|_| !is_alone) {
        lists.extend(additions(scheduler, &space).map(|more| [before, &more, behind].concat()));
        let split = with_shared_split(scheduler, before).unwrap_or_default();
        lists.extend(split.into_iter().map(|start| [&start[..], behind].concat()));
    }
    let Ok(whole) = scheduler.space(ops) else { return Vec::new() };
    for (position, op) in ops.iter().enumerate() {
        let removed = (op.order() != Order::Alone).then(Vec::new);
        let replaced = op.replacements(&whole).into_iter().map(|other| vec![other]);
        for other in removed.into_iter().chain(replaced) {
            let mut list = ops.to_vec();
            list.splice(position..=position, other);
            lists.push(list);
        }
    }
    lists.into_iter().filter_map(|ops| candidate(scheduler, ops)).collect()
}

/// The schedules in which the axis that the threads share is split or padded first; only the remaining loop is shared.
fn with_shared_split(scheduler: &Scheduler, ops: &[OptOp]) -> Option<Vec<Vec<OptOp>>> {
    let (position, shared) = ops.iter().enumerate().find_map(|(position, op)| match op {
        OptOp::Split(Split { axis, target, .. }) if target.is_parallel() => Some((position, *axis)),
        _ => None,
    })?;
    let mut rest = ops.to_vec();
    rest.remove(position);
    let space = scheduler.space(&rest).ok()?;
    let is_of_shared = |more: &Vec<OptOp>| match more.first() {
        Some(OptOp::Split(Split { axis, .. }) | OptOp::Padto(Padto { axis, .. })) => axis.shares_range(shared),
        _ => false,
    };
    Some(additions(scheduler, &space).filter(is_of_shared).map(|more| [&rest[..], &more].concat()).collect())
}

/// Shares the outermost loop among threads where nothing is shared yet; none where the ops do not fit.
pub(crate) fn candidate(scheduler: &Scheduler, ops: Vec<OptOp>) -> Option<Candidate> {
    let (ops, space) = scheduler.shared(ops).ok()?;
    Some(Candidate { ops, space })
}
