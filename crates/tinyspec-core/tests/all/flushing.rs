//! `TINYSPEC_FLUSH`: subnormal numbers count as 0 in products of bf16, where an instruction has them in pairs.

use std::process::{Command, Output};
use tinyspec_backends::llvm::Host;
use tinyspec_core::Tensor;
use tinyspec_ir::DType;

const LEAST: f32 = f32::MIN_POSITIVE / 4.0;

/// What a sum of 64 products of a subnormal number by 1 is, element by element the same.
#[test]
#[ignore = "run by the test below"]
fn sum() {
    let square = |value: f32| {
        let bf16 = Tensor::from_vec(vec![value; 64 * 64], [64, 64]).cast(DType::BF16);
        bf16.realize().unwrap();
        bf16.cast(DType::F32)
    };
    let product = square(LEAST).matmul(square(1.0));
    println!("sum {}", product.to_vec::<f32>().unwrap()[0] / LEAST);
}

#[test]
fn subnormal_numbers_count_as_zero_where_that_is_asked_for() {
    let run = |flush: &str| {
        let Output { status, stdout, .. } = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "flushing::sum", "--include-ignored", "--nocapture"])
            .env("TINYSPEC_FLUSH", flush)
            .env("TINYSPEC_CACHE", "off")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&stdout).into_owned();
        assert!(status.success(), "{text}");
        text.lines().find_map(|line| line.strip_prefix("sum ").map(str::to_owned)).unwrap()
    };
    assert_eq!(run("0"), "64");
    let host = Host::detect();
    let differs = host.flushing_target().tensor_cores != host.target().tensor_cores;
    assert_eq!(run("1"), if differs { "0" } else { "64" });
}
