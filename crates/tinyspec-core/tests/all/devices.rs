//! Tuple devices: where values are cut, the collectives, and training over several devices.

use tinyspec_core::nn::{Adagrad, Adam, Lamb, Optimizer, RmsProp, Sgd};
use tinyspec_core::tensor::collectives::{allgather, allreduce, broadcast, gather, reduce, reduce_scatter, scatter};
use tinyspec_core::{Function, Prepared, Program, Result, Spec, Tensor, grad, realize_all};
use tinyspec_ir::DType;

const TWO: [&str; 2] = ["interpreter:0", "interpreter:1"];
const THREE: [&str; 3] = ["interpreter:0", "interpreter:1", "interpreter:2"];
const FOUR: [&str; 4] = ["interpreter:0", "interpreter:1", "interpreter:2", "interpreter:3"];

fn numbers(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|number| ((number * 7) % 23) as f32 * 0.5 - 3.0).collect();
    Tensor::from_slice(&data, shape).to("interpreter:0")
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_collectives_are_those_of_the_spec() {
    for devices in [&TWO[..], &THREE[..], &FOUR[..]] {
        let n = devices.len();
        let x = numbers(&[n * 12, 2]);
        let data = values(&x);
        let sum: Vec<f32> = (0..24).map(|at| (0..n).map(|part| data[part * 24 + at]).sum()).collect();
        let cut = scatter(&x, devices);
        for (what, tensor, axis, want) in [
            ("broadcast", broadcast(&x, devices), None, &data),
            ("scatter", cut.clone(), Some(0), &data),
            ("gather", gather(&cut), None, &data),
            ("reduce", reduce(&cut), None, &sum),
            ("allgather", allgather(&cut), None, &data),
            ("reduce_scatter", reduce_scatter(&cut), Some(0), &sum),
            ("allreduce", allreduce(&cut), None, &sum),
        ] {
            assert_eq!(tensor.axis(), axis, "{what} on {n} devices, lazy");
            assert_eq!(&values(&tensor), want, "{what} on {n} devices");
            tensor.realize().unwrap();
            assert_eq!(tensor.axis(), axis, "{what} on {n} devices, computed");
            assert_eq!(&values(&(&tensor + 0.0)), want, "{what} on {n} devices, used again");
        }
    }
}

#[test]
fn every_device_has_what_is_broadcast() {
    let x = broadcast(&numbers(&[3]), TWO);
    x.realize().unwrap();
    for device in TWO {
        assert_eq!(values(&x.to(device)), values(&numbers(&[3])));
    }
}

#[test]
fn ops_keep_the_cut_or_move_it() {
    let whole = numbers(&[4, 6]);
    let x = whole.to(TWO);
    let weights = numbers(&[6, 5]);
    let replicated = broadcast(&weights, TWO);
    type Op<'a> = Box<dyn Fn(&Tensor, &Tensor) -> Tensor + 'a>;
    let cases: Vec<(&str, Option<usize>, Op)> = vec![
        ("elementwise", Some(0), Box::new(|x, _| x.mul(x).add(1.0).relu())),
        ("permute", Some(1), Box::new(|x, _| x.permute([1, 0]))),
        ("reshape, first axis", Some(0), Box::new(|x, _| x.reshape([2, 2, 6]))),
        ("reshape, more in front", Some(1), Box::new(|x, _| x.reshape([1, 4, 6]))),
        ("flatten", Some(0), Box::new(|x, _| x.reshape([24]))),
        ("expand", Some(1), Box::new(|x, _| x.reshape([1, 4, 6]).expand([3, 4, 6]))),
        ("shrink elsewhere", Some(0), Box::new(|x, _| x.narrow(1, 1, 3))),
        ("pad elsewhere", Some(0), Box::new(|x, _| x.pad([0, 1], [4, 9], 0.5))),
        ("flip elsewhere", Some(0), Box::new(|x, _| x.flip([1]))),
        ("sum elsewhere", Some(0), Box::new(|x, _| x.sum(1, false))),
        ("sum over the cut", None, Box::new(|x, _| x.sum(0, false))),
        ("max over all", None, Box::new(|x, _| x.max(.., false))),
        ("matmul", Some(0), Box::new(|x, w| x.matmul(w))),
        ("softmax", Some(0), Box::new(|x, _| x.softmax(1))),
        ("softmax over the cut", Some(0), Box::new(|x, _| x.softmax(0))),
        ("two cuts", Some(0), Box::new(|x, _| x.narrow(1, 0, 4).add(x.narrow(1, 0, 4).permute([1, 0])))),
        ("with a constant", Some(0), Box::new(|x, _| x.add(Tensor::arange(24).reshape([4, 6]).cast(DType::F32)))),
        ("stack", Some(1), Box::new(|x, _| Tensor::stack(&[x, &x.neg()], 0))),
    ];
    for (what, axis, op) in &cases {
        let (want, found) = (op(&whole, &weights), op(&x, &replicated));
        assert_eq!(found.axis(), *axis, "{what}: {:?}", found.error());
        let (want, found) = (values(&want), values(&found));
        assert!(
            want.iter().zip(&found).all(|(want, found)| (want - found).abs() <= 1e-5 * want.abs().max(1.0)),
            "{what}: {found:?}, not {want:?}"
        );
    }
}

#[test]
fn what_cannot_be_cut_says_why() {
    for (tensor, part) in [
        (numbers(&[3, 2]).to(TWO), "axis 0 of [3, 2] does not divide into 2 equal parts"),
        (numbers(&[6]).sum(.., false).to(TWO), "has no axis 0 to cut into 2 parts"),
        (reduce_scatter(&numbers(&[6]).to(TWO)), "2 devices cannot share evenly"),
        (reduce_scatter(&numbers(&[6])), "on a single device"),
        (numbers(&[4]).to(TWO).replicated(0), "axis 0 is longer than the tuple of 2 devices"),
        (numbers(&[4]).to(TWO).replicated(1), "cut along axis 0 over the devices, not 1"),
        (numbers(&[4]).to(["interpreter:0", "nowhere:1"]), "to: no device `nowhere:1`"),
        (numbers(&[4]).to("gpu:7"), "to: no device `gpu:7`"),
        (broadcast(&numbers(&[4]), ["gpu:7"]), "broadcast: no device `gpu:7`"),
        (numbers(&[4]).to(["interpreter:0", "interpreter:0"]), "to: `interpreter:0` is twice in the tuple"),
        (numbers(&[4]).to([""; 0]), "to: a tuple of no devices"),
        (numbers(&[4]).to(TWO) + numbers(&[4]), "add: mixes devices (interpreter:0, interpreter:1) and interpreter:0"),
        (numbers(&[4]).to(TWO) + numbers(&[4]), "broadcast(&it, [\"interpreter:0\", \"interpreter:1\"])` gives every"),
        (numbers(&[4]).to(TWO) + numbers(&[4]).to(THREE), "`.to([\"interpreter:0\", \"interpreter:1\"])`"),
        (numbers(&[3, 2]).matmul(numbers(&[2, 2])).to(TWO), "to: axis 0 of [3, 2] does not divide"),
    ] {
        let error = tensor.realize().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("devices.rs"), "{part:?} is missing in\n{error}");
    }
}

#[test]
fn numbers_are_where_the_tensors_beside_them_are() {
    let (x, s) = (numbers(&[3]).to("interpreter:1"), Tensor::scalar(2f32));
    for y in [&x * &s, &s * &x, x.fmax(Tensor::scalar(f32::NAN)) * 2.0, Tensor::scalar(true).where_(&x * &s, &x)] {
        assert_eq!(y.device(), x.device());
        assert_eq!(values(&y), values(&(&x * 2.0)));
    }
    let loss = (&x * &s).sum(.., false);
    let [by_s, by_x] = &grad(&loss, &[&s, &x]).unwrap()[..] else { panic!("two gradients") };
    assert_eq!(by_s.device(), s.device());
    assert_eq!((values(by_s), values(by_x)), (values(&x.sum(.., false)), vec![2.0; 3]));
    let moved = &x + s.to("interpreter:0");
    assert!(moved.realize().unwrap_err().to_string().contains("mixes devices"), "what the program has moved stays");
}

#[test]
fn gradients_cross_devices() {
    let x = numbers(&[4, 3]);
    let there = x.to("interpreter:1");
    let loss = (&there * &there).sum(.., false);
    let [gradient] = &grad(&loss, &[&x]).unwrap()[..] else { panic!("one gradient") };
    assert_eq!(gradient.device(), x.device());
    assert_eq!(values(gradient), values(&(&x * 2.0)));
}

#[test]
fn gradients_cross_the_collectives() {
    let (x, w) = (numbers(&[8, 3]), numbers(&[3, 2]));
    let loss = |x: &Tensor, w: &Tensor| x.matmul(w).tanh().square().mean(.., false);
    let want = grad(&loss(&x, &w), &[&x, &w]).unwrap();
    let found = grad(&loss(&x.to(FOUR), &broadcast(&w, FOUR)), &[&x, &w]).unwrap();
    for (want, found) in want.iter().zip(&found) {
        assert_eq!(want.device(), found.device());
        for (want, found) in values(want).iter().zip(values(found)) {
            assert!((want - found).abs() < 1e-5, "{found} instead of {want}");
        }
    }
}

/// Steps of gradient descent on the devices; the losses on the way.
fn losses(devices: Option<&[&str]>) -> Result<Vec<f32>> {
    let (x, y) = (numbers(&[16, 6]), numbers(&[16, 3]).tanh());
    let (mut first, mut second) = (numbers(&[6, 8]) * 0.1, numbers(&[8, 3]) * 0.1);
    let (x, y) = match devices {
        Some(devices) => {
            (first, second) = (broadcast(&first, devices), broadcast(&second, devices));
            (x.to(devices), y.to(devices))
        }
        None => (x, y),
    };
    realize_all(&[&x, &y, &first, &second])?;
    let mut losses = Vec::new();
    for _ in 0..6 {
        let loss = (x.matmul(&first).relu().matmul(&second) - &y).square().mean(.., false);
        let gradients = grad(&loss, &[&first, &second])?;
        assert!(gradients.iter().all(|gradient| gradient.axis().is_none()));
        let (next_first, next_second) = (&first - &gradients[0] * 0.1, &second - &gradients[1] * 0.1);
        realize_all(&[&loss, &next_first, &next_second])?;
        losses.push(loss.item::<f32>()?);
        (first, second) = (next_first.detach(), next_second.detach());
    }
    Ok(losses)
}

#[test]
fn training_over_devices_gives_the_losses_of_one() {
    let want = losses(None).unwrap();
    assert!(want[5] < 0.9 * want[0], "{want:?}");
    for devices in [&TWO[..], &FOUR[..]] {
        let found = losses(Some(devices)).unwrap();
        for (want, found) in want.iter().zip(&found) {
            assert!((want - found).abs() < 1e-5 * want.abs(), "{found} instead of {want} on {} devices", devices.len());
        }
    }
}

#[test]
fn optimisers_work_where_the_weights_are() {
    for devices in [&["interpreter:3"][..], &TWO[..]] {
        let mut optimizers: Vec<Box<dyn Optimizer>> = vec![
            Box::new(Sgd::with_momentum(0.1, 0.9)),
            Box::new(Adam::with_weight_decay(0.1, 0.01)),
            Box::new(RmsProp::new(0.1)),
            Box::new(Adagrad::new(0.1)),
            Box::new(Lamb::new(0.1)),
        ];
        for (number, optimizer) in optimizers.iter_mut().enumerate() {
            let mut weight = match devices {
                [device] => numbers(&[4]).to(*device),
                devices => broadcast(&numbers(&[4]), devices),
            };
            for _ in 0..2 {
                let gradient = &weight * 0.5;
                optimizer.step(&mut [&mut weight], &[gradient]).unwrap();
                weight.realize().unwrap_or_else(|error| panic!("optimiser {number}: {error}"));
            }
            assert_ne!(values(&weight), values(&numbers(&[4])), "optimiser {number}");
        }
    }
}

#[test]
fn what_is_of_one_device_refuses_tuples() {
    let double = tinyspec_core::Function::trace(&[tinyspec_core::Spec::new(DType::F32, [4, 6])], |inputs| {
        vec![&inputs[0] + &inputs[0]]
    });
    let double = double.unwrap();
    let x = numbers(&[4, 6]).to(TWO);
    assert_eq!(values(&double.call(&[&x])[0]), values(&(numbers(&[4, 6]) * 2.0)));
    // A call that was prepared for one device says the same of its arguments, computed or not.
    let one = numbers(&[4, 6]);
    let run = double.prepare(&[&one]).unwrap();
    let spread = one.to(["interpreter:0", "interpreter:1"]);
    for _ in 0..2 {
        let error = run.call(&mut run.outputs().unwrap(), &[&spread]).unwrap_err().to_string();
        assert!(error.contains("is on [\"interpreter:0\", \"interpreter:1\"], the call was prepared for"), "{error}");
        assert!(error.contains("devices.rs") && error.contains("help: `x.to("), "{error}");
    }
}

type Body = fn(&[Tensor]) -> Vec<Tensor>;

/// A replay gives what a call gives, cut in the same way.
#[test]
fn prepared_calls_on_a_tuple_are_those_of_the_function() -> Result<()> {
    let bodies: [(&str, Body); 9] = [
        ("elementwise", |x| vec![(&x[0] * 2.0 + &x[1]).exp()]),
        ("a sum across devices", |x| vec![x[0].sum(0, false), x[0].sum(1, false)]),
        ("softmax and its sum", |x| vec![x[0].softmax(0) + x[1].softmax(1), x[0].sum([0, 1], false)]),
        ("an exchange", |x| vec![&x[0].transpose(0, 1).reshape([6, 4]) * &x[1].transpose(0, 1)]),
        ("sums after sums", |x| {
            let mean = x[0].mean(0, true);
            let deviation = (&x[0] - &mean).square().mean(0, true);
            vec![(&x[0] - mean) / (&deviation + 1.0).sqrt(), deviation]
        }),
        ("windows", |x| vec![x[0].at(1..3), x[0].roll([1], [0]), x[0].flip([0]), x[0].pad([1, 0], [6, 6], 0.0)]),
        ("one device among all", |x| {
            let first = x[0].to(TWO[0]);
            let total = first.sum(0, false) * 3.0;
            vec![broadcast(&total, TWO) + &x[1], total, first.to(TWO) * 0.5]
        }),
        ("arguments as they are", |x| vec![x[0].clone(), x[1].reshape([2, 12]), x[0].clone()]),
        ("constants", |x| vec![Tensor::arange(6).cast(DType::F32), &x[0] + Tensor::arange(6).cast(DType::F32)]),
    ];
    let cases = [(numbers(&[4, 6]), numbers(&[4, 6]) * -0.5), (numbers(&[4, 6]) * 0.25, numbers(&[4, 6]) + 1.0)];
    for (what, body) in bodies {
        let specs = [Spec::new(DType::F32, [4, 6]), Spec::new(DType::F32, [4, 6])];
        for replicates in [false, true] {
            let place = |(x, y): &(Tensor, Tensor)| (x.to(TWO), if replicates { broadcast(y, TWO) } else { y.to(TWO) });
            let function = Function::trace(&specs, body)?;
            let (x, y) = place(&cases[0]);
            let run = function.prepare(&[&x, &y])?;
            let mut out = run.outputs()?;
            for (number, case) in cases.iter().chain(&cases).enumerate() {
                let (x, y) = place(case);
                run.call(&mut out, &[&x, &y]).unwrap_or_else(|error| panic!("{what}: {error}"));
                let expected = body(&[x, y]);
                for (position, (found, expected)) in out.iter().zip(&expected).enumerate() {
                    assert_eq!(found.shape(), expected.shape(), "{what}, result {position}");
                    assert_eq!(values(found), values(expected), "{what}, result {position} of call {number}");
                    if let Some(device) = expected.device() {
                        assert_eq!(found.device(), Some(device), "{what}, result {position}");
                    }
                    assert_eq!(found.axis(), expected.axis(), "{what}, result {position}");
                    assert_eq!(values(&(found + 0.0)), values(expected), "{what}, result {position} used again");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn prepared_calls_on_a_tuple_keep_what_others_hold() -> Result<()> {
    let function = Function::trace(&[Spec::new(DType::F32, [4]), Spec::new(DType::F32, ())], |x| vec![&x[0] * &x[1]])?;
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [4]).to(TWO);
    let factor = |value: f32| Tensor::from_slice(&[value], ());
    let run = function.prepare(&[&x, &factor(1.0)])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&x, &factor(2.0)])?;
    let (held, lazy) = (out[0].clone(), &out[0] + 1.0);
    run.call(&mut out, &[&x, &factor(10.0)])?;
    assert_eq!(values(&out[0]), [10.0, 20.0, 30.0, 40.0]);
    assert_eq!(values(&held), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(values(&lazy), [3.0, 5.0, 7.0, 9.0]);
    // A result may be an argument of the next call.
    let last = out[0].clone();
    run.call(&mut out, &[&last, &factor(0.5)])?;
    assert_eq!(values(&out[0]), [5.0, 10.0, 15.0, 20.0]);
    Ok(())
}

#[test]
fn prepared_states_on_a_tuple() -> Result<()> {
    let function = Function::trace(&[Spec::new(DType::F32, [4]), Spec::new(DType::F32, [4])], |x| {
        let next = &x[0] + &x[1];
        vec![next.clone(), next.sum(0, false)]
    })?;
    let (state, step) = (Tensor::zeros([4]).to(TWO), Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [4]).to(TWO));
    let run = function.prepare(&[&state, &step])?.in_place(&[(0, 0)])?;
    let mut out = run.outputs()?;
    out[0] = state.clone();
    let mut kept = Vec::new();
    for count in 1..=5 {
        run.call(&mut out, &[&step])?;
        assert_eq!(values(&out[0]), [1.0, 2.0, 3.0, 4.0].map(|step| step * count as f32));
        assert_eq!(values(&out[1]), [10.0 * count as f32]);
        if count == 2 {
            kept.push(out[0].clone());
        }
    }
    assert_eq!(values(&kept[0]), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(values(&state), [0.0; 4]);
    let error = function.prepare(&[&state, &step])?.in_place(&[(1, 0)]).unwrap_err().to_string();
    assert!(error.contains("result 1 is f32 [] on each of") && error.contains("cut along axis 0"), "{error}");
    Ok(())
}

#[test]
fn prepared_calls_on_a_tuple_refuse_other_arguments() -> Result<()> {
    let function = Function::trace(&[Spec::new(DType::F32, [4, 6])], |x| vec![&x[0] * 2.0])?;
    let x = numbers(&[4, 6]);
    let run = function.prepare(&[&x.to(TWO)])?;
    let along = x.transpose(0, 1).to(TWO).transpose(0, 1);
    for (other, what) in [
        (
            x.clone(),
            "f32 [4, 6] on interpreter:0, the call was prepared for f32 [4, 6] on [\"interpreter:0\", \"interpreter:1\"], cut along axis 0",
        ),
        (x.to(FOUR), "\"interpreter:3\"], cut along axis 0, the call"),
        (along, "cut along axis 1, the call was"),
        (broadcast(&x, TWO), "is f32 [4, 6] on each of [\"interpreter:0\""),
        (numbers(&[4, 8]).to(TWO), "is f32 [4, 8] on [\"interpreter:0\""),
        (x.cast(DType::F64).to(TWO), "is f64 [4, 6]"),
    ] {
        let error = run.call(&mut run.outputs()?, &[&other]).unwrap_err().to_string();
        assert!(error.contains("call: argument 0") && error.contains(what), "{error}");
        assert!(error.contains("devices.rs:") && error.contains("help: "), "{error}");
    }
    let error = run.call(&mut [], &[]).unwrap_err().to_string();
    assert!(error.contains("takes 1 tensors and gives 1, found 0 and 0"), "{error}");
    // To another tuple nothing moves between kernels of one plan.
    let moving = Function::trace(&[Spec::new(DType::F32, [4, 6])], |x| vec![x[0].to(FOUR)])?;
    let error = moving.prepare(&[&x.to(TWO)]).unwrap_err().to_string();
    assert!(error.contains("to: a value is on") && error.contains("help: call the function"), "{error}");
    Ok(())
}

/// Each device's command buffer is one that can be read again.
#[test]
fn prepared_calls_on_a_tuple_print() -> Result<()> {
    let function = Function::trace(&[Spec::new(DType::F32, [4, 6])], |x| vec![x[0].sum(0, false)])?;
    let run = function.prepare(&[&numbers(&[4, 6]).to(TWO)])?;
    let text = run.to_string();
    assert!(text.contains("moves to interpreter:0"), "{text}");
    assert!(format!("{run:?}").contains("cut along axis 0"), "{run:?}");
    let error = text.parse::<Prepared>().unwrap_err().to_string();
    assert!(error.contains("are read one by one"), "{error}");
    let mut part = String::new();
    for line in text.lines() {
        part += &format!("{line}\n");
        if line.starts_with("return") {
            std::mem::take(&mut part).parse::<Prepared>()?;
        }
    }
    Ok(())
}

/// A tensor on a tuple of devices that text names: what is stored there, and what of it is read.
#[test]
fn a_buffer_on_a_tuple_is_one_node() -> Result<()> {
    let text = "
        %0 = const[index 4]
        %1 = const[index 6]
        %2 = stack(%0, %1)
        %3 = buffer[0 f32 @(\"interpreter:0\" \"interpreter:1\") global](%2)
        %4 = const[f32 2.0]
        %5 = store(%3, %4)
        %6 = after(%3, %5)
        %7 = const[index 2]
        %8 = const[index 1]
        %9 = stack(%8, %8)
        %10 = stack(%7, %7)
        %11 = shrink(%6, %9, %10)
        %12 = param[0 f32 @(\"interpreter:0\" \"interpreter:1\") global](%10)
        %13 = store(%11, %12)
        %14 = after(%6, %13)
        %15 = reduce[add 0](%14)
        return %14, %15, %6
    ";
    let function: Function = text.parse()?;
    assert_eq!(function.to_string().parse::<Function>()?.to_string(), function.to_string());
    let x = Tensor::from_slice(&[5f32, 6.0, 7.0, 8.0], [2, 2]).to(TWO);
    let mut expected = [2f32; 24];
    (expected[7], expected[8], expected[13], expected[14]) = (5.0, 6.0, 7.0, 8.0);
    let sums = [8.0, 16.0, 18.0, 8.0, 8.0, 8.0];
    let check = |results: &[Tensor], what: &str| {
        assert_eq!(values(&results[0]), expected, "{what}");
        assert_eq!(values(&results[1]), sums, "{what}");
        assert_eq!(values(&results[2]), [2.0; 24], "{what}");
        assert_eq!((results[0].axis(), results[1].axis()), (Some(0), None), "{what}");
        assert_eq!(results[0].device(), x.device(), "{what}");
    };
    let results = function.call(&[&x]);
    realize_all(&results.iter().collect::<Vec<_>>())?;
    check(&results, "a call");
    let run = function.prepare(&[&x])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&x])?;
    check(&out, "a prepared call");
    // Without arguments.
    let alone: Function = text
        .replace("%12 = param[0 f32 @(\"interpreter:0\" \"interpreter:1\") global](%10)", "%12 = const[f32 7.0]")
        .parse()?;
    let results = alone.call(&[]);
    assert_eq!(values(&results[0])[7..9], [7.0, 7.0]);
    // Text of a buffer that does not divide, and one on devices that there are not.
    let uneven = alone.to_string().replace("%0 = const[index 4]", "%0 = const[index 5]");
    let error = uneven.parse::<Function>()?.call(&[])[0].realize().map(drop).unwrap_err().to_string();
    assert!(error.contains("axis 0 of [5, 6] does not divide into 2 equal parts"), "{error}");
    let unknown = alone.to_string().replace("interpreter:1", "nowhere:1");
    let error = unknown.parse::<Function>()?.call(&[])[0].realize().map(drop).unwrap_err().to_string();
    assert!(error.contains("nowhere:1"), "{error}");
    Ok(())
}

/// A state keeps its elements where gates are false, on several devices as on one.
#[test]
fn stores_under_gates_on_a_tuple() -> Result<()> {
    let text = "
        %0 = const[index 4]
        %1 = stack(%0)
        %2 = param[0 f32](%1)
        %3 = param[1 bool](%1)
        %4 = const[f32 9.0]
        %5 = store(%2, %4, %3)
        %6 = after(%2, %5)
        return %6
    ";
    let function: Function = text.parse()?;
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [4]).to(TWO);
    let gate = Tensor::from_slice(&[true, false, false, true], [4]).to(TWO);
    assert_eq!(values(&function.call(&[&x, &gate])[0]), [9.0, 2.0, 3.0, 9.0]);
    Ok(())
}

/// The kernels of each device in turn, which are the same where its part is like the others'.
#[test]
fn programs_of_a_tuple_are_those_of_each_device() -> Result<()> {
    let x = numbers(&[4, 6]).to(TWO);
    let one = numbers(&[2, 6]);
    realize_all(&[&x, &one])?;
    let sums = (&x * 2.0).contiguous().sum(1, false);
    let programs = Program::of(&[&sums])?;
    let of_one = Program::of(&[&(&one * 2.0).contiguous().sum(1, false)])?;
    assert_eq!(programs.len(), 2 * of_one.len());
    let texts = |programs: &[Program]| programs.iter().map(|program| program.source().map(str::to_string)).collect();
    let (found, expected): (Vec<_>, Vec<_>) = (texts(&programs), texts(&of_one));
    assert_eq!(found, [&expected[..], &expected[..]].concat());
    // Planning computed nothing.
    assert!(!sums.is_realized());
    assert_eq!(values(&sums), values(&(numbers(&[4, 6]) * 2.0).sum(1, false)));
    // A sum over the sharded axis needs the parts of the others.
    let error = Program::of(&[&x.sum(0, false)]).map(|programs| programs.len()).unwrap_err().to_string();
    assert!(error.contains("realize values that move between devices"), "{error}");
    Ok(())
}
