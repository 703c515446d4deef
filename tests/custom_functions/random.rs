//! Random programs of kernels and calls give what the same programs give without calls.

use crate::register;
use tinyspec::prelude::*;
use tinyspec::{call_function, with_default_device};

const LENGTH: usize = 6;

/// One step: its operation, and the earlier values that it takes.
#[derive(Debug)]
struct Step {
    op: u8,
    takes: [usize; 2],
}

fn program(random: &mut fastrand::Rng) -> Vec<Step> {
    let count = random.usize(2..10);
    let step = |number| Step { op: random.u8(0..7), takes: [random.usize(0..number + 2), random.usize(0..number + 2)] };
    (0..count).map(step).collect()
}

/// All values of a program: inputs first. With or without custom functions.
fn values(program: &[Step], calls: bool) -> Vec<Tensor> {
    let x = Tensor::arange(LENGTH as i64).cast(DType::F32);
    let mut values = vec![x.clone(), Tensor::from_slice(&[2f32, -1.0, 0.0, 3.0, 1.0, -2.0], [LENGTH])];
    let half = Tensor::scalar(0.5f32);
    for Step { op, takes } in program {
        let [a, b] = takes.map(|number| values[number].clone());
        let value = match (op, calls) {
            (0, _) => a + b,
            (1, _) => a * 0.5 - 1.0,
            (2, _) => a.sum(0, true).expand([LENGTH]) * 0.125 + b,
            (3 | 4, false) => a * 2.0,
            (3 | 4, true) => {
                let [y] = call_function("twice", &[], &[&a]);
                y
            }
            (_, false) => a + b * 0.5,
            (_, true) => {
                let [y] = call_function("axpy", &[], &[&a, &b, &half]);
                y
            }
        };
        values.push(value);
    }
    values
}

#[test]
fn random_programs_agree_with_those_without_calls() {
    register();
    let mut random = fastrand::Rng::with_seed(7);
    let devices = crate::devices();
    for number in 0..120 {
        let program = program(&mut random);
        let device = devices[number % devices.len()];
        // Some of the values are read, all in one run.
        let read: Vec<bool> = (0..program.len() + 2).map(|_| random.bool()).collect();
        with_default_device(device, || {
            let chosen = |calls| {
                let values = values(&program, calls);
                let last = values.len() - 1;
                let is_read = |(number, _): &(usize, Tensor)| read[*number] || *number == last;
                values.into_iter().enumerate().filter(is_read).map(|(_, value)| value).collect::<Vec<Tensor>>()
            };
            let (found, expected) = (chosen(true), chosen(false));
            realize_all(&found.iter().collect::<Vec<_>>())?;
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.to_vec::<f32>()?, expected.to_vec::<f32>()?, "{number} on {device}: {program:?}");
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}
