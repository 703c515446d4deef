//! What a process leaves on disk for the next one.

use std::path::Path;
use std::process::Command;
use tinyspec::call_function;
use tinyspec::prelude::*;

/// Runs a test below in a process of its own.
fn in_own_process(test: &str, cache: &Path, settings: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes::{test}"), "--include-ignored", "--nocapture"])
        .env("TINYSPEC_CACHE", cache)
        // Whoever verifies wants everything lowered.
        .env("TINYSPEC_VERIFY", "0")
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text
}

#[test]
fn a_command_buffer_from_disk_finds_the_function_again() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("custom-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    in_own_process("computes", &folder, &[]);
    in_own_process("lowers_nothing", &folder, &[]);
    in_own_process("does_not_register", &folder, &[]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn kernels_around_it_are_validated() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("custom-validate-{}", std::process::id()));
    in_own_process("computes", &folder, &[("TINYSPEC_VALIDATE", "1")]);
    let text = in_own_process("computes", &folder, &[("TINYSPEC_DEBUG", "2")]);
    assert!(text.contains("custom function") && text.contains("gemm"), "{text}");
    let _ = std::fs::remove_dir_all(&folder);
}

fn computed() -> Result<Vec<f32>> {
    let a = Tensor::arange(4096).cast(DType::F32).reshape([64, 64]);
    let a = a.softmax(1).matmul(&a) * 0.0 + 1.0;
    let [c] = call_function("gemm", &[], &[&a, &a]);
    (c + 1.0).to_vec()
}

#[test]
#[ignore = "run in its own process"]
fn computes() {
    crate::register();
    assert_eq!(computed().unwrap(), vec![65.0; 4096]);
}

#[test]
#[ignore = "run in its own process"]
fn lowers_nothing() {
    computes();
    assert_eq!(tinyspec::profile::counters().kernels, 0);
}

#[test]
#[ignore = "run in its own process"]
fn does_not_register() {
    let error = computed().unwrap_err().to_string();
    assert!(error.starts_with("gemm: no custom function of this name is registered"), "{error}");
}
