//! The stages and their passes, by their names.

use crate::case::Case;
use crate::program;
use tinyspec::ir::rewrite::Rewriter;
use tinyspec::ir::{Graph, NodeId, rules, text, verify};
use tinyspec_core::lower::functions::Outlined;
use tinyspec_core::lower::kernel::{is_ordered, split};
use tinyspec_core::lower::optimize::{OptOp, Scheduled, Scheduler};
use tinyspec_core::lower::passes::{self, Form, LOWERING, Pass};
use tinyspec_core::lower::plan::{self, Lifetime};
use tinyspec_core::lower::rangeify;

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
    let (first, to) = places(case.stage)?;
    let from = case.from.map_or(Ok(first), taking)?;
    if from > Place::Tensors {
        return kernel(case, graph, roots[0], from, to);
    }
    verify::tensor(&graph, &roots)?;
    roots = Rewriter::new(&case.rules).rewrite(&mut graph, &roots)?;
    let outlined = Outlined::of(&graph, &roots, &case.target)?;
    if case.stage == FUNCTIONS {
        let verdicts: String = outlined.explain().lines().map(|line| format!("; {line}\n")).collect();
        return Ok(printed(&outlined.graph, &outlined.outputs)? + &verdicts);
    }
    let schedule = rangeify::rangeify(&outlined.graph, &outlined.outputs, &case.target)?;
    let schedule = outlined.splice(schedule)?;
    let schedule = passes::run_on_schedule(passes::SCHEDULE, schedule, &case.donations)?;
    verify::schedule(&schedule.graph, schedule.root, &schedule.buffers)?;
    if to == Place::Tensors {
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
        for sink in split(&mut own, sink, &case.target)? {
            kernels.push(kernel(case, own.clone(), sink, Place::Ranges, to)?);
        }
    }
    Ok(kernels.join(if case.stage == SCHEDULE { "" } else { "\n" }))
}

/// Optimize, of which only the OptOps are printed.
const SCHEDULE: &str = "schedule";
/// Before Rangeify, Functions become opaque Calls, or are inlined.
const FUNCTIONS: &str = "functions";

/// A place in the pipeline. Numbers are those of passes behind the schedule.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Place {
    Tensors,
    Ranges,
    Pass(usize),
    Plan,
}

/// The first place of a case and the last, by the name of a stage or of one of its passes.
fn places(name: &str) -> Result<(Place, Place), String> {
    let is_named = |pass: &Pass| pass.name == name || pass.stage.name() == name;
    match (name, LOWERING.iter().position(is_named), LOWERING.iter().rposition(is_named)) {
        ("rangeify" | FUNCTIONS, ..) => Ok((Place::Tensors, Place::Tensors)),
        ("optimize" | SCHEDULE, ..) => Ok((Place::Ranges, Place::Ranges)),
        ("plan", ..) => Ok((Place::Plan, Place::Plan)),
        (_, Some(first), Some(last)) => Ok((Place::Pass(first), Place::Pass(last))),
        _ => Err(format!("`{name}` is neither a stage nor a pass")),
    }
}

/// The first place that takes a form.
fn taking(form: &str) -> Result<Place, String> {
    let first = |form| Place::Pass(LOWERING.iter().position(|pass| pass.requires == form).unwrap_or(0));
    match form {
        "tensors" | "program" => Ok(Place::Tensors),
        "ranges" => Ok(Place::Ranges),
        "scheduled" => Ok(Place::Pass(0)),
        "threads" => Ok(first(Form::Threads)),
        "tiles" => Ok(first(Form::Tiles)),
        "machine" => Ok(first(Form::Machine)),
        "linear" => Ok(first(Form::Linear)),
        _ => Err(format!("`{form}` is not a form")),
    }
}

/// A kernel from one place through another.
fn kernel(case: &Case, mut graph: Graph, mut root: NodeId, from: Place, to: Place) -> Result<String, Error> {
    let (mut notes, mut copies) = (String::new(), String::new());
    if from <= Place::Ranges {
        let ops;
        (root, ops, copies) = scheduled(case, &mut graph, root)?;
        let ops: Vec<String> = ops.iter().map(OptOp::to_string).collect();
        verify::ranges(&graph, root)?;
        if case.stage == SCHEDULE {
            return Ok(format!("schedule {}\n", ops.join("; ")));
        }
        if to == Place::Ranges {
            notes = format!("; schedule {}\n", ops.join("; "));
        }
    }
    let first = match from {
        Place::Pass(number) => number,
        Place::Plan => LOWERING.len(),
        _ => 0,
    };
    let end = match to {
        Place::Pass(number) => number + 1,
        Place::Plan => LOWERING.len(),
        _ => 0,
    };
    let passes = LOWERING.get(first..end).unwrap_or_default();
    root = passes::run(passes, &mut graph, root, &case.target, &mut |_, _, _| {})?;
    if let Some(last) = passes.last() {
        last.ensures.verify(&graph, root)?;
    }
    if to == Place::Plan {
        let (offsets, bytes) = plan::locals(&graph, root);
        let line = |(slot, offset): &(u32, usize)| format!("local {slot} at {offset}\n");
        return Ok(offsets.iter().map(line).collect::<String>() + &format!("{bytes} bytes\n"));
    }
    Ok(copies + &printed(&graph, &[root])? + &notes)
}

/// The kernel after its schedule, the schedule, and the text of its copy kernels.
fn scheduled(case: &Case, graph: &mut Graph, root: NodeId) -> Result<(NodeId, Vec<OptOp>, String), Error> {
    if is_ordered(graph, root) {
        return Ok((root, vec![], String::new()));
    }
    let scheduler = Scheduler::new(std::mem::take(graph), root, &case.target)?;
    let ops = case.schedule.clone().unwrap_or_else(|| scheduler.heuristics());
    let space = scheduler.space(&ops)?;
    let Scheduled { graph: built, sink, copies } = scheduler.build_all(&space)?;
    *graph = built;
    let copies = copies.iter().map(|copy| {
        verify::ranges(graph, copy.sink)?;
        Ok(printed(graph, &[copy.sink])? + "\n")
    });
    Ok((sink, ops, copies.collect::<Result<String, Error>>()?))
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
        let [first, last, bytes] = numbers[..] else {
            return Err(format!("`{line}` is not `first last bytes`").into());
        };
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
