//! Whatever is printed runs again: the corpus as tensor graphs, as kernels and as command buffers, each through its text.

use crate::compare::compare;
use crate::corpus::{self, Case};
use crate::run::{self, Failure};
use tinyspec::{Function, Prepared, Program, Spec, Tensor};

#[test]
fn the_corpus_runs_from_text() {
    let Ok(cases) = corpus::read(&corpus::folder()) else {
        println!("skipped: no corpus");
        return;
    };
    let filter = std::env::var("TINYSPEC_CASES").unwrap_or_default();
    let (mut passed, mut failed, mut reading) = (0, 0, 0);
    for case in cases.iter().filter(|case| case.id.contains(&filter) && case.op != "promote") {
        match check(case) {
            Ok(()) => passed += 1,
            Err(Failure::NotBuilt) => {}
            // Its program looks at values, so it is no graph.
            Err(Failure::Wrong(why)) if why.contains("an input of a traced function has no value") => reading += 1,
            Err(Failure::Wrong(why)) => {
                println!("{}: {}", case.id, why.replace('\n', " "));
                failed += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed, {reading} look at values");
    assert!(passed > 0 && failed == 0, "{failed} cases do not run from their text");
}

fn check(case: &Case) -> Result<(), Failure> {
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| run::tensor(input, "cpu")).collect::<Result<_, _>>()?;
    let arguments: Vec<&Tensor> = inputs.iter().collect();
    let specs: Vec<Spec> = inputs.iter().map(Spec::of).collect();
    let mut failure = None;
    let traced = Function::trace(&specs, |inputs| {
        run::outputs(case, inputs).unwrap_or_else(|error| {
            failure = Some(error);
            vec![]
        })
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let function = traced?;
    let again: Function = same(&function)?;
    let expect = |what: &str, outputs: &[Tensor]| -> Result<(), Failure> {
        for (index, (got, want)) in outputs.iter().zip(&case.outputs).enumerate() {
            compare(&format!("{what}: output {index}"), &run::array(got)?, want, case.tolerance)?;
        }
        Ok(())
    };
    let results = again.call(&arguments);
    for kernel in Program::of(&results.iter().collect::<Vec<_>>())? {
        same(&kernel)?;
    }
    expect("function", &results)?;
    let prepared: Prepared = same(&again.prepare(&arguments)?)?;
    // SAFETY: a prepared call printed it.
    let prepared = unsafe { prepared.vouched() };
    let mut out = prepared.outputs()?;
    prepared.call(&mut out, &arguments)?;
    expect("command buffer", &out)
}

/// What the text of `printed` is read as; it prints the same.
fn same<T: std::fmt::Display + std::str::FromStr<Err = tinyspec::Error>>(printed: &T) -> Result<T, Failure> {
    let text = printed.to_string();
    let read: T = text.parse()?;
    match read.to_string() == text {
        true => Ok(read),
        false => Err(Failure::Wrong(format!("prints as something else:\n{text}\n{read}"))),
    }
}
