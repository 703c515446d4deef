//! Fields that calls change and no optimiser does: running statistics, counters, copies that follow.

use tinyspec::nn::{Name, Role, resume, save_training};
use tinyspec::prelude::*;

/// Statistics of the batches, as PyTorch keeps them.
#[model(functions)]
#[derive(Clone, Debug)]
pub struct BatchNorm<C> {
    #[model(init = ones)]
    pub weight: Tensor<f32, C>,
    pub bias: Tensor<f32, C>,
    #[model(buffer)]
    pub mean: Tensor<f32, C>,
    #[model(buffer, init = ones)]
    pub variance: Tensor<f32, C>,
    #[model(buffer)]
    pub batches: Tensor<i64>,
}

#[function]
impl<C> BatchNorm<C> {
    pub fn train<B, S>(&mut self, x: &Tensor<f32, B, C, S>) -> Tensor<f32, B, C, S> {
        let [mean, variance] = x.batch_norm_running(&self.mean, &self.variance, 0.1);
        self.mean = mean;
        self.variance.assign(&variance);
        self.batches += 1;
        x.batch_norm_train(&self.weight, &self.bias, 1e-5)
    }

    pub fn eval<B, S>(&self, x: &Tensor<f32, B, C, S>) -> Tensor<f32, B, C, S> {
        x.batch_norm_eval(&self.weight, &self.bias, &self.mean, &self.variance, 1e-5)
    }

    pub fn either<B, S>(&mut self, x: &Tensor<f32, B, C, S>, training: bool) -> Tensor<f32, B, C, S> {
        if training { self.train(x) } else { self.eval(x) }
    }
}

/// A residual block.
#[model(functions)]
#[derive(Clone)]
pub struct Block<C> {
    filter: Tensor<f32, C, C, 3>,
    pub norm: BatchNorm<C>,
}

#[function]
impl<C> Block<C> {
    pub fn train<B, S>(&mut self, x: &Tensor<f32, B, C, S>) -> Tensor<f32, B, C, S> {
        let y = x.conv1d(&self.filter, None, Conv1d { padding: [1], ..default() });
        x + self.norm.train(&y).relu()
    }

    pub fn eval<B, S>(&self, x: &Tensor<f32, B, C, S>) -> Tensor<f32, B, C, S> {
        let y = x.conv1d(&self.filter, None, Conv1d { padding: [1], ..default() });
        x + self.norm.eval(&y).relu()
    }
}

#[model(functions)]
#[derive(Clone)]
pub struct Net {
    pub first: [Block<4>; 2],
    #[model(len = 2)]
    more: Vec<Block<4>>,
    last: Option<BatchNorm<4>>,
    #[model(none)]
    nothing: Option<BatchNorm<4>>,
    head: Tensor<f32, 4, 3>,
}

#[function]
impl Net {
    pub fn train<B, S>(&mut self, x: &Tensor<f32, B, 4, S>) -> Tensor<f32, B, 3> {
        let mut h = x.clone();
        for block in &mut self.first {
            h = block.train(&h);
        }
        for block in self.more.iter_mut() {
            h = block.train(&h);
        }
        if let Some(norm) = &mut self.last {
            h = norm.train(&h);
        }
        h.mean(2, false).matmul(&self.head)
    }

    pub fn eval<B, S>(&self, x: &Tensor<f32, B, 4, S>) -> Tensor<f32, B, 3> {
        let mut h = x.clone();
        for block in self.first.iter() {
            h = block.eval(&h);
        }
        for block in &self.more {
            h = block.eval(&h);
        }
        if let Some(norm) = &self.last {
            h = norm.eval(&h);
        }
        h.mean(2, false).matmul(&self.head)
    }

    #[function(grad)]
    pub fn loss<B, S>(&mut self, x: &Tensor<f32, B, 4, S>, labels: &Tensor<i32, B>) -> Tensor<f32> {
        self.train(x).cross_entropy(labels, "mean", 0.0, -100)
    }
}

/// As a function over the model.
#[function(grad)]
fn loss_of<B, S>(net: &mut Net, x: &Tensor<f32, B, 4, S>, labels: &Tensor<i32, B>) -> Tensor<f32> {
    net.loss(x, labels) * 1.0
}

pub fn data(step: usize) -> (Tensor, Tensor) {
    let x: Vec<f32> = (0..6 * 4 * 5).map(|i| ((i * 7 + step * 11) % 23) as f32 * 0.1 - 1.0).collect();
    let labels: Vec<i32> = (0..6).map(|i| (i + step as i32) % 3).collect();
    (Tensor::from_slice(&x, [6, 4, 5]), Tensor::from_slice(&labels, [6]))
}

pub fn near(found: &Tensor, wanted: &Tensor) -> Result<bool> {
    let (found, wanted) = (found.to_vec::<f32>()?, wanted.to_vec::<f32>()?);
    Ok(found.len() == wanted.len() && found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-4 * b.abs().max(1.0)))
}

#[test]
fn graphs_are_those_of_the_run_time() -> Result<()> {
    let _alone = crate::alone();
    for function in [
        BatchNorm::<1>::TRAIN,
        BatchNorm::<1>::EVAL,
        BatchNorm::<1>::EITHER,
        BatchNorm::<1>::EITHER.with_flags(&[true]),
        Block::<1>::TRAIN,
        Net::TRAIN,
        Net::EVAL,
        Net::LOSS,
        loss_of::FUNCTION,
        Ema::FOLLOW,
        Cache::PUSH,
    ] {
        assert_eq!(function.get()?.body().hash(), function.retrace()?.body().hash(), "{}", function.name());
    }
    Ok(())
}

#[test]
fn calls_change_them() -> Result<()> {
    let _alone = crate::alone();
    let mut norm = BatchNorm::<4>::init();
    let (mut mean, mut variance) = (norm.mean.clone(), norm.variance.clone());
    for step in 0..3 {
        let x = data(step).0;
        let running = x.batch_norm_running(&mean, &variance, 0.1);
        (mean, variance) = (running[0].clone(), running[1].clone());
        let y = norm.train(&x);
        assert!(near(&y, &x.batch_norm_train(&norm.weight, &norm.bias, 1e-5))?);
        assert!(near(&norm.mean, &mean)? && near(&norm.variance, &variance)?);
        assert_eq!(norm.batches.item::<i64>()?, step as i64 + 1);
    }
    let (before, x) = (norm.clone(), data(3).0);
    assert!(near(&norm.either(&x, false), &before.eval(&x))?);
    assert_eq!(norm.mean.to_vec::<f32>()?, before.mean.to_vec::<f32>()?);
    norm.either(&x, true);
    assert_ne!(norm.mean.to_vec::<f32>()?, before.mean.to_vec::<f32>()?);
    assert_eq!((norm.batches.item::<i64>()?, before.batches.item::<i64>()?), (4, 3));
    Ok(())
}

#[test]
fn nested_models_change_theirs() -> Result<()> {
    let _alone = crate::alone();
    let mut net = Net::init();
    let (x, labels) = data(0);
    let loss = net.loss(&x, &labels);
    assert!(loss.item::<f32>()?.is_finite());
    for norm in
        [&net.first[0].norm, &net.first[1].norm, &net.more[0].norm, &net.more[1].norm, net.last.as_ref().unwrap()]
    {
        assert_eq!(norm.batches.item::<i64>()?, 1);
        assert_ne!(norm.mean.to_vec::<f32>()?, [0.0; 4]);
    }
    loss_of(&mut net, &x, &labels);
    assert_eq!(net.more[1].norm.batches.item::<i64>()?, 2);
    Ok(())
}

#[test]
fn they_are_named_and_no_parameters() -> Result<()> {
    let _alone = crate::alone();
    let mut net = Net::init();
    let names = |named: Vec<(String, &Tensor)>| named.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ");
    assert_eq!(names(net.first[0].named_state()), "filter norm.weight norm.bias norm.mean norm.variance norm.batches");
    assert_eq!(names(net.first[0].named_parameters()), "filter norm.weight norm.bias");
    assert_eq!(names(net.first[0].named_buffers()), "norm.mean norm.variance norm.batches");
    assert_eq!(net.count(), 4 * (48 + 8) + 8 + 12);
    assert_eq!((net.parameters().len(), net.parameters_mut().len(), net.state().len()), (15, 15, 30));
    let mut roles = vec![];
    net.last.as_mut().unwrap().visit_mut(Name::ROOT, &mut |_, role, _| roles.push(role));
    assert_eq!(roles, [Role::Parameter, Role::Parameter, Role::Buffer, Role::Buffer, Role::Buffer]);
    Ok(())
}

#[test]
fn they_are_saved_and_moved() -> Result<()> {
    let _alone = crate::alone();
    let folder = std::env::temp_dir().join(format!("tinyspec-buffers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut net = Net::init();
    for step in 0..2 {
        let (x, labels) = data(step);
        net.loss(&x, &labels);
    }
    net.save(folder.join("net"))?;
    let again = Net::load(folder.join("net"))?;
    let x = data(5).0;
    assert_eq!(again.eval(&x).to_vec::<f32>()?, net.eval(&x).to_vec::<f32>()?);
    assert_eq!(again.last.as_ref().unwrap().batches.item::<i64>()?, 2);
    let moved = net.clone().to("interpreter");
    assert_eq!(
        moved.last.as_ref().unwrap().batches.device().map(|device| format!("{device}")).as_deref(),
        Some("interpreter")
    );
    assert!(near(&moved.eval(&x.to("interpreter")).to("cpu"), &net.eval(&x))?);

    let (mut optimizer, mut other) = (Adam::new(0.01), Adam::new(0.01));
    let step = |net: &mut Net, optimizer: &mut Adam| -> Result<f32> {
        let (x, labels) = data(3);
        let loss = net.loss(&x, &labels);
        net.train_step(&loss, optimizer)?;
        loss.item()
    };
    step(&mut net, &mut optimizer)?;
    save_training(folder.join("training"), 1, &net, &optimizer)?;
    let (steps, mut resumed) = resume::<Net>(folder.join("training"), &mut other)?;
    assert_eq!((steps, step(&mut resumed, &mut other)?), (1, step(&mut net, &mut optimizer)?));
    assert_eq!(resumed.more[0].norm.mean.to_vec::<f32>()?, net.more[0].norm.mean.to_vec::<f32>()?);
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}

#[test]
fn no_gradients_are_taken_for_them() -> Result<()> {
    let _alone = crate::alone();
    let net = Net::init();
    let (x, labels) = data(0);
    let loss = net.clone().loss(&x, &labels);
    let mut leaves = net.parameters();
    leaves.push(&x);
    let wanted = grad(&loss, &leaves)?;
    let kept = net.last.as_ref().unwrap().batches.item::<i64>()?;
    for found in [net.loss_grad(&x, &labels), loss_of::grad(&net, &x, &labels)] {
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!(near(found, wanted)?);
        }
    }
    assert_eq!(net.last.as_ref().unwrap().batches.item::<i64>()?, kept);
    let error = grad(&loss, &[&net.last.as_ref().unwrap().mean]).unwrap_err().to_string();
    assert!(error.contains("does not depend on"), "{error}");
    Ok(())
}

#[test]
fn prepared_calls_change_them_in_place() -> Result<()> {
    let _alone = crate::alone();
    let (mut norm, prepared_norm) = (BatchNorm::<4>::init(), BatchNorm::<4>::init());
    let x = data(0).0;
    let mut arguments = prepared_norm.state();
    arguments.push(&x);
    let run = BatchNorm::<4>::TRAIN.prepare(&arguments)?;
    let mut out = vec![Tensor::zeros([6, 4, 5])];
    out.extend(prepared_norm.named_buffers().into_iter().map(|(_, buffer)| buffer.clone()));
    for step in 0..3 {
        let x = data(step).0;
        run.call(&mut out, &[&prepared_norm.weight, &prepared_norm.bias, &x])?;
        let y = norm.train(&x);
        assert!(near(&out[0], &y)? && near(&out[1], &norm.mean)? && near(&out[2], &norm.variance)?);
        assert_eq!(out[3].item::<i64>()?, step as i64 + 1);
    }
    Ok(())
}

/// What nobody reads does not pile up.
#[test]
fn states_that_nobody_reads_are_computed() -> Result<()> {
    let _alone = crate::alone();
    let mut norm = BatchNorm::<4>::init();
    let mut still = 0;
    for step in 0..40 {
        norm.train(&data(step).0);
        still = if norm.mean.is_realized() { 0 } else { still + 1 };
        assert!(still < 10, "{step}");
    }
    assert_eq!(norm.batches.item::<i64>()?, 40);
    Ok(())
}

/// A copy that follows another model.
#[model(functions)]
struct Ema {
    net: Block<4>,
    #[model(buffer)]
    slow: Block<4>,
    #[model(buffer, len = 2, init = ones)]
    rates: Vec<Tensor<f32>>,
}

#[function]
impl Ema {
    fn follow(&mut self) -> Tensor<f32> {
        let slow = &mut self.slow;
        slow.filter = &slow.filter * 0.9 + &self.net.filter * 0.1;
        for rate in &mut self.rates {
            *rate *= 0.5;
        }
        self.rates[1] -= 0.25;
        (&self.slow.filter - &self.net.filter).square().mean(.., false) + &self.rates[0]
    }
}

#[test]
fn models_are_buffers_too() -> Result<()> {
    let _alone = crate::alone();
    let mut ema = Ema::init();
    assert_eq!(ema.parameters().len(), 3);
    assert_eq!(ema.named_buffers()[2].0, "net.norm.batches");
    assert_eq!(ema.named_buffers()[3].0, "slow.filter");
    assert_eq!(ema.slow.filter.to_vec::<f32>()?.len(), 48);
    let (slow, net) = (ema.slow.filter.clone(), ema.net.filter.clone());
    ema.follow();
    assert!(near(&ema.slow.filter, &(slow * 0.9 + net * 0.1))?);
    assert_eq!((ema.rates[0].item::<f32>()?, ema.rates[1].item::<f32>()?), (0.5, 0.25));
    Ok(())
}

/// Keys of a decoder.
#[model(functions)]
struct Cache {
    #[model(buffer)]
    keys: Tensor<f32, 8, 2>,
    #[model(buffer)]
    length: Tensor<i32, 1>,
}

#[function]
impl Cache {
    fn push(&mut self, key: &Tensor<f32, 1, 2>) -> Tensor<f32, 8> {
        self.keys.set(&self.length, key);
        self.length += 1;
        self.keys.sum(1, false)
    }
}

#[test]
fn parts_of_them_are_set() -> Result<()> {
    let _alone = crate::alone();
    let mut cache = Cache::init();
    for step in 0..3 {
        let sums = cache.push(&Tensor::full([1, 2], step as f32 + 1.0));
        assert_eq!(
            sums.to_vec::<f32>()?[..4],
            [2.0, 4.0, 6.0, 0.0].map(|x| if x / 2.0 <= step as f32 + 1.0 { x } else { 0.0 })
        );
    }
    assert_eq!(cache.length.to_vec::<i32>()?, [3]);
    Ok(())
}
