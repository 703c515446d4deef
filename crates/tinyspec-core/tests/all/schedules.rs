//! Learning-rate schedules, clipped gradients, and the optimisers against their published update by hand.

use tinyspec_core::nn::{
    Adadelta, Adagrad, AdagradOptions, Adam, AdamOptions, Adamax, Constant, Cosine, Cyclic, Exponential, Lamb,
    LambOptions, Linear, Lion, MultiStep, Nadam, OneCycle, Optimizer, Polynomial, Radam, RmsProp, RmsPropOptions,
    Schedule, Sgd, SgdOptions, StepDecay, VariantOptions, WarmRestarts, Warmup, clip_norm, clip_value,
};
use tinyspec_core::{Error, Tensor};

fn close(got: f32, want: f64) {
    assert!((f64::from(got) - want).abs() <= 1e-5 * want.abs().max(1e-6), "{got} and {want}");
}

#[test]
fn schedules_are_their_formulas() {
    assert_eq!(Constant { rate: 0.5 }.rate(99), 0.5);
    let decay = StepDecay { rate: 1.0, every: 3, factor: 0.5 };
    assert_eq!([0, 2, 3, 8].map(|step| decay.rate(step)), [1.0, 1.0, 0.5, 0.25]);
    let decay = MultiStep { rate: 1.0, milestones: vec![2, 5], factor: 0.1 };
    assert_eq!([0, 1, 2, 4].map(|step| decay.rate(step)), [1.0, 1.0, 0.1, 0.1]);
    close(decay.rate(5), 0.01);
    close(Exponential { rate: 2.0, factor: 0.9 }.rate(3), 2.0 * 0.9f64.powi(3));
    let line = Linear { from: 1.0, to: 0.0, steps: 4 };
    assert_eq!([0, 1, 4, 9].map(|step| line.rate(step)), [1.0, 0.75, 0.0, 0.0]);
    let cosine = Cosine { rate: 1.0, least: 0.2, steps: 8 };
    close(cosine.rate(0), 1.0);
    close(cosine.rate(2), 0.2 + 0.4 * (1.0 + (std::f64::consts::PI / 4.0).cos()));
    close(cosine.rate(4), 0.6);
    assert_eq!(cosine.rate(8), 0.2);
    let warm = Warmup { steps: 4, then: cosine };
    assert_eq!([0, 1, 3, 4].map(|step| warm.rate(step)), [0.25, 0.5, 1.0, 1.0]);
    close(warm.rate(8), 0.6);
    // As published with the usual shares: 0.3 of 10 steps up, so the top is step 2.
    let cycle = OneCycle::new(1.0, 10);
    close(cycle.rate(0), 0.04);
    close(cycle.rate(1), 0.52);
    close(cycle.rate(2), 1.0);
    close(cycle.rate(9), 0.04 / 1e4);
    assert!((3..9).all(|step| cycle.rate(step + 1) < cycle.rate(step)));
    assert_eq!((|step: usize| step as f32).rate(3), 3.0);
    let curve = Polynomial { from: 1.0, to: 0.5, steps: 4, power: 2.0 };
    assert_eq!([0, 2, 4, 9].map(|step| curve.rate(step)), [1.0, 0.625, 0.5, 0.5]);
    let restarts = WarmRestarts { rate: 1.0, least: 0.0, steps: 2, growth: 2 };
    for (step, want) in [(0, 1.0), (1, 0.5), (2, 1.0), (4, 0.5), (6, 1.0), (10, 0.5)] {
        close(restarts.rate(step), want);
    }
    close(WarmRestarts { growth: 1, ..restarts }.rate(usize::MAX), 0.5);
    let cyclic = Cyclic { least: 1.0, greatest: 3.0, up: 2, down: 4 };
    assert_eq!([0, 1, 2, 4, 6, 7].map(|step| cyclic.rate(step)), [1.0, 2.0, 3.0, 2.0, 1.0, 2.0]);
}

#[test]
fn clipped_gradients_have_the_greatest_norm_and_keep_their_direction() -> Result<(), Error> {
    let both = || [Tensor::from_slice(&[3f32, 0.0], [2]), Tensor::from_slice(&[4f32], [1])];
    let mut gradients = both();
    assert_eq!(clip_norm(&mut gradients, 10.0)?.item::<f32>()?, 5.0);
    assert_eq!(gradients[0].to_vec::<f32>()?, [3.0, 0.0]);
    clip_norm(&mut gradients, 0.5)?;
    close(gradients[0].to_vec::<f32>()?[0], 0.3);
    close(gradients[1].item()?, 0.4);
    let mut gradients = both();
    clip_value(&mut gradients, 3.5)?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [3.0, 0.0]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [3.5]);
    assert!(clip_norm(&mut gradients, -1.0).is_err() && clip_value(&mut gradients, f64::NAN).is_err());
    Ok(())
}

const GRADIENTS: [f32; 8] = [0.5, -1.0, 0.25, 0.75, -0.5, 1.5, -0.125, 1.0];

/// Steps of an optimiser on one weight with given gradients.
fn steps(mut optimizer: impl Optimizer) -> Result<Vec<f32>, Error> {
    let mut weight = Tensor::from_slice(&[2f32], [1]);
    let mut seen = vec![];
    for gradient in GRADIENTS {
        optimizer.step(&mut [&mut weight], &[Tensor::from_slice(&[gradient], [1])])?;
        seen.push(weight.to_vec::<f32>()?[0]);
    }
    Ok(seen)
}

fn follows(optimizer: impl Optimizer, mut update: impl FnMut(f64, f64, i32) -> f64) -> Result<(), Error> {
    let mut weight = 2f64;
    for (number, (gradient, got)) in GRADIENTS.into_iter().zip(steps(optimizer)?).enumerate() {
        weight = update(weight, gradient.into(), number as i32 + 1);
        close(got, weight);
    }
    Ok(())
}

#[test]
fn optimisers_make_the_published_steps() -> Result<(), Error> {
    let mut velocity = 0.0;
    let options = SgdOptions { momentum: 0.9, nesterov: true, weight_decay: 0.1 };
    follows(Sgd::with_options(0.1, options), |w, g, _| {
        let g = g + 0.1 * w;
        velocity = 0.9 * velocity + g;
        w - 0.1 * (g + 0.9 * velocity)
    })?;
    let adam = |decay: f64| {
        let (mut m, mut v) = (0.0, 0.0);
        move |w: f64, g: f64, t: i32| {
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (m, v) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
            w - 0.1 * m / (v.sqrt() + 1e-8) - 0.1 * decay * w
        }
    };
    follows(Adam::new(0.1), adam(0.0))?;
    follows(Adam::with_weight_decay(0.1, 0.05), adam(0.05))?;
    let (mut square, mut mean, mut velocity) = (0.0, 0.0, 0.0);
    let options = RmsPropOptions { momentum: 0.5, centered: true, weight_decay: 0.1, ..Default::default() };
    follows(RmsProp::with_options(0.1, options), |w, g, _| {
        let g = g + 0.1 * w;
        square = 0.99 * square + 0.01 * g * g;
        mean = 0.99 * mean + 0.01 * g;
        velocity = 0.5 * velocity + g / ((square - mean * mean).sqrt() + 1e-8);
        w - 0.1 * velocity
    })?;
    let mut square = 0.0;
    follows(RmsProp::new(0.1), |w, g, _| {
        square = 0.99 * square + 0.01 * g * g;
        w - 0.1 * g / (square.sqrt() + 1e-8)
    })?;
    let mut square = 0.0;
    follows(Adagrad::new(0.1), |w, g, _| {
        square += g * g;
        w - 0.1 * g / square.sqrt()
    })?;
    let (mut m, mut v) = (0.0, 0.0);
    let options = LambOptions { weight_decay: 0.1, ..Default::default() };
    follows(Lamb::with_options(0.1, options), |w, g, t| {
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        let change = m / (1.0 - 0.9f64.powi(t)) / ((v / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-6) + 0.1 * w;
        w - 0.1 * (w.abs() / change.abs()) * change
    })?;
    Ok(())
}

#[test]
fn relatives_of_adam_make_the_published_steps() -> Result<(), Error> {
    let (mut m, mut v, mut greatest) = (0f64, 0f64, 0f64);
    let options = AdamOptions { weight_decay: 0.1, decoupled: false, amsgrad: true, ..Default::default() };
    follows(Adam::with_options(0.1, options), |w, g, t| {
        let g = g + 0.1 * w;
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        greatest = greatest.max(v);
        let spread = (greatest / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8;
        w - 0.1 * m / (1.0 - 0.9f64.powi(t)) / spread
    })?;
    let mut square = 0.0;
    let options = AdagradOptions { weight_decay: 0.1, ..Default::default() };
    follows(Adagrad::with_options(0.1, options), |w, g, _| {
        let g = g + 0.1 * w;
        square += g * g;
        w - 0.1 * g / square.sqrt()
    })?;
    let (mut square, mut steps) = (0f64, 0f64);
    follows(Adadelta::new(1.0), |w, g, _| {
        square = 0.9 * square + 0.1 * g * g;
        let change = (steps + 1e-6).sqrt() / (square + 1e-6).sqrt() * g;
        steps = 0.9 * steps + 0.1 * change * change;
        w - change
    })?;
    let (mut m, mut greatest) = (0f64, 0f64);
    let options = VariantOptions { weight_decay: 0.1, ..Default::default() };
    follows(Adamax::with_options(0.1, options), |w, g, t| {
        let g = g + 0.1 * w;
        m = 0.9 * m + 0.1 * g;
        greatest = (0.999 * greatest).max(g.abs() + 1e-8);
        w - 0.1 * m / (1.0 - 0.9f64.powi(t)) / greatest
    })?;
    let (mut m, mut v, mut product) = (0f64, 0f64, 1f64);
    follows(Nadam::new(0.1), |w, g, t| {
        let momentum = |t: i32| 0.9 * (1.0 - 0.5 * 0.96f64.powf(0.004 * f64::from(t)));
        let (now, next) = (momentum(t), momentum(t + 1));
        product *= now;
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        let ahead = g * (1.0 - now) / (1.0 - product) + m * next / (1.0 - product * next);
        w - 0.1 * ahead / ((v / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8)
    })?;
    // The variance counts from the sixth step on.
    for beta in [0.999f64, 0.9] {
        let (mut m, mut v) = (0f64, 0f64);
        let options = VariantOptions { betas: [0.9, beta as f32], ..Default::default() };
        follows(Radam::with_options(0.1, options), |w, g, t| {
            m = 0.9 * m + 0.1 * g;
            v = beta * v + (1.0 - beta) * g * g;
            let (mean, power) = (m / (1.0 - 0.9f64.powi(t)), beta.powi(t));
            let most = 2.0 / (1.0 - beta) - 1.0;
            let length = most - 2.0 * f64::from(t) * power / (1.0 - power);
            if length <= 5.0 {
                return w - 0.1 * mean;
            }
            let rectified = (length - 4.0) * (length - 2.0) * most / ((most - 4.0) * (most - 2.0) * length);
            w - 0.1 * mean * (rectified * (1.0 - power)).sqrt() / (v.sqrt() + 1e-8)
        })?;
    }
    let mut m = 0f64;
    let options = VariantOptions { betas: [0.9, 0.99], weight_decay: 0.1, ..Default::default() };
    follows(Lion::with_options(0.1, options), |w, g, _| {
        let change = (0.9 * m + 0.1 * g).signum();
        m = 0.99 * m + 0.01 * g;
        w - 0.1 * (change + 0.1 * w)
    })
}

#[test]
fn a_schedule_sets_the_rate_of_a_step() -> Result<(), Error> {
    let mut optimizer = Sgd::new(1.0);
    Linear { from: 1.0, to: 0.0, steps: 4 }.apply(&mut optimizer, 3);
    let mut weight = Tensor::from_slice(&[2f32], [1]);
    optimizer.step(&mut [&mut weight], &[Tensor::ones([1])])?;
    assert_eq!(weight.to_vec::<f32>()?, [1.75]);
    Ok(())
}
