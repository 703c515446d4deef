//! Mistakes of a compiler, made on purpose: a verifier refuses them, or the interpreter computes something else.

mod kind;
mod memory;
mod rebuild;

use crate::launch;
use crate::stages::{Kernel, gpu, programs, target};
use kind::{Kind, Level};
use std::collections::{BTreeMap, HashSet};
use tinyspec::backends::interpreter::ranges;
use tinyspec::backends::{Grid, LinearKernel};
use tinyspec::ir::{Arg, AxisType, ContentHash, Graph, NodeId, Op, text, verify};
use tinyspec_core::lower::{linearize, plan, rangeify::Schedule};

/// What became of the mutants of a kind.
#[derive(Default)]
struct Tally {
    /// By `derive`, a verifier or a later stage.
    refused: usize,
    /// Only by running it.
    caught: usize,
    survived: usize,
}

/// What became of one.
enum Fate {
    Refused,
    Caught,
    Survived,
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

#[test]
fn mistakes_are_refused_or_found_by_running() {
    let programs = programs();
    let mut tallies: BTreeMap<Kind, Tally> = BTreeMap::new();
    let mut judge = |kind: Kind, name: &str, mutant: &(Graph, NodeId), fate: Fate| {
        let tally = tallies.entry(kind).or_default();
        match fate {
            Fate::Refused => tally.refused += 1,
            Fate::Caught => tally.caught += 1,
            Fate::Survived => {
                tally.survived += 1;
                if number("TINYSPEC_SURVIVORS", 0) > 0 {
                    println!("survived: {kind:?} in {name}\n{}", text::print(&mutant.0, &[mutant.1]));
                }
            }
        }
    };
    let mut dice = fastrand::Rng::with_seed(1);
    for kernel in sample(&programs) {
        let before = memory::of(&kernel.graph, kernel.sink);
        let expected = before.iter().map(|memory| run_ranges(&kernel.graph, kernel.sink, memory)).collect::<Vec<_>>();
        each_mutant(Level::Ranges, &kernel.graph, kernel.sink, &mut dice, |kind, mutant| {
            let fate = match mutant {
                Err(_) => Fate::Refused,
                Ok((graph, sink)) if verify::ranges(graph, *sink).is_err() => Fate::Refused,
                Ok((graph, sink)) if kernel.hand_written.is_some() && verify::barriers(graph, *sink).is_err() => {
                    Fate::Refused
                }
                Ok((graph, sink)) => differs(&expected, &before, |memory| run_ranges(graph, *sink, memory)),
            };
            judge(kind, &kernel.name, mutant.as_ref().unwrap_or(&(kernel.graph.clone(), kernel.sink)), fate);
        });
        let mut machine = None;
        let lowered = kernel.lower(|stage, graph, root| {
            if stage == "devectorize" {
                machine = Some((graph.clone(), root));
            }
        });
        let Some((graph, sink)) = machine else { continue };
        let params = lowered.params;
        let expected: Vec<_> = before.iter().map(|memory| launch::run(&lowered, memory)).collect();
        each_mutant(Level::Machine, &graph, sink, &mut dice, |kind, mutant| {
            let fate = match mutant.as_ref().ok().map(|(graph, sink)| linear(graph.clone(), *sink, params)) {
                None | Some(None) => Fate::Refused,
                Some(Some(kernel)) => differs(&expected, &before, |memory| launch::run(&kernel, memory)),
            };
            judge(kind, &kernel.name, mutant.as_ref().unwrap_or(&(graph.clone(), sink)), fate);
        });
        let mut threads = None;
        let lowered = kernel.lower_for(&gpu(), |stage, graph, root| {
            if stage == "devectorize" {
                threads = Some((graph.clone(), root));
            }
        });
        let Some((graph, sink)) = threads.filter(|_| lowered.grid.size() > 1) else { continue };
        let expected: Vec<_> = before.iter().map(|memory| launch::run(&lowered, memory)).collect();
        each_mutant(Level::Threads, &graph, sink, &mut dice, |kind, mutant| {
            let fate = match mutant.as_ref().ok().map(|(graph, sink)| linear(graph.clone(), *sink, params)) {
                None | Some(None) => Fate::Refused,
                Some(Some(kernel)) => differs(&expected, &before, |memory| launch::run(&kernel, memory)),
            };
            judge(kind, &kernel.name, mutant.as_ref().unwrap_or(&(graph.clone(), sink)), fate);
        });
    }
    for program in programs.iter().step_by(7) {
        let schedule = program.schedule();
        each_mutant(Level::Schedule, &schedule.graph, schedule.root, &mut dice, |kind, mutant| {
            let Ok((graph, root)) = mutant else {
                return judge(kind, &program.name, &(Graph::new(), NodeId(0)), Fate::Refused);
            };
            let fate = match verify::schedule(graph, *root, &own(&schedule, graph)) {
                Err(_) => Fate::Refused,
                Ok(()) => Fate::Survived,
            };
            judge(kind, &program.name, &(graph.clone(), *root), fate);
        });
    }
    report(&tallies);
}

fn report(tallies: &BTreeMap<Kind, Tally>) {
    let (mut found, mut all) = (0, 0);
    println!("{:<18} {:>8} {:>8} {:>9}", "mistake", "refused", "caught", "survived");
    for (kind, tally) in tallies {
        println!("{:<18} {:>8} {:>8} {:>9}", format!("{kind:?}"), tally.refused, tally.caught, tally.survived);
        found += tally.refused + tally.caught;
        all += tally.refused + tally.caught + tally.survived;
    }
    let share = found as f64 * 100.0 / all.max(1) as f64;
    println!("{found} of {all} mutants found: {share:.2} %");
    assert!(tallies.len() >= 12, "only {} kinds of mistakes were possible", tallies.len());
    assert!(share >= 98.0, "only {share:.2} % of the mutants were found");
}

/// Distinct kernels that run quickly, spread over the corpus, and all written by hand.
fn sample(programs: &[crate::stages::Program]) -> Vec<Kernel> {
    let mut known: HashSet<ContentHash> = HashSet::new();
    let mut kernels: Vec<Kernel> = programs.iter().flat_map(|program| program.kernels()).collect();
    kernels.retain(|kernel| known.insert(kernel.graph.content_hash(&[kernel.sink])) && kernel.trips() < 20_000);
    let wanted = number("TINYSPEC_MUTANTS", 60);
    let step = (kernels.len() / wanted.max(1)).max(1);
    let mut position = 0;
    kernels.retain(|kernel| {
        position += 1;
        kernel.hand_written.is_some() || position % step == 0
    });
    kernels
}

impl Kernel {
    /// At most so many iterations.
    fn trips(&self) -> i128 {
        let ranges = self.graph.reachable(&[self.sink]).into_iter().filter(|&node| self.graph.op(node) == Op::Range);
        ranges.map(|range| self.graph.as_int(self.graph.source(range, 0)).unwrap_or(1 << 40)).product()
    }
}

/// Up to two mutants of each kind.
fn each_mutant(
    level: Level,
    graph: &Graph,
    root: NodeId,
    dice: &mut fastrand::Rng,
    mut judge: impl FnMut(Kind, &tinyspec::ir::Result<(Graph, NodeId)>),
) {
    let hash = graph.content_hash(&[root]);
    for kind in Kind::ALL.iter().copied().filter(|kind| kind.levels().contains(&level)) {
        let mut sites = kind.sites(level, graph, root);
        dice.shuffle(&mut sites);
        for site in sites.into_iter().take(2) {
            let mutant = kind.apply(level, graph, root, site, dice);
            // Some have no effect: the node is made anew as it was.
            if mutant.as_ref().is_ok_and(|(graph, root)| graph.content_hash(&[*root]) == hash) {
                continue;
            }
            judge(kind, &mutant);
        }
    }
}

fn differs(
    expected: &[Result<memory::Contents, String>],
    before: &[memory::Contents],
    run: impl Fn(&memory::Contents) -> Result<memory::Contents, String>,
) -> Fate {
    let same = before.iter().zip(expected).all(|(memory, expected)| match (run(memory), expected) {
        (Ok(found), Ok(expected)) => memory::same(&found, expected),
        _ => false,
    });
    if same { Fate::Survived } else { Fate::Caught }
}

fn run_ranges(graph: &Graph, sink: NodeId, memory: &memory::Contents) -> Result<memory::Contents, String> {
    let mut buffers = memory.clone();
    ranges::run_kernel(graph, sink, &mut buffers).map_err(|error| error.to_string())?;
    Ok(buffers)
}

/// The kernel after Linearize and Plan, if every verifier lets it pass.
fn linear(mut graph: Graph, sink: NodeId, params: usize) -> Option<LinearKernel> {
    verify::machine(&graph, sink).ok()?;
    let linear = linearize::linearize(&mut graph, sink).ok()?;
    verify::linear(&graph, linear).ok()?;
    let (local_offsets, scratch_bytes) = plan::locals(&graph, linear);
    let shared = graph.sources(linear).iter().copied().find(|&node| {
        graph.op(node) == Op::Range && matches!(graph.arg(node), Arg::Range { axis: AxisType::Thread, .. })
    });
    let shared_trips = shared.map_or(Some(1), |range| graph.as_int(graph.source(range, 0)))?;
    let (name, grid) = ("mutant".into(), Grid::of(&graph, linear));
    let shared_trips = usize::try_from(shared_trips).ok()?;
    Some(LinearKernel {
        graph,
        linear,
        name,
        params,
        local_offsets,
        scratch_bytes,
        shared_trips,
        grid,
        hand_written: Some(vec![]),
    })
}

/// The buffers of a schedule in a copy of its graph: those of the same argument.
fn own(schedule: &Schedule, graph: &Graph) -> Vec<NodeId> {
    let args: Vec<&Arg> = schedule.buffers.iter().map(|&buffer| schedule.graph.arg(buffer)).collect();
    graph.nodes().filter(|&node| graph.op(node) == Op::Buffer && args.contains(&graph.arg(node))).collect()
}

#[test]
fn the_kernels_as_they_are_pass() {
    for kernel in sample(&programs()).iter().step_by(4) {
        let lowered = kernel.lower(|_, _, _| {});
        for memory in memory::of(&kernel.graph, kernel.sink) {
            let (ranges, linear) = (run_ranges(&kernel.graph, kernel.sink, &memory), launch::run(&lowered, &memory));
            assert!(ranges.is_ok() && linear.is_ok(), "{}: {ranges:?} {linear:?}", kernel.name);
        }
    }
    assert!(target().vector_bytes > 0);
}
