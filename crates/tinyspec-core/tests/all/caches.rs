//! What a process keeps of programs that never come again is bounded.
//!
//! `TINYSPEC_SHAPES=100000` tries as many, with the usual limit, and prints what the process needs on the way;
//! `TINYSPEC_STEPS=1000000` trains for so many steps.

use std::process::{Command, Output};
use tinyspec_core::nn::{Adam, Optimizer};
use tinyspec_core::{Tensor, grad};

/// Bytes of this process in memory.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

#[test]
fn programs_that_never_come_again_are_forgotten() {
    let is_long = std::env::var_os("TINYSPEC_SHAPES").is_some();
    in_own_process("many", if is_long { None } else { Some("4MB") });
}

#[test]
fn a_training_needs_no_more_memory_with_time() {
    in_own_process("trains", None);
}

fn in_own_process(work: &str, plans: Option<&str>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("caches::work::{work}"), "--include-ignored", "--nocapture"]);
    command.env("TINYSPEC_CACHE", "off").envs(plans.map(|plans| ("TINYSPEC_PLANS", plans)));
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    println!("{text}");
    assert!(status.success() && text.contains("1 passed"), "{text}");
}

mod work {
    use super::*;

    /// One program that comes again each time, one with a new constant, one with new shapes, and a gradient of it.
    fn compute(number: usize, always: &Tensor) -> Result<(), tinyspec_core::Error> {
        let added = (always + (number as f64 + 0.5)).sum(.., false).item::<f32>()?;
        assert_eq!(added, 8.0 * (number as f32 + 1.5));
        let x = Tensor::from_slice(&vec![2f32; number + 1], [number + 1]);
        let loss = x.square().sum(.., false);
        assert_eq!(loss.item::<f32>()?, 4.0 * (number as f32 + 1.0));
        if number.is_multiple_of(4) {
            assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, vec![4.0; number + 1]);
        }
        assert_eq!(always.exp().log().to_vec::<f32>()?.len(), 8);
        Ok(())
    }

    /// Losses that are read, drawn values, a batch that is now and then shorter, and a rate that changes with each step.
    #[test]
    #[ignore = "run by a test above"]
    fn trains() -> Result<(), tinyspec_core::Error> {
        let steps: usize = std::env::var("TINYSPEC_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(450);
        let (mut w, mut v) = (Tensor::randn([8, 16]) * 0.1, Tensor::randn([16, 1]) * 0.1);
        let mut optimizer = Adam::new(0.01);
        let mut before = None;
        for step in 0..steps {
            let rows = if step % 10 == 9 { 7 } else { 16 };
            let x = Tensor::randn([rows, 8]);
            let loss = (x.matmul(&w).tanh().dropout(0.1).matmul(&v) - x.sum(1, true)).square().mean(.., false);
            assert!(loss.item::<f32>()?.is_finite());
            let gradients = grad(&loss, &[&w, &v])?;
            optimizer.set_learning_rate(0.01 / (1.0 + step as f32 * 0.001));
            optimizer.step(&mut [&mut w, &mut v], &gradients)?;
            if step == steps / 3 {
                before = resident();
            }
            if step % 20_000 == 0 {
                println!("{step}: {} MB", resident().unwrap_or(0) >> 20);
            }
        }
        let (Some(before), Some(after)) = (before, resident()) else { return Ok(()) };
        assert!(after < before + (8 << 20), "{} MB more after {} steps", (after - before) >> 20, 2 * steps / 3);
        Ok(())
    }

    #[test]
    #[ignore = "run by a test above"]
    fn many() -> Result<(), tinyspec_core::Error> {
        let asked: Option<usize> = std::env::var("TINYSPEC_SHAPES").ok().and_then(|text| text.parse().ok());
        let (first, all) = asked.map_or((200, 700), |asked| (asked / 2, asked));
        let always = Tensor::from_slice(&[1f32; 8], [8]);
        let mut before = None;
        for number in 0..all {
            // As many lengths as there are numbers would need large tensors.
            compute(number % 20_000, &(&always + (number / 20_000) as f64 * 0.0))?;
            if number == first {
                before = resident();
            }
            if asked.is_some() && number % 2000 == 0 {
                println!("{number}: {} MB", resident().unwrap_or(0) >> 20);
            }
        }
        // What was forgotten is made again.
        compute(0, &always)?;
        let (Some(before), Some(after)) = (before, resident()) else { return Ok(()) };
        // Some 20 kB a program, if each were kept: 20 MB.
        assert!(after < before + (10 << 20), "{} MB more after {} programs", (after - before) >> 20, 2 * (all - first));
        assert!(asked.is_none() || after < 150 << 20, "{} MB", after >> 20);
        Ok(())
    }
}
