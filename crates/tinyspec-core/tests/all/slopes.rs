//! Derivatives of composed functions, up to the third, against their closed forms; and that they stay short.

use crate::support::on_each_device;
use tinyspec_core::{Element, Error, Function, Spec, Tensor, grad};
use tinyspec_ir::DType;

/// Name, method, whether the argument is any number, between -1 and 1, or more than 1, and the first three derivatives.
type Case = (&'static str, fn(&Tensor) -> Tensor, Domain, fn(f64) -> [f64; 3]);

#[derive(Clone, Copy, PartialEq)]
enum Domain {
    All,
    /// Between -1 and 1.
    Inner,
    /// More than 1.
    Above,
}
use Domain::{Above, All, Inner};

fn sigmoid(x: f64) -> f64 {
    let power = (-x.abs()).exp();
    if x < 0.0 { power / (1.0 + power) } else { 1.0 / (1.0 + power) }
}

fn of_sigmoid(x: f64) -> [f64; 3] {
    let (share, rest) = (sigmoid(x), sigmoid(-x));
    let slope = share * rest;
    [slope, slope * (rest - share), slope * (1.0 - 6.0 * slope)]
}

fn of_tanh(x: f64) -> [f64; 3] {
    let power = (-2.0 * x.abs()).exp();
    let (tangent, slope) = (x.tanh(), 4.0 * power / (1.0 + power).powi(2));
    [slope, -2.0 * tangent * slope, (6.0 * tangent * tangent - 2.0) * slope]
}

fn of_asin(x: f64) -> [f64; 3] {
    let rest = (1.0 - x) * (1.0 + x);
    [rest.powf(-0.5), x * rest.powf(-1.5), (1.0 + 2.0 * x * x) * rest.powf(-2.5)]
}

fn of_asinh(x: f64) -> [f64; 3] {
    let sum = 1.0 + x * x;
    [sum.powf(-0.5), -x * sum.powf(-1.5), (2.0 * x * x - 1.0) * sum.powf(-2.5)]
}

fn of_erf(x: f64) -> [f64; 3] {
    let bell = std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp();
    [bell, -2.0 * x * bell, (4.0 * x * x - 2.0) * bell]
}

#[rustfmt::skip]
const CASES: [Case; 18] = [
    ("tanh", Tensor::tanh, All, of_tanh),
    ("sigmoid", Tensor::sigmoid, All, of_sigmoid),
    ("softplus", Tensor::softplus, All, |x| { let [first, second, _] = of_sigmoid(x); [sigmoid(x), first, second] }),
    ("silu", Tensor::silu, All, |x| {
        let [first, second, third] = of_sigmoid(x);
        [sigmoid(x) + x * first, 2.0 * first + x * second, 3.0 * second + x * third]
    }),
    ("softsign", Tensor::softsign, All, |x| {
        let share = 1.0 / (1.0 + x.abs());
        [share.powi(2), -2.0 * share.powi(3) * x.signum(), 6.0 * share.powi(4)]
    }),
    ("elu", |x| x.elu(1.0), All, |x| if x < 0.0 { [x.exp(); 3] } else { [1.0, 0.0, 0.0] }),
    ("expm1", Tensor::expm1, All, |x| [x.exp(); 3]),
    ("sinh", Tensor::sinh, All, |x| [x.cosh(), x.sinh(), x.cosh()]),
    ("cosh", Tensor::cosh, All, |x| [x.sinh(), x.cosh(), x.sinh()]),
    ("tan", Tensor::tan, Inner, |x| {
        let (tangent, slope) = (x.tan(), 1.0 + x.tan().powi(2));
        [slope, 2.0 * tangent * slope, 2.0 * slope * (1.0 + 3.0 * tangent * tangent)]
    }),
    ("asin", Tensor::asin, Inner, of_asin),
    ("acos", Tensor::acos, Inner, |x| of_asin(x).map(|slope| -slope)),
    ("atan", Tensor::atan, All, |x| {
        let sum = 1.0 + x * x;
        [1.0 / sum, -2.0 * x / sum.powi(2), (6.0 * x * x - 2.0) / sum.powi(3)]
    }),
    ("asinh", Tensor::asinh, All, of_asinh),
    ("acosh", Tensor::acosh, Above, |x| {
        let rest = (x - 1.0) * (x + 1.0);
        [rest.powf(-0.5), -x * rest.powf(-1.5), (1.0 + 2.0 * x * x) * rest.powf(-2.5)]
    }),
    ("atanh", Tensor::atanh, Inner, |x| {
        let rest = (1.0 - x) * (1.0 + x);
        [1.0 / rest, 2.0 * x / rest.powi(2), (2.0 + 6.0 * x * x) / rest.powi(3)]
    }),
    ("log1p", Tensor::log1p, Inner, |x| { let share = 1.0 / (1.0 + x); [share, -share.powi(2), 2.0 * share.powi(3)] }),
    ("erf", Tensor::erf, All, of_erf),
];

/// Both signs of numbers near to 0 and far from it, and near to the ends of the domain.
fn points(domain: Domain) -> Vec<f64> {
    let near = (1..90).map(|n| f64::from(n) * 0.0411).chain([1e-30, 1e-8, 1e-4, 5.0, 8.0]);
    let near: Vec<f64> = near.flat_map(|x| [x, -x]).collect();
    match domain {
        All => near,
        Inner => near.into_iter().map(|x| (x / 2.0).tanh()).collect(),
        Above => near.into_iter().map(|x| 1.0 + x.exp()).filter(|&x| x > 1.0 + 1e-3).collect(),
    }
}

fn derivatives(method: fn(&Tensor) -> Tensor, x: &Tensor) -> Result<[Tensor; 3], Error> {
    let mut y = method(x);
    let mut next = || -> Result<Tensor, Error> {
        y = grad(&y.sum(.., false), &[x])?.remove(0);
        Ok(y.clone())
    };
    Ok([next()?, next()?, next()?])
}

fn check<T: Element + Into<f64>>(round: fn(f64) -> T, epsilon: f64) -> Result<(), Error> {
    for (name, method, domain, expected) in CASES {
        let points: Vec<T> = points(domain).into_iter().map(round).collect();
        let found = derivatives(method, &Tensor::from_slice(&points, [points.len()]))?;
        for (order, found) in found.iter().enumerate() {
            for (&x, found) in points.iter().zip(found.to_vec::<T>()?) {
                let (x, found): (f64, f64) = (x.into(), found.into());
                // Derivatives have zeros where those of another order have none.
                let expected = expected(x);
                let scale = |scale: f64, (of, slope): (usize, &f64)| {
                    scale.max(if of > order { slope.abs().min(1.0) } else { slope.abs() })
                };
                let scale = expected.iter().enumerate().fold(0.0, scale);
                let off = (found - expected[order]).abs() / (epsilon * scale);
                let order = order + 1;
                assert!(off <= 16.0, "derivative {order} of {name} at {x:e}: {found:e}, {off} places off {expected:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn three_derivatives_are_their_closed_forms() {
    on_each_device(|| check::<f64>(|x| x, f64::EPSILON));
    on_each_device(|| check::<f32>(|x| x as f32, f32::EPSILON.into()));
}

#[test]
fn far_out_derivatives_are_limits_and_outside_they_are_nan() {
    let far = [30f32, -30.0, 200.0, -200.0, 1e10, -1e10, 3e38, f32::INFINITY, f32::NEG_INFINITY];
    on_each_device(|| {
        for (name, method, domain, _) in CASES {
            let not_a_number = |points: &[f32]| -> Result<(), Error> {
                for slope in derivatives(method, &Tensor::from_slice(points, [points.len()]))? {
                    let slope = slope.to_vec::<f32>()?;
                    assert!(slope.iter().all(|slope| slope.is_nan()), "{name} of {points:?}: {slope:?}");
                }
                Ok(())
            };
            // The side of elu is chosen by a comparison, which does not hold for nan.
            if name != "elu" {
                not_a_number(&[f32::NAN])?;
            }
            if matches!(name, "asin" | "acos" | "atanh") {
                not_a_number(&[1.5, -1e30, f32::INFINITY])?;
            }
            let is_bounded = domain == All && !matches!(name, "expm1" | "sinh" | "cosh");
            let x = Tensor::from_slice(&far, [far.len()]);
            for (order, slope) in derivatives(method, &x)?.iter().enumerate().filter(|_| is_bounded) {
                let mut slope = slope.to_vec::<f32>()?;
                // Slopes by the square have infinity times zero in their own slopes where it overflows.
                if order > 0 && matches!(name, "atan" | "asinh" | "erf") {
                    slope.truncate(6);
                }
                let is_limit = |slope: f32| slope.abs() < 0.04 || order == 0 && slope == 1.0;
                assert!(slope.iter().all(|&slope| is_limit(slope)), "derivative {order} of {name}: {slope:?}");
            }
        }
        Ok(())
    });
}

/// How many operations the third derivative of each takes, where it followed from compositions thousands.
#[test]
fn third_derivatives_are_short() -> Result<(), Error> {
    for (name, method, ..) in CASES {
        let traced = Function::trace(&[Spec::new(DType::F32, [8])], |x| {
            let [.., third] = derivatives(method, &x[0]).unwrap_or_else(|error| panic!("{name}: {error}"));
            vec![third]
        })?;
        let count = traced.body().graph().len();
        assert!(count < 100, "{name}: {count}");
    }
    Ok(())
}

/// What lies between a function and its argument has a gradient of its own.
#[test]
fn parts_of_a_composition_have_gradients() -> Result<(), Error> {
    let x = Tensor::from_slice(&[0.5f64, -0.25], [2]);
    let share = x.sigmoid();
    let value = &share * &x;
    let slopes = grad(&value.sum(.., false), &[&share, &x])?;
    assert_eq!(slopes[0].to_vec::<f64>()?, [0.5, -0.25]);
    // A function written by hand as the library writes it.
    let power = x.exp2();
    let quotient = &power / (&power + 1.0);
    let slopes = grad(&quotient.sum(.., false), &[&power, &x])?;
    for ((of_power, of_x), x) in slopes[0].to_vec::<f64>()?.iter().zip(slopes[1].to_vec::<f64>()?).zip([0.5, -0.25]) {
        let wanted = (f64::exp2(x) + 1.0).powi(-2);
        assert!((of_power - wanted).abs() < 1e-15, "{of_power} {wanted}");
        assert!((of_x - wanted * f64::exp2(x) * std::f64::consts::LN_2).abs() < 1e-15, "{of_x}");
    }
    Ok(())
}
