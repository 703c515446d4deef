//! Many schedules of one kernel, timed, to judge the cost model and the heuristics.

use super::trial::Trial;
use crate::Result;
use crate::device;
use crate::lower::optimize::descent::{VISITS, descend, unscheduled};
use crate::lower::optimize::moves::{Candidate, candidate, neighbours};
use crate::lower::optimize::{Estimate, OptOp, Scheduler, Space};
use rustc_hash::FxHashMap;

/// Instructions of a loop body beyond which a schedule is not compiled.
const LARGEST: f64 = 1500.0;
/// A schedule is not timed if its estimate is this many times the best one.
const HOPELESS: f64 = 64.0;
/// How often the schedules that decide are timed again.
const ROUNDS: usize = 3;
/// The most steps of a random walk.
const STEPS: usize = 6;

/// A schedule that was timed.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The schedule.
    pub ops: Vec<OptOp>,
    /// The estimate of the cost model.
    pub estimate: Estimate,
    /// The measured time in nanoseconds.
    pub nanoseconds: f64,
}

/// Schedules of one kernel.
#[derive(Clone, Debug)]
pub struct Survey {
    /// All that were timed, each once.
    pub samples: Vec<Sample>,
    /// The one that is chosen without measuring.
    pub chosen: usize,
    /// The chosen one, improved step by step by the cost model.
    pub refined: Option<usize>,
    /// The one that the cost model finds step by step from no schedule.
    pub generic: Option<usize>,
}

/// Times up to `count` schedules of a kernel on a device: the one that the heuristics choose, the one that the cost model finds alone,
/// neighbours of the fastest ones, and random ones. `random(n)` is a number below `n`. `None` where a kernel cannot be tried: its sizes
/// are named, memory is short, or `is_wanted` says no to the time of the chosen schedule, in nanoseconds.
///
/// ```
/// use tinyspec_core::lower::{optimize::Scheduler, rangeify::rangeify};
/// use tinyspec_core::search::survey;
/// use tinyspec_core::{Function, Spec};
/// use tinyspec_ir::{DType, Dim, Graph};
///
/// let sums = Function::trace(&[Spec::new(DType::F32, &[64.into(), 64.into()] as &[Dim])], |x| vec![x[0].sum(1, false)])?;
/// let target = tinyspec_backends::Processor::chosen()?.target(1);
/// let schedule = rangeify(sums.body().graph(), sums.body().outputs(), &target)?;
/// let mut kernel = Graph::new();
/// let sink = kernel.import(&schedule.graph, &[schedule.calls[0].kernel], |_, _| Ok(None))?[0];
/// let scheduler = Scheduler::new(kernel, sink, &target)?;
/// let found = survey(&scheduler, "sums", "cpu", 6, &mut |below| 7 % below, &|_| true)?.unwrap();
/// println!("{:.0} ns, {} schedules", found.samples[found.chosen].nanoseconds, found.samples.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When there is no such device, it fails, or the kernel does not compile without a schedule.
pub fn survey(
    scheduler: &Scheduler,
    name: &str,
    device_name: &str,
    count: usize,
    random: &mut dyn FnMut(usize) -> usize,
    is_wanted: &dyn Fn(f64) -> bool,
) -> Result<Option<Survey>> {
    let device = device::device(device_name)?;
    let Some(trial) = Trial::new(scheduler, name, &device)? else { return Ok(None) };
    let mut timing = Timing { trial, samples: Vec::new(), numbers: FxHashMap::default(), least: f64::INFINITY };
    let Some(chosen) = timing.take(candidate(scheduler, scheduler.heuristics()))? else { return Ok(None) };
    if !is_wanted(timing.samples[chosen].nanoseconds) {
        return Ok(None);
    }
    let descended = |start| descend(scheduler, start, VISITS).and_then(|(_, ops)| candidate(scheduler, ops));
    let refined = timing.take(descended(timing.samples[chosen].ops.clone()))?;
    let generic = timing.take(descended(unscheduled(scheduler)))?;
    // A third near the best, by the model's order; a third near any, at random; a third from nothing.
    let rounds = count / 6;
    for _ in 0..rounds {
        let best = timing.fastest();
        timing.neighbours(&best, 2, None)?;
        let any = timing.samples[random(timing.samples.len())].ops.clone();
        timing.neighbours(&any, 2, Some(random))?;
        for _ in 0..2 {
            let mut ops = Vec::new();
            for _ in 0..=random(STEPS) {
                let mut next = neighbours(scheduler, &ops);
                if next.is_empty() {
                    break;
                }
                ops = next.swap_remove(random(next.len())).ops;
            }
            timing.take(candidate(scheduler, ops))?;
        }
    }
    timing.repeat(chosen, refined.into_iter().chain(generic))?;
    Ok(Some(Survey { samples: timing.samples, chosen, refined, generic }))
}

/// Judges the current cost model and heuristics by times, in nanoseconds, that an earlier [`survey`] measured. Runs nothing.
/// `None` where the schedule that is chosen now was not timed, or the kernel is no longer the one that was.
pub fn review(scheduler: &Scheduler, times: &[(Vec<OptOp>, f64)]) -> Option<Survey> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut numbers: FxHashMap<Space, usize> = FxHashMap::default();
    for (ops, nanoseconds) in times {
        let space = scheduler.space(ops).ok()?;
        samples.push(Sample { ops: ops.clone(), estimate: scheduler.estimate(&space), nanoseconds: *nanoseconds });
        numbers.insert(space, samples.len() - 1);
    }
    let number = |candidate: Option<Candidate>| candidate.and_then(|found| numbers.get(&found.space).copied());
    let descended = |start| number(descend(scheduler, start, VISITS).and_then(|(_, ops)| candidate(scheduler, ops)));
    let chosen = number(candidate(scheduler, scheduler.heuristics()))?;
    let (refined, generic) = (descended(samples[chosen].ops.clone()), descended(unscheduled(scheduler)));
    Some(Survey { samples, chosen, refined, generic })
}

struct Timing<'a> {
    trial: Trial<'a>,
    samples: Vec<Sample>,
    /// The numbers of the samples; `None` for schedules that could not be timed.
    numbers: FxHashMap<Space, Option<usize>>,
    /// The least estimate.
    least: f64,
}

impl Timing<'_> {
    /// The number of a schedule, which is timed unless it is known, hopeless or too large.
    fn take(&mut self, candidate: Option<Candidate>) -> Result<Option<usize>> {
        let Some(candidate) = candidate else { return Ok(None) };
        if let Some(&known) = self.numbers.get(&candidate.space) {
            return Ok(known);
        }
        let estimate = self.trial.scheduler().estimate(&candidate.space);
        let is_hopeless = estimate.code > LARGEST || estimate.nanoseconds() > HOPELESS * self.least;
        if is_hopeless && !self.samples.is_empty() {
            return Ok(None);
        }
        let nanoseconds = self.trial.measure(&candidate, f64::INFINITY)?;
        let number = nanoseconds.map(|_| self.samples.len());
        self.numbers.insert(candidate.space, number);
        if let Some(nanoseconds) = nanoseconds {
            self.least = self.least.min(estimate.nanoseconds());
            self.samples.push(Sample { ops: candidate.ops, estimate, nanoseconds });
        }
        Ok(number)
    }

    /// Times the schedules that decide again, in turn, because other programs disturb the clock.
    fn repeat(&mut self, chosen: usize, others: impl Iterator<Item = usize>) -> Result<()> {
        let first = |key: fn(&Sample) -> f64| {
            let mut order: Vec<usize> = (0..self.samples.len()).collect();
            order.sort_by(|&a, &b| key(&self.samples[a]).total_cmp(&key(&self.samples[b])));
            order.into_iter().take(3)
        };
        let judged = first(|sample| sample.estimate.nanoseconds()).chain(first(|sample| sample.nanoseconds));
        let mut judged: Vec<usize> = judged.chain(others).chain([chosen]).collect();
        judged.sort_unstable();
        judged.dedup();
        for _ in 0..ROUNDS {
            for &number in &judged {
                let Some(candidate) = candidate(self.trial.scheduler(), self.samples[number].ops.clone()) else {
                    continue;
                };
                let again = self.trial.measure(&candidate, f64::INFINITY)?.unwrap_or(f64::INFINITY);
                self.samples[number].nanoseconds = self.samples[number].nanoseconds.min(again);
            }
        }
        Ok(())
    }

    /// The fastest schedule so far.
    fn fastest(&self) -> Vec<OptOp> {
        let fastest = self.samples.iter().min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
        fastest.map(|sample| sample.ops.clone()).unwrap_or_default()
    }

    /// Times some neighbours that are new: the best by the model, or random ones.
    fn neighbours(
        &mut self,
        ops: &[OptOp],
        count: usize,
        random: Option<&mut dyn FnMut(usize) -> usize>,
    ) -> Result<()> {
        let scheduler = self.trial.scheduler();
        let mut next = neighbours(scheduler, ops);
        next.retain(|next| !self.numbers.contains_key(&next.space));
        match random {
            None => next.sort_by_cached_key(|next| scheduler.estimate(&next.space).nanoseconds() as u64),
            Some(random) => {
                for place in (1..next.len()).rev() {
                    next.swap(place, random(place + 1));
                }
            }
        }
        let before = self.samples.len();
        for candidate in next {
            if self.samples.len() >= before + count {
                break;
            }
            self.take(Some(candidate))?;
        }
        Ok(())
    }
}
