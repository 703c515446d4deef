//! Attention over a cache that grows by a row a step, as a language model decodes: the kernels of the first steps serve all.
//!
//! `cargo run --release --example decode` prints, for some lengths, how many kernels were compiled so far and how long a step took.

use std::time::Instant;
use tinyspec::prelude::*;
use tinyspec::profile;

const LONGEST: usize = 4096;

/// One query over the keys and values so far: `T` is bound by what is passed, and no kernel is made for it.
#[function(bounds(T: 1..=4096))]
fn attend<T>(q: &Tensor<f32, 1, 64>, keys: &Tensor<f32, T, 64>, values: &Tensor<f32, T, 64>) -> Tensor<f32, 1, 64> {
    (q.matmul(keys.transpose(0, 1)) * 0.125).softmax(-1).matmul(values)
}

fn main() -> Result<()> {
    let (mut keys, mut values) = (Tensor::zeros([LONGEST, 64]), Tensor::zeros([LONGEST, 64]));
    let mut x = Tensor::randn([1, 64]);
    println!("length  kernels  step");
    for step in 0..LONGEST {
        let start = Instant::now();
        // A position that is data: the program is the same in every step.
        let at = Tensor::from_slice(&[step as i32], [1]);
        keys.set(&at, &x);
        values.set(&at, &x * 0.5);
        x = attend(&x, &keys.at(..=step), &values.at(..=step)) + Tensor::randn([1, 64]);
        x.realize()?;
        if (step + 1).is_power_of_two() {
            println!("{:6}  {:7}  {:?}", step + 1, profile::counters().kernels, start.elapsed());
        }
    }
    Ok(())
}
