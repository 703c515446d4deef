//! Fallback for a kernel that a lowering stage refuses, which is always a bug of the compiler: the kernel is lowered without a
//! schedule and, if that fails too, each of its Reduces gets a kernel of its own. The program runs, more slowly, and one
//! warning prints a reproducer.
//!
//! While looking for bugs there should be no second attempt: `TINYSPEC_FALLBACK=off`, as in this workspace's tests and
//! benches, or `TINYSPEC_VERIFY=1` make the refusal an error. `TINYSPEC_FAULT=schedule` lets lowering fail for each
//! kernel with a schedule, `TINYSPEC_FAULT=fusion` for each with several Reduces, to try what happens then.

use crate::device::Device;
use crate::lower::optimize::{OptOp, Scheduler};
use crate::{Error, Result, profile, search};
use rustc_hash::FxHashSet;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tinyspec_backends::Target;
use tinyspec_backends::settings::{self, UnknownSetting};
use tinyspec_ir::{ContentHash, ErrorKind, Graph, NodeId, Op, text};

/// Which attempt at lowering a kernel this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// By the schedule that the heuristics or a search chose.
    Scheduled,
    /// Loop by loop, shared among the threads.
    Plain,
}

/// Whether there is a second attempt.
pub(crate) fn is_allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| settings::FALLBACK.is_on() && !profile::verifies())
}

/// Lowers a kernel. If there is a second attempt, a panic counts as a refusal.
pub(crate) fn attempt<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    if !is_allowed() {
        return work();
    }
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default();
        Err(Error::refused(ErrorKind::Verify, "lowering", format!("panicked: {said}")))
    })
}

/// A kernel that could not be lowered as it should have been.
#[derive(Clone)]
pub(crate) struct Failure {
    /// The error of the stage.
    pub error: Error,
    kernel: ContentHash,
    reproducer: String,
}

impl Failure {
    /// Describes the kernel, which is in range form.
    pub fn new(error: Error, graph: &Graph, sink: NodeId, name: &str, device: &Arc<Device>) -> Failure {
        let kernel = graph.content_hash(&[sink]);
        // The schedule is chosen a second time, and choosing it may be what failed.
        let chosen = || -> Result<String> {
            let scheduler = Scheduler::new(graph.clone(), sink, device.target())?;
            let (ops, _) = search::schedule(&scheduler, name, device)?;
            Ok(ops.iter().map(OptOp::to_string).collect::<Vec<_>>().join("; "))
        };
        let schedule = catch_unwind(AssertUnwindSafe(chosen)).ok().and_then(Result::ok);
        let mut reproducer = String::from("test loops from ranges\n");
        let _ = writeln!(reproducer, "target {}", described(device.target()));
        if let Some(ops) = schedule.filter(|ops| !ops.is_empty()) {
            let _ = writeln!(reproducer, "schedule {ops}");
        }
        let _ = write!(reproducer, "\n{}", text::print(graph, &[sink]));
        Failure { error, kernel, reproducer }
    }

    /// Warns about it, once per process.
    pub fn warn(&self, remedy: &str) {
        static SEEN: Mutex<Option<FxHashSet<ContentHash>>> = Mutex::new(None);
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get_or_insert_default().insert(self.kernel) {
            tinyspec_backends::tell!(
                "tinyspec: warning: a kernel could not be lowered as planned, and {remedy}: results are right, but slower \
                 than they should be. This is a mistake of the compiler: please report it with all lines up to `end`.\n\
                 {}\n{}end",
                self.error,
                self.reproducer
            );
        }
    }
}

/// The properties of the target that lowering depends on, in the form that file tests read.
fn described(target: &Target) -> String {
    let Target { vector_bytes, vector_registers, masked_access, accumulators, threads, .. } = target;
    let native: Vec<&str> = target.native.iter().map(|op| op.name()).collect();
    let workgroups = target.workgroups.as_ref().map(|limits| format!(" workgroups={}", limits.size));
    format!(
        "vector_bytes={vector_bytes} vector_registers={vector_registers} masked_access={masked_access} \
         accumulators={accumulators} threads={threads} native={}{}",
        native.join(","),
        workgroups.unwrap_or_default()
    )
}

/// The failures that `TINYSPEC_FAULT` can inject.
const FAULTS: [&str; 2] = ["schedule", "fusion"];

/// Fails where `TINYSPEC_FAULT` says so.
pub(crate) fn fault(graph: &Graph, sink: NodeId, attempt: Attempt) -> Result<()> {
    static FAULT: OnceLock<Result<Option<&str>, UnknownSetting>> = OnceLock::new();
    let read = || {
        settings::read("TINYSPEC_FAULT", "`schedule` or `fusion`", |text| {
            FAULTS.into_iter().find(|&fault| fault == text)
        })
    };
    let Some(fault) = FAULT.get_or_init(read).clone()? else { return Ok(()) };
    let reduces = || graph.reachable(&[sink]).iter().filter(|&&node| graph.op(node) == Op::Reduce).count();
    let fails = match fault {
        "schedule" => attempt == Attempt::Scheduled,
        _ => reduces() > 1,
    };
    if !fails {
        return Ok(());
    }
    Err(Error::refused(ErrorKind::Verify, "lowering", format!("TINYSPEC_FAULT={fault}")))
}
