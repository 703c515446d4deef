//! Kernels that the hand-written rules leave far from what the processor could do: the cost model finds them a schedule,
//! a step at a time. It asks nothing of what the kernel computes.

use super::moves::{Candidate, candidate, neighbours};
use super::{OptOp, Scheduler, Space, heuristics};

/// A schedule is poor if it takes this many times longer than the kernel's bound.
const POOR: f64 = 3.0;
/// Fraction of the usual estimate below which another schedule is taken: the model's own errors are smaller.
const CLEARLY: f64 = 0.5;
/// The same fraction where the rules have found vectors: Select knows ways to load them that the model does not.
const CLEARLY_WITH_VECTORS: f64 = 0.1;
/// Fraction of the last estimate that a step has to get below.
const STEP: f64 = 0.95;
/// Nanoseconds of a kernel below which a better schedule would not earn back the time it takes to find one.
const WORTH: f64 = 50_000.0;
/// Vector instructions of a loop body, beyond which compiling it takes long.
const LARGEST: f64 = 1500.0;
/// Nodes estimated, over all schedules, before a descent ends: some 10 ms.
const VISITS: usize = 200_000;

/// The schedule that the model prefers, if it prefers another one clearly.
pub(super) fn improve(scheduler: &Scheduler, ops: Vec<OptOp>) -> Vec<OptOp> {
    // The model knows nothing of workgroups, and cannot tell where data or quotients lead.
    if scheduler.target().workgroups.is_some() || !scheduler.is_regular() {
        return ops;
    }
    let Ok(space) = scheduler.space(&ops) else { return ops };
    let estimate = scheduler.estimate(&space);
    let usual = estimate.nanoseconds();
    if usual < WORTH || estimate.on_one_thread() < POOR * scheduler.bound().on_one_thread() {
        return ops;
    }
    let clearly = if has_vectors(scheduler, &space) { CLEARLY_WITH_VECTORS } else { CLEARLY };
    match descend(scheduler, unscheduled(scheduler)) {
        Some((cost, other)) if cost < clearly * usual => other,
        _ => ops,
    }
}

/// The schedule that a descent from nothing begins with.
pub(crate) fn unscheduled(scheduler: &Scheduler) -> Vec<OptOp> {
    heuristics::nontemporal(scheduler.graph(), scheduler.kernel(), scheduler.target()).into_iter().collect()
}

/// Takes steps from a schedule until none improves it; returns the last one with its estimate in nanoseconds.
pub(crate) fn descend(scheduler: &Scheduler, start: Vec<OptOp>) -> Option<(f64, Vec<OptOp>)> {
    let mut best = candidate(scheduler, start)?;
    let mut least = scheduler.estimate(&best.space).nanoseconds();
    let mut visits = 0;
    loop {
        let others = neighbours(scheduler, &best.ops);
        visits += others.len() * scheduler.kernel().order.len();
        if visits > VISITS {
            break;
        }
        let costs = others.into_iter().map(|other| (scheduler.estimate(&other.space), other));
        let fits = costs.filter(|(estimate, _)| estimate.code <= LARGEST);
        let costs = fits.map(|(estimate, other)| (estimate.nanoseconds(), other));
        let next: Option<(f64, Candidate)> = costs.min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((cost, other)) = next.filter(|(cost, _)| *cost < STEP * least) else { break };
        (least, best) = (cost, other);
    }
    Some((least, best.ops))
}

/// Is the tile as large as a vector?
fn has_vectors(scheduler: &Scheduler, space: &Space) -> bool {
    let tile = space.axes.iter().filter(|axis| axis.is_tile()).map(|axis| axis.trips.unwrap_or(1));
    tile.fold(1, i64::saturating_mul) >= scheduler.lanes()
}
