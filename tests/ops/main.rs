//! Every op of the spec in a program that runs, on each device that `docs/ops.md` names for it: the op is in the form of the program
//! that its row names, and the values are those that plain Rust computes.

mod buffers;
mod gates;
mod rows;
#[path = "../simulators.rs"]
mod simulators;
mod stages;

use rows::{ALL, Form, ROWS, Row};
use std::collections::BTreeSet;
use std::sync::Once;
use tinyspec::backends::Target;
use tinyspec::backends::interpreter;
use tinyspec::backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec::ir::function::inline_all;
use tinyspec::ir::instruction::Instruction;
use tinyspec::ir::rewrite::Rewriter;
use tinyspec::ir::{Graph, NodeId, Op, rules};
use tinyspec::{DType, Error, Function, Program, Spec, Tensor, device, register, with_default_device};
use tinyspec_core::lower::kernel::lower_observed;
use tinyspec_core::lower::rangeify::rangeify;

/// A processor with wide vectors, instructions of its own and words of two factors, on the interpreter.
pub const WORDS: &str = "words";

/// The devices of most rows, registered.
fn all() -> &'static [&'static str] {
    devices();
    ALL
}

/// The devices of the rows.
fn devices() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        let native =
            [Op::Add, Op::Mul, Op::Max, Op::Div, Op::Recip, Op::Sqrt, Op::Trunc, Op::Mulacc, Op::Mod, Op::Idiv];
        let target = Target {
            vector_bytes: 64,
            masked_access: true,
            fused_multiply_add: true,
            tensor_cores: vec![DType::I16, DType::BF16],
            instructions: Instruction::ALL.to_vec(),
            native: native.to_vec(),
            ..interpreter::target()
        };
        register(WORDS, target, std::sync::Arc::new(InterpreterCompiler), std::sync::Arc::new(InterpreterRuntime));
        simulators::register().unwrap_or_else(|error| panic!("{error}"));
    });
}

#[test]
fn every_op_runs() {
    devices();
    let mut ran: BTreeSet<(String, String)> = BTreeSet::new();
    for row in ROWS {
        for name in row.devices {
            let failed = |error: Error| panic!("{:?} on {name}: {error}", row.ops);
            with_default_device::<_, Error>(name, || check(row, name)).unwrap_or_else(failed);
            ran.extend(row.ops.iter().map(|op| (format!("{op:?}"), name.to_string())));
        }
    }
    let named = named_by_the_page();
    let missing: Vec<&(String, String)> = named.difference(&ran).collect();
    assert!(missing.is_empty(), "docs/ops.md names devices on which no program runs the op: {missing:?}");
    let more: Vec<&(String, String)> = ran.difference(&named).collect();
    assert!(more.is_empty(), "docs/ops.md does not name devices on which the op runs: {more:?}");
    let without: Vec<&Op> = Op::ALL.iter().filter(|op| ran.iter().all(|(ran, _)| *ran != format!("{op:?}"))).collect();
    assert!(without.is_empty(), "no program has {without:?}");
}

/// Each op of `docs/ops.md` with each device that it names.
fn named_by_the_page() -> BTreeSet<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ops.md");
    let page = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let rows = page.split("<!-- ops -->\n").nth(1).and_then(|rest| rest.split("<!-- end of ops -->").next());
    let rows = rows.unwrap_or_else(|| panic!("{path} has no table")).lines().skip(2);
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    cells
        .flat_map(|cells| {
            let op = cells[0].trim_start_matches("| ").to_string();
            let quoted = cells[cells.len() - 3].split('`').skip(1).step_by(2);
            let names: Vec<&str> = if cells[cells.len() - 3] == "all" { ALL.to_vec() } else { quoted.collect() };
            names.into_iter().map(move |name| (op.clone(), name.to_string())).collect::<Vec<_>>()
        })
        .collect()
}

/// What the page says of all devices.
#[test]
fn the_page_says_which_devices_there_are() {
    let page = include_str!("../../docs/ops.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let names: Vec<String> = ALL.iter().map(|name| format!("`{name}`")).collect();
    assert!(page.contains(&format!("The devices are {}", names.join(", "))), "docs/ops.md does not name {names:?}");
}

fn check(row: &Row, name: &str) -> Result<(), Error> {
    let inputs = (row.inputs)();
    let seen = ops_of(row, &inputs, name)?;
    for op in row.ops {
        assert!(seen.contains(op), "no {op:?} in {:?} on {name}, there are {seen:?}", row.form);
    }
    let mut found = Vec::new();
    for result in (row.program)(&inputs) {
        found.extend(result.to("cpu").cast(DType::F64).to_vec::<f64>()?);
    }
    let expected = (row.expected)();
    assert_eq!(found.len(), expected.len(), "{:?} on {name}", row.ops);
    for (position, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let near = (found - expected).abs() <= 1e-6 * expected.abs().max(1.0);
        assert!(near, "{:?} on {name}, {position}: {found} is not {expected}", row.ops);
    }
    Ok(())
}

/// The ops of a row's program in the form that the row names.
fn ops_of(row: &Row, inputs: &[Tensor], name: &str) -> Result<BTreeSet<Op>, Error> {
    if row.form == Form::Program {
        let results = (row.program)(inputs);
        let programs = Program::of(&results.iter().collect::<Vec<_>>())?;
        return Ok(programs.iter().flat_map(|program| of(program.graph(), &[program.root()])).collect());
    }
    let specs: Vec<Spec> = inputs.iter().map(|input| Spec::new(input.dtype(), input.shape())).collect();
    let traced = Function::trace(&specs, |inputs| (row.program)(inputs))?;
    let body = traced.body();
    if row.form == Form::Tensor {
        return Ok(of(body.graph(), body.outputs()));
    }
    let device = device(name)?;
    let (mut graph, outputs) = inline_all(body.graph().clone(), body.outputs().to_vec())?;
    let outputs = Rewriter::new(&[rules::EXACT, rules::REASSOC].concat()).rewrite(&mut graph, &outputs)?;
    let schedule = rangeify(&graph, &outputs, device.target())?;
    if row.form == Form::Schedule {
        let live = schedule.graph.reachable_outside_bodies(&[schedule.root]);
        return Ok(live.into_iter().map(|node| schedule.graph.op(node)).collect());
    }
    let mut seen = BTreeSet::new();
    for call in &schedule.calls {
        let mut own = Graph::new();
        let sink = own.import(&schedule.graph, &[call.kernel], |_, _| Ok(None))?[0];
        let mut observe = |stage: &'static str, graph: &Graph, root: NodeId| {
            if row.form == Form::Kernel || stage == "linearize" {
                seen.extend(of(graph, &[root]));
            }
        };
        lower_observed(own, sink, call.hand_written.as_ref(), device.target(), &mut observe)?;
    }
    Ok(seen)
}

fn of(graph: &Graph, roots: &[NodeId]) -> BTreeSet<Op> {
    graph.reachable(roots).into_iter().map(|node| graph.op(node)).collect()
}
