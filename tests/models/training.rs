//! A step of a training is one call and one plan, with every optimiser.

use crate::buffers::{Net, data, near};
use tinyspec::nn::{
    Adadelta, Adagrad, Adamax, Cosine, Lamb, Lion, Nadam, Radam, RmsProp, Schedule, TrainStep, clip_norm, clip_value,
};
use tinyspec::options::default;
use tinyspec::prelude::*;
use tinyspec::profile::counters;
use tinyspec::set_seed;

fn optimizers() -> Vec<Box<dyn Fn() -> Box<dyn Optimizer>>> {
    vec![
        Box::new(|| Box::new(Sgd::new(0.05))),
        Box::new(|| Box::new(Sgd::with_momentum(0.05, 0.9))),
        Box::new(|| Box::new(Adam::new(0.01))),
        Box::new(|| Box::new(Adam::with_weight_decay(0.01, 0.01))),
        Box::new(|| Box::new(RmsProp::new(0.01))),
        Box::new(|| Box::new(Adagrad::new(0.01))),
        Box::new(|| Box::new(Lamb::new(0.01))),
        Box::new(|| Box::new(Adadelta::new(1.0))),
        Box::new(|| Box::new(Adamax::new(0.01))),
        Box::new(|| Box::new(Nadam::new(0.01))),
        Box::new(|| Box::new(Radam::new(0.01))),
        Box::new(|| Box::new(Lion::new(0.001))),
    ]
}

/// As it was written before there was one call.
fn by_hand(net: &mut Net, optimizer: &mut dyn Optimizer, step: usize) -> Result<f32> {
    let (x, labels) = data(step);
    let loss = net.loss(&x, &labels);
    let mut gradients = grad(&loss, &net.parameters())?;
    clip_value(&mut gradients, 0.5)?;
    clip_norm(&mut gradients, 0.7)?;
    optimizer.step(&mut net.parameters_mut(), &gradients)?;
    realize_all(&[vec![&loss], net.state(), optimizer.state()].concat())?;
    loss.item()
}

#[test]
fn every_optimiser_takes_it() -> Result<()> {
    let _alone = crate::alone();
    let schedule = Cosine { rate: 0.02, least: 0.001, steps: 5 };
    for (number, new) in optimizers().iter().enumerate() {
        let mut net = Net::init();
        realize_all(&net.state())?;
        let (mut twin, mut optimizer, mut other) = (net.clone(), new(), new());
        let mut plans = 0;
        for step in 0..5 {
            schedule.apply(&mut *optimizer, step);
            schedule.apply(&mut *other, step);
            let wanted = by_hand(&mut twin, &mut *other, step)?;
            let before = counters().plans;
            let (x, labels) = data(step);
            let loss = net.loss(&x, &labels);
            let options = TrainStep { clip_norm: Some(0.7), clip_value: Some(0.5), ..default() };
            let norm = net.train_step_with(&loss, &mut *optimizer, options)?.unwrap();
            assert!(loss.is_realized() && norm.is_realized() && net.state().iter().all(|tensor| tensor.is_realized()));
            assert!((loss.item::<f32>()? - wanted).abs() < 1e-4, "{number}: {} {wanted}", loss.item::<f32>()?);
            plans = counters().plans - before;
        }
        assert_eq!(plans, 0, "{number}");
        for (found, wanted) in net.state().iter().zip(twin.state()) {
            assert!(near(&found.cast(DType::F32), &wanted.cast(DType::F32))?, "{number}");
        }
    }
    Ok(())
}

#[test]
fn it_is_one_plan() -> Result<()> {
    let _alone = crate::alone();
    let (mut net, mut optimizer) = (Net::init(), Adam::new(0.01));
    realize_all(&net.state())?;
    let mut plans = vec![];
    let (mut first, mut last) = (f32::NAN, f32::NAN);
    for step in 0..30 {
        let before = counters().plans;
        let (x, labels) = data(step % 2);
        let loss = net.loss(&x, &labels);
        net.train_step(&loss, &mut optimizer)?;
        plans.push(counters().plans - before);
        last = loss.item()?;
        if step == 0 {
            first = last;
        }
    }
    // What the optimiser remembers is made before the first step.
    assert!(plans[0] <= 2 && plans[1..].iter().all(|&plans| plans == 0), "{plans:?}");
    assert!(last < first, "{first} {last}");
    assert_eq!(net.first[0].norm.batches.item::<i64>()?, 30);
    Ok(())
}

#[test]
fn what_is_asked_for_is_computed_with_it() -> Result<()> {
    let _alone = crate::alone();
    let (mut net, mut optimizer) = (Net::init(), Sgd::new(0.1));
    let (x, labels) = data(0);
    let loss = net.loss(&x, &labels);
    let guesses = net.eval(&x).argmax(1);
    let hits = guesses.eq(&labels).cast(DType::F32).mean(.., false);
    let norm = net.train_step_with(&loss, &mut optimizer, TrainStep { with: &[&hits], ..default() })?;
    assert!(norm.is_none() && hits.is_realized());
    Ok(())
}

/// Steps on one device and on a tuple of two, from the same state: the losses and the states are equal.
fn is_the_same_on_two<M: Model + Clone>(
    mut one: M,
    optimizer: impl Fn() -> Box<dyn Optimizer>,
    loss: impl Fn(&mut M, &Tensor, &Tensor) -> Tensor,
) -> Result<M> {
    realize_all(&one.state())?;
    let names = ["interpreter:0", "interpreter:1"];
    let on_both = |tensor: &Tensor| tensor.to("interpreter").to(&names[..]);
    let mut two = one.clone().to("interpreter").to(&names[..]);
    let (mut optimizer, mut other) = (optimizer(), optimizer());
    for step in 0..3 {
        let (x, labels) = data(step);
        let alone = loss(&mut one, &x, &labels);
        one.train_step(&alone, &mut *optimizer)?;
        let shared = loss(&mut two, &on_both(&x), &on_both(&labels));
        two.train_step(&shared, &mut *other)?;
        assert!((alone.item::<f32>()? - shared.item::<f32>()?).abs() < 1e-4, "step {step}");
    }
    let two = two.to("interpreter").to("cpu");
    for (found, wanted) in two.state().iter().zip(one.state()) {
        assert!(near(&found.cast(DType::F32), &wanted.cast(DType::F32))?);
    }
    Ok(two)
}

#[test]
fn each_device_of_a_tuple_takes_it() -> Result<()> {
    let _alone = crate::alone();
    let loss = |mlp: &mut Mlp, x: &Tensor, labels: &Tensor| mlp.loss(&x.mean(2, false), labels, 0.5);
    let mlp = is_the_same_on_two(Mlp::init(), || Box::new(Adam::new(0.01)), loss)?;
    assert_eq!(mlp.steps.item::<i32>()?, 3);
    Ok(())
}

#[test]
fn statistics_are_those_of_all_parts_of_a_batch() -> Result<()> {
    let _alone = crate::alone();
    is_the_same_on_two(Net::init(), || Box::new(Sgd::new(0.05)), |net, x, labels| net.loss(x, labels))?;
    Ok(())
}

/// Tensors, numbers and a state.
#[model(functions)]
#[derive(Clone)]
struct Mlp {
    wide: Tensor<f32, 4, 8>,
    narrow: Tensor<f32, 8, 3>,
    #[model(buffer)]
    steps: Tensor<i32>,
    unused: Tensor<f32, 2>,
}

#[function]
impl Mlp {
    fn loss<B>(&mut self, x: &Tensor<f32, B, 4>, labels: &Tensor<i32, B>, scale: f32) -> Tensor<f32> {
        self.steps += 1;
        let scores = (x.matmul(&self.wide).relu() * scale).matmul(&self.narrow);
        scores.cross_entropy(labels, "mean", 0.0, -100) + self.unused.sum(.., false) * 0.0
    }

    fn without<B>(&self, x: &Tensor<f32, B, 4>) -> Tensor<f32> {
        x.matmul(&self.wide).matmul(&self.narrow).square().mean(.., false)
    }
}

#[model]
struct Counting {
    weight: Tensor<f32, 2>,
    #[model(init = zeros)]
    counts: Tensor<i32, 2>,
}

#[test]
fn a_parameter_is_of_floats() {
    let _alone = crate::alone();
    let mut counting = Counting::init();
    let loss = counting.weight.square().sum(.., false);
    let error = counting.train_step(&loss, &mut Sgd::new(0.1)).unwrap_err().to_string();
    for part in ["the parameter `counts` is i32", "training.rs", "`#[model(buffer)]`"] {
        assert!(error.contains(part), "{part} is missing in\n{error}");
    }
}

#[test]
fn mistakes_are_named() -> Result<()> {
    let _alone = crate::alone();
    let (mut mlp, mut optimizer) = (Mlp::init(), Sgd::new(0.1));
    let x = Tensor::ones([2, 4]);
    let message = |result: Result<()>| result.unwrap_err().to_string();
    let loss = mlp.without(&x);
    let error = message(mlp.train_step(&loss, &mut optimizer));
    assert!(error.contains("the loss does not depend on `unused`") && error.contains("training.rs"), "{error}");
    mlp.train_step_with(&loss, &mut optimizer, TrainStep { allow_unused: true, ..default() })?;
    let error = message(mlp.train_step(&loss, &mut optimizer));
    assert!(error.contains("depends on no parameter of the model"), "{error}");
    let rows = x.matmul(&mlp.wide);
    let error = message(mlp.train_step(&rows, &mut optimizer));
    assert!(error.contains("the loss must be a float scalar"), "{error}");
    Ok(())
}

/// Otherwise the next step would repeat the forward pass and the gradients for what the loss leaves undone.
#[test]
fn reading_the_loss_computes_the_whole_step() -> Result<()> {
    let _alone = crate::alone();
    for optimizer in optimizers() {
        let (mut net, mut optimizer) = (Net::init(), optimizer());
        for step in 0..3 {
            let (x, labels) = data(step);
            let loss = net.loss(&x, &labels);
            let gradients = grad(&loss, &net.parameters())?;
            optimizer.step(&mut net.parameters_mut(), &gradients)?;
            loss.item::<f32>()?;
            let undone: Vec<String> =
                net.named_state().into_iter().filter(|(_, state)| !state.is_realized()).map(|(name, _)| name).collect();
            assert!(undone.is_empty(), "{} leaves {undone:?}", optimizer.kind());
        }
    }
    Ok(())
}

/// A step that nothing reads is computed by the next one, without what the next forward pass assigns.
#[test]
fn a_step_computes_the_one_before() -> Result<()> {
    let _alone = crate::alone();
    let (mut net, mut optimizer) = (Net::init(), Adam::new(0.01));
    let mut before: Option<Vec<Tensor>> = None;
    for step in 0..4 {
        let (x, labels) = data(step);
        let loss = net.loss(&x, &labels);
        let gradients = grad(&loss, &net.parameters())?;
        drop(loss);
        optimizer.step(&mut net.parameters_mut(), &gradients)?;
        assert!(before.iter().flatten().all(Tensor::is_realized), "{step}");
        assert!(net.state().iter().all(|state| !state.is_realized()), "{step}");
        before = Some(net.state().into_iter().cloned().collect());
    }
    Ok(())
}

/// Otherwise each one keeps the weights of its step alive, and whoever reads the last computes all of them.
#[test]
fn a_state_that_nothing_reads_is_computed_with_what_is_read() -> Result<()> {
    let _alone = crate::alone();
    type Next = fn(&Tensor, &Tensor) -> Tensor;
    let kinds: [(&str, Next); 3] = [
        ("made anew", |old, weight| old * 0.9 + weight * 0.1),
        ("detached", |old, weight| (old * 0.9 + weight * 0.1).detach()),
        ("a count", |old, _| old + 1.0),
    ];
    for (kind, next) in kinds {
        let train = |is_assigned: bool, is_read: bool| -> Result<(Tensor, usize)> {
            set_seed(3);
            let (mut net, mut optimizer) = (Net::init(), Adam::new(0.01));
            let mut average = Tensor::zeros(net.parameters()[0].shape());
            let mut steps_computed = 0;
            for step in 0..20 {
                let (x, labels) = data(step);
                let loss = net.loss(&x, &labels);
                let gradients = grad(&loss, &net.parameters())?;
                optimizer.step(&mut net.parameters_mut(), &gradients)?;
                let new = next(&average, net.parameters()[0]);
                match is_assigned {
                    true => average.assign(&new),
                    false => average = new,
                }
                loss.item::<f32>()?;
                steps_computed += usize::from(average.is_realized());
                if is_read {
                    average.realize()?;
                }
            }
            Ok((average, steps_computed))
        };
        let (read, _) = train(false, true)?;
        for is_assigned in [false, true] {
            let (average, steps) = train(is_assigned, false)?;
            assert!(steps >= 8, "{kind}, assigned: {is_assigned}: computed in {steps} of 20 steps");
            assert!(near(&average, &read)?, "{kind}, assigned: {is_assigned}");
        }
    }
    Ok(())
}

/// Otherwise losses collected for the end of an epoch would keep the weights of every step alive.
#[test]
fn a_loss_that_is_kept_is_computed_with_its_gradients() -> Result<()> {
    let _alone = crate::alone();
    let (mut net, mut optimizer) = (Net::init(), Adam::new(0.01));
    let mut losses = vec![];
    for step in 0..4 {
        let (x, labels) = data(step);
        let loss = net.loss(&x, &labels);
        let gradients = grad(&loss, &net.parameters())?;
        optimizer.step(&mut net.parameters_mut(), &gradients)?;
        losses.push(loss);
        realize_all(&net.parameters())?;
        assert!(losses[step].is_realized(), "{step}");
    }
    Ok(())
}
