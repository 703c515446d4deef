//! Tensors are used from several threads and dropped while others compute with them.

use std::sync::{Arc, Barrier};
use std::thread;
use tinyspec_backends::Target;
use tinyspec_backends::cpu::CpuRuntime;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_core::execute::{register, with_default_device};
use tinyspec_core::tensor::collectives::broadcast;
use tinyspec_core::{Error, Function, Spec, Tensor, grad};
use tinyspec_ir::DType;
use tinyspec_ir::ops::options::{Conv2d, default};

const THREADS: usize = 6;

/// Runs `work` on several threads that start at once; each gets its number.
fn together(work: impl Fn(usize) + Sync) {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (work, start) = (&work, &start);
            scope.spawn(move || {
                start.wait();
                work(number);
            });
        }
    });
}

#[test]
fn threads_realise_one_tensor() {
    for round in 0..20 {
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4]);
        let shared = x.mul(2.0).add(round as f32).mul(&x);
        let want: Vec<f32> = [1.0f32, 2.0, 3.0, 4.0].iter().map(|x| (x * 2.0 + round as f32) * x).collect();
        together(|number| {
            // Half of them ask for the tensor itself, half for what hangs on it.
            if number % 2 == 0 {
                assert_eq!(shared.to_vec::<f32>().unwrap(), want);
            } else {
                let more = shared.add(number as f32).to_vec::<f32>().unwrap();
                assert!(more.iter().zip(&want).all(|(found, want)| *found == want + number as f32));
            }
        });
    }
}

#[test]
fn tensors_are_dropped_while_others_compute_with_them() {
    for round in 0..20 {
        let base = Arc::new(Tensor::arange(1000).cast(DType::F32).add(round as f32));
        let total: f32 = (0..1000).map(|x| (x + round) as f32).sum();
        let lazy: Vec<Tensor> = (0..THREADS).map(|number| base.mul(1.0).sum(.., false).add(number as f32)).collect();
        // The last handle of the base goes away on whichever thread is last.
        let handles: Vec<_> = lazy
            .into_iter()
            .enumerate()
            .map(|(number, tensor)| {
                let base = base.clone();
                thread::spawn(move || {
                    drop(base);
                    let found = tensor.to_vec::<f32>().unwrap()[0];
                    assert!((found - total - number as f32).abs() <= 1e-6 * total, "{found} is not {total} + {number}");
                })
            })
            .collect();
        drop(base);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    }
}

#[test]
fn memory_of_dropped_tensors_goes_to_nobody_who_is_still_read() {
    // Each thread makes, drops and checks buffers of one size class, which the pool hands from one to the other.
    together(|number| {
        for round in 0..40 {
            let value = (number * 1000 + round) as f32;
            let kept = Tensor::full([257], value).add(0.0);
            kept.realize().unwrap();
            drop(Tensor::full([257], -1.0f32).add(0.0).realize().cloned().unwrap());
            assert!(kept.to_vec::<f32>().unwrap().iter().all(|&found| found == value));
        }
    });
}

#[test]
fn states_of_one_tensor_belong_to_their_handles() {
    let shared = Tensor::zeros([64]).add(0.0);
    shared.realize().unwrap();
    together(|number| {
        let mut own = shared.clone();
        for _ in 0..20 {
            own.assign(&own.add(number as f32));
        }
        assert!(own.to_vec::<f32>().unwrap().iter().all(|&found| found == 20.0 * number as f32));
    });
    assert!(shared.to_vec::<f32>().unwrap().iter().all(|&found| found == 0.0));
}

#[test]
fn a_clone_keeps_the_old_state_whoever_computes_the_new_one() {
    for _ in 0..200 {
        let old = Tensor::full([1024, 300], 1.0f32).contiguous();
        old.realize().unwrap();
        let mut new = old.clone();
        new.assign(&new.mul(2.0));
        together(|_| assert_eq!(new.to_vec::<f32>().unwrap()[0], 2.0));
        assert!(old.to_vec::<f32>().unwrap().iter().all(|&found| found == 1.0));
    }
}

#[test]
fn gradients_and_prepared_calls_run_side_by_side() -> Result<(), Error> {
    let square = Function::trace(&[Spec::new(DType::F32, [8])], |inputs| vec![inputs[0].mul(&inputs[0])])?;
    let x = Tensor::arange(8).cast(DType::F32);
    x.realize()?;
    let prepared = square.prepare(&[&x])?;
    together(|number| {
        let mut out = prepared.outputs().unwrap();
        for _ in 0..20 {
            prepared.call(&mut out, &[&x]).unwrap();
            let found = out[0].to_vec::<f32>().unwrap();
            assert!(found.iter().enumerate().all(|(at, &found)| found == (at * at) as f32));
        }
        let loss = x.mul(number as f32).mul(&x).sum(.., false);
        let slope = grad(&loss, &[&x]).unwrap()[0].to_vec::<f32>().unwrap();
        assert!(slope.iter().enumerate().all(|(at, &found)| found == 2.0 * number as f32 * at as f32));
    });
    Ok(())
}

#[test]
fn each_thread_has_its_own_default_device() {
    together(|number| {
        let name = if number % 2 == 0 { "interpreter" } else { "cpu" };
        if number % 2 == 1 && tinyspec_core::execute::device("cpu").is_err() {
            return;
        }
        let found = with_default_device(name, || Tensor::full([3], number as f32).add(1.0).to_vec::<f32>());
        assert_eq!(found.unwrap(), [number as f32 + 1.0; 3]);
    });
}

#[test]
fn threads_share_tensors_on_tuples_of_devices() {
    for kind in ["interpreter", "cpu"].into_iter().filter(|kind| tinyspec_core::execute::device(kind).is_ok()) {
        let devices = [0, 1, 2].map(|number| format!("{kind}:{number}"));
        for round in 0..5 {
            let base = Arc::new(Tensor::arange(600).cast(DType::F32).reshape([60, 10]).add(round as f32).to(&devices));
            let weights = broadcast(&Tensor::full([10, 2], 2.0f32), &devices);
            let shared = base.matmul(&weights);
            let row = move |row: usize| (0..10).map(|column| (row * 10 + column + round) as f32 * 2.0).sum::<f32>();
            // What needs the neighbour's rows, on every thread; the base is dropped by whoever is last.
            let lazy: Vec<Tensor> = (0..THREADS).map(|number| shared.roll([number as i64], [0]).add(&shared)).collect();
            let handles: Vec<_> = (lazy.into_iter().enumerate())
                .map(|(number, tensor)| {
                    let (base, shared) = (base.clone(), shared.clone());
                    thread::spawn(move || {
                        drop(base);
                        let found = tensor.to_vec::<f32>().unwrap();
                        let want = |at: usize| row(at) + row((at + 60 - number) % 60);
                        assert!(found.iter().enumerate().all(|(at, &found)| found == want(at / 2)), "thread {number}");
                        drop(tensor);
                        assert_eq!(shared.to_vec::<f32>().unwrap()[0], row(0));
                    })
                })
                .collect();
            drop((base, weights, shared));
            handles.into_iter().for_each(|handle| handle.join().unwrap());
        }
    }
}

#[test]
fn a_failure_on_one_device_leaves_the_others_usable() {
    let interpreter = tinyspec_core::execute::device("interpreter").unwrap();
    let names = ["steady", "failing"];
    let [_, failing] = names.map(|name| {
        let target = interpreter.target().clone();
        register(name, target, Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime))
    });
    let x = Tensor::arange(1000).cast(DType::F32).to(names);
    for round in 0..3 {
        let next = x.mul(2.0).add(round as f32);
        failing.limit_memory(Some(1));
        assert!(matches!(next.realize(), Err(Error::Memory { .. })), "round {round}");
        failing.limit_memory(None);
        assert_eq!(next.sum(.., false).item::<f32>().unwrap(), (999_000 + 1000 * round) as f32);
    }
}

/// What products and convolutions give whose operands are copied before several threads begin.
fn products() -> Result<Vec<Vec<f32>>, Error> {
    let numbers = |shape: &[i64], dtype: DType| {
        let count: i64 = shape.iter().product();
        // Small integers: sums are exact in whatever order.
        let data: Vec<f32> = (0..count).map(|at| (at * 7 % 11 - 5) as f32).collect();
        Tensor::from_vec(data, shape).cast(dtype)
    };
    let (a, b) = (numbers(&[190, 260], DType::F32), numbers(&[190, 170], DType::F32));
    let mut found = vec![a.transpose(0, 1).matmul(&b).to_vec()?];
    found.push(b.transpose(0, 1).matmul(&a).relu().to_vec()?);
    for dtype in [DType::F16, DType::I8] {
        let (a, b) = (numbers(&[260, 190], dtype), numbers(&[190, 170], dtype));
        found.push(a.cast(DType::F32).matmul(b.cast(DType::F32)).to_vec()?);
    }
    let (images, filters) = (numbers(&[2, 64, 9, 8], DType::F32), numbers(&[72, 64, 3, 3], DType::F32));
    let options = Conv2d { padding: [1, 1], ..default() };
    found.push(images.conv2d(&filters, None, options).to_vec()?);
    Ok(found)
}

#[test]
fn copies_that_threads_share_are_whole_before_they_are_read() -> Result<(), Error> {
    let mut target = Target::native();
    target.threads = 3;
    let compiler = LlvmCompiler::new().expect("libLLVM");
    register("cpu:three", target, Arc::new(compiler), Arc::new(CpuRuntime::new(3)));
    let expected = with_default_device("interpreter", products)?;
    for _ in 0..20 {
        let found = with_default_device("cpu:three", products)?;
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(found == expected, "product {number}");
        }
    }
    Ok(())
}
