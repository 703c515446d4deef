//! A kernel that a stage refuses runs all the same, with one warning; where mistakes are looked for it is an error.
//!
//! `TINYSPEC_FAULT` is read once a process, so each test runs its work in processes of its own.

use std::process::Command;
use tinyspec_core::lower::kernel::lower_kernel;
use tinyspec_core::{Error, Tensor, realize_all};
use tinyspec_ir::{DType, text};

/// Runs the work below with a fault; what it printed.
fn work(fault: &str, variables: &[(&str, &str)]) -> String {
    process("computes", fault, variables)
}

/// Runs a test of `work` in a process of its own; what it printed.
fn process(test: &str, fault: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("fallback::work::{test}"), "--include-ignored", "--nocapture"])
        .env("TINYSPEC_FAULT", fault)
        .env("TINYSPEC_CACHE", "off")
        .env_remove("TINYSPEC_VERIFY")
        .env("TINYSPEC_FALLBACK", "on")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text
}

#[test]
fn without_a_fault_nothing_is_said() {
    let text = work("", &[]);
    assert!(text.contains("computed") && !text.contains("warning"), "{text}");
}

#[test]
fn a_refused_schedule_costs_time_only() {
    let text = work("schedule", &[]);
    assert!(text.contains("computed"), "{text}");
    assert_eq!(text.matches("warning").count(), 1, "{text}");
    assert!(text.contains("runs without a schedule"), "{text}");
}

#[test]
fn sums_that_cannot_share_a_kernel_have_their_own() {
    let text = work("fusion", &[]);
    assert!(text.contains("computed"), "{text}");
    assert_eq!(text.matches("warning").count(), 1, "{text}");
    assert!(text.contains("kernels of their own"), "{text}");
}

/// Sums over the same loops of the same data share a kernel, although neither contains the other.
#[test]
fn sums_beside_each_other_have_their_own_too() {
    let text = process("computes_side_by_side", "fusion", &[]);
    assert!(text.contains("computed"), "{text}");
    assert!(text.contains("kernels of their own"), "{text}");
}

/// The warning holds a file test, whose kernel lowers here.
#[test]
fn the_warning_is_a_reproducer() {
    let text = work("fusion", &[]);
    let case = &text[text.find("test loops from ranges\ntarget ").expect(&text)..text.find("end\n").expect(&text)];
    let (facts, kernel) = case.split_once("\n\n").unwrap();
    assert!(facts.contains("vector_bytes=") && facts.contains("\nschedule "), "{facts}");
    let (mut graph, roots) = text::parse(kernel).unwrap();
    lower_kernel(&mut graph, roots[0], "kernel", &tinyspec_backends::interpreter::target()).unwrap();
}

#[test]
fn where_mistakes_are_looked_for_it_is_an_error() {
    for variables in [[("TINYSPEC_FALLBACK", "off")], [("TINYSPEC_VERIFY", "1")]] {
        for fault in ["schedule", "fusion"] {
            let text = work(fault, &variables);
            assert!(text.contains(&format!("refused: lowering: TINYSPEC_FAULT={fault}")), "{text}");
            assert!(!text.contains("warning"), "{text}");
        }
    }
}

/// What the tests above run.
mod work {
    use super::*;

    fn compute() -> Result<(), Error> {
        let numbers: Vec<f32> = (0..48).map(|at| (at * 7 % 11) as f32).collect();
        let x = Tensor::from_slice(&numbers, [6, 8]);
        let shares = x.sub(x.max(1, true)).exp2();
        let found = shares.div(shares.sum(1, true)).to_vec::<f32>()?;
        for (row, found) in numbers.chunks(8).zip(found.chunks(8)) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = row.iter().map(|value| (value - most).exp2()).sum();
            for (value, found) in row.iter().zip(found) {
                assert!(((value - most).exp2() / total - found).abs() < 1e-6, "{row:?}");
            }
        }
        Ok(())
    }

    fn compute_side_by_side() -> Result<(), Error> {
        let x = Tensor::arange(48).cast(DType::F32).reshape([6, 8]).realize()?.clone();
        let (sums, squares) = (x.sum(1, false), x.square().sum(1, false));
        realize_all(&[&sums, &squares])?;
        assert_eq!(sums.to_vec::<f32>()?[..2], [28.0, 92.0]);
        assert_eq!(squares.to_vec::<f32>()?[..2], [140.0, 1100.0]);
        Ok(())
    }

    fn report(result: Result<(), Error>) {
        match result {
            Ok(()) => println!("computed"),
            Err(error) => println!("refused: {error}"),
        }
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn computes() {
        report(compute());
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn computes_side_by_side() {
        report(compute_side_by_side());
    }
}
