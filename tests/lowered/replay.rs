//! A kernel's schedule is all that is done to it: replayed from text on the kernel as Rangeify left it, it gives the same
//! instructions. Each kernel takes one of the targets in turn (`TINYSPEC_SHAPES=all` takes all).

use crate::blocks;
use crate::stages::{Kernel, Program, gpu, programs, target};
use std::collections::{BTreeMap, HashSet};
use tinyspec::backends::{Gpu, Processor, Target};
use tinyspec::ir::{ContentHash, Graph, text};
use tinyspec_core::lower::kernel::{finish, is_ordered};
use tinyspec_core::lower::optimize::{OptOp, Scheduled, Scheduler};

#[test]
fn schedules_of_the_corpus_are_whole() {
    replay_all(programs().into_iter(), [target(), processor("x86-64-v4"), gpu()]);
}

#[test]
fn schedules_of_the_benches_are_whole() {
    let chip = Gpu::named("sm_90").unwrap().target();
    replay_all(blocks::programs(), [processor("x86-64-v3"), processor("x86-64-v4"), chip]);
}

fn processor(name: &str) -> Target {
    Processor::named(name).unwrap().target(2)
}

fn replay_all(programs: impl Iterator<Item = Program>, targets: [Target; 3]) {
    let takes_all = std::env::var("TINYSPEC_SHAPES").is_ok_and(|shapes| shapes == "all");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut known: HashSet<ContentHash> = HashSet::new();
    let kernels = programs.flat_map(|program| program.kernels());
    let own = kernels.filter(|kernel| kernel.hand_written.is_none());
    for (number, kernel) in own.filter(|kernel| known.insert(kernel.graph.content_hash(&[kernel.sink]))).enumerate() {
        let one = number % targets.len();
        for target in if takes_all { &targets[..] } else { &targets[one..=one] } {
            for op in replay(&kernel, target) {
                let name = op.to_string();
                *counts.entry(name[..name.find('(').unwrap()].into()).or_default() += 1;
            }
        }
    }
    println!("ops that were replayed: {counts:?}");
}

/// Compares a kernel lowered by the heuristics with its printed schedule replayed on the printed kernel; returns the schedule.
fn replay(kernel: &Kernel, target: &Target) -> Vec<OptOp> {
    let Kernel { name, graph, sink, .. } = kernel;
    if is_ordered(graph, *sink) {
        return Vec::new();
    }
    let lowered = |graph: Graph, sink, ops: Option<Vec<OptOp>>| {
        let scheduler = Scheduler::new(graph, sink, target).unwrap();
        let ops = ops.unwrap_or_else(|| scheduler.heuristics());
        let space = scheduler.space(&ops).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Scheduled { graph, sink, copies } = scheduler.build_all(&space).unwrap();
        let sinks = copies.iter().map(|copy| copy.sink).chain([sink]);
        let refused =
            |error| panic!("{name}: {}: {error}", ops.iter().map(OptOp::to_string).collect::<Vec<_>>().join("; "));
        let lowered = sinks.map(|sink| finish(graph.clone(), sink, "kernel", target).unwrap_or_else(refused));
        let hashes = lowered.map(|lowered| lowered.graph.content_hash(&[lowered.linear]));
        (hashes.collect::<Vec<ContentHash>>(), ops)
    };
    let (expected, ops) = lowered(graph.clone(), *sink, None);
    let words: Vec<String> = ops.iter().map(OptOp::to_string).collect();
    let read = words.iter().map(|op| op.parse()).collect::<Result<Vec<OptOp>, _>>().unwrap();
    assert!(read == ops, "{name}: {} is read as {read:?}", words.join("; "));
    let (parsed, roots) = text::parse(&text::print(graph, &[*sink])).unwrap();
    let (found, _) = lowered(parsed, roots[0], Some(read));
    assert!(found == expected, "{name}: {} gives other instructions", words.join("; "));
    ops
}
