//! The neighbours of a schedule: one more op, one op replaced, or one left out.

use super::transforms::{Order, additions};
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
    // What changes axes comes before what fixes them.
    let (before, behind) = ops.split_at(ops.iter().position(|op| op.order() == Order::FixesAxes).unwrap_or(ops.len()));
    if let Some(space) = scheduler.space(before).ok().filter(|_| !is_alone) {
        lists.extend(additions(scheduler, &space).map(|more| [before, &more, behind].concat()));
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

/// Shares the outermost loop among threads where nothing is shared yet; none where the ops do not fit.
pub(crate) fn candidate(scheduler: &Scheduler, ops: Vec<OptOp>) -> Option<Candidate> {
    let (ops, space) = scheduler.shared(ops).ok()?;
    Some(Candidate { ops, space })
}
