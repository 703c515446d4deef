//! The conformance corpus on every device: forward and gradient; and the symbolic one.
//!
//! `cargo test --release --test conformance -- --nocapture`; `TINYSPEC_CORPUS=<folder>` reads another corpus,
//! `TINYSPEC_CASES=<text>` only the cases whose id contains the text, `TINYSPEC_DEVICES="simt cpu"` only these devices.
//! Devices that stand for other machines than this one share the cases; each runs all with `TINYSPEC_SHAPES=all`.

mod assembled;
mod compare;
mod corpus;
mod driver;
mod expression;
#[path = "../launch.rs"]
#[allow(dead_code)]
mod launch;
mod linked;
mod models;
mod programs;
mod recorded;
#[path = "../recorder.rs"]
mod recorder;
mod rendered;
mod round_trip;
mod run;
mod simulated;
#[path = "../simulators.rs"]
mod simulators;
mod symbolic;

use compare::compare;
use corpus::Case;
use launch::{SHAPES, takes_all_shapes};
use run::Failure;
use std::collections::BTreeMap;
use tinyspec::DType;

/// One case in so many runs on one of the processors that this machine is not.
const SHARE: usize = 2;

/// Passed, failed and missing cases of one device.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    not_built: BTreeMap<String, usize>,
}

#[test]
fn the_corpus_passes_on_every_device() {
    let folder = corpus::folder();
    let cases = match corpus::read(&folder) {
        Ok(cases) => cases,
        Err(error) if std::env::var_os("TINYSPEC_CORPUS").is_none() => {
            println!("skipped: no corpus ({error})");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let filter = std::env::var("TINYSPEC_CASES").unwrap_or_default();
    let (mut total, mut missing_everywhere) = (Tally::default(), 0);
    for device in devices() {
        let device = device.as_str();
        let mut tally = Tally::default();
        for case in share(device, cases.iter().filter(|case| case.id.contains(&filter))) {
            match check(case, device) {
                Ok(()) => tally.passed += 1,
                Err(Failure::NotBuilt) => *tally.not_built.entry(case.op.clone()).or_default() += 1,
                Err(Failure::Wrong(why)) => {
                    println!("{device}: {}: {}", case.id, why.replace('\n', " "));
                    tally.failed += 1;
                }
            }
        }
        let missing: usize = tally.not_built.values().sum();
        println!("{device}: {} passed, {} failed, {missing} not built yet", tally.passed, tally.failed);
        if missing > 0 {
            let ops: Vec<String> = tally.not_built.iter().map(|(op, count)| format!("{op} {count}")).collect();
            println!("{device}: not built yet: {}", ops.join(", "));
        }
        total.passed += tally.passed;
        total.failed += tally.failed;
        missing_everywhere += missing;
    }
    println!("{} passed, {} failed, {missing_everywhere} not built", total.passed, total.failed);
    assert_eq!(total.failed + missing_everywhere, 0, "cases failed or were not built");
    assert!(total.passed > 0, "no case of {} has `{filter}` in its id", folder.display());
}

/// What is lowered for others than this machine.
fn shapes() -> impl Iterator<Item = &'static str> {
    SHAPES.into_iter().chain(rendered::RENDERED).chain(simulated::SIMULATED).chain(driver::devices())
}

/// The cases that a device runs. Foreign processors divide a part of the cases among them, and the simulated GPUs of each maker
/// divide all.
fn share<T>(device: &str, cases: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let foreign: Vec<&str> = SHAPES.into_iter().chain(rendered::RENDERED).collect();
    let maker = device.split(':').next().unwrap_or_default();
    let simulated: Vec<&str> = simulated::SIMULATED.into_iter().filter(|name| name.starts_with(maker)).collect();
    let turn = [(foreign, SHARE), (simulated, 1)].into_iter().find_map(|(devices, every)| {
        let position = devices.iter().position(|name| *name == device)?;
        Some((position, every * devices.len()))
    });
    let (first, step) = turn.filter(|_| !takes_all_shapes()).unwrap_or((0, 1));
    cases.skip(first).step_by(step)
}

/// The devices to check: those of `TINYSPEC_DEVICES`, which have to be there, or all that this machine has.
fn devices() -> Vec<String> {
    if let Err(error) = rendered::register().and_then(|()| Ok(simulated::register()?)) {
        println!("skipped: code for GPUs: {error}");
    }
    let asked = std::env::var("TINYSPEC_DEVICES");
    let is_there = |name: &&str| match (tinyspec::device(name), &asked) {
        (Ok(_), _) => true,
        (Err(error), Ok(_)) => panic!("device {name}: {error}"),
        (Err(error), Err(_)) => {
            println!("skipped: device {name}: {error}");
            false
        }
    };
    let all = ["interpreter", "simt", "cpu"].into_iter().chain(shapes()).collect::<Vec<_>>().join(" ");
    let names = asked.as_deref().unwrap_or(&all);
    names.split_whitespace().filter(is_there).map(str::to_string).collect()
}

fn check(case: &Case, device: &str) -> Result<(), Failure> {
    if case.op == "promote" {
        return promote(case);
    }
    let inputs: Vec<_> = case.inputs.iter().map(|input| run::tensor(input, device)).collect::<Result<_, _>>()?;
    // A case without inputs has no device of its own: the default one must be this one.
    tinyspec::with_default_device(device, || {
        let outputs = run::outputs(case, &inputs)?;
        if outputs.len() != case.outputs.len() {
            return Err(Failure::Wrong(format!("{} outputs instead of {}", outputs.len(), case.outputs.len())));
        }
        // Taken first: what is computed is data from then on and has no history.
        let gradients = match case.gradients.is_empty() {
            true => vec![],
            false => run::gradients(case, device, &inputs, &outputs)?,
        };
        for (index, (got, want)) in outputs.iter().zip(&case.outputs).enumerate() {
            compare(&format!("output {index}"), &run::array(got)?, want, case.tolerance)?;
        }
        for (got, (index, want)) in gradients.iter().zip(&case.gradients) {
            compare(&format!("gradient {index}"), &run::array(got)?, want, case.gradient_tolerance)?;
        }
        Ok(())
    })
}

/// Cases of the promotion lattice carry their answer in their arguments.
fn promote(case: &Case) -> Result<(), Failure> {
    let dtype = |key: &str| {
        let name = case.args.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        DType::from_name(if name == "weak_float" { "f32" } else { name }).ok_or(format!("`{key}` names no dtype"))
    };
    let (a, b, want) = (dtype("a")?, dtype("b")?, dtype("result")?);
    for (x, y) in [(a, b), (b, a)] {
        if x.promote(y) != Some(want) {
            return Err(Failure::Wrong(format!("{x} and {y} give {:?} instead of {want}", x.promote(y))));
        }
    }
    Ok(())
}
