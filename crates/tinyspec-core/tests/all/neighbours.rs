//! Methods that PyTorch and NumPy have beside the common ones, against their definitions.

use crate::support::{is, on_each_device, vector};
use tinyspec_core::{Error, Tensor, grad, set_seed};
use tinyspec_ir::DType;
use tinyspec_ir::ops::options::{AvgPool1d, AvgPool2d, default};

fn numbers(data: &[i32]) -> Tensor {
    Tensor::from_slice(data, [data.len()])
}

#[track_caller]
fn refused(tensor: &Tensor, text: &str) {
    let error = tensor.to_vec::<f32>().expect_err(text).to_string();
    assert!(error.contains(text), "{error}");
}

#[test]
fn arithmetic_and_logic() {
    on_each_device(|| {
        let (x, y) = (vector(&[0.0, 2.0, f64::NAN, -0.0]), vector(&[3.0, 0.0, 1.0, f64::NAN]));
        assert_eq!(x.logical_and(&y).to_vec::<bool>()?, [false, false, true, false]);
        assert_eq!(x.logical_or(&y).to_vec::<bool>()?, [true; 4]);
        assert_eq!(x.logical_xor(&y).to_vec::<bool>()?, [true, true, false, true]);
        is(&x.fmax(&y), &[3.0, 2.0, 1.0, 0.0])?;
        is(&x.fmin(&y), &[0.0, 0.0, 1.0, 0.0])?;
        assert_eq!(numbers(&[3, -1]).fmax(numbers(&[2, 5])).to_vec::<i32>()?, [3, 5]);
        assert_eq!(x.signbit().to_vec::<bool>()?, [false, false, false, true]);
        assert_eq!(numbers(&[3, -1]).signbit().to_vec::<bool>()?, [false, true]);
        let (a, b, c) = (vector(&[1.0, 2.0]), vector(&[3.0, 5.0]), vector(&[2.0, -4.0]));
        is(&a.addcmul(&b, &c, 0.5), &[4.0, -8.0])?;
        is(&a.addcdiv(&b, &c, 2.0), &[4.0, -0.5])?;
        assert_eq!(numbers(&[1, 2]).addcmul(numbers(&[3, 4]), 5, 2.0).to_vec::<i32>()?, [31, 42]);
        is(&a.ldexp(numbers(&[3, -2])), &[8.0, 0.5])?;
        is(&vector(&[3.0, 1000.0]).logaddexp2(vector(&[3.0, 0.0])), &[4.0, 1000.0])?;
        assert_eq!(numbers(&[1, 5, 2, 5]).isin(numbers(&[5, 7])).to_vec::<bool>()?, [false, true, false, true]);
        assert!(a.allclose(&a, 0.0, 0.0).item::<bool>()?);
        assert!(!a.allclose(&b, 1e-3, 1e-3).item::<bool>()?);
        Ok(())
    });
}

#[test]
fn variables_and_their_moments() {
    on_each_device(|| {
        let x = Tensor::from_slice(&[-5.5, 5.0, 3.0, 1.0, 1.0, 2.5, 3.0, 4.0, -4.0, 0.0, 4.5, -5.0], [3, 4]);
        let covariance = [
            20.729166666666664,
            3.6041666666666665,
            11.479166666666666,
            3.6041666666666665,
            1.5625,
            0.4375,
            11.479166666666666,
            0.4375,
            18.729166666666664,
        ];
        is(&x.cov(1), &covariance)?;
        is(&x.at(1).cov(0), &[1.5625 * 0.75])?;
        let correlation = [
            1.0,
            0.633291896731406,
            0.5825862262139623,
            0.633291896731406,
            1.0,
            0.08087398016301801,
            0.5825862262139623,
            0.08087398016301803,
            1.0,
        ];
        is(&x.corrcoef(), &correlation)?;
        let both = x.var_mean(1, 1, false);
        is(&both[0], &[20.729166666666664, 1.5625, 18.729166666666664])?;
        is(&both[1], &[0.875, 2.625, -1.125])?;
        is(&x.std_mean(1, 1, true)[0].square(), &[20.729166666666664, 1.5625, 18.729166666666664])?;
        let ends = x.aminmax(0, false);
        is(&ends[0], &[-5.5, 0.0, 3.0, -5.0])?;
        is(&ends[1], &[1.0, 5.0, 4.5, 4.0])?;
        let nan = f64::NAN;
        let y = Tensor::from_slice(&[nan, 3.0, 1.0, nan, 7.0, 2.0, nan, nan, nan], [3, 3]);
        is(&y.nanmedian(1, false), &[1.0, 2.0, nan])?;
        is(&y.nanmedian(0, true), &[nan, 3.0, 1.0])?;
        is(&vector(&[1.0, 3.0, 2.0]).cumulative_trapezoid(2.0, 0), &[4.0, 9.0])?;
        let bounds = vector(&[1.0, 3.0, 3.0, 5.0]);
        assert_eq!(vector(&[0.0, 3.0, 9.0]).bucketize(&bounds, false).to_vec::<i32>()?, [0, 1, 4]);
        assert_eq!(vector(&[0.0, 3.0, 9.0]).bucketize(&bounds, true).to_vec::<i32>()?, [0, 3, 4]);
        let z = Tensor::from_slice(&[3.0, 4.0, 0.3, 0.4], [2, 2]);
        is(&z.renorm(2.0, 0, 1.0), &[0.6, 0.8, 0.3, 0.4])?;
        is(&z.pairwise_distance(z.flip([0]), 1.0, 0.0), &[6.3, 6.3])?;
        Ok(())
    });
}

#[test]
fn parts_replaced_by_number() {
    on_each_device(|| {
        let x = Tensor::arange(6).reshape([3, 2]);
        let i = numbers(&[2, 0, -1]);
        let value = numbers(&[10, 20, 30, 40, 50, 60]).reshape([3, 2]);
        assert_eq!(x.index_add(0, &i, &value).to_vec::<i32>()?, [30, 41, 2, 3, 64, 85]);
        assert_eq!(x.index_copy(0, &i, &value).to_vec::<i32>()?, [30, 40, 2, 3, 50, 60]);
        assert_eq!(x.index_fill(1, numbers(&[-1]), 7).to_vec::<i32>()?, [0, 7, 2, 7, 4, 7]);
        refused(&x.index_add(0, &i, numbers(&[1, 2, 3])).cast(DType::F32), "values of [3] for places of [3, 2]");
        let mask = Tensor::from_slice(&[true, false, true, true, false, false], [3, 2]);
        let source = numbers(&[7, 8, 9, 10]);
        assert_eq!(x.masked_scatter(&mask, source).to_vec::<i32>()?, [7, 1, 8, 9, 4, 5]);
        let zeros = Tensor::zeros([3, 4]).cast(DType::I32);
        for (offset, want) in [
            (0, [1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0]),
            (1, [0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3]),
            (-1, [0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0]),
        ] {
            let value = numbers(&[1, 2, 3][..if offset < 0 { 2 } else { 3 }]);
            assert_eq!(zeros.diagonal_scatter(value, offset).to_vec::<i32>()?, want, "{offset}");
        }
        Ok(())
    });
}

#[test]
fn shapes_and_ramps() {
    on_each_device(|| {
        let x = Tensor::arange(6).reshape([2, 3]);
        for (turns, want) in
            [(0, [0, 1, 2, 3, 4, 5]), (1, [2, 5, 1, 4, 0, 3]), (2, [5, 4, 3, 2, 1, 0]), (-1, [3, 0, 4, 1, 5, 2])]
        {
            assert_eq!(x.rot90(turns, 0, 1).to_vec::<i32>()?, want, "{turns}");
        }
        refused(&x.cast(DType::F32).rot90(1, 1, -1), "axis 1 twice");
        let pairs = Tensor::cartesian_prod(&[&numbers(&[1, 2]), &numbers(&[3, 4, 5])]);
        assert_eq!(pairs.to_vec::<i32>()?, [1, 3, 1, 4, 1, 5, 2, 3, 2, 4, 2, 5]);
        let blocks = Tensor::block_diag(&[&x, &numbers(&[7]), &numbers(&[8]).reshape(())]);
        assert_eq!(blocks.sizes()?, [4, 5]);
        let want = [0, 1, 2, 0, 0, 3, 4, 5, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 8];
        assert_eq!(blocks.to_vec::<i32>()?, want);
        assert_eq!(numbers(&[2, -3]).vander(4, true).to_vec::<i32>()?, [1, 2, 4, 8, 1, -3, 9, -27]);
        assert_eq!(numbers(&[2, -3]).vander(3, false).to_vec::<i32>()?, [4, 2, 1, 9, -3, 1]);
        assert_eq!(numbers(&[2]).vander(0, false).sizes()?, [1, 0]);
        is(&Tensor::logspace(0.0, 3.0, 4, 10.0, DType::F64), &[1.0, 10.0, 100.0, 1000.0])?;
        is(&Tensor::logspace(-1.0, 1.0, 3, 2.0, DType::F64), &[0.5, 1.0, 2.0])?;
        assert_eq!(Tensor::tril_indices(3, 2, 0).to_vec::<i32>()?, [0, 1, 1, 2, 2, 0, 0, 1, 0, 1]);
        assert_eq!(Tensor::triu_indices(2, 3, 1).to_vec::<i32>()?, [0, 0, 1, 1, 2, 2]);
        assert_eq!(Tensor::triu_indices(2, 2, 5).sizes()?, [2, 0]);
        let close = |window: Tensor, want: &[f32]| {
            let got = window.to_vec::<f32>()?;
            let near = got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-6);
            assert!(near && got.len() == want.len(), "{got:?} {want:?}");
            Ok::<_, Error>(())
        };
        close(Tensor::hann_window(4, true), &[0.0, 0.5, 1.0, 0.5])?;
        close(Tensor::hann_window(5, false), &[0.0, 0.5, 1.0, 0.5, 0.0])?;
        close(Tensor::hamming_window(3, false), &[0.08, 1.0, 0.08])?;
        close(Tensor::blackman_window(5, false), &[0.0, 0.34, 1.0, 0.34, 0.0])?;
        close(Tensor::hann_window(1, false), &[1.0])?;
        let (a, b) = (vector(&[1.0, 2.0]), vector(&[3.0, 5.0]));
        let weight = Tensor::from_slice(&[1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [2, 2, 2]);
        is(&a.bilinear(&b, &weight, Some(&vector(&[0.5, 0.0]))), &[13.5, 11.0])?;
        let channels = Tensor::arange(4).reshape([1, 4, 1]);
        assert_eq!(channels.channel_shuffle(2).to_vec::<i32>()?, [0, 2, 1, 3]);
        refused(&channels.cast(DType::F32).channel_shuffle(3), "3 groups of the channels");
        Ok(())
    });
}

#[test]
fn windows_and_losses() {
    on_each_device(|| {
        let x = vector(&[3.0, -4.0, 1.0, 2.0]).reshape([1, 1, 4]);
        is(&x.lp_pool1d(2.0, [2], default()), &[5.0, 5f64.sqrt()])?;
        is(&x.lp_pool1d(1.0, [2], AvgPool1d { stride: Some([1]), ..default() }), &[7.0, 5.0, 3.0])?;
        is(&x.reshape([1, 1, 2, 2]).lp_pool2d(2.0, [2], AvgPool2d::default()), &[30f64.sqrt()])?;
        refused(&x.cast(DType::F32).lp_pool1d(0.5, [2], default()), "the 0.5-norm");
        let (x, t) = (vector(&[0.5, -1.0]), vector(&[1.0, -1.0]));
        let soft = [(-0.5f64).exp().ln_1p(), (-1f64).exp().ln_1p()];
        is(&x.soft_margin_loss(&t, "none"), &soft)?;
        let x = Tensor::from_slice(&[0.1, 0.2, 0.4, 0.8, 0.5, -0.5, 0.25, 1.0], [2, 4]);
        let target = numbers(&[3, 0]);
        let rest = |own: f64, others: [f64; 3], p: i32| -> f64 {
            others.iter().map(|other| (1.0 - own + other).max(0.0).powi(p)).sum::<f64>() / 4.0
        };
        let want = |p| [rest(0.8, [0.1, 0.2, 0.4], p), rest(0.5, [-0.5, 0.25, 1.0], p)];
        is(&x.multi_margin_loss(&target, "none", 1.0, 1.0), &want(1))?;
        is(&x.multi_margin_loss(&target, "none", 2.0, 1.0), &want(2))?;
        // The example of PyTorch's documentation: 0.25 * ((1-(0.1-0.2)) + (1-(0.1-0.4)) + (1-(0.8-0.2)) + (1-(0.8-0.4))).
        let labels = numbers(&[3, 0, -1, 1]).reshape([1, 4]);
        is(&x.narrow(0, 0, 1).multilabel_margin_loss(&labels, "mean"), &[0.85])?;
        let y = Tensor::from_slice(&[1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [2, 4]);
        let bce = x.binary_crossentropy_logits(&y, "none");
        is(&x.multilabel_soft_margin_loss(&y, "mean"), &[bce.mean(.., false).item::<f64>()?])?;
        let p = x.sigmoid();
        let own = &p * &y + (1.0 - &p) * (1.0 - &y);
        let alpha = &y * 0.25 + (1.0 - &y) * 0.75;
        let focal = (1.0 - &own).square() * &alpha * &bce;
        is(&x.sigmoid_focal_loss(&y, "none", 0.25, 2.0), &focal.to_vec::<f64>()?)?;
        is(&x.sigmoid_focal_loss(&y, "sum", -1.0, 0.0), &[bce.sum(.., false).item::<f64>()?])?;
        Ok(())
    });
}

#[test]
fn draws_of_two_more_kinds() -> Result<(), Error> {
    set_seed(3);
    let key = Tensor::random_key();
    let x = key.exponential_with([20_000], 2.0, DType::F32);
    let mean = x.mean(.., false).item::<f32>()?;
    assert!((mean - 0.5).abs() < 0.02 && x.min(.., false).item::<f32>()? >= 0.0, "{mean}");
    let logits = vector(&[0.0, 3f64.ln()]).cast(DType::F32).expand([20_000, 2]);
    let hard = logits.gumbel_softmax_with(&key, 0.5, true, -1);
    assert_eq!(hard.sum(1, false).to_vec::<f32>()?, [1.0; 20_000]);
    let share = hard.mean(0, false).to_vec::<f32>()?[1];
    assert!((share - 0.75).abs() < 0.02, "{share}");
    let soft = logits.gumbel_softmax_with(&key, 0.5, false, -1);
    assert_eq!(soft.argmax(1).to_vec::<i32>()?, hard.argmax(1).to_vec::<i32>()?);
    let x = logits.contiguous();
    let slope = |hard: bool| grad(&x.gumbel_softmax_with(&key, 0.5, hard, -1).at((.., 0)).sum(.., false), &[&x]);
    assert_eq!(slope(true)?[0].to_vec::<f32>()?, slope(false)?[0].to_vec::<f32>()?);
    Ok(())
}

/// The picture and the places of the values below.
fn picture() -> [Tensor; 2] {
    let waves = Tensor::arange(12).cast(DType::F64) * 1.7 + 0.2;
    let picture = Tensor::arange(12).cast(DType::F64).pow_const(1.5).reshape([2, 1, 2, 3]);
    [picture, (waves.sin() * 1.4).reshape([2, 1, 3, 2])]
}

#[test]
fn pictures_are_read_between_their_elements() {
    let cases: [(&str, &str, bool, [f64; 6]); 8] = [
        (
            "bilinear",
            "zeros",
            false,
            [1.63387741797265, 0.023674535477766743, 3.966005930770544, 3.3463479160828618, 0.6121063041109269, 0.0],
        ),
        (
            "bilinear",
            "zeros",
            true,
            [
                7.441626772648812,
                0.3490493098474169,
                10.629099046728038,
                14.277579427394466,
                21.42214551135451,
                12.861995000554195,
            ],
        ),
        (
            "bilinear",
            "border",
            false,
            [
                9.326855594015539,
                0.07070706908080981,
                11.180339887498949,
                14.696938456699069,
                33.56012631403747,
                21.71696403212172,
            ],
        ),
        (
            "bilinear",
            "border",
            true,
            [
                8.884570396010359,
                0.38047137938720654,
                10.629099046728038,
                16.97604092807864,
                31.557635579988464,
                21.282716630235626,
            ],
        ),
        (
            "bilinear",
            "reflection",
            false,
            [
                9.326855594015539,
                0.07070706908080981,
                11.180339887498949,
                14.696938456699069,
                33.56012631403747,
                22.117053553121092,
            ],
        ),
        (
            "bilinear",
            "reflection",
            true,
            [
                7.686631014915456,
                0.866287732422887,
                10.629099046728038,
                17.607325740136726,
                30.082661281165755,
                22.964772992651692,
            ],
        ),
        ("nearest", "zeros", false, [0.0, 0.0, 11.180339887498949, 0.0, 0.0, 0.0]),
        ("nearest", "border", true, [8.0, 0.0, 11.180339887498949, 14.696938456699069, 36.4828726939094, 27.0]),
    ];
    on_each_device(|| {
        let [x, grid] = picture();
        for (mode, padding, align, want) in cases {
            is(&x.grid_sample(&grid, mode, padding, align), &want)?;
        }
        // The identity reads every element where it is.
        let identity = Tensor::from_slice(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [1, 2, 3]).expand([2, 2, 3]);
        for align in [true, false] {
            let grid = identity.affine_grid([2, 3], align);
            assert_eq!(grid.sizes()?, [2, 2, 3, 2]);
            is(&x.grid_sample(&grid, "bilinear", "zeros", align), &x.to_vec::<f64>()?)?;
        }
        is(&identity.affine_grid([1, 2], true).at(0), &[-1.0, 0.0, 1.0, 0.0])?;
        refused(&identity.affine_grid([2, 1, 2, 3], true), "a size of 4 numbers, [2, 1, 2, 3], for maps of [2, 2, 3]");
        refused(&identity.affine_grid([0, 3], true), "0 rows and 3 columns");
        refused(&identity.at(0).affine_grid([2, 3], true), "maps of [2, 3] for 2 rows and 3 columns");
        refused(&x.cast(DType::F32).grid_sample(&grid, "cubic", "zeros", true), "the mode `cubic` is unknown");
        refused(&x.cast(DType::F32).grid_sample(&x, "nearest", "zeros", true), "places of [2, 1, 2, 3] in");
        Ok(())
    });
}

/// Places further away than an i32 can count are outside, and so are their neighbours.
#[test]
fn far_outside_of_a_picture_is_nothing() {
    on_each_device(|| {
        let x = Tensor::arange(24).cast(DType::F32).reshape([1, 4, 2, 3]) + 1.0;
        let far = [1e30f32, -1e30, f32::INFINITY, f32::NEG_INFINITY, 5e9, -5e9];
        let places: Vec<f32> = far.iter().flat_map(|&place| [place, 0.0, 0.0, place]).collect();
        let grid = Tensor::from_slice(&places, [1, 3, 4, 2]);
        assert_eq!(x.grid_sample(&grid, "nearest", "zeros", false).to_vec::<f32>()?, [0.0; 48]);
        let finite = grid.clip(-1e30, 1e30);
        assert_eq!(x.grid_sample(&finite, "bilinear", "zeros", true).to_vec::<f32>()?, [0.0; 48]);
        let corner = x.grid_sample(grid.abs(), "nearest", "border", false).at((.., .., 0, 0));
        assert_eq!(corner.to_vec::<f32>()?, [3.0, 9.0, 15.0, 21.0]);
        Ok(())
    });
}

#[test]
fn divisors_and_bits() {
    on_each_device(|| {
        let (x, y) =
            (numbers(&[12, -18, 0, 7, 0, i32::MIN, 1_836_311_903]), numbers(&[18, 12, 5, 0, 0, 6, 1_134_903_170]));
        assert_eq!(x.gcd(&y).to_vec::<i32>()?, [6, 6, 5, 7, 0, 2, 1]);
        assert_eq!(x.at(0..5).lcm(y.at(0..5)).to_vec::<i32>()?, [36, 36, 0, 0, 0]);
        let bytes = Tensor::from_slice(&[-128i8, 100, 89], [3]);
        assert_eq!(bytes.gcd(96).to_vec::<i8>()?, [32, 4, 1]);
        let bytes = Tensor::from_slice(&[233u8, 255], [2]);
        assert_eq!(bytes.gcd(Tensor::from_slice(&[144u8, 85], [2])).to_vec::<u8>()?, [1, 85]);
        let long = Tensor::from_slice(&[7_540_113_804_746_346_429i64, 1 << 62], [2]);
        assert_eq!(
            long.gcd(Tensor::from_slice(&[4_660_046_610_375_530_309i64, 3 << 60], [2])).to_vec::<i64>()?,
            [1, 1 << 60]
        );
        refused(&x.cast(DType::F32).gcd(2.0), "f32 has no divisors");

        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let from = [1.0, 1.0, 0.0, -0.0, f32::MAX, -1.0, 1e-45, inf, 2.0, nan];
        let to = [2.0, 0.0, 1.0, -1.0, inf, -2.0, -1.0, 0.0, 2.0, 1.0];
        let got = Tensor::from_slice(&from, [10]).nextafter(Tensor::from_slice(&to, [10])).to_vec::<f32>()?;
        let want = [1.000_000_1, 0.999_999_94, 1e-45, -1e-45, inf, -1.000_000_1, 0.0, f32::MAX, 2.0];
        assert_eq!(got[..9], want);
        assert!(got[9].is_nan());
        assert_eq!(vector(&[1.0]).nextafter(2.0).to_vec::<f64>()?, [1.0 + f64::EPSILON]);
        let half = vector(&[1.0, 65504.0]).cast(DType::F16).nextafter(f64::INFINITY).cast(DType::F64);
        is(&half, &[1.0 + 1.0 / 1024.0, f64::INFINITY])?;

        let values = [8.0f32, -0.75, 1e-45, 0.0, f32::MAX, inf, 1.0, -1e-40];
        let parts = Tensor::from_slice(&values, [8]).frexp();
        let (mantissas, powers) = (parts[0].to_vec::<f32>()?, parts[1].to_vec::<i32>()?);
        assert_eq!(mantissas[..7], [0.5, -0.75, 0.5, 0.0, 1.0 - f32::EPSILON / 2.0, inf, 0.5]);
        assert_eq!(powers, [4, 0, -148, 0, 128, 0, 1, -132]);
        assert_eq!(f64::from(mantissas[7]) * 2f64.powi(-132), f64::from(-1e-40f32));
        let parts = vector(&[5e-324, -10.0]).frexp();
        assert_eq!((parts[0].to_vec::<f64>()?, parts[1].to_vec::<i32>()?), (vec![0.5, -0.625], vec![-1073, 4]));
        let odd = vector(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0]);
        assert_eq!(odd.isposinf().to_vec::<bool>()?, [true, false, false, false]);
        assert_eq!(odd.isneginf().to_vec::<bool>()?, [false, true, false, false]);
        assert_eq!(numbers(&[1, 2]).isposinf().to_vec::<bool>()?, [false; 2]);
        Ok(())
    });
}

#[test]
fn what_is_empty_and_what_has_no_axes() {
    on_each_device(|| {
        let empty = Tensor::zeros([0, 3]).contiguous();
        // Of nothing there is one piece.
        assert_eq!(empty.chunk(2, 0)[0].sizes()?, [0, 3]);
        assert_eq!(empty.split(4, 0).len(), 1);
        assert_eq!(empty.diff(1, 0).sizes()?, [0, 3]);
        assert_eq!(vector(&[1.0, 4.0]).diff(5, 0).sizes()?, [0]);
        let scalar = Tensor::scalar(2.5f64).contiguous();
        for axis in [0, -1] {
            is(&scalar.sum(axis, true), &[2.5])?;
            is(&scalar.max(axis, false), &[2.5])?;
            is(&scalar.logsumexp(axis, false), &[2.5])?;
            is(&scalar.var(axis, 0, false), &[0.0])?;
        }
        refused(&scalar.sum(1, false), "axis 1 of []");
        let nan = vector(&[f64::NAN, 0.0, -0.0, 3.0, -3.0]).heaviside(0.5);
        is(&nan, &[0.0, 0.5, 0.5, 1.0, 0.0])
    });
}

#[test]
fn a_mask_over_several_axes_takes_what_it_places_in_order() -> Result<(), Error> {
    let shape = [7usize, 33, 20];
    let count = shape.iter().product::<usize>();
    let old: Vec<f32> = (0..count).map(|i| -(i as f32)).collect();
    let source: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let mask: Vec<bool> = (0..count).map(|i| i * i % 7 < 3).collect();
    let mut next = source.iter();
    let want: Vec<f32> =
        old.iter().zip(&mask).map(|(&old, &set)| if set { *next.next().unwrap_or(&0.0) } else { old }).collect();
    let x = Tensor::from_slice(&old, shape);
    let found = x.masked_scatter(Tensor::from_slice(&mask, shape), Tensor::from_slice(&source, [count]));
    assert_eq!(found.to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn many_parts_of_different_lengths_are_joined() {
    on_each_device(|| {
        for count in [33, 40, 300] {
            let lengths: Vec<usize> = (0..count).map(|part| part * 7 % 5).collect();
            let part = |part: usize| -> Vec<i32> { (0..2 * lengths[part]).map(|i| (part * 100 + i) as i32).collect() };
            let parts: Vec<Tensor> =
                (0..count).map(|number| Tensor::from_slice(&part(number), [2, lengths[number]])).collect();
            let half = |row: usize, number: usize| part(number)[row * lengths[number]..][..lengths[number]].to_vec();
            let want: Vec<i32> =
                (0..2).flat_map(|row| (0..count).flat_map(|number| half(row, number)).collect::<Vec<i32>>()).collect();
            assert_eq!(Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1).to_vec::<i32>()?, want);
            let floats: Vec<Tensor> = parts.iter().map(|part| -part.cast(DType::F32)).collect();
            let joined = Tensor::cat(&floats.iter().collect::<Vec<_>>(), 1).to_vec::<f32>()?;
            assert!(joined.iter().zip(&want).all(|(x, &y)| x.to_bits() == (-(y as f32)).to_bits()));
        }
        Ok(())
    });
}

#[test]
fn indices_of_triangles_are_in_the_order_of_memory() -> Result<(), Error> {
    for (rows, columns) in [(0, 3), (3, 0), (1, 1), (5, 5), (4, 7), (7, 4), (300, 200)] {
        for offset in [-250, -8, -3, -1, 0, 1, 2, 6, 7, 8, 150] {
            let pairs = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let (lower, upper): (Vec<_>, Vec<_>) = pairs.partition(|(row, column)| i64::from(column - row) <= offset);
            let flat = |pairs: &[(i32, i32)]| -> Vec<i32> {
                pairs.iter().map(|pair| pair.0).chain(pairs.iter().map(|pair| pair.1)).collect()
            };
            let [below, above] = [
                Tensor::tril_indices(rows.into(), columns.into(), offset),
                Tensor::triu_indices(rows.into(), columns.into(), offset + 1),
            ];
            assert_eq!(below.to_vec::<i32>()?, flat(&lower), "up to diagonal {offset} of [{rows}, {columns}]");
            assert_eq!(above.to_vec::<i32>()?, flat(&upper), "behind diagonal {offset} of [{rows}, {columns}]");
        }
    }
    Ok(())
}
