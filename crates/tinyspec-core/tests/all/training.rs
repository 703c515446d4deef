//! Optimisers and weights: a step is one graph, and files give back what was saved.

use tinyspec_core::nn::{
    Adadelta, Adagrad, AdagradOptions, Adam, Adamax, Lamb, LambOptions, Lion, Nadam, Optimizer, Radam, RmsProp,
    RmsPropOptions, Sgd, SgdOptions, VariantOptions, load, save,
};
use tinyspec_core::{Error, Program, Tensor, grad, profile, realize_all};
use tinyspec_ir::ops::options::default;
use tinyspec_ir::{DType, ErrorKind};

/// Fits `y = 2 a - b + 3` and returns the last loss.
fn fit(optimizer: &mut dyn Optimizer, steps: usize) -> Result<f32, Error> {
    let x = Tensor::from_slice(&[1f32, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, -1.0], [4, 2]);
    let y = Tensor::from_slice(&[5f32, 2.0, 4.0, 8.0], [4, 1]);
    let (mut w, mut b) = (Tensor::zeros([2, 1]), Tensor::zeros([1]));
    let mut last = f32::INFINITY;
    for _ in 0..steps {
        let loss = (x.matmul(&w) + &b - &y).square().mean(.., false);
        let gradients = grad(&loss, &[&w, &b])?;
        optimizer.step(&mut [&mut w, &mut b], &gradients)?;
        let mut results = vec![&loss, &w, &b];
        results.extend(optimizer.state());
        realize_all(&results)?;
        last = loss.item()?;
    }
    Ok(last)
}

#[test]
fn optimisers_fit_a_line() -> Result<(), Error> {
    let loss = fit(&mut Sgd::new(0.1), 200)?;
    assert!(loss < 1e-2, "gradient descent: {loss}");
    let loss = fit(&mut Sgd::with_momentum(0.05, 0.9), 200)?;
    assert!(loss < 1e-2, "momentum: {loss}");
    let loss = fit(&mut Adam::new(0.1), 300)?;
    assert!(loss < 1e-2, "adam: {loss}");
    Ok(())
}

#[test]
fn a_loop_that_reads_only_losses_makes_no_longer_programs() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]);
    let optimizers: [fn() -> Box<dyn Optimizer>; 4] = [
        || Box::new(Sgd::with_momentum(0.01, 0.5)),
        || Box::new(Adam::new(0.1)),
        || Box::new(RmsProp::new(0.1)),
        || Box::new(Nadam::new(0.1)),
    ];
    for optimizer in optimizers {
        let losses = |together: bool| -> Result<(Vec<f32>, Vec<usize>), Error> {
            let (mut optimizer, mut weight) = (optimizer(), Tensor::ones([2, 1]) * 0.5);
            let (mut losses, mut kernels) = (vec![], vec![]);
            for _ in 0..6 {
                let loss = (x.matmul(&weight) - 1.0).square().mean(.., false);
                let gradients = grad(&loss, &[&weight])?;
                optimizer.step(&mut [&mut weight], &gradients)?;
                if together {
                    realize_all(&[vec![&loss, &weight], optimizer.state()].concat())?;
                } else {
                    kernels.push(Program::of(&[&loss])?.len());
                }
                losses.push(loss.item()?);
            }
            Ok((losses, kernels))
        };
        let (lazy, kernels) = losses(false)?;
        assert!(kernels[2..].iter().all(|count| *count == kernels[2]), "{kernels:?}");
        assert_eq!(lazy, losses(true)?.0);
    }
    Ok(())
}

/// Otherwise the next step would repeat the forward pass and the gradients for it.
#[test]
fn what_is_remembered_of_weights_is_computed_with_them() -> Result<(), Error> {
    let momentum = |nesterov| SgdOptions { momentum: 0.9, nesterov, ..default() };
    let momenta = [false, true].map(|nesterov| Box::new(Sgd::with_options(0.1, momentum(nesterov))) as _);
    for mut optimizer in each_optimizer().into_iter().chain(momenta) {
        let x = Tensor::randn([3, 4]).realize()?.clone();
        let mut weights = [Tensor::randn([4, 5]), Tensor::randn([5])];
        for _ in 0..3 {
            let [w, b] = &mut weights;
            let loss = (x.matmul(&*w) + &*b).square().mean(.., false);
            let gradients = grad(&loss, &[&*w, &*b])?;
            optimizer.step(&mut [&mut *w, &mut *b], &gradients)?;
            realize_all(&[&loss, &*w, &*b])?;
            let mut of_weights = optimizer.state().into_iter().filter(|state| !state.shape().is_empty());
            assert!(of_weights.all(Tensor::is_realized), "{}", optimizer.kind());
        }
    }
    Ok(())
}

/// A run does not recompute states that a later step has overwritten in place.
#[test]
fn losses_are_read_in_any_order() -> Result<(), Error> {
    const STEPS: usize = 3;
    let run = |optimizer: &mut dyn Optimizer, order: [usize; STEPS]| -> Result<[f32; STEPS], Error> {
        let x = Tensor::arange(6).cast(DType::F32).reshape([6, 1]).expand([6, 64]) * 0.1;
        let (mut w, mut b) = (Tensor::full([64, 4200], 0.01f32), Tensor::full([64], 0.01f32));
        realize_all(&[&w, &b])?;
        let mut losses = vec![];
        for _ in 0..STEPS {
            let loss = (&x * &b).tanh().matmul(&w).tanh().square().mean(.., false);
            let gradients = grad(&loss, &[&w, &b])?;
            optimizer.step(&mut [&mut w, &mut b], &gradients)?;
            losses.push(loss);
        }
        let mut read = [0.0; STEPS];
        for step in order {
            read[step] = losses[step].item()?;
        }
        Ok(read)
    };
    for (mut forwards, mut backwards) in each_optimizer().into_iter().zip(each_optimizer()) {
        let (forwards, backwards) = (run(&mut *forwards, [0, 1, 2])?, run(&mut *backwards, [2, 0, 1])?);
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * a.abs();
        assert!(forwards.iter().zip(&backwards).all(is_near), "{forwards:?}, {backwards:?}");
    }
    Ok(())
}

/// Their state moves to the device of the weights.
#[test]
fn optimisers_step_on_devices_that_are_not_the_default() -> Result<(), Error> {
    let learned = |device: &str, mut optimizer: Box<dyn Optimizer>| -> Result<Vec<f32>, Error> {
        let mut weight = Tensor::from_slice(&[0.5f32, -1.5, 2.0], [3]).to(device);
        for _ in 0..3 {
            let gradients = grad(&weight.square().sum(.., false), &[&weight])?;
            optimizer.step(&mut [&mut weight], &gradients)?;
        }
        weight.to_vec()
    };
    for (here, there) in each_optimizer().into_iter().zip(each_optimizer()) {
        let kind = here.kind();
        let (here, there) = (learned("cpu", here)?, learned("interpreter", there)?);
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
        assert!(here.iter().zip(&there).all(is_near), "{kind}: {here:?}, {there:?}");
    }
    Ok(())
}

#[test]
fn weights_survive_a_file() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("tinyspec-weights-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let file = folder.join("weights.safetensors");
    let w = Tensor::from_slice(&[1f32, f32::NAN, -0.0], [3, 1]);
    let flags = Tensor::from_slice(&[true, false], [2]);
    save(&file, &[("w", &w), ("flags", &flags)])?;
    let loaded = load(&file)?;
    let bits = |tensor: &Tensor| -> Result<Vec<u32>, Error> {
        Ok(tensor.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
    };
    assert_eq!(bits(&loaded["w"])?, bits(&w)?);
    assert_eq!(loaded["w"].sizes()?, [3, 1]);
    assert_eq!(loaded["flags"].to_vec::<bool>()?, [true, false]);
    let whole = std::fs::read(&file).expect("just written");
    std::fs::write(&file, &whole[..whole.len() - 3]).expect("writable");
    assert!(matches!(load(&file), Err(Error::Weights { .. })));
    assert!(matches!(load(folder.join("missing")), Err(Error::Weights { .. })));
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

#[test]
fn equal_programs_share_a_plan() -> Result<(), Error> {
    let program = |seed: f32| (Tensor::from_slice(&[seed; 17], [17]) * 3.0 + 1.25).to_vec::<f32>();
    program(1.0)?;
    // Other tests may compile meanwhile, but not each time.
    let is_shared = |attempt: usize| -> Result<bool, Error> {
        let before = profile::counters();
        assert_eq!(program(attempt as f32)?, [attempt as f32 * 3.0 + 1.25; 17]);
        let after = profile::counters();
        Ok((before.plans, before.kernels) == (after.plans, after.kernels))
    };
    let shared = (0..1000).map(is_shared).collect::<Result<Vec<_>, _>>()?;
    assert!(shared.contains(&true), "each of the equal programs was compiled");
    Ok(())
}

#[test]
fn adam_remembers_in_f32_and_knows_its_weights() -> Result<(), Error> {
    let mut weight = Tensor::ones([2]).cast(DType::F16).contiguous();
    let mut adam = Adam::new(0.1);
    for _ in 0..3 {
        // Its square is below the least f16.
        let gradient = Tensor::full_of([2], 1e-4, DType::F16);
        adam.step(&mut [&mut weight], &[gradient])?;
    }
    assert_eq!(weight.dtype(), DType::F16);
    let values = weight.cast(DType::F32).to_vec::<f32>()?;
    assert!(values.iter().all(|value| (value - 0.7).abs() < 1e-2), "{values:?}");
    let mut other = Tensor::ones([2]);
    let gradients = [Tensor::ones([2]), Tensor::ones([2])];
    let error = adam.step(&mut [&mut weight, &mut other], &gradients).expect_err("one weight before, two now");
    assert_eq!(error.kind(), Some(ErrorKind::Arity));
    let mut longer = Tensor::ones([3]);
    assert!(adam.step(&mut [&mut longer], &[Tensor::ones([3])]).is_err());
    Ok(())
}

fn each_optimizer() -> [Box<dyn Optimizer>; 10] {
    [
        Box::new(Sgd::new(0.1)),
        Box::new(Adam::new(0.1)),
        Box::new(RmsProp::new(0.1)),
        Box::new(Adagrad::new(0.1)),
        Box::new(Lamb::new(0.1)),
        Box::new(Adadelta::new(0.1)),
        Box::new(Adamax::new(0.1)),
        Box::new(Nadam::new(0.1)),
        Box::new(Radam::new(0.1)),
        Box::new(Lion::new(0.1)),
    ]
}

#[test]
fn whole_numbers_are_not_trained() {
    for mut optimizer in each_optimizer() {
        let mut weight = Tensor::from_slice(&[1i32, 2], [2]);
        let line = line!() + 1;
        let error = optimizer.step(&mut [&mut weight], &[Tensor::ones([2])]).expect_err("the weight is i32");
        assert!(error.to_string().contains("step: weight 0 is i32 [2]"), "{error}");
        let location = error.location().expect("the line of the step");
        assert_eq!((&*location.file, location.line), (file!(), line));
    }
}

#[test]
fn a_gradient_has_the_shape_of_its_weight() {
    fn refused(optimizer: &mut dyn Optimizer, gradient: &[i64]) -> String {
        let (mut first, mut weight) = (Tensor::ones([3]), Tensor::ones([2]));
        let gradients = [Tensor::ones([3]), Tensor::ones(gradient)];
        let result = optimizer.step(&mut [&mut first, &mut weight], &gradients);
        assert_eq!((first.sizes().ok(), weight.sizes().ok()), (Some(vec![3]), Some(vec![2])));
        result.expect_err("the shapes differ").to_string()
    }
    for mut optimizer in each_optimizer() {
        let error = refused(&mut *optimizer, &[]);
        assert!(error.contains("step: the gradient of weight 1 has [], the weight [2]"), "{error}");
        let error = refused(&mut *optimizer, &[2, 2]);
        assert!(error.contains("step: the gradient of weight 1 has [2, 2], the weight [2]"), "{error}");
    }
    let mut weight = Tensor::ones([1]);
    let line = line!() + 1;
    let error = Sgd::new(0.1).step(&mut [&mut weight], &[Tensor::ones([3])]).expect_err("the shapes differ");
    let location = error.location().expect("the line of the step");
    assert_eq!((&*location.file, location.line), (file!(), line));
}

#[test]
fn names_in_a_file_are_distinct() {
    let w = Tensor::ones([1]);
    let error = save("never.safetensors", &[("w", &w), ("w", &w)]).expect_err("one name twice");
    assert!(error.to_string().contains("two tensors are named `w`"), "{error}");
}

#[test]
fn what_is_saved_can_be_loaded_whatever_its_names() -> Result<(), Error> {
    let file = std::env::temp_dir().join(format!("tinyspec-names-{}.safetensors", std::process::id()));
    let (w, names) = (Tensor::ones([1]), ["", " ", "ü \"quoted\"", "a\0b\n", "__metadata", "metadata"]);
    save(&file, &names.map(|name| (name, &w)))?;
    let found: Vec<String> = load(&file)?.into_keys().collect();
    assert_eq!(found, std::collections::BTreeSet::from(names).into_iter().collect::<Vec<_>>());
    // The one name that the format has taken.
    let error = save(&file, &[("w", &w), ("__metadata__", &w)]).expect_err("no name of a tensor").to_string();
    let message = "a tensor is named `__metadata__`, which safetensors keeps for notes on a file: give it another name";
    assert!(error.contains(message) && error.contains(&*file.to_string_lossy()), "{error}");
    assert_eq!(load(&file)?.len(), names.len(), "the older file is there");
    let _ = std::fs::remove_file(file);
    Ok(())
}

/// Numbers that no optimiser can work with are reported by its steps, with the line that they were given in.
#[test]
fn impossible_hyperparameters_are_refused() {
    fn refused(made_at: u32, optimizer: &mut dyn Optimizer, expected: &str) {
        let mut weight = Tensor::ones([2]);
        let error = optimizer.step(&mut [&mut weight], &[Tensor::ones([2])]).expect_err(expected);
        assert!(error.to_string().starts_with(expected), "{error} does not say {expected}");
        assert_eq!(error.kind(), Some(ErrorKind::Value));
        assert_eq!(error.location().map(|location| location.line), Some(made_at), "{error}");
        assert_eq!(weight.to_vec::<f32>().expect("unchanged"), [1.0, 1.0]);
    }
    macro_rules! refused {
        ($optimizer:expr, $expected:literal) => {
            refused(line!(), &mut $optimizer, $expected)
        };
    }
    refused!(Adam::new(-0.1), "Adam: the learning rate is -0.1, it must be finite and not negative");
    refused!(Sgd::new(f32::NAN), "Sgd: the learning rate is NaN");
    refused!(RmsProp::new(f32::INFINITY), "RmsProp: the learning rate is inf");
    refused!(Adagrad::new(-1.0), "Adagrad: the learning rate is -1");
    refused!(Lamb::new(-1.0), "Lamb: the learning rate is -1");
    refused!(Adadelta::new(-1.0), "Adadelta: the learning rate is -1");
    refused!(Lion::new(-1.0), "Lion: the learning rate is -1");
    refused!(Sgd::with_momentum(0.1, -0.5), "Sgd: momentum is -0.5");
    refused!(Sgd::with_options(0.1, SgdOptions { weight_decay: f32::NAN, ..default() }), "Sgd: weight_decay is NaN");
    refused!(Sgd::with_options(0.1, SgdOptions { nesterov: true, ..default() }), "Sgd: nesterov is true and");
    refused!(Adam::with_betas(0.1, [0.9, 1.0], 1e-8), "Adam: betas[1] is 1, it must be at least 0 and below 1");
    refused!(Adam::with_betas(0.1, [-0.1, 0.9], 1e-8), "Adam: betas[0] is -0.1");
    refused!(Adam::with_betas(0.1, [0.9, 0.99], -1e-8), "Adam: epsilon is -0.00000001");
    refused!(Adam::with_weight_decay(0.1, -1.0), "Adam: weight_decay is -1");
    refused!(RmsProp::with_options(0.1, RmsPropOptions { decay: 1.5, ..default() }), "RmsProp: decay is 1.5");
    refused!(RmsProp::with_options(0.1, RmsPropOptions { momentum: -1.0, ..default() }), "RmsProp: momentum is -1");
    refused!(Adagrad::with_options(0.1, AdagradOptions { epsilon: -1.0, ..default() }), "Adagrad: epsilon is -1");
    refused!(Lamb::with_options(0.1, LambOptions { betas: [2.0, 0.9], ..default() }), "Lamb: betas[0] is 2");
    refused!(Nadam::with_options(0.1, VariantOptions { epsilon: -1.0, ..default() }), "Nadam: epsilon is -1");
    refused!(Lion::with_options(0.1, VariantOptions { betas: [0.9, 1.0], ..default() }), "Lion: betas[1] is 1");
    let mut optimizer = Adam::new(0.1);
    let line = line!() + 1;
    optimizer.set_learning_rate(-1.0);
    refused(line, &mut optimizer, "set_learning_rate: the learning rate is -1");
    optimizer.set_learning_rate(0.0);
    let mut weight = Tensor::ones([2]);
    optimizer.step(&mut [&mut weight], &[Tensor::ones([2])]).expect("a rate of 0 is one");
}

/// What a damaged header says, and what the format has there.
#[test]
fn a_wrong_header_of_weights_is_explained() {
    let file = std::env::temp_dir().join(format!("tinyspec-header-{}.safetensors", std::process::id()));
    let refused = |header: &str, expected: &str| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes().chain([0; 8]));
        std::fs::write(&file, bytes).expect("writable");
        let error = load(&file).expect_err(header).to_string();
        assert!(error.contains(expected) && !error.contains("usize"), "{error} does not say {expected}");
    };
    let entry = |entry: &str| format!(r#"{{"w":{entry}}}"#);
    refused(
        &entry(r#"{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}"#),
        "`shape` of `w` is `[-2]`, expected a list of whole numbers, none negative",
    );
    refused(&entry(r#"{"dtype":"F32","shape":[1.5],"data_offsets":[0,8]}"#), "`shape` of `w` is `[1.5]`");
    refused(&entry(r#"{"dtype":"F32","shape":"2","data_offsets":[0,8]}"#), "`shape` of `w` is `\"2\"`");
    refused(
        &entry(r#"{"dtype":"F32","shape":[2],"data_offsets":[0]}"#),
        "`data_offsets` of `w` is `[0]`, expected a list of two whole numbers, none negative",
    );
    refused(
        &entry(r#"{"dtype":"F31","shape":[2],"data_offsets":[0,8]}"#),
        "`dtype` of `w` is `\"F31\"`, expected one of",
    );
    refused(&entry(r#"{"dtype":"F32","data_offsets":[0,8]}"#), "`w` has no `shape`, expected a list of whole numbers");
    refused(r#"[1,2]"#, "its header is `[1,2]`, expected an object of names and tensors");
    refused(
        r#"{"__metadata__":{"a":1},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
        "`__metadata__` is `{\"a\":1}`, expected an object of names and strings",
    );
    let _ = std::fs::remove_file(file);
}

#[test]
fn equal_tensors_are_two_variables() -> Result<(), Error> {
    let (a, b) = (Tensor::zeros([4]), Tensor::zeros([4]));
    let loss = (&a * 2.0 + &b * 3.0).sum(.., false);
    let gradients = grad(&loss, &[&a, &b])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [2.0; 4]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [3.0; 4]);
    // A clone is the same variable.
    let gradients = grad(&loss, &[&a, &a.clone(), &b])?;
    assert_eq!(gradients[1].to_vec::<f32>()?, [2.0; 4]);
    // Computed ones, what they were computed from, and functions that need their values.
    let x = Tensor::from_slice(&[1f32, -2.0], [2]);
    let (u, v) = (x.square(), x.square());
    let loss = (u.square() + &v * 5.0 + &x).sum(.., false);
    let gradients = grad(&loss, &[&u, &x, &v])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [2.0, 8.0]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [4.0 + 10.0 + 1.0, 8.0 * -4.0 - 20.0 + 1.0]);
    assert_eq!(gradients[2].to_vec::<f32>()?, [5.0; 2]);
    Ok(())
}

/// Otherwise each keeps the weights of its step alive.
#[test]
fn metrics_that_a_program_keeps_for_later_are_computed_with_the_steps() -> Result<(), Error> {
    /// What ends a step: an optimiser, or the program itself.
    type Step = fn(&mut Adam, &mut Tensor, &Tensor) -> Result<(), Error>;
    let by_optimiser: Step = |adam, w, gradient| adam.step(&mut [w], std::slice::from_ref(gradient));
    let by_hand: Step = |_, w, gradient| {
        *w = (&*w - gradient * 0.1).detach();
        Ok(())
    };
    for (number, step) in [by_optimiser, by_hand].into_iter().enumerate() {
        let train = |reads_metrics: bool| -> Result<Vec<Tensor>, Error> {
            let mut w = Tensor::from_slice(&[0.5f32, -0.4, 0.3, 0.2], [4, 1]);
            let (mut adam, mut metrics) = (Adam::new(0.1), vec![]);
            for batch in 0..8 {
                let x = Tensor::from_slice(&[0.1f32, 0.7, -0.3, 0.4], [1, 4]) * (batch + 1);
                let predicted = x.matmul(&w);
                let loss = (&predicted - 1.0).square().mean(.., false);
                let metric = predicted.abs().sum(.., false);
                if reads_metrics {
                    metric.realize()?;
                }
                metrics.push(metric);
                let gradient = grad(&loss, &[&w])?.remove(0);
                step(&mut adam, &mut w, &gradient)?;
                loss.item::<f32>()?;
            }
            Ok(metrics)
        };
        let (kept, read) = (train(false)?, train(true)?);
        let lazy = kept.iter().filter(|metric| !metric.is_realized()).count();
        assert!(lazy <= 3, "{lazy} of {} metrics are left in program {number}", kept.len());
        for (kept, read) in kept.iter().zip(&read) {
            assert!((kept.item::<f32>()? - read.item::<f32>()?).abs() < 1e-5);
        }
    }
    Ok(())
}
