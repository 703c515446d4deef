//! 8-bit floats on every device: each code, and values all over the range of f32. What is made of several steps in small
//! floats: it is rounded once.

use crate::support::on_each_device;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::ops::options::{Conv2d, ConvTranspose2d, default};
use tinyspec_ir::{DType, float};

#[test]
fn eight_bit_floats_convert_as_the_language_says() {
    let codes: Vec<u8> = (0..=255).collect();
    // Every exponent, with mantissas around each tie of the formats, and the specials.
    let mut values: Vec<f32> = (0..=255u32)
        .flat_map(|exponent| (0..64u32).map(move |mantissa| f32::from_bits(exponent << 23 | mantissa << 17)))
        .chain([f32::MIN_POSITIVE, f32::MAX, 448.0, 464.0, 464.1, 480.0, 57344.0, 61440.0, 61439.9])
        .collect();
    values.extend(values.clone().iter().map(|value| -value));
    for device in ["cpu", "interpreter"] {
        for dtype in [DType::F8E4M3, DType::F8E5M2] {
            with_default_device::<_, Error>(device, || {
                let decoded = Tensor::from_bytes(dtype, &codes, &[256]).cast(DType::F32).to_vec::<f32>()?;
                for (code, got) in codes.iter().zip(decoded) {
                    let want = float::from_bits(dtype, u64::from(*code)) as f32;
                    assert!(got == want || got.is_nan() && want.is_nan(), "{device} {dtype} {code:#x}: {got} {want}");
                }
                let encoded = Tensor::from_slice(&values, [values.len()]).cast(dtype).bitcast(DType::U8);
                for (value, got) in values.iter().zip(encoded.to_vec::<u8>()?) {
                    let want = float::to_bits(dtype, f64::from(*value)) as u8;
                    let nan = |code: u8| float::from_bits(dtype, u64::from(code)).is_nan();
                    assert!(got == want || nan(got) && nan(want), "{device} {dtype} {value:?}: {got:#x} {want:#x}");
                }
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn doubles_are_rounded_to_sixteen_bits_once() {
    for dtype in [DType::F16, DType::BF16] {
        // Beside codes and ties between two, by less than an f32 can tell; and what no f32 reaches.
        let value = |code: u64| float::from_bits(dtype, code);
        let codes = (0..0x7f80).step_by(37).chain(0..8).chain([0x3ff, 0x400, 0x7bff, 0x7c00, 0x7f7f]);
        let places = codes.flat_map(|code| [value(code), (value(code) + value(code + 1)) / 2.0]);
        let places = places.filter(|value| value.is_finite());
        let mut values: Vec<f64> =
            places.flat_map(|x| [1.0, 1.0 + 1e-12, 1.0 - 1e-12].map(|factor| x * factor)).collect();
        values.extend([1e-300, 1e-46, 1e300, 65519.999, 65520.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE]);
        values.extend(values.clone().iter().map(|value| -value));
        on_each_device(|| {
            let narrow = Tensor::from_slice(&values, [values.len()]).cast(dtype).bitcast(DType::U16);
            for (value, got) in values.iter().zip(narrow.to_vec::<u16>()?) {
                let want = float::to_bits(dtype, *value) as u16;
                let nan = |code: u16| float::from_bits(dtype, u64::from(code)).is_nan();
                assert!(got == want || nan(got) && nan(want), "{dtype} {value:?}: {got:#x} {want:#x}");
            }
            Ok(())
        });
    }
}

#[test]
fn doubles_are_rounded_to_eight_bits_once() {
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        // Beside each code and each tie between two, by less than an f32 can tell; and what no f32 reaches.
        let value = |code: u64| float::from_bits(dtype, code);
        let ties = (0..127).map(|code| (value(code) + value(code + 1)) / 2.0);
        let places: Vec<f64> = (0..127).map(value).chain(ties).filter(|value| value.is_finite()).collect();
        let mut values: Vec<f64> =
            places.iter().flat_map(|&value| [1.0, 1.0 + 1e-12, 1.0 - 1e-12].map(|factor| value * factor)).collect();
        values.extend([1e-300, 1e300, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE]);
        values.extend(values.clone().iter().map(|value| -value));
        for device in ["cpu", "interpreter", "simt"] {
            with_default_device::<_, Error>(device, || {
                let encoded = Tensor::from_slice(&values, [values.len()]).cast(dtype).bitcast(DType::U8);
                for (value, got) in values.iter().zip(encoded.to_vec::<u8>()?) {
                    let want = float::to_bits(dtype, *value) as u8;
                    let nan = |code: u8| float::from_bits(dtype, u64::from(code)).is_nan();
                    assert!(got == want || nan(got) && nan(want), "{device} {dtype} {value:?}: {got:#x} {want:#x}");
                }
                Ok(())
            })
            .unwrap();
        }
    }
}

/// Products are not rounded before they are summed, and do not wrap.
#[test]
fn products_of_small_numbers_are_summed_in_what_accumulates() -> Result<(), Error> {
    let (a, b) = (Tensor::from_slice(&[100i8, 100, -100], [1, 3]), Tensor::from_slice(&[100i8, 50, 100], [3, 1]));
    assert_eq!(a.matmul(&b).to_vec::<i32>()?, [5000]);
    assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b]).to_vec::<i32>()?, [5000]);
    // (1 + 2⁻⁷)² - (1 + 2⁻⁶) is 2⁻¹⁴, which a product rounded to bf16 loses.
    let (a, b) =
        (Tensor::from_slice(&[1.0078125f32, 1.0], [1, 2]), Tensor::from_slice(&[1.0078125f32, -1.015625], [2, 1]));
    let (a, b) = (a.cast(DType::BF16), b.cast(DType::BF16));
    assert_eq!(a.matmul(&b).cast(DType::F32).to_vec::<f32>()?, [2f32.powi(-14)]);
    assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b]).dtype(), DType::BF16);
    assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b]).cast(DType::F32).to_vec::<f32>()?, [2f32.powi(-14)]);
    Ok(())
}

/// A result that its dtype holds is there, whatever was greater on the way.
#[test]
fn what_overflows_between_does_not_count() {
    let f16 = |data: &[f32]| Tensor::from_slice(data, [data.len()]).cast(DType::F16);
    let tiny = |data: &[f32]| Tensor::from_slice(data, [data.len()]).cast(DType::F8E4M3);
    let each = |x: Tensor, want: &[f32]| -> Result<(), Error> {
        assert!(x.dtype() != DType::F32, "the dtype stays");
        assert_eq!(x.cast(DType::F32).to_vec::<f32>()?, want);
        Ok(())
    };
    on_each_device(|| {
        let x = f16(&[300.0, 400.0]);
        each(x.norm(2.0, .., false), &[500.0])?;
        // (300³ + 400³)^(1/3) is 449.795…, and 449.75 the f16 beside it.
        each(x.norm(3.0, .., false), &[449.75])?;
        each(x.normalize(2.0, 0, 1e-6), &[0.60009766, 0.7998047])?;
        each(x.cosine_similarity(&x, 0, 1e-6), &[1.0])?;
        each(x.pairwise_distance(f16(&[0.0, 0.0]), 2.0, 0.0), &[500.0])?;
        each(x.unsqueeze(0).cdist(f16(&[0.0, 0.0]).unsqueeze(0), 2.0), &[500.0])?;
        each(x.renorm(2.0, 0, 1000.0), &[300.0, 400.0])?;
        each(x.unsqueeze(0).renorm(2.0, 0, 250.0), &[150.0, 200.0])?;
        each(x.unsqueeze(0).lp_pool1d(2.0, [2], default()), &[500.0])?;
        each(f16(&[-300.0, 300.0]).std(.., 0, false), &[300.0])?;
        each(f16(&[300.0; 300]).unsqueeze(0).avg_pool1d([300], default()), &[300.0])?;
        each(f16(&[300.0; 300]).unsqueeze(0).adaptive_avg_pool1d([1]), &[300.0])?;
        each(f16(&[60000.0; 3]).unsqueeze(0).adaptive_avg_pool1d([2]), &[60000.0; 2])?;
        each(f16(&[-60000.0, 60000.0]).quantile(0.5, 0, false), &[0.0])?;
        each(f16(&[-60000.0]).lerp(f16(&[60000.0]), f16(&[0.5])), &[0.0])?;
        each(f16(&[-60000.0]).addcmul(f16(&[300.0]), f16(&[300.0]), 1.0), &[30000.0])?;
        each(f16(&[60000.0, 60000.0]).trapezoid(0.5, 0), &[30000.0])?;
        each(f16(&[60000.0, -60000.0]).mse_loss(f16(&[60000.0, -60000.0]), "mean"), &[0.0])?;
        each(f16(&[60000.0]).smooth_l1_loss(f16(&[0.0]), "mean", 1.0), &[60000.0])?;
        let pair = f16(&[-300.0, 300.0, 300.0, -300.0]).reshape([2, 2]);
        each(pair.corrcoef(), &[1.0, -1.0, -1.0, 1.0])?;
        let (near, far) = (f16(&[0.0, 0.0]), f16(&[-300.0, -400.0]));
        each(x.triplet_margin_loss(&near, &far, "mean", 0.0, 2.0), &[0.0])?;
        each(x.triplet_margin_loss(&far, &near, "mean", 0.0, 2.0), &[500.0])?;
        let (mean, index) = (f16(&[0.0]), Tensor::from_slice(&[0i32, 0], [2]));
        each(mean.scatter_reduce(index, f16(&[60000.0, 60000.0]), 0, "mean", false), &[60000.0])?;

        let x = tiny(&[16.0; 64]);
        each(x.norm(2.0, .., false), &[128.0])?;
        each(x.unsqueeze(0).avg_pool1d([64], default()), &[16.0])?;
        each(tiny(&[-30.0, 30.0]).std(.., 0, false), &[30.0])?;
        Ok(())
    });
}

/// More rows than f16 counts.
#[test]
fn means_of_many_small_floats() {
    on_each_device(|| {
        let rows = 70_000;
        let show = |x: Tensor| x.cast(DType::F32).item::<f32>();
        let ones = Tensor::ones([rows]).cast(DType::F16);
        assert_eq!(show(ones.nanmean(.., false))?, 1.0);
        let (logits, target) = (Tensor::zeros([rows, 16]).cast(DType::F16), Tensor::zeros([rows]).cast(DType::I32));
        // log 16 is 2.7725887…
        assert_eq!(show(logits.cross_entropy(&target, "mean", 0.0, -100))?, 2.7734375);
        assert_eq!(show(logits.cross_entropy(&target, "mean", 0.1, -100))?, 2.7734375);
        let logs = Tensor::full([rows, 16], -2.0).cast(DType::F16);
        assert_eq!(show(logs.nll_loss(&target, "mean"))?, 2.0);
        let weights = Tensor::full([16], 3.0).cast(DType::F16);
        assert_eq!(show(logs.nll_loss_weight(&target, weights, "mean"))?, 2.0);
        assert_eq!(show(ones.mse_loss(0.0, "mean"))?, 1.0);
        assert_eq!(show(ones.kl_div(&ones, "batchmean", false))?, -1.0);
        Ok(())
    });
}

type OfThree = fn(&Tensor, &Tensor, &Tensor) -> Tensor;

macro_rules! functions {
    ($($name:ident: |$x:ident, $y:ident, $p:ident| $body:expr;)*) => {
        &[$((stringify!($name), |$x: &Tensor, $y: &Tensor, $p: &Tensor| {
            let _ = ($x, $y, $p);
            $body
        })),*]
    };
}

/// What several steps give is what they give in f32, rounded: of numbers whose squares f16 does not hold.
#[test]
fn reductions_and_losses_are_rounded_once() {
    let functions: &[(&str, OfThree)] = functions! {
        sum: |x, y, p| x.sum(1, false);  mean: |x, y, p| x.mean(1, false);  var: |x, y, p| (x / 16.0).var(1, 1, false);
        std: |x, y, p| x.std(1, 1, false);  std_mean: |x, y, p| x.std_mean(1, 1, false)[0].clone();
        logsumexp: |x, y, p| x.logsumexp(1, false);  logcumsumexp: |x, y, p| x.logcumsumexp(1);
        softmax: |x, y, p| x.softmax(1);  log_softmax: |x, y, p| x.log_softmax(1);  cumsum: |x, y, p| x.cumsum(1);
        nansum: |x, y, p| x.nansum(1, false);  nanmean: |x, y, p| x.nanmean(1, false);
        quantile: |x, y, p| x.quantile(0.3, 1, false);  trapezoid: |x, y, p| x.trapezoid(0.3, 1);
        cumulative_trapezoid: |x, y, p| x.cumulative_trapezoid(0.3, 1);  lerp: |x, y, p| x.lerp(y, 0.25);
        norm1: |x, y, p| x.norm(1.0, 1, false);  norm2: |x, y, p| x.norm(2.0, 1, false);
        norm3: |x, y, p| x.norm(3.0, 1, false);  normalize: |x, y, p| x.normalize(2.0, 1, 1e-6);
        cosine_similarity: |x, y, p| x.cosine_similarity(y, 1, 1e-6);  cdist: |x, y, p| x.cdist(y, 2.0);
        pairwise_distance: |x, y, p| x.pairwise_distance(y, 2.0, 1e-6);  renorm: |x, y, p| x.renorm(2.0, 0, 350.0);
        corrcoef: |x, y, p| x.corrcoef();  avg_pool1d: |x, y, p| x.avg_pool1d([3], default());
        adaptive: |x, y, p| x.adaptive_avg_pool1d([2]);  lp_pool1d: |x, y, p| x.lp_pool1d(3.0, [2], default());
        cross: |x, y, p| (x / 32.0).cross(y, 1);  hypot: |x, y, p| x.hypot(y);  atan2: |x, y, p| x.atan2(y);
        logaddexp: |x, y, p| x.logaddexp(y);  logaddexp2: |x, y, p| x.logaddexp2(y);  xlogy: |x, y, p| x.xlogy(p);
        xlog1py: |x, y, p| x.xlog1py(p);  addcmul: |x, y, p| x.addcmul(y, p, 0.01);  addcdiv: |x, y, p| x.addcdiv(y, p, 0.5);
        deg2rad: |x, y, p| x.deg2rad();  rad2deg: |x, y, p| x.rad2deg();
        layer_norm: |x, y, p| x.layer_norm(y.at(0), p.at(1), 1, 1e-5);  rms_norm: |x, y, p| x.rms_norm(y.at(0), 1e-5);
        batch_norm_train: |x, y, p| x.batch_norm_train(y.at(0), p.at(1), 1e-5);
        batch_norm_eval: |x, y, p| x.batch_norm_eval(y.at(0) / 64.0, p.at(1), y.at(1), p.at(0), 1e-5);
        local_response_norm: |x, y, p| x.local_response_norm(2, 0.5, 0.75, 1.0);
        mse: |x, y, p| (x / 16.0).mse_loss(y / 16.0, "mean");  l1: |x, y, p| x.l1_loss(y, "mean");
        huber: |x, y, p| x.huber_loss(y, "mean", 1.5);  smooth_l1: |x, y, p| x.smooth_l1_loss(y, "mean", 400.0);
        kl_div: |x, y, p| x.kl_div(p, "mean", false);  poisson: |x, y, p| p.poisson_nll_loss(x, "mean", false, 1e-4);
        gaussian: |x, y, p| x.gaussian_nll_loss(y, p, "mean", 1e-3);
        hinge: |x, y, p| x.hinge_embedding_loss(y.sign(), "mean", 1.0);
        margin: |x, y, p| x.margin_ranking_loss(y, p.sign(), "mean", 0.2);
        triplet: |x, y, p| x.triplet_margin_loss(y, p, "mean", 3.0, 2.0);
        soft_margin: |x, y, p| x.soft_margin_loss(y.sign(), "mean");
        multilabel: |x, y, p| x.multilabel_soft_margin_loss(y.gt(0.0).cast(DType::F16), "mean");
        focal: |x, y, p| x.sigmoid_focal_loss(y.gt(0.0).cast(DType::F16), "mean", 0.25, 2.0);
        bce_logits: |x, y, p| x.binary_crossentropy_logits(y.gt(0.0).cast(DType::F16), "mean");
        bce: |x, y, p| (p / 2048.0).binary_crossentropy(y.gt(0.0).cast(DType::F16), "mean");
        cross_entropy: |x, y, p| x.cross_entropy(Tensor::from_slice(&[2i32, 0], [2]), "mean", 0.1, -100);
        cross_entropy_prob: |x, y, p| x.cross_entropy_prob(p / 1024.0, "mean");
        multi_margin: |x, y, p| (x / 16.0).multi_margin_loss(Tensor::from_slice(&[2i32, 0], [2]), "mean", 2.0, 1.0);
        einsum: |x, y, p| Tensor::einsum("ij,kj->ik", &[&(x / 16.0), y]);
        cov: |x, y, p| (x / 16.0).cov(1);
        linear: |x, y, p| (x / 16.0).linear((y / 16.0).transpose(0, 1), p.at((.., 0)));
        bilinear: |x, y, p| (x / 64.0).bilinear(y / 64.0, p.reshape([2, 3, 1]) * (y / 1024.0).reshape([2, 1, 3]), Some(&p.at((.., 1))));
        conv1d: |x, y, p| (x / 16.0).reshape([1, 2, 3]).conv1d((y / 16.0).reshape([3, 2, 1]), Some(&p.at(0)), default());
        conv2d: |x, y, p| (x / 16.0).reshape([1, 1, 2, 3]).conv2d((y / 16.0).reshape([2, 1, 1, 3]), Some(&p.at((.., 0))), default());
        conv_transpose1d: |x, y, p| (x / 16.0).reshape([1, 2, 3]).conv_transpose1d((y / 16.0).reshape([2, 3, 1]), Some(&p.at(0)), default());
        group_norm: |x, y, p| x.reshape([1, 2, 3]).group_norm(y.at((.., 0)), p.at((.., 1)), 1, 1e-5);
        instance_norm: |x, y, p| x.reshape([1, 2, 3]).instance_norm(y.at((.., 0)), p.at((.., 1)), 1e-5);
        sdpa_mask: |x, y, p| (x / 64.0).sdpa_mask(y / 64.0, p, (p / 256.0).at((.., ..2)));
    };
    on_each_device(|| {
        let of = |data: [f32; 6]| Tensor::from_slice(&data, [2, 3]);
        let wide = [
            of([300.0, -280.0, 260.5, 312.0, -256.0, 289.0]),
            of([-301.0, 270.0, 299.5, -310.0, 264.0, 281.0]),
            of([320.0, 257.0, 301.5, 288.0, 259.0, 333.0]),
        ];
        let narrow = wide.each_ref().map(|x| x.cast(DType::F16));
        for (name, function) in functions {
            let want = function(&wide[0], &wide[1], &wide[2]).cast(DType::F16).cast(DType::F32).to_vec::<f32>()?;
            let got = function(&narrow[0], &narrow[1], &narrow[2]);
            assert_eq!(got.dtype(), DType::F16, "{name}");
            assert_eq!(got.cast(DType::F32).to_vec::<f32>()?, want, "{name}");
        }
        Ok(())
    });
}

/// Products whose sums are exact in f32: what is then left is the rounding of the result.
#[test]
fn layers_add_the_bias_before_they_round() {
    type Layer = fn(&Tensor, &Tensor, &Tensor) -> Tensor;
    let layers: &[(&str, &[i64], &[i64], Layer)] = &[
        ("linear", &[8, 12], &[12, 6], |x, w, b| x.linear(w, b)),
        ("bilinear", &[8, 4], &[6, 4, 4], |x, w, b| x.bilinear(x, w, Some(b))),
        ("conv1d", &[2, 4, 9], &[6, 4, 3], |x, w, b| x.conv1d(w, Some(b), default())),
        ("conv2d", &[2, 4, 5, 5], &[6, 2, 3, 3], |x, w, b| {
            x.conv2d(w, Some(b), Conv2d { padding: [1, 1], groups: 2, ..default() })
        }),
        ("conv3d", &[1, 2, 3, 3, 3], &[6, 2, 2, 2, 2], |x, w, b| x.conv3d(w, Some(b), default())),
        ("conv_transpose1d", &[2, 4, 9], &[4, 6, 3], |x, w, b| x.conv_transpose1d(w, Some(b), default())),
        ("conv_transpose2d", &[2, 4, 3, 3], &[4, 6, 3, 3], |x, w, b| {
            x.conv_transpose2d(w, Some(b), ConvTranspose2d { stride: [2, 2], ..default() })
        }),
    ];
    let made = |shape: &[i64], scale: f64| {
        let count: i64 = shape.iter().product();
        let data: Vec<f64> = (0..count).map(|i| ((i * 37 + 11) % 29 - 14) as f64 / scale).collect();
        Tensor::from_slice(&data, shape)
    };
    for dtype in [DType::BF16, DType::F16] {
        for &(name, x, w, layer) in layers {
            on_each_device(|| {
                let (x, w, b) = (made(x, 8.0), made(w, 16.0), made(&[6], 4.0));
                let narrow = [&x, &w, &b].map(|x| x.cast(dtype));
                let wide = narrow.each_ref().map(|x| x.cast(DType::F64));
                let result = layer(&narrow[0], &narrow[1], &narrow[2]);
                assert_eq!(result.dtype(), dtype);
                let got = result.cast(DType::F64).to_vec::<f64>()?;
                let want = layer(&wide[0], &wide[1], &wide[2]).to_vec::<f64>()?;
                let want: Vec<f64> = want.iter().map(|&x| float::from_bits(dtype, float::to_bits(dtype, x))).collect();
                assert_eq!(got, want, "{name} {dtype}");
                Ok(())
            });
        }
    }
}

/// A sum that rounds to the bias' negative is not 0, so relu lets its gradient through.
#[test]
fn gradients_behind_relu_are_those_of_unrounded_sums() {
    on_each_device(|| {
        let of = |data: &[f32], shape: [i64; 2]| Tensor::from_slice(data, shape).cast(DType::BF16);
        // 1 + 2⁻⁹ is 1 in bf16.
        let (x, w, b) = (of(&[1.0, 0.001953125], [1, 2]), of(&[1.0, 1.0], [2, 1]), of(&[-1.0], [1, 1]).flatten(0, -1));
        let y = x.linear(&w, &b).relu();
        assert_eq!(y.cast(DType::F32).to_vec::<f32>()?, [0.001953125]);
        let gradients = grad(&y.sum(.., false), &[&x, &w, &b])?;
        let found = |number: usize| gradients[number].cast(DType::F32).to_vec::<f32>();
        assert_eq!(found(0)?, [1.0, 1.0]);
        assert_eq!(found(1)?, [1.0, 0.001953125]);
        assert_eq!(found(2)?, [1.0]);
        let (x, w) = (x.reshape([1, 2, 1, 1]), w.reshape([1, 2, 1, 1]));
        let y = x.conv2d(&w, Some(&b), default()).relu();
        let gradients = grad(&y.sum(.., false), &[&x, &w, &b])?;
        let found = |number: usize| gradients[number].cast(DType::F32).to_vec::<f32>();
        assert_eq!(found(0)?, [1.0, 1.0]);
        assert_eq!(found(1)?, [1.0, 0.001953125]);
        assert_eq!(found(2)?, [1.0]);
        Ok(())
    });
}
