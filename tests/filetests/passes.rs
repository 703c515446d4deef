//! The stages, by their names.

use crate::case::Case;
use crate::program;
use tinyspec::ir::rewrite::Rewriter;
use tinyspec::ir::{Graph, NodeId, rules, text, verify};
use tinyspec::lower::kernel::{apart, ordered};
use tinyspec::lower::optimize::{OptOp, Scheduler};
use tinyspec::lower::plan::{self, Lifetime};
use tinyspec::lower::{expand, linearize, rangeify, select, special};

type Error = Box<dyn std::error::Error>;

/// What the case's stage makes of what goes in. A refusal is a result as well.
pub fn result(case: &Case) -> String {
    run(case).unwrap_or_else(|error| {
        // Where the program runner called a method says nothing.
        let message = error.to_string();
        let lines: Vec<&str> = message.lines().filter(|line| !line.trim_start().starts_with("at ")).collect();
        format!("error: {}\n", lines.join("\n"))
    })
}

/// What comes out, or why nothing does.
fn run(case: &Case) -> Result<String, Error> {
    if case.stage == "plan-schedule" {
        return arena(case.input);
    }
    let from_program = case.stage == "callify" || case.from == Some("program");
    let (mut graph, mut roots) = if from_program { program::graph(case.input)? } else { text::parse(case.input)? };
    match case.stage {
        "callify" => return printed(&graph, &roots),
        "simplify" => return simplify(case, &mut graph, &roots),
        _ => {}
    }
    let stage = position(case.stage)?;
    let start = match case.from {
        Some("program") => 0,
        Some(form) => FORMS.iter().position(|&known| known == form).ok_or(format!("`{form}` is no form"))?,
        None => stage,
    };
    if start > 0 {
        return kernel(case, graph, roots[0], start..=stage);
    }
    verify::tensor(&graph, &roots)?;
    roots = Rewriter::new(&case.rules).rewrite(&mut graph, &roots)?;
    let schedule = rangeify::rangeify(&graph, &roots, &case.target)?;
    let (schedule, _) = rangeify::overwrite(schedule, &case.overwrite)?;
    let schedule = rangeify::alike(schedule)?;
    verify::schedule(&schedule.graph, schedule.root, &schedule.buffers)?;
    if stage == 0 {
        for call in &schedule.calls {
            verify::ranges(&schedule.graph, call.kernel)?;
        }
        let decisions: String = schedule.decisions.iter().map(|decision| format!("; {decision}\n")).collect();
        return Ok(printed(&schedule.graph, &[schedule.root])? + &decisions);
    }
    let mut kernels = Vec::new();
    for call in &schedule.calls {
        let mut own = Graph::new();
        let sink = own.import(&schedule.graph, &[call.kernel], |_, _| Ok(None))?[0];
        for sink in apart(&mut own, sink, &case.target)? {
            kernels.push(kernel(case, own.clone(), sink, 1..=stage)?);
        }
    }
    Ok(kernels.join(if case.stage == SCHEDULE { "" } else { "\n" }))
}

const STAGES: [&str; 7] = ["rangeify", "optimize", "special", "expand", "select", "linearize", "plan"];
/// Optimize, of which only the OptOps are printed.
const SCHEDULE: &str = "schedule";
/// What each stage takes.
const FORMS: [&str; 7] = ["tensors", "ranges", "scheduled", "threads", "tiles", "machine", "linear"];

fn position(name: &str) -> Result<usize, String> {
    let name = if name == SCHEDULE { "optimize" } else { name };
    STAGES.iter().position(|&stage| stage == name).ok_or(format!("`{name}` is no stage"))
}

/// A kernel through some of the stages.
fn kernel(
    case: &Case,
    mut graph: Graph,
    root: NodeId,
    stages: std::ops::RangeInclusive<usize>,
) -> Result<String, Error> {
    let mut root = root;
    let mut notes = String::new();
    for stage in stages {
        root = match STAGES[stage] {
            "optimize" => {
                let (root, ops) = scheduled(case, &mut graph, root)?;
                let ops: Vec<String> = ops.iter().map(OptOp::to_string).collect();
                verify::ranges(&graph, root)?;
                if case.stage == SCHEDULE {
                    return Ok(format!("schedule {}\n", ops.join("; ")));
                }
                if STAGES[stage] == case.stage {
                    notes = format!("; schedule {}\n", ops.join("; "));
                }
                root
            }
            "special" => {
                let root = special::special(&mut graph, root, &case.target)?;
                verify::ranges(&graph, root)?;
                root
            }
            "expand" => {
                let root = expand::expand(&mut graph, root)?;
                verify::tiles(&graph, root)?;
                root
            }
            "select" => {
                let root = select::select(&mut graph, root, &case.target)?;
                verify::machine(&graph, root)?;
                root
            }
            "linearize" => {
                let root = linearize::linearize(&mut graph, root)?;
                verify::linear(&graph, root)?;
                root
            }
            "plan" => {
                let (offsets, bytes) = plan::locals(&graph, root);
                let line = |(slot, offset): &(u32, usize)| format!("local {slot} at {offset}\n");
                return Ok(offsets.iter().map(line).collect::<String>() + &format!("{bytes} bytes\n"));
            }
            stage => return Err(format!("{stage} takes tensors").into()),
        };
    }
    Ok(printed(&graph, &[root])? + &notes)
}

fn scheduled(case: &Case, graph: &mut Graph, root: NodeId) -> Result<(NodeId, Vec<OptOp>), Error> {
    if let Some(root) = ordered(graph, root, &case.target)? {
        return Ok((root, vec![]));
    }
    let scheduler = Scheduler::new(std::mem::take(graph), root, &case.target)?;
    let ops = case.schedule.clone().unwrap_or_else(|| scheduler.heuristics());
    let space = scheduler.space(&ops)?;
    let (built, root) = scheduler.build(&space)?;
    *graph = built;
    Ok((root, ops))
}

fn simplify(case: &Case, graph: &mut Graph, roots: &[NodeId]) -> Result<String, Error> {
    let mut rewriter = Rewriter::new(if case.rules.is_empty() { rules::EXACT } else { &case.rules });
    let roots = rewriter.rewrite(graph, roots)?;
    let mut fired: Vec<&str> = rewriter.fired().keys().copied().collect();
    fired.sort_unstable();
    Ok(printed(graph, &roots)? + &format!("; fired: {}\n", fired.join(", ")))
}

/// Lines `first last bytes` become offsets.
fn arena(lives: &str) -> Result<String, Error> {
    let life = |line: &str| -> Result<Lifetime, Error> {
        let numbers = line.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>()?;
        let [first, last, bytes] = numbers[..] else { return Err(format!("`{line}` is no `first last bytes`").into()) };
        Ok(Lifetime { first, last, bytes })
    };
    let lives: Vec<Lifetime> =
        lives.lines().filter(|line| !line.starts_with(';')).map(life).collect::<Result<_, _>>()?;
    let (offsets, bytes) = plan::arena(&lives);
    let line = |(life, offset): (&Lifetime, &usize)| {
        format!("steps {} to {}: {} bytes at {offset}\n", life.first, life.last, life.bytes)
    };
    Ok(lives.iter().zip(&offsets).map(line).collect::<String>() + &format!("{bytes} bytes\n"))
}

/// The text, which must parse back to the same graph.
fn printed(graph: &Graph, roots: &[NodeId]) -> Result<String, Error> {
    let printed = text::print(graph, roots);
    let (again, same) = text::parse(&printed)?;
    if graph.content_hash(roots) != again.content_hash(&same) {
        return Err(format!("the text is another graph:\n{printed}").into());
    }
    Ok(printed)
}
