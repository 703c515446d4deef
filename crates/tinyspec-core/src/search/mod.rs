//! Search: finds schedules by measuring them ("Kernel Optimizations").
//!
//! `TINYSPEC_BEAM=10` searches for up to ten seconds for every kernel that is compiled: a beam of schedules is extended
//! or changed by an OptOp at a time; the cost model ranks the candidates, measured times decide. A schedule is timed
//! only after its results agree with those of the kernel without any optimization.
//!
//! Results on one core of a Zen 5, with 12 s for each kernel: the search ends after 2 to 7 s and 70 to 170 schedules,
//! when three rounds have found nothing clearly better. For softmax (4096×1024), layernorm (4096×768) and a 3×3
//! convolution the result is the heuristics' schedule, as it mostly is for a product of 512×512 matrices, where one
//! search of three found 2 % more. So a search is worthwhile for kernels that the heuristics were not written for. On a
//! Zen 3, which has no AVX-512, five seconds and 50 schedules find no better blocks for attention of 8×512×64, and for
//! one of the four kernels of its gradient `block(4, 8, 32)`: 6.7 ms instead of 8.8.
//!
//! The model's use is pruning. Of the neighbours that it selects, 80 to 97 % are within 5 % of its best estimate, so
//! their order says little: Spearman's correlation with measured times is 0.4 to 0.8 for the product, 0.7 to 0.8 for
//! attention, 0.25 for the convolution, 0.1 for softmax and -0.3 to 0.4 for layernorm. Pipelined rows have equal
//! estimates, since the model sees no difference, and memory-bound times vary: one schedule of softmax took 506 and 621
//! µs within a search. `TINYSPEC_DEBUG=3` prints both numbers for each search.
//!
//! Results are kept in one file, `TINYSPEC_SCHEDULES`, or else `schedules` in the cache folder; a later run continues
//! where an earlier one stopped. A program can ship the file by [`add_schedules`]. Without `TINYSPEC_BEAM` there is no
//! search.

mod beam;
mod settings;
mod store;
mod survey;
mod trial;

use crate::Result;
use crate::device::Device;
use crate::lower::optimize::{OptOp, Scheduler};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Key, Record};
use trial::Trial;

pub(crate) use settings::is_asked_for;
pub use store::add_schedules;
pub use survey::{Sample, Survey, review, survey};

/// The origin of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Heuristics,
    Search,
    /// An earlier search, or the program's own file.
    Known,
    /// None: lowering failed with the chosen schedule.
    None,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Heuristics => "by the heuristics",
            Source::Search => "found by search",
            Source::Known => "known from a search",
            Source::None => "after a failure",
        })
    }
}

/// Reads the settings and the file of schedules.
///
/// # Errors
/// When `TINYSPEC_BEAM` or the file cannot be read, or a search could not write the file.
pub(crate) fn check_settings() -> Result<()> {
    settings::seconds()?;
    store::is_used()?;
    if is_asked_for() { store::check_writing() } else { Ok(()) }
}

/// Whether searches decide about schedules: one is asked for, or an earlier one has left some.
///
/// # Errors
/// As [`check_settings`].
pub(crate) fn is_used() -> Result<bool> {
    Ok(settings::seconds()?.is_some() || store::is_used()?)
}

/// The schedule of a kernel, and its source.
///
/// # Errors
/// When `TINYSPEC_BEAM` or the file of schedules cannot be read.
pub(crate) fn schedule(scheduler: &Scheduler, name: &str, device: &Arc<Device>) -> Result<(Vec<OptOp>, Source)> {
    let asked = settings::seconds()?;
    let heuristics = || scheduler.heuristics();
    if !is_used()? {
        return Ok((heuristics(), Source::Heuristics));
    }
    let key = Key::of(scheduler);
    let known = store::find(key)?;
    let fits = |ops: &Vec<OptOp>| match scheduler.space(ops) {
        Ok(_) => true,
        Err(error) => {
            store::warn_of_misfit(key, name, &error);
            false
        }
    };
    let best = known.as_ref().and_then(|record| record.beam.first()).map(|found| found.ops.clone()).filter(fits);
    let is_enough = |record: &Record| asked.is_none_or(|asked| record.is_done || record.searched >= asked);
    match (known, best) {
        (Some(record), Some(best)) if is_enough(&record) => Ok((best, Source::Known)),
        (known, best) => {
            let Some(asked) = asked else { return Ok((heuristics(), Source::Heuristics)) };
            // One search at a time: others would distort the measured times.
            static ALONE: Mutex<()> = Mutex::new(());
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            let searched = known.as_ref().map_or(Duration::ZERO, |record| record.searched);
            let Some(trial) = Trial::new(scheduler, name, device)? else {
                return Ok((best.unwrap_or_else(heuristics), Source::Heuristics));
            };
            let record = beam::search(&trial, known, asked.saturating_sub(searched))?;
            store::keep(key, &record)?;
            let found = record.beam.first().map(|found| found.ops.clone());
            Ok(found.map_or_else(|| (heuristics(), Source::Heuristics), |ops| (ops, Source::Search)))
        }
    }
}
