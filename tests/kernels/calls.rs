use crate::*;
use std::sync::Arc;
use tinyspec::backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec::prelude::*;

const HALF: usize = 8;

uop! { <M, N>
    pub fn softmax(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(M) {
            let mut greatest = -1e30f32;
            for j in reduce(N) { greatest = max(greatest, x[i, j]); }
            let mut total = 0.0f32;
            for j in reduce(N) { total += exp(x[i, j] - greatest); }
            for j in serial(N) { y[i, j] = exp(x[i, j] - greatest) / total; }
        }
    }

    <N>
    #[gradient(scaled_gradient)]
    fn scaled(x: &Global<f32, N>, w: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i] * w[i]; }
    }

    <N>
    fn halves(x: &Global<f32, N, { 2 * HALF }>) -> (Global<f32, N, HALF> as left, Global<f32, N, HALF> as right) {
        for i in global(N) {
            for j in global(HALF) {
                left[i, j] = x[i, j];
                right[i, j] = x[i, HALF + j];
            }
        }
    }
}

#[function]
fn scaled_gradient<N>(x: &Tensor<f32, N>, w: &Tensor<f32, N>, g: &Tensor<f32, N>) -> (Tensor<f32, N>, Tensor<f32, N>) {
    (g * w, g * x)
}

#[function]
fn attention<B, D>(q: &Tensor<f32, B, D>, k: &Tensor<f32, B, D>) -> Tensor<f32, B, B> {
    let scores = q.matmul(k.transpose(0, 1));
    softmax(&scores) * 2.0
}

#[test]
fn a_function_calls_a_kernel() {
    each_device(|device| {
        let (q, k) = (tensor(&numbers(5 * 4, 1), &[5, 4], device), tensor(&numbers(5 * 4, 2), &[5, 4], device));
        let expected = q.matmul(k.transpose(0, 1)).softmax(-1) * 2.0;
        assert_close(&attention(&q, &k), &expected.to_vec::<f32>().unwrap());
    });
}

#[test]
fn kernels_follow_each_other_lazily() {
    each_device(|device| {
        let x = tensor(&numbers(3 * 16, 3), &[3, 16], device);
        let (left, right) = halves(&x);
        let y = scaled(&(&left + &right).reshape([24]), &softmax(&(left - right)).reshape([24]));
        let y = y.sum(.., false);
        let (left, right) = (x.narrow(1, 0, 8), x.narrow(1, 8, 8));
        let expected = ((&left + &right) * (&left - &right).softmax(-1)).sum(.., false);
        assert_close(&y, &expected.to_vec::<f32>().unwrap());
    });
}

#[test]
fn a_kernel_has_the_gradient_it_names() {
    each_device(|device| {
        let x = tensor(&numbers(6, 4), &[6], device);
        let w = tensor(&numbers(6, 5), &[6], device);
        let loss = scaled(&x, &w.square()).sum(.., false);
        let gradients = grad(&loss, &[&x, &w]).unwrap();
        assert_same(&gradients[0], &w.square().to_vec::<f32>().unwrap());
        assert_same(&gradients[1], &(x * w * 2.0).to_vec::<f32>().unwrap());
    });
}

#[test]
fn a_kernel_without_a_gradient_says_so() {
    let x = tensor(&numbers(6, 4), &[2, 3], "cpu");
    let error = grad(&softmax(&x).sum(.., false), &[&x]).unwrap_err();
    assert!(error.to_string().contains("softmax: a kernel written by hand has no gradient"), "{error}");
    assert!(error.to_string().contains("#[gradient(path)]"), "{error}");
}

/// Reading a result changes no gradient, nor that there is none.
#[test]
fn a_kernel_without_a_gradient_says_so_once_its_result_was_read() {
    let x = tensor(&numbers(12, 7), &[4, 3], "interpreter");
    for is_read in [false, true] {
        let y = softmax(&x);
        if is_read {
            y.realize().unwrap();
        }
        let loss = (&y * &x).sum(.., false);
        let error = grad(&loss, &[&x]).unwrap_err();
        assert!(error.to_string().contains("softmax: a kernel written by hand has no gradient"), "{error}");
        let gradient = grad(&(y.detach() * &x).sum(.., false), &[&x]).unwrap();
        assert_same(&gradient[0], &y.to_vec::<f32>().unwrap());
    }
}

#[test]
fn a_kernel_says_where_its_arguments_are_on_two_devices() {
    let (x, w) = (tensor(&numbers(4, 1), &[4], "interpreter:1"), tensor(&numbers(4, 2), &[4], "interpreter:2"));
    let error = scaled(&x, &w).to_vec::<f32>().unwrap_err();
    assert!(error.to_string().contains("scaled: mixes devices interpreter:1 and interpreter:2"), "{error}");
    assert!(error.to_string().contains("calls.rs:"), "{error}");
}

#[test]
fn what_is_found_out_late_says_where_the_call_is() {
    let (x, w) = (tensor(&numbers(4, 1), &[4], "interpreter:1"), tensor(&numbers(4, 2), &[4], "interpreter:2"));
    let both = tensor(&numbers(4, 1), &[4], "interpreter:1").to(["interpreter:1", "interpreter:2"]);
    for (value, said) in [
        (summed(&x, &w), "add: mixes devices"),
        (summed_twice(&x, &w), "add: mixes devices"),
        (summed(&both, &x), "add: mixes devices"),
    ] {
        let error = value.to_vec::<f32>().unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("calls.rs:"), "{error}");
    }
    let moved = (&both * 2.0).to("interpreter:2");
    let error = tinyspec::function::Program::of(&[&moved]).err().unwrap().to_string();
    assert!(error.contains("calls.rs:"), "{error}");
}

#[function]
fn summed<N>(x: &Tensor<f32, N>, y: &Tensor<f32, N>) -> Tensor<f32, N> {
    x + y.relu()
}

#[function]
fn summed_twice<N>(x: &Tensor<f32, N>, y: &Tensor<f32, N>) -> Tensor<f32, N> {
    summed(x, y) * 2.0
}

#[test]
fn constants_of_the_standard_library_are_numbers() {
    let x = tensor(&[1.0, 2.0], &[2], "cpu");
    assert_eq!(turned(&x).to_vec::<f32>().unwrap(), [std::f32::consts::PI, 2.0 * std::f32::consts::PI]);
}

uop! {
    <N> fn turned(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = std::f32::consts::PI * x[i];
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let x = tensor(&numbers(6, 4), &[6], "cpu");
    let error = scaled(&x, &tensor(&[1.0], &[1], "cpu")).to_vec::<f32>().unwrap_err().to_string();
    assert!(error.contains("dim `N` is 6 from `x`, but axis 0 of `w` is 1"), "{error}");
}

uop! { <M, N>
    fn shares(x: &Global<f32, M, N>) -> (Global<f32, M> as sums, Global<f32, M, N> as y) {
        for i in global(M) {
            let mut total = 0.0f32;
            for j in reduce(N) { total += x[i, j]; }
            sums[i] = total;
        }
        for i in global(M) {
            for j in global(N) { y[i, j] = x[i, j] / sums[M - 1 - i]; }
        }
    }
}

#[test]
fn grids_run_one_after_the_other() {
    each_device(|device| {
        let x: Vec<f32> = numbers(3 * 40, 6).iter().map(|x| x + 5.0).collect();
        let (sums, y) = shares(&tensor(&x, &[3, 40], device));
        let expected: Vec<f32> = x.chunks(40).map(|row| row.iter().sum()).collect();
        assert_same(&sums, &expected);
        assert_close(&y, &(0..120).map(|at| x[at] / expected[2 - at / 40]).collect::<Vec<_>>());
    });
}

#[test]
fn a_kernel_is_prepared_like_a_function() {
    each_device(|device| {
        let (x, w) = (tensor(&numbers(6, 4), &[6], device), tensor(&numbers(6, 5), &[6], device));
        let run = scaled::FUNCTION.prepare(&[&x, &w]).unwrap();
        let mut out = run.outputs().unwrap();
        run.call(&mut out, &[&x, &w]).unwrap();
        assert_same(&out[0], &(x * w).to_vec::<f32>().unwrap());
    });
}

uop! { <N>
    fn shifted(y: &mut Global<f32, N>, x: &Global<f32, N>, by: f32) {
        for i in global(N) { y[i] = x[N - 1 - i] * by + y[i]; }
    }

    <N>
    fn counted(total: &mut Global<f32, 1>, x: &Global<f32, N>) {
        let mut sum = 0.0f32;
        for i in reduce(N) { sum += x[i]; }
        total[0] = sum;
    }
}

/// Each device runs the whole kernel, as nobody knows which elements it reads.
#[test]
fn a_kernel_runs_on_every_device_of_a_tuple() {
    for devices in [["interpreter:0", "interpreter:1"], ["cpu:0", "cpu:1"]] {
        let (x, y) = (tensor(&numbers(6, 7), &[6], devices[0]), tensor(&numbers(6, 8), &[6], devices[0]));
        let mut expected = y.clone();
        shifted(&mut expected, &x, 3.0);
        let expected = expected.to_vec::<f32>().unwrap();
        for is_cut in [[true, true], [true, false], [false, true], [false, false]] {
            let on_both = |x: &Tensor, is_cut| match is_cut {
                true => x.to(devices),
                false => tinyspec::collectives::broadcast(x, devices),
            };
            let (x, mut y) = (on_both(&x, is_cut[0]), on_both(&y, is_cut[1]));
            shifted(&mut y, &x, 3.0);
            assert_same(&y, &expected);
            assert_same(
                &(&y + on_both(&y.to(devices[0]), true)),
                &expected.iter().map(|y| y * 2.0).collect::<Vec<_>>(),
            );
        }
        let (x, w) = (x.to(devices), y.to(devices));
        assert_same(&scaled(&x, &w), &(&x * &w).to_vec::<f32>().unwrap());
        let z = tensor(&numbers(3 * 4, 9), &[4, 3], devices[0]);
        assert_close(&softmax(&z.to(devices)), &z.softmax(-1).to_vec::<f32>().unwrap());
    }
}

#[test]
fn a_kernel_over_no_elements_writes_none() {
    each_device(|device| {
        let none = Tensor::zeros([0]).to(device);
        let mut y = none.clone();
        shifted(&mut y, &none, 3.0);
        assert_eq!((y.sizes().unwrap(), y.to_vec::<f32>().unwrap()), (vec![0], vec![]));
        let softmax = softmax(&Tensor::zeros([0, 3]).to(device));
        assert_eq!((softmax.sizes().unwrap(), softmax.to_vec::<f32>().unwrap()), (vec![0, 3], vec![]));
        // What it writes to has an element.
        let mut total = tensor(&[7.0], &[1], device);
        counted(&mut total, &none);
        assert_same(&total, &[0.0]);
    });
}

uop! { <N>
    fn raised(x: &Global<f32, N>, by: f32) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i] + by; }
    }
}

/// A scalar takes memory too: where there is none, the error stands at the call.
#[test]
fn a_scalar_is_made_where_the_kernel_is_called() -> Result<()> {
    let interpreter = tinyspec::device("interpreter")?;
    let (compiler, runtime) = (Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime));
    let device = tinyspec::register("full", interpreter.target().clone(), compiler, runtime);
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).to("full");
    x.realize()?;
    device.limit_memory(Some(device.memory().used));
    let line = line!() + 1;
    let error = raised(&x, 3.0).realize().expect_err("no memory is left");
    assert!(error.to_string().contains(&format!("calls.rs:{line}:")), "{error}");
    device.limit_memory(None);
    assert_eq!(raised(&x, 3.0).to_vec::<f32>()?, [4.0, 5.0]);
    Ok(())
}
