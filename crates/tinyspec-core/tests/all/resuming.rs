//! A training that is saved, and gone on with by another process, is the one that was never interrupted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tinyspec_core::nn::{
    Adadelta, Adagrad, AdagradOptions, Adam, AdamOptions, Adamax, Cosine, Init, Lamb, LambOptions, Lion, Model, Nadam,
    Name, Optimizer, Parameter, Radam, RmsProp, RmsPropOptions, Role, Schedule, Sgd, SgdOptions, VariantOptions, load,
    resume, save, save_training,
};
use tinyspec_core::tensor::collectives::broadcast;
use tinyspec_core::{Error, Tensor, grad, random_state, realize_all, set_random_state, set_seed};
use tinyspec_ir::{DType, ErrorKind};

/// A weight and a bias; the bias in a narrow float.
pub struct Line {
    pub weight: Tensor,
    pub bias: Tensor,
}

impl Model for Line {
    fn visit<'a>(&'a self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a Tensor)) {
        visit(&name.field("weight"), Role::Parameter, &self.weight);
        visit(&name.field("bias"), Role::Parameter, &self.bias);
    }

    fn visit_mut<'a>(&'a mut self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a mut Tensor)) {
        visit(&name.field("weight"), Role::Parameter, &mut self.weight);
        visit(&name.field("bias"), Role::Parameter, &mut self.bias);
    }

    fn build(model: &Name, make: &mut dyn FnMut(Parameter) -> Result<Tensor, Error>) -> Result<Line, Error> {
        let mut tensor = |name: &str, dtype, shape: &[usize], init| {
            let role = Role::Parameter;
            make(Parameter { name: &model.field(name), dtype, shape, init, role })
        };
        Ok(Line {
            weight: tensor("weight", DType::F32, &[3, 2], Init::Xavier)?,
            bias: tensor("bias", DType::BF16, &[2], Init::Zeros)?,
        })
    }
}

/// Every optimiser, with options under which it remembers all that it can.
fn optimizers() -> Vec<(&'static str, Box<dyn Optimizer>)> {
    let adam = AdamOptions { weight_decay: 0.01, amsgrad: true, ..AdamOptions::default() };
    let rms = RmsPropOptions { momentum: 0.9, centered: true, ..RmsPropOptions::default() };
    vec![
        ("sgd", Box::new(Sgd::new(0.1))),
        ("momentum", Box::new(Sgd::with_momentum(0.1, 0.9))),
        ("adam", Box::new(Adam::new(0.1))),
        ("amsgrad", Box::new(Adam::with_options(0.1, adam))),
        ("rmsprop", Box::new(RmsProp::new(0.1))),
        ("centered", Box::new(RmsProp::with_options(0.1, rms))),
        ("adagrad", Box::new(Adagrad::new(0.1))),
        ("lamb", Box::new(Lamb::new(0.1))),
        ("adadelta", Box::new(Adadelta::new(1.0))),
        ("adamax", Box::new(Adamax::new(0.1))),
        ("nadam", Box::new(Nadam::new(0.1))),
        ("radam", Box::new(Radam::new(0.1))),
        ("lion", Box::new(Lion::new(0.1))),
    ]
}

/// Makes the steps from one to another, and gives the bits of their losses.
fn train(model: &mut Line, optimizer: &mut dyn Optimizer, steps: std::ops::Range<usize>) -> Result<Vec<u32>, Error> {
    let schedule = Cosine { rate: 0.1, least: 0.01, steps: 12 };
    let mut losses = vec![];
    for step in steps {
        // The rate of the first steps is still that of the next ones.
        if step % 4 == 0 {
            schedule.apply(optimizer, step);
        }
        let x = Tensor::randn([5, 3]).dropout(0.3);
        let y = x.matmul(&model.weight) + &model.bias.cast(DType::F32);
        let loss = (y - x.sum(-1, true)).square().mean(.., false);
        let gradients = grad(&loss, &model.parameters())?;
        optimizer.step(&mut model.parameters_mut(), &gradients)?;
        realize_all(&[vec![&loss], model.parameters(), optimizer.state()].concat())?;
        losses.push(loss.item::<f32>()?.to_bits());
    }
    Ok(losses)
}

const STEPS: usize = 10;
const INTERRUPTED: usize = 6;

/// Where the processes leave their files.
fn folder() -> PathBuf {
    std::env::var("RESUMING").expect("only the tests above run this").into()
}

fn tell(name: &str, losses: &[u32]) {
    println!("\nlosses of {name}: {losses:?}");
}

/// What one process does: run by `a_training_resumes_bit_for_bit`.
mod work {
    use super::*;

    #[test]
    #[ignore = "a part of a training"]
    fn whole() -> Result<(), Error> {
        for (name, mut optimizer) in optimizers() {
            set_seed(11);
            let losses = train(&mut Line::init(), &mut *optimizer, 0..STEPS)?;
            tell(name, &losses[INTERRUPTED..]);
        }
        Ok(())
    }

    #[test]
    #[ignore = "a part of a training"]
    fn begins() -> Result<(), Error> {
        for (name, mut optimizer) in optimizers() {
            set_seed(11);
            let mut model = Line::init();
            train(&mut model, &mut *optimizer, 0..INTERRUPTED)?;
            save_training(folder().join(name), INTERRUPTED, &model, &*optimizer)?;
        }
        Ok(())
    }

    #[test]
    #[ignore = "a part of a training"]
    fn goes_on() -> Result<(), Error> {
        for (name, mut optimizer) in optimizers() {
            let (steps, mut model) = resume::<Line>(folder().join(name), &mut *optimizer)?;
            tell(name, &train(&mut model, &mut *optimizer, steps..STEPS)?);
        }
        Ok(())
    }
}

#[test]
fn a_training_resumes_bit_for_bit() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("resuming-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |work: &str| -> Vec<String> {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("resuming::work::{work}"), "--include-ignored", "--nocapture"])
            .env("RESUMING", &folder)
            .output()
            .unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        text.lines().filter(|line| line.starts_with("losses of")).map(str::to_string).collect()
    };
    let whole = run("whole");
    run("begins");
    assert_eq!(run("goes_on"), whole);
    assert_eq!(whole.len(), optimizers().len());
    let _ = std::fs::remove_dir_all(&folder);
}

/// What an optimiser remembers after two steps of weights with these shapes.
fn state_of(mut optimizer: impl Optimizer, shapes: &[&[i64]]) -> Result<BTreeMap<String, Tensor>, Error> {
    let mut weights: Vec<Tensor> = shapes.iter().map(|&shape| Tensor::ones(shape)).collect();
    for _ in 0..2 {
        let gradients: Vec<Tensor> = shapes.iter().map(|&shape| Tensor::ones(shape)).collect();
        optimizer.step(&mut weights.iter_mut().collect::<Vec<_>>(), &gradients)?;
    }
    Ok(optimizer.named_state().into_iter().map(|(name, tensor)| (name, tensor.clone())).collect())
}

#[test]
fn a_state_of_another_optimiser_is_refused() -> Result<(), Error> {
    let adam = state_of(Adam::new(0.1), &[&[2], &[3]])?;
    let names: Vec<&str> = adam.keys().map(String::as_str).collect();
    assert_eq!(names, ["mean_power", "means.0", "means.1", "rate", "variance_power", "variances.0", "variances.1"]);
    let refused = |optimizer: &mut dyn Optimizer, state: &BTreeMap<String, Tensor>| {
        let before: Vec<String> = optimizer.named_state().into_iter().map(|(name, _)| name).collect();
        let error = optimizer.load_state(state.clone()).expect_err("not its state");
        let after: Vec<String> = optimizer.named_state().into_iter().map(|(name, _)| name).collect();
        assert_eq!((before, error.kind()), (after, Some(ErrorKind::Value)));
        error.to_string()
    };
    let error = refused(&mut Sgd::new(0.1), &adam);
    assert!(error.contains("load_state: unexpected: mean_power, means.0, means.1, variance_power"), "{error}");
    let error = refused(&mut Adam::with_options(0.1, AdamOptions { amsgrad: true, ..AdamOptions::default() }), &adam);
    assert!(error.contains("missing: greatest.0, greatest.1\n") && error.contains("the same options"), "{error}");
    let error = refused(&mut RmsProp::new(0.1), &adam);
    assert!(error.contains("missing: squares.0, squares.1") || error.contains("unexpected: mean_power"), "{error}");
    let changed = |name: &str, tensor: Tensor| {
        let mut state = adam.clone();
        state.insert(name.to_string(), tensor);
        refused(&mut Adam::new(0.1), &state)
    };
    let error = changed("means.1", Tensor::ones([4]));
    assert!(error.contains("`variances.1` has [3], `means.1` has [4]"), "{error}");
    let error = changed("means.1", Tensor::ones([3]).cast(DType::I32));
    assert!(error.contains("`means.1` is i32 [3], the optimiser wants f32 or f64"), "{error}");
    let error = changed("rate", Tensor::ones([1]));
    assert!(error.contains("`rate` is f32 [1], the optimiser wants f32 []"), "{error}");
    let error = changed("means.7", Tensor::ones([1]));
    assert!(error.contains("missing: means.2, variances.2; unexpected: means.7"), "{error}");
    let error = Sgd::new(0.1).load_state(adam.clone()).expect_err("not its state");
    assert!(error.location().is_some_and(|location| &*location.file == file!()), "{error}");
    let failed = Tensor::ones([2]).matmul(Tensor::ones([3]));
    assert!(Adam::new(0.1).load_state(BTreeMap::from([("rate".into(), failed)])).is_err());
    Ok(())
}

#[test]
fn a_state_of_other_weights_is_refused_by_the_step() -> Result<(), Error> {
    let state = state_of(Adam::new(0.1), &[&[2], &[3]])?;
    let refused = |mut weights: Vec<Tensor>| {
        let mut adam = Adam::new(0.1);
        adam.load_state(state.clone()).unwrap();
        let gradients = weights.clone();
        let error = adam.step(&mut weights.iter_mut().collect::<Vec<_>>(), &gradients).expect_err("other weights");
        assert!(error.location().is_some_and(|location| &*location.file == file!()), "{error}");
        (error.kind().unwrap(), error.to_string())
    };
    let (kind, error) = refused(vec![Tensor::ones([2])]);
    assert_eq!(kind, ErrorKind::Arity);
    assert!(error.contains("step: 1 weights, but the optimiser remembers `means` of 2"), "{error}");
    let (kind, error) = refused(vec![Tensor::ones([2]), Tensor::ones([4])]);
    assert_eq!(kind, ErrorKind::Shape);
    assert!(error.contains("weight 1 is f32 [4], but the optimiser remembers `means.1` as f32 [3]"), "{error}");
    let (kind, error) = refused(vec![Tensor::ones([2]).cast(DType::F64), Tensor::ones([3]).cast(DType::F64)]);
    assert_eq!(kind, ErrorKind::DType);
    assert!(error.contains("weight 0 is f64 [2], but the optimiser remembers `means.0` as f32 [2]"), "{error}");
    Ok(())
}

#[test]
fn a_state_before_the_first_step_is_one() -> Result<(), Error> {
    let fresh = Adam::new(0.25);
    let state = fresh.named_state().into_iter().map(|(name, tensor)| (name, tensor.clone())).collect();
    let mut adam = Adam::new(0.1);
    adam.load_state(state)?;
    let mut weight = Tensor::ones([2]);
    adam.step(&mut [&mut weight], &[Tensor::ones([2])])?;
    // The learning rate is part of it.
    assert_eq!(weight.to_vec::<f32>()?, [0.75; 2]);
    Ok(())
}

#[test]
fn a_state_goes_to_where_the_weights_are() -> Result<(), Error> {
    let gradient = || Tensor::from_slice(&[0.5f32, -1.0, 2.0, 0.25], [4]);
    let mut here = Tensor::ones([4]);
    let mut adam = Adam::new(0.1);
    adam.step(&mut [&mut here], &[gradient()])?;
    here.realize()?;
    let state: BTreeMap<String, Tensor> =
        adam.named_state().into_iter().map(|(name, tensor)| (name, tensor.clone())).collect();
    let weights = [here.to("interpreter:3"), broadcast(&here, ["interpreter:1", "interpreter:2"])];
    adam.step(&mut [&mut here], &[gradient()])?;
    let gradients = [gradient().to("interpreter:3"), broadcast(&gradient(), ["interpreter:1", "interpreter:2"])];
    for (mut weight, gradient) in weights.into_iter().zip(gradients) {
        let mut other = Adam::new(0.1);
        other.load_state(state.clone())?;
        other.step(&mut [&mut weight], &[gradient])?;
        for (want, found) in here.to_vec::<f32>()?.into_iter().zip(weight.to_vec::<f32>()?) {
            assert!((want - found).abs() < 1e-6, "{found} instead of {want} on {:?}", weight.device());
        }
    }
    Ok(())
}

#[test]
fn a_file_that_is_no_training_is_refused() -> Result<(), Error> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("no-training-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, mut adam) = (folder.join("file.safetensors"), Adam::new(0.1));
    let refused = |adam: &mut Adam| resume::<Line>(&file, adam).err().expect("no training").to_string();
    let model = Line::init();
    model.save(&file)?;
    let error = refused(&mut adam);
    assert!(error.contains("no `steps` of u64 []: `save_training` writes files that"), "{error}");
    save_training(&file, 3, &model, &Sgd::new(0.1))?;
    let error = refused(&mut adam);
    assert!(error.contains("the training is one of the optimiser `Sgd`, not of `Adam`"), "{error}");
    assert!(adam.named_state().len() == 3, "nothing is changed");
    without_options(&file)?;
    let error = resume::<Line>(&file, &mut Sgd::with_momentum(0.1, 0.9)).err().expect("no velocities").to_string();
    assert!(error.contains("3 steps are done, but nothing is there that `Sgd` remembers of weights"), "{error}");
    save_training(&file, 0, &model, &adam)?;
    let mut found = load(&file)?;
    found.remove("model.bias");
    found.insert("model.other".into(), Tensor::ones([1]));
    save(&file, &found.iter().collect::<Vec<_>>())?;
    let error = refused(&mut adam);
    assert!(error.contains("missing: model.bias; unexpected: model.other"), "{error}");
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

/// Removes the options, as in files that were written before options were saved.
fn without_options(file: &Path) -> Result<(), Error> {
    let mut found = load(file)?;
    found.retain(|name, _| !name.starts_with("option."));
    save(file, &found.iter().collect::<Vec<_>>())
}

#[test]
fn an_optimiser_with_other_options_is_refused() -> Result<(), Error> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("options-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, model) = (folder.join("file.safetensors"), Line::init());
    let variants = VariantOptions { betas: [0.8, 0.9], ..VariantOptions::default() };
    let sgd = SgdOptions { momentum: 0.9, nesterov: true, ..SgdOptions::default() };
    let rms = RmsPropOptions { decay: 0.5, ..RmsPropOptions::default() };
    let adagrad = AdagradOptions { weight_decay: 0.1, ..AdagradOptions::default() };
    let lamb = LambOptions { epsilon: 0.5, ..LambOptions::default() };
    type Case = (Box<dyn Optimizer>, Box<dyn Optimizer>, &'static str);
    let cases: Vec<Case> = vec![
        (
            Box::new(Adam::with_weight_decay(0.05, 0.1)),
            Box::new(Adam::new(0.7)),
            "`weight_decay` is 0.1 in the training, 0 in the optimiser: make the `Adam` with the options of the training",
        ),
        (
            Box::new(Sgd::with_options(0.1, sgd)),
            Box::new(Sgd::with_momentum(0.1, 0.5)),
            "`momentum` is 0.9 in the training, 0.5 in the optimiser; `nesterov` is 1 in the training, 0 in the optimiser",
        ),
        (
            Box::new(RmsProp::with_options(0.1, rms)),
            Box::new(RmsProp::new(0.1)),
            "`decay` is 0.5 in the training, 0.99",
        ),
        (Box::new(Adagrad::with_options(0.1, adagrad)), Box::new(Adagrad::new(0.1)), "`weight_decay` is 0.1"),
        (Box::new(Lamb::with_options(0.1, lamb)), Box::new(Lamb::new(0.1)), "`epsilon` is 0.5"),
        (
            Box::new(Nadam::with_options(0.1, variants)),
            Box::new(Nadam::new(0.1)),
            "`betas[0]` is 0.8 in the training, 0.9",
        ),
        (
            Box::new(Lion::with_options(0.1, variants)),
            Box::new(Lion::new(0.1)),
            "`betas[1]` is 0.9 in the training, 0.99",
        ),
    ];
    for (saved, mut other, expected) in cases {
        save_training(&file, 0, &model, &*saved)?;
        let before = other.named_state()[0].1.item::<f32>()?;
        let error = resume::<Line>(&file, &mut *other).err().expect("other options").to_string();
        assert!(error.contains(expected), "{error} does not say {expected}");
        assert_eq!(other.named_state()[0].1.item::<f32>()?, before, "nothing is changed");
        without_options(&file)?;
        resume::<Line>(&file, &mut *other)?;
    }
    // The learning rate is not an option: it is part of the state.
    save_training(&file, 0, &model, &Adam::new(0.05))?;
    let mut adam = Adam::new(0.7);
    resume::<Line>(&file, &mut adam)?;
    assert_eq!(adam.named_state()[0].1.item::<f32>()?, 0.05);
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

#[test]
fn a_random_state_is_two_numbers() {
    assert_eq!(random_state().sizes().unwrap(), [2]);
    let error = set_random_state(&Tensor::ones([3]).cast(DType::U64)).expect_err("three numbers");
    assert!(error.kind() == Some(ErrorKind::Shape) && error.to_string().contains("set_random_state"), "{error}");
    let error = set_random_state(&Tensor::ones([2])).expect_err("floats");
    assert!(error.kind() == Some(ErrorKind::DType) && error.to_string().contains("set_random_state"), "{error}");
}
