//! `TINYSPEC_CPU` and the processors as devices: rendered for everywhere, run where the host is able, else interpreted.

use crate::support::SHAPES;
use std::process::{Command, Output};
use tinyspec_backends::{BackendError, Processor};
use tinyspec_core::execute::{device, with_default_device};
use tinyspec_core::{Error, Program, Tensor};
use tinyspec_ir::DType;

fn product() -> Tensor {
    let numbers = |seed: i64| (0..40 * 40).map(|k| (k * seed % 7) as f32 - 3.0).collect::<Vec<f32>>();
    let factor = |seed: i64| Tensor::from_vec(numbers(seed), [40, 40]);
    factor(3).matmul(factor(5)).relu().sum(1, false)
}

#[test]
fn processors_are_devices_that_render_and_run_where_the_host_is_able() -> Result<(), Error> {
    let expected = with_default_device::<_, Error>("interpreter", || product().to_vec::<f32>())?;
    for name in Processor::names() {
        with_default_device::<_, Error>(name, || {
            let programs = Program::of(&[&product()])?;
            assert!(programs.iter().all(|program| program.binary().is_some_and(|code| code.starts_with(b"\x7fELF"))));
            let missing = Processor::named(name)?.isa.missing_on_host();
            match (product().to_vec::<f32>(), missing) {
                (Ok(found), None) => assert_eq!(found, expected, "{name}"),
                (Err(Error::Backend(BackendError::Processor { reason, .. })), Some(missing)) => {
                    assert_eq!(reason, missing);
                }
                (outcome, missing) => panic!("{name}, {missing:?}: {outcome:?}"),
            }
            Ok(())
        })?;
        for device in [format!("interpreter/{name}"), format!("native/{name}")] {
            assert_eq!(with_default_device::<_, Error>(&device, || product().to_vec::<f32>())?, expected, "{device}");
        }
    }
    let error = device("interpreter/z80").expect_err("no such processor").to_string();
    assert!(error.contains("interpreter/z80") && error.contains("znver5") && error.contains("sm_80"), "{error}");
    Ok(())
}

/// What a program is lowered to is the target's, whichever machine lowers.
#[test]
fn shapes_differ_in_what_is_lowered() -> Result<(), Error> {
    let mut texts = Vec::new();
    for shape in SHAPES {
        with_default_device::<_, Error>(shape, || texts_of(&mut texts))?;
    }
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
    Ok(())
}

fn texts_of(texts: &mut Vec<String>) -> Result<(), Error> {
    let programs = Program::of(&[&product()])?;
    texts.push(programs.iter().map(|program| program.source().unwrap_or_default().to_string()).collect());
    Ok(())
}

#[test]
#[ignore = "run by the test below"]
fn lanes() {
    match device("cpu") {
        Ok(cpu) => println!("lanes {}", cpu.target().lanes(DType::F32)),
        Err(error) => println!("lanes {error}"),
    }
}

#[test]
fn the_environment_chooses_the_processor() {
    let run = |name: &str| {
        let Output { stdout, .. } = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processors::lanes", "--include-ignored", "--nocapture"])
            .env("TINYSPEC_CPU", name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("lanes ").map(str::to_owned)).unwrap_or(text)
    };
    let native = Processor::native().target(1).lanes(DType::F32).to_string();
    assert_eq!([run(""), run("native")], [native.clone(), native]);
    assert_eq!(["x86-64-v3", "znver4", "neoverse-v2"].map(run), ["8", "16", "4"]);
    let error = run("z80");
    assert!(error.contains("TINYSPEC_CPU=z80") && error.contains("znver5"), "{error}");
}
