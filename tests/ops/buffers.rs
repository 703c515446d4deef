//! Kernels written by hand: which buffers they work in, and what is known of what they leave there.

use crate::all;
use tinyspec::prelude::*;
use tinyspec::{device, with_default_device};
use tinyspec_core::lower::rangeify::rangeify;

uop! { <N>
    fn negated(x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) {
            y[i] = 0 - x[i];
        }
    }
}

uop! { <N>
    fn halved_and_doubled(x: &mut Global<f32, N>, y: &mut Global<f32, N>) {
        for i in global(N / 2) {
            x[i] = x[i] * 0.5;
            y[i] = y[i] * 2.0;
        }
    }
}

#[test]
fn what_a_kernel_leaves_has_other_bounds_than_what_was_there() -> Result<()> {
    for name in all() {
        with_default_device::<_, Error>(name, || {
            let y = negated(&Tensor::from_slice(&[1i32, -2, 3], [3]));
            assert_eq!(y.lt(0).to_vec::<bool>()?, [true, false, true], "{name}");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn two_buffers_that_begin_with_one_value_are_two() -> Result<()> {
    for name in all() {
        with_default_device::<_, Error>(name, || {
            let mut x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]) + 1.0;
            let mut y = x.clone();
            halved_and_doubled(&mut x, &mut y);
            assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 4.0], "{name}");
            assert_eq!(y.to_vec::<f32>()?, [4.0, 3.0, 4.0], "{name}");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_temporary_that_only_the_kernel_reads_is_not_copied() -> Result<()> {
    let traced = Function::trace(&[Spec::new(DType::F32, [6]), Spec::new(DType::F32, [6])], |inputs| {
        let (mut x, mut y) = (inputs[0].exp(), inputs[1].exp());
        halved_and_doubled(&mut x, &mut y);
        vec![x, y]
    })?;
    let target = device("interpreter")?.target().clone();
    let schedule = rangeify(traced.body().graph(), traced.body().outputs(), &target)?;
    assert!(schedule.calls.len() <= 3, "{} kernels", schedule.calls.len());
    Ok(())
}
