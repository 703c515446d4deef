//! Descent along the cost model, for kernels that the hand-written rules leave far above their lower bound: it improves the
//! schedule of the rules op by op, or starts from no schedule. It does not look at what the kernel computes.

use super::moves::{Candidate, candidate, neighbours};
use super::{Estimate, OptOp, Scheduler, Space, heuristics};

/// A schedule is improved if it takes this many times longer than the kernel's lower bound.
const REFINED: f64 = 2.0;
/// A descent from no schedule is tried if even the improved one takes this many times longer.
const POOR: f64 = 3.0;
/// Fraction of the best estimate so far below which a schedule found from nothing is taken: the model's own errors are smaller.
const CLEARLY: f64 = 0.5;
/// The same fraction where the rules have found vectors: Select knows ways to load them that the model does not.
const CLEARLY_WITH_VECTORS: f64 = 0.1;
/// Fraction of the rules' estimate below which their improved schedule is taken: errors that both estimates share cancel.
const IMPROVED: f64 = 0.6;
/// Fraction of the last estimate that a step has to get below.
const STEP: f64 = 0.95;
/// Nanoseconds of a kernel below which a better schedule would not earn back the time it takes to find one.
const WORTH: f64 = 20_000.0;
/// Vector instructions of a loop body, beyond which compiling it takes long.
const LARGEST: f64 = 1500.0;
/// Vector instructions of loop bodies that double the score of a schedule.
const CROWDED: f64 = 4000.0;
/// Nodes estimated, over all schedules, before a descent ends: some 10 ms.
pub(crate) const VISITS: f64 = 60_000.0;
/// The same per nanosecond that a run may save: a descent takes at most as long as a hundred runs save.
const VISITS_PER_NANOSECOND: f64 = 0.6;

/// The schedule that the model clearly prefers, else `ops`.
pub(super) fn improve(scheduler: &Scheduler, ops: Vec<OptOp>) -> Vec<OptOp> {
    // The model does not cover workgroups.
    if scheduler.target().workgroups.is_some() {
        return ops;
    }
    let Ok(space) = scheduler.space(&ops) else { return ops };
    // It is inaccurate for indices with quotients or data, but vectors gain more than its error.
    if !scheduler.is_regular() && has_vectors(scheduler, &space) {
        return ops;
    }
    let (usual, bound) = (scheduler.estimate(&space), scheduler.bound().on_one_thread());
    let threads = usual.threads.max(1.0);
    let is_within = |estimate: f64, times: f64| estimate < times * bound;
    if usual.nanoseconds() < WORTH || is_within(usual.on_one_thread(), REFINED) {
        return ops;
    }
    let budget = |nanoseconds: f64| (VISITS_PER_NANOSECOND * (nanoseconds - bound / threads)).min(VISITS);
    let refined = descend(scheduler, ops.clone(), budget(usual.nanoseconds()))
        .filter(|(cost, _)| *cost < IMPROVED * usual.nanoseconds());
    let (least, ops) = refined.unwrap_or((usual.nanoseconds(), ops));
    if is_within(least * threads, POOR) {
        return ops;
    }
    let clearly = if has_vectors(scheduler, &space) { CLEARLY_WITH_VECTORS } else { CLEARLY };
    match descend(scheduler, unscheduled(scheduler), budget(least)) {
        Some((cost, other)) if cost < clearly * least => other,
        _ => ops,
    }
}

/// The schedule that a descent from nothing begins with.
pub(crate) fn unscheduled(scheduler: &Scheduler) -> Vec<OptOp> {
    heuristics::nontemporal(scheduler.graph(), scheduler.kernel(), scheduler.target()).into_iter().collect()
}

/// Takes steps from a schedule until none improves it or `most_visits` nodes were estimated; returns the last schedule with its
/// estimate in nanoseconds.
pub(crate) fn descend(scheduler: &Scheduler, start: Vec<OptOp>, most_visits: f64) -> Option<(f64, Vec<OptOp>)> {
    let mut best = candidate(scheduler, start)?;
    let mut least = score(&scheduler.estimate(&best.space));
    let mut visits = 0;
    loop {
        let mut others = neighbours(scheduler, &best.ops);
        // The model does not count the traffic of accumulators in memory.
        let sums_rows = best.space.sums_rows();
        others.retain(|other| sums_rows || !other.space.sums_rows());
        visits += others.len() * scheduler.kernel().order.len();
        if visits as f64 > most_visits {
            break;
        }
        let costs = others.into_iter().map(|other| (scheduler.estimate(&other.space), other));
        let fits = costs.filter(|(estimate, _)| estimate.code <= LARGEST);
        let costs = fits.map(|(estimate, other)| (score(&estimate), other));
        let next: Option<(f64, Candidate)> = costs.min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((cost, other)) = next.filter(|(cost, _)| *cost < STEP * least) else { break };
        (least, best) = (cost, other);
    }
    Some((scheduler.estimate(&best.space).nanoseconds(), best.ops))
}

/// The objective of a descent: nanoseconds, weighted by code size, since large bodies compile slowly and crowd the instruction
/// caches.
fn score(estimate: &Estimate) -> f64 {
    estimate.nanoseconds() * (1.0 + estimate.code / CROWDED)
}

/// Whether the register tile has at least as many elements as a vector.
fn has_vectors(scheduler: &Scheduler, space: &Space) -> bool {
    let tile = space.axes.iter().filter(|axis| axis.is_tile()).map(|axis| axis.trips.unwrap_or(1));
    tile.fold(1, i64::saturating_mul) >= scheduler.lanes()
}
