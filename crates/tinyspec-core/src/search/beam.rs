//! Beam search: the best few schedules are extended; the cost model decides what to try next.

use super::store::Record;
use super::trial::Trial;
use crate::Result;
use crate::lower::optimize::OptOp;
use crate::lower::optimize::moves::{Candidate, candidate, neighbours};
use crate::profile::{self, Level};
use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};

/// The width of the beam.
const WIDTH: usize = 6;
/// Neighbours that are timed in each round.
const TRIED: usize = 24;
/// Rounds without a better schedule after which the search ends.
const PATIENCE: usize = 3;
/// Instructions of a loop body beyond which compiling takes longer than trying several others.
const LARGEST: f64 = 3000.0;
/// A schedule must win by this factor, or the clock may have erred.
const CLEARLY: f64 = 0.98;
/// A search does not start from a schedule that is slower by this factor according to the model.
const HOPELESS: f64 = 32.0;
/// Schedules whose estimates differ by less than this factor count as equal to the model.
const ALIKE: f64 = 1.05;

/// A schedule and its time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Found {
    pub nanoseconds: f64,
    pub ops: Vec<OptOp>,
}

/// Searches for `budget`, continuing an earlier search.
pub(super) fn search(trial: &Trial, earlier: Option<Record>, budget: Duration) -> Result<Record> {
    let (scheduler, start) = (trial.scheduler(), Instant::now());
    let mut tried = FxHashSet::default();
    let mut beam: Vec<Found> = Vec::new();
    let heuristics = scheduler.heuristics();
    let mut first: Vec<Candidate> = Vec::new();
    let known = earlier.iter().flat_map(|record| record.beam.iter().map(|found| found.ops.clone()));
    let mut limit = f64::INFINITY;
    for ops in std::iter::once(heuristics.clone()).chain(known).chain([Vec::new()]) {
        let Some(start) = candidate(scheduler, ops) else { continue };
        let estimate = scheduler.estimate(&start.space).nanoseconds();
        if estimate <= limit && tried.insert(start.space.clone()) {
            limit = limit.min(HOPELESS * estimate);
            first.push(start);
        }
    }
    let mut baseline = f64::INFINITY;
    let mut candidates = first;
    let (mut idle, mut rounds) = (0, 0);
    // The model's estimate and the measured time of each schedule.
    let mut timed: Vec<(f64, f64)> = Vec::new();
    let is_done = loop {
        let before = beam.first().map_or(f64::INFINITY, |best| best.nanoseconds);
        for candidate in candidates {
            // The heuristics are always timed, as the baseline.
            if baseline.is_finite() && start.elapsed() >= budget {
                break;
            }
            let limit = beam.last().filter(|_| beam.len() == WIDTH).map_or(f64::INFINITY, |worst| worst.nanoseconds);
            let Some(nanoseconds) = trial.measure(&candidate, limit)? else { continue };
            timed.push((scheduler.estimate(&candidate.space).nanoseconds(), nanoseconds));
            if candidate.ops == heuristics {
                baseline = nanoseconds;
            }
            beam.push(Found { nanoseconds, ops: candidate.ops });
            beam.sort_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
            beam.truncate(WIDTH);
        }
        let after = beam.first().map_or(f64::INFINITY, |best| best.nanoseconds);
        idle = if rounds > 0 && after > before * CLEARLY { idle + 1 } else { 0 };
        rounds += 1;
        if idle >= PATIENCE {
            break true;
        }
        if start.elapsed() >= budget {
            break false;
        }
        let mut next: Vec<(f64, Candidate)> = Vec::new();
        for found in &beam {
            let new = neighbours(scheduler, &found.ops).into_iter();
            let new = new.filter(|neighbour| !tried.contains(&neighbour.space));
            let new = new.map(|new| (scheduler.estimate(&new.space), new)).filter(|(cost, _)| cost.code <= LARGEST);
            next.extend(new.map(|(cost, new)| (cost.nanoseconds(), new)));
        }
        next.sort_by(|a, b| a.0.total_cmp(&b.0));
        next.dedup_by(|a, b| a.1.space == b.1.space);
        next.truncate(TRIED);
        if next.is_empty() {
            break true;
        }
        candidates = next.into_iter().map(|(_, candidate)| candidate).collect();
        tried.extend(candidates.iter().map(|candidate| candidate.space.clone()));
    };
    confirm(trial, &mut beam, &heuristics, &mut baseline)?;
    if profile::shows(Level::Schedules) {
        let after = beam.first().map_or(baseline, |best| best.nanoseconds);
        let (name, seconds) = (trial.name(), start.elapsed().as_secs_f64());
        let (before, after) = (baseline / 1e3, after / 1e3);
        let (count, agreement) = (timed.len(), rank_correlation(&timed));
        let least = timed.iter().map(|pair| pair.0).fold(f64::INFINITY, f64::min);
        let alike = timed.iter().filter(|pair| pair.0 <= ALIKE * least).count();
        tinyspec_backends::tell!(
            "── {name}: {count} schedules timed in {seconds:.1} s: {before:.1} µs by the heuristics, {after:.1} µs found; \
             the model's order agrees with the clock's by {agreement:.2}, and {alike} are within {:.0} % of its best",
            (ALIKE - 1.0) * 100.0
        );
    }
    let searched = earlier.map_or(Duration::ZERO, |record| record.searched) + start.elapsed();
    Ok(Record { name: trial.name().into(), searched, is_done, heuristics: baseline, beam })
}

/// Times the winner and the heuristics again, in turn, so that noise does not decide.
fn confirm(trial: &Trial, beam: &mut Vec<Found>, heuristics: &[OptOp], baseline: &mut f64) -> Result<()> {
    let Some(best) = beam.first().filter(|best| best.ops != heuristics) else { return Ok(()) };
    let scheduler = trial.scheduler();
    let (Some(best), Some(usual)) = (candidate(scheduler, best.ops.clone()), candidate(scheduler, heuristics.to_vec()))
    else {
        return Ok(());
    };
    let mut times = [f64::INFINITY; 2];
    for _ in 0..3 {
        for (time, candidate) in times.iter_mut().zip([&best, &usual]) {
            *time = trial.measure(candidate, f64::INFINITY)?.unwrap_or(f64::INFINITY).min(*time);
        }
    }
    *baseline = times[1];
    beam[0].nanoseconds = times[0];
    if times[0] > times[1] * CLEARLY {
        beam.retain(|found| found.ops != heuristics);
        beam.insert(0, Found { nanoseconds: times[1], ops: heuristics.to_vec() });
    }
    Ok(())
}

/// Spearman's rank correlation: 1 if both numbers order the pairs alike, 0 if they are unrelated.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |value: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let below = |of: f64| pairs.iter().filter(|pair| value(pair) < of).count();
        let equal = |of: f64| pairs.iter().filter(|pair| value(pair) == of).count();
        pairs.iter().map(value).map(|of| below(of) as f64 + 0.5 * (equal(of) as f64 - 1.0)).collect()
    };
    let (a, b) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt().max(f64::MIN_POSITIVE)
}
