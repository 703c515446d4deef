//! One run of the benchmarks: criterion times the cases that its arguments select, the rows collect here.

use std::io;
use std::time::{Duration, Instant};

use criterion::Criterion;
use tinyspec_benches::limits::{Limit, Machine};
use tinyspec_benches::report::{self, Measure, Row};

/// Samples of a case; few, since each is itself a mean over many iterations.
const SAMPLES: usize = 15;
const WARM_UP: Duration = Duration::from_millis(300);
const MEASUREMENT: Duration = Duration::from_millis(1200);
/// A sample, and a limit measured between samples, takes at least so long.
const BESIDE: Duration = Duration::from_millis(5);

/// A benchmark.
pub struct Case<'a> {
    /// Family, dtype, size and threads: `gemm/f32/1024/1t`.
    pub name: String,
    /// What one call of `run` does.
    pub measure: Measure,
    /// What bounds it, and how much of that one call takes, in the unit of the limit; the slowest decides.
    pub bounds: Vec<(Limit, f64)>,
    /// One iteration.
    pub run: &'a mut dyn FnMut(),
    /// One iteration of another library that does the same.
    pub peer: Option<&'a mut dyn FnMut()>,
}

/// Criterion with the rows it led to.
pub struct Session {
    criterion: Criterion,
    machine: Machine,
    rows: Vec<Row>,
}

impl Session {
    /// A run as the command line asks: a filter, `--list`, `--test` and criterion's other options.
    pub fn from_arguments() -> Self {
        let criterion = Criterion::default()
            .sample_size(SAMPLES)
            .warm_up_time(WARM_UP)
            .measurement_time(MEASUREMENT)
            .configure_from_args();
        Self { criterion, machine: Machine::new(), rows: Vec::new() }
    }

    /// One thread, and all there are.
    pub fn thread_counts(&self) -> Vec<usize> {
        self.machine.thread_counts()
    }

    /// The selected limits of the machine; the others are measured when a row needs them.
    pub fn limits(&mut self) {
        for limit in self.machine.limits() {
            let machine = &mut self.machine;
            let seconds = median(&mut self.criterion, &limit.to_string(), |iterations| machine.time(limit, iterations));
            if let Some(seconds) = seconds {
                self.machine.keep(limit, limit.measure().value(seconds));
            }
        }
    }

    /// Runs a case, if it is selected, and its peer right after it. The clock moves, and what else runs on the machine slows
    /// memory from one second to the next: so limits are measured between the samples of the case, as long as these take.
    pub fn bench(&mut self, case: Case<'_>) {
        let Case { name, measure, bounds, run, peer } = case;
        let limits: Vec<Limit> = bounds.iter().map(|bound| bound.0).collect();
        let (criterion, machine) = (&mut self.criterion, &mut self.machine);
        let mut known: Option<(u64, Vec<u64>)> = None;
        let mut beside: Vec<Vec<f64>> = vec![Vec::new(); limits.len()];
        let seconds = median(criterion, &name, |count| {
            let (own, iterations) = known.get_or_insert_with(|| {
                let of_limits = limits.iter().map(|&limit| machine.iterations(limit, BESIDE)).collect();
                (lasting(run), of_limits)
            });
            let seconds = warm(run, *own).as_secs_f64() / *own as f64;
            for ((samples, &limit), &iterations) in beside.iter_mut().zip(&limits).zip(iterations.iter()) {
                machine.time(limit, 1);
                samples.push(machine.seconds(limit, iterations));
            }
            Duration::from_secs_f64(seconds * count as f64)
        });
        let Some(seconds) = seconds else { return };
        for (limit, samples) in limits.into_iter().zip(&mut beside) {
            samples.sort_by(f64::total_cmp);
            if let Some(&seconds) = samples.get(samples.len() / 2) {
                machine.keep(limit, limit.measure().value(seconds));
            }
        }
        let mut row = Row::new(&name, measure, measure.value(seconds));
        let times = bounds.into_iter().map(|(limit, amount)| amount / (machine.rate(limit) * 1e9));
        if let Some(least) = times.reduce(f64::max) {
            row = row.with_limit(measure.value(least));
        }
        if let Some(peer) = peer {
            let own = lasting(peer);
            let seconds = median(criterion, &format!("{name}/peer"), |count| {
                Duration::from_secs_f64(warm(peer, own).as_secs_f64() / own as f64 * count as f64)
            });
            if let Some(seconds) = seconds {
                row = row.with_peer(measure.value(seconds));
            }
        }
        self.rows.push(row);
    }

    /// As [`selects`].
    pub fn selects(&self, name: &str) -> bool {
        selects(name)
    }

    /// As [`Session::selects`], and is this a run that measures? `--list` and `--test` are not.
    pub fn measures(&self, name: &str) -> bool {
        let lists = std::env::args().any(|argument| argument == "--list" || argument == "--test");
        !lists && self.selects(name)
    }

    /// A row measured elsewhere, in µs.
    pub fn note(&mut self, name: &str, micros: f64) {
        self.rows.push(Row::new(name, Measure::Times(1.0), micros));
    }

    /// A row that is a number of things.
    pub fn count(&mut self, name: &str, count: u64) {
        self.rows.push(Row { unit: "", ..Row::new(name, Measure::Times(1.0), count as f64) });
    }

    /// Prints and writes what was measured.
    pub fn finish(self) -> io::Result<()> {
        let rows: Vec<Row> = self.machine.rows().into_iter().chain(self.rows).collect();
        // Nothing was measured under `--list` and `--test`, or when no name matched: the last report stays.
        if !rows.is_empty() {
            report::publish(&rows)?;
        }
        Ok(())
    }
}

/// Do the arguments select this benchmark? So that nothing is prepared in vain.
pub fn selects(name: &str) -> bool {
    let mut filters = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    filters.peek().is_none() || filters.any(|filter| filter.split('|').any(|part| name.contains(part)))
}

/// So many iterations, after one that finds the caches as something else has left them.
fn warm(run: &mut dyn FnMut(), iterations: u64) -> Duration {
    run();
    let start = Instant::now();
    for _ in 0..iterations {
        run();
    }
    start.elapsed()
}

/// How many iterations take as long as a limit is measured.
fn lasting(run: &mut dyn FnMut()) -> u64 {
    let mut iterations = 1;
    while warm(run, iterations) < BESIDE {
        iterations *= 2;
    }
    iterations
}

/// The median seconds of an iteration, or none if the arguments ask for no measurement of this benchmark.
fn median(criterion: &mut Criterion, name: &str, mut time: impl FnMut(u64) -> Duration) -> Option<f64> {
    let mut samples = Vec::new();
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let elapsed = time(iterations);
            samples.push(elapsed.as_secs_f64() / iterations as f64);
            elapsed
        });
    });
    // Criterion warms up with the same closure: what it measures are the last calls. `--test` makes just one.
    let warm_up = samples.len().checked_sub(SAMPLES)?;
    let measured = &mut samples[warm_up..];
    measured.sort_by(f64::total_cmp);
    measured.get(SAMPLES / 2).copied()
}
