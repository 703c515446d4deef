//! Activations and hyperbolic functions against f64, value and gradient: far out, at the infinities, and near 0.

use crate::support::on_each_device;
use tinyspec_core::{Error, Tensor, grad};

type Case = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64, fn(f64) -> f64);

fn sigmoid(x: f64) -> f64 {
    let power = (-x.abs()).exp();
    if x < 0.0 { power / (1.0 + power) } else { 1.0 / (1.0 + power) }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// `1 - tanh²`, without cancelling.
fn sech2(x: f64) -> f64 {
    let power = (-2.0 * x.abs()).exp();
    4.0 * power / (1.0 + power) / (1.0 + power)
}

/// The slope of `x sigmoid(y)`, by y and its slope.
fn gated(x: f64, y: f64, slope: f64) -> f64 {
    sigmoid(y) + x * slope * sigmoid(y) * sigmoid(-y)
}

const GELU: f64 = 1.595_769_121_605_730_8;

const CASES: [Case; 19] = [
    ("relu", Tensor::relu, |x| x.max(0.0), |x| if x > 0.0 { 1.0 } else { 0.0 }),
    ("relu6", Tensor::relu6, |x| x.clamp(0.0, 6.0), |x| if x > 0.0 && x < 6.0 { 1.0 } else { 0.0 }),
    ("sigmoid", Tensor::sigmoid, sigmoid, |x| sigmoid(x) * sigmoid(-x)),
    ("silu", Tensor::silu, |x| x * sigmoid(x), |x| gated(x, x, 1.0)),
    ("quick_gelu", Tensor::quick_gelu, |x| x * sigmoid(1.702 * x), |x| gated(x, 1.702 * x, 1.702)),
    (
        "gelu",
        Tensor::gelu,
        |x| x * sigmoid(GELU * (x + 0.044715 * x * x * x)),
        |x| gated(x, GELU * (x + 0.044715 * x * x * x), GELU * (1.0 + 0.134145 * x * x)),
    ),
    ("softplus", Tensor::softplus, softplus, sigmoid),
    ("logsigmoid", Tensor::logsigmoid, |x| -softplus(-x), |x| sigmoid(-x)),
    ("softsign", Tensor::softsign, |x| x / (1.0 + x.abs()), |x| (1.0 + x.abs()).powi(-2)),
    ("mish", Tensor::mish, |x| x * softplus(x).tanh(), |x| softplus(x).tanh() + x * sech2(softplus(x)) * sigmoid(x)),
    (
        "hardsigmoid",
        Tensor::hardsigmoid,
        |x| (x + 3.0).clamp(0.0, 6.0) / 6.0,
        |x| {
            if x.abs() < 3.0 { 1.0 / 6.0 } else { 0.0 }
        },
    ),
    (
        "hardswish",
        Tensor::hardswish,
        |x| x * ((x + 3.0).clamp(0.0, 6.0) / 6.0),
        |x| {
            if x.abs() < 3.0 { (2.0 * x + 3.0) / 6.0 } else { (x > 0.0).into() }
        },
    ),
    (
        "leaky_relu",
        |x| x.leaky_relu(0.25),
        |x| if x < 0.0 { 0.25 * x } else { x },
        |x| {
            if x < 0.0 { 0.25 } else { 1.0 }
        },
    ),
    (
        "elu",
        |x| x.elu(1.5),
        |x| if x < 0.0 { 1.5 * x.exp_m1() } else { x },
        |x| {
            if x < 0.0 { 1.5 * x.exp() } else { 1.0 }
        },
    ),
    ("celu", |x| x.celu(2.0), |x| if x < 0.0 { 2.0 * (x / 2.0).exp_m1() } else { x }, |x| (x / 2.0).min(0.0).exp()),
    (
        "selu",
        Tensor::selu,
        |x| 1.050_700_987_355_480_5 * if x < 0.0 { 1.673_263_242_354_377_2 * x.exp_m1() } else { x },
        |x| 1.050_700_987_355_480_5 * if x < 0.0 { 1.673_263_242_354_377_2 * x.exp() } else { 1.0 },
    ),
    ("tanh", Tensor::tanh, f64::tanh, sech2),
    ("sinh", Tensor::sinh, f64::sinh, f64::cosh),
    ("cosh", Tensor::cosh, f64::cosh, f64::sinh),
];

/// Both signs of ordinary, tiny and huge numbers; no kinks.
fn points() -> Vec<f64> {
    let mut points: Vec<f64> = (1..400).map(|n| f64::from(n) * 0.0537).collect();
    points.extend([1e-45, 1e-40, 1e-30, 1e-8, 1e-4, 10.1, 10.5, 15.0, 45.0, 87.0, 88.9, 90.0, 100.0, 104.0, 709.0]);
    points.extend([720.0, 745.0, 1e4]);
    points.iter().flat_map(|&x| [x, -x]).collect()
}

/// What is exact to some last places, as those of an argument of an exponential allow; `least` is where a format ends.
fn close(x: f64, got: f64, want: f64, epsilon: f64, least: f64) -> bool {
    if want.abs() > 1.0 / least || !want.is_finite() {
        return got == want || got.abs() > 0.99 / least && got.signum() == want.signum();
    }
    let exponent = (x.abs() * (1.7 + 0.07 * x * x)).min(800.0);
    let tolerance = epsilon * ((24.0 + 4.0 * exponent) * want.abs() + 24.0 * (-x.abs()).exp());
    (got - want).abs() <= tolerance + least * exponent.max(1.0)
}

fn check<T: tinyspec_core::Element + Into<f64>>(round: fn(f64) -> T, epsilon: f64, least: f64) -> Result<(), Error> {
    let points: Vec<T> = points().into_iter().map(round).collect();
    for (name, method, value, slope) in CASES {
        let x = Tensor::from_slice(&points, [points.len()]);
        let y = method(&x);
        let gradient = grad(&y.sum(.., false), &[&x])?.remove(0).to_vec::<T>()?;
        for ((&x, y), gradient) in points.iter().zip(y.to_vec::<T>()?).zip(gradient) {
            let (x, y, gradient): (f64, f64, f64) = (x.into(), y.into(), gradient.into());
            assert!(close(x, y, value(x), epsilon, least), "{name}({x:e}) = {y:e}, not {:e}", value(x));
            assert!(close(x, gradient, slope(x), epsilon, least), "{name}'({x:e}) = {gradient:e}, not {:e}", slope(x));
        }
    }
    Ok(())
}

#[test]
fn values_and_slopes_are_those_of_f64() {
    on_each_device(|| check::<f32>(|x| x as f32, f32::EPSILON.into(), f32::MIN_POSITIVE.into()));
    on_each_device(|| check::<f64>(|x| x, f64::EPSILON, f64::MIN_POSITIVE));
}

#[test]
fn infinities_have_limits_and_nan_stays() {
    // Value and slope at -inf and at inf.
    let infinity = f32::INFINITY;
    let expected = [
        ("relu", [0.0, infinity], [0.0, 1.0]),
        ("relu6", [0.0, 6.0], [0.0, 0.0]),
        ("sigmoid", [0.0, 1.0], [0.0, 0.0]),
        ("silu", [0.0, infinity], [0.0, 1.0]),
        ("quick_gelu", [0.0, infinity], [0.0, 1.0]),
        ("gelu", [0.0, infinity], [0.0, 1.0]),
        ("softplus", [0.0, infinity], [0.0, 1.0]),
        ("logsigmoid", [-infinity, 0.0], [1.0, 0.0]),
        ("softsign", [-1.0, 1.0], [0.0, 0.0]),
        ("mish", [0.0, infinity], [0.0, 1.0]),
        ("hardsigmoid", [0.0, 1.0], [0.0, 0.0]),
        ("hardswish", [0.0, infinity], [0.0, 1.0]),
        ("leaky_relu", [-infinity, infinity], [0.25, 1.0]),
        ("elu", [-1.5, infinity], [0.0, 1.0]),
        ("celu", [-2.0, infinity], [0.0, 1.0]),
        ("selu", [-1.7580993, infinity], [0.0, 1.050701]),
        ("tanh", [-1.0, 1.0], [0.0, 0.0]),
        ("sinh", [-infinity, infinity], [infinity, infinity]),
        ("cosh", [infinity, infinity], [-infinity, infinity]),
    ];
    on_each_device(|| {
        for ((name, method, ..), (expected_name, values, slopes)) in CASES.into_iter().zip(expected) {
            assert_eq!(name, expected_name);
            let x = Tensor::from_slice(&[-infinity, infinity], [2]);
            let y = method(&x);
            assert_eq!(grad(&y.sum(.., false), &[&x])?[0].to_vec::<f32>()?, slopes, "slopes of {name}");
            assert_eq!(y.to_vec::<f32>()?, values, "values of {name}");
            assert!(method(&Tensor::from_slice(&[f32::NAN], [1])).to_vec::<f32>()?[0].is_nan(), "{name} of nan");
        }
        Ok(())
    });
}

#[test]
fn slopes_at_zero() {
    on_each_device(|| {
        for (method, slope) in [
            (Tensor::sigmoid as fn(&Tensor) -> Tensor, 0.25f32),
            (Tensor::silu, 0.5),
            (Tensor::gelu, 0.5),
            (Tensor::quick_gelu, 0.5),
            (Tensor::mish, 0.6),
            (Tensor::softplus, 0.5),
            (Tensor::tanh, 1.0),
            (Tensor::softsign, 1.0),
            (Tensor::sinh, 1.0),
            (Tensor::abs, 0.0),
            (Tensor::relu, 0.0),
        ] {
            let x = Tensor::from_slice(&[0f32, -0.0], [2]);
            for got in grad(&method(&x).sum(.., false), &[&x])?[0].to_vec::<f32>()? {
                assert!((got - slope).abs() <= 1e-6, "{got} {slope}");
            }
        }
        Ok(())
    });
}
