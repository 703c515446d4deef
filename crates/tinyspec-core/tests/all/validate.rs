//! `TINYSPEC_VALIDATE=1`: what each kernel computes is compared with another device, while a program runs.
//!
//! Each test runs its work in a process of its own.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tinyspec_backends::interpreter::simt::{self, SimtCompiler, SimtRuntime};
use tinyspec_backends::{BackendError, CommandBuffer, Program, Runtime};
use tinyspec_core::execute::register;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

fn validated(work: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("validate::{work}"), "--include-ignored", "--nocapture"])
        .env("TINYSPEC_VALIDATE", "1")
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
    assert!(!err.contains("not compared"), "{err}");
}

/// Products, sums, indices, a gradient, a state that is written over, numbers of several widths.
fn program(on: &str) -> Result<Vec<f32>, Error> {
    let x = Tensor::linspace(-1.0, 1.0, 24 * 40, DType::F32).reshape([24, 40]).to(on);
    let w = (Tensor::arange(40 * 8).cast(DType::F32) * 0.01).reshape([40, 8]).to(on).contiguous();
    let loss = x.matmul(&w).softmax(-1).log().sum(.., false);
    let step = grad(&loss, &[&w])?.remove(0);
    let mut state = (&w - step * 0.1).contiguous();
    state.realize()?;
    let half = &state * 0.5;
    state.assign(&half);
    let order = state.sum(1, false).argsort(0, false);
    let halves = state.cast(DType::F16).cast(DType::F32) + order.cast(DType::F32).reshape([40, 1]);
    halves.to_vec()
}

#[test]
fn right_devices_run_as_ever() {
    validated("all_agree");
}

#[test]
#[ignore = "run by the test above"]
fn all_agree() -> Result<(), Error> {
    let expected = program("interpreter")?;
    for on in ["simt", "simt/sm_80", "interpreter/x86-64-v4"] {
        assert_eq!(program(on)?.len(), expected.len(), "{on}");
    }
    let found = program("cpu")?;
    assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-3), "{expected:?} {found:?}");
    Ok(())
}

/// What is equal to a maximum is decided by the last bits.
#[test]
fn right_devices_may_round_ties_otherwise() {
    validated("ties");
}

#[test]
#[ignore = "run by the test above"]
fn ties() -> Result<(), Error> {
    let x = Tensor::from_vec((0..16 * 26).map(|n| (n as f32 * 12.9898).sin() * 3.0).collect(), [16, 2, 13]);
    let y = x.exp().max(1, true).square().sum(.., false);
    assert_eq!(grad(&y, &[&x])?.remove(0).to_vec::<f32>()?.len(), 16 * 26);
    Ok(())
}

/// Where terms cancel, only their rounding is left.
#[test]
fn right_devices_may_round_terms_otherwise() {
    validated("cancellation");
}

#[test]
#[ignore = "run by the test above"]
fn cancellation() -> Result<(), Error> {
    for count in [7, 91, 1000] {
        let x = Tensor::from_vec(vec![0.1; count], [count]);
        let y = (&x + 0.2).var(0, 1, false);
        assert_eq!(grad(&y, &[&x])?.remove(0).to_vec::<f64>()?.len(), count);
    }
    Ok(())
}

/// The rows of 7 numbers are read from parts that begin at whole vectors: some begin at one place and end at different ones.
#[test]
fn parts_of_a_tensor_are_copied_whole() {
    validated("rows_of_a_recurrence");
}

#[test]
#[ignore = "run by the test above"]
fn rows_of_a_recurrence() -> Result<(), Error> {
    let data = |count: usize| Tensor::from_vec((0..count).map(|n| (n as f32 * 12.9898).sin()).collect(), [count]);
    let (transitions, emissions) = (data(49).reshape([7, 7]), data(210).reshape([30, 7]));
    let mut scores = emissions.at(0);
    for step in 1..30i64 {
        scores = (scores.unsqueeze(1) + &transitions).max(0, false) + emissions.at(step);
    }
    assert_eq!(scores.to_vec::<f32>()?.len(), 7);
    Ok(())
}

/// A device that gets an element of one launch wrong.
struct Wrong {
    launches: AtomicUsize,
    wrong: usize,
}

// SAFETY: memory and kernels are those of the interpreter; what is written beside is an element of the kernel's result.
unsafe impl Runtime for Wrong {
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        SimtRuntime.load(name, code)
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        for (number, launch) in commands.launches().iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { SimtRuntime.enqueue(&commands.only(number..number + 1), table)? };
            if self.launches.fetch_add(1, Ordering::Relaxed) == self.wrong {
                // SAFETY: the result of each kernel of the test has more than 7 elements of 4 bytes.
                unsafe { table[launch.buffers[0] as usize].cast::<f32>().add(7).write(1234.5) };
            }
        }
        Ok(())
    }
}

#[test]
fn a_kernel_that_is_wrong_is_named() {
    validated("names_the_kernel");
}

#[test]
#[ignore = "run by the test above"]
fn names_the_kernel() -> Result<(), Error> {
    for wrong in 0..3 {
        let name = format!("wrong{wrong}");
        let runtime = Wrong { launches: AtomicUsize::new(0), wrong };
        register(&name, simt::target(), Arc::new(SimtCompiler), Arc::new(runtime));
        let x = Tensor::from_vec((0..12).map(|i| i as f32 / 11.0).collect(), [12]).to(&name);
        let before = line!();
        let first = (&x * 2.0).contiguous();
        let second = (&first + 1.0).contiguous();
        let third = (&second * &first).contiguous();
        let error = third.to_vec::<f32>().expect_err("an element is wrong");
        let text = error.to_string();
        let Error::Mismatch(mismatch) = &error else { panic!("{text}") };
        assert_eq!((mismatch.element, mismatch.elements, mismatch.count), (7, 12, 1), "{text}");
        assert_eq!((mismatch.found, mismatch.device.as_str(), mismatch.reference.as_str()), (1234.5, &*name, "cpu"));
        let x = 7.0 / 11.0;
        let expected = [2.0 * x, 2.0 * x + 1.0, (2.0 * x + 1.0) * 2.0 * x][wrong];
        assert!((mismatch.expected - expected).abs() < 1e-5, "{text}");
        assert!(text.contains(&format!("kernel `{}`", mismatch.kernel)), "{text}");
        assert!(text.contains(&format!("validate.rs:{}:", before + 1 + wrong as u32)), "{text}");
    }
    Ok(())
}
