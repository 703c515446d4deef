//! `cargo bench -- schedules`: how good the schedules are that are chosen without measuring. For each kernel of the blocks and their
//! gradients, a few dozen schedules are timed on one thread: the chosen one, the one that the cost model finds alone, neighbours of
//! the fastest, and random ones. `cargo bench -- schedules/scans` selects blocks by the prefix of their names. `cargo bench -- schedules
//! kept` judges today's cost model by the times that the last run has kept, in seconds and without timing anything.
//!
//! *Regret* is how many times longer a chosen schedule takes than the fastest one that was timed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::sync::Arc;
use std::{env, fs};

use serde_json::{Value, json};
use tinyspec::Function;
use tinyspec::backends::cpu::CpuRuntime;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::backends::{Processor, Target};
use tinyspec::ir::function::inline_all;
use tinyspec::ir::rewrite::Rewriter;
use tinyspec::ir::{ContentHash, Graph, NodeId, rules};
use tinyspec_core::lower::kernel::is_ordered;
use tinyspec_core::lower::optimize::Scheduler;
use tinyspec_core::lower::optimize::transforms::OptOp;
use tinyspec_core::lower::rangeify;
use tinyspec_core::search::{Sample, Survey, review, survey};

use crate::blocks::block::{Block, Random};
use crate::blocks::families;
use crate::blocks::traced::functions;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Schedules of a kernel that are timed, at most.
const SCHEDULES: usize = 36;
/// Schedules of a kernel that are compared with each other.
const COMPARED: usize = 30;
/// Nanoseconds of the chosen schedule below which a kernel is left out, because the launch dominates.
const SHORTEST: f64 = 3_000.0;
/// Nanoseconds above which a kernel is left out, because timing its schedules would take too long.
const LONGEST: f64 = 60e6;
/// Where the samples are kept, a line each.
const FILE: &str = "target/tinyspec-schedules.jsonl";

/// Does the command line ask for it?
pub fn selected() -> bool {
    env::args().skip(1).any(|argument| argument.starts_with("schedules"))
}

/// Times the schedules, prints a line for each kernel and a summary, and keeps the samples.
///
/// # Errors
/// When a kernel fails, or the samples cannot be written.
pub fn run() -> Result<()> {
    let processor = Processor::chosen()?;
    println!("{processor}");
    let target = processor.target(1);
    const DEVICE: &str = "cpu:schedules";
    let runtime = CpuRuntime::of(&target);
    tinyspec::register(DEVICE, target.clone(), Arc::new(LlvmCompiler::new()?), Arc::new(runtime));
    let parts: Vec<String> =
        env::args().skip(1).filter_map(|argument| argument.strip_prefix("schedules").map(String::from)).collect();
    let is_selected = |name: &str| parts.iter().any(|part| format!("/{name}").starts_with(part.as_str()));
    let mut drawn = Random(0x9E37_79B9_7F4A_7C15);
    let mut random = |below: usize| drawn.next() as usize % below;
    let mut known: HashSet<ContentHash> = HashSet::new();
    let (mut judged, mut lines) = (Vec::new(), String::new());
    let kept = if env::args().any(|argument| argument == "kept") { Some(kept()?) } else { None };
    println!(
        "{:<34}{:>10}{:>10}{:>8}{:>8}{:>8}  schedule, the fastest if another",
        "kernel", "µs", "model", "regret", "first 3", "generic"
    );
    for block in families::all().iter().filter(|block| is_selected(&block.name)) {
        for (name, kernel, sink) in kernels(block, &target)? {
            if is_ordered(&kernel, sink) || !known.insert(kernel.content_hash(&[sink])) {
                continue;
            }
            let scheduler = Scheduler::new(kernel, sink, &target)?;
            let found = match &kept {
                Some(kept) => kept.get(&name).and_then(|times| review(&scheduler, times)),
                None => survey(&scheduler, &name, DEVICE, SCHEDULES, &mut random, &|first| {
                    (SHORTEST..LONGEST).contains(&first)
                })?,
            };
            let Some(survey) = found else { continue };
            let kernel = Judged::of(name, &survey);
            println!("{}", kernel.row(&survey));
            for (number, sample) in survey.samples.iter().enumerate() {
                lines.push_str(&format!(
                    "{}\n",
                    json!({
                        "kernel": kernel.name, "chosen": number == survey.chosen, "refined": Some(number) == survey.refined,
                        "generic": Some(number) == survey.generic, "ops": text(sample), "measured": sample.nanoseconds,
                        "estimate": sample.estimate.nanoseconds(), "limit": sample.estimate.limit(),
                    })
                ));
            }
            judged.push(kernel);
        }
    }
    if kept.is_none() {
        fs::write(FILE, lines)?;
    }
    summary(&judged);
    Ok(())
}

/// Schedules and their nanoseconds.
type Times = Vec<(Vec<OptOp>, f64)>;

/// The schedules that the last run has timed, by the names of the kernels.
fn kept() -> Result<HashMap<String, Times>> {
    let mut kernels: HashMap<String, Times> = HashMap::new();
    for line in fs::read_to_string(FILE)?.lines() {
        let sample: Value = serde_json::from_str(line)?;
        let (Some(name), Some(ops)) = (sample["kernel"].as_str(), sample["ops"].as_str()) else { continue };
        let ops: Vec<OptOp> =
            ops.split("; ").filter(|op| !op.is_empty()).map(str::parse).collect::<Result<_, tinyspec::ir::Error>>()?;
        kernels.entry(name.into()).or_default().push((ops, sample["measured"].as_f64().unwrap_or(f64::INFINITY)));
    }
    Ok(kernels)
}

/// What is known of a kernel once its schedules are timed.
struct Judged {
    name: String,
    /// The time of the chosen schedule, in nanoseconds.
    nanoseconds: f64,
    regret: f64,
    /// Of the best among the model's first three.
    first_three: f64,
    generic: Option<f64>,
    /// Pairs that differ by more than 10 %, and those of them that the model orders right.
    pairs: usize,
    right: usize,
    /// Predicted over measured, of the chosen schedule.
    predicted: f64,
}

impl Judged {
    fn of(name: String, survey: &Survey) -> Judged {
        let samples = &survey.samples;
        let best = samples.iter().map(|sample| sample.nanoseconds).fold(f64::INFINITY, f64::min);
        let chosen = &samples[survey.chosen];
        let mut by_model: Vec<&Sample> = samples.iter().collect();
        by_model.sort_by(|a, b| a.estimate.nanoseconds().total_cmp(&b.estimate.nanoseconds()));
        let first_three = by_model.iter().take(3).map(|sample| sample.nanoseconds).fold(f64::INFINITY, f64::min);
        let compared = compared(samples, best);
        let (mut pairs, mut right) = (0, 0);
        for (place, a) in compared.iter().enumerate() {
            for b in &compared[..place] {
                if a.nanoseconds.max(b.nanoseconds) > 1.1 * a.nanoseconds.min(b.nanoseconds) {
                    let (slower, faster) = if a.nanoseconds > b.nanoseconds { (a, b) } else { (b, a) };
                    pairs += 1;
                    right += usize::from(slower.estimate.nanoseconds() > faster.estimate.nanoseconds());
                }
            }
        }
        Judged {
            name,
            nanoseconds: chosen.nanoseconds,
            regret: chosen.nanoseconds / best,
            first_three: first_three / best,
            generic: survey.generic.map(|generic| samples[generic].nanoseconds / best),
            pairs,
            right,
            predicted: chosen.estimate.nanoseconds() / chosen.nanoseconds,
        }
    }

    fn family(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    fn row(&self, survey: &Survey) -> String {
        let fastest = survey.samples.iter().min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
        let other = fastest.filter(|_| self.regret > 1.1).map_or(String::new(), |other| format!(" | {}", text(other)));
        let generic = self.generic.map_or("-".into(), |generic| format!("{generic:.2}"));
        format!(
            "{:<34}{:>10.1}{:>10.2}{:>8.2}{:>8.2}{:>8}  {}{other}",
            self.name,
            self.nanoseconds / 1e3,
            self.predicted,
            self.regret,
            self.first_three,
            generic,
            text(&survey.samples[survey.chosen]),
        )
    }
}

/// A third of them within 1.3 times the best time, a third within three times, a third slower than that.
fn compared(samples: &[Sample], best: f64) -> Vec<&Sample> {
    let mut left: Vec<&Sample> = samples.iter().collect();
    let mut compared: Vec<&Sample> = Vec::new();
    for limit in [1.3, 3.0, f64::INFINITY] {
        let (within, beyond): (Vec<&Sample>, Vec<&Sample>) =
            left.into_iter().partition(|sample| sample.nanoseconds <= limit * best);
        compared.extend(within.iter().take(COMPARED / 3));
        left = beyond;
    }
    compared
}

fn text(sample: &Sample) -> String {
    sample.ops.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn summary(judged: &[Judged]) {
    let mut families: BTreeMap<&str, Vec<&Judged>> = BTreeMap::new();
    for kernel in judged {
        families.entry(kernel.family()).or_default().push(kernel);
    }
    families.entry("all").or_default().extend(judged);
    println!(
        "\n{:<16}{:>8}{:>9}{:>7}{:>7}{:>10}{:>14}{:>9}{:>12}",
        "family", "kernels", "regret", "90 %", "worst", "first 3", "generic 90 %", "pairs", "within 1.5"
    );
    for (family, kernels) in families {
        let sorted = |of: &dyn Fn(&Judged) -> Option<f64>| {
            let mut values: Vec<f64> = kernels.iter().filter_map(|kernel| of(kernel)).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let at = |values: &[f64], share: f64| {
            values
                .get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1)))
                .copied()
                .unwrap_or(f64::NAN)
        };
        let regret = sorted(&|kernel| Some(kernel.regret));
        let mean = (regret.iter().map(|regret| regret.ln()).sum::<f64>() / regret.len().max(1) as f64).exp();
        let (first, generic) = (sorted(&|kernel| Some(kernel.first_three)), sorted(&|kernel| kernel.generic));
        let (pairs, right) =
            kernels.iter().fold((0, 0), |(pairs, right), kernel| (pairs + kernel.pairs, right + kernel.right));
        let near = kernels.iter().filter(|kernel| (1.0 / 1.5..1.5).contains(&kernel.predicted)).count();
        println!(
            "{family:<16}{:>8}{mean:>9.2}{:>7.2}{:>7.2}{:>10.2}{:>14.2}{:>7.0} %{:>10.0} %",
            kernels.len(),
            at(&regret, 0.9),
            at(&regret, 1.0),
            at(&first, 0.9),
            at(&generic, 0.9),
            100.0 * right as f64 / pairs.max(1) as f64,
            100.0 * near as f64 / kernels.len().max(1) as f64,
        );
    }
}

/// The kernels of a block and of its training step.
fn kernels(block: &Block, target: &Target) -> Result<Vec<(String, Graph, NodeId)>> {
    let mut all = Vec::new();
    for (name, function) in functions(block)? {
        all.extend(of_function(&name, &function, target)?);
    }
    Ok(all)
}

fn of_function(name: &str, function: &Function, target: &Target) -> Result<Vec<(String, Graph, NodeId)>> {
    let body = function.body();
    let (mut graph, outputs) = inline_all(body.graph().clone(), body.outputs().to_vec())?;
    let outputs = Rewriter::new(&[rules::EXACT, rules::REASSOC].concat()).rewrite(&mut graph, &outputs)?;
    let schedule = rangeify::rangeify(&graph, &outputs, target)?;
    let mut kernels = Vec::new();
    for (number, call) in schedule.calls.iter().filter(|call| call.hand_written.is_none()).enumerate() {
        let mut own = Graph::new();
        let sink = own.import(&schedule.graph, &[call.kernel], |_, _| Ok(None))?[0];
        kernels.push((format!("{name}#{number}"), own, sink));
    }
    Ok(kernels)
}
