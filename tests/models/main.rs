//! `#[model]`: structs of tensors whose methods are graphs.

use ::layers as layers_crate;
use buffers::BatchNorm;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tinyspec::nn::Name;
use tinyspec::prelude::*;

mod layers {
    use tinyspec::prelude::*;

    #[model(functions)]
    #[derive(Clone, Debug)]
    pub struct Linear<I, O> {
        pub weight: Tensor<f32, I, O>,
        #[model(init = ones)]
        pub bias: Tensor<f32, O>,
    }

    #[function]
    impl<I, O> Linear<I, O> {
        /// `x @ weight + bias`
        pub fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
            x.matmul(&self.weight) + &self.bias
        }

        pub fn twice<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
            self.forward(x) * 2.0
        }
    }
}

/// Plans are counted for the whole process, so one test makes plans at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

mod buffers;
mod carried;
mod changing;
mod constants;
mod maxima;
mod ordinary;
mod training;

mod network {
    use super::layers::Linear;
    use tinyspec::prelude::*;

    #[model(functions)]
    pub struct Mlp {
        first: Linear<8, 4>,
        hidden: [Linear<4, 4>; 2],
        #[model(len = 3)]
        scales: Vec<Tensor<f32, 4>>,
        last: Option<Linear<4, 2>>,
        #[model(none)]
        nothing: Option<Tensor<f32, 7>>,
        #[model(skip)]
        pub steps: usize,
    }

    #[function]
    impl Mlp {
        pub fn forward<B>(&self, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 2> {
            let mut h = self.first.twice(x).relu();
            for layer in &self.hidden {
                h = layer.forward(&h).relu();
            }
            for i in 0..3 {
                h *= &self.scales[i];
            }
            if self.nothing.is_some() {
                h *= 100.0;
            }
            if let Some(last) = &self.last { last.forward(&h) } else { h.narrow(1, 0, 2) }
        }
    }
}

use network::Mlp;

#[model]
struct Two<H> {
    a: Mlp,
    scale: Tensor<f32, H>,
}

#[function(grad)]
fn loss<B>(two: &Two<2>, x: &Tensor<f32, B, 8>, labels: &Tensor<i32, B>) -> Tensor<f32> {
    (two.a.forward(x) * &two.scale).cross_entropy(labels, "mean", 0.0, -100)
}

#[model(functions)]
struct Head {
    scale: Tensor<f32, 2>,
    shift: Tensor<f32>,
}

#[function]
impl Head {
    #[function(grad)]
    fn loss<B>(&self, x: &Tensor<f32, B, 2>) -> Tensor<f32> {
        (x * &self.scale + &self.shift).square().sum(.., false)
    }

    /// Through a function with a gradient of its own, and with another result.
    #[function(gradient = own, fast_math(contract))]
    fn scaled<B>(&self, x: &Tensor<f32, B, 2>, factor: f32) -> Tensor<f32, B, 2> {
        x * &self.scale * factor + &self.shift
    }

    #[tinyspec::function(grad, bounds(B: 1..=64))]
    pub fn both<B>(&self, x: &Tensor<f32, B, 2>) -> (Tensor<f32, B, 2>, Tensor<f32>) {
        (self.scaled(x, 2.0), self.loss(x))
    }
}

/// Not the true one, so that it is seen.
#[function]
fn own<B>(
    head: &Head,
    x: &Tensor<f32, B, 2>,
    factor: f32,
    dy: &Tensor<f32, B, 2>,
) -> (Tensor<f32, 2>, Tensor<f32>, Tensor<f32, B, 2>, Tensor<f32>) {
    (dy.sum(0, false) * 100.0, dy.sum(.., false), dy * &head.scale * factor, x.sum(.., false))
}

#[function]
fn through<B>(two: &Two<2>, x: &Tensor<f32, B, 8>, labels: &Tensor<i32, B>) -> Tensor<f32> {
    loss(two, x, labels) * 2.0
}

fn data() -> (Tensor, Tensor) {
    let x: Vec<f32> = (0..24).map(|i| (i * 5 % 7) as f32 * 0.2 - 0.5).collect();
    (Tensor::from_slice(&x, [3, 8]), Tensor::from_slice(&[0i32, 1, 1], [3]))
}

#[test]
fn parameters_have_names() -> Result<()> {
    let _alone = crate::alone();
    let two = Two::<2>::init();
    let names: Vec<String> = two.named_parameters().into_iter().map(|(name, _)| name).collect();
    let expected = "a.first.weight a.first.bias a.hidden.0.weight a.hidden.0.bias a.hidden.1.weight a.hidden.1.bias \
                    a.scales.0 a.scales.1 a.scales.2 a.last.weight a.last.bias scale";
    assert_eq!(names.join(" "), expected);
    assert_eq!(two.count(), 32 + 4 + 2 * 20 + 12 + 10 + 2);
    assert_eq!(two.a.steps, 0);
    Ok(())
}

#[test]
fn graphs_are_those_of_the_run_time() -> Result<()> {
    let _alone = crate::alone();
    for function in [Mlp::FORWARD, loss::FUNCTION, through::FUNCTION, layers::Linear::<1, 1>::TWICE] {
        assert_eq!(function.get()?.body().hash(), function.retrace()?.body().hash(), "{}", function.name());
    }
    Ok(())
}

#[test]
fn gradients_reach_every_parameter() -> Result<()> {
    let _alone = crate::alone();
    let mut two = Two::<2>::init();
    two.visit_mut(Name::ROOT, &mut |name, _, tensor| {
        if name.to_string().contains("scale") {
            let sizes = tensor.sizes().unwrap();
            let values = vec![0.5f32; sizes.iter().product()];
            *tensor = Tensor::from_vec(values, sizes);
        }
    });
    let (x, labels) = data();
    let value = loss(&two, &x, &labels);
    let expected = grad(&value, &two.parameters())?;
    let gradients = loss::grad(&two, &x, &labels);
    assert_eq!(gradients.len(), expected.len() + 1);
    for (a, b) in gradients.iter().zip(&expected) {
        let (a, b) = (a.to_vec::<f32>()?, b.to_vec::<f32>()?);
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
    }
    let mut optimizer = Sgd::new(0.1);
    optimizer.step(&mut two.parameters_mut(), &expected)?;
    assert!(loss(&two, &x, &labels).item::<f32>()? < value.item::<f32>()?);
    assert_eq!(through(&two, &x, &labels).item::<f32>()?, 2.0 * loss(&two, &x, &labels).item::<f32>()?);
    Ok(())
}

fn is_near(found: &[Tensor], expected: &[Tensor]) -> Result<()> {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        let (a, b) = (a.to_vec::<f32>()?, b.to_vec::<f32>()?);
        assert!(a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4), "{a:?} {b:?}");
    }
    Ok(())
}

#[test]
fn methods_have_gradients() -> Result<()> {
    let _alone = crate::alone();
    let head = Head { scale: Tensor::from_slice(&[0.5f32, -2.0], [2]), shift: Tensor::scalar(0.25f32) };
    let x = Tensor::from_slice(&[1f32, 2.0, -3.0, 0.5, 0.0, 4.0], [3, 2]);
    let leaves = [&head.scale, &head.shift, &x];
    // A gradient for each parameter of the model, then for the inputs.
    is_near(&head.loss_grad(&x), &grad(&head.loss(&x), &leaves)?)?;
    let (dy, dloss) = (Tensor::from_slice(&[1f32, -1.0, 2.0, 0.5, 3.0, 1.0], [3, 2]), Tensor::scalar(3f32));
    let factor = Tensor::scalar(2f32);
    is_near(
        &head.scaled_backward(&x, 2.0, &dy),
        &[dy.sum(0, false) * 100.0, dy.sum(.., false), &dy * &head.scale * 2.0, x.sum(.., false)],
    )?;
    let value = (head.scaled(&x, &factor) * &dy).sum(.., false) + head.loss(&x) * &dloss;
    let expected = grad(&value, &leaves)?;
    is_near(&head.both_backward(&x, &dy, &dloss), &expected)?;
    assert!(head.both(&Tensor::ones([65, 2])).0.to_vec::<f32>().is_err());
    Ok(())
}

#[test]
fn methods_have_permissions() -> Result<()> {
    let _alone = crate::alone();
    let strict = Head::SCALED.retrace()?;
    assert_eq!(Head::SCALED.get()?.signature(), strict.signature());
    let text = format!("{:?}", Head::SCALED.get()?.body().graph());
    assert!(text.contains("Mulacc"), "{text}");
    assert!(!format!("{:?}", Head::LOSS.get()?.body().graph()).contains("Mulacc"));
    Ok(())
}

#[test]
fn files_are_strict() -> Result<()> {
    let _alone = crate::alone();
    let folder = std::env::temp_dir().join(format!("tinyspec-models-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("two.safetensors");
    let two = Two::<2>::init();
    two.save(&path)?;
    let again = Two::<2>::load(&path)?;
    assert_eq!(again.scale.to_vec::<f32>()?, two.scale.to_vec::<f32>()?);
    assert_eq!(again.a.forward(&data().0).to_vec::<f32>()?, two.a.forward(&data().0).to_vec::<f32>()?);
    let error = Mlp::load(&path).err().unwrap().to_string();
    assert!(error.contains("missing: first.weight, first.bias"), "{error}");
    assert!(error.contains("unexpected: a.first.bias"), "{error}");
    let error = Two::<3>::load(&path).err().unwrap().to_string();
    assert!(error.contains("`scale` is f32 [2], the model wants f32 [3]"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}

#[test]
fn running_statistics_follow_the_batches() -> Result<()> {
    let _alone = crate::alone();
    let mut norm = BatchNorm::<2>::init();
    let (mut mean, mut variance) = ([0f64; 2], [1f64; 2]);
    for step in 0..3 {
        let data: Vec<f32> = (0..24).map(|i| ((i * 7 + step * 5) % 11) as f32 * 0.5 - 1.0).collect();
        let x = Tensor::from_slice(&data, [3, 2, 4]);
        for channel in 0..2 {
            let values: Vec<f64> = (0..24).filter(|i| i / 4 % 2 == channel).map(|i| f64::from(data[i])).collect();
            let average = values.iter().sum::<f64>() / 12.0;
            let spread = values.iter().map(|value| (value - average).powi(2)).sum::<f64>() / 11.0;
            mean[channel] = 0.9 * mean[channel] + 0.1 * average;
            variance[channel] = 0.9 * variance[channel] + 0.1 * spread;
        }
        let y = norm.train(&x);
        let loss = (&y * &y * &x).sum(.., false);
        norm.train_step(&loss, &mut Sgd::new(0.01))?;
    }
    let near = |found: &Tensor, want: [f64; 2]| -> Result<bool> {
        Ok(found.to_vec::<f32>()?.iter().zip(want).all(|(found, want)| (f64::from(*found) - want).abs() < 1e-5))
    };
    assert!(near(&norm.mean, mean)? && near(&norm.variance, variance)?, "{:?} {:?}", norm.mean, norm.variance);
    let x = Tensor::from_slice(&[0.5f32, -1.0], [1, 2, 1]);
    let (weight, bias) = (norm.weight.to_vec::<f32>()?, norm.bias.to_vec::<f32>()?);
    let want = [0, 1].map(|c| {
        let normal = ([0.5, -1.0][c] - mean[c]) / (variance[c] + 1e-5).sqrt();
        normal * f64::from(weight[c]) + f64::from(bias[c])
    });
    assert!(near(&norm.eval(&x), want)?, "{:?} {want:?}", norm.eval(&x));
    let error = x.batch_norm_running(&norm.mean, &norm.variance, 0.1)[0].to_vec::<f32>().unwrap_err().to_string();
    assert!(error.contains("one value a channel"), "{error}");
    Ok(())
}

/// Of another crate, and of one that has the same name as one here.
#[model(functions)]
struct Foreign {
    pair: layers_crate::models::Pair<8>,
    affine: layers_crate::models::Affine<2, 3>,
}

#[function]
impl Foreign {
    fn forward<B>(&self, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 3> {
        self.affine.forward(&self.pair.forward(x)) + self.affine.weight.sum(.., false)
    }
}

#[test]
fn models_cross_crates() -> Result<()> {
    let _alone = crate::alone();
    let foreign = Foreign::init();
    assert_eq!(Foreign::FORWARD.get()?.body().hash(), Foreign::FORWARD.retrace()?.body().hash());
    let x = data().0;
    let by_hand = foreign.affine.forward(&foreign.pair.forward(&x)) + foreign.affine.weight.sum(.., false);
    assert_eq!(foreign.forward(&x).to_vec::<f32>()?, by_hand.to_vec::<f32>()?);
    Ok(())
}

#[model(functions)]
struct Optional {
    weight: Tensor<f32, 4>,
    bias: Option<Tensor<f32, 4>>,
    #[model(none)]
    scale: Option<Tensor<f32, 4>>,
    #[model(len = 2)]
    r#final: Vec<Tensor<f32, 4>>,
}

#[function]
impl Optional {
    fn forward<B>(&self, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
        let mut x = x * &self.weight;
        if let Some(bias) = &self.bias {
            x += bias;
        }
        x * &self.r#final[1]
    }
}

#[function]
fn total<B>(net: &Optional, x: &Tensor<f32, B, 4>) -> Tensor<f32> {
    net.forward(x).sum(.., false)
}

/// The graph is traced for the tensors that the type declares: a model with as many other tensors must not pass unnoticed.
#[test]
fn a_model_has_the_tensors_that_its_type_says() -> Result<()> {
    let _alone = alone();
    let x = Tensor::ones([3, 4]);
    let error = |net: &Optional| {
        let errors = [net.forward(&x).realize().err(), total(net, &x).realize().err()];
        errors.map(|error| error.expect("another model").to_string())
    };
    total(&Optional::init(), &x).realize()?;
    let one = || Some(Tensor::ones([4]));
    let cases: [(Optional, &str); 4] = [
        (
            Optional { bias: None, ..Optional::init() },
            "bias` is missing: the function was made for a model that has it",
        ),
        (Optional { scale: one(), ..Optional::init() }, "scale` is unknown: the function was made for a model without"),
        // As many tensors.
        (Optional { bias: None, scale: one(), ..Optional::init() }, "scale` is unknown"),
        (Optional { r#final: vec![Tensor::ones([4])], ..Optional::init() }, "r#final[1]` is missing"),
    ];
    for (net, expected) in cases {
        for (name, error) in ["self", "net"].into_iter().zip(error(&net)) {
            assert!(error.contains(&format!("`{name}.{expected}")) && error.contains("main.rs"), "{error}");
            assert!(error.contains("`#[model(none)]`"), "{error}");
        }
    }
    Ok(())
}
