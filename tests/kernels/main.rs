//! Kernels written by hand: every good one gives what plain Rust gives, on every device.

mod apart;
mod atomic;
mod bounded;
mod calls;
mod carried;
mod custom;
mod dtypes;
mod elementwise;
mod empty;
mod exits;
mod far;
mod functions;
mod large;
mod lines;
mod matrix;
mod own_code;
mod programs;
mod races;
mod random_code;
mod reduction;
mod running;
mod scan;
mod scatter;
#[path = "../simulators.rs"]
mod simulators;
mod storage;
mod trips;
mod updates;
mod vectors;
mod window;
mod words;

use tinyspec::{Result, Tensor};

/// One simulated GPU of each vendor.
const GPUS: [&str; 2] = ["ptxsim:sm_80", "amdsim:gfx1100"];

/// The interpreters, machine code, and GPUs that are simulated, where code can be made for them.
fn devices() -> Vec<&'static str> {
    let mut devices = vec!["interpreter", "simt", "cpu"];
    match simulators::register() {
        Ok(()) => devices.extend(GPUS),
        Err(error) => println!("skipped: a simulated GPU: {error}"),
    }
    devices
}

/// Runs a check on every device.
fn each_device(check: impl Fn(&str)) {
    devices().into_iter().for_each(check);
}

/// The same with every device as the one where new tensors are.
fn on_both(check: impl Fn() -> Result<()>) -> Result<()> {
    devices().into_iter().try_for_each(|device| tinyspec::with_default_device(device, &check))
}

/// Small whole numbers, so that sums are exact in any order.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 24) % 9) as f32 - 4.0
    };
    (0..count).map(|_| next()).collect()
}

fn tensor(data: &[f32], shape: &[usize], device: &str) -> Tensor {
    Tensor::from_slice(data, shape).to(device)
}

#[track_caller]
fn assert_close(found: &Tensor, expected: &[f32]) {
    let found = found.to_vec::<f32>().unwrap();
    assert_eq!(found.len(), expected.len());
    for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{position}: {found} is not {expected}");
    }
}

#[track_caller]
fn assert_same(found: &Tensor, expected: &[f32]) {
    assert_eq!(found.to_vec::<f32>().unwrap(), expected);
}
