//! Composed methods against values from their definitions.

use crate::support::{is, on_each_device, vector};
use tinyspec_core::Tensor;
use tinyspec_ir::{DType, Dim};

fn each(data: &[f64], function: impl Fn(f64) -> f64) -> Vec<f64> {
    data.iter().map(|&x| function(x)).collect()
}

#[test]
fn functions_of_one_number() {
    let x = [-40.0, -3.0, -1.0, -1e-9, 0.0, 1e-9, 0.25, 1.0, 2.5, 7.0];
    on_each_device(|| {
        let t = vector(&x);
        is(&t.expm1(), &each(&x, f64::exp_m1))?;
        is(&t.abs().log1p(), &each(&x, |x| x.abs().ln_1p()))?;
        is(&t.clip(-3.0, 3.0).exp10(), &each(&x, |x| 10f64.powf(x.clamp(-3.0, 3.0))))?;
        is(&t.deg2rad(), &each(&x, f64::to_radians))?;
        is(&t.rad2deg(), &each(&x, f64::to_degrees))?;
        is(&t.frac(), &each(&x, f64::fract))?;
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (x * std::f64::consts::PI).sin() / (x * std::f64::consts::PI) };
        is(&t.sinc(), &each(&x, sinc))?;
        is(&t.sigmoid().logit(0.0).clip(-30.0, 30.0), &each(&x, |x| x.max(-30.0)))?;
        is(&t.hardtanh(-1.0, 2.0), &each(&x, |x| x.clamp(-1.0, 2.0)))?;
        is(&t.threshold(0.5, 20.0), &each(&x, |x| if x > 0.5 { x } else { 20.0 }))?;
        is(&t.hardshrink(1.0), &each(&x, |x| if x.abs() > 1.0 { x } else { 0.0 }))?;
        is(&t.softshrink(1.0), &each(&x, |x| x - x.clamp(-1.0, 1.0)))?;
        is(&t.tanhshrink(), &each(&x, |x| x - x.tanh()))?;
        is(&t.prelu(0.1), &each(&x, |x| if x > 0.0 { x } else { 0.1 * x }))?;
        is(&t.heaviside(0.5), &each(&x, |x| if x == 0.0 { 0.5 } else { f64::from(x > 0.0) }))?;
        let odd = vector(&[f64::NAN, -1.0, 0.0, f64::INFINITY]).heaviside(0.5).to_vec::<f64>()?;
        assert_eq!(odd, [0.0, 0.0, 0.5, 1.0]);
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0];
        is(&vector(&odd).nan_to_num(0.0, 5.0, -5.0), &[0.0, 5.0, -5.0, 1.0])?;
        // Tables of erfc (Abramowitz and Stegun, 7.1).
        let erfc = [
            1.0,
            0.479_500_122_186_953_5,
            0.157_299_207_050_285_13,
            0.004_677_734_981_047_266,
            2.209_049_699_858_544e-5,
        ];
        let got = vector(&[0.0, 0.5, 1.0, 2.0, 3.0]).erfc().to_vec::<f64>()?;
        assert!(got.iter().zip(erfc).all(|(got, want)| (got - want).abs() < 1e-9 * want), "{got:?}");
        is(&vector(&[-1.0, -7.0]).erfc(), &[1.842_700_792_949_715, 2.0])?;
        let gelu = |x: f64, erfc: f64| x / 2.0 * erfc;
        is(
            &vector(&[std::f64::consts::SQRT_2, 0.0]).gelu_erf(),
            &[gelu(std::f64::consts::SQRT_2, 2.0 - erfc[2]), 0.0],
        )?;
        Ok(())
    });
}

#[test]
fn weighed_losses() {
    use std::slice::from_ref;
    let inputs = || {
        let x = Tensor::from_slice(&[0.3, -1.2, 2.0, 1.0, 0.5, -0.5, -0.7, 0.1, 0.9, 0.2, 0.4, 0.6], [4, 3]);
        (x, Tensor::from_slice(&[2i32, 0, -100, 1], [4]), vector(&[0.5, 2.0, 1.5]))
    };
    on_each_device(|| {
        let (x, target, weight) = inputs();
        // Of NumPy: `-(1 - s) w[t] log p[t] - s mean(w log p)`, the mean over the sum of w[t].
        for (smoothing, each, sum, mean) in [
            (
                0.0,
                [0.302_506_867_429_185_87, 0.302_065_302_668_364_2, 0.0, 2.223_802_865_248_401],
                2.828_375_035_345_951,
                0.707_093_758_836_487_7,
            ),
            (
                0.2,
                [0.779_117_825_930_759_5, 0.619_420_403_557_818_9, 0.0, 2.062_216_007_565_174],
                3.460_754_237_053_752_3,
                0.865_188_559_263_438_1,
            ),
        ] {
            let loss = |reduction| x.cross_entropy_weight(&target, &weight, reduction, smoothing, -100);
            is(&loss("none"), &each)?;
            is(&loss("sum"), from_ref(&sum))?;
            is(&loss("mean"), from_ref(&mean))?;
            let even = |reduction| x.cross_entropy_weight(&target, vector(&[1.0; 3]), reduction, smoothing, -100);
            is(&even("mean"), &x.cross_entropy(&target, "mean", smoothing, -100).to_vec::<f64>()?)?;
        }
        let (p, t) = (
            Tensor::from_slice(&[0.2, 0.9, 0.5, 0.7, 0.4, 0.1], [2, 3]),
            Tensor::from_slice(&[0.0, 1.0, 1.0, 1.0, 0.0, 0.3], [2, 3]),
        );
        let weight = vector(&[1.0, 0.5, 2.0]);
        is(&p.binary_crossentropy_weight(&t, &weight, "mean"), &[0.633_876_950_633_687_5])?;
        let (z, positive) = (x.at((0..2, ..)), vector(&[3.0, 0.5, 1.0]));
        let want = [
            0.854_355_244_468_527_2,
            0.731_641_233_669_015_6,
            0.126_928_011_042_972_5,
            0.939_785_062_554_666_8,
            0.974_076_984_180_106_7,
            0.624_076_984_180_106_7,
        ];
        is(&z.binary_crossentropy_logits_weight(&t, None, Some(&positive), "none"), &want)?;
        is(&z.binary_crossentropy_logits_weight(&t, Some(&weight), Some(&positive), "sum"), &[4.149_009_406_393_915])?;
        is(
            &z.binary_crossentropy_logits_weight(&t, None, None, "mean"),
            &z.binary_crossentropy_logits(&t, "mean").to_vec::<f64>()?,
        )?;
        // Far from 0 nothing overflows.
        is(
            &vector(&[-800.0, 800.0]).binary_crossentropy_logits_weight(
                vector(&[1.0, 0.0]),
                None,
                Some(&vector(&[2.0, 2.0])),
                "none",
            ),
            &[1600.0, 800.0],
        )
    });
    let (x, target, _) = inputs();
    let refused = |tensor: Tensor, words: &str| {
        let error = tensor.error().map(ToString::to_string).unwrap_or_default();
        assert!(error.contains(words), "{error}");
    };
    refused(
        x.cross_entropy_weight(&target, vector(&[1.0, 2.0]), "mean", 0.0, -100),
        "cross_entropy_weight: weights of shape [2]",
    );
    refused(
        x.binary_crossentropy_logits_weight(&x, Some(&vector(&[1.0; 4])), None, "mean"),
        "weights of [4] for predictions of [4, 3]",
    );
}

#[test]
fn functions_of_two_numbers() {
    on_each_device(|| {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let all = [-inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, inf];
        let (mut y, mut x) = (vec![], vec![]);
        for (a, b) in all.iter().flat_map(|&a| all.map(|b| (a, b))) {
            y.push(a);
            x.push(b);
        }
        let both = |function: fn(f64, f64) -> f64| y.iter().zip(&x).map(|(&y, &x)| function(y, x)).collect::<Vec<_>>();
        is(&vector(&y).atan2(vector(&x)), &both(f64::atan2))?;
        is(&vector(&y).hypot(vector(&x)), &both(f64::hypot))?;
        is(&vector(&[1e200, 0.0]).hypot(vector(&[1e200, 0.0])), &[2f64.sqrt() * 1e200, 0.0])?;
        is(&vector(&[0.0, 0.0, 2.0, 0.0]).xlogy(vector(&[0.0, inf, 3.0, nan])), &[0.0, 0.0, 2.0 * 3f64.ln(), nan])?;
        let close = vector(&[1.0, 1.0, inf, nan, 1e-9]).isclose(vector(&[1.0 + 1e-6, 1.1, inf, nan, 0.0]), 1e-5, 1e-8);
        assert_eq!(close.to_vec::<bool>()?, [true, false, true, false, true]);
        Ok(())
    });
}

/// Next to an infinity, the result depends on the formula of the interpolation, which is PyTorch's.
#[test]
fn quantiles_beside_infinities() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let of = |values: &[f32], q: f64| Tensor::from_slice(values, [values.len()]).quantile(q, 0, false);
    on_each_device(|| {
        for (values, q, expected) in [
            (&[-INF, 1.0, 2.0][..], 0.2, NAN),
            (&[-INF, 1.0, 2.0], 0.25, -INF),
            (&[-INF, 1.0, 2.0], 0.37, -INF),
            (&[-INF, 1.0, 2.0], 0.6, 1.2),
            (&[1.0, 2.0, INF], 0.25, 1.5),
            (&[1.0, 2.0, INF], 0.6, INF),
            (&[1.0, 2.0, INF], 0.8, NAN),
            (&[-INF, -INF, 1.0], 0.37, NAN),
            (&[-INF, -INF, 1.0], 0.8, -INF),
            (&[-INF, INF], 0.2, NAN),
            (&[-INF, INF], 0.6, NAN),
            (&[INF, INF], 0.25, NAN),
            (&[INF, INF], 0.75, NAN),
            (&[NAN, 1.0, 2.0], 0.37, NAN),
            // At an element nothing is interpolated.
            (&[-INF, 1.0, INF], 0.0, -INF),
            (&[-INF, 1.0, INF], 0.5, 1.0),
            (&[-INF, 1.0, INF], 1.0, INF),
        ] {
            let found = of(values, q).item::<f32>()?;
            let is_same = found == expected || found.is_nan() && expected.is_nan();
            assert!(is_same, "{values:?} {q}: {found}, not {expected}");
        }
        Ok(())
    });
}

#[test]
fn order_statistics_and_counts() {
    on_each_device(|| {
        let x = Tensor::from_slice(&[3.0, 1.0, 2.0, 4.0, 5.0, 5.0, f64::NAN, 0.0], [2, 4]);
        is(&x.median(1, false), &[2.0, f64::NAN])?;
        is(&x.kthvalue(2, 1, true), &[2.0, 5.0])?;
        is(&x.quantile(0.5, 1, false), &[2.5, f64::NAN])?;
        is(&x.quantile(0.25, -1, false), &[1.75, f64::NAN])?;
        is(&x.nansum(1, false), &[10.0, 10.0])?;
        is(&x.nanmean(1, false), &[2.5, 10.0 / 3.0])?;
        is(&x.at(0).diff(1, 0), &[-2.0, 1.0, 2.0])?;
        is(&x.at(0).diff(2, 0), &[3.0, 1.0])?;
        is(&x.at(0).trapezoid(2.0, 0), &[2.0 * (3.5 + 3.0)])?;
        let i = Tensor::from_slice(&[1i32, 3, 1, 0, 7, 1, -1], [7]);
        assert_eq!(i.bincount(4).to_vec::<i32>()?, [1, 3, 0, 1]);
        assert_eq!(i.count_nonzero(.., false).item::<i32>()?, 6);
        assert_eq!(i.mode(0, false).item::<i32>()?, 1);
        assert_eq!(Tensor::from_slice(&[2i32, 1, 2, 1], [4]).mode(0, false).item::<i32>()?, 1);
        let h = vector(&[0.0, 0.5, 1.0, 1.0, -0.1, 1.1, f64::NAN, 0.49]);
        assert_eq!(h.histc(2, 0.0, 1.0).to_vec::<i32>()?, [2, 3]);
        let sorted = vector(&[1.0, 3.0, 3.0, 5.0]);
        let values = vector(&[0.0, 3.0, 4.0, 9.0]);
        assert_eq!(sorted.searchsorted(&values, false).to_vec::<i32>()?, [0, 1, 3, 4]);
        assert_eq!(sorted.searchsorted(&values, true).to_vec::<i32>()?, [0, 3, 3, 4]);
        // Rows, each with values of its own.
        let rows = Tensor::from_slice(&[1f32, 3.0, 5.0, 2.0, 2.0, 9.0], [2, 3]);
        let values = Tensor::from_slice(&[0f32, 3.0, 5.0, 6.0, 1.0, 2.0, 3.0, f32::NAN], [2, 4]);
        assert_eq!(rows.searchsorted(&values, false).to_vec::<i32>()?, [0, 1, 2, 3, 0, 0, 2, 3]);
        assert_eq!(rows.searchsorted(values.reshape([2, 2, 2]), true).to_vec::<i32>()?, [0, 2, 3, 3, 0, 2, 2, 3]);
        assert_eq!(rows.searchsorted(&values, true).shape(), [2, 4].map(Dim::from));
        Ok(())
    });
}

#[test]
fn norms_products_and_distances() {
    on_each_device(|| {
        let x = Tensor::from_slice(&[3.0, -4.0, 0.0, 0.0], [2, 2]);
        is(&x.norm(2.0, 1, false), &[5.0, 0.0])?;
        is(&x.norm(1.0, .., false), &[7.0])?;
        is(&x.norm(0.0, .., false), &[2.0])?;
        is(&x.norm(f64::INFINITY, 1, false), &[4.0, 0.0])?;
        is(&x.norm(f64::NEG_INFINITY, 1, false), &[3.0, 0.0])?;
        is(&x.norm(3.0, 1, true), &[91f64.cbrt(), 0.0])?;
        is(&x.normalize(2.0, 1, 1e-12), &[0.6, -0.8, 0.0, 0.0])?;
        let (a, b) = (vector(&[1.0, 2.0, 3.0]), vector(&[-2.0, 0.5, 4.0]));
        is(&a.cross(&b, 0), &[2.0 * 4.0 - 3.0 * 0.5, 3.0 * -2.0 - 4.0, 0.5 + 4.0])?;
        is(&a.cosine_similarity(&b, 0, 1e-8), &[11.0 / (14f64 * 20.25).sqrt()])?;
        is(&a.outer(&b), &[-2.0, 0.5, 4.0, -4.0, 1.0, 8.0, -6.0, 1.5, 12.0])?;
        let (p, q) = (Tensor::from_slice(&[0.0, 0.0, 3.0, 4.0], [2, 2]), Tensor::from_slice(&[0.0, 0.0], [1, 2]));
        is(&p.cdist(&q, 2.0), &[0.0, 5.0])?;
        let m = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0], [2, 2]);
        is(&m.trace(), &[5.0])?;
        is(&m.kron(vector(&[1.0, 10.0])), &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0])?;
        is(&m.tensordot(&m, [0], [1]), &[1.0 + 6.0, 3.0 + 12.0, 2.0 + 8.0, 6.0 + 16.0])?;
        is(&m.tensordot(&m, [0, 1], [0, 1]), &[30.0])?;
        is(&vector(&[1.0, 2.0]).diag(0), &[1.0, 0.0, 0.0, 2.0])?;
        is(&vector(&[1.0, 2.0]).diag(1), &[0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0])?;
        is(&m.diag_embed(-1).at(1), &[0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 4.0, 0.0])?;
        is(&m.diag(1), &[2.0])?;
        let grid = Tensor::meshgrid(&[&a, &vector(&[7.0, 8.0])], "xy");
        assert_eq!(grid[0].sizes()?, [2, 3]);
        is(&grid[0], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0])?;
        is(&grid[1], &[7.0, 7.0, 7.0, 8.0, 8.0, 8.0])?;
        Ok(())
    });
}

#[test]
fn losses_are_their_formulas() {
    on_each_device(|| {
        let (p, t) = ([0.5, -2.0, 3.0], [0.0, 1.0, 2.5]);
        let (x, y) = (vector(&p), vector(&t));
        let sum = |function: fn(f64, f64) -> f64| p.iter().zip(t).map(|(&p, t)| function(p, t)).sum::<f64>();
        is(&x.mse_loss(&y, "mean"), &[sum(|p, t| (p - t) * (p - t)) / 3.0])?;
        is(&x.l1_loss(&y, "sum"), &[4.0])?;
        let huber = |d: f64, delta: f64| if d.abs() < delta { d * d / 2.0 } else { delta * (d.abs() - delta / 2.0) };
        is(&x.huber_loss(&y, "none", 0.75), &[huber(0.5, 0.75), huber(3.0, 0.75), huber(0.5, 0.75)])?;
        is(&x.smooth_l1_loss(&y, "none", 2.0), &[0.0625, 2.0, 0.0625])?;
        let (logs, shares) = (vector(&[-0.5, -1.0, -2.0]), vector(&[0.5, 0.0, 0.5]));
        is(&logs.kl_div(&shares, "sum", false), &[0.5 * (0.5f64.ln() + 0.5) + 0.5 * (0.5f64.ln() + 2.0)])?;
        is(&logs.kl_div(shares.log(), "sum", true).nan_to_num(-1.0, 0.0, 0.0), &[-1.0])?;
        is(
            &logs.reshape([1, 3]).kl_div(shares.reshape([1, 3]), "batchmean", false),
            &[0.5 * (2.0 * 0.5f64.ln() + 2.5)],
        )?;
        is(&x.poisson_nll_loss(&y, "sum", true, 1e-8), &[sum(|p, t| p.exp() - t * p)])?;
        let variance = vector(&[1.0, 4.0, 0.25]);
        let nll = |d: f64, v: f64| 0.5 * (v.ln() + d * d / v);
        is(&x.gaussian_nll_loss(&y, &variance, "sum", 1e-6), &[nll(0.5, 1.0) + nll(3.0, 4.0) + nll(0.5, 0.25)])?;
        let signs = vector(&[1.0, -1.0, -1.0]);
        is(&x.hinge_embedding_loss(&signs, "none", 1.0), &[0.5, 3.0, 0.0])?;
        is(&x.margin_ranking_loss(&y, &signs, "none", 0.5), &[0.0, 0.0, 1.0])?;
        let (a, b) =
            (Tensor::from_slice(&[1.0, 0.0, 1.0, 1.0], [2, 2]), Tensor::from_slice(&[0.0, 2.0, 1.0, 1.0], [2, 2]));
        is(&a.cosine_embedding_loss(&b, vector(&[1.0, -1.0]), "none", 0.25), &[1.0, 0.75])?;
        let triplet = a.triplet_margin_loss(&b, a.zeros_like(), "none", 2.0, 2.0).to_vec::<f64>()?;
        assert!(
            (triplet[0] - (5f64.sqrt() - 1.0 + 2.0)).abs() < 1e-5 && (triplet[1] - (2.0 - 2f64.sqrt())).abs() < 1e-5
        );
        Ok(())
    });
}

#[test]
fn windows_pictures_and_normalisations() {
    on_each_device(|| {
        let x = vector(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape([1, 1, 7]);
        is(&x.adaptive_avg_pool1d([3]), &[1.0, 3.0, 5.0])?;
        is(&x.adaptive_max_pool1d([3]), &[2.0, 4.0, 6.0])?;
        is(&x.interpolate([3], "area", false), &[1.0, 3.0, 5.0])?;
        is(&x.adaptive_avg_pool1d([7]), &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        let picture = Tensor::arange(16).cast(DType::F64).reshape([1, 1, 4, 4]);
        is(&picture.adaptive_avg_pool2d([2]), &[2.5, 4.5, 10.5, 12.5])?;
        is(&picture.adaptive_max_pool2d([1, 2]), &[13.0, 15.0])?;
        // Keys' kernel with slope -3/4 at distance 1, at every distance from the place that is asked for.
        let kernel = |d: f64| match d.abs() {
            d if d < 1.0 => (1.25 * d - 2.25) * d * d + 1.0,
            d if d < 2.0 => -0.75 * (((d - 5.0) * d + 8.0) * d - 4.0),
            _ => 0.0,
        };
        let bent = [0.0, 1.0, -2.0, 3.0, 4.0];
        let at = |i: usize| (i as f64 + 0.5) * 5.0 / 8.0 - 0.5;
        let taps = |i: usize| (-2i64..7).map(|k| bent[k.clamp(0, 4) as usize] * kernel(at(i) - k as f64)).sum::<f64>();
        scaled()?;
        is(&vector(&bent).interpolate([8], "cubic", false), &(0..8).map(taps).collect::<Vec<_>>())?;
        // The weights at the middle of two elements are -3/32, 19/32, 19/32, -3/32.
        let corners = vector(&[1.0, 2.0, 4.0, 8.0]).interpolate([7], "cubic", true).to_vec::<f64>()?;
        assert!((corners[3] - (19.0 * 6.0 - 3.0 * 9.0) / 32.0).abs() < 1e-12 && corners[6] == 8.0, "{corners:?}");
        let channels = Tensor::arange(8).reshape([1, 4, 1, 2]);
        let pixels = channels.pixel_shuffle(2);
        assert_eq!((pixels.sizes()?, pixels.to_vec::<i32>()?), (vec![1, 1, 2, 4], vec![0, 2, 1, 3, 4, 6, 5, 7]));
        assert_eq!(pixels.pixel_unshuffle(2).to_vec::<i32>()?, [0, 1, 2, 3, 4, 5, 6, 7]);
        let windows = Tensor::arange(5).unfold(0, 3, 1);
        assert_eq!(windows.fold(0, 5, 1).to_vec::<i32>()?, [0, 2, 6, 6, 4]);
        assert_eq!(Tensor::arange(7).unfold(0, 2, 3).fold(0, 7, 3).to_vec::<i32>()?, [0, 1, 0, 3, 4, 0, 0]);
        assert_eq!(Tensor::arange(5).center_crop([3]).to_vec::<i32>()?, [1, 2, 3]);
        assert_eq!((Tensor::arange(2) + 1).center_crop([5]).to_vec::<i32>()?, [0, 1, 2, 0, 0]);
        let n = Tensor::from_slice(&[1.0, 3.0, 10.0, 20.0], [1, 2, 2]);
        is(&n.instance_norm(vector(&[1.0, 2.0]), vector(&[0.0, 1.0]), 0.0), &[-1.0, 1.0, -1.0, 3.0])?;
        let l = vector(&[1.0, 2.0, 3.0]).reshape([1, 3]);
        is(&l.local_response_norm(2, 2.0, 1.0, 1.0), &[1.0 / 2.0, 2.0 / 6.0, 3.0 / 14.0])?;
        is(&vector(&[1.0, 2.0, 0.0, -1e9]).glu(0), &[0.5, 0.0])?;
        Ok(())
    });
}

#[test]
fn selections_and_fills() {
    on_each_device(|| {
        let x = Tensor::arange(6).reshape([2, 3]);
        assert_eq!(x.select(1, -1).to_vec::<i32>()?, [2, 5]);
        assert_eq!(x.select_scatter(9, 0, 1).to_vec::<i32>()?, [0, 1, 2, 9, 9, 9]);
        assert_eq!(
            x.slice_scatter(Tensor::from_slice(&[7i32, 8], [2, 1]), 1, 2, 9, 1).to_vec::<i32>()?,
            [0, 1, 7, 3, 4, 8]
        );
        assert_eq!(x.unbind(1)[1].to_vec::<i32>()?, [1, 4]);
        assert_eq!(x.masked_fill(x.gt(3), -1).to_vec::<i32>()?, [0, 1, 2, 3, -1, -1]);
        assert_eq!(x.index_select(1, Tensor::from_slice(&[2i32, 0], [2])).to_vec::<i32>()?, [2, 0, 5, 3]);
        assert_eq!(x.reshape([1, 2, 3]).movedim(0, 2).sizes()?, [2, 3, 1]);
        Ok(())
    });
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let x = Tensor::ones([2, 3]);
    for (tensor, words) in [
        (x.mse_loss(Tensor::ones([2]), "mean"), "mse_loss: predictions of [2, 3] and targets of [2]"),
        (x.mse_loss(&x, "median"), "reduction `median` is unknown"),
        (x.huber_loss(&x, "mean", 0.0), "`delta` is 0"),
        (x.quantile(1.5, 0, false), "1.5 is not between 0 and 1"),
        (x.kthvalue(3, 0, false), "number 3 of 2 elements"),
        (x.glu(1), "axis 1 of [2, 3] has no halves"),
        (x.outer(&x), "needs two vectors"),
        (x.cross(&x, 0), "axis 0 of [2, 3] has 2 elements"),
        (x.cdist(Tensor::ones([2, 4]), 2.0), "rows of [2, 3] and of [2, 4]"),
        (x.tensordot(&x, [0], [1]), "do not pair"),
        (x.fold(0, 1, 1), "do not fit 1 elements"),
        (x.pixel_shuffle(2), "needs (…, channels, rows, columns)"),
        (x.prelu(Tensor::ones([2])), "weights of [2] for [2, 3]"),
        (x.masked_fill(&x, 0.0), "a mask must be bool"),
        (x.adaptive_avg_pool3d([1]), "needs at least 3 axes"),
        (x.interpolate([2], "cubist", false), "the mode `cubist` is unknown"),
        (x.instance_norm(1.0, 0.0, 1e-5), "needs a batch, a channel and other axes"),
        (x.diff(-1, 0), "diff: -1 times"),
        (x.sdpa(&x, &x, true).sdpa(x.at(0), &x, false), "sdpa: needs"),
    ] {
        let text = tensor.realize().err().unwrap_or_else(|| panic!("no error: {words}")).to_string();
        assert!(text.contains(words), "{text}: {words}");
    }
}

/// Elements of a scaled axis lie `1 / factor` apart, whatever its length was rounded to.
fn scaled() -> Result<(), tinyspec_core::Error> {
    let x = [1.0, 2.0, 4.0, 8.0, 16.0];
    for (factor, length) in [(1.5, 7), (0.3, 1), (2.0, 10), (0.5, 2), (1.0, 5), (2.6, 13)] {
        let place = |i: usize| ((i as f64 + 0.5) / factor - 0.5).max(0.0);
        let between = |i: usize| {
            let (low, share) = (place(i).floor() as usize, place(i).fract());
            x[low.min(4)] * (1.0 - share) + x[(low + 1).min(4)] * share
        };
        let nearest = |i: usize| x[((i as f64 / factor + 1e-9).floor() as usize).min(4)];
        let exact = |i: usize| x[(((i as f64 + 0.5) / factor + 1e-9).floor() as usize).min(4)];
        let ends = |i: usize| i as f64 * 4.0 / (length as f64 - 1.0).max(1.0);
        let corners = |i: usize| {
            let (low, share) = (ends(i).floor() as usize, ends(i).fract());
            x[low.min(4)] * (1.0 - share) + x[(low + 1).min(4)] * share
        };
        let picture = vector(&x).reshape([1, 1, 5]);
        let found = |mode: &str, corners| picture.interpolate_scale(factor, mode, corners);
        is(&found("linear", false), &(0..length).map(between).collect::<Vec<_>>())?;
        is(&found("nearest", false), &(0..length).map(nearest).collect::<Vec<_>>())?;
        is(&found("nearest-exact", false), &(0..length).map(exact).collect::<Vec<_>>())?;
        is(&found("linear", true), &(0..length).map(corners).collect::<Vec<_>>())?;
    }
    let square = Tensor::arange(8).cast(DType::F64).reshape([1, 2, 2, 2]).interpolate_scale(2.0, "bilinear", false);
    assert_eq!(square.sizes()?, [1, 2, 4, 4]);
    let refused = vector(&x).interpolate_scale(2.0, "linear", false);
    assert!(
        refused
            .error()
            .is_some_and(|error| error.to_string().contains("interpolate_scale: needs (batch, channels, …)"))
    );
    Ok(())
}

/// The sum that an equation names, term by term; a letter is an axis of `LENGTHS`.
fn named_sum(equation: &str, tensors: &[Vec<f64>]) -> Vec<f64> {
    let (inputs, output) = equation.split_once("->").expect("an arrow");
    let terms: Vec<&str> = inputs.split(',').collect();
    let mut labels: Vec<char> = inputs.chars().filter(char::is_ascii_alphabetic).collect();
    labels.sort_unstable();
    labels.dedup();
    let total: usize = labels.iter().map(|&label| length(label)).product();
    let mut result = vec![0.0; output.chars().map(length).product()];
    for number in 0..total {
        let mut rest = number;
        let places: Vec<(char, usize)> = labels
            .iter()
            .map(|&label| {
                let place = rest % length(label);
                rest /= length(label);
                (label, place)
            })
            .collect();
        let flat = |term: &str| {
            term.chars().fold(0, |flat, label| {
                let place = places.iter().find(|&&(other, _)| other == label).map_or(0, |&(_, place)| place);
                flat * length(label) + place
            })
        };
        result[flat(output)] += terms.iter().zip(tensors).map(|(term, data)| data[flat(term)]).product::<f64>();
    }
    result
}

fn length(label: char) -> usize {
    2 + (label as usize - 'a' as usize) % 4
}

#[test]
fn sums_of_products_of_several_tensors() {
    let equations = [
        "ij,jk,kl->il",
        "ab,bc,cd,de->ae",
        "ab,bc,cd,da->",
        "a,b,c->abc",
        "ab,ab,ab->ab",
        "ab,ab,ab->b",
        "ab,cd,bd->ac",
        "aab,bc,cd->d",
        "a,bc,d->cd",
        "ba,kab,bk->k",
        "abc,cd,be,ef->adf",
    ];
    on_each_device(|| {
        for equation in equations {
            let terms = equation.split("->").next().unwrap_or_default().split(',');
            let (mut tensors, mut data) = (vec![], vec![]);
            for (number, term) in terms.enumerate() {
                let sizes: Vec<i64> = term.chars().map(|label| length(label) as i64).collect();
                let count = sizes.iter().product::<i64>();
                let values: Vec<f64> = (0..count).map(|i| ((i * 7 + number as i64 * 3) % 5) as f64 - 1.5).collect();
                tensors.push(Tensor::from_slice(&values, &sizes[..]));
                data.push(values);
            }
            let found = Tensor::einsum(equation, &tensors.iter().collect::<Vec<_>>());
            is(&found, &named_sum(equation, &data))?;
        }
        let halves = Tensor::full([3, 2, 4], 0.5).cast(DType::F16);
        let chain =
            Tensor::einsum("...ij,...kj,kl->...il", &[&halves, &halves, &Tensor::ones([2, 5]).cast(DType::F16)]);
        assert_eq!((chain.dtype(), chain.sizes()?), (DType::F16, vec![3, 2, 5]));
        is(&chain, &[2.0; 30])
    });
}

/// As its value is: otherwise a training would go on from a nan loss, with no trace of it in the weights.
#[test]
fn the_gradient_of_a_loss_is_nan_where_a_target_is_no_class() {
    on_each_device(|| {
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 0.5, 1.0, 1.5, 2.0, 1.0, 0.0], [3, 3]);
        let target = Tensor::from_slice(&[1i32, 7, -100], [3]);
        let class = Tensor::from_slice(&[1i32, 7, 0], [3]);
        let (weight, lists) = (Tensor::ones([3]), Tensor::from_slice(&[1i32, -1, 0, 0, 7, -1, 0, -1, 0], [3, 3]));
        for loss in [
            x.cross_entropy(&target, "none", 0.0, -100),
            x.cross_entropy(&target, "none", 0.1, -100),
            x.cross_entropy_weight(&target, &weight, "none", 0.0, -100),
            x.nll_loss(&target, "none"),
            x.nll_loss_weight(&target, &weight, "none"),
            x.multi_margin_loss(&class, "none", 1.0, 1.0),
            x.multilabel_margin_loss(&lists, "none"),
        ] {
            let gradient = tinyspec_core::grad(&loss.sum(.., false), &[&x])?.remove(0);
            let (loss, gradient) = (loss.to_vec::<f32>()?, gradient.to_vec::<f32>()?);
            assert!(loss[0].is_finite() && loss[1].is_nan() && loss[2].is_finite(), "{loss:?}");
            let has_nan = |row: usize| gradient[3 * row..][..3].iter().any(|value| value.is_nan());
            assert_eq!([has_nan(0), has_nan(1), has_nan(2)], [false, true, false], "{gradient:?}");
        }
        Ok(())
    });
}
