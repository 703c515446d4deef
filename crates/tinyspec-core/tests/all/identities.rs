//! A gradient is of one tensor, whatever others are equal to it, and whatever was read in between.

use std::sync::Arc;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_core::execute::{register, with_default_device};
use tinyspec_core::nn::{Adam, Optimizer, Sgd};
use tinyspec_core::tensor::collectives::broadcast;
use tinyspec_core::{Error, Function, Spec, Tensor, grad, grad_or_zeros, realize_all};
use tinyspec_ir::DType;

const DATA: &str = "data";

/// Tensors to start from. Those of one kind are equal.
fn start(kind: &str) -> Tensor {
    match kind {
        DATA => Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], [4]),
        "zeros" => Tensor::zeros([4]),
        "ones" => Tensor::ones([4]),
        "full" => Tensor::full([4], 0.5),
        "arange" => Tensor::arange(4).cast(DType::F32),
        "eye" => Tensor::arange(2).reshape([2, 1]).eq(Tensor::arange(2)).cast(DType::F32).reshape([4]),
        "one number" => Tensor::full((), 2.0).expand([4]),
        "detached" => (Tensor::ones([4]) * 0.25).detach(),
        "contiguous" => Tensor::ones([4]).contiguous(),
        "like" => Tensor::arange(4).cast(DType::F32).ones_like(),
        _ => unreachable!("{kind}"),
    }
}

const KINDS: [&str; 10] =
    [DATA, "zeros", "ones", "full", "arange", "eye", "one number", "detached", "contiguous", "like"];

/// A scalar of three starts, with values on the way.
type Program = fn(&[Tensor; 3]) -> (Tensor, Vec<Tensor>);

fn cube() -> Result<Function, Error> {
    Function::trace(&[Spec::new(DType::F32, [4]), Spec::new(DType::F32, [4])], |inputs| {
        vec![&inputs[0] * &inputs[0] * &inputs[1] + Tensor::ones([4]) * 2.0, inputs[1].sin()]
    })
}

fn programs() -> Vec<(&'static str, Program)> {
    vec![
        ("products", |[a, b, c]| ((a * b * b + c.square() * a * 3.0).sum(.., false), vec![])),
        ("functions of equal ones", |[a, b, c]| {
            let (u, v) = (a.sin(), b.sin());
            ((&u * &v + c.sin() * &u + b.exp() * 0.5).sum(.., false), vec![u, v])
        }),
        ("equal values on the way", |[a, b, _]| {
            let (u, v) = (a * 2.0, a * 2.0);
            ((&u * &v * &v * b + u.cos()).sum(.., false), vec![u, v])
        }),
        ("equal values, one of them held", |[a, b, _]| {
            let u = a.sin();
            let other = (a.sin() * b).cos();
            ((&u * &u * b + other).sum(.., false), vec![u])
        }),
        ("equal values that are not held", |[a, b, c]| {
            ((a.sin() * b + (a.sin() * 2.0).exp() * c + b.sin() * c.sin()).sum(.., false), vec![])
        }),
        ("ramps and ones of its own", |[a, b, c]| {
            let ramp = Tensor::arange(4).cast(DType::F32);
            let all = a * &ramp * &ramp + b.square() * Tensor::ones([4]) * Tensor::full([4], 0.5) + c * c * c * &ramp;
            (all.sum(.., false), vec![ramp])
        }),
        ("clones are one", |[a, b, c]| {
            let again = a.clone();
            ((&again * a * a + b * c).sum(.., false), vec![])
        }),
        ("detached parts", |[a, b, c]| {
            let fixed = a.detach();
            ((&fixed * a * a + fixed.exp() * b + (b * c).detach() * c * c).sum(.., false), vec![fixed])
        }),
        ("assigned", |[a, b, c]| {
            let mut state = Tensor::zeros([4]);
            state.assign(&(a * a));
            let first = &state * b * &state;
            let mut part = b * 1.0;
            part.set(1, &c.at(2) * a.at(2));
            (((&part * &part * a) + first).sum(.., false), vec![state, part])
        }),
        ("assigned the start itself", |[a, b, c]| {
            let mut state = Tensor::zeros([4]);
            state.assign(a);
            ((&state * &state * a * b + c.square() * &state).sum(.., false), vec![state])
        }),
        ("indexed", |[a, b, c]| {
            // Made of constants: data that nobody holds would be gone.
            let picks = (Tensor::arange(3) * 2) % 3 + 1;
            let (u, v) = (a.at(&picks), b.at(&picks));
            ((&u * &v * &v).sum(.., false) + (a.at(1..3) * c.at(1..3) * a.at(2)).sum(.., false), vec![u, v])
        }),
        ("calls", |[a, b, c]| {
            let Ok(cube) = cube() else { return (a.sum(.., false), vec![]) };
            let (u, v) = (cube.call(&[a, b]), cube.call(&[a, b]));
            let w = cube.call(&[&u[0], c]).remove(0);
            ((&w * &v[0] + &u[1] * &v[1] * &u[0]).sum(.., false), vec![u[0].clone(), v[0].clone(), u[1].clone(), w])
        }),
        ("compositions", |[a, b, c]| {
            let (u, v) = (a.softmax(-1), b.softmax(-1));
            let all = &u * &v * v.cumsum(0) + c.cumprod(0) * &u + a.cos() * b.cummax(0);
            (all.sum(.., false) + a.var(.., 1, false) * b.mean(.., false), vec![u, v])
        }),
        ("matrices", |[a, b, c]| {
            let (u, v) = (a.reshape([2, 2]), b.reshape([2, 2]));
            let w = u.matmul(&v).matmul(&v).sin();
            ((&w * c.reshape([2, 2])).sum(.., false), vec![u, v, w])
        }),
        ("a loss that is a product of losses", |[a, b, c]| {
            let (u, v) = ((a * 3.0).sum(.., false), (b * 3.0).sum(.., false));
            (&u * &v * &v * c.sum(.., false) * 0.125, vec![u, v])
        }),
    ]
}

/// What is read before gradients are taken.
const READINGS: [&str; 6] = ["nothing", "starts", "on the way", "the loss", "the loss last", "all at once"];

fn read(reading: &str, starts: &[Tensor; 3], way: &[Tensor], loss: &Tensor) -> Result<(), Error> {
    match reading {
        "starts" => starts.iter().try_for_each(|start| start.realize().map(drop)),
        "on the way" => way.iter().rev().try_for_each(|value| value.realize().map(drop)),
        "the loss" => loss.realize().map(drop),
        "the loss last" => {
            read("starts", starts, way, loss)?;
            read("on the way", starts, way, loss)?;
            loss.realize().map(drop)
        }
        "all at once" => realize_all(&starts.iter().chain(way).chain([loss]).collect::<Vec<_>>()),
        _ => Ok(()),
    }
}

/// Gradients of a program of the first and the second order, of starts and of values on the way.
fn gradients(program: Program, starts: [Tensor; 3], reading: &str) -> Result<Vec<f32>, Error> {
    let (loss, way) = program(&starts);
    read(reading, &starts, &way, &loss)?;
    let mut found = vec![];
    let wanted: Vec<&Tensor> = starts.iter().chain(&way).collect();
    // Each alone, and all at once.
    for &one in &wanted {
        found.push(grad_or_zeros(&loss, &[one])?.remove(0));
    }
    let all = grad_or_zeros(&loss, &wanted)?;
    if reading == "all at once" {
        realize_all(&all.iter().collect::<Vec<_>>())?;
    }
    // A loss of the gradients, and of the loss itself.
    let weights = Tensor::from_slice(&[0.5f32, -1.0, 2.0, 1.5], [4]);
    let mut second = &loss * 0.25;
    for (number, first) in all.iter().enumerate() {
        let flat = first.reshape([-1]);
        let weighted = if flat.shape()[0].is(4) { &flat * &weights } else { flat };
        second *= (weighted.mean(.., false).sin() + 1.0 + number as f32) * 0.5;
    }
    if reading == "the loss" {
        second.realize()?;
    }
    found.extend(grad_or_zeros(&second, &wanted)?);
    found.extend(all);
    let mut numbers = vec![];
    for gradient in found {
        numbers.extend(gradient.to_vec::<f32>()?);
    }
    Ok(numbers)
}

fn close(found: &[f32], wanted: &[f32]) -> bool {
    let close = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 2e-4 * b.abs().max(1.0);
    found.len() == wanted.len() && found.iter().zip(wanted).all(close)
}

/// Data is nobody else, so its gradients are the ones that are wanted.
#[test]
fn equal_tensors_have_gradients_of_their_own_whatever_was_read() -> Result<(), Error> {
    with_default_device("interpreter", equal_tensors)
}

fn equal_tensors() -> Result<(), Error> {
    for kind in KINDS {
        let values = start(kind).to_vec::<f32>()?;
        // What they start from matters to the first.
        let count = if matches!(kind, "ones" | "arange") { usize::MAX } else { 3 };
        for (name, program) in programs().into_iter().take(count) {
            let data = || Tensor::from_slice(&values, [4]);
            let wanted = gradients(program, [data(), data(), data()], "nothing")?;
            for reading in READINGS {
                let place = format!("{name} of {kind}, read: {reading}");
                let found = gradients(program, [start(kind), start(kind), start(kind)], reading);
                let found = found.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert!(close(&found, &wanted), "{place}:\n{found:?}\ninstead of\n{wanted:?}");
            }
        }
    }
    Ok(())
}

/// The same in numbers that are known.
#[test]
fn gradients_of_constants() -> Result<(), Error> {
    for is_read in [false, true] {
        let (a, b) = (Tensor::ones([3]), Tensor::ones([3]));
        let loss = (&a * &b * &b).sum(.., false);
        let w = Tensor::full([3], 3f32);
        let cubed = (&w * &w * &w).sum(.., false);
        let x = Tensor::arange(3).cast(DType::F32);
        let weighted = (&x * Tensor::arange(3).cast(DType::F32)).sum(.., false);
        let (n, m) = (Tensor::full((), 4f32), Tensor::full((), 4f32));
        let quotient = &n / &m;
        if is_read {
            for tensor in [&loss, &cubed, &weighted, &quotient] {
                tensor.realize()?;
            }
        }
        let numbers = |loss: &Tensor, wanted: &Tensor| grad(loss, &[wanted])?[0].to_vec::<f32>();
        assert_eq!(numbers(&loss, &a)?, [1.0; 3], "read: {is_read}");
        assert_eq!(numbers(&loss, &b)?, [2.0; 3], "read: {is_read}");
        assert_eq!(numbers(&weighted, &x)?, [0.0, 1.0, 2.0], "read: {is_read}");
        assert_eq!(numbers(&quotient, &n)?, [0.25], "read: {is_read}");
        assert_eq!(numbers(&quotient, &m)?, [-0.25], "read: {is_read}");
        let first = grad(&cubed, &[&w])?.remove(0);
        assert_eq!(first.to_vec::<f32>()?, [27.0; 3], "read: {is_read}");
        let second = grad(&first.sum(.., false), &[&w])?.remove(0);
        assert_eq!(second.to_vec::<f32>()?, [18.0; 3], "read: {is_read}");
        assert_eq!(numbers(&second.sum(.., false), &w)?, [6.0; 3], "read: {is_read}");
        // What nothing depends on is refused, though an equal one is there.
        assert!(grad(&loss, &[&Tensor::ones([3])]).is_err(), "read: {is_read}");
    }
    Ok(())
}

/// A cotangent of ones is not the tensor of ones.
#[test]
fn cotangents_are_nobody() -> Result<(), Error> {
    let (x, w) = (Tensor::ones([3]), Tensor::from_slice(&[1f32, 2.0, 3.0], [3]));
    let loss = (&x * &w).sum(.., false);
    let first = grad(&loss, &[&w])?.remove(0);
    for is_read in [false, true] {
        if is_read {
            first.realize()?;
        }
        assert_eq!(grad(&(&first * &first).sum(.., false), &[&x])?[0].to_vec::<f32>()?, [2.0; 3]);
        assert!(grad(&first.sum(.., false), &[&w]).is_err(), "it is linear");
    }
    Ok(())
}

#[test]
fn optimisers_tell_equal_weights_apart() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f32, -2.0, 0.5, 3.0], [2, 2]);
    let target = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
    let train = |mut weights: [Tensor; 3], is_read: bool, steps: &mut dyn Optimizer| -> Result<Vec<f32>, Error> {
        for _ in 0..4 {
            let [u, v, b] = &weights;
            let loss = (x.matmul(u) + (&x + 1.0).matmul(v).sin() + b - &target).square().mean(.., false);
            if is_read {
                loss.realize()?;
            }
            let gradients = grad(&loss, &[u, v, b])?;
            let [u, v, b] = &mut weights;
            steps.step(&mut [u, v, b], &gradients)?;
            if is_read {
                realize_all(&weights.iter().collect::<Vec<_>>())?;
            }
        }
        let mut numbers = vec![];
        for weight in weights {
            numbers.extend(weight.to_vec::<f32>()?);
        }
        Ok(numbers)
    };
    let optimisers: [fn() -> Box<dyn Optimizer>; 2] = [|| Box::new(Sgd::new(0.05)), || Box::new(Adam::new(0.05))];
    for optimiser in optimisers {
        let data = || Tensor::from_slice(&[0f32; 4], [2, 2]);
        let wanted = train([data(), data(), data()], false, &mut *optimiser())?;
        for is_read in [false, true] {
            let zeros = [Tensor::zeros([2, 2]), Tensor::zeros([2, 2]), Tensor::zeros([2, 2])];
            let found = train(zeros, is_read, &mut *optimiser())?;
            assert!(close(&found, &wanted), "read: {is_read}: {found:?} instead of {wanted:?}");
        }
    }
    Ok(())
}

#[test]
fn equal_tensors_on_tuples_of_devices() -> Result<(), Error> {
    let devices = ["interpreter:0", "interpreter:1"];
    let x = Tensor::arange(4).cast(DType::F32).to(devices);
    for is_read in [false, true] {
        let (a, b) = (Tensor::ones([4]), Tensor::ones([4]));
        let (u, v) = (broadcast(&a, devices), b.to(devices));
        let loss = (&u * &v * &v * &x).sum(.., false);
        if is_read {
            realize_all(&[&u, &v])?;
            loss.realize()?;
        }
        let gradients = grad(&loss, &[&a, &b, &u, &v])?;
        let wanted = [[0f32, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0], [0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]];
        for (number, (gradient, wanted)) in gradients.iter().zip(wanted).enumerate() {
            assert_eq!(gradient.to_vec::<f32>()?, wanted, "number {number}, read: {is_read}");
        }
    }
    Ok(())
}

/// Who they are is no business of kernels: equal ones are computed once.
#[test]
fn equal_tensors_are_computed_once() -> Result<(), Error> {
    let interpreter = tinyspec_core::execute::device("interpreter")?;
    let target = interpreter.target().clone();
    let device = register("equal tensors", target, Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime));
    let moved = |a: &Tensor, b: &Tensor| -> Result<u64, Error> {
        let x = Tensor::arange(40).cast(DType::F32).to(device.name());
        x.realize()?;
        let before = device.moved();
        ((&x + a).exp().contiguous() * 2.0 + (&x + b).exp().contiguous()).sum(.., false).realize()?;
        Ok(device.moved() - before)
    };
    let ones = Tensor::ones([40]);
    let bytes = moved(&ones, &ones)?;
    assert_eq!(moved(&Tensor::ones([40]), &Tensor::ones([40]))?, bytes);
    Ok(())
}

/// A way to write a state, its name, and the gradient of what is written.
type Write = (&'static str, fn(&mut Tensor, &Tensor), [f32; 4]);

/// A state that is written where it lies, and read in between, is made of what was written first, too.
#[test]
fn states_that_are_written_again_and_again() -> Result<(), Error> {
    let writes: [Write; 4] = [
        ("a part", |s, a| s.set(0, a.at(0) * 5.0), [100.0, 54.0, 72.0, 0.0]),
        ("a constant", |s, _| s.set(0, 7.0), [0.0, 54.0, 72.0, 0.0]),
        ("twice the same", |s, a| s.set(1, a.at(1) * 3.0), [0.0, 54.0, 72.0, 0.0]),
        ("all", |s, a| s.assign(&(a * 2.0)), [16.0, 24.0, 32.0, 40.0]),
    ];
    for (name, write, wanted) in writes {
        for readings in 0..4 {
            let a = Tensor::from_slice(&[2f32, 3.0, 4.0, 5.0], [4]);
            let mut state = Tensor::zeros([4]);
            state.set(1..3, a.at(1..3) * 3.0);
            if readings & 1 != 0 {
                state.realize()?;
            }
            write(&mut state, &a);
            if readings & 2 != 0 {
                state.realize()?;
            }
            let gradient = grad(&state.square().sum(.., false), &[&a])?.remove(0);
            assert_eq!(gradient.to_vec::<f32>()?, wanted, "{name}, readings {readings}");
        }
    }
    Ok(())
}
