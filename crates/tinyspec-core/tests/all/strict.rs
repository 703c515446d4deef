//! Sums of products of bf16: by the target's dot instruction, which takes subnormal numbers as 0, unless `TINYSPEC_STRICT`,
//! or the function itself, asks for f32 as written.

use std::process::{Command, Output};
use std::sync::Arc;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_core::execute::{device, register, with_default_device};
use tinyspec_core::{Error, Function, Program, Spec, Tensor, grad};
use tinyspec_ir::DType;

const LEAST: f32 = f32::MIN_POSITIVE / 4.0;

/// A target with the instruction, on any machine.
const DOT: &str = "interpreter/znver4";

fn square(value: f32) -> Tensor {
    let bf16 = Tensor::from_vec(vec![value; 64 * 64], [64, 64]).cast(DType::BF16);
    bf16.realize().expect("numbers").clone()
}

fn product(a: &Tensor, b: &Tensor) -> Tensor {
    a.cast(DType::F32).matmul(b.cast(DType::F32))
}

/// What a sum of 64 products of a subnormal number by 1 is, element by element the same.
#[test]
#[ignore = "run by the test below"]
fn sum() -> Result<(), Error> {
    for name in ["cpu", DOT] {
        let sum = with_default_device::<_, Error>(name, || product(&square(LEAST), &square(1.0)).to_vec::<f32>())?;
        println!("sum {}", sum[0] / LEAST);
    }
    Ok(())
}

#[test]
fn the_dot_instruction_is_used_unless_that_is_refused() -> Result<(), Error> {
    let run = |strict: &str| {
        let Output { status, stdout, .. } = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "strict::sum", "--include-ignored", "--nocapture"])
            .env("TINYSPEC_STRICT", strict)
            .env("TINYSPEC_CACHE", "off")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&stdout).into_owned();
        assert!(status.success(), "{text}");
        text.lines().filter_map(|line| line.strip_prefix("sum ").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(run("1"), ["64", "64"]);
    let has_dot = device("cpu")?.target().has_tensor_core(DType::BF16);
    assert_eq!(run("0"), [if has_dot { "0" } else { "64" }, "0"]);
    Ok(())
}

/// A function that asks for it is strict in its values and its gradient, beside others that are not.
#[test]
fn functions_may_ask_to_be_computed_as_written() -> Result<(), Error> {
    let specs = [Spec::new(DType::BF16, [64, 64]), Spec::new(DType::BF16, [64, 64])];
    let fast = Function::trace(&specs, |inputs| vec![product(&inputs[0], &inputs[1])])?;
    let strict = fast.strict()?;
    with_default_device::<_, Error>(DOT, || {
        let (a, b) = (square(LEAST), square(1.0));
        let first = |results: Vec<Tensor>| Ok::<f32, Error>(results[0].to_vec::<f32>()?[0] / LEAST);
        assert_eq!([first(fast.call(&[&a, &b]))?, first(strict.call(&[&a, &b]))?], [0.0, 64.0]);
        // The cotangent of bf16 times the other operand of bf16.
        let slope = |function: &Function| {
            let result = function.call(&[&b, &a])[0].cast(DType::BF16);
            let slope = grad(&result.cast(DType::F32).sum(.., false), &[&b])?;
            Ok::<f32, Error>(slope[0].cast(DType::F32).to_vec::<f32>()?[0] / LEAST)
        };
        assert_eq!(slope(&strict)?, 64.0);
        Ok(())
    })
}

/// What strictness costs is the dot instruction, nothing else: the schedule is that of a target without it.
#[test]
fn strict_functions_are_scheduled_like_strict_targets() -> Result<(), Error> {
    let specs = [Spec::new(DType::BF16, [64, 64]), Spec::new(DType::BF16, [64, 64])];
    let product = Function::trace(&specs, |inputs| vec![inputs[0].matmul(&inputs[1])])?;
    let strict = device(DOT)?.target().clone().strict();
    register("strict", strict, Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime));
    let source = |name: &str, function: &Function| {
        with_default_device::<_, Error>(name, || {
            let programs = Program::of(&[&function.call(&[&square(1.0), &square(2.0)])[0]])?;
            Ok(programs.iter().map(|program| program.source().unwrap_or_default().to_string()).collect::<String>())
        })
    };
    assert_eq!(source(DOT, &product.strict()?)?, source("strict", &product)?);
    assert_ne!(source(DOT, &product)?, source("strict", &product)?);
    Ok(())
}
