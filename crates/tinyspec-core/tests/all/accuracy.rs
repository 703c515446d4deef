//! Elementary functions beside those of the standard library: a few units in the last place, on every device.

use crate::support::on_each_device;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

type Case = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64, [f64; 2]);

/// By its series and its continued fraction, which are exact to the last bits of an f64.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 || x.is_nan() {
        return x.signum();
    }
    if x.abs() < 2.5 {
        let (mut sum, mut term, mut n) = (0.0, x, 0.0);
        while term.abs() > 1e-20 {
            sum += term / (2.0 * n + 1.0);
            n += 1.0;
            term *= -x * x / n;
        }
        return sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let a = x.abs();
    let fraction = (1..200).rev().fold(a, |rest, k| a + k as f64 / 2.0 / rest);
    x.signum() * (1.0 - (-a * a).exp() / fraction / std::f64::consts::PI.sqrt())
}

const CASES: [Case; 7] = [
    ("asin", Tensor::asin, f64::asin, [-1.0, 1.0]),
    ("acos", Tensor::acos, f64::acos, [-1.0, 1.0]),
    ("atan", Tensor::atan, f64::atan, [-40.0, 40.0]),
    ("asinh", Tensor::asinh, |x| x.signum() * (x.abs() + (x * x + 1.0).sqrt()).ln(), [-40.0, 40.0]),
    ("acosh", Tensor::acosh, f64::acosh, [1.0, 40.0]),
    ("atanh", Tensor::atanh, |x| x.signum() * x.abs().atanh(), [-0.999, 0.999]),
    ("erf", Tensor::erf, erf, [-7.0, 7.0]),
];

#[test]
fn inverse_functions_are_right_to_a_few_last_places() {
    on_each_device(|| {
        for (name, method, reference, [low, high]) in CASES {
            let points: Vec<f64> = (0..=1000).map(|i| low + (high - low) * f64::from(i) / 1000.0).collect();
            let got = method(&Tensor::from_slice(&points, [points.len()])).to_vec::<f64>()?;
            for (&x, got) in points.iter().zip(got) {
                let want = reference(x);
                assert!((got - want).abs() <= 1e-14 * want.abs().max(0.1), "{name}({x}): {got} {want}");
            }
            let points: Vec<f32> = points.iter().map(|&x| x as f32).collect();
            let got = method(&Tensor::from_slice(&points, [points.len()])).to_vec::<f32>()?;
            for (&x, got) in points.iter().zip(got) {
                let (want, got) = (reference(x.into()), f64::from(got));
                assert!((got - want).abs() <= 5e-7 * want.abs().max(0.1), "{name}({x}): {got} {want}");
            }
        }
        Ok(())
    });
}

#[test]
fn special_values_and_slopes_at_branch_points() {
    on_each_device(|| {
        let ends = Tensor::from_slice(&[f32::NEG_INFINITY, -0.0, f32::INFINITY, f32::NAN, 2.0], [5]);
        let show = |tensor: Tensor| Ok::<_, Error>(format!("{:?}", tensor.to_vec::<f32>()?));
        assert_eq!(show(ends.asin())?, "[NaN, -0.0, NaN, NaN, NaN]");
        assert_eq!(show(ends.erf())?[..17], *"[-1.0, -0.0, 1.0,");
        assert_eq!(show(ends.atan())?[..33], *"[-1.5707964, -0.0, 1.5707964, NaN");
        assert_eq!(show(ends.asinh())?[..20], *"[-inf, -0.0, inf, Na");
        assert_eq!(show(ends.acosh())?[..20], *"[NaN, NaN, inf, NaN,");
        let ones = Tensor::from_slice(&[-1f32, 1.0], [2]);
        assert_eq!(show(ones.atanh())?, "[-inf, inf]");
        assert_eq!(show(ones.acos())?, "[3.1415927, 0.0]");
        for (name, method, slope) in [
            ("asin", Tensor::asin as fn(&Tensor) -> Tensor, [1.0, 1.1547006, 1.1547006]),
            ("atan", Tensor::atan, [1.0, 0.8, 0.8]),
            ("asinh", Tensor::asinh, [1.0, 0.8944272, 0.8944272]),
            ("atanh", Tensor::atanh, [1.0, 1.3333334, 1.3333334]),
            ("erf", Tensor::erf, [std::f32::consts::FRAC_2_SQRT_PI, 0.8787826, 0.8787826]),
        ] {
            let x = Tensor::from_slice(&[0f32, 0.5, -0.5], [3]);
            let got = grad(&method(&x).sum(.., false), &[&x])?.remove(0).to_vec::<f32>()?;
            let close = got.iter().zip(slope).all(|(got, want): (&f32, f32)| (got - want).abs() < 1e-5);
            assert!(close, "{name}: {got:?} {slope:?}");
        }
        assert_eq!(Tensor::ones([2]).cast(DType::F16).erf().dtype(), DType::F16);
        assert_eq!(Tensor::full([2], 1).atan().dtype(), DType::F32);
        Ok(())
    });
}

/// Distance in units of the last place of what is right.
fn ulps(got: f32, want: f64) -> f64 {
    let place = (want.abs().log2().floor().max(-126.0) - 23.0).exp2();
    (f64::from(got) - want).abs() / place
}

/// On the interpreter the cosine is three sines, whose arguments are doubled: exact up to 2^126.
#[test]
fn cosines_of_many_arguments() {
    for (device, step, greatest, bound) in [("cpu", 331, f32::MAX, 0.76), ("interpreter", 3001, 126f32.exp2(), 2.5)] {
        let mut worst = (0.0, 0.0);
        for first in 0..16 {
            let patterns = (first * 0x0800_0000..(first + 1) * 0x0800_0000).step_by(step);
            let x: Vec<f32> = patterns.map(f32::from_bits).filter(|x| x.abs() <= greatest).collect();
            if x.is_empty() {
                continue;
            }
            let cosines = with_default_device::<_, Error>(device, || Tensor::from_slice(&x, [x.len()]).cos().to_vec());
            for (&x, got) in x.iter().zip(cosines.unwrap()) {
                let distance = ulps(got, f64::from(x).cos());
                if distance > worst.0 {
                    worst = (distance, x);
                }
            }
        }
        println!("{device}: at most {:.2} ulp, at {:e}", worst.0, worst.1);
        assert!(worst.0 <= bound, "{device}: cos({:e}) is {} ulp off", worst.1, worst.0);
    }
}
