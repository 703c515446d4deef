//! Calls from tensors: kernels before and after, several results, parameters, dtypes, sizes.

use crate::{devices, register};
use std::sync::{Arc, Mutex};
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, call_function, register_function, with_default_device};

#[test]
fn a_call_runs_between_kernels_on_every_device() {
    register();
    for device in devices() {
        with_default_device(device, || {
            let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
            let [y] = call_function("twice", &[], &[&(&x + 1.0)]);
            assert_eq!((y.transpose(0, 1) * 10.0).to_vec::<f32>()?, [40.0, 80.0, 60.0, 100.0], "{device}");
            let [product] = call_function("gemm", &[], &[&x, &x.sum(1, true)]);
            assert_eq!((product - 1.0).to_vec::<f32>()?, [16.0, 36.0], "{device}");
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn a_call_has_several_results_of_several_dtypes() {
    register();
    for device in devices() {
        with_default_device(device, || {
            let x = Tensor::from_slice(&[1.5f32, -0.25, 3.0], [3]);
            let [whole, rest] = call_function("split", &[], &[&x]);
            let sum = whole.cast(DType::F32) + &rest;
            assert_eq!(sum.to_vec::<f32>()?, [1.5, -0.25, 3.0], "{device}");
            assert_eq!(rest.to_vec::<f32>()?, [0.5, 0.75, 0.0], "{device}");
            assert_eq!(whole.to_vec::<i32>()?, [1, -1, 3], "{device}");
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn bools_are_bools_in_a_call() {
    register();
    for device in devices() {
        with_default_device(device, || {
            let x = Tensor::from_slice(&[1i32, 2, 3, 4], [4]);
            let wanted = x.lt(3);
            let [even] = call_function("is_even", &[], &[&(&x + 2), &wanted]);
            assert_eq!(even.to_vec::<bool>()?, [false, true, true, false], "{device}");
            assert_eq!(even.cast(DType::I32).sum(.., false).item::<i32>()?, 2, "{device}");
            let [one] = call_function("is_even", &[], &[&x.sum(.., false).cast(DType::I32), &Tensor::scalar(true)]);
            assert!(one.item::<bool>()?, "{device}");
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn parameters_are_part_of_the_graph() {
    register();
    for count in 1..6i64 {
        let [x] = call_function("fill", &[count.into(), 0.5.into(), "abc".into()], &[]);
        assert_eq!((x + 1.0).to_vec::<f64>().unwrap(), vec![4.5; count as usize]);
    }
    let [x] = call_function("fill", &[2.into(), (-1.0).into(), "".into()], &[]);
    assert_eq!(x.to_vec::<f64>().unwrap(), [-1.0, -1.0]);
}

#[test]
fn constants_numbers_and_views_are_arguments() {
    register();
    let [y] = call_function("twice", &[], &[&Tensor::scalar(3f32)]);
    assert_eq!(y.item::<f32>().unwrap(), 6.0);
    let [y] = call_function("twice", &[], &[&Tensor::ones([2, 3])]);
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 6]);
    let x = Tensor::arange(6).cast(DType::F32).reshape([2, 3]);
    x.realize().unwrap();
    let [y] = call_function("twice", &[], &[&x.at((1, ..))]);
    assert_eq!(y.to_vec::<f32>().unwrap(), [6.0, 8.0, 10.0]);
    let [y] = call_function("twice", &[], &[&x.transpose(0, 1)]);
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, 6.0, 2.0, 8.0, 4.0, 10.0]);
}

#[test]
fn a_tensor_without_elements_is_an_argument() {
    register();
    let [y] = call_function("twice", &[], &[&Tensor::zeros([0, 3])]);
    assert_eq!(y.to_vec::<f32>().unwrap(), [0f32; 0]);
    let [y] = call_function("gemm", &[], &[&Tensor::ones([2, 0]), &Tensor::ones([0, 3])]);
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0; 6]);
}

#[test]
fn an_argument_that_is_updated_keeps_its_value_for_others() {
    register();
    for device in devices() {
        with_default_device(device, || {
            let y = Tensor::from_slice(&[1f32, 2.0], [2]);
            let (x, a) = (Tensor::from_slice(&[10f32, 20.0], [2]), Tensor::scalar(0.5f32));
            let [z] = call_function("axpy", &[], &[&y, &x, &a]);
            assert_eq!((&z + &y).to_vec::<f32>()?, [7.0, 14.0], "{device}");
            assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0], "{device}");
            // What has no other use is updated where it is; calls may be chained.
            let [z] = call_function("axpy", &[], &[&(&y * 2.0), &x, &a]);
            let [z] = call_function("axpy", &[], &[&z, &x, &a]);
            assert_eq!(z.to_vec::<f32>()?, [12.0, 24.0], "{device}");
            let triple = &y * 3.0;
            let [z] = call_function("axpy", &[], &[&triple, &x, &a]);
            assert_eq!((&z - &triple).to_vec::<f32>()?, [5.0, 10.0], "{device}");
            let [twice] = call_function("axpy", &[], &[&x, &x, &a]);
            assert_eq!(twice.to_vec::<f32>()?, [15.0, 30.0], "{device}");
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn an_assigned_state_is_updated_in_its_own_memory() {
    let addresses: Arc<Mutex<Vec<usize>>> = Arc::default();
    let keeps = addresses.clone();
    let function = CustomFunction::new("calls::add", |_, _| Ok(vec![])).updates(1).host(move |mut call| {
        keeps.lock().unwrap().push(call.outputs[0].bytes().as_ptr().addr());
        let x = call.inputs[0].as_slice::<f32>()?;
        call.outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y += x);
        Ok(())
    });
    register_function(function).unwrap();
    let mut state = Tensor::zeros([1 << 18]);
    state.realize().unwrap();
    for step in 1..5 {
        let x = Tensor::full([1 << 18], step as f32);
        let [new] = call_function("calls::add", &[], &[&state, &x]);
        state.assign(&new);
        drop(new);
        state.realize().unwrap();
    }
    let addresses = addresses.lock().unwrap();
    assert!(addresses.windows(2).all(|pair| pair[0] == pair[1]), "{addresses:?}");
    assert_eq!(state.to_vec::<f32>().unwrap(), vec![10.0; 1 << 18]);
}

#[test]
fn a_traced_function_calls_it_for_named_dims() {
    register();
    let (m, n) = (tinyspec::named(0, 100), tinyspec::named(1, 100));
    let specs = [Spec::new(DType::F32, [m, n.clone()]), Spec::new(DType::F32, [n, 3.into()])];
    let function = Function::trace(&specs, |inputs| {
        let [c] = call_function("gemm", &[], &[&inputs[0], &inputs[1]]);
        vec![c + 1.0]
    })
    .unwrap();
    for (m, n) in [(1, 1), (2, 5), (7, 3), (8, 2), (3, 3)] {
        let (a, b) = (Tensor::ones([m, n]), Tensor::ones([n, 3]));
        let results = function.call(&[&a, &b]);
        assert_eq!(results[0].to_vec::<f32>().unwrap(), vec![n as f32 + 1.0; (m * 3) as usize]);
        let run = function.prepare(&[&a, &b]).unwrap();
        let mut out = run.outputs().unwrap();
        for _ in 0..2 {
            run.call(&mut out, &[&a, &b]).unwrap();
            assert_eq!(out[0].to_vec::<f32>().unwrap(), vec![n as f32 + 1.0; (m * 3) as usize]);
        }
    }
}

#[test]
fn threads_call_it_at_the_same_time() {
    register();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for step in 0..20 {
                    let x = Tensor::from_slice(&[thread as f32, step as f32], [2]);
                    let [y] = call_function("twice", &[], &[&(x + 1.0)]);
                    let found = (y * 0.5).to_vec::<f32>().unwrap();
                    assert_eq!(found, [thread as f32 + 1.0, step as f32 + 1.0]);
                }
            });
        }
    });
}
